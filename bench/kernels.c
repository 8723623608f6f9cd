/* SPDX-License-Identifier: MIT */
/* Rows about kernels of one's own: their speed beside that of the library's own operations, and what a call costs. */
#include "measure.h"

TN_UFUNC(float, add_ufunc, (float x, float y), { return x + y; })

static tn_kernel *copy, *add, *bell, *norm, *ufunc, *raw;

static const char cuda_source[] = "extern \"C\" __global__ void twice(float *y, const float *x, int n)\n"
                                  "{\n"
                                  "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                  "    if (i < n) y[i] = 2 * x[i];\n"
                                  "}\n";
static const char c_source[] = "void twice(float *y, const float *x, int n)\n"
                               "{\n"
                               "    for (int i = 0; i < n; i++) y[i] = 2 * x[i];\n"
                               "}\n";

static void make_kernels(bool gpu)
{
    copy = tn_elementwise("T x", "T z", "z = x", "copy");
    add = tn_elementwise("T x, T y", "T z", "z = x + y", "add");
    bell = tn_elementwise("T x", "T z", "z = exp((T)-0.5 * x * x)", "bell");
    norm = tn_reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm");
    ufunc = tn_vectorize(add_ufunc);
    raw = tn_raw_kernel(gpu ? cuda_source : c_source, "twice");
}

typedef struct operands {
    tn_array *x, *y, *out;
} operands;

static tn_array *own_copy(const operands *o) { return tn_call(copy, TN_ARGS(o->x)); }
static tn_array *own_add(const operands *o) { return tn_call(add, TN_ARGS(o->x, o->y)); }
static tn_array *own_bell(const operands *o) { return tn_call(bell, TN_ARGS(o->x)); }
static tn_array *own_norm(const operands *o) { return tn_call(norm, TN_ARGS(o->x)); }
static tn_array *own_add_out(const operands *o) { return tn_call(add, TN_ARGS(o->x, o->y), .out = o->out); }
static tn_array *own_ufunc_out(const operands *o) { return tn_call(ufunc, TN_ARGS(o->x, o->y), .out = o->out); }
static tn_array *own_launch(const operands *o)
{
    int n = (int)tn_size(o->x);
    (void)!tn_launch(raw, TN_ARGS(TN_WRITES(o->out), o->x, n), .grid = {(n + 255) / 256}, .block = {256});
    return o->out;
}
static tn_array *library_copy(const operands *o) { return tn_negative(o->x); }
static tn_array *library_add(const operands *o) { return tn_add(o->x, o->y); }
static tn_array *library_bell(const operands *o) { return tn_exp(tn_multiply(tn_square(o->x), -0.5)); }
static tn_array *library_norm(const operands *o) { return tn_sqrt(tn_sum(tn_square(o->x))); }
static tn_array *library_add_out(const operands *o) { return tn_write(o->out, tn_add(o->x, o->y), NULL); }

/* `moved`: how often the array's bytes are read or written. */
static const struct row {
    const char *row, *work;
    tn_array *(*run)(const operands *o);
    bool small;
    double moved;
} rows[] = {
    {"own-copy", "z = x", own_copy, false, 2},
    {"library-copy", "-x", library_copy, false, 2},
    {"own-add", "z = x + y", own_add, false, 3},
    {"library-add", "x + y", library_add, false, 3},
    {"own-bell", "z = exp(-0.5 x^2)", own_bell, false, 2},
    {"library-bell", "exp(-0.5 x^2)", library_bell, false, 2},
    {"own-norm", "reduction x x, a + b, sqrt", own_norm, false, 1},
    {"library-norm", "sqrt(sum(x^2))", library_norm, false, 1},
    {"own-call-1e5", "z = x + y into an array that is there", own_add_out, true, 3},
    {"own-ufunc-1e5", "a C function into an array that is there", own_ufunc_out, true, 3},
    {"library-call-1e5", "x + y into an array that is there", library_add_out, true, 3},
    {"own-launch-1e5", "a raw kernel", own_launch, true, 2},
};

typedef struct context {
    const struct row *row;
    operands o;
} context;

static void run(void *user, bool last)
{
    context *c = user;
    TN_SCOPE {
        tn_array *y = c->row->run(&c->o);
        (void)!tn_eval(y); /* a failure is latched */
        if (last)
            settle(y);
    }
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    bool gpu = b.device.kind == TN_DEVICE_CUDA;
    make_kernels(gpu);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!wanted(&b, rows[i].row))
            continue;
        TN_SCOPE {
            int64_t n = rows[i].small ? 100000 : gpu ? 200000000 : 20000000;
            tn_array *x = tn_random_normal(TN_SHAPE(n)), *y = tn_random_normal(TN_SHAPE(n));
            context c = {&rows[i], {x, y, tn_random_normal(TN_SHAPE(rows[i].small ? n : 1))}};
            if (tn_eval(x) == TN_OK && tn_eval(y) == TN_OK) {
                timing t = measure(&b, run, &c, 5e-3);
                report(&b,
                       (row_facts){.row = rows[i].row, .work = rows[i].work, .bytes = 4.0 * rows[i].moved * (double)n},
                       t);
            }
        }
    }
    return 0;
}
