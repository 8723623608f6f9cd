/* SPDX-License-Identifier: MIT */
/* .npy: round trips, what the written bytes are, and every way a file can be wrong. */
#include "io/check.h"

#include "core/memory.h"
#include "io/formats.h"

static void round_trips(void **state)
{
    (void)state;
    test_random random = test_random_new();
    const char *path = scratch_path("a.npy");
    for (int d = TN_BOOL; d < TN_DTYPE_COUNT; d++)
        for (int i = 0; i < 12 && d != TN_BFLOAT16; i++)
            TN_SCOPE {
                tn_array *x = random_array(&random, (tn_dtype)d);
                assert_int_equal(tn_save_npy(x, path), TN_OK);
                assert_same_array(x, tn_load_npy(path));
            }
    assert_true(tn_ok());
}

static void views_and_pending_arrays(void **state)
{
    (void)state;
    const char *path = scratch_path("view.npy");
    TN_SCOPE {
        tn_array *x = tn_reshape(tn_arange(0, 24, 1, .dtype = TN_FLOAT64), TN_SHAPE(2, 3, 4));
        tn_array *view = tn_slice_axis(tn_transpose(x, (tn_axes){0}), 0, TN_NONE, TN_NONE, -2);
        assert_int_equal(tn_save_npy(view, path), TN_OK);
        tn_array *back = tn_load_npy(path);
        assert_int_equal(tn_dim(back, 0), 2);
        const double *data = test_data(back);
        const double expected[12] = {3, 15, 7, 19, 11, 23, 1, 13, 5, 17, 9, 21};
        assert_memory_equal(data, expected, sizeof expected);
        assert_int_equal(tn_save_npy(tn_add(x, x), path), TN_OK);
        assert_true(((const double *)test_data(tn_load_npy(path)))[23] == 46);
    }
}

static void written_bytes(void **state)
{
    (void)state;
    const char *path = scratch_path("bytes.npy");
    const float values[3] = {1, 2, 3};
    size_t size;
    assert_int_equal(tn_save_npy(tn_from_floats(values, 3), path), TN_OK);
    uint8_t *bytes = scratch_read(path, &size);
    assert_int_equal(size, 128 + 12);
    assert_memory_equal(bytes, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
                        67);
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, values, 12);
    free(bytes);
}

/* A file with this dict and this many bytes of elements. */
static tn_status parse(const char *dict, size_t elements, tn__values *values)
{
    uint8_t file[1024] = "\x93NUMPY\x01\x00";
    size_t length = strlen(dict);
    file[8] = (uint8_t)length;
    memcpy(file + 10, dict, length);
    for (size_t i = 0; i < elements; i++)
        file[10 + length + i] = (uint8_t)i;
    /* exactly as long as it claims, so that sanitizers see the first byte read too far */
    uint8_t *exact = malloc(10 + length + elements);
    memcpy(exact, file, 10 + length + elements);
    tn_status status = tn__npy_parse("test", "the file", exact, 10 + length + elements, values);
    free(exact);
    return status;
}

static const struct {
    const char *dict;
    int elements;
    tn_status status;
    const char *words;
} cases[] = {
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", 4, TN_OK, ""},
    {"{\"shape\":(2L,),\"descr\":\"i2\",\"fortran_order\":False,} \n", 4, TN_OK, ""},
    {" { 'shape' : ( ) , 'fortran_order' : True , 'descr' : '|b1' } ", 1, TN_OK, ""},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 0)}", 0, TN_OK, ""},
    {"", 0, TN_ERR_FORMAT, "expected '{'"},
    {"{'descr': '<i2'", 4, TN_ERR_FORMAT, "found its end"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,)} x", 4, TN_ERR_FORMAT, "nothing after '}'"},
    {"{'descr': '<i2', 'fortran_order': False}", 4, TN_ERR_FORMAT, "no key 'shape'"},
    {"{'descr': '<i2', 'descr': '<i2', 'shape': (2,)}", 4, TN_ERR_FORMAT, "repeated key 'descr'"},
    {"{'descr': '<i2', 'order': 'C', 'shape': (2,)}", 4, TN_ERR_FORMAT, "unknown key 'order'"},
    {"{'descr': '<i2' 'shape': (2,)}", 4, TN_ERR_FORMAT, "',' or '}'"},
    {"{'descr' '<i2', 'shape': (2,)}", 4, TN_ERR_FORMAT, "expected ':'"},
    {"{descr: '<i2', 'shape': (2,)}", 4, TN_ERR_FORMAT, "a key of the dict"},
    {"{'descr': '<i2', 'fortran_order': 0, 'shape': (2,)}", 4, TN_ERR_FORMAT, "True or False"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (2)}", 4, TN_ERR_FORMAT, "a tuple"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': [2]}", 4, TN_ERR_FORMAT, "the shape, a tuple"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (-2,)}", 4, TN_ERR_FORMAT, "an extent"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (2 2,)}", 8, TN_ERR_FORMAT, "',' or ')'"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,)}", 4, TN_ERR_FORMAT, "too large"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", 4, TN_ERR_SHAPE, "larger than any"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 2, TN_ERR_FORMAT, "more than 8 axes"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (3,)}", 4, TN_ERR_FORMAT, "expected 6 bytes of elements"},
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", 4, TN_ERR_FORMAT, "expected 2 bytes of elements"},
    {"{'descr': '<c32', 'fortran_order': False, 'shape': (1,)}", 9, TN_ERR_DTYPE, "'<c32'"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8, TN_ERR_DTYPE, "'|O'"},
    {"{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", 4, TN_ERR_DTYPE, "records"},
    {"{'descr': '<i\\x32', 'fortran_order': False, 'shape': (1,)}", 4, TN_ERR_FORMAT, "a dtype such as"},
    {"{'descr': '<i2\n', 'fortran_order': False, 'shape': (1,)}", 4, TN_ERR_FORMAT, "a dtype such as"},
};

static void headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__values values;
        tn_status status = parse(cases[i].dict, (size_t)cases[i].elements, &values);
        if (status != cases[i].status)
            printf("case %zu: %s\n", i, tn_error());
        assert_int_equal(status, cases[i].status);
        if (status == TN_OK) {
            assert_int_equal(values.shape->size * (int64_t)tn_dtype_size(values.dtype), cases[i].elements);
            tn__values_free(&values);
        } else {
            assert_failed(cases[i].status, cases[i].words);
            assert_null(values.storage);
        }
    }
}

static void byte_order_and_fortran_order(void **state)
{
    (void)state;
    tn__values values;
    assert_int_equal(parse("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}", 12, &values), TN_OK);
    const int16_t expected[6] = {0x0001, 0x0405, 0x0809, 0x0203, 0x0607, 0x0a0b};
    assert_memory_equal(tn__values_data(&values), expected, sizeof expected);
    tn__values_free(&values);
    assert_int_equal(parse("{'descr': '|b1', 'fortran_order': False, 'shape': (4,)}", 4, &values), TN_OK);
    assert_memory_equal(tn__values_data(&values), "\0\1\1\1", 4); /* any byte but 0 is true */
    tn__values_free(&values);
}

static void every_cut_is_an_error(void **state)
{
    (void)state;
    size_t size;
    const char *path = scratch_path("cut.npy");
    assert_int_equal(tn_save_npy(tn_arange(0, 5, 1), path), TN_OK);
    uint8_t *bytes = scratch_read(path, &size);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, bytes, cut);
        tn__values values;
        assert_int_equal(tn__npy_parse("test", "cut", part, cut, &values), TN_ERR_FORMAT);
        tn_clear_error();
        free(part);
    }
    bytes[6] = 4;
    tn__values values;
    assert_int_equal(tn__npy_parse("test", "the file", bytes, size, &values), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "version 4: expected 1, 2 or 3");
    bytes[6] = 2; /* now two bytes of the dict count as length */
    assert_int_equal(tn__npy_parse("test", "the file", bytes, size, &values), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "expected 65536 at most");
    free(bytes);
}

static void documented_errors(void **state)
{
    (void)state;
    const float one = 1;
    tn_array *half = tn_cast(tn_from_floats(&one, 1), TN_BFLOAT16);
    assert_int_equal(tn_save_npy(half, scratch_path("b.npy")), TN_ERR_DTYPE);
    assert_failed(TN_ERR_DTYPE, "NumPy has no dtype bfloat16");
    assert_int_not_equal(access(scratch_path("b.npy"), F_OK), 0);
    tn_array *none = tn_load_npy(scratch_path("missing.npy"));
    assert_true(tn_is_error(none));
    assert_int_equal(tn_status_of(none), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "missing.npy");
    assert_true(tn_is_error(tn_load_npy(NULL)));
    assert_failed(TN_ERR_VALUE, "path of a file, got NULL");
    assert_int_equal(tn_save_npy(tn_from_floats(&one, 1), NULL), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "path of a file, got NULL");
    assert_int_equal(tn_save_npy(none, scratch_path("b.npy")), TN_ERR_IO); /* an error array passes its error on */
    assert_failed(TN_ERR_IO, "missing.npy");
}

static void no_memory(void **state)
{
    (void)state;
    const char *path = scratch_path("memory.npy");
    bool done = false;
    for (long n = 0; !done && n < 1000; n++) {
        tn__fail_allocation_after(n);
        TN_SCOPE {
            tn_array *x = tn_arange(0, 100, 1);
            done = tn_save_npy(x, path) == TN_OK && !tn_is_error(tn_load_npy(path));
        }
        tn__fail_allocation_after(-1);
        assert_true(done ? tn_ok() : tn_error_code() == TN_ERR_MEMORY);
        tn_clear_error();
    }
    assert_true(done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(views_and_pending_arrays),
        cmocka_unit_test(written_bytes),
        cmocka_unit_test(headers),
        cmocka_unit_test(byte_order_and_fortran_order),
        cmocka_unit_test(every_cut_is_an_error),
        cmocka_unit_test(documented_errors),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
