/* SPDX-License-Identifier: MIT */
/*
 * Kernels that the library emits for a GPU are compiled by NVRTC for three generations, as the library compiles them,
 * which needs no GPU: cases of every operation, random graphs, training steps. They are evaluated on a driver whose
 * kernels do nothing; the texts are collected and then compiled. Machine code takes 40 ms and more a kernel, so each
 * run takes another share of the cases and of what has the longest code, and another generation for each text;
 * TANSO_TEST_EVERY=1 takes all. That every text compiles, of these and of other tests, is shown by tests/kernel_texts,
 * which runs this program on a driver of its own: there it compiles nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso.h>

#include "conformance/cases.h"
#include "core/memory.h"
#include "cuda/fake.h"
#include "engine/random_graph.h"
#include "support/device.h"
#include "support/random.h"

#define MOST 4096
#define TOGETHER 40 /* cases in a plan: a compilation costs more than its kernels */
#define EVERY 80    /* of the cases */
#define GRAPHS 4
#define COMPLEX 6   /* one in so many of the functions of complex numbers: together they take minutes */
#define DRAWS 4     /* one in so many of the distributions */

static const int generations[] = {80, 90, 100};
static tn__cuda_libraries compiler;
static char *texts[MOST];
static int count;
static test_random chance;
static uint64_t seed;

static int share(void)
{
    const char *wanted = getenv("TANSO_TEST_EVERY");
    return wanted && atoi(wanted) > 0 ? atoi(wanted) : EVERY;
}

/* Keeps one in `every` of the roots, others in each run. */
static int keep_share(int n, const tn_array **roots, int every)
{
    int kept = 0;
    every = share() == 1 ? 1 : every;
    for (int i = 0; i < n; i++)
        if (((uint64_t)i + seed) % (unsigned)every == 0)
            roots[kept++] = roots[i];
    return kept;
}

static void collect(const char *text)
{
    for (int i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0)
            return;
    assert_true(count < MOST);
    texts[count++] = strdup(text);
}

static bool needs_clusters(const char *text) { return strstr(text, "__cluster_dims__"); }

/* Evaluation of what cannot fail but for want of memory; values are whatever they are. */
static void emit(int roots, const tn_array **x)
{
    if (tn_eval_all(roots, x) != TN_OK && tn_error_code() != TN_ERR_INDEX)
        fail_msg("%s", tn_error());
    tn_clear_error();
    (void)!tn_synchronize(tn_cuda(0));
    tn_clear_error();
}

static void test_operations(void **state)
{
    (void)state;
    case_file file = {0};
    char path[4096];
    const char *folder = getenv("TANSO_TEST_DATA");
    snprintf(path, sizeof path, "%s/conformance.bin", folder ? folder : ".");
    if (!cases_read(path, &file))
        skip();
    int every = share(), before = count;
    const tn_array *roots[TOGETHER];
    for (int i = (int)(file.seed % (unsigned)every); i < file.count;)
        TN_SCOPE {
            int n = 0;
            for (; i < file.count && n < TOGETHER; i += every) {
                tn_array *x = file.cases[i].mode == REFUSED ? NULL : case_array(&file.cases[i]);
                tn_clear_error();
                if (x && !tn_is_error(x))
                    roots[n++] = x;
            }
            emit(n, roots);
        }
    cases_free(&file);
    assert_true(count > before);
}

static void test_graphs(void **state)
{
    (void)state;
    int before = count;
    for (int g = 0; g < (share() == 1 ? 20 * GRAPHS : GRAPHS); g++)
        TN_SCOPE {
            random_graph graph;
            const tn_array *roots[GRAPH_MAX];
            int n = 0;
            random_graph_build(&graph, test_random_bits(&chance));
            for (int k = 0; k < graph.count; k++)
                if (graph.x[k])
                    roots[n++] = graph.x[k];
            emit(n, roots);
            random_graph_free(&graph);
        }
    assert_true(count > before);
}

/* Complex numbers of both precisions: C++ has classes for them where C has its own. */
static void test_complex(void **state)
{
    (void)state;
    static tn_array *(*const functions[])(const tn_array *) = {
        (tn_negative), (tn_abs),      (tn_sign),      (tn_square),  (tn_reciprocal), (tn_exp),    (tn_exp2),
        (tn_expm1),    (tn_log),      (tn_log2),      (tn_log10),   (tn_log1p),      (tn_sqrt),   (tn_rsqrt),
        (tn_sin),      (tn_cos),      (tn_tan),       (tn_arcsin),  (tn_arccos),     (tn_arctan), (tn_sinh),
        (tn_cosh),     (tn_tanh),     (tn_arcsinh),   (tn_arccosh), (tn_arctanh),    (tn_rint),   (tn_isnan),
        (tn_isinf),    (tn_isfinite), (tn_conjugate), (tn_real),    (tn_imag),       (tn_angle),  (tn_logical_not)};
    static tn_array *(*const pairs[])(const tn_array *, const tn_array *) = {
        (tn_add),  (tn_subtract), (tn_multiply), (tn_divide), (tn_power),         (tn_maximum), (tn_minimum),
        (tn_fmax), (tn_fmin),     (tn_equal),    (tn_less),   (tn_greater_equal), (tn_matmul)};
    static tn_array *(*const reductions[])(const tn_array *, const tn_reduce_opts *) = {
        (tn_sum_with), (tn_prod_with), (tn_mean_with),   (tn_var_with),
        (tn_max_with), (tn_min_with),  (tn_argmax_with), (tn_any_with)};
    int before = count;
    for (int wide = 0; wide < 2; wide++)
        TN_SCOPE {
            tn_dtype part = wide ? TN_FLOAT64 : TN_FLOAT32;
            tn_array *a = tn_complex(tn_random_normal(TN_SHAPE(8, 8), .dtype = part),
                                     tn_random_normal(TN_SHAPE(8, 8), .dtype = part));
            tn_array *b = tn_multiply(tn_complex(tn_random_uniform(TN_SHAPE(8, 1), .dtype = part), 2),
                                      tn_weak_complex_parts(1, -1));
            const tn_array *roots[128];
            int n = 0;
            for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
                roots[n++] = functions[i](a);
            for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
                roots[n++] = pairs[i](a, b);
            for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
                for (int axis = 0; axis < 2; axis++)
                    roots[n++] = reductions[i](a, &(tn_reduce_opts){.axis = TN_AXES(axis)});
            for (int dtype = TN_BOOL; dtype < TN_DTYPE_COUNT; dtype++) {
                roots[n++] = tn_cast(a, (tn_dtype)dtype);
                roots[n++] = tn_cast(tn_cast(tn_random_uniform(TN_SHAPE(8, 8)), (tn_dtype)dtype),
                                     wide ? TN_COMPLEX128 : TN_COMPLEX64);
            }
            roots[n++] = tn_where(tn_greater(tn_abs(a), 1), a, 0);
            roots[n++] = tn_transpose(a, (tn_axes){0});
            for (int i = 0; i < n; i++)
                if (tn_is_error(roots[i]))
                    fail_msg("root %d: %s", i, tn_message_of(roots[i]));
            emit(keep_share(n, roots, COMPLEX), roots);
            /* sums of complex numbers made of a product's elements: of its columns, of its rows */
            tn_array *tall = tn_matmul(tn_random_normal(TN_SHAPE(100, 10), .dtype = part),
                                       tn_random_normal(TN_SHAPE(10, 64), .dtype = part));
            tn_array *thin = tn_matmul(tn_random_normal(TN_SHAPE(64, 100), .dtype = part),
                                       tn_random_normal(TN_SHAPE(100, 10), .dtype = part));
            const tn_array *sums[] = {tn_sum(tn_exp(tn_complex(tall, 1)), .axis = TN_AXES(0)),
                                      tn_sum(tn_exp(tn_complex(thin, 1)), .axis = TN_AXES(1))};
            emit(2, sums);
        }
    assert_true(count > before);
}

static void test_draws(void **state)
{
    (void)state;
    int before = count;
    TN_SCOPE {
        tn_shape shape = TN_SHAPE(100);
        const tn_array *roots[] = {tn_random_gamma(0.5, 1, shape),
                                   tn_random_beta(2, 3, shape),
                                   tn_random_poisson(20, shape),
                                   tn_random_binomial(50, 0.4, shape),
                                   tn_random_standard_t(3, shape),
                                   tn_random_wald(1, 2, shape),
                                   tn_random_laplace(0, 1, shape),
                                   tn_random_geometric(0.2, shape),
                                   tn_random_gamma(3, 1, shape, .dtype = TN_FLOAT16)};
        emit(keep_share((int)(sizeof roots / sizeof *roots), roots, DRAWS), roots);
    }
    assert_true(count > before);
}

/* Reductions over windows that are gathered where they are summed, and what lies between places. */
static void test_windows(void **state)
{
    (void)state;
    int before = count;
    static const tn_dtype dtypes[] = {TN_FLOAT64, TN_COMPLEX64};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
        TN_SCOPE {
            tn_array *x = tn_cast(tn_random_uniform(TN_SHAPE(3000)), dtypes[k]),
                     *y = tn_cast(tn_random_uniform(TN_SHAPE(70)), dtypes[k]);
            tn_array *windows = tn_sliding_window_view(tn_reshape(x, TN_SHAPE(50, 60)), TN_SHAPE(3, 3), (tn_axes){0});
            const tn_array *roots[] = {tn_convolve(x, y, "full"), tn_correlate(x, y, "valid"),
                                       tn_sum(windows, .axis = TN_AXES(-2, -1)),
                                       tn_interp(tn_random_uniform(TN_SHAPE(40)), tn_arange(0, 70, 1), y, NULL, NULL)};
            emit(4, roots);
        }
    assert_true(count > before);
}

/* Every form of loops (gpu/form.c), of what is read through several dtypes: short, middle and long rows,
 * columns, pieces, tiles, and positions beyond 32 bits, of one element that is repeated and so takes no memory. */
static void test_forms(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_INT8};
    static const int64_t shapes[][2] = {{100, 10}, {4, 50257}, {1, 300000}, {3000, 128}};
    int before = count;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        TN_SCOPE {
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                tn_array *x = tn_zeros(TN_SHAPE(shapes[i][0], shapes[i][1]), .dtype = dtypes[d]);
                emit(1, (const tn_array *[]){x});
                const tn_array *simple[] = {tn_negative(tn_transpose(x, (tn_axes){0})), tn_sum(x, .axis = TN_AXES(0)),
                                            tn_sum(x, .axis = TN_AXES(1)),
                                            tn_add(tn_random_normal(TN_SHAPE(shapes[i][0], shapes[i][1])), x)};
                const tn_array *others[] = {tn_argmax(x), tn_softmax(tn_cast(x, TN_BFLOAT16), 0),
                                            tn_softmax(tn_cast(x, TN_FLOAT32), 1), tn_var(tn_cast(x, TN_FLOAT64))};
                emit(4, simple);
                emit(4, others);
            }
            tn_array *huge = tn_broadcast_to(tn_zeros(TN_SHAPE(1, 1), .dtype = dtypes[d]), TN_SHAPE(70000, 70001));
            const tn_array *wide[] = {tn_sum(huge, .axis = TN_AXES(0)),
                                      tn_max(tn_multiply(huge, huge), .axis = TN_AXES(1))};
            emit(2, wide);
        }
    assert_true(count > before);
}

/* Rows that stay in the registers of a cluster's blocks, or of one block: in passes that wait for one another, of each
 * width. */
static void test_long_rows(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT16, TN_FLOAT64};
    static const int64_t columns[] = {16385, 20001, 40000, 50257};
    tn__device *device = tn__device_get(tn_cuda(0));
    int before = count, clusters = 0;
    for (int64_t i = 0; i < (share() == 1 ? 24 : 4); i++)
        TN_SCOPE {
            tn_dtype dtype = dtypes[(i + (int64_t)(seed >> 8)) % 3];
            int64_t m = columns[(i + (int64_t)(seed >> 16)) % 4];
            device->capabilities.clusters = i % 2 == 0;
            tn_array *x = tn_zeros(TN_SHAPE(270 + i, m), .dtype = dtype), *row = tn_zeros(TN_SHAPE(m), .dtype = dtype);
            emit(2, (const tn_array *[]){x, row});
            tn_array *e = tn_exp(tn_subtract(x, tn_max(x, .axis = TN_AXES(1), .keepdims = true)));
            const tn_array *roots[] = {tn_log_softmax(x, 1), tn_layer_norm_function(x, row, row, 1e-3),
                                       tn_softmax(tn_multiply(x, row), 1),
                                       tn_divide(e, tn_sum(e, .axis = TN_AXES(1), .keepdims = true))};
            emit(1, (const tn_array *[]){roots[(i + (int64_t)(seed >> 24)) % 4]});
        }
    device->capabilities.clusters = true;
    for (int i = before; i < count; i++)
        clusters += needs_clusters(texts[i]);
    assert_true(clusters > 0 && clusters < count - before);
}

/* Nests that share a launch: a block is of one of them, and the kernel's shared memory is what the largest asks for,
 * not the sum (of static shared memory there are 48 KiB, whatever a multiprocessor has). */
static void test_beside(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_INT16, TN_FLOAT64};
    static tn_array *(*const pairs[])(const tn_array *, const tn_array *) = {(tn_add), (tn_subtract), (tn_multiply),
                                                                             (tn_maximum), (tn_minimum)};
    int before = count;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        TN_SCOPE {
            const tn_array *x = tn_cast(tn_random_uniform(TN_SHAPE(290, 257)), dtypes[d]);
            const tn_array *y = tn_cast(tn_random_uniform(TN_SHAPE(257, 290)), dtypes[d]);
            const tn_array *roots[8];
            emit(2, (const tn_array *[]){x, y});
            for (int i = 0; i < 5; i++)
                roots[i] = pairs[i](tn_transpose(tn_slice_axis(x, 0, i, 290, 1), (tn_axes){0}),
                                    tn_slice_axis(y, 1, i, 290, 1));
            roots[5] = tn_sum(x, .axis = TN_AXES(0));
            roots[6] = tn_argmax(y, .axis = TN_AXES(0));
            roots[7] = tn_argmax(x, .axis = TN_AXES(1));
            emit(8, roots);
        }
    int joined = 0;
    for (int i = before; i < count; i++)
        joined += strstr(texts[i], "block -= ") && strstr(texts[i], "across, left = (item");
    assert_true(joined > 0);
}

static void test_training(void **state)
{
    (void)state;
    static const char *const nets[] = {"linear:30 relu linear:10", "linear:1000 sigmoid linear:10",
                                       "layer_norm dropout:0.2 linear:100 gelu linear:10"};
    static const char *const optimizers[] = {"sgd:lr=0.1", "momentum:lr=0.1", "nesterov:lr=0.1", "adam:clip_norm=1",
                                             "adamw:weight_decay=0.1"};
    int before = count;
    for (int i = 0; i < 5; i++) {
        tn_layer *net = tn_layer_parse(nets[i % 3]);
        tn_optimizer *optimizer = tn_optimizer_parse(optimizers[i], net);
        tn_loader *batches = tn_loader_new(tn_digits(TN_TRAIN), .batch = 32 + i, .shuffle = true, .device = tn_cuda(0));
        tn_meter *mean = tn_meter_new(tn_cuda(0));
        tn_batch b;
        for (int step = 0; step < 3 && tn_loader_next(batches, &b); step++)
            TN_SCOPE {
                tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, b.x), b.t);
                assert_int_equal(tn_backward(loss), TN_OK);
                assert_int_equal(tn_step(optimizer), TN_OK);
                tn_meter_add(mean, loss, (double)b.size);
            }
        tn_meter_take(mean);
        if (!tn_ok())
            fail_msg("%s", tn_error());
        tn_meter_free(mean);
        tn_loader_free(batches);
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
    assert_true(count > before);
}

/* A large matrix times a vector is a sum, along the rows or the columns as it lies; a small one is a product. */
static void test_vectors(void **state)
{
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        TN_SCOPE {
            const tn_array *m = tn_ones(TN_SHAPE(kind == 4 ? 47 : 2047, 1051), TN_FLOAT32),
                           *wide = tn_ones(TN_SHAPE(1051), TN_FLOAT32);
            const tn_array *tall = tn_ones(TN_SHAPE(2047), TN_FLOAT32);
            emit(3, (const tn_array *[]){m, wide, tall});
            int before = count;
            const tn_array *z = kind == 0   ? tn_matmul(tall, m)
                                : kind == 1 ? tn_matmul(m, tn_reshape(wide, TN_SHAPE(-1, 1)))
                                : kind == 2 ? tn_matmul(tn_square(m), wide)
                                : kind == 3 ? tn_matmul(tn_reshape(wide, TN_SHAPE(1, -1)),
                                                        tn_swapaxes(tn_square(m), 0, 1))
                                            : tn_matmul(m, wide);
            emit(1, &z);
            for (int i = before; i < count; i++)
                assert_int_equal(strstr(texts[i], "> main_loop;") != NULL, kind == 4);
        }
    }
}

static int compile_share(int first, int step)
{
    int bad = 0;
    for (int i = first; i < count * 3; i += step) {
        if (share() > 1 && (uint64_t)(i % 3) != ((uint64_t)(i / 3) + seed) % 3)
            continue;
        if (needs_clusters(texts[i / 3]) && generations[i % 3] < 90)
            continue;
        char *image = NULL;
        size_t length = 0;
        if (tn__cuda_compile(&compiler, generations[i % 3], texts[i / 3], &image, &length) != TN_OK && bad++ < 3) {
            print_error("TANSO_TEST_SEED=%llu, text %d, sm_%d: %s\n", (unsigned long long)seed, i / 3,
                        generations[i % 3], tn_error());
            tn_clear_error();
        }
        tn__free(image);
    }
    return bad;
}

/* By a process a core: the compiler uses one. */
static void test_all_compile(void **state)
{
    (void)state;
    long workers = sysconf(_SC_NPROCESSORS_ONLN);
    workers = workers < 1 ? 1 : workers > 16 ? 16 : workers;
    print_message("%d texts for %d generations\n", count, 3);
    fflush(NULL);
    for (long w = 0; w < workers; w++)
        if (fork() == 0)
            _exit(compile_share((int)w, (int)workers) ? 1 : 0);
    int status, bad = 0;
    while (wait(&status) > 0)
        bad += status != 0;
    assert_int_equal(bad, 0);
}

/* On tests/kernel_texts' driver. */
static bool texts_are_kept(void) { return getenv("TANSO_TEXTS_FOLDER") != NULL; }

static void start(void)
{
    chance = test_random_new();
    seed = chance.state;
    tn_seed(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations), cmocka_unit_test(test_graphs),      cmocka_unit_test(test_complex),
        cmocka_unit_test(test_draws),      cmocka_unit_test(test_windows),     cmocka_unit_test(test_forms),
        cmocka_unit_test(test_long_rows),  cmocka_unit_test(test_beside),      cmocka_unit_test(test_training),
        cmocka_unit_test(test_vectors),    cmocka_unit_test(test_all_compile),
    };
    if (texts_are_kept()) {
        start();
        return cmocka_run_group_tests(tests, NULL, NULL);
    }
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    if (!tn__cuda_open_compiler(&compiler, CUDA_VERSION / 1000)) {
        printf("libnvrtc is not here\n");
        return TEST_SKIPPED;
    }
    char folder[] = "/tmp/tanso-emitted-XXXXXX";
    if (mkdtemp(folder) == NULL)
        return 1;
    setenv("TANSO_CACHE_DIR", folder, 1); /* an empty cache: what it held would not be compiled */
    start();
    fake_use();
    fake.compiles = collect;
    if (tn_set_device(tn_cuda(0)) != TN_OK) {
        fprintf(stderr, "%s\n", tn_error());
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? failed : 1;
}
