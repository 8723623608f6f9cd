/* SPDX-License-Identifier: MIT */
/*
 * Small and skinny float32 products by tiles of registers, with no packing: where a library spends most of its time
 * getting ready. Each element is one sum in the order of k, whatever the number of threads.
 */
#include "backends/cpu/base/parallel.h"
#include "backends/cpu/matmul/matmul.h"

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

typedef struct tn__tile {
    int64_t m, n, k;
    const float *a, *b;
    float *out;
    int64_t lda, ldb, ldo;
    float alpha;
    bool beta;
    bool by_columns; /* a is a transpose: its columns are dense */
} tn__tile;

#define TALLEST_1 8
#define TALLEST_2 8
#include "backends/cpu/base/isa_avx512.h"
#include "backends/cpu/matmul/tile_kernel.h"
#include "backends/cpu/base/isa_end.h"

#define TALLEST_1 8
#define TALLEST_2 4
#include "backends/cpu/base/isa_avx2.h"
#include "backends/cpu/matmul/tile_kernel.h"
#include "backends/cpu/base/isa_end.h"

typedef void (*rows_function)(const tn__tile *t, int64_t begin, int64_t end);

static rows_function rows_here(void)
{
    tn__simd simd = tn__cpu_simd();
    return simd == TN__SIMD_AVX512 ? rows_avx512 : simd == TN__SIMD_AVX2 ? rows_avx2 : NULL;
}

#define NEAR         6400  /* most elements of a b that stays in the first-level cache; a transposed one is
                              transposed on the stack */
#define MOST         65536 /* multiplications up to which tiles win */
#define TINY         4096  /* ... and up to which a library's preparation costs more than any product */
#define SPARED       4194304 /* ... and up to which tiles are used if b is that small, although the library may win a
                                little */
#define ROWS_AT_ONCE 8

/*
 * Where tiles are faster than oneDNN's sgemm on one AVX-512 core, in its microseconds over theirs: 8x8x8 0.68 / 0.06,
 * 32x30x10 1.38 / 0.50, 32x10x30 1.02 / 0.45, 32x32x32 1.18 / 0.62, 32x64x30 1.65 / 1.1, 40x40x40 1.78 / 1.55; at
 * 64x64x64 they are even. A narrow result leaves lanes of the vectors idle, and turning b has to pay. Higher products
 * of a near b are even, too, or a sixth slower at most: 64x64x100 9.1 / 8.0, its transpose's 13.3 / 17.3, 360x64x100 48
 * / 41. By tiles they spare programs that multiply nothing larger the library's first call, in which it generates its
 * code for 50 ms and more.
 */
bool tn__matmul_tile_suits(const tn__matmul_product *p)
{
    double multiplications = (double)p->m * (double)p->n * (double)p->k;
    bool near = p->n * p->k <= NEAR;
    if (multiplications > (near ? SPARED : MOST) || rows_here() == NULL)
        return false;
    if (p->b.transposed && (!near || p->m < 4))
        return false;
    return p->n >= 8 || multiplications <= TINY;
}

/* Of many stretches, one after the other, a library's preparation is a part that counts. */
bool tn__matmul_tile_suits_stretch(const tn__matmul_product *p)
{
    return rows_here() != NULL && !p->b.transposed && p->m * p->n <= 256 && (p->n >= 8 || (p->m == 1 && p->n > 1));
}

typedef struct tile_run {
    const tn__tile *tile;
    rows_function rows;
} tile_run;

static void tile_part(void *context, int64_t begin, int64_t end)
{
    const tile_run *run = context;
    int64_t last = end * ROWS_AT_ONCE;
    run->rows(run->tile, begin * ROWS_AT_ONCE, last < run->tile->m ? last : run->tile->m);
}

bool tn__matmul_tile(const tn__matmul_product *p)
{
    float transposed[NEAR];
    tn__tile tile = {p->m, p->n, p->k, (const float *)p->a.place, (const float *)p->b.place, (float *)p->out.place,
                     p->a.ld, p->b.ld, p->out.ld, p->alpha.f32, p->beta, p->a.transposed};
    if (p->b.transposed) {
        for (int64_t j = 0; j < p->n; j++)
            for (int64_t i = 0; i < p->k; i++)
                transposed[i * p->n + j] = tile.b[j * p->b.ld + i];
        tile.b = transposed;
        tile.ldb = p->n;
    }
    tile_run run = {&tile, rows_here()};
    tn__cpu_for((p->m + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE, p->n * p->k + 1, tile_part, &run);
    return true;
}

#else

bool tn__matmul_tile_suits(const tn__matmul_product *p)
{
    (void)p;
    return false;
}

bool tn__matmul_tile_suits_stretch(const tn__matmul_product *p)
{
    (void)p;
    return false;
}

bool tn__matmul_tile(const tn__matmul_product *p)
{
    (void)p;
    return false;
}

#endif
