/* SPDX-License-Identifier: MIT */
/* MATLAB's files: every type of number, in every way it is stored, packed or not; and damaged in every byte. */
#include "io/check.h"
#include "support/mat.h"
#include "support/random.h"

enum { ROWS = 3, COLUMNS = 5, COUNT = ROWS * COLUMNS };
static const int32_t extents[] = {ROWS, COLUMNS};

static const struct {
    uint32_t number, item; /* of elements */
    uint32_t class;        /* of arrays */
    tn_dtype dtype;
} types[] = {{1, 1, 8, TN_INT8},    {2, 1, 9, TN_UINT8},   {3, 2, 10, TN_INT16},  {4, 2, 11, TN_UINT16},
             {5, 4, 12, TN_INT32},  {6, 4, 13, TN_UINT32}, {12, 8, 14, TN_INT64}, {13, 8, 15, TN_UINT64},
             {7, 4, 7, TN_FLOAT32}, {9, 8, 6, TN_FLOAT64}};
enum { TYPES = sizeof types / sizeof *types };

/* i as an element of a type. */
static void store(void *to, size_t type, int64_t i, int64_t value)
{
    union {
        int64_t whole;
        float single;
        double wide;
    } u = {.whole = value};
    if (types[type].dtype == TN_FLOAT32)
        u.single = (float)value;
    if (types[type].dtype == TN_FLOAT64)
        u.wide = (double)value;
    memcpy((char *)to + (size_t)i * types[type].item, &u, types[type].item);
}

static const char *save(mat_file *f)
{
    const char *path = scratch_path("file.mat");
    test_write_bytes(path, f->bytes, f->size);
    free(f->bytes);
    *f = (mat_file){0};
    return path;
}

/* Element (i, j), which lies at i + ROWS j, is 7 i + j. */
static void every_type(void **state)
{
    (void)state;
    for (size_t as = 0; as < TYPES; as++)
        for (size_t is = 0; is < TYPES; is++)
            for (int packed = 0; packed < 2; packed++) {
                uint64_t numbers[COUNT];
                for (int64_t k = 0; k < COUNT; k++)
                    store(numbers, as, k, 7 * (k % ROWS) + k / ROWS);
                mat_file f = {0};
                mat_array other = {"other", 9, 2, 2, (int32_t[]){1, 2}, "ab", 2},
                          wanted = {"x", types[is].class, types[as].number, 2, extents, numbers,
                                    COUNT * types[as].item};
                mat_header(&f);
                mat_add(&f, &other, !packed);
                mat_add(&f, &wanted, packed);
                mat_add(&f, &other, packed);
                TN_SCOPE {
                    tn_array *x = tn_load_mat(save(&f), "x");
                    assert_string_equal(tn_message_of(x), "");
                    assert_int_equal(tn_dtype_of(x), types[is].dtype);
                    assert_true(tn_ndim(x) == 2 && tn_dim(x, 0) == ROWS && tn_dim(x, 1) == COLUMNS);
                    double found[COUNT];
                    assert_int_equal(tn_to_host(tn_cast(x, TN_FLOAT64), found, sizeof found), TN_OK);
                    for (int i = 0; i < ROWS; i++)
                        for (int j = 0; j < COLUMNS; j++)
                            assert_true(found[i * COLUMNS + j] == 7 * i + j);
                }
            }
}

/* Numbers that fit into a tag; none; more than are converted together. */
static void sizes(void **state)
{
    (void)state;
    static const int32_t counts[] = {0, 1, 3, 4, 5, 3000};
    for (int c = 0; c < 6; c++) {
        uint8_t numbers[3000];
        for (int i = 0; i < 3000; i++)
            numbers[i] = (uint8_t)(i % 251);
        mat_file f = {0};
        mat_header(&f);
        mat_add(&f, &(mat_array){"a_longer_name", 6, 2, 3, (int32_t[]){1, counts[c], 1}, numbers, (uint32_t)counts[c]},
                c & 1);
        TN_SCOPE {
            tn_array *x = tn_load_mat(save(&f), "a_longer_name");
            assert_true(tn_ndim(x) == 3 && tn_size(x) == counts[c]);
            double found[3000];
            assert_int_equal(tn_to_host(x, found, (size_t)counts[c] * sizeof *found), TN_OK);
            for (int i = 0; i < counts[c]; i++)
                assert_true(found[i] == i % 251);
        }
    }
}

static void errors(void **state)
{
    (void)state;
    uint8_t numbers[COUNT] = {0};
    const struct {
        mat_array array;
        tn_status status;
        const char *says;
    } cases[] = {
        {{"y", 9, 2, 2, extents, numbers, COUNT}, TN_ERR_NAME, "has no variable 'x'"},
        {{"x", 1, 2, 2, extents, numbers, COUNT}, TN_ERR_UNSUPPORTED, "'x' is no dense array of real numbers"},
        {{"x", 9 | 0x0800, 2, 2, extents, numbers, COUNT}, TN_ERR_UNSUPPORTED, "'x' is no dense array"},
        {{"x", 9, 8, 2, extents, numbers, COUNT}, TN_ERR_FORMAT, "of no known type"},
        {{"x", 9, 2, 2, extents, numbers, COUNT - 1}, TN_ERR_FORMAT, "not as many numbers as the extents say"},
        {{"x", 9, 2, 2, (int32_t[]){-1, 1}, numbers, 8}, TN_ERR_FORMAT, "extents that cannot be"},
        {{"x", 9, 2, 3, (int32_t[]){1 << 30, 1 << 30, 1 << 30}, numbers, 8}, TN_ERR_FORMAT, "extents that cannot be"},
        {{"x", 9, 2, 9, (int32_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, numbers, 1}, TN_ERR_FORMAT, "longer than it may be"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int packed = 0; packed < 2; packed++) {
            mat_file f = {0};
            mat_header(&f);
            mat_add(&f, &cases[i].array, packed);
            TN_SCOPE
                assert_true(tn_is_error(tn_load_mat(save(&f), "x")));
            assert_failed(cases[i].status, cases[i].says);
        }
    TN_SCOPE {
        assert_true(tn_is_error(tn_load_mat(scratch_path("file.mat"), NULL)));
        assert_failed(TN_ERR_VALUE, "the name of a variable");
        assert_true(tn_is_error(tn_load_mat(scratch_path("none"), "x")));
        assert_failed(TN_ERR_IO, "none");
        mat_file f = {0};
        mat_header(&f);
        f.bytes[125] = 2;
        assert_true(tn_is_error(tn_load_mat(save(&f), "x")));
        assert_failed(TN_ERR_UNSUPPORTED, "7.3");
        mat_header(&f);
        f.bytes[126] = 'M';
        assert_true(tn_is_error(tn_load_mat(save(&f), "x")));
        assert_failed(TN_ERR_FORMAT, "byte order");
    }
}

/* Cut short anywhere, and any byte changed: an array or an error. */
static void damaged(void **state)
{
    (void)state;
    test_random random = test_random_new();
    uint8_t numbers[COUNT] = {1, 2, 3};
    mat_array x = {"x", 6, 2, 2, extents, numbers, COUNT};
    for (int packed = 0; packed < 2; packed++) {
        mat_file f = {0};
        mat_header(&f);
        mat_add(&f, &x, packed);
        for (size_t i = 0; i < f.size; i++)
            TN_SCOPE {
                mat_file cut = {0}, changed = {0};
                mat_put(&cut, f.bytes, i);
                mat_put(&changed, f.bytes, f.size);
                changed.bytes[i] ^= (uint8_t)test_random_int(&random, 1, 255);
                assert_true(tn_is_error(tn_load_mat(save(&cut), "x")));
                assert_true(tn_error_code() == TN_ERR_FORMAT || (i == 128 && tn_error_code() == TN_ERR_NAME));
                tn_clear_error();
                tn_load_mat(save(&changed), "x");
                assert_true(tn_ok() || *tn_error());
                tn_clear_error();
            }
        free(f.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type), cmocka_unit_test(sizes), cmocka_unit_test(errors), cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
