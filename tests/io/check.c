/* SPDX-License-Identifier: MIT */
/* Random arrays for the tests of files. */
#include "io/check.h"

tn_array *random_array(test_random *random, tn_dtype dtype)
{
    uint8_t bytes[5 * 5 * 5 * 5 * 16];
    tn_shape shape = {.ndim = (int)test_random_int(random, 0, 4)};
    for (int i = 0; i < shape.ndim; i++)
        shape.dim[i] = test_random_int(random, test_random_int(random, 0, 3) ? 1 : 0, 5);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)test_random_bits(random) & (dtype == TN_BOOL ? 1 : 0xff);
    return tn_from_host_with(bytes, shape, dtype, &(tn_create_opts){0});
}

void assert_same_array(tn_array *a, tn_array *b)
{
    tn_shape left = tn_shape_of(a), right = tn_shape_of(b);
    assert_string_equal(tn_message_of(b), "");
    assert_int_equal(left.ndim, right.ndim);
    assert_memory_equal(left.dim, right.dim, sizeof left.dim);
    assert_int_equal(tn_dtype_of(a), tn_dtype_of(b));
    size_t bytes = (size_t)tn_size(a) * tn_dtype_size(tn_dtype_of(a));
    if (bytes)
        assert_memory_equal(test_data(a), test_data(b), bytes);
}

tn_archive *load_same(const char *path, const tn_archive *archive)
{
    tn_archive *back = tn_archive_load(path);
    assert_string_equal(tn_error(), "");
    assert_int_equal(tn_archive_count(back), tn_archive_count(archive));
    for (int i = 0; i < tn_archive_count(archive); i++) {
        assert_string_equal(tn_archive_name(back, i), tn_archive_name(archive, i));
        assert_same_array(tn_archive_array(archive, i), tn_archive_array(back, i));
    }
    return back;
}
