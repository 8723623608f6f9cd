/* SPDX-License-Identifier: MIT */
/*
 * Large float32 products by tiles of packed operands (after Goto and van de Geijn, Anatomy of high-performance matrix
 * multiplication, 2008): a is packed once, in blocks of a tile's rows; b in panels of two vectors, each by the thread
 * that multiplies it, into memory that stays in that thread's second-level cache.
 *
 * Each element is one sum in the order of k over each stretch of DEEPEST; stretches are added up in the result. Neither
 * the number of threads nor the height and width of tiles changes a bit, so both may follow the extents and the
 * machine.
 */
#include "backends/cpu/matmul/matmul.h"

#include <stdatomic.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/pool.h"
#include "core/memory.h"

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define DEEPEST     1024     /* positions of k at a time: a panel of 32 columns is 128 KiB */
#define GROUP_BYTES (448 << 10) /* bytes of packed rows that a piece uses, which stay in the second-level cache */
#define ROWS_BYTES  (4 << 20)   /* bytes of packed rows at a time */
#define AHEAD       12       /* rows of b that are prefetched while one is packed */
#define LEAST       4096     /* least multiplications of a product that is packed where the alternative is plain
                                loops */
#define HIGHEST     16       /* one more than the rows of any tile */
#define LINE        16       /* elements of a cache line */
#define PACKING     4        /* cost of an element, which may lie in another core's cache */
#define PIECES      4        /* least pieces a thread */
#define TURN        8        /* rows of a transpose that are packed at a time */
#define SOONS       5        /* regions of memory that a tile prefetches */

typedef struct tn__packed_tile {
    const float *a, *b;
    float *panel, *out;
    int64_t k, ldb, ldo, columns;
    float alpha;
    bool beta;
    /* Regions to prefetch: one cache line in each step of k, for as many steps as the region has lines; k steps in
     * all. */
    struct {
        const char *place;
        int64_t step, count;
    } soon[SOONS];
} tn__packed_tile;

typedef void (*tn__packed_function)(const tn__packed_tile *t);

typedef struct tn__packed_isa {
    int width, tallest;
    tn__packed_function tile[HIGHEST][2][2]; /* indexed by rows, by whether it packs b, and by vectors - 1 */
    void (*pack_rows)(const float *from, int64_t ld, int64_t rows, int64_t k, float *to, int64_t step);
    void (*pack_columns)(const float *from, int64_t ld, int64_t rows, int64_t k, float *to, int64_t step);
} tn__packed_isa;

#define TALLEST 14
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "backends/cpu/base/isa_avx512.h"
#include "backends/cpu/matmul/packed_kernel.h"
#include "backends/cpu/base/isa_end.h"

#define TALLEST 6
#define EACH_HEIGHT(X) X(1) X(2) X(3) X(4) X(5) X(6)
#include "backends/cpu/base/isa_avx2.h"
#include "backends/cpu/matmul/packed_kernel.h"
#include "backends/cpu/base/isa_end.h"

/* ---- one stretch of k and of rows ---- */

typedef struct stretch {
    const tn__matmul_product *p;
    const tn__packed_isa *isa;
    int64_t row, rows;      /* first row of the result, and number of rows */
    int64_t depth, k;       /* first position of k, and their number */
    int64_t blocks, groups; /* number of blocks of rows (each a tile's height), and of groups of blocks (each a
                               piece's) */
    int64_t height;         /* rows of a block, or one less */
    int64_t panels, team;
    float *a;               /* packed: block after block */
    float *panel;           /* panels, one for each thread */
    int64_t panel_size;     /* elements of a panel */
    atomic_flag *taken;     /* set while a panel's memory is in use */
} stretch;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t parts_of(int64_t whole, int64_t size) { return (whole + size - 1) / size; }
static int64_t part(int64_t whole, int64_t number, int64_t parts) { return whole * number / parts; }
/* First row of a block; blocks differ by a row at most. */
static int64_t top_of(const stretch *s, int64_t block)
{
    return block * s->height + least(block, s->rows - s->blocks * s->height);
}

static const float *element(const tn__matmul_matrix *matrix, int64_t row, int64_t column)
{
    return (const float *)matrix->place + (matrix->transposed ? column * matrix->ld + row : row * matrix->ld + column);
}

/* `count` neighbouring rows of a, or columns of b, k elements of each; `apart`: those lie ld apart, not the rows. */
static void pack(const stretch *s, const float *from, int64_t ld, bool apart, int64_t count, int64_t k, float *to,
                 int64_t step)
{
    (apart ? s->isa->pack_columns : s->isa->pack_rows)(from, ld, count, k, to, step);
}

static int64_t columns_of(const stretch *s, int64_t panel)
{
    return least(s->p->n - panel * 2 * s->isa->width, 2 * s->isa->width);
}

static void pack_panel(const stretch *s, int64_t number, float *panel)
{
    int64_t width = s->isa->width, columns = columns_of(s, number), step = columns > width ? 2 * width : width;
    for (int64_t j = 0; j < columns; j += width)
        pack(s, element(&s->p->b, s->depth, number * 2 * width + j), s->p->b.ld, !s->p->b.transposed,
             least(columns - j, width), s->k, panel + j, step);
}

/* Blocks of rows of a. Of a transpose, some rows of all the blocks and then the next: as they lie one behind the
 * other. */
static void pack_part(void *context, int64_t begin, int64_t end)
{
    const stretch *s = context;
    int64_t turn = s->p->a.transposed ? TURN : s->k;
    for (int64_t depth = 0; depth < s->k; depth += turn)
        for (int64_t block = begin; block < end; block++) {
            int64_t top = top_of(s, block), rows = top_of(s, block + 1) - top;
            pack(s, element(&s->p->a, s->row + top, s->depth + depth), s->p->a.ld, s->p->a.transposed, rows,
                 least(turn, s->k - depth), s->a + top * s->k + depth * rows, rows);
        }
}

static void ask(tn__packed_tile *t, int number, const float *place, int64_t step, int64_t count, int64_t *left)
{
    count = count < *left ? count : *left;
    t->soon[number].place = (const char *)place;
    t->soon[number].step = step * (int64_t)sizeof(float);
    t->soon[number].count = count;
    *left -= count;
}

/* Sets up prefetching: of the tile's part of the result, and of the lines of the next panel in column `line`. */
static void ask_for(tn__packed_tile *t, int64_t rows, const float *next, int64_t line)
{
    int64_t left = t->k, last = t->columns - 1;
    ask(t, 0, t->out, t->ldo, rows, &left);
    ask(t, 1, t->out + (last < LINE ? last : LINE), t->ldo, rows, &left);
    ask(t, 2, t->out + last, t->ldo, last > LINE ? rows : 0, &left);
    ask(t, 3, next ? next + least(line * LINE, last) : NULL, t->ldb, next ? left : 0, &left);
    ask(t, 4, t->out, 0, left, &left);
}

/* Multiplies a group of blocks by a panel of columns, which is packed already (`packed`) or on the way. `next`: the
 * next panel, if known. */
static void multiply_panel(const stretch *s, int64_t group, int64_t number, float *panel, bool packed,
                           const float *next)
{
    const tn__matmul_product *p = s->p;
    int64_t columns = columns_of(s, number), left = number * 2 * s->isa->width;
    int vectors = columns > s->isa->width ? 2 : 1;
    tn__packed_tile tile = {.b = packed ? panel : element(&p->b, s->depth, left),
                            .panel = panel,
                            .k = s->k,
                            .ldb = p->b.ld,
                            .ldo = p->out.ld,
                            .columns = columns,
                            .alpha = p->alpha.f32,
                            .beta = p->beta || s->depth > 0};
    int64_t first = part(s->blocks, group, s->groups), end = part(s->blocks, group + 1, s->groups);
    for (int64_t b = first; b < end; b++) {
        int64_t top = top_of(s, b), rows = top_of(s, b + 1) - top, line = b - first - 1;
        tile.a = s->a + top * s->k;
        tile.out = (float *)p->out.place + (s->row + top) * p->out.ld + left;
        ask_for(&tile, rows, line >= 0 && line * LINE <= columns ? next : NULL, line);
        s->isa->tile[rows][!packed][vectors - 1](&tile);
        packed = true;
        tile.b = panel;
    }
}

static void panels_part(void *context, int64_t begin, int64_t end)
{
    const stretch *s = context;
    int64_t memory = 0, pieces = s->panels * s->groups;
    while (atomic_flag_test_and_set_explicit(&s->taken[memory], memory_order_acquire))
        memory = (memory + 1) % s->team; /* a worker of the job before, of a larger team, may be here too */
    float *panel = s->panel + memory * s->panel_size;
    for (; begin < end; begin++) {
        int64_t number = begin % s->panels, after = begin + s->team;
        bool packed = s->p->b.transposed;
        const float *next =
            packed || after >= pieces ? NULL : element(&s->p->b, s->depth, after % s->panels * 2 * s->isa->width);
        if (packed)
            pack_panel(s, number, panel);
        multiply_panel(s, begin / s->panels, number, panel, packed, next);
    }
    atomic_flag_clear_explicit(&s->taken[memory], memory_order_release);
}

/* ---- the product ---- */

static const tn__packed_isa *isa_here(void)
{
    tn__simd simd = tn__cpu_simd();
    return simd == TN__SIMD_AVX512 ? &packed_isa_avx512 : simd == TN__SIMD_AVX2 ? &packed_isa_avx2 : NULL;
}

/*
 * Against oneDNN's sgemm on one AVX-512 core (152 GFLOP/s at most), in GFLOP/s of these tiles and of the library:
 * 100x784x1000 131 / 113, its transpose's product 784x100x1000 131 / 116, 100x300x300 125 / 119, 1000x256x1000 119 /
 * 110, 100x1000x784 with b across 121 / 116; but where rows begin on cache lines 256x256x256 133 / 141, 512x512x512 124
 * / 138, 128x1024x1024 98 / 121. Few rows, few columns or a short k do not pay for packing: 32x784x1000 95 / 114,
 * 784x32x1000 97 / 100. On an AVX2 core (Zen 3) the library is behind there, too: 512x512x512 95 / 66, 1024x1024x1024
 * 86 / 46, 256x512x512 93 / 64.
 */
bool tn__matmul_packed_suits(const tn__matmul_product *p)
{
    const tn__packed_isa *isa = isa_here();
    bool on_lines = isa == &packed_isa_avx512 && p->out.ld % LINE == 0 && p->b.ld % LINE == 0;
    bool skinny = p->a.transposed && p->n >= 8 && p->n <= 64 && p->m >= 256 && p->k >= 32;
    return isa != NULL && (skinny || (p->m >= 48 && p->n >= 64 && p->k >= 48 && !on_lines));
}

bool tn__matmul_packed_can(const tn__matmul_product *p)
{
    return isa_here() != NULL && (double)p->m * (double)p->n * (double)p->k >= LEAST;
}

/* Blocks and groups of this stretch, then packing, then multiplying. */
static void multiply_stretch(stretch *s)
{
    s->blocks = parts_of(s->rows, s->isa->tallest);
    s->height = s->rows / s->blocks;
    int64_t least_groups = parts_of(s->rows * s->k * (int64_t)sizeof(float), GROUP_BYTES);
    int64_t pieces = s->team == 1 ? 1 : PIECES * s->team;
    s->groups = least(s->blocks, most(least_groups, parts_of(pieces, s->panels)));
    tn__cpu_for(s->blocks, PACKING * s->height * s->k, pack_part, s);
    tn__cpu_share((int)s->team, s->groups * s->panels, panels_part, s);
}

/*
 * One workspace of the process, which stays in the caches from product to product; who finds it in use, or too small,
 * takes the step's own, which no run touches otherwise.
 */
static struct {
    atomic_flag busy;
    char *memory;
    size_t bytes;
} common = {.busy = ATOMIC_FLAG_INIT};

void tn__matmul_packed_prepare(size_t bytes)
{
    if (atomic_flag_test_and_set_explicit(&common.busy, memory_order_acquire))
        return;
    char *memory = bytes > common.bytes ? tn__alloc_aligned(bytes) : NULL;
    if (memory) {
        tn__free(common.memory);
        common.memory = memory;
        common.bytes = bytes;
    }
    atomic_flag_clear_explicit(&common.busy, memory_order_release);
}

__attribute__((destructor)) static void free_common(void)
{
    tn__free(common.memory);
    common.memory = NULL;
    common.bytes = 0;
}

typedef struct cut {
    int64_t stretches, rounds; /* numbers of stretches of k, and of rounds of rows */
    int64_t deepest, highest;  /* the largest extent of each */
} cut;

static cut cut_of(const tn__matmul_product *p, const tn__packed_isa *isa)
{
    cut c = {.stretches = parts_of(p->k, DEEPEST)};
    c.deepest = parts_of(p->k, c.stretches);
    c.rounds = parts_of(p->m, most(ROWS_BYTES / (int64_t)sizeof(float) / c.deepest, isa->tallest));
    c.highest = parts_of(p->m, c.rounds);
    return c;
}

int tn__matmul_packed_team(const tn__matmul_product *p)
{
    int team = tn__cpu_team(p->m * p->n, p->k);
    return team <= TN__POOL_WORKERS ? team : TN__POOL_WORKERS;
}

size_t tn__matmul_packed_bytes(const tn__matmul_product *p)
{
    const tn__packed_isa *isa = isa_here();
    cut c = cut_of(p, isa);
    return (size_t)(p->team * 2 * isa->width + c.highest + HIGHEST) * (size_t)c.deepest * sizeof(float);
}

bool tn__matmul_packed(const tn__matmul_product *p)
{
    atomic_flag taken[TN__POOL_WORKERS];
    bool alone = !atomic_flag_test_and_set_explicit(&common.busy, memory_order_acquire);
    char *memory = alone && common.bytes >= tn__matmul_packed_bytes(p) ? common.memory : p->workspace;
    stretch s = {.p = p, .isa = isa_here(), .team = p->team, .panel = (float *)memory, .taken = taken};
    cut c = cut_of(p, s.isa);
    s.panels = parts_of(p->n, 2 * s.isa->width);
    s.panel_size = c.deepest * 2 * s.isa->width;
    s.a = s.panel + s.team * s.panel_size;
    for (int i = 0; i < s.team; i++)
        atomic_flag_clear_explicit(&taken[i], memory_order_relaxed);
    for (int64_t i = 0; i < c.stretches; i++)
        for (int64_t j = 0; j < c.rounds; j++) {
            s.depth = part(p->k, i, c.stretches);
            s.k = part(p->k, i + 1, c.stretches) - s.depth;
            s.row = part(p->m, j, c.rounds);
            s.rows = part(p->m, j + 1, c.rounds) - s.row;
            multiply_stretch(&s);
        }
    if (alone)
        atomic_flag_clear_explicit(&common.busy, memory_order_release);
    return true;
}

#else

bool tn__matmul_packed_suits(const tn__matmul_product *p)
{
    (void)p;
    return false;
}

bool tn__matmul_packed_can(const tn__matmul_product *p)
{
    (void)p;
    return false;
}

bool tn__matmul_packed(const tn__matmul_product *p)
{
    (void)p;
    return false;
}

int tn__matmul_packed_team(const tn__matmul_product *p)
{
    (void)p;
    return 1;
}

size_t tn__matmul_packed_bytes(const tn__matmul_product *p)
{
    (void)p;
    return 0;
}

void tn__matmul_packed_prepare(size_t bytes) { (void)bytes; }

#endif
