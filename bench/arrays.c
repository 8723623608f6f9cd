/* SPDX-License-Identifier: MIT */
/* Rows about single expressions, each evaluated at once: elementwise, reductions, random numbers. */
#include <pthread.h>

#include "measure.h"

enum { OPERANDS = 3 };

/* A row: its operands' shapes (up to a first dimension of 0), and the expression. Times are of evaluating the
 * expression into memory that the allocator already has. */
typedef struct array_row {
    const char *row, *work;
    tn_array *(*expression)(tn_array *const *x);
    double reads, writes; /* elements */
    tn_shape operand[OPERANDS];
} array_row;

static tn_array *f_gauss(tn_array *const *x) { return tn_exp(tn_multiply(tn_square(x[0]), -0.5)); }
static tn_array *f_negative(tn_array *const *x) { return tn_negative(x[0]); }
static tn_array *f_sum(tn_array *const *x) { return tn_sum(x[0]); }
static tn_array *f_softmax(tn_array *const *x) { return tn_softmax(x[0], -1); }
static tn_array *f_softmax_plain(tn_array *const *x)
{
    tn_array *e = tn_exp(tn_subtract(x[0], tn_max(x[0], .axis = TN_AXES(-1), .keepdims = true)));
    return tn_divide(e, tn_sum(e, .axis = TN_AXES(-1), .keepdims = true));
}
static tn_array *f_layer_norm(tn_array *const *x) { return tn_layer_norm_function(x[0], x[1], x[2], 1e-5); }
static tn_array *f_sum_0(tn_array *const *x) { return tn_sum(x[0], .axis = TN_AXES(0)); }
static tn_array *f_sum_1(tn_array *const *x) { return tn_sum(x[0], .axis = TN_AXES(1)); }
static tn_array *f_transpose(tn_array *const *x) { return tn_transpose(x[0], (tn_axes){0}); }
static tn_array *f_argmax(tn_array *const *x) { return tn_argmax(x[0]); }
static tn_array *f_sort(tn_array *const *x) { return tn_sort(x[0]); }
static tn_array *f_argsort(tn_array *const *x) { return tn_argsort(x[0]); }
static tn_array *f_cumsum(tn_array *const *x) { return tn_cumsum(x[0]); }
static tn_array *f_histogram(tn_array *const *x) { return tn_histogram(x[0], NULL, .bins = 100, .low = -6, .high = 6); }
static tn_array *f_unique(tn_array *const *x) { return tn_unique(tn_floor(tn_multiply(x[0], 100))); }
static tn_array *f_variance(tn_array *const *x) { return tn_var(x[0]); }
static tn_array *f_variance_0(tn_array *const *x) { return tn_var(x[0], .axis = TN_AXES(0)); }
static tn_array *f_batch_norm(tn_array *const *x)
{
    tn_array *mean = tn_mean(x[0], .axis = TN_AXES(0)), *variance = tn_var(x[0], .axis = TN_AXES(0));
    tn_array *normal = tn_multiply(tn_subtract(x[0], mean), tn_rsqrt(tn_add(variance, 1e-5)));
    return tn_add(tn_multiply(normal, x[1]), x[2]);
}
static tn_array *f_softmax_0(tn_array *const *x) { return tn_softmax(x[0], 0); }
static tn_array *f_cumsum_1(tn_array *const *x) { return tn_cumsum(x[0], .axis = TN_AXES(1)); }
static tn_array *f_largest(tn_array *const *x) { return tn_topk(x[0], 10, NULL); }
static tn_array *f_gelu(tn_array *const *x) { return tn_gelu(x[0]); }
static tn_array *f_loss(tn_array *const *x)
{
    return tn_softmax_cross_entropy(x[0], tn_cast(tn_multiply(tn_abs(x[1]), 1000), TN_INT64));
}
static tn_array *f_chain(tn_array *const *x)
{
    tn_array *y = x[0];
    for (int i = 0; i < 5; i++)
        y = tn_sqrt(tn_abs(tn_add(tn_multiply(y, x[1]), x[2])));
    return y;
}
static tn_array *f_add_into(tn_array *const *x)
{
    (void)!tn_assign(x[2], tn_add(x[0], x[1])); /* a failure is latched */
    return x[2];
}

#define VECTOR(n) {.ndim = 1, .dim = {n}}
#define MATRIX(n, m) {.ndim = 2, .dim = {n, m}}
#define SQUARES(name, n, expr, outputs, ...) \
    {name, #n " x " #n " float32", expr, (double)n * n, outputs, {MATRIX(n, n), __VA_ARGS__}}

/* The transposed copy is made by an operation on a transposed view: views themselves move nothing. */
static tn_array *f_transposed_negative(tn_array *const *x) { return tn_negative(f_transpose(x)); }

/* What sorts and counts moves more than once over; its floor is one reading and one writing. */
#define ORDER_ROWS(n, size) \
    {"sort", size " float32", f_sort, n, n, {VECTOR((int64_t)n)}}, \
    {"argsort", size " float32", f_argsort, n, 2 * n, {VECTOR((int64_t)n)}}, \
    {"cumsum", size " float32", f_cumsum, n, n, {VECTOR((int64_t)n)}}, \
    {"histogram", size " float32, 100 bins", f_histogram, n, 1, {VECTOR((int64_t)n)}}, \
    {"unique", size " float32, about 1000 different ones", f_unique, n, 1, {VECTOR((int64_t)n)}}

/* Sizes for a CPU, and for a GPU, whose memory is a hundred times as fast. */
static const array_row cpu_rows[] = {
    {"exp", "exp(-0.5 x^2), 2e7 float32", f_gauss, 2e7, 2e7, {VECTOR(20000000)}},
    {"negative", "-x, 2e7 float32", f_negative, 2e7, 2e7, {VECTOR(20000000)}},
    {"sum", "1e8 float32", f_sum, 1e8, 1, {VECTOR(100000000)}},
    SQUARES("softmax", 4096, f_softmax, 4096.0 * 4096, {0}),
    SQUARES("softmax-plain", 4096, f_softmax_plain, 4096.0 * 4096, {0}),
    SQUARES("layer-norm", 4096, f_layer_norm, 4096.0 * 4096, VECTOR(4096), VECTOR(4096)),
    SQUARES("sum-axis-0", 4096, f_sum_0, 4096, {0}),
    SQUARES("sum-axis-1", 4096, f_sum_1, 4096, {0}),
    SQUARES("transpose", 4096, f_transposed_negative, 4096.0 * 4096, {0}),
    ORDER_ROWS(1e7, "1e7"),
    {"add-1e5", "z = x + y into z, 1e5 float32, evaluated at once", f_add_into, 2e5, 1e5,
     {VECTOR(100000), VECTOR(100000), VECTOR(100000)}},
};

#define TALL "65536 x 256 float32"
static const array_row gpu_rows[] = {
    {"exp", "exp(-0.5 x^2), 1e8 float32", f_gauss, 1e8, 1e8, {VECTOR(100000000)}},
    {"negative", "-x, 1e8 float32", f_negative, 1e8, 1e8, {VECTOR(100000000)}},
    {"sum", "1e8 float32", f_sum, 1e8, 1, {VECTOR(100000000)}},
    SQUARES("softmax", 8192, f_softmax, 8192.0 * 8192, {0}),
    SQUARES("softmax-plain", 8192, f_softmax_plain, 8192.0 * 8192, {0}),
    SQUARES("layer-norm", 8192, f_layer_norm, 8192.0 * 8192, VECTOR(8192), VECTOR(8192)),
    SQUARES("sum-axis-0", 8192, f_sum_0, 8192, {0}),
    SQUARES("sum-axis-1", 8192, f_sum_1, 8192, {0}),
    SQUARES("transpose", 8192, f_transposed_negative, 8192.0 * 8192, {0}),
    {"softmax-1000", "65536 x 1000 float32", f_softmax, 65536e3, 65536e3, {MATRIX(65536, 1000)}},
    {"softmax-50257", "2048 x 50257 float32", f_softmax, 2048.0 * 50257, 2048.0 * 50257, {MATRIX(2048, 50257)}},
    {"sum-short", "8388608 x 10 float32, axis 1", f_sum_1, 83886080, 8388608, {MATRIX(8388608, 10)}},
    {"sum-long", "16 x 5000000 float32, axis 1", f_sum_1, 8e7, 16, {MATRIX(16, 5000000)}},
    {"sum-tall", "5000000 x 16 float32, axis 0", f_sum_0, 8e7, 16, {MATRIX(5000000, 16)}},
    {"argmax", "1e8 float32", f_argmax, 1e8, 1, {VECTOR(100000000)}},
    {"variance", "8192 x 8192 float32, of all", f_variance, 8192.0 * 8192, 1, {MATRIX(8192, 8192)}},
    {"variance-axis-0", TALL, f_variance_0, 65536 * 256, 256, {MATRIX(65536, 256)}},
    {"batch-norm", TALL, f_batch_norm, 65536 * 256, 65536 * 256, {MATRIX(65536, 256), VECTOR(256), VECTOR(256)}},
    {"softmax-axis-0", TALL, f_softmax_0, 65536 * 256, 65536 * 256, {MATRIX(65536, 256)}},
    {"cumsum-rows", TALL, f_cumsum_1, 65536 * 256, 65536 * 256, {MATRIX(65536, 256)}},
    {"sort-rows", TALL, f_sort, 65536 * 256, 65536 * 256, {MATRIX(65536, 256)}},
    {"largest-10", "65536 x 1000 float32, each row's 10 largest", f_largest, 65536e3, 655360, {MATRIX(65536, 1000)}},
    ORDER_ROWS(1e8, "1e8"),
    {"chain-20", "20 operations over 8192 x 8192, a row and a column, float32", f_chain, 8192.0 * 8192, 8192.0 * 8192,
     {MATRIX(8192, 8192), VECTOR(8192), MATRIX(8192, 1)}},
    {"add-1e5", "z = x + y into z, 1e5 float32, evaluated at once", f_add_into, 2e5, 1e5,
     {VECTOR(100000), VECTOR(100000), VECTOR(100000)}},
};

#define NARROW(name, expr, outputs, ...) \
    {name, "8192 x 8192 bfloat16", expr, 8192.0 * 8192, outputs, {MATRIX(8192, 8192), __VA_ARGS__}}
static const array_row gpu_bfloat16_rows[] = {
    NARROW("softmax-bf16", f_softmax, 8192.0 * 8192, {0}),
    NARROW("softmax-axis-0-bf16", f_softmax_0, 8192.0 * 8192, {0}),
    NARROW("layer-norm-bf16", f_layer_norm, 8192.0 * 8192, VECTOR(8192), VECTOR(8192)),
    NARROW("sum-axis-0-bf16", f_sum_0, 8192, {0}),
    NARROW("sum-axis-1-bf16", f_sum_1, 8192, {0}),
    NARROW("gelu-bf16", f_gelu, 8192.0 * 8192, {0}),
    {"loss-bf16", "softmax cross-entropy, 4096 x 50257 bfloat16", f_loss, 4096.0 * 50257, 1,
     {MATRIX(4096, 50257), VECTOR(4096)}},
};

typedef struct expression_work {
    const array_row *row;
    tn_array *operand[OPERANDS];
} expression_work;

static void evaluate(void *context, bool last)
{
    expression_work *w = context;
    TN_SCOPE {
        tn_array *y = w->row->expression(w->operand);
        if (tn_eval(y) == TN_OK && last)
            settle(y);
    }
}

static void array_row_run(const bench *b, const array_row *row, tn_dtype dtype)
{
    if (!wanted(b, row->row))
        return;
    TN_SCOPE {
        expression_work w = {.row = row};
        for (int i = 0; i < OPERANDS && row->operand[i].ndim; i++) {
            w.operand[i] = tn_cast(tn_random_normal(row->operand[i], .device = b->device), dtype);
            if (tn_eval(w.operand[i]) != TN_OK)
                break;
        }
        timing t = measure(b, evaluate, &w, 5e-3);
        double bytes = (double)tn_dtype_size(dtype) * (row->reads + row->writes);
        report(b, (row_facts){.row = row->row, .work = row->work, .bytes = bytes}, t);
    }
}

/* ---- random numbers ---- */

static void normals(void *context, bool last)
{
    TN_SCOPE {
        tn_array *y = tn_random_normal(*(const tn_shape *)context);
        if (tn_eval(y) == TN_OK && last)
            settle(y);
    }
}

static void normals_run(const bench *b)
{
    if (!wanted(b, "normals"))
        return;
    bool gpu = b->device.kind == TN_DEVICE_CUDA;
    tn_shape shape = VECTOR(gpu ? 100000000 : 10000000);
    timing t = measure(b, normals, &shape, 5e-3);
    report(b, (row_facts){.row = "normals", .work = gpu ? "1e8 normal float32" : "1e7 normal float32",
                          .bytes = 4.0 * (double)shape.dim[0]}, t);
}

/* ---- the copy that byte floors are computed from ---- */

/* On a CPU: memcpy by one thread a core, each its own part, into memory that has been touched. */
enum { COPY_BYTES = 80000000, MOST_THREADS = 64 };

typedef struct copy_work {
    char *from, *to;
    int threads;
} copy_work;

typedef struct copy_part {
    pthread_t thread;
    char *from, *to;
    size_t bytes;
} copy_part;

static void *copy_a_part(void *part)
{
    copy_part *p = part;
    memcpy(p->to, p->from, p->bytes);
    return NULL;
}

static void copy(void *context, bool last)
{
    (void)last;
    copy_work *w = context;
    copy_part part[MOST_THREADS];
    for (int i = 0; i < w->threads; i++) {
        size_t begin = (size_t)COPY_BYTES / 64 * (size_t)i / (size_t)w->threads * 64;
        size_t end = (size_t)COPY_BYTES / 64 * (size_t)(i + 1) / (size_t)w->threads * 64;
        part[i] = (copy_part){.from = w->from + begin, .to = w->to + begin, .bytes = end - begin};
        if (i && pthread_create(&part[i].thread, NULL, copy_a_part, &part[i]) != 0) {
            copy_a_part(&part[i]);
            part[i].bytes = 0;
        }
    }
    copy_a_part(&part[0]);
    for (int i = 1; i < w->threads; i++)
        if (part[i].bytes)
            pthread_join(part[i].thread, NULL);
}

/* Elsewhere -x stands for a copy: the plainest pass there is. */
static void copy_run(const bench *b)
{
    if (b->device.kind != TN_DEVICE_CPU || !wanted(b, "copy"))
        return;
    copy_work w = {.from = aligned_alloc(4096, COPY_BYTES),
                   .to = aligned_alloc(4096, COPY_BYTES),
                   .threads = tn_threads()};
    if (w.threads > MOST_THREADS)
        w.threads = MOST_THREADS;
    if (w.from && w.to) {
        memset(w.from, 1, COPY_BYTES);
        memset(w.to, 2, COPY_BYTES);
        timing t = measure(b, copy, &w, 5e-3);
        report(b,
               (row_facts){.row = "copy", .work = "memcpy of 2e7 float32, a thread a core", .bytes = 2.0 * COPY_BYTES},
               t);
    }
    free(w.from);
    free(w.to);
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    tn_seed(1);
    tn_set_compile(TN_COMPILE_ALWAYS);
    copy_run(&b);
    if (b.device.kind == TN_DEVICE_CUDA) {
        for (size_t i = 0; i < sizeof gpu_rows / sizeof *gpu_rows; i++)
            array_row_run(&b, &gpu_rows[i], TN_FLOAT32);
        for (size_t i = 0; i < sizeof gpu_bfloat16_rows / sizeof *gpu_bfloat16_rows; i++)
            array_row_run(&b, &gpu_bfloat16_rows[i], TN_BFLOAT16);
    } else {
        for (size_t i = 0; i < sizeof cpu_rows / sizeof *cpu_rows; i++)
            array_row_run(&b, &cpu_rows[i], TN_FLOAT32);
    }
    normals_run(&b);
    return 0;
}
