/* SPDX-License-Identifier: MIT */
/*
 * float64 products by tiles of packed operands (after Goto and van de Geijn, Anatomy of high-performance matrix
 * multiplication, 2008): of a stretch of k, so many columns of b and so many rows of a are packed as a tile reads them,
 * and then multiplied by tiles whose sums stay in registers. Of a the part that a piece goes through stays in the
 * second-level cache, of b in the first.
 *
 * Each element is one sum in the order of k over each stretch of DEEPEST; stretches are added up in the result. Neither
 * threads nor the processor's vectors change a bit.
 */
#include "backends/cpu/matmul.h"

#include "backends/cpu/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define DEEPEST 256  /* of k at a time */
#define MOST    2048 /* rows of a, and columns of b, at a time: 4 MiB of each */
#define GROUP   144  /* rows of a piece, about */
#define CHUNK   64   /* columns of a piece */
#define PACKING 4    /* cost of an element */
#define LEAST   2048 /* multiplications of a product that is worth packing */
#define THIN    4    /* rows and columns of one, at least */

/* Packed rows times packed columns over k: the first `rows` and `columns` of the tile's are the result's. */
typedef struct tile {
    const double *a, *b;
    double *out;
    int64_t k, ldo, rows, columns;
    double alpha;
    bool beta;
} tile;

#define TILE(isa, extension, V, WIDTH, ROWS, LOAD, STORE, SPREAD, FMA)                                                 \
    static __attribute__((target(extension))) void tile_##isa(const tile *t)                                           \
    {                                                                                                                  \
        V sum[ROWS][2], alpha = SPREAD(t->alpha), zero = SPREAD(0);                                                    \
        const double *a = t->a, *b = t->b;                                                                             \
        UNROLL for (int r = 0; r < ROWS; r++) sum[r][0] = sum[r][1] = zero;                                            \
        for (int64_t p = t->k; p > 0; p--, a += ROWS, b += 2 * WIDTH) {                                                \
            V b0 = LOAD(b), b1 = LOAD(b + WIDTH);                                                                      \
            UNROLL for (int r = 0; r < ROWS; r++)                                                                      \
            {                                                                                                          \
                V x = SPREAD(a[r]);                                                                                    \
                sum[r][0] = FMA(x, b0, sum[r][0]);                                                                     \
                sum[r][1] = FMA(x, b1, sum[r][1]);                                                                     \
            }                                                                                                          \
        }                                                                                                              \
        double edge[ROWS * 2 * WIDTH] = {0};                                                                           \
        const bool whole = t->rows == ROWS && t->columns == 2 * WIDTH, beta = t->beta;                                 \
        const int64_t ld = whole ? t->ldo : 2 * WIDTH;                                                                 \
        double *to = whole ? t->out : edge;                                                                            \
        for (int64_t r = 0; r < t->rows && !whole && beta; r++)                                                        \
            for (int64_t j = 0; j < t->columns; j++)                                                                   \
                edge[r * ld + j] = t->out[r * t->ldo + j];                                                             \
        UNROLL for (int r = 0; r < ROWS; r++, to += ld)                                                                \
        {                                                                                                              \
            STORE(to, FMA(alpha, sum[r][0], beta ? LOAD(to) : zero));                                                  \
            STORE(to + WIDTH, FMA(alpha, sum[r][1], beta ? LOAD(to + WIDTH) : zero));                                  \
        }                                                                                                              \
        for (int64_t r = 0; r < t->rows && !whole; r++)                                                                \
            for (int64_t j = 0; j < t->columns; j++)                                                                   \
                t->out[r * t->ldo + j] = edge[r * ld + j];                                                             \
    }
TILE(avx2, "avx2,fma", __m256d, 4, 6, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_fmadd_pd)
TILE(avx512, "avx512f,fma", __m512d, 8, 14, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_fmadd_pd)

typedef struct form {
    int64_t rows, columns; /* of a tile */
    void (*multiply)(const tile *t);
} form;

static const form forms[] = {[TN__SIMD_AVX2] = {6, 8, tile_avx2}, [TN__SIMD_AVX512] = {14, 16, tile_avx512}};

bool tn__matmul_double_suits(const tn__matmul_product *p)
{
    return tn__matmul_simd() != TN__SIMD_NONE && p->m >= THIN && p->n >= THIN &&
           (double)p->m * (double)p->n * (double)p->k >= LEAST;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t parts_of(int64_t whole, int64_t size) { return (whole + size - 1) / size; }
static int64_t part(int64_t whole, int64_t number, int64_t parts) { return whole * number / parts; }

/* Some rows of a, or columns of b, over a stretch of k, being packed; or a piece of the product of both. */
typedef struct job {
    const tn__matmul_product *p;
    const form *form;
    int64_t depth, k; /* the stretch */
    int64_t row, rows, column, columns;
    double *a, *b; /* packed: tile after tile */
} job;

/* to[p * width + r] = from[r * step + p * k_step] for `count` of width r, and zeros behind them. */
static inline __attribute__((always_inline)) void pack(const double *from, int64_t step, int64_t k_step, int64_t count,
                                                       int64_t width, int64_t k, double *to)
{
    for (int64_t p = 0; p < k; p++, from += k_step, to += width) {
        for (int64_t r = 0; r < count; r++)
            to[r] = from[r * step];
        for (int64_t r = count; r < width; r++)
            to[r] = 0;
    }
}

static void pack_tile(const double *from, int64_t step, int64_t k_step, int64_t count, int64_t width, int64_t k,
                      double *to)
{
    if (count == 6 && width == 6 && k_step == 1) /* known to the compiler */
        pack(from, step, 1, 6, 6, k, to);
    else if (count == 8 && width == 8 && step == 1)
        pack(from, 1, k_step, 8, 8, k, to);
    else if (count == 8 && width == 8 && k_step == 1)
        pack(from, step, 1, 8, 8, k, to);
    else if (count == 16 && width == 16 && step == 1)
        pack(from, 1, k_step, 16, 16, k, to);
    else
        pack(from, step, k_step, count, width, k, to);
}

static void pack_a(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const tn__matmul_matrix *a = &j->p->a;
    int64_t width = j->form->rows, step = a->transposed ? 1 : a->ld, k_step = a->transposed ? a->ld : 1;
    for (; begin < end; begin++)
        pack_tile((const double *)a->place + (j->row + begin * width) * step + j->depth * k_step, step, k_step,
                  least(width, j->rows - begin * width), width, j->k, j->a + begin * width * j->k);
}

static void pack_b(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    const tn__matmul_matrix *b = &j->p->b;
    int64_t width = j->form->columns, step = b->transposed ? b->ld : 1, k_step = b->transposed ? 1 : b->ld;
    for (; begin < end; begin++)
        pack_tile((const double *)b->place + (j->column + begin * width) * step + j->depth * k_step, step, k_step,
                  least(width, j->columns - begin * width), width, j->k, j->b + begin * width * j->k);
}

static int64_t groups_of(const job *j) { return parts_of(parts_of(j->rows, j->form->rows), GROUP / j->form->rows); }
static int64_t chunks_of(const job *j) { return parts_of(j->columns, CHUNK); }

/* Pieces: groups of tiles of rows times chunks of columns. */
static void multiply(void *context, int64_t begin, int64_t end)
{
    const job *j = context;
    int64_t height = j->form->rows, width = j->form->columns, tiles = parts_of(j->rows, height), chunks = chunks_of(j);
    tile t = {.k = j->k, .ldo = j->p->out.ld, .alpha = j->p->alpha.f64, .beta = j->p->beta || j->depth > 0};
    for (; begin < end; begin++) {
        int64_t group = begin / chunks, left = begin % chunks * CHUNK, stop = least(left + CHUNK, j->columns);
        int64_t first = part(tiles, group, groups_of(j)), last = part(tiles, group + 1, groups_of(j));
        for (int64_t column = left; column < stop; column += width)
            for (int64_t i = first; i < last; i++) {
                t.a = j->a + i * height * j->k;
                t.b = j->b + column * j->k;
                t.rows = least(height, j->rows - i * height);
                t.columns = least(width, j->columns - column);
                t.out = (double *)j->p->out.place + (j->row + i * height) * t.ldo + j->column + column;
                j->form->multiply(&t);
            }
    }
}

static int64_t deepest_of(const tn__matmul_product *p) { return parts_of(p->k, parts_of(p->k, DEEPEST)); }
static int64_t packed(int64_t extent, int64_t width) { return parts_of(least(extent, MOST), width) * width; }

size_t tn__matmul_double_bytes(const tn__matmul_product *p)
{
    const form *f = &forms[tn__matmul_simd()];
    return (size_t)(deepest_of(p) * (packed(p->m, f->rows) + packed(p->n, f->columns))) * sizeof(double);
}

bool tn__matmul_double(const tn__matmul_product *p)
{
    const form *f = &forms[tn__matmul_simd()];
    job j = {.p = p,
             .form = f,
             .b = (double *)p->workspace,
             .a = (double *)p->workspace + deepest_of(p) * packed(p->n, f->columns)};
    int64_t stretches = parts_of(p->k, DEEPEST);
    for (j.column = 0; j.column < p->n; j.column += MOST)
        for (int64_t i = 0; i < stretches; i++) {
            j.columns = least(p->n - j.column, MOST);
            j.depth = part(p->k, i, stretches);
            j.k = part(p->k, i + 1, stretches) - j.depth;
            tn__cpu_for(parts_of(j.columns, f->columns), PACKING * f->columns * j.k, pack_b, &j);
            for (j.row = 0; j.row < p->m; j.row += MOST) {
                j.rows = least(p->m - j.row, MOST);
                tn__cpu_for(parts_of(j.rows, f->rows), PACKING * f->rows * j.k, pack_a, &j);
                tn__cpu_for(groups_of(&j) * chunks_of(&j), least(j.rows, GROUP) * least(j.columns, CHUNK) * j.k / 4,
                            multiply, &j);
            }
        }
    return true;
}

#else

bool tn__matmul_double_suits(const tn__matmul_product *p)
{
    (void)p;
    return false;
}

bool tn__matmul_double(const tn__matmul_product *p)
{
    (void)p;
    return false;
}

size_t tn__matmul_double_bytes(const tn__matmul_product *p)
{
    (void)p;
    return 0;
}

#endif
