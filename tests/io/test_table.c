/* SPDX-License-Identifier: MIT */
/* Words as numbers, lines, and tables of typed columns: what they hold, and every way a file can be wrong. */
#include <math.h>
#include <tanso/table.h>
#include "io/check.h"
#include "support/random.h"
#include "support/starve.h"

static const char *file(const char *text)
{
    const char *path = scratch_path("text");
    test_write_bytes(path, text, strlen(text));
    return path;
}

static void assert_integers(const tn_array *x, int64_t count, const int64_t *expected)
{
    assert_string_equal(tn_message_of(x), "");
    assert_int_equal(tn_dtype_of(x), TN_INT64);
    assert_int_equal(tn_ndim(x), 1);
    assert_int_equal(tn_size(x), count);
    const int64_t *found = tn_data(tn_to_cpu(x));
    for (int64_t i = 0; i < count; i++)
        assert_int_equal(found[i], expected[i]);
}
#define INTEGERS(x, ...) \
    assert_integers(x, (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

/* Each word keeps its number, however many there are. */
static void words(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    test_random random = test_random_new();
    tn_words *list = tn_words_new();
    char (*name)[16] = calloc(COUNT, sizeof *name);
    for (int64_t i = 0; i < COUNT; i++) {
        snprintf(name[i], sizeof name[i], "%x", (unsigned)test_random_int(&random, 0, 2000));
        int64_t first = 0;
        while (strcmp(name[first], name[i]) != 0)
            first++;
        int64_t count = tn_words_count(list), number = tn_words_add(list, name[i]);
        assert_int_equal(number, first == i ? count : tn_words_find(list, name[first]));
        assert_string_equal(tn_words_get(list, number), name[i]);
    }
    assert_string_equal(tn_words_get(list, 0), name[0]);
    assert_string_equal(tn_words_get(list, -1), tn_words_get(list, tn_words_count(list) - 1));
    assert_int_equal(tn_words_find(list, "none"), -1);
    assert_int_equal(tn_words_find(NULL, "none"), -1);
    int64_t before = tn_words_count(list);
    assert_int_equal(tn_words_add(list, ""), before);
    assert_string_equal(tn_words_get(list, -1), "");
    assert_true(tn_ok());
    assert_string_equal(tn_words_get(list, COUNT), "");
    assert_failed(TN_ERR_INDEX, "got 5000");
    assert_int_equal(tn_words_add(list, NULL), -1);
    assert_failed(TN_ERR_VALUE, "a word");
    tn_words_free(list);
    free(name);
}

static void encoded(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_words *list = tn_words_new();
        INTEGERS(tn_encode(" a b\ta\n\nc  a", list), 0, 1, 0, 2, 0);
        assert_integers(tn_encode("", list), 0, NULL);
        /* as Chainer's get_ptb_words: a blank line is an end, too; the last line need not have one */
        INTEGERS(tn_load_encoded(file(" b d \n\nc"), list, .end = "<eos>"), 1, 3, 4, 4, 2, 4);
        INTEGERS(tn_load_encoded(file("b\r\n"), list, .end = "<eos>"), 1, 4);
        assert_int_equal(tn_words_count(list), 5);
        INTEGERS(tn_encode("a new one\n", list, .end = "<eos>", .unknown = "d"), 0, 3, 3, 4);
        INTEGERS(tn_encode("a\n", list, .end = "<none>", .unknown = "d"), 0, 3);
        assert_int_equal(tn_words_count(list), 5);
        assert_true(tn_is_error(tn_encode("a", list, .unknown = "<unk>")));
        assert_failed(TN_ERR_NAME, "'<unk>', is not in the list");
        assert_true(tn_is_error(tn_load_encoded(scratch_path("none"), list)));
        assert_failed(TN_ERR_IO, "none");
        test_write_bytes(scratch_path("nul"), "a\0b", 3);
        assert_true(tn_is_error(tn_load_encoded(scratch_path("nul"), list)));
        assert_failed(TN_ERR_FORMAT, "NUL");
        tn_words_free(list);
    }
}

static bool not_blank(const char *line, void *user)
{
    ++*(int *)user;
    return *line != '\0';
}

static void lines(void **state)
{
    (void)state;
    int asked = 0;
    tn_words *all = tn_load_lines(file("\xef\xbb\xbf" "one\r\n\ntwo words\none")), *some;
    static const char *const expected[] = {"one", "", "two words", "one"};
    assert_int_equal(tn_words_count(all), 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(tn_words_get(all, i), expected[i]);
    assert_int_equal(tn_words_find(all, "one"), 0);
    tn_words_free(all);
    some = tn_load_lines(file("\na\n\n"), .keep = not_blank, .user = &asked);
    assert_int_equal(tn_words_count(some), 1);
    assert_int_equal(asked, 3);
    tn_words_free(some);
    some = tn_load_lines(file(""));
    assert_int_equal(tn_words_count(some), 0);
    tn_words_free(some);
    some = tn_load_lines(scratch_path("none"));
    assert_int_equal(tn_words_status(some), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "none");
    assert_int_equal(tn_words_add(some, "x"), -1);
    assert_failed(TN_ERR_IO, "none");
    tn_words_free(some);
}

static void types(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_table *table = tn_load_table(file("\xef\xbb\xbf" "class,n,x,\"a \"\"name\"\"\",empty\r\n"
                                             "e, 3 ,1.5,\"two\nlines, \"\"quoted\"\"\",\r\n"
                                             "\n"
                                             "p,-9007199254740993,,e,\n"
                                             "e,0,\"2\",,"));
        assert_int_equal(tn_table_status(table), TN_OK);
        assert_int_equal(tn_table_rows(table), 3);
        assert_int_equal(tn_table_columns(table), 5);
        assert_string_equal(tn_table_name(table, 3), "a \"name\"");
        assert_string_equal(tn_table_name(table, -1), "empty");
        INTEGERS(tn_table_column(table, "class"), 0, 1, 0);
        INTEGERS(tn_table_column(table, "n"), 3, -9007199254740993, 0);
        INTEGERS(tn_table_column(table, "a \"name\""), 2, 1, 0);
        const tn_words *list = tn_table_words(table, "a \"name\"");
        assert_int_equal(tn_words_count(list), 3);
        assert_string_equal(tn_words_get(list, 0), "");
        assert_string_equal(tn_words_get(list, 2), "two\nlines, \"quoted\"");
        assert_null(tn_table_words(table, "x"));
        assert_true(tn_ok());
        tn_array *x = tn_table_column(table, "x");
        assert_int_equal(tn_dtype_of(x), TN_FLOAT64);
        const double *value = tn_data(tn_to_cpu(x));
        assert_true(value[0] == 1.5 && isnan(value[1]) && value[2] == 2);
        assert_int_equal(tn_dtype_of(tn_table_column(table, "empty")), TN_FLOAT64);
        /* columns beside one another, bounds as Python's */
        tn_array *part = tn_table_array(table, -5, 2, TN_FLOAT32);
        assert_true(tn_dim(part, 0) == 3 && tn_dim(part, 1) == 2);
        const float *number = tn_data(tn_to_cpu(part));
        assert_true(number[0] == 0 && number[1] == 3 && number[2] == 1 && number[4] == 0 && number[5] == 0);
        assert_int_equal(tn_dim(tn_table_array(table, 1, TN_TABLE_END, TN_FLOAT64), 1), 4);
        assert_int_equal(tn_size(tn_table_array(table, 3, 1, TN_FLOAT64)), 0);
        assert_true(tn_is_error(tn_table_array(table, 0, 1, TN_DTYPE_COUNT)));
        assert_failed(TN_ERR_DTYPE, "a dtype of the array");
        assert_true(tn_is_error(tn_table_column(table, "y")));
        assert_failed(TN_ERR_NAME, "no column \"y\"");
        assert_string_equal(tn_table_name(table, 5), "");
        assert_failed(TN_ERR_INDEX, "one of 5 columns");
        tn_table_free(table);
    }
}

static void chosen_types(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_table *table = tn_load_table(file("7;1\n8;0\n"), .delimiter = ';', .no_header = true,
                                        .types = TN_COLUMN_TYPES({"0", TN_WORDS}, {"1", TN_BOOL}));
        assert_int_equal(tn_table_status(table), TN_OK);
        assert_string_equal(tn_words_get(tn_table_words(table, "0"), 1), "8");
        assert_int_equal(tn_dtype_of(tn_table_column(table, "1")), TN_BOOL);
        tn_table_free(table);
        table = tn_load_table(file("a,b\n1,2\n"), .types = TN_COLUMN_TYPES({"b", TN_FLOAT16}));
        assert_int_equal(tn_dtype_of(tn_table_column(table, "a")), TN_INT64);
        assert_int_equal(tn_dtype_of(tn_table_column(table, "b")), TN_FLOAT16);
        tn_table_free(table);
        static const char *const bare[] = {"", "a,b\n", "\n\r\n"};
        for (int i = 0; i < 3; i++) { /* without rows, without columns */
            table = tn_load_table(file(bare[i]));
            assert_int_equal(tn_table_status(table), TN_OK);
            assert_int_equal(tn_table_rows(table), 0);
            assert_int_equal(tn_table_columns(table), i == 1 ? 2 : 0);
            assert_int_equal(tn_dim(tn_table_array(table, 0, TN_TABLE_END, TN_FLOAT32), 0), 0);
            tn_table_free(table);
        }
    }
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        tn_status status;
        const char *says;
    } cases[] = {
        {"a,b\n1,2\n3\n", TN_ERR_FORMAT, "line 3: the number of fields is 1, expected 2"},
        {"a\n\"x\n\ny\"z\n", TN_ERR_FORMAT, "line 4: text follows a closing quote"},
        {"a\n1\n\"x\n", TN_ERR_FORMAT, "line 3: a quote is not closed"},
        {"a,b,a\n1,2,3\n", TN_ERR_NAME, "two columns called \"a\""},
        {"a,n\nx,1\n\n\"y\n\",2.5\n", TN_ERR_FORMAT, "line 4, column \"n\": '2.5' is no int32"},
        {"a,m\n1,2\n", TN_ERR_NAME, "no column \"n\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_table *table = i < 4 ? tn_load_table(file(cases[i].text))
                                : tn_load_table(file(cases[i].text), .types = TN_COLUMN_TYPES({"n", TN_INT32}));
        assert_int_equal(tn_table_status(table), cases[i].status);
        assert_failed(cases[i].status, cases[i].says);
        assert_int_equal(tn_table_rows(table), 0);
        assert_true(tn_is_error(tn_table_column(table, "a")));
        assert_failed(cases[i].status, cases[i].says);
        tn_table_free(table);
    }
    test_write_bytes(scratch_path("nul"), "a\n\0\n", 4);
    tn_table *bad[] = {tn_load_table(file("a\n"), .delimiter = '"'), tn_load_table(scratch_path("none")),
                       tn_load_table(scratch_path("nul")),
                       tn_load_table(file("a\n"), .types = TN_COLUMN_TYPES({"a", TN_COMPLEX64}))};
    static const tn_status expected[] = {TN_ERR_VALUE, TN_ERR_IO, TN_ERR_FORMAT, TN_ERR_DTYPE};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tn_table_status(bad[i]), expected[i]);
        tn_table_free(bad[i]);
    }
    tn_clear_error();
}

/* What was freed is a failed object, and what belongs to a table is not freed by others. */
static void freed(void **state)
{
    (void)state;
    tn_words *list = tn_words_new();
    tn_table *table = tn_load_table(file("a,b\nx,1\n"));
    tn_words *own = (tn_words *)tn_table_words(table, "a");
    tn_words_free(own);
    assert_failed(TN_ERR_STATE, "table");
    assert_string_equal(tn_words_get(own, 0), "x");
    tn_words_free(list);
    tn_table_free(table);
    tn_words_free(list);
    assert_failed(TN_ERR_STATE, "freed");
    tn_table_free(table);
    assert_failed(TN_ERR_STATE, "freed");
    assert_int_equal(tn_words_add(list, "y"), -1);
    assert_failed(TN_ERR_STATE, "freed");
    assert_int_equal(tn_words_count(list), 0);
    assert_int_equal(tn_words_find(list, "x"), -1);
    assert_int_equal(tn_table_rows(table), 0);
    TN_SCOPE {
        assert_true(tn_is_error(tn_encode("x", list)));
        assert_failed(TN_ERR_STATE, "freed");
        assert_true(tn_is_error(tn_table_column(table, "a")));
        assert_failed(TN_ERR_STATE, "freed");
    }
    assert_true(tn_ok());
}

static tn_status scenario(void *user)
{
    (void)user;
    tn_status status = TN_OK;
    TN_SCOPE {
        tn_table *table = tn_load_table(scratch_path("starved"));
        status = tn_status_of(tn_table_array(table, 0, 2, TN_FLOAT32));
        tn_table_free(table);
        tn_words *list = tn_words_new();
        if (status == TN_OK)
            status = tn_status_of(tn_load_encoded(scratch_path("starved"), list, .end = "."));
        tn_words_free(list);
        list = status == TN_OK ? tn_load_lines(scratch_path("starved")) : NULL;
        if (status == TN_OK)
            status = tn_words_status(list);
        tn_words_free(list);
    }
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    const char *text = "a,b,c\n1,x,2.5\n2,\"y\",3\n";
    test_write_bytes(scratch_path("starved"), text, strlen(text));
    starve("tables", scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),        cmocka_unit_test(encoded), cmocka_unit_test(lines),     cmocka_unit_test(types),
        cmocka_unit_test(chosen_types), cmocka_unit_test(errors),  cmocka_unit_test(no_memory),
        cmocka_unit_test(freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
