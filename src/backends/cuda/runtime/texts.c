/* SPDX-License-Identifier: MIT */
/*
 * Texts of the backend's own kernels. Each is made for one storage dtype by a few definitions before a common text: S
 * as stored, W as computed in, LOAD and STORE between them.
 */
#include <stdio.h>

#include "backends/cuda/runtime/cuda.h"
#include "core/memory.h"
#include "tn_embed.h"

const char *const tn__cuda_walk_text = (const char *)tn__embed_cuda_walk;
const char *const tn__cuda_failure_text = (const char *)tn__embed_cuda_failure;

/* Whole numbers wrap around, so they are added as unsigned ones. */
#define WHOLE(S) "typedef " S " S;\ntypedef " S " W;\n" PLAIN
#define PLAIN "#define LOAD(x) (x)\n#define STORE(x) (x)\n"
#define ARITHMETIC "#define PLUS(a, b) ((a) + (b))\n#define TIMES(a, b) ((a) * (b))\n"

#define HALF "typedef unsigned short S;\ntypedef float W;\n" ARITHMETIC
#define FLOAT16_CONVERSIONS \
    "__device__ inline float LOAD(unsigned short x) { float y; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(y) : \"h\"(x)); " \
    "return y; }\n" \
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

/* Complex dtypes, in two parts. TIMES is not defined: only matmul.cuh multiplies, and is not compiled for them. */
#define PARTS(R, bytes) \
    "struct __align__(" bytes ") S { " R " re, im; S() = default; __device__ S(" R " x, " R \
    " y = 0) : re(x), im(y) {} };\n" \
    "typedef S W;\n" PLAIN "__device__ inline S PLUS(S a, S b) { return S(a.re + b.re, a.im + b.im); }\n"

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

char *tn__cuda_text_copy(size_t itemsize, int words)
{
    static const char *const word[] = {[1] = "unsigned char", [2] = "unsigned short", [4] = "unsigned",
                                       [8] = "unsigned long long", [16] = "ulonglong2"};
    return tn__format("typedef %s S;\n#define WORDS %d\n%s", word[itemsize], words, (const char *)tn__embed_cuda_copy);
}

char *tn__cuda_text_factors(void) { return tn__format("%s", (const char *)tn__embed_cuda_factors); }

char *tn__cuda_text_products(tn_dtype dtype, const char *constants, const unsigned char *text)
{
    return tn__format("typedef %s T;\n%s%s%s%s", dtype == TN_FLOAT64 ? "double" : "float", constants,
                      tn__cuda_walk_text, (const char *)tn__embed_cuda_background, (const char *)text);
}

const char *tn__cuda_types(tn_dtype dtype) { return dtype_text[dtype]; }

char *tn__cuda_text_matmul(tn_dtype dtype)
{
    return tn__format("%s%s%s", dtype_text[dtype], tn__cuda_walk_text,
                      (const char *)tn__embed_cuda_matmul);
}
