/* SPDX-License-Identifier: MIT */
/* Rows about matrix products: their times and, of the large ones, their errors against a product in float64. */
#include <math.h>

#include "measure.h"

/* Before each row: products heat the chip, and a hot one is slower. The peers rest as long. */
static const struct timespec rest = {.tv_sec = 1};

typedef struct product_row {
    const char *row;
    int64_t m, k, n;
    tn_dtype dtype;
    bool error; /* told in the row's note */
    tn_matmul_precision precision;
} product_row;

static const product_row cpu_rows[] = {
    {"matmul-mnist", 100, 784, 1000, TN_FLOAT32, false, TN_MATMUL_FLOAT32},
    {"matmul-1000", 1000, 1000, 1000, TN_FLOAT32, true, TN_MATMUL_FLOAT32},
    {"matmul-2000", 2000, 2000, 2000, TN_FLOAT32, false, TN_MATMUL_FLOAT32},
};
static const product_row gpu_rows[] = {
    {"matmul-mnist", 100, 784, 1000, TN_FLOAT32, false, TN_MATMUL_FLOAT32},
    {"matmul-1000", 1000, 1000, 1000, TN_FLOAT32, false, TN_MATMUL_FLOAT32},
    {"matmul-4096", 4096, 4096, 4096, TN_FLOAT32, true, TN_MATMUL_FLOAT32},
    {"matmul-10000", 10000, 10000, 10000, TN_FLOAT32, true, TN_MATMUL_FLOAT32},
    {"matmul-4096-tf32x3", 4096, 4096, 4096, TN_FLOAT32, true, TN_MATMUL_TF32X3},
    {"matmul-10000-tf32x3", 10000, 10000, 10000, TN_FLOAT32, true, TN_MATMUL_TF32X3},
    {"matmul-4096-tf32", 4096, 4096, 4096, TN_FLOAT32, true, TN_MATMUL_TF32},
    {"matmul-4096-bf16", 4096, 4096, 4096, TN_BFLOAT16, true, TN_MATMUL_FLOAT32},
};

typedef struct product {
    tn_array *a, *b;
} product;

static void multiply(void *context, bool last)
{
    product *p = context;
    TN_SCOPE {
        tn_array *c = tn_matmul(p->a, p->b);
        if (tn_eval(c) == TN_OK && last)
            settle(c);
    }
}

/* |c - r| / |r| in Frobenius' norm, r computed in float64 from the same operands. */
static double error_of(const product *p)
{
    double error = NAN;
    TN_SCOPE {
        tn_array *r = tn_matmul(tn_cast(p->a, TN_FLOAT64), tn_cast(p->b, TN_FLOAT64));
        tn_array *c = tn_matmul(p->a, p->b); /* evaluated alone: in one plan the two might share work */
        if (tn_eval(r) == TN_OK && tn_eval(c) == TN_OK)
            error = sqrt(tn_item(tn_sum(tn_square(tn_subtract(tn_cast(c, TN_FLOAT64), r)))) /
                         tn_item(tn_sum(tn_square(r))));
    }
    return error;
}

static void row_run(const bench *b, const product_row *row)
{
    if (!wanted(b, row->row))
        return;
    tn_set_matmul_precision(row->precision);
    TN_SCOPE {
        char work[96], note[64] = "";
        snprintf(work, sizeof work, "%lld x %lld x %lld %s", (long long)row->m, (long long)row->k, (long long)row->n,
                 tn_dtype_name(row->dtype));
        product p = {tn_cast(tn_random_normal(TN_SHAPE(row->m, row->k), .device = b->device), row->dtype),
                     tn_cast(tn_random_normal(TN_SHAPE(row->k, row->n), .device = b->device), row->dtype)};
        if (tn_eval(p.a) == TN_OK && tn_eval(p.b) == TN_OK && row->error)
            snprintf(note, sizeof note, "relative error %.1e", error_of(&p));
        settle(p.a);
        nanosleep(&rest, NULL);
        timing t = measure(b, multiply, &p, 5e-3);
        report(b, (row_facts){.row = row->row, .work = work, .note = note,
                              .operations = 2.0 * (double)row->m * (double)row->k * (double)row->n}, t);
    }
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    tn_seed(1);
    tn_set_compile(TN_COMPILE_ALWAYS);
    bool gpu = b.device.kind == TN_DEVICE_CUDA;
    const product_row *rows = gpu ? gpu_rows : cpu_rows;
    int count = gpu ? (int)(sizeof gpu_rows / sizeof *gpu_rows) : (int)(sizeof cpu_rows / sizeof *cpu_rows);
    for (int i = 0; i < count; i++)
        row_run(&b, &rows[i]);
    return 0;
}
