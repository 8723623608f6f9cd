/* SPDX-License-Identifier: MIT */
/* Elementwise kernels with operands that lie across, done in tiles: the same bits as the reference evaluator's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "support/random.h"

static test_random chance; /* its seed is printed */

/* Two operands across, one of them from back to front, beside one that lies as the result does. */
static tn_array *mixture(const tn_array *x, const tn_array *y, const tn_array *z)
{
    tn_array *across = tn_transpose(x, TN_AXES(2, 1, 0)), *back = tn_transpose(tn_flip(y, TN_AXES(0)), TN_AXES(2, 1, 0));
    return tn_add(tn_multiply(across, back), z);
}

static void bits_of(tn_compile_mode mode, const tn_array *x, const tn_array *y, const tn_array *z, void *bytes, size_t size)
{
    tn_set_compile(mode);
    TN_SCOPE {
        assert_int_equal(tn_to_host(mixture(x, y, z), bytes, size), TN_OK);
    }
    tn_set_compile(TN_COMPILE_AUTO);
}

static void test_tiles(void **state)
{
    (void)state;
    static const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_INT8, TN_COMPLEX128};
    for (int round = 0; round < 40; round++) {
        tn_dtype dtype = dtypes[round % 5];
        int64_t a = test_random_int(&chance, 1, 150), b = test_random_int(&chance, 1, 3), c = test_random_int(&chance, 1, 300);
        size_t size = (size_t)(a * b * c) * tn_dtype_size(dtype);
        char *compiled = malloc(size), *plain = malloc(size);
        TN_SCOPE {
            tn_array *x = tn_cast(tn_multiply(tn_random_normal(TN_SHAPE(c, b, a)), 9), dtype);
            tn_array *y = tn_cast(tn_multiply(tn_random_normal(TN_SHAPE(c, b, a)), 9), dtype);
            tn_array *z = tn_cast(tn_multiply(tn_random_normal(TN_SHAPE(a, b, c)), 9), dtype);
            assert_int_equal(tn_eval(x) | tn_eval(y) | tn_eval(z), TN_OK);
            bits_of(TN_COMPILE_ALWAYS, x, y, z, compiled, size);
            bits_of(TN_COMPILE_NEVER, x, y, z, plain, size);
        }
        assert_memory_equal(compiled, plain, size);
        free(compiled);
        free(plain);
    }
}

int main(void)
{
    chance = test_random_new();
    tn_seed(test_random_bits(&chance));
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
