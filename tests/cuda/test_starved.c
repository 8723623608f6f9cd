/* SPDX-License-Identifier: MIT */
/* Loading and running without memory, the host's or the device's: an error each time, and nothing left behind. */
#include <stdio.h>
#include <unistd.h>

#include "cuda/fake.h"
#include "ops/ops.h"
#include "support/starve.h"

typedef struct work {
    tn__device *device;
    int text; /* number of the last one: each is compiled anew */
} work;

static tn__operand matrix(int buffer, tn_dtype dtype, int64_t row, int64_t column)
{
    return (tn__operand){.buffer = buffer, .dtype = dtype, .ndim = 2, .dim = {4, 4}, .stride = {row, column}};
}

/* A kernel, a copy with gaps, a constant, a product and additions at positions, of few terms and of many. */
static tn_status load_and_run(void *user)
{
    work *w = user;
    static float memory[4][64];
    static int64_t index[16];
    tn__operand move[] = {matrix(0, TN_FLOAT32, 8, 1), matrix(1, TN_FLOAT32, 4, 1)};
    tn__operand product[] = {matrix(0, TN_FLOAT32, 4, 1), matrix(1, TN_FLOAT32, 4, 1), matrix(2, TN_FLOAT32, 1, 4)};
    tn__operand scatter[] = {matrix(0, TN_FLOAT32, 8, 1), matrix(1, TN_FLOAT32, 4, 1), matrix(4, TN_INT64, 4, 1),
                             matrix(3, TN_FLOAT32, 4, 1)};
    tn__operand many[] = {scatter[0], scatter[1], matrix(4, TN_INT64, 0, 0), matrix(3, TN_FLOAT32, 0, 0)};
    many[2].dim[0] = many[3].dim[0] = 300;
    int slot = 0;
    tn_dtype dtype = TN_FLOAT32;
    tn__buffer buffer[5] = {{.kind = TN__BUFFER_INPUT}};
    tn__step step[] = {
        {.kind = TN__STEP_KERNEL, .operand_count = 2, .operand = move,
         .kernel = {.name = "k1", .launch = {.blocks = 1, .threads = 32}}},
        {.kind = TN__STEP_OP, .op = TN__OP_COPY, .operand_count = 2, .output_count = 1, .operand = move},
        {.kind = TN__STEP_OP, .op = TN__OP_CONST, .operand_count = 1, .output_count = 1, .operand = move,
         .scalar_count = 1, .scalar = &slot},
        {.kind = TN__STEP_PRODUCT, .op = TN__OP_MATMUL, .compute = TN_FLOAT32, .operand_count = 3, .operand = product,
         .product.alpha = 0},
        {.kind = TN__STEP_OP, .op = TN__OP_SCATTER_ADD, .compute = TN_FLOAT32, .axes = 1, .operand_count = 4,
         .output_count = 1, .operand = scatter},
        {.kind = TN__STEP_OP, .op = TN__OP_SCATTER_ADD, .compute = TN_FLOAT32, .axes = 1, .operand_count = 4,
         .output_count = 1, .operand = many},
    };
    char source[64];
    snprintf(source, sizeof source, "k1 %d of %ld", w->text++, (long)getpid());
    tn__program program = {.buffer_count = 5, .buffer = buffer, .scalar_count = 1, .scalar_dtype = &dtype,
                           .step_count = sizeof step / sizeof *step, .step = step, .source = source};
    void *buffers[5] = {memory[0], memory[1], memory[2], memory[3], index};
    tn__executable *executable = NULL;
    tn_status status = w->device->ops->load(w->device, &program, &executable);
    if (status == TN_OK)
        status = w->device->ops->run(executable, buffers, (uint64_t[]){0});
    w->device->ops->unload(executable);
    return status;
}

static void balanced(tn_status status, void *user)
{
    (void)status, (void)user;
    assert_int_equal(fake.count.allocations, fake.count.releases);
    assert_int_equal(fake.count.pinned, fake.count.unpinned);
    assert_int_equal(fake.count.modules, fake.count.unloads);
}

static void test_host(void **state)
{
    (void)state;
    work w = {fake_open(), 0};
    fake.words = 2;
    assert_non_null(w.device);
    starve_checked("load and run", load_and_run, balanced, &w);
    assert_true(fake.count.launches >= 7);
}

static void test_opening(void **state)
{
    (void)state;
    work w = {fake_open(), 1000};
    fake.words = 2;
    fake.memory_left = 8;
    assert_int_equal(load_and_run(&w), TN_ERR_MEMORY);
    balanced(TN_ERR_MEMORY, NULL);
    tn_clear_error();
    fake.memory_left = 1 << 20;
    assert_int_equal(load_and_run(&w), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host), cmocka_unit_test(test_opening)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
