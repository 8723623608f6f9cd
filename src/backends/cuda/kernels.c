/* SPDX-License-Identifier: MIT */
/*
 * Texts of the backend's own kernels. Each is made for one storage dtype by a few definitions before a common text: S as
 * stored, W as computed in, LOAD and STORE between them.
 */
#include <stdio.h>

#include "backends/cuda/cuda.h"
#include "core/memory.h"

/* Places of one index space, as tn__cuda_walk describes it. */
const char tn__cuda_walk_text[] =
    "typedef long long i64;\n"
    "struct walk { i64 size; int ndim, unused; i64 dim[8]; i64 stride[3][8]; };\n"
    "__device__ inline void places(const walk &w, i64 i, i64 *at)\n"
    "{\n"
    "    at[0] = at[1] = at[2] = 0;\n"
    "    for (int d = w.ndim - 1; d >= 0; d--) {\n"
    "        i64 rest = i / w.dim[d], j = i - rest * w.dim[d];\n"
    "        at[0] += j * w.stride[0][d];\n"
    "        at[1] += j * w.stride[1][d];\n"
    "        at[2] += j * w.stride[2][d];\n"
    "        i = rest;\n"
    "    }\n"
    "}\n"
    "#define EACH(i, n) (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (i64)gridDim.x * blockDim.x)\n"
    "#define STOP_IF_FAILED(guard) if (guard && *(const volatile unsigned long long *)guard) return\n";

/* tn__cuda_failure as kernels see it, and telling of a failure: the first to set the latch describes it. */
const char tn__cuda_failure_text[] =
    "struct tn_failure { unsigned long long guard, latch, report, run, who; };\n"
    "static __device__ __noinline__ void tn_fail(const tn_failure *f, long long operand, long long index)\n"
    "{\n"
    "    if (atomicCAS((unsigned long long *)f->latch, 0ull, 1ull) == 0) {\n"
    "        volatile long long *report = (volatile long long *)f->report;\n"
    "        report[1] = (long long)f->run;\n"
    "        report[2] = (long long)f->who;\n"
    "        report[3] = operand;\n"
    "        report[4] = index;\n"
    "        __threadfence_system();\n"
    "        report[0] = 1;\n"
    "    }\n"
    "}\n";

static const char move_text[] =
    "extern \"C\" __global__ void move(const __grid_constant__ walk w, S *to, const S *from,\n"
    "    const unsigned long long *guard)\n"
    "{\n"
    "    STOP_IF_FAILED(guard);\n"
    "    for EACH(i, w.size) {\n"
    "        i64 at[3];\n"
    "        places(w, i, at);\n"
    "        to[at[0]] = from[at[1]];\n"
    "    }\n"
    "}\n";

static const char fill_text[] =
    "extern \"C\" __global__ void fill(const __grid_constant__ walk w, S *to, S value, const unsigned long long *guard)\n"
    "{\n"
    "    STOP_IF_FAILED(guard);\n"
    "    for EACH(i, w.size) {\n"
    "        i64 at[3];\n"
    "        places(w, i, at);\n"
    "        to[at[0]] = value;\n"
    "    }\n"
    "}\n";

/* What a library multiplies by, in memory: alpha and beta, or what leaves everything as it is. */
static const char factors_text[] =
    "extern \"C\" __global__ void factors(unsigned long long *to, unsigned long long alpha, unsigned long long beta,\n"
    "    unsigned long long one, int wide, const unsigned long long *guard)\n"
    "{\n"
    "    if (guard && *(const volatile unsigned long long *)guard) {\n"
    "        alpha = 0;\n"
    "        beta = one;\n"
    "    }\n"
    "    if (wide) {\n"
    "        to[0] = alpha;\n"
    "        to[1] = beta;\n"
    "    } else {\n"
    "        ((unsigned *)to)[0] = (unsigned)alpha;\n"
    "        ((unsigned *)to)[1] = (unsigned)beta;\n"
    "    }\n"
    "}\n";

/* One thread an element: for dtypes and layouts that no library takes. Terms are added in order, each rounded. */
static const char matmul_text[] =
    "extern \"C\" __global__ void matmul(const __grid_constant__ walk w, S *out, const S *a, const S *b,\n"
    "    i64 m, i64 n, i64 k, i64 out_row, i64 out_column, i64 a_row, i64 a_column, i64 b_row, i64 b_column,\n"
    "    W alpha, int beta, const unsigned long long *guard)\n"
    "{\n"
    "    STOP_IF_FAILED(guard);\n"
    "    for EACH(i, w.size * m * n) {\n"
    "        i64 at[3], column = i % n, row = i / n % m;\n"
    "        places(w, i / n / m, at);\n"
    "        const S *x = a + at[1] + row * a_row, *y = b + at[2] + column * b_column;\n"
    "        W sum = 0;\n"
    "        for (i64 p = 0; p < k; p++)\n"
    "            sum = (W)PLUS(sum, (W)TIMES(LOAD(x[p * a_column]), LOAD(y[p * b_row])));\n"
    "        sum = (W)TIMES(alpha, sum);\n"
    "        S *place = out + at[0] + row * out_row + column * out_column;\n"
    "        *place = STORE(beta ? (W)PLUS(sum, LOAD(*place)) : sum);\n"
    "    }\n"
    "}\n";

/* Whole numbers wrap around, so they are added as unsigned ones. */
#define WHOLE(S) "typedef " S " S;\ntypedef " S " W;\n" PLAIN
#define PLAIN "#define LOAD(x) (x)\n#define STORE(x) (x)\n"
#define ARITHMETIC "#define PLUS(a, b) ((a) + (b))\n#define TIMES(a, b) ((a) * (b))\n"

#define HALF "typedef unsigned short S;\ntypedef float W;\n" ARITHMETIC
#define FLOAT16_CONVERSIONS \
    "__device__ inline float LOAD(unsigned short x) { float y; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x)); return y; }\n" \
    "__device__ inline unsigned short STORE(float x)\n" \
    "{\n" \
    "    unsigned short y;\n" \
    "    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y) : \"f\"(x));\n" \
    "    return y;\n" \
    "}\n"
/* The upper half of a float32, rounded to nearest, ties to even; NaN stays NaN. */
#define BFLOAT16_CONVERSIONS \
    "__device__ inline float LOAD(unsigned short x) { return __uint_as_float((unsigned)x << 16); }\n" \
    "__device__ inline unsigned short STORE(float x)\n" \
    "{\n" \
    "    unsigned u = __float_as_uint(x);\n" \
    "    return (unsigned short)(x != x ? u >> 16 | 0x40 : (u + 0x7fff + (u >> 16 & 1)) >> 16);\n" \
    "}\n"

const char *tn__cuda_conversions(tn_dtype dtype)
{
    return dtype == TN_FLOAT16 ? FLOAT16_CONVERSIONS : BFLOAT16_CONVERSIONS;
}

/* Two parts; matmul_text, which alone multiplies, is not of them. */
#define PARTS(R, bytes) \
    "struct __align__(" bytes ") S { " R " re, im; S() = default; __device__ S(" R " x, " R " y = 0) : re(x), im(y) {} };\n" \
    "typedef S W;\n" PLAIN \
    "__device__ inline S PLUS(S a, S b) { return S(a.re + b.re, a.im + b.im); }\n"

static const char *const dtype_text[TN_DTYPE_COUNT] = {
    [TN_BOOL] = WHOLE("unsigned char") "#define PLUS(a, b) ((a) | (b))\n#define TIMES(a, b) ((a) & (b))\n",
    [TN_INT8] = WHOLE("unsigned char") ARITHMETIC,
    [TN_UINT8] = WHOLE("unsigned char") ARITHMETIC,
    [TN_INT16] = WHOLE("unsigned short") "#define PLUS(a, b) ((a) + (b))\n#define TIMES(a, b) ((unsigned)(a) * (b))\n",
    [TN_UINT16] = WHOLE("unsigned short") "#define PLUS(a, b) ((a) + (b))\n#define TIMES(a, b) ((unsigned)(a) * (b))\n",
    [TN_INT32] = WHOLE("unsigned") ARITHMETIC,
    [TN_UINT32] = WHOLE("unsigned") ARITHMETIC,
    [TN_INT64] = WHOLE("unsigned long long") ARITHMETIC,
    [TN_UINT64] = WHOLE("unsigned long long") ARITHMETIC,
    [TN_FLOAT32] = WHOLE("float") ARITHMETIC,
    [TN_FLOAT64] = WHOLE("double") ARITHMETIC,
    [TN_COMPLEX64] = PARTS("float", "8"),
    [TN_COMPLEX128] = PARTS("double", "16"),
    [TN_FLOAT16] = HALF FLOAT16_CONVERSIONS,
    [TN_BFLOAT16] = HALF BFLOAT16_CONVERSIONS,
};

static char *text_of_words(size_t itemsize, const char *text)
{
    static const char *const word[] = {[1] = "unsigned char", [2] = "unsigned short", [4] = "unsigned",
                                       [8] = "unsigned long long", [16] = "ulonglong2"};
    return tn__format("typedef %s S;\n%s%s", word[itemsize], tn__cuda_walk_text, text);
}

char *tn__cuda_text_move(size_t itemsize) { return text_of_words(itemsize, move_text); }

char *tn__cuda_text_fill(size_t itemsize) { return text_of_words(itemsize, fill_text); }

char *tn__cuda_text_factors(void) { return tn__format("%s", factors_text); }

const char *tn__cuda_types(tn_dtype dtype) { return dtype_text[dtype]; }

char *tn__cuda_text_matmul(tn_dtype dtype)
{
    return tn__format("%s%s%s", dtype_text[dtype], tn__cuda_walk_text, matmul_text);
}
