/* SPDX-License-Identifier: MIT */
/* Tables of numbers as text: options, exact numbers, every way a file can be wrong. */
#include "io/check.h"

#include <math.h>

static const char *file(const char *text)
{
    const char *path = scratch_path("table.csv");
    test_write_bytes(path, text, strlen(text));
    return path;
}

static void assert_table(tn_array *x, int64_t rows, int64_t columns, const double *expected)
{
    assert_string_equal(tn_message_of(x), "");
    assert_int_equal(tn_ndim(x), 2);
    assert_int_equal(tn_dim(x, 0), rows);
    assert_int_equal(tn_dim(x, 1), columns);
    double *found = malloc((size_t)(rows * columns + 1) * sizeof *found);
    assert_int_equal(tn_to_host(tn_cast(x, TN_FLOAT64), found, (size_t)(rows * columns) * sizeof *found), TN_OK);
    for (int64_t i = 0; i < rows * columns; i++)
        if (found[i] != expected[i] && !(isnan(found[i]) && isnan(expected[i])))
            fail_msg("element %lld: expected %.17g, found %.17g", (long long)i, expected[i], found[i]);
    free(found);
}
#define ROWS(...) ((double[]){__VA_ARGS__})

static void options(void **state)
{
    (void)state;
    TN_SCOPE {
        assert_table(tn_load_csv(file("1,2,3\n4,5,6\n")), 2, 3, ROWS(1, 2, 3, 4, 5, 6));
        assert_table(tn_load_csv(file("\xef\xbb\xbf" "1,2\n3,4\n")), 2, 2, ROWS(1, 2, 3, 4)); /* UTF-8's mark */
        assert_table(tn_load_csv(file("\xef\xbb\xbf")), 0, 0, NULL);
        assert_true(tn_is_error(tn_load_csv(file("\xff\xfe" "1,2\n"))));
        assert_failed(TN_ERR_FORMAT, "is text of UTF-16: save it as UTF-8");
        assert_table(tn_load_csv(file("a,b\n1,2 # a remark\n\n# another\r\n 3 ,\"4\"\r\n"), .skip = 1), 2, 2,
                     ROWS(1, 2, 3, 4));
        assert_table(tn_load_csv(file(" 1  2\t3\n4 5 6"), .delimiter = ' '), 2, 3, ROWS(1, 2, 3, 4, 5, 6));
        assert_table(tn_load_csv(file("1\t\t3\n"), .delimiter = '\t', .fill = true, .missing = NAN), 1, 3,
                     ROWS(1, NAN, 3));
        assert_table(tn_load_csv(file("1,2,3\n4,5,6\n"), .column_count = 2, .columns = (int[]){-1, 0}), 2, 2,
                     ROWS(3, 1, 6, 4));
        assert_table(tn_load_csv(file("1;2\n3;4\n5;6\n"), .delimiter = ';', .rows = 2, .dtype = TN_INT16), 2, 2,
                     ROWS(1, 2, 3, 4));
        assert_table(tn_load_csv(file("1,\n,2\n"), .fill = true, .missing = -1, .dtype = TN_INT8), 2, 2,
                     ROWS(1, -1, -1, 2));
        assert_table(tn_load_csv(file("true,0\nFalse,1\n"), .dtype = TN_BOOL), 2, 2, ROWS(1, 0, 0, 1));
        assert_table(tn_load_csv(file("")), 0, 0, ROWS(0));
        assert_table(tn_load_csv(file("x;y\n"), .comment = ';', .skip = 1), 0, 0, ROWS(0));
        assert_int_equal(tn_dtype_of(tn_load_csv(file("1\n"))), TN_FLOAT32);
    }
    assert_string_equal(tn_error(), "");
}

/* What strtod would say, to the last bit. */
static void exact_numbers(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "0.1",
        "-0.0",
        "1e22",
        "1e23",
        "1e-22",
        "123456789012345678",
        "9007199254740993",
        "1.7976931348623157e308",
        "4.9e-324",
        "0.30000000000000004",
        "1e400",
        "-1e400",
        "nan",
        "inf",
        "-Infinity",
        ".5",
        "5.",
        "+3",
        "00012.50",
        "1E+2",
        "3.14159265358979323846264338327950288419716939937510",
        "2.2250738585072011e-308",
    };
    TN_SCOPE
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            double expected = strtod(numbers[k], NULL);
            assert_table(tn_load_csv(file(numbers[k]), .dtype = TN_FLOAT64), 1, 1, &expected);
        }
    test_random random = test_random_new();
    char text[64];
    for (int k = 0; k < 3000; k++) {
        uint64_t bits = test_random_bits(&random);
        double number;
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        snprintf(text, sizeof text, "%.*g", (int)test_random_int(&random, 1, 20), number);
        double expected = strtod(text, NULL);
        TN_SCOPE assert_table(tn_load_csv(file(text), .dtype = TN_FLOAT64), 1, 1, &expected);
    }
}

static void integers(void **state)
{
    (void)state;
    const char *path = file("18446744073709551615,0\n");
    TN_SCOPE {
        tn_array *x = tn_load_csv(path, .dtype = TN_UINT64);
        assert_true(*(const uint64_t *)test_data(x) == UINT64_MAX);
        x = tn_load_csv(file("-9223372036854775808\n"), .dtype = TN_INT64);
        assert_true(*(const int64_t *)test_data(x) == INT64_MIN);
        static const struct {
            const char *text;
            tn_dtype dtype;
        } bad[] = {{"128", TN_INT8},
                   {"-129", TN_INT8},
                   {"256", TN_UINT8},
                   {"-1", TN_UINT32},
                   {"1.0", TN_INT32},
                   {"1e3", TN_INT64},
                   {"18446744073709551616", TN_UINT64},
                   {"9223372036854775808", TN_INT64},
                   {"2", TN_BOOL},
                   {"-", TN_INT16}};
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            assert_true(tn_is_error(tn_load_csv(file(bad[k].text), .dtype = bad[k].dtype)));
            assert_failed(TN_ERR_FORMAT, "line 1, column 1");
        }
    }
}

static void refused(void **state)
{
    (void)state;
    TN_SCOPE {
        assert_true(tn_is_error(tn_load_csv(file("1,2\n3\n"))));
        assert_failed(TN_ERR_FORMAT, "line 2: the number of fields is 1, expected 2");
        assert_true(tn_is_error(tn_load_csv(file("1,2\n\n3,x4\n"))));
        assert_failed(TN_ERR_FORMAT, "line 3, column 2: 'x4' is no float32");
        assert_true(tn_is_error(tn_load_csv(file("rooms,price\n1,2\n"))));
        assert_failed(TN_ERR_FORMAT, "'rooms' is no float32; .skip = 1 leaves out a header");
        assert_true(tn_is_error(tn_load_csv(file("1,,2\n"))));
        assert_failed(TN_ERR_FORMAT, ".fill");
        assert_true(tn_is_error(tn_load_csv(file("0x10\n"))));
        assert_failed(TN_ERR_FORMAT, "no float32");
        assert_true(tn_is_error(tn_load_csv(file("1,2\n"), .column_count = 1, .columns = (int[]){2})));
        assert_failed(TN_ERR_INDEX, "column 2, of 2");
        assert_true(tn_is_error(tn_load_csv(file("1\n"), .dtype = TN_COMPLEX64)));
        assert_failed(TN_ERR_DTYPE, "complex64");
        assert_true(tn_is_error(tn_load_csv(file("1\n"), .skip = -1)));
        assert_failed(TN_ERR_VALUE, "skip -1");
        assert_true(tn_is_error(tn_load_csv("/nowhere/at/all.csv")));
        assert_failed(TN_ERR_IO, "cannot read");
    }
}

static void saved(void **state)
{
    (void)state;
    test_random random = test_random_new();
    const char *path = scratch_path("saved.csv");
    size_t size;
    TN_SCOPE {
        tn_array *x = tn_reshape(tn_arange(0, 6, 1), TN_SHAPE(2, 3));
        assert_int_equal(tn_save_csv(x, path, .header = "a b c", .delimiter = ' '), TN_OK);
        char *text = (char *)scratch_read(path, &size);
        assert_string_equal(text, "a b c\n0 1 2\n3 4 5\n");
        free(text);
        assert_int_equal(tn_save_csv(tn_divide(tn_ones(TN_SHAPE(2)), 3), path, .digits = 3), TN_OK);
        text = (char *)scratch_read(path, &size);
        assert_string_equal(text, "0.333\n0.333\n");
        free(text);
        for (int d = TN_BOOL; d <= TN_FLOAT64; d++) { /* every number is read back as it was */
            tn_array *y = tn_reshape(random_array(&random, (tn_dtype)d), TN_SHAPE(-1, 1));
            assert_int_equal(tn_save_csv(y, path), TN_OK);
            tn_array *back = tn_to(tn_load_csv(path, .dtype = (tn_dtype)d), test_device());
            if (!tn_size(y))
                continue;
            tn_array *same =
                tn_logical_or(tn_equal(back, y), tn_logical_and(tn_not_equal(back, back), tn_not_equal(y, y)));
            assert_true(tn_item(tn_all(same)) == 1);
        }
        assert_int_equal(tn_save_csv(tn_ones(TN_SHAPE(1, 1, 1)), path), TN_ERR_SHAPE);
        assert_failed(TN_ERR_SHAPE, "at most 2");
    }
    assert_string_equal(tn_error(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(options), cmocka_unit_test(exact_numbers),
                                       cmocka_unit_test(integers), cmocka_unit_test(refused), cmocka_unit_test(saved)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
