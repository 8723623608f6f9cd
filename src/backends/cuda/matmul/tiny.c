/* SPDX-License-Identifier: MIT */
/* Products of very many tiny matrices by the kernel of tiny_products.cuh, which is bound by memory alone. */
#include <limits.h>

#include "backends/cuda/matmul/matmul.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "device/products.h"
#include "tn_embed.h"

#define ARCHITECTURE 80 /* the compute capability with asynchronous copies */
#define THREADS      128
#define SHARED_BYTES (47 << 10) /* most bytes of shared memory of a block; and about how many of them factors should
                                   take: */
#define GROUP_BYTES  (10 << 10)
#define WIDEST       8          /* most columns that a thread computes */

/* A kernel parameter, passed by value. */
typedef struct matrices {
    CUdeviceptr from;
    long long row, column;
    int dense;
} matrices;

typedef struct tiny {
    matrices of[TN__CUDA_FACTORS];
    int beta, dense;
    tn__cuda_factor alpha;
    unsigned long long guard;
} tiny;

typedef struct tiny_data {
    tn__cuda_walk batch;
    tiny tiny;
    int64_t blocks;
} tiny_data;

static tn_status start_tiny(const tn__cuda_step *step, const tn__cuda_run *run)
{
    const tiny_data *data = step->data;
    tiny t = data->tiny;
    for (int i = 0; i < TN__CUDA_FACTORS; i++)
        t.of[i].from = tn__cuda_address(run, &step->step->operand[i]);
    t.alpha = tn__cuda_alpha(step, run->scalars);
    t.beta = step->step->product.beta;
    t.guard = tn__cuda_guard(step, run);
    void *params[] = {(void *)&data->batch, &t};
    return tn__cuda_launch(run, step->function, data->blocks, THREADS, 0, params, "matmul");
}

/* ---- preparing ---- */

static bool by_columns(const matrices *x)
{
    long long row = x->row < 0 ? -x->row : x->row, column = x->column < 0 ? -x->column : x->column;
    return row < column;
}

/* Are the matrices of the batch one after another without gaps, each by rows, or by columns if `across`? */
static bool is_dense(const tn__cuda_walk *batch, int which, const matrices *x, long long rows, long long columns,
                     bool across)
{
    long long row = across ? 1 : columns, column = across ? rows : 1;
    return batch->ndim == 1 && batch->stride[which][0] == rows * columns && (rows == 1 || x->row == row) &&
           (columns == 1 || x->column == column);
}

/* How the kernel divides its work, as constants of its text, which is for tn__free. Groups are multiples of four
 * matrices, which are multiples of 16 bytes, and work for all threads, once or several times. */
static char *divide(tiny_data *data, const tn__cuda_product *p, const bool *across, tn_dtype dtype)
{
    const int m = (int)p->m, n = (int)p->n, k = (int)p->k, size = (int)tn__dtypes[dtype].size;
    const int tiles = (n + WIDEST - 1) / WIDEST, columns = (n + tiles - 1) / tiles, rows = m <= WIDEST ? 1 : 2;
    const int shares = tiles * ((m + rows - 1) / rows);
    const int fitting = GROUP_BYTES / ((m + n) * k * size);
    const int even = fitting * shares / THREADS * THREADS / shares / 4 * 4;
    const int least = (THREADS / shares * 4 / size + 3) / 4 * 4, wanted = even > least ? even : least;
    const int each = (m * k + k * n + m * n) * size + TN__CUDA_FACTORS * (int)sizeof(long long); /* in shared memory */
    const int most = SHARED_BYTES / each / 4 * 4, group = wanted < most ? wanted : most;
    const long long blocks = (data->batch.size + group - 1) / group;
    data->blocks = blocks < INT_MAX ? blocks : INT_MAX;
    char *constants = tn__format("constexpr int M = %d, N = %d, K = %d;\n"
                                 "constexpr int GROUP = %d, ROWS_EACH = %d, COLUMNS_EACH = %d;\n"
                                 "constexpr bool A_ACROSS = %d, B_ACROSS = %d;\n",
                                 m, n, k, group, rows, columns, across[TN__CUDA_A], across[TN__CUDA_B]);
    char *text = constants ? tn__cuda_text_products(dtype, constants, tn__embed_cuda_tiny_products) : NULL;
    tn__free(constants);
    return text;
}

static bool suits(const tn__cuda_step *step, const tn__cuda_device *device, const tn__cuda_product *p)
{
    tn_dtype dtype = step->step->operand[0].dtype;
    return (dtype == TN_FLOAT32 || dtype == TN_FLOAT64) && device->architecture >= ARCHITECTURE &&
           tn__product_is_tiny(p->batch.size, p->m, p->k, p->n);
}

bool tn__cuda_matmul_is_tiny(const tn__cuda_step *step, const tn__cuda_device *device)
{
    tn__cuda_product p;
    tn__cuda_product_of(step->step, &p);
    return suits(step, device, &p);
}

tn_status tn__cuda_prepare_matmul_tiny(tn__cuda_step *step, tn__cuda_device *device)
{
    tn__cuda_product p;
    tn__cuda_product_of(step->step, &p);
    if (!suits(step, device, &p))
        return TN_OK;
    const long long rows[] = {p.m, p.m, p.k}, columns[] = {p.n, p.k, p.n};
    tiny_data *data = tn__calloc(1, sizeof *data);
    if (data == NULL)
        return tn__fail_memory("matmul", sizeof *data);
    data->batch = p.batch;
    data->tiny.dense = true;
    bool across[TN__CUDA_FACTORS] = {false};
    for (int i = 0; i < TN__CUDA_FACTORS; i++) {
        matrices *x = &data->tiny.of[i];
        *x = (matrices){.row = p.step[i].row, .column = p.step[i].column};
        across[i] = i != TN__CUDA_OUT && by_columns(x);
        x->dense = is_dense(&p.batch, i, x, rows[i], columns[i], across[i]);
        data->tiny.dense = data->tiny.dense && x->dense;
    }
    step->data = data;
    step->start = start_tiny;
    return tn__cuda_own_kernel(step, device, divide(data, &p, across, step->step->operand[0].dtype), "tiny_products");
}
