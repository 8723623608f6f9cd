/* SPDX-License-Identifier: MIT */
/*
 * Matrix products by a library: float32 by oneDNN's sgemm, else CBLAS's; float64 by CBLAS's dgemm; float16 and bfloat16
 * converted to float32. float32 products that tiles of our own multiply faster, or that no library does, go the same
 * way. An operand goes in where it lies if its strides are a row-major matrix's or a transpose's, else through scratch.
 *
 * oneDNN's sgemm and its matmul primitive run the same code; without a primitive to look up and arguments to set, sgemm
 * is the faster by 3-15 % on 100x784x1000, 784x100x1000 and 1024x1024x1024, and takes alpha, beta and leading
 * dimensions.
 */
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <tanso/device.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/matmul/matmul.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "tn_build_config.h"

#ifdef TN_HAVE_DNNL
#include <oneapi/dnnl/dnnl.h>
#endif
#ifdef TN_HAVE_CBLAS
#include <cblas.h>
#endif

/* ---- the libraries, row-major ---- */

#ifdef TN_HAVE_CBLAS
#define TRANSPOSE(x) ((x).transposed ? CblasTrans : CblasNoTrans)
static bool multiply_f64(const tn__matmul_product *p)
{
    cblas_dgemm(CblasRowMajor, TRANSPOSE(p->a), TRANSPOSE(p->b), (int)p->m, (int)p->n, (int)p->k, p->alpha.f64,
                (const double *)p->a.place, (int)p->a.ld, (const double *)p->b.place, (int)p->b.ld, p->beta,
                (double *)p->out.place, (int)p->out.ld);
    return true;
}
#else
#define multiply_f64 NULL
#endif

#if defined(TN_HAVE_DNNL)
/*
 * oneDNN multiplies blocks of the result, each in one thread. The cut depends on the extents alone, so that the number
 * of threads changes no bit. On 2 cores the threads share 100x784x1000 in 583 us so, and in 654 us by oneDNN's own cut;
 * its transpose's product, 784x100x1000, in 588 and 812 us, 100x1000x10 in 21 and 25 us.
 */
#define BLOCKS          4    /* most blocks in each direction */
#define LEAST_ROWS      24   /* least rows of a block */
#define LEAST_COLUMNS   128
#define MOST_ROWS       256
#define MOST_COLUMNS    1024
#define MULTIPLICATIONS 262144 /* of a block, about, or more: some 5 us */

typedef struct blocks {
    const tn__matmul_product *product;
    int64_t rows, columns; /* numbers of blocks */
    _Atomic bool failed;
} blocks;

static int64_t count_blocks(int64_t extent, int64_t least, int64_t most)
{
    int64_t size = extent / BLOCKS, count;
    size = size < least ? least : size > most ? most : size;
    count = extent / size;
    return count ? count : 1;
}

static int64_t at_most(int64_t count, int64_t bound) { return count < bound ? count : bound < 1 ? 1 : bound; }

static const float *part(const tn__matmul_matrix *matrix, int64_t row, int64_t column)
{
    return (const float *)matrix->place +
           (matrix->transposed ? column * matrix->ld + row : row * matrix->ld + column);
}

static void blocks_part(void *context, int64_t begin, int64_t end)
{
    blocks *b = context;
    const tn__matmul_product *p = b->product;
    for (; begin < end; begin++) {
        int64_t row = begin / b->columns, column = begin % b->columns;
        int64_t top = p->m * row / b->rows / 8 * 8, left = p->n * column / b->columns / 16 * 16;
        int64_t m = (row + 1 == b->rows ? p->m : p->m * (row + 1) / b->rows / 8 * 8) - top;
        int64_t n = (column + 1 == b->columns ? p->n : p->n * (column + 1) / b->columns / 16 * 16) - left;
        if (dnnl_sgemm(p->a.transposed ? 'T' : 'N', p->b.transposed ? 'T' : 'N', m, n, p->k, p->alpha.f32,
                       part(&p->a, top, 0), p->a.ld, part(&p->b, 0, left), p->b.ld, p->beta,
                       (float *)p->out.place + top * p->out.ld + left, p->out.ld) != dnnl_success)
            b->failed = true;
    }
}

static bool multiply_f32(const tn__matmul_product *p)
{
    blocks b = {.product = p};
    double most = (double)p->m * (double)p->n * (double)p->k / MULTIPLICATIONS + 1;
    int64_t bound = most < 1 << 30 ? (int64_t)most : 1 << 30;
    b.rows = at_most(count_blocks(p->m, LEAST_ROWS, MOST_ROWS), bound);
    b.columns = at_most(count_blocks(p->n, LEAST_COLUMNS, MOST_COLUMNS), bound / b.rows);
    tn__cpu_for(b.rows * b.columns, MULTIPLICATIONS / 2, blocks_part, &b);
    return !b.failed;
}
#elif defined(TN_HAVE_CBLAS)
static bool multiply_f32(const tn__matmul_product *p)
{
    cblas_sgemm(CblasRowMajor, TRANSPOSE(p->a), TRANSPOSE(p->b), (int)p->m, (int)p->n, (int)p->k, p->alpha.f32,
                (const float *)p->a.place, (int)p->a.ld, (const float *)p->b.place, (int)p->b.ld, p->beta,
                (float *)p->out.place, (int)p->out.ld);
    return true;
}
#else
#define multiply_f32 NULL
#endif

/* ---- what a step needs ---- */

/* A matrix of a step, as it is passed to the library. */
typedef struct form {
    bool scratch;        /* the matrix is copied to scratch, as its strides or dtype do not fit */
    bool transposed;
    int64_t ld;
    int64_t offset;      /* offset in scratch, in bytes */
    tn__cpu_space copy;  /* scratch (operand 0) and the matrix (operand 1) */
    tn__cpu_cast load, store;
} form;

typedef struct library {
    tn__matmul matmul;
    tn__matmul_function multiply;
    bool stretches;         /* k is long: multiplied in stretches */
    form form[TN__MATMUL_OPERANDS];
    bool swapped;           /* out is a transpose: its transpose is computed, of b' and a' */
    int team;               /* threads of packed tiles, */
    size_t workspace;       /* and their memory's offset in scratch */
    bool shared;            /* the batch's products are divided among threads */
    size_t scratch_bytes;
    char *scratch;          /* memory after this struct */
    atomic_flag busy;       /* scratch is in use: another thread allocates its own */
} library;

typedef struct library_run {
    const library *data;
    char *base[TN__CPU_OPERANDS];
    char *scratch;
    tn__matmul_factor alpha;
    _Atomic bool failed;
} library_run;

/* The product of these operands, or of their transposes if the output lies transposed. */
static tn__matmul_product product_of(const library *data, const tn__matmul_matrix *operand)
{
    const tn__matmul *mm = &data->matmul;
    tn__matmul_matrix a = operand[TN__MATMUL_A], b = operand[TN__MATMUL_B], out = operand[TN__MATMUL_OUT];
    if (!data->swapped)
        return (tn__matmul_product){.m = mm->m, .n = mm->n, .k = mm->k, .a = a, .b = b, .out = out, .beta = mm->beta};
    a.transposed = !a.transposed;
    b.transposed = !b.transposed;
    out.transposed = false;
    return (tn__matmul_product){.m = mm->n, .n = mm->m, .k = mm->k, .a = b, .b = a, .out = out, .beta = mm->beta};
}

/* Computes one product of the batch. */
static void multiply_one(library_run *run, char *const *place)
{
    const library *data = run->data;
    tn__matmul_matrix operand[TN__MATMUL_OPERANDS];
    for (int k = 0; k < TN__MATMUL_OPERANDS; k++) {
        const form *f = &data->form[k];
        operand[k] = (tn__matmul_matrix){f->scratch ? run->scratch + f->offset : place[k], f->ld, f->transposed};
        if (f->scratch && (k != TN__MATMUL_OUT || data->matmul.beta))
            tn__cpu_move(&f->copy, f->load, 0, (char *const[]){operand[k].place, place[k]});
    }
    tn__matmul_product p = product_of(data, operand);
    p.alpha = run->alpha;
    p.team = data->team;
    p.workspace = run->scratch + data->workspace;
    if (!(data->stretches ? tn__matmul_stretches(&p, data->multiply) : data->multiply(&p)))
        run->failed = true;
    const form *out = &data->form[TN__MATMUL_OUT];
    if (out->scratch) {
        tn__cpu_space back = out->copy;
        memcpy(back.stride[0], out->copy.stride[1], sizeof(back.stride[0]));
        memcpy(back.stride[1], out->copy.stride[0], sizeof(back.stride[0]));
        tn__cpu_move(&back, out->store, 0, (char *const[]){place[TN__MATMUL_OUT], p.out.place});
    }
}

static void batches_part(void *context, int64_t begin, int64_t end)
{
    library_run *run = context;
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &run->data->matmul.batch, run->base, begin);
    for (; begin < end; begin++) {
        multiply_one(run, at.p);
        tn__cpu_cursor_move(&at, 1);
    }
}

static tn_status library_run_step(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    library *data = step->data;
    library_run run = {.data = data, .alpha = tn__matmul_alpha(step, scalars)};
    bool own = data->scratch_bytes && atomic_flag_test_and_set_explicit(&data->busy, memory_order_acquire);
    run.scratch = own ? tn__alloc_aligned(data->scratch_bytes) : data->scratch;
    if (own && run.scratch == NULL)
        return tn__fail_memory("matmul", data->scratch_bytes);
    tn__cpu_addresses(step, TN__MATMUL_OPERANDS, buffers, run.base);

    const tn__matmul *mm = &data->matmul;
    int before = tn__cpu_library_threads(1);
    if (data->shared)
        tn__cpu_for(mm->batch.size, 2 * mm->m * mm->n * mm->k, batches_part, &run);
    else
        batches_part(&run, 0, mm->batch.size);
    if (before != 1)
        tn__cpu_library_threads(before);

    if (own)
        tn__free(run.scratch);
    else if (data->scratch_bytes)
        atomic_flag_clear_explicit(&data->busy, memory_order_release);
    return run.failed ? tn__fail(TN_ERR_INTERNAL, "matmul", "the matrix library refused a product") : TN_OK;
}

/* ---- preparation ---- */

/* Describes a matrix of `rows` by `columns` in place; false if it is neither row-major nor a transpose with a leading
 * dimension. */
static bool lies_well(form *form, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step)
{
    if ((column_step == 1 || columns == 1) && (row_step >= columns || rows == 1)) {
        form->transposed = false;
        form->ld = rows == 1 ? columns : row_step;
        return true;
    }
    if ((row_step == 1 || rows == 1) && (column_step >= rows || columns == 1)) {
        form->transposed = true;
        form->ld = columns == 1 ? rows : column_step;
        return true;
    }
    return false;
}

static void describe_form(const tn__step *step, tn__matmul *mm, int k, form *form, size_t *scratch_bytes)
{
    const tn__operand *operand = &step->operand[k];
    int64_t size = tn__dtypes[mm->work].size, item = tn__dtypes[operand->dtype].size;
    int64_t rows = operand->dim[operand->ndim - 2], columns = operand->dim[operand->ndim - 1];
    int64_t row_step = mm->step[k].row / item, column_step = mm->step[k].column / item;
    if (operand->dtype == mm->work && lies_well(form, rows, columns, row_step, column_step))
        return;
    form->scratch = true;
    form->transposed = false;
    form->ld = columns;
    form->offset = (int64_t)*scratch_bytes;
    form->load = tn__cpu_cast_of(mm->work, operand->dtype);
    form->store = tn__cpu_cast_of(operand->dtype, mm->work);
    *scratch_bytes += ((size_t)(rows * columns * size) + 63) / 64 * 64;
    tn__cpu_space_make(&form->copy, 3, 2, (int64_t[]){rows, columns}, 2,
                       (const int64_t *const[]){(int64_t[]){columns, 1}, (int64_t[]){row_step, column_step}},
                       (int64_t[]){size, item});
}

/* Dimensions that CBLAS's int can hold. */
static bool fits(const library *data)
{
    int64_t largest = data->matmul.m > data->matmul.n ? data->matmul.m : data->matmul.n;
    largest = largest > data->matmul.k ? largest : data->matmul.k;
    for (int k = 0; k < TN__MATMUL_OPERANDS; k++)
        largest = largest > data->form[k].ld ? largest : data->form[k].ld;
    return largest <= INT_MAX;
}

/* Batches smaller than this many operations each are shared out whole; a larger one is spread over threads itself. */
#define SMALL_BATCH (1 << 22)

tn_status tn__matmul_prepare_library(tn__cpu_step *step)
{
    library plan;
    memset(&plan, 0, sizeof(plan));
    tn__matmul *mm = &plan.matmul;
    tn__matmul_describe(step, mm);
    plan.multiply = mm->work == TN_FLOAT32 ? multiply_f32 : mm->work == TN_FLOAT64 ? multiply_f64 : NULL;
    if (mm->m == 0 || mm->n == 0 || mm->k == 0)
        return tn__matmul_prepare_plain(step);
    tn__matmul_matrix operand[TN__MATMUL_OPERANDS];
    for (int k = 0; k < TN__MATMUL_OPERANDS; k++) {
        describe_form(step->step, mm, k, &plan.form[k], &plan.scratch_bytes);
        operand[k] = (tn__matmul_matrix){NULL, plan.form[k].ld, plan.form[k].transposed};
    }
    plan.swapped = plan.form[TN__MATMUL_OUT].transposed;
    tn__matmul_product p = product_of(&plan, operand);
    bool small_batches = mm->work == TN_FLOAT32 && plan.scratch_bytes == 0 && mm->batch.size > 1 &&
                         (double)mm->m * (double)mm->n * (double)mm->k * 2 < SMALL_BATCH;
    bool one = mm->m == 1 && mm->n == 1 && mm->work == TN_FLOAT32; /* which makes stretches of its own */
    plan.stretches = mm->work == TN_FLOAT32 && !one && tn__matmul_stretches_suit(&p);
    if (plan.stretches)
        p.k = TN__MATMUL_STRETCH; /* what suits one */
    bool few = plan.stretches && mm->m * mm->n <= 4; /* for which a library's preparation is a part that counts */
    if (one || ((mm->work == TN_FLOAT64 || few) && tn__matmul_dot_suits(&p)))
        plan.multiply = mm->work == TN_FLOAT32 ? tn__matmul_dot_f32 : tn__matmul_dot_f64;
    else if (mm->k == 1 && (mm->work == TN_FLOAT32 || mm->work == TN_FLOAT64))
        plan.multiply = mm->work == TN_FLOAT32 ? tn__matmul_outer_f32 : tn__matmul_outer_f64;
    else if (plan.stretches && tn__matmul_tile_suits_stretch(&p))
        plan.multiply = tn__matmul_tile;
    else if (mm->work == TN_FLOAT32 && tn__matmul_tile_suits(&p) && !tn__matmul_packed_suits(&p))
        plan.multiply = tn__matmul_tile;
    else if (mm->work == TN_FLOAT32 && (plan.multiply == NULL ? tn__matmul_packed_can(&p)
                                                              : tn__matmul_packed_suits(&p) && !small_batches)) {
        plan.multiply = tn__matmul_packed;
        plan.team = p.team = tn__matmul_packed_team(&p);
        plan.workspace = plan.scratch_bytes;
        size_t bytes = plan.stretches ? tn__matmul_stretches_bytes(&p, mm->k) : tn__matmul_packed_bytes(&p);
        plan.scratch_bytes += (bytes + 63) / 64 * 64;
        tn__matmul_packed_prepare(bytes);
    }
    if (plan.multiply == NULL || !fits(&plan))
        return tn__matmul_prepare_plain(step);
    plan.shared = small_batches && plan.multiply != tn__matmul_packed;

    size_t head = (sizeof(plan) + 63) / 64 * 64;
    library *data = tn__alloc_aligned(head + plan.scratch_bytes);
    if (data == NULL)
        return tn__fail_memory("matmul", head + plan.scratch_bytes);
    plan.scratch = (char *)data + head;
    memcpy(data, &plan, sizeof(plan));
    atomic_flag_clear(&data->busy);
    step->data = data;
    step->run = library_run_step;
    return TN_OK;
}
