/* SPDX-License-Identifier: MIT */
/*
 * Steps on a GPU against the same steps on the CPU. Values are small whole numbers, exact in every dtype and order, so
 * that results must be equal, not near. Skipped where there is no GPU.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backends/plugin.h"
#include "core/dtype.h"
#include "device/program.h"
#include "ops/ops.h"
#include "support/device.h"
#include "support/random.h"

enum { OPERANDS = 4, SPACE = 1 << 21 };

static tn__device *gpu, *cpu;
static uint64_t state_of_random;

static int64_t between(int64_t low, int64_t high)
{
    state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((state_of_random >> 33) % (uint64_t)(high - low + 1));
}

typedef struct one_step {
    tn__step step;
    tn__operand operand[OPERANDS];
    tn__buffer buffer[OPERANDS];
    size_t bytes[OPERANDS];
    char *memory[OPERANDS];
    tn_dtype scalar_dtype[1];
    int slot[1];
    uint64_t scalar[1];
} one_step;

static void begin(one_step *one, int op, tn_dtype dtype)
{
    memset(one, 0, sizeof *one);
    one->step = (tn__step){.kind = TN__STEP_OP, .op = op, .compute = (tn_dtype)tn__dtypes[dtype].compute,
                           .output_count = 1, .operand = one->operand, .scalar = one->slot, .label = "test"};
    if (op != TN__OP_MATMUL)
        return;
    one->step.kind = TN__STEP_PRODUCT;
    one->step.product.alpha = -1;
}

static void put(char *memory, int64_t i, tn_dtype dtype, double value)
{
    tn__scalar scalar = tn__scalar_from_double(value, dtype);
    size_t size = tn__dtypes[dtype].size;
    char *at = memory + i * (int64_t)size;
    memset(at, 0, size); /* a scalar has the real part only */
    memcpy(at, scalar.bytes, size < sizeof scalar.bytes ? size : sizeof scalar.bytes);
}

/* An operand of some layout: axes in a random order in memory, gaps, steps, perhaps a reversed or repeated axis. */
static tn__operand *add(one_step *one, tn_dtype dtype, int ndim, const int64_t *dim, bool plain, bool may_repeat)
{
    int k = one->step.operand_count++;
    tn__operand *o = &one->operand[k];
    *o = (tn__operand){.buffer = k, .dtype = dtype, .ndim = ndim, .offset = plain ? 0 : between(0, 5)};
    int order[TN_MAX_NDIM];
    for (int i = 0; i < ndim; i++)
        order[i] = i;
    for (int i = ndim - 1; i > 0 && !plain; i--) {
        int j = (int)between(0, i), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    int64_t reach = 1;
    for (int i = ndim - 1; i >= 0; i--) {
        int axis = order[i];
        o->dim[axis] = dim[axis];
        if (!plain && may_repeat && between(0, 9) == 0)
            continue;
        int64_t step = reach * (plain || between(0, 2) ? 1 : 2) + (plain ? 0 : between(0, 3) == 0);
        bool reversed = !plain && dim[axis] > 0 && between(0, 5) == 0;
        o->stride[axis] = reversed ? -step : step;
        if (reversed)
            o->offset += step * (dim[axis] - 1);
        reach = step * (dim[axis] > 0 ? dim[axis] : 1);
    }
    int64_t elements = o->offset + reach + 4;
    assert_true(elements < SPACE);
    one->bytes[k] = elements * tn__dtypes[dtype].size;
    one->memory[k] = malloc(one->bytes[k]);
    assert_non_null(one->memory[k]);
    for (int64_t i = 0; i < elements; i++)
        put(one->memory[k], i, dtype, (double)between(dtype == TN_BOOL ? 0 : -3, dtype == TN_BOOL ? 1 : 3));
    return o;
}

static tn_status run_on(tn__device *device, one_step *one, void *const *memory)
{
    tn__program program = {.buffer_count = one->step.operand_count, .buffer = one->buffer,
                           .scalar_count = one->step.scalar_count, .scalar_dtype = one->scalar_dtype, .step_count = 1,
                           .step = &one->step, .source = ""};
    tn__executable *executable = NULL;
    tn_status status = device->ops->load(device, &program, &executable);
    if (status == TN_OK)
        status = device->ops->run(executable, memory, one->scalar);
    if (status == TN_OK && device->ops->synchronize) /* which tells of an index out of range */
        status = device->ops->synchronize(device);
    if (executable)
        device->ops->unload(executable);
    return status;
}

/* Makes zeros of either sign one: a product by a negative factor may give both. */
static void one_zero(char *memory, size_t bytes, tn_dtype dtype)
{
    size_t size = tn__dtypes[dtype].size;
    for (size_t i = 0; i < bytes / size && tn_dtype_is_float(dtype); i++) {
        tn__scalar scalar = {.bits = 0};
        memcpy(scalar.bytes, memory + i * size, size);
        if (tn__scalar_to_double(scalar, dtype) == 0)
            memset(memory + i * size, 0, size);
    }
}

/* Runs it on both; the whole memory of the output must agree, and what lies between its elements be left alone. */
static void compare(one_step *one)
{
    void *there[OPERANDS];
    for (int k = 0; k < one->step.operand_count; k++) {
        there[k] = gpu->ops->allocate(gpu, one->bytes[k]);
        assert_non_null(there[k]);
        assert_int_equal(gpu->ops->write(gpu, there[k], one->memory[k], one->bytes[k]), TN_OK);
    }
    tn_status status = run_on(gpu, one, there);
    char *result = malloc(one->bytes[0]);
    assert_non_null(result);
    if (status == TN_OK)
        assert_int_equal(gpu->ops->read(gpu, result, there[0], one->bytes[0]), TN_OK);
    tn_status expected = run_on(cpu, one, (void *const *)one->memory);
    if (status != expected)
        fail_msg("GPU %d, CPU %d: %s", status, expected, tn_error());
    one_zero(result, one->bytes[0], one->operand[0].dtype);
    one_zero(one->memory[0], one->bytes[0], one->operand[0].dtype);
    if (status == TN_OK)
        assert_memory_equal(result, one->memory[0], one->bytes[0]);
    tn_clear_error();
    free(result);
    for (int k = 0; k < one->step.operand_count; k++) {
        gpu->ops->release(gpu, there[k], one->bytes[k]);
        free(one->memory[k]);
    }
}

static tn_dtype any_dtype(void) { return (tn_dtype)between(TN_DTYPE_DEFAULT + 1, TN_DTYPE_COUNT - 1); }

static int any_shape(int64_t *dim, int most)
{
    int ndim = (int)between(0, most);
    for (int i = 0; i < ndim; i++)
        dim[i] = between(0, 19) == 0 ? 0 : between(1, 5);
    return ndim;
}

static void test_copy(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        one_step one;
        int64_t dim[TN_MAX_NDIM];
        int ndim = any_shape(dim, 4);
        tn_dtype dtype = any_dtype();
        begin(&one, TN__OP_COPY, dtype);
        add(&one, dtype, ndim, dim, between(0, 2) == 0, false);
        add(&one, dtype, ndim, dim, between(0, 2) == 0, true);
        compare(&one);
    }
}

static void test_const(void **state)
{
    (void)state;
    for (int i = 0; i < 90; i++) {
        one_step one;
        int64_t dim[TN_MAX_NDIM];
        bool whole = i >= 60; /* and begins anywhere */
        int ndim = whole ? 1 : any_shape(dim, 4);
        if (whole)
            dim[0] = between(0, i % 2 ? 70 : 30000);
        tn_dtype dtype = any_dtype();
        begin(&one, TN__OP_CONST, dtype);
        tn__operand *o = add(&one, dtype, ndim, dim, whole || between(0, 1), false);
        o->offset += whole ? between(0, 3) : 0;
        one.step.scalar_count = 1;
        one.scalar_dtype[0] = dtype;
        one.scalar[0] = tn__scalar_from_double(1, dtype).bits;
        compare(&one);
    }
}

/* ---- several windows in a step ---- */

enum { MOST_WINDOWS = 150 };

typedef struct windows {
    int copies, fills; /* outputs of copies, of fills, then inputs */
    tn__operand operand[2 * MOST_WINDOWS];
    int slot[MOST_WINDOWS];
    uint64_t scalar[MOST_WINDOWS];
    tn_dtype scalar_dtype[MOST_WINDOWS];
    size_t bytes[2];
    void *memory[2]; /* written, read */
} windows;

/* A window from *at on, which goes behind it: rows of any length, with gaps of any length; now and then steps. */
static tn__operand window(int buffer, tn_dtype dtype, int ndim, const int64_t *dim, int64_t *at)
{
    tn__operand o = {.buffer = buffer, .dtype = dtype, .ndim = ndim, .offset = *at += between(0, 20)};
    int64_t reach = between(0, 5) ? 1 : 2;
    for (int i = ndim - 1; i >= 0; i--) {
        o.dim[i] = dim[i];
        o.stride[i] = reach;
        reach = reach * (dim[i] ? dim[i] : 1) + (between(0, 1) ? 0 : between(1, 9));
    }
    *at += reach;
    return o;
}

static void make_windows(windows *w, tn_dtype dtype, int count)
{
    static const int64_t longest[] = {4, 40, 400, 3000};
    int64_t at[2] = {0}, size = (int64_t)tn__dtypes[dtype].size;
    w->fills = (int)between(0, 2) ? 0 : (int)between(1, count);
    w->copies = count - w->fills;
    for (int k = 0; k < count; k++) {
        int ndim = (int)between(0, 3);
        int64_t dim[3];
        for (int i = 0; i < ndim; i++)
            dim[i] = between(0, 30) == 0 ? 0 : between(1, i == ndim - 1 ? longest[between(0, 3)] : 4);
        w->operand[k] = window(0, dtype, ndim, dim, &at[0]);
        if (k < w->copies)
            w->operand[count + k] = window(1, dtype, ndim, dim, &at[1]);
        if (k < w->copies && ndim && between(0, 9) == 0) /* one element again and again */
            w->operand[count + k].stride[ndim - 1] = 0;
        w->slot[k] = k;
        w->scalar_dtype[k] = dtype;
        w->scalar[k] = tn__scalar_from_double((double)between(0, dtype == TN_BOOL ? 1 : 100), dtype).bits;
    }
    for (int b = 0; b < 2; b++) {
        w->bytes[b] = (size_t)((at[b] + 1) * size);
        w->memory[b] = malloc(w->bytes[b]);
        assert_non_null(w->memory[b]);
        for (int64_t i = 0; i <= at[b]; i++)
            put(w->memory[b], i, dtype, (double)between(0, dtype == TN_BOOL ? 1 : 100));
    }
}

/* The windows from `first` on, `count` of them: all copies or all fills, or all there are. */
static void run_windows(tn__device *device, const windows *w, int first, int count, void *const *memory)
{
    tn__operand operand[2 * MOST_WINDOWS];
    int all = w->copies + w->fills, operands = 0, last = first + count, slot[MOST_WINDOWS], fills = 0;
    for (int k = first; k < last; k++)
        operand[operands++] = w->operand[k];
    for (int k = first; k < last && k < w->copies; k++)
        operand[operands++] = w->operand[all + k];
    for (int k = first > w->copies ? first : w->copies; k < last; k++)
        slot[fills++] = w->slot[k];
    tn__buffer buffer[2] = {{.kind = TN__BUFFER_OUTPUT, .bytes = w->bytes[0]}, {.kind = TN__BUFFER_INPUT}};
    tn__step step = {.kind = TN__STEP_OP, .op = first < w->copies ? TN__OP_COPY : TN__OP_CONST,
                     .compute = (tn_dtype)tn__dtypes[operand[0].dtype].compute, .output_count = count,
                     .operand_count = operands, .operand = operand, .scalar_count = fills, .scalar = slot};
    tn__program program = {.buffer_count = 2, .buffer = buffer, .scalar_count = all, .step_count = 1, .step = &step,
                           .scalar_dtype = (tn_dtype *)w->scalar_dtype, .source = ""};
    tn__executable *executable = NULL;
    tn_status status = device->ops->load(device, &program, &executable);
    for (int run = 0; run < 3 && status == TN_OK; run++) /* step after step, then as a graph */
        status = device->ops->run(executable, memory, w->scalar);
    if (status != TN_OK)
        fail_msg("%s", tn_error());
    device->ops->unload(executable);
}

/* Each window by itself on the CPU gives what all give together; what lies between them stays. */
static void test_windows(void **state)
{
    (void)state;
    for (int i = 0; i < 80; i++) {
        windows w = {.copies = 0};
        tn_dtype dtype = any_dtype();
        int count = (int)(between(0, 3) ? between(1, 6) : between(1, MOST_WINDOWS));
        make_windows(&w, dtype, count);
        char *memory[2];
        void *there[2], *result = malloc(w.bytes[0]);
        assert_non_null(result);
        for (int b = 0; b < 2; b++) { /* buffers that begin anywhere */
            int64_t off = between(0, 15) * (int64_t)tn__dtypes[dtype].size;
            memory[b] = gpu->ops->allocate(gpu, w.bytes[b] + 256);
            assert_non_null(memory[b]);
            there[b] = memory[b] + off;
            assert_int_equal(gpu->ops->write(gpu, there[b], w.memory[b], w.bytes[b]), TN_OK);
        }
        run_windows(gpu, &w, 0, count, there);
        assert_int_equal(gpu->ops->read(gpu, result, there[0], w.bytes[0]), TN_OK);
        for (int k = 0; k < count; k++)
            run_windows(cpu, &w, k, 1, w.memory);
        assert_memory_equal(result, w.memory[0], w.bytes[0]);
        free(result);
        for (int b = 0; b < 2; b++) {
            gpu->ops->release(gpu, memory[b], w.bytes[b] + 256);
            free(w.memory[b]);
        }
    }
}

static void test_scatter(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        one_step one;
        int64_t dim[3] = {between(1, 5), between(1, 5), between(1, 40)}, terms[3];
        tn_dtype dtype = (tn_dtype)between(TN_DTYPE_DEFAULT + 2, TN_DTYPE_COUNT - 1); /* all but bool */
        int axis = (int)between(0, 2);
        memcpy(terms, dim, sizeof dim);
        terms[axis] = between(0, 30);
        if (i % 4 == 0) { /* many terms: other kernels; a vector: others again */
            terms[axis] = between(65, dtype == TN_BFLOAT16 ? 80 : dtype == TN_FLOAT16 ? 600 : i % 8 ? 900 : 5000);
            for (int d = 0; d < 3 && i % 8 == 0; d++)
                terms[d] = d == axis ? terms[d] : (dim[d] = 1);
        }
        begin(&one, i % 3 ? TN__OP_SCATTER_ADD : TN__OP_SCATTER_SET, dtype);
        one.step.axes = 1u << axis;
        bool plain = between(0, 1);
        add(&one, dtype, 3, dim, plain, false);
        add(&one, dtype, 3, dim, plain, false);
        add(&one, TN_INT64, 3, terms, plain, true);
        tn__operand *positions = &one.operand[2];
        for (int d = 0; d < 3 && i % 16 == 4; d++) /* all lanes share them */
            positions->stride[d] = d == axis ? positions->stride[d] : 0;
        add(&one, dtype, 3, terms, plain, true);
        int64_t *index = (int64_t *)one.memory[2], wrong = between(0, 5) == 0;
        for (size_t j = 0; j < one.bytes[2] / 8; j++)
            index[j] = between(-dim[axis], dim[axis] - 1 + wrong);
        compare(&one);
    }
}

/* Whole rows, in lanes that lie side by side: as many as a thread takes at once, or some that are left over. */
static void test_scatter_rows(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_COMPLEX64, TN_COMPLEX128, TN_INT8};
    for (int i = 0; i < 36; i++) {
        one_step one;
        tn_dtype dtype = dtypes[i % 6];
        int64_t most = dtype == TN_FLOAT16 ? 600 : 5000; /* sums that are exact */
        int64_t dim[] = {i < 6 ? 1 : between(1, i < 24 ? 300 : 20), i % 2 ? between(1, 40) : 4 * between(1, 10)},
                terms[] = {between(257, most), dim[1]};
        begin(&one, TN__OP_SCATTER_ADD, dtype);
        one.step.axes = 1;
        for (int k = 0; k < 2; k++)
            add(&one, dtype, 2, dim, true, false);
        add(&one, TN_INT64, 2, terms, true, false);
        one.operand[2].stride[1] = 0;
        add(&one, dtype, 2, terms, true, false);
        int64_t *index = (int64_t *)one.memory[2];
        for (size_t j = 0; j < one.bytes[2] / 8; j++)
            index[j] = between(-dim[0], dim[0] - 1);
        compare(&one);
    }
}

/* Many terms, at positions that tables in shared memory have room for, or at one more; rows and columns of them, which
 * share positions or have their own. */
static void test_scatter_tables(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_COMPLEX64, TN_COMPLEX128, TN_INT8};
    for (int i = 0; i < 60; i++) {
        one_step one;
        tn_dtype dtype = dtypes[i % 6];
        int64_t size = tn__dtypes[dtype].size, room = (48 << 10) / (size < 4 ? 4 : size) - 1;
        int64_t extents[] = {1, between(2, 40), between(41, 1500), room, room + 1};
        int64_t places = i % 3 ? 1 : between(2, 6);
        int64_t count = between(257, dtype == TN_FLOAT16 ? 600 : places > 1 ? 9000 : 200000); /* sums that are exact */
        int axis = (int)between(0, 1);
        int64_t dim[2] = {places, places}, terms[2] = {places, places};
        dim[axis] = extents[i / 6 % 5];
        terms[axis] = count;
        begin(&one, TN__OP_SCATTER_ADD, dtype);
        one.step.axes = 1u << axis;
        bool plain = between(0, 1);
        for (int k = 0; k < 2; k++)
            add(&one, dtype, 2, dim, plain, false);
        add(&one, TN_INT64, 2, terms, plain, true);
        if (between(0, 1))
            one.operand[2].stride[1 - axis] = 0;
        add(&one, dtype, 2, terms, plain, true);
        int64_t *index = (int64_t *)one.memory[2], wrong = between(0, 5) == 0, at_one = between(0, 3) == 0;
        int64_t first = between(-dim[axis], dim[axis] - 1);
        for (size_t j = 0; j < one.bytes[2] / 8; j++)
            index[j] = at_one ? first : between(-dim[axis], dim[axis] - 1);
        if (wrong)
            index[between(0, (int64_t)one.bytes[2] / 8 - 1)] = dim[axis];
        compare(&one);
    }
}

static void test_bad_index(void **state)
{
    (void)state;
    one_step one;
    begin(&one, TN__OP_SCATTER_ADD, TN_FLOAT32);
    one.step.axes = 2;
    int64_t dim[2] = {3, 4}, terms[2] = {3, 2};
    add(&one, TN_FLOAT32, 2, dim, true, false);
    add(&one, TN_FLOAT32, 2, dim, true, false);
    add(&one, TN_INT64, 2, terms, true, false);
    add(&one, TN_FLOAT32, 2, terms, true, false);
    memset(one.memory[2], 0, one.bytes[2]);
    ((int64_t *)one.memory[2])[3] = -5;
    void *there[OPERANDS];
    for (int k = 0; k < 4; k++) {
        there[k] = gpu->ops->allocate(gpu, one.bytes[k]);
        assert_int_equal(gpu->ops->write(gpu, there[k], one.memory[k], one.bytes[k]), TN_OK);
    }
    assert_int_equal(run_on(gpu, &one, there), TN_ERR_INDEX);
    assert_non_null(strstr(tn_error(), "index -5 is out of range for an axis of extent 4: valid are -4 to 3"));
    tn_clear_error();
    assert_int_equal(gpu->ops->synchronize(gpu), TN_OK); /* the device goes on */
    for (int k = 0; k < 4; k++) {
        gpu->ops->release(gpu, there[k], one.bytes[k]);
        free(one.memory[k]);
    }
}

/* ---- rows ---- */

static int64_t any_length(void)
{
    int64_t most[] = {33, 300, 1100, 9000, 20000};
    return between(0, most[between(0, 4)]);
}

static void some_nan(one_step *one, int k)
{
    tn_dtype dtype = one->operand[k].dtype;
    int64_t elements = (int64_t)one->bytes[k] / tn__dtypes[dtype].size;
    for (int64_t i = 0; i < elements && tn_dtype_is_float(dtype); i++)
        if (between(0, 19) == 0)
            put(one->memory[k], i, dtype, (double)NAN);
}

static void test_sort(void **state)
{
    (void)state;
    for (int i = 0; i < 150; i++) {
        one_step one;
        int64_t dim[] = {between(1, 3), any_length()};
        tn_dtype dtype = (tn_dtype)between(TN_DTYPE_DEFAULT + 1, TN_FLOAT64);
        bool positions = between(0, 1), plain = dim[1] > 9000 || between(0, 1);
        begin(&one, positions ? TN__OP_ARGSORT : TN__OP_SORT, dtype);
        add(&one, positions ? TN_INT64 : dtype, 2, dim, plain, false);
        add(&one, dtype, 2, dim, plain, true);
        some_nan(&one, 1);
        compare(&one);
    }
}

/* Many rows, of each of the lengths about which ways are chosen; some in place. */
static void test_sort_rows(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 31, 32, 33, 64, 65, 128, 129, 256, 257, 512, 513, 1024, 1025, 2048, 2049, 4096,
                                      4097};
    enum { LENGTHS = sizeof lengths / sizeof *lengths };
    for (int i = 0; i < 4 * LENGTHS; i++) {
        one_step one;
        int64_t n = lengths[i % LENGTHS], dim[] = {between(1, 8), between(1, 20000 / n), n};
        tn_dtype dtype = (tn_dtype)(TN_DTYPE_DEFAULT + 1 + i % (TN_FLOAT64 - TN_DTYPE_DEFAULT));
        bool positions = between(0, 1), plain = between(0, 1);
        begin(&one, positions ? TN__OP_ARGSORT : TN__OP_SORT, dtype);
        add(&one, positions ? TN_INT64 : dtype, 3, dim, plain, false);
        add(&one, dtype, 3, dim, plain, true);
        /* in place passes would have to be told, and the CPU looks for NaN's bits in what it reads */
        if (!positions && n <= 2048 && between(0, 1))
            one.operand[1] = one.operand[0];
        else
            some_nan(&one, 1);
        compare(&one);
    }
}

/* Rows of one part and of several, few different values; all equal ones, where positions decide. */
static void test_largest(void **state)
{
    (void)state;
    for (int i = 0; i < 120; i++) {
        one_step one;
        int64_t n = i < 3 ? 200000 : any_length() + 1, most = n < 1024 ? n : 1024;
        int64_t dim[] = {between(1, 3), n}, found[] = {dim[0], between(1, between(0, 3) ? (most + 9) / 10 : most)};
        tn_dtype dtype = (tn_dtype)between(TN_DTYPE_DEFAULT + 1, TN_FLOAT64);
        bool plain = n > 9000 || between(0, 1);
        begin(&one, TN__OP_LARGEST, dtype);
        add(&one, TN_INT64, 2, found, plain, false);
        add(&one, dtype, 2, dim, plain, true);
        some_nan(&one, 1);
        if (i % 10 == 0)
            memset(one.memory[1], 0, one.bytes[1]);
        compare(&one);
    }
}

/* A few, by a warp: of short rows, and of many that it goes through in turns; 32 are the most, 33 others' work. Some
 * ascend, so that each turn's are below those before it, some descend, and some have their greatest in one lane. */
static void test_largest_few(void **state)
{
    (void)state;
    for (int i = 0; i < 160; i++) {
        one_step one;
        bool many = i % 8 == 0, plain = many || between(0, 1);
        int64_t n = many ? between(4097, 5000) : i % 8 == 1 ? between(1, 33) : any_length() % 4096 + 1;
        int64_t most = n < 33 ? n : 33, dim[] = {many ? 320 : between(1, 9), n};
        int64_t found[] = {dim[0], i % 4 == 3 ? most - between(0, most > 1) : between(1, most)};
        tn_dtype dtype = (tn_dtype)between(TN_DTYPE_DEFAULT + 1, TN_FLOAT64);
        begin(&one, TN__OP_LARGEST, dtype);
        add(&one, TN_INT64, 2, found, plain, false);
        add(&one, dtype, 2, dim, plain, true);
        int64_t elements = (int64_t)one.bytes[1] / tn__dtypes[dtype].size, order = between(0, 5);
        for (int64_t j = 0; j < elements && order < 3 && dtype != TN_BOOL; j++)
            put(one.memory[1], j, dtype,
                (double)(order == 0   ? j * 100 / elements
                         : order == 1 ? 100 - j * 100 / elements
                         : j % 32     ? 0
                                      : j % 99));
        some_nan(&one, 1);
        if (i % 10 == 0)
            memset(one.memory[1], 0, one.bytes[1]);
        compare(&one);
    }
}

static void test_scan(void **state)
{
    (void)state;
    static const int op[] = {TN__OP_CUMSUM, TN__OP_CUMPROD, TN__OP_CUMMAX, TN__OP_CUMMIN};
    for (int i = 0; i < 200; i++) {
        one_step one;
        int which = (int)between(0, 3);
        tn_dtype dtype = (tn_dtype)between(TN_DTYPE_DEFAULT + 1 + (which < 2), TN_FLOAT64);
        bool half = tn__dtypes[dtype].size == 2 && tn_dtype_is_float(dtype);
        /* the GPU rounds sums and products once, the CPU after each element: lengths for which both are exact */
        int64_t exact[2][2] = {{680, 6}, {80, 5}}, length = any_length(), dim[] = {between(1, 3), length};
        if (which < 2 && (half || which == 1))
            dim[1] = length % (half ? exact[dtype == TN_BFLOAT16][which] : 12);
        bool plain = dim[1] > 9000 || between(0, 1);
        begin(&one, op[which], dtype);
        add(&one, dtype, 2, dim, plain, false);
        add(&one, dtype, 2, dim, plain, true);
        if (which > 1 && !half)
            some_nan(&one, 1);
        compare(&one);
    }
}

/* The positions of what is true, all of them or the first few. */
static void test_nonzero(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        one_step one;
        int64_t n[] = {i ? any_length() + 1 : 1200000}, one_in = between(1, 40), count = 0;
        char *set = malloc((size_t)n[0]);
        for (int64_t j = 0; j < n[0]; j++)
            count += set[j] = between(1, one_in) == 1;
        int64_t found[] = {between(0, 3) ? count : between(0, count)};
        bool plain = n[0] > 9000 || between(0, 1);
        begin(&one, TN__OP_NONZERO, TN_BOOL);
        add(&one, TN_INT64, 1, found, plain, false);
        add(&one, TN_BOOL, 1, n, plain, true);
        for (int64_t j = 0; j < n[0]; j++)
            put(one.memory[1], one.operand[1].offset + j * one.operand[1].stride[0], TN_BOOL, set[j]);
        free(set);
        compare(&one);
    }
}

static void test_search(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        one_step one;
        bool many = i < 26; /* guided by a table, each dtype twice */
        int64_t sorted[] = {any_length() % (many ? 6000 : 20001)},
                wanted[] = {many ? (1 << 18) + between(0, 5000) : any_length()};
        tn_dtype dtype = (tn_dtype)(many ? TN_DTYPE_DEFAULT + 1 + i / 2 : between(TN_DTYPE_DEFAULT + 1, TN_FLOAT64));
        begin(&one, between(0, 1) ? TN__OP_SEARCH_LEFT : TN__OP_SEARCH_RIGHT, dtype);
        add(&one, TN_INT64, 1, wanted, true, false);
        add(&one, dtype, 1, sorted, true, false);
        add(&one, dtype, 1, wanted, true, false);
        bool low = dtype == TN_BOOL || tn__dtypes[dtype].class == TN__CLASS_UNSIGNED;
        for (int64_t j = 0; j < sorted[0]; j++)
            put(one.memory[1], j, dtype, (double)(j * 4 / (sorted[0] + 1)) - (low ? 0 : 2));
        for (int64_t j = 0; j < sorted[0] && tn_dtype_is_float(dtype) && i % 4 > 1; j++) /* uneven; ends of all kinds */
            put(one.memory[1], j, dtype, j == sorted[0] - 1 ? (double)(i % 8 > 4 ? NAN : INFINITY)
                                                            : -3 + 6.5 * pow((double)j / sorted[0], i % 3 + 1));
        some_nan(&one, 2);
        compare(&one);
    }
}

static void test_histogram(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        one_step one;
        int64_t bins[] = {i % 6 ? between(1, 40) : between(2049, 3000)}, edges[] = {bins[0] + 1},
                values[] = {any_length()};
        tn_dtype dtype = (tn_dtype)between(TN_DTYPE_DEFAULT + 1, TN_FLOAT64);
        bool plain = between(0, 1);
        begin(&one, TN__OP_HISTOGRAM, dtype);
        add(&one, TN_INT64, 1, bins, plain, false);
        tn__operand *o = add(&one, dtype, 1, edges, true, false);
        bool low = dtype == TN_BOOL || tn__dtypes[dtype].class == TN__CLASS_UNSIGNED;
        int most = dtype == TN_BOOL ? 1 : (int)between(1, 3);
        for (int64_t j = 0; j < edges[0]; j++) /* some bins are empty, of no width */
            put(one.memory[1], o->offset + j, dtype, (double)(j * most / edges[0]) - (low ? 0 : 2));
        add(&one, dtype, 1, values, plain, true);
        some_nan(&one, 2);
        compare(&one);
    }
}

/* With `wild`, in layouts that no library takes. */
static void multiply(tn_dtype dtype, int ndim, const int64_t *batch, int64_t m, int64_t k, int64_t n, bool wild)
{
    one_step one;
    int64_t out[TN_MAX_NDIM], a[TN_MAX_NDIM], b[TN_MAX_NDIM];
    for (int i = 0; i < ndim; i++)
        out[i] = a[i] = b[i] = batch[i];
    out[ndim] = a[ndim] = m;
    a[ndim + 1] = b[ndim] = k;
    out[ndim + 1] = b[ndim + 1] = n;
    begin(&one, TN__OP_MATMUL, dtype);
    add(&one, dtype, ndim + 2, out, !wild, false);
    tn__operand *operand[] = {add(&one, dtype, ndim + 2, a, !wild, wild), add(&one, dtype, ndim + 2, b, !wild, wild)};
    for (int i = 0; i < 2 && !wild; i++)
        if (between(0, 1)) { /* a transpose */
            operand[i]->stride[ndim] = 1;
            operand[i]->stride[ndim + 1] = operand[i]->dim[ndim] > 0 ? operand[i]->dim[ndim] : 1;
        }
    one.step.product.beta = (int)between(0, 1);
    if (between(0, 1)) {
        one.step.product.alpha = 0;
        one.step.scalar_count = 1;
        one.scalar_dtype[0] = dtype;
        one.scalar[0] = tn__scalar_from_double(dtype == TN_BOOL ? 1 : 2, dtype).bits;
        one.step.product.negate_alpha = dtype != TN_BOOL && between(0, 1);
    }
    compare(&one);
}

/* Complex products are made of real ones: of a complex step, both say that they have none. */
static void test_matmul(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        int64_t batch[2] = {between(1, 4), between(1, 3)};
        int most = i % 3 == 0 ? 30 : 9;
        multiply(any_dtype(), (int)between(0, 2), batch, between(1, most), between(0, most), between(1, most),
                 between(0, 1));
    }
    for (int dtype = TN_DTYPE_DEFAULT + 1; dtype < TN_DTYPE_COUNT; dtype++) {
        int64_t batch[1] = {2};
        multiply((tn_dtype)dtype, 0, batch, 64, 96, 32, false);
        multiply((tn_dtype)dtype, 1, batch, 1, 129, 65, false);
        multiply((tn_dtype)dtype, 1, batch, 65, 31, 1, false);
        multiply((tn_dtype)dtype, 0, batch, 0, 3, 2, false);
        multiply((tn_dtype)dtype, 0, batch, 3, 0, 2, false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copy), cmocka_unit_test(test_const),
                                       cmocka_unit_test(test_windows), cmocka_unit_test(test_scatter),
                                       cmocka_unit_test(test_scatter_rows), cmocka_unit_test(test_scatter_tables),
                                       cmocka_unit_test(test_bad_index),
                                       cmocka_unit_test(test_sort), cmocka_unit_test(test_sort_rows),
                                       cmocka_unit_test(test_largest), cmocka_unit_test(test_largest_few),
                                       cmocka_unit_test(test_scan), cmocka_unit_test(test_nonzero),
                                       cmocka_unit_test(test_search), cmocka_unit_test(test_histogram),
                                       cmocka_unit_test(test_matmul)};
    if (test_no_gpu())
        return TEST_SKIPPED;
    state_of_random = test_seed_new();
    gpu = tn__device_get(tn_cuda(0));
    cpu = tn__device_get(tn_cpu());
    assert_true(gpu && cpu);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
