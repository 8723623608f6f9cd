/* SPDX-License-Identifier: MIT */
/*
 * Convolutions by cuDNN: what the backend asks of it and how it chooses among engines, on a fake driver with a fake
 * cuDNN, whose convolutions are right if what they are told is. Values are the CPU's.
 */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tanso.h>

#include "backends/cuda/convolution/plans.h"
#include "cuda/fake_blas.h"
#include "cuda/fake_dnn.h"
#include "device/allocator.h"
#include "ops/ops.h"
#include "support/folder.h"
#include "support/random.h"
#include "support/starve.h"

enum { MOST = 4096, OPERANDS = 3, RESULT = 0, DATA, WEIGHTS };

typedef struct problem {
    int axes;
    int64_t n, in, out, groups, extent, kernel, step, pad, spread;
} problem;

static uint64_t seed;
static char folder[256];
static double milliseconds[FAKE_ENGINES];

static void pass(int engine) { fake_blas.now += milliseconds[engine]; }

/* Its plans live as long as the process else. */
static void close_device(tn__device *device)
{
    tn__cuda_device *cuda = tn__cuda_of(device);
    while (cuda->convolutions) {
        tn__cudnn_plan *plan = cuda->convolutions;
        assert_int_equal(plan->uses, 0);
        cuda->convolutions = plan->next;
        fake_dnn_library.cudnnBackendDestroyDescriptor(plan->plan);
        fake_dnn_library.cudnnBackendDestroyDescriptor(plan->config);
        tn__free(plan->key);
        tn__free(plan);
    }
    tn__allocator_close(device->allocator);
}

/* A device on which nothing has been asked for yet, as in a new process; with the library, if it is there. */
static tn__device *open_device(bool there)
{
    static tn__device *device;
    if (device)
        close_device(device);
    assert_int_equal(fake_dnn.descriptors, 0); /* nothing is left of what was proposed */
    device = fake_open();
    assert_non_null(device);
    device->allocator = tn__allocator_new(device);
    assert_non_null(device->allocator);
    tn__cuda_libraries *libraries = (tn__cuda_libraries *)tn__cuda_of(device)->libraries;
    libraries->dnn = there ? &fake_dnn_library : NULL;
    fake_blas_clock((tn__cuda_driver *)tn__cuda_of(device)->driver);
    fake_dnn.runs = pass;
    return device;
}

/* ---- programs of one step ---- */

typedef struct program {
    tn__operand operand[OPERANDS];
    tn__buffer buffer[OPERANDS];
    int64_t param[1 + 3 * 3];
    tn__step step;
    tn__program program;
    int64_t size[OPERANDS];
} program;

static int64_t result_extent(const problem *p)
{
    return (p->extent + 2 * p->pad - p->spread * (p->kernel - 1) - 1) / p->step + 1;
}

static tn_shape shape_of(const problem *p, char tensor)
{
    int64_t extent = tensor == 'x' ? p->extent : tensor == 'w' ? p->kernel : result_extent(p);
    tn_shape shape = {.ndim = 2 + p->axes, .dim = {tensor == 'w' ? p->out : p->n,
                                                  tensor == 'x' ? p->in : tensor == 'w' ? p->in / p->groups : p->out}};
    for (int i = 0; i < p->axes; i++)
        shape.dim[2 + i] = extent;
    return shape;
}

/* Operands of the three ways, the output first. */
static const char *const tensors[] = {"yxw", "xyw", "wxy"};

static void make(program *g, const problem *p, int way, tn_dtype dtype, tn_matmul_precision precision)
{
    *g = (program){.param = {p->groups}};
    for (int k = 0; k < OPERANDS; k++) {
        tn_shape shape = shape_of(p, tensors[way][k]);
        g->operand[k] = (tn__operand){.buffer = k, .dtype = dtype, .ndim = shape.ndim};
        g->size[k] = 1;
        for (int d = shape.ndim - 1; d >= 0; d--) {
            g->operand[k].dim[d] = shape.dim[d];
            g->operand[k].stride[d] = g->size[k];
            g->size[k] *= shape.dim[d];
        }
        assert_true(g->size[k] <= MOST);
        g->buffer[k] = (tn__buffer){.kind = k ? TN__BUFFER_INPUT : TN__BUFFER_OUTPUT, .slot = k};
    }
    for (int i = 0; i < p->axes; i++)
        memcpy(&g->param[1 + 3 * i], (int64_t[]){p->step, p->spread, p->pad}, 3 * sizeof *g->param);
    g->step = (tn__step){.kind = TN__STEP_CONVOLUTION, .op = TN__OP_CONVOLVE + way, .compute = dtype,
                         .operand_count = OPERANDS, .output_count = 1, .operand = g->operand,
                         .param = g->param, .param_count = 1 + 3 * p->axes, .convolution.precision = precision};
    g->program = (tn__program){.buffer_count = OPERANDS, .buffer = g->buffer, .step_count = 1, .step = &g->step,
                               .source = ""};
}

/* The same with all channels last. */
static void lay_last(program *g)
{
    g->step.convolution.channels_last = true;
    for (int k = 0; k < OPERANDS; k++) {
        tn__operand *o = &g->operand[k];
        int64_t next = o->dim[1];
        o->stride[1] = 1;
        for (int d = o->ndim - 1; d > 1; next *= o->dim[d--])
            o->stride[d] = next;
        o->stride[0] = next;
    }
}

/* Where element i in C order lies. */
static int64_t place_of(const tn__operand *o, int64_t i)
{
    int64_t place = o->offset;
    for (int d = o->ndim - 1; d >= 0; i /= o->dim[d--])
        place += i % o->dim[d] * o->stride[d];
    return place;
}

/* Operands' memory, each from a place of any alignment. */
typedef struct memory {
    float number[OPERANDS][MOST + 4] __attribute__((aligned(256)));
} memory;

static tn_status run(tn__device *device, const program *g, memory *m, int times)
{
    void *buffers[OPERANDS] = {m->number[0], m->number[1], m->number[2]};
    tn__executable *executable = NULL;
    tn_status status = device->ops->load(device, &g->program, &executable);
    for (int i = 0; i < times && status == TN_OK; i++)
        status = device->ops->run(executable, buffers, NULL);
    if (status == TN_OK)
        status = device->ops->synchronize(device);
    device->ops->unload(executable);
    return status;
}

/* ---- values ---- */

static tn_array *draw(tn_shape shape)
{
    tn_array *x = tn_random_normal(shape, .device = tn_cpu());
    assert_int_equal(tn_eval(x), TN_OK);
    return x;
}

/* The output of a way, and its operands, on the CPU. */
static void expect(const problem *p, int way, tn_array *of[OPERANDS])
{
    tn_array *x = tn_requires_grad(draw(shape_of(p, 'x'))), *w = tn_requires_grad(draw(shape_of(p, 'w')));
    tn_array *y = tn_conv(x, w, .stride = TN_SHAPE(p->step), .pad = TN_SHAPE(p->pad), .dilation = TN_SHAPE(p->spread),
                          .groups = p->groups);
    tn_array *g = draw(shape_of(p, 'y'));
    assert_int_equal(tn_backward(tn_sum(tn_multiply(y, g))), TN_OK);
    of[0] = way == RESULT ? y : tn_grad(way == DATA ? x : w);
    of[1] = way == DATA ? g : x;
    of[2] = way == WEIGHTS ? g : w;
}

/* `apart`: elements that inputs lie behind a multiple of 256 bytes. `last`: operands have their channels last. */
static void check_values(tn__device *device, const problem *p, int way, int apart, bool last)
{
    static memory m;
    program g;
    tn_array *of[OPERANDS];
    fake_dnn.engines = 1;
    fake_dnn.workspace[0] = way == DATA ? 1000 : 0;
    make(&g, p, way, TN_FLOAT32, way == WEIGHTS ? TN_MATMUL_TF32 : TN_MATMUL_FLOAT32);
    expect(p, way, of);
    if (last)
        lay_last(&g);
    for (int k = 1; k < OPERANDS; k++) {
        const float *number = test_data(of[k]);
        g.operand[k].offset = apart;
        for (int64_t i = 0; i < g.size[k]; i++)
            m.number[k][place_of(&g.operand[k], i)] = number[i];
    }
    int before = fake_dnn.done;
    assert_true(device->ops->convolves(device, &g.step));
    assert_int_equal(run(device, &g, &m, 3), TN_OK);
    assert_int_equal(fake_dnn.done - before, 3);
    const float *want = test_data(of[0]);
    for (int64_t i = 0; i < g.size[0]; i++) {
        float got = m.number[0][place_of(&g.operand[0], i)];
        if (!(fabsf(got - want[i]) <= 1e-4f * (1 + fabsf(want[i]) + (float)p->n)))
            fail_msg("way %d, %d apart%s, element %lld: %g, expected %g; seed %llu", way, apart, last ? ", last" : "",
                     (long long)i, got, want[i], (unsigned long long)seed);
    }
}

static const problem problems[] = {
    {2, 3, 3, 4, 1, 7, 3, 1, 1, 1}, {2, 1, 2, 5, 1, 8, 3, 2, 1, 1}, {2, 2, 4, 6, 2, 9, 2, 3, 0, 2},
    {2, 2, 5, 5, 5, 6, 3, 1, 2, 1}, {1, 2, 3, 2, 1, 11, 4, 2, 1, 2}, {3, 1, 2, 3, 1, 5, 2, 2, 1, 1},
    {2, 1, 1, 1, 1, 1, 1, 1, 0, 1},
};

static void test_values(void **state)
{
    (void)state;
    tn__device *device = open_device(true);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
        for (int way = 0; way < 3; way++)
            for (int apart = 0; apart < 5; apart += 4 - (apart == 0)) /* 0 and 3 elements; 4 lie well again */
                for (int last = 0; last < 2; last++)
                    TN_SCOPE check_values(device, &problems[i], way, apart, last);
}

/* ---- choosing ---- */

static const problem large = {2, 64, 64, 64, 1, 28, 3, 1, 1, 1}; /* worth timing */

static void engines(double first, double second, double third)
{
    const double each[] = {first, second, third};
    fake_dnn.engines = 3;
    for (int i = 0; i < 3; i++) {
        milliseconds[i] = each[i];
        fake_dnn.workspace[i] = (size_t)i << 12;
        fake_dnn.note[i] = 0;
        fake_dnn.refuses[i] = false;
    }
}

/* The engine that a convolution is computed by in a new process, -1: none; *timed: whether engines were. */
static int taken(const problem *p, tn_dtype dtype, tn_matmul_precision precision, bool *timed)
{
    program g;
    tn__device *device = open_device(true);
    tn__operand operand[OPERANDS];
    int before = fake_dnn.asked;
    int64_t param[7] = {p->groups, p->step, p->spread, p->pad, p->step, p->spread, p->pad};
    memset(operand, 0, sizeof operand);
    for (int k = 0; k < OPERANDS; k++) {
        tn_shape shape = shape_of(p, tensors[RESULT][k]);
        operand[k] = (tn__operand){.dtype = dtype, .ndim = shape.ndim};
        memcpy(operand[k].dim, shape.dim, sizeof operand[k].dim);
    }
    make(&g, &problems[0], RESULT, dtype, precision);
    g.step.operand = operand;
    g.step.param = param;
    fake_dnn.idle = true;
    bool takes = device->ops->convolves(device, &g.step);
    fake_dnn.idle = false;
    *timed = fake_dnn.asked > before;
    const tn__cudnn_plan *plan = tn__cuda_of(device)->convolutions;
    assert_int_equal(takes, plan != NULL);
    if (!takes)
        return -1;
    int engine = 0;
    while (fake_dnn.workspace[engine] != plan->workspace)
        engine++;
    return engine;
}

static int taken_plainly(bool *timed) { return taken(&large, TN_FLOAT32, TN_MATMUL_FLOAT32, timed); }

static void forget(void)
{
    test_folder_remove(folder);
    test_folder_make(folder);
    setenv("TANSO_CACHE_DIR", folder, 1);
}

static void test_fastest(void **state)
{
    (void)state;
    bool timed;
    engines(3, 2, 1);
    assert_int_equal(taken_plainly(&timed), 2);
    assert_true(timed);
    engines(1, 2, 3); /* what is remembered is taken, however fast */
    assert_int_equal(taken_plainly(&timed), 2);
    assert_false(timed);
    fake_dnn.version++; /* another cuDNN remembers nothing */
    assert_int_equal(taken_plainly(&timed), 0);
    assert_true(timed);
    fake_dnn.version--;
    assert_int_equal(taken_plainly(&timed), 2);
    fake_dnn.first += 10; /* the engine that is remembered is not proposed any more */
    assert_int_equal(taken_plainly(&timed), 0);
    assert_true(timed);
    fake_dnn.first -= 10;
    problem small = problems[0];
    assert_int_equal(taken(&small, TN_FLOAT32, TN_MATMUL_FLOAT32, &timed), 0);
    assert_false(timed);
}

/* Only engines that do what is asked: of float32 none that rounds its factors, unless that is asked for; none that adds
 * in any order. */
static void test_notes(void **state)
{
    (void)state;
    bool timed;
    forget();
    engines(1, 2, 3);
    fake_dnn.note[0] = TN__CUDNN_TENSOR_CORE + 1;
    fake_dnn.note[1] = TN__CUDNN_NONDETERMINISTIC + 1;
    assert_int_equal(taken(&large, TN_FLOAT32, TN_MATMUL_FLOAT32, &timed), 2);
    assert_int_equal(taken(&large, TN_FLOAT32, TN_MATMUL_TF32X3, &timed), 2);
    assert_int_equal(taken(&large, TN_FLOAT32, TN_MATMUL_TF32, &timed), 0);
    assert_int_equal(taken(&large, TN_BFLOAT16, TN_MATMUL_FLOAT32, &timed), 0);
    fake_dnn.note[0] = TN__CUDNN_WINOGRAD + 1;
    forget();
    assert_int_equal(taken(&large, TN_FLOAT16, TN_MATMUL_FLOAT32, &timed), 2);
    assert_int_equal(taken(&large, TN_FLOAT64, TN_MATMUL_FLOAT32, &timed), -1);
    program g;
    make(&g, &problems[0], WEIGHTS, TN_FLOAT32, TN_MATMUL_FLOAT32);
    tn__device *device = open_device(true);
    assert_false(device->ops->convolves(device, &g.step)); /* engines that round do not always say so */
    fake_dnn.note[2] = TN__CUDNN_ROUNDS_INPUTS + 1;
    assert_int_equal(taken(&large, TN_FLOAT16, TN_MATMUL_FLOAT32, &timed), -1);
}

/* Engines without a plan, or with one that wants too much; a library that does not start, or is not there. */
static void test_refusals(void **state)
{
    (void)state;
    bool timed;
    forget();
    engines(1, 2, 3);
    fake_dnn.refuses[0] = true;
    fake_dnn.workspace[1] = (size_t)1 << 40;
    assert_int_equal(taken_plainly(&timed), 2);
    assert_int_equal(taken(&problems[0], TN_FLOAT32, TN_MATMUL_FLOAT32, &timed), 2);
    fake_dnn.refuses[2] = true;
    assert_int_equal(taken(&problems[0], TN_FLOAT32, TN_MATMUL_FLOAT32, &timed), -1);
    engines(1, 2, 3);
    fake_dnn.handles = -1;
    assert_int_equal(taken_plainly(&timed), -1);
    fake_dnn.handles = 0;
    assert_true(tn_ok());
    program g;
    tn__device *device = open_device(false);
    make(&g, &problems[0], RESULT, TN_FLOAT32, TN_MATMUL_FLOAT32);
    assert_false(device->ops->convolves(device, &g.step));
    assert_true(tn_ok());
}

/* What the library computes wrongly, or does not survive being asked about. */
static void test_not_asked(void **state)
{
    (void)state;
    static const struct {
        problem p;
        int way;
        tn_dtype dtype;
        bool uneven, takes;
    } cases[] = {
        {{3, 1, 2, 4, 2, 5, 2, 1, 1, 1}, WEIGHTS, TN_FLOAT16, false, false},
        {{3, 1, 2, 4, 2, 5, 2, 1, 1, 1}, DATA, TN_FLOAT16, false, true},
        {{3, 1, 2, 4, 1, 5, 2, 1, 1, 1}, WEIGHTS, TN_BFLOAT16, false, true},
        {{2, 1, 2, 4, 2, 5, 2, 1, 1, 1}, WEIGHTS, TN_BFLOAT16, false, true},
        {{3, 1, 2, 3, 1, 5, 2, 1, 1, 2}, RESULT, TN_FLOAT32, false, false},
        {{3, 1, 2, 3, 1, 5, 1, 1, 1, 2}, RESULT, TN_FLOAT32, false, true}, /* a single tap */
        {{3, 1, 2, 3, 1, 5, 2, 1, 1, 1}, RESULT, TN_FLOAT16, true, false},
        {{2, 1, 2, 3, 1, 5, 2, 1, 1, 1}, RESULT, TN_FLOAT16, true, true},
        {{1, 1, 2, 3, 1, 5, 2, 1, 1, 1}, DATA, TN_FLOAT16, true, false},
        {{1, 1, 2, 3, 1, 5, 2, 1, 1, 1}, DATA, TN_FLOAT32, true, true},
    };
    forget();
    engines(1, 2, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program g;
        tn__device *device = open_device(true);
        make(&g, &cases[i].p, cases[i].way, cases[i].dtype, TN_MATMUL_FLOAT32);
        for (int axis = 0; cases[i].uneven && axis < cases[i].p.axes; axis++)
            g.param[3 + 3 * axis] = 0; /* in front: all that there is lies behind */
        if (device->ops->convolves(device, &g.step) != cases[i].takes)
            fail_msg("case %zu is %s", i, cases[i].takes ? "refused" : "taken");
        assert_true(tn_ok());
    }
}

/* A process that is killed while it writes leaves half a file, or one that is not sealed. */
static void test_killed(void **state)
{
    (void)state;
    bool timed;
    char path[600];
    int files = 0;
    forget();
    engines(3, 2, 1);
    assert_int_equal(taken_plainly(&timed), 2);
    snprintf(path, sizeof path, "%s/kernels", folder);
    DIR *all = opendir(path);
    assert_non_null(all);
    for (struct dirent *entry; (entry = readdir(all)) != NULL;)
        if (strstr(entry->d_name, ".algorithm")) {
            snprintf(path, sizeof path, "%s/kernels/%s", folder, entry->d_name);
            assert_int_equal(truncate(path, 9), 0);
            files++;
        }
    closedir(all);
    assert_int_equal(files, 1);
    engines(3, 1, 2);
    assert_int_equal(taken_plainly(&timed), 1);
    assert_true(timed);
    assert_int_equal(taken_plainly(&timed), 1);
    assert_false(timed);
}

/* ---- without memory ---- */

typedef struct starving {
    tn__device *device;
    program program;
    memory memory;
} starving;

static tn_status load_and_run(void *user)
{
    starving *s = user;
    return run(s->device, &s->program, &s->memory, 1);
}

static void test_starved(void **state)
{
    (void)state;
    static starving s;
    engines(1, 1, 1);
    s.device = open_device(true);
    make(&s.program, &problems[0], DATA, TN_FLOAT32, TN_MATMUL_FLOAT32);
    starve("a convolution", load_and_run, &s);
    assert_int_equal(load_and_run(&s), TN_OK);
    int descriptors = fake_dnn.descriptors, plans = fake_dnn.plans;
    for (int i = 0; i < 3; i++)
        assert_int_equal(load_and_run(&s), TN_OK);
    assert_int_equal(fake_dnn.descriptors, descriptors);
    assert_int_equal(fake_dnn.plans, plans); /* steps share the plan */
    fake_dnn.workspace[0] = (size_t)1 << 24; /* which there is no room for, after the plan is made */
    s.device = open_device(true);
    fake.memory_left = 1 << 20;
    assert_int_equal(load_and_run(&s), TN_ERR_MEMORY);
    tn_clear_error();
    fake.memory_left = 1 << 26;
    assert_int_equal(load_and_run(&s), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),  cmocka_unit_test(test_fastest),
                                       cmocka_unit_test(test_notes),   cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_not_asked),
                                       cmocka_unit_test(test_killed),  cmocka_unit_test(test_starved)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    seed = test_seed_new();
    tn_seed(seed);
    test_folder_make(folder);
    setenv("TANSO_CACHE_DIR", folder, 1);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_folder_remove(folder);
    return failed;
}
