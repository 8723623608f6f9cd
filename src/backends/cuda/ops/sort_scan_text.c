/* SPDX-License-Identifier: MIT */
/* What stands in front of the texts for rows: types, how elements are ordered, how they combine. */
#include <stdio.h>

#include "backends/cuda/ops/sort_scan.h"
#include "core/memory.h"
#include "ops/ops.h"
#include "tn_embed.h"

#define WORDS "typedef unsigned long long u64;\ntypedef unsigned int u32;\n"

/* ---- elements in order ---- */

static const char *const order_text[TN_DTYPE_COUNT] = {
    [TN_BOOL] = "typedef unsigned char E;\n#define E_BITS 8\n#define KEY_UNSIGNED\n",
    [TN_INT8] = "typedef unsigned char E;\n#define E_BITS 8\n#define KEY_SIGNED\n",
    [TN_INT16] = "typedef unsigned short E;\n#define E_BITS 16\n#define KEY_SIGNED\n",
    [TN_INT32] = "typedef unsigned int E;\n#define E_BITS 32\n#define KEY_SIGNED\n",
    [TN_INT64] = "typedef unsigned long long E;\n#define E_BITS 64\n#define KEY_SIGNED\n",
    [TN_UINT8] = "typedef unsigned char E;\n#define E_BITS 8\n#define KEY_UNSIGNED\n",
    [TN_UINT16] = "typedef unsigned short E;\n#define E_BITS 16\n#define KEY_UNSIGNED\n",
    [TN_UINT32] = "typedef unsigned int E;\n#define E_BITS 32\n#define KEY_UNSIGNED\n",
    [TN_UINT64] = "typedef unsigned long long E;\n#define E_BITS 64\n#define KEY_UNSIGNED\n",
    [TN_FLOAT16] = "typedef unsigned short E;\n#define E_BITS 16\n#define KEY_FLOAT\n#define INFINITE_BITS 0x7c00\n",
    [TN_BFLOAT16] = "typedef unsigned short E;\n#define E_BITS 16\n#define KEY_FLOAT\n#define INFINITE_BITS 0x7f80\n",
    [TN_FLOAT32] = "typedef unsigned int E;\n#define E_BITS 32\n#define KEY_FLOAT\n#define INFINITE_BITS 0x7f800000u\n",
    [TN_FLOAT64] = "typedef unsigned long long E;\n#define E_BITS 64\n#define KEY_FLOAT\n"
                   "#define INFINITE_BITS 0x7ff0000000000000ull\n",
};

bool tn__cuda_has_order(tn_dtype dtype) { return order_text[dtype] != NULL; }

/* LOAD and STORE, where elements are no numbers that C has. */
static const char *conversions(tn_dtype dtype)
{
    return dtype == TN_FLOAT16 || dtype == TN_BFLOAT16 ? tn__cuda_conversions(dtype) : "";
}

char *tn__cuda_text_sort(tn_dtype dtype, bool positions, bool wide)
{
    return tn__format(WORDS "%s%s%s%s%s%s", order_text[dtype], positions ? "#define POSITIONS\n" : "",
                      wide ? "#define WIDE\n" : "", tn__cuda_walk_text, (const char *)tn__embed_cuda_sort_keys,
                      (const char *)tn__embed_cuda_sort);
}

char *tn__cuda_text_sort_rows(tn_dtype dtype, bool positions, int each, int lanes, int threads)
{
    return tn__format(WORDS "%s%s#define EACH_LANE %d\n#define LANES %d\n#define THREADS %d\n%s%s%s", order_text[dtype],
                      positions ? "#define POSITIONS\n" : "", each, lanes, threads, tn__cuda_walk_text,
                      (const char *)tn__embed_cuda_sort_keys, (const char *)tn__embed_cuda_sort_rows);
}

char *tn__cuda_text_largest(tn_dtype dtype)
{
    return tn__format(WORDS "%s%s%s%s", order_text[dtype], tn__cuda_walk_text, (const char *)tn__embed_cuda_sort_keys,
                      (const char *)tn__embed_cuda_largest);
}

char *tn__cuda_text_largest_few(tn_dtype dtype, int each)
{
    return tn__format(WORDS "%s#define EACH_LANE %d\n%s%s%s", order_text[dtype], each, tn__cuda_walk_text,
                      (const char *)tn__embed_cuda_sort_keys, (const char *)tn__embed_cuda_largest_few);
}

char *tn__cuda_text_search(tn_dtype dtype, bool right)
{
    return tn__format(WORDS "%s%s%s%s%s%s%s", order_text[dtype], right ? "#define RIGHT\n" : "", conversions(dtype),
                      tn__cuda_walk_text, (const char *)tn__embed_cuda_sort_keys, (const char *)tn__embed_cuda_value,
                      (const char *)tn__embed_cuda_search);
}

char *tn__cuda_text_histogram(tn_dtype dtype)
{
    return tn__format(WORDS "typedef long long i64;\n%s%s%s%s%s", order_text[dtype], conversions(dtype),
                      (const char *)tn__embed_cuda_sort_keys, (const char *)tn__embed_cuda_value,
                      (const char *)tn__embed_cuda_histogram);
}

/* ---- elements that combine: whole numbers wrap around, so they are added as unsigned ones ---- */

#define INFINITY_TEXT "#define LOWEST (-__int_as_float(0x7f800000))\n#define HIGHEST __int_as_float(0x7f800000)\n"
#define UNSIGNED(S, highest) {S, S, "#define LOWEST 0\n#define HIGHEST " highest "\n"}
#define SIGNED(S, U, highest) {S, U, "#define HIGHEST " highest "\n#define LOWEST (-HIGHEST - 1)\n"}

static const struct {
    const char *stored, *added; /* S; W of sums and products (W of the others is S) */
    const char *limits;
} scan_types[TN_DTYPE_COUNT] = {
    [TN_BOOL] = UNSIGNED("unsigned char", "1"),
    [TN_INT8] = SIGNED("signed char", "unsigned char", "127"),
    [TN_INT16] = SIGNED("short", "unsigned short", "32767"),
    [TN_INT32] = SIGNED("int", "unsigned int", "2147483647"),
    [TN_INT64] = SIGNED("long long", "unsigned long long", "9223372036854775807ll"),
    [TN_UINT8] = UNSIGNED("unsigned char", "255"),
    [TN_UINT16] = UNSIGNED("unsigned short", "65535"),
    [TN_UINT32] = UNSIGNED("unsigned int", "4294967295u"),
    [TN_UINT64] = UNSIGNED("unsigned long long", "18446744073709551615ull"),
    [TN_FLOAT16] = {"unsigned short", "float", INFINITY_TEXT},
    [TN_BFLOAT16] = {"unsigned short", "float", INFINITY_TEXT},
    [TN_FLOAT32] = {"float", "float", INFINITY_TEXT},
    [TN_FLOAT64] = {"double", "double", INFINITY_TEXT},
};

/* -0 + x is x for every x, 0 + -0 is not. */
static const struct {
    int op;
    const char *identity, *combine;
} scans[] = {
    {TN__OP_CUMSUM, "((W)-0.0)", "((a) + (b))"},
    {TN__OP_CUMPROD, "((W)1)", "((a) * (b))"},
    {TN__OP_CUMMAX, "LOWEST", "((a) > (b) || (a) != (a) ? (a) : (b))"},
    {TN__OP_CUMMIN, "HIGHEST", "((a) < (b) || (a) != (a) ? (a) : (b))"},
};

char *tn__cuda_text_nonzero(void)
{
    char *scan = tn__cuda_text_scan(TN_INT64, TN__OP_CUMSUM, 0);
    char *text = scan ? tn__format("%s%s", scan, (const char *)tn__embed_cuda_nonzero) : NULL;
    tn__free(scan);
    return text;
}

char *tn__cuda_text_scan(tn_dtype dtype, int op, int shorter)
{
    size_t i = 0;
    while (scans[i].op != op)
        i++;
    bool half = dtype == TN_FLOAT16 || dtype == TN_BFLOAT16,
         adds = op == TN__OP_CUMSUM || op == TN__OP_CUMPROD;
    char given[32] = "";
    if (shorter)
        snprintf(given, sizeof given, "#define SHORT %d\n", shorter);
    return tn__format(WORDS "typedef %s S;\ntypedef %s W;\n%s%s#define IDENTITY %s\n#define COMBINE(a, b) %s\n%s%s%s",
                      scan_types[dtype].stored, adds || half ? scan_types[dtype].added : scan_types[dtype].stored,
                      half ? tn__cuda_conversions(dtype) : "#define LOAD(x) (x)\n#define STORE(x) (x)\n",
                      scan_types[dtype].limits, scans[i].identity, scans[i].combine, given, tn__cuda_walk_text,
                      (const char *)tn__embed_cuda_scan);
}
