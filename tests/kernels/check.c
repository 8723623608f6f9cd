/* SPDX-License-Identifier: MIT */
#include "kernels/check.h"

#include <math.h>

tn_array *random_floats(test_random *random, tn_shape shape)
{
    int64_t size = 1;
    for (int d = 0; d < shape.ndim; d++)
        size *= shape.dim[d];
    float *values = malloc((size_t)(size ? size : 1) * sizeof *values);
    for (int64_t i = 0; i < size; i++)
        values[i] = (float)(4 * test_random_double(random) - 2);
    tn_array *x = tn_from_host(values, shape, TN_FLOAT32);
    free(values);
    return x;
}

void assert_same(const tn_array *a, const tn_array *b)
{
    assert_string_equal(tn_message_of(a), "");
    assert_string_equal(tn_message_of(b), "");
    assert_int_equal(tn_dtype_of(a), tn_dtype_of(b));
    tn_shape s = tn_shape_of(a), t = tn_shape_of(b);
    assert_int_equal(s.ndim, t.ndim);
    for (int d = 0; d < s.ndim; d++)
        assert_int_equal(s.dim[d], t.dim[d]);
    size_t bytes = (size_t)tn_size(a) * tn_dtype_size(tn_dtype_of(a));
    char *first = malloc(bytes + 1), *second = malloc(bytes + 1);
    tn_status status = tn_to_host(a, first, bytes), other = tn_to_host(b, second, bytes);
    assert_string_equal(tn_error(), "");
    assert_int_equal(status, TN_OK);
    assert_int_equal(other, TN_OK);
    if (bytes)
        assert_memory_equal(first, second, bytes);
    free(first);
    free(second);
}

void assert_elements_at(const tn_array *x, const double *expected, size_t count, const char *file, int line)
{
    double *found = calloc(count + 1, sizeof *found);
    tn_status status = TN_ERR_SHAPE;
    if ((size_t)tn_size(x) == count)
        status = tn_to_host(tn_cast(x, TN_FLOAT64), found, count * sizeof *found);
    if (status != TN_OK) {
        printf("expected %zu elements, got %lld: %s\n", count, (long long)tn_size(x), tn_error());
        _fail(file, line);
    }
    for (size_t i = 0; i < count; i++)
        if (found[i] != expected[i] && !(isnan(found[i]) && isnan(expected[i]))) {
            printf("element %zu: expected %.17g, got %.17g\n", i, expected[i], found[i]);
            _fail(file, line);
        }
    free(found);
}

int open_scope(void **state)
{
    (void)state;
    tn_scope_push();
    return 0;
}

int close_scope(void **state)
{
    (void)state;
    tn_scope_pop();
    if (!tn_ok())
        printf("left behind: %s\n", tn_error());
    return !tn_ok();
}
