/* SPDX-License-Identifier: MIT */
/* .safetensors: a file made by hand, what is written, and every way a header can be wrong. */
#include "io/check.h"

#include <jansson.h>
#include "core/memory.h"
#include "io/bytes.h"
#include "io/formats.h"

/* A file of this header and `elements` bytes 1, 2, 3 ..., parsed from memory that ends where the file does. */
static tn_status parse(const char *header, size_t elements, tn_archive *archive)
{
    size_t length = strlen(header), size = 8 + length + elements;
    uint8_t *file = malloc(size);
    tn__put_little(file, 8, length);
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < elements; i++)
        file[8 + length + i] = (uint8_t)(i + 1);
    tn_status status = tn__safetensors_parse("test", "the file", file, size, archive);
    free(file);
    return status;
}

static void by_hand(void **state)
{
    (void)state;
    tn_archive *archive = tn_archive_new();
    assert_int_equal(parse("{\"late\":{\"dtype\":\"I16\",\"shape\":[2,1],\"data_offsets\":[4,8]},"
                           "\"__metadata__\":{\"model\":\"linear:1\",\"\\u00e9\":\"\"},"
                           "\"early\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                           "\"none\":{\"dtype\":\"F64\",\"shape\":[0,3],\"data_offsets\":[4,4]},"
                           "\"flag\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[8,9]}}   ", 9, archive), TN_OK);
    assert_int_equal(tn_archive_count(archive), 4);
    assert_string_equal(tn_archive_name(archive, 0), "late"); /* the header's order */
    assert_string_equal(tn_archive_text(archive, "model"), "linear:1");
    assert_string_equal(tn_archive_text(archive, "\xc3\xa9"), "");
    assert_null(tn_archive_text(archive, "other"));
    const uint8_t *early = test_data(tn_archive_find(archive, "early"));
    assert_memory_equal(early, "\1\2\3\4", 4);
    const int16_t *late = test_data(tn_archive_find(archive, "late"));
    assert_int_equal(late[0], 0x0605);
    assert_int_equal(tn_dim(tn_archive_array(archive, 0), 0), 2);
    assert_int_equal(tn_dim(tn_archive_find(archive, "none"), 1), 3);
    assert_int_equal(*(const uint8_t *)test_data(tn_archive_find(archive, "flag")), 1); /* the file's byte is 9 */
    assert_null(tn_archive_find(archive, "nothing"));
    tn_archive_free(archive);
}

static void round_trips(void **state)
{
    (void)state;
    test_random random = test_random_new();
    const char *path = scratch_path("a.safetensors");
    for (int round = 0; round < 10; round++)
        TN_SCOPE {
            tn_archive *archive = tn_archive_new();
            char name[64];
            int count = (int)test_random_int(&random, 0, 40);
            for (int i = 0; i < count; i++) {
                snprintf(name, sizeof name, "layer%d/\"w\\%c\xe7\x82\xad", i, 'a' + i % 7);
                tn_dtype dtype = (tn_dtype)test_random_int(&random, TN_BOOL, TN_COMPLEX64);
                assert_int_equal(tn_archive_add(archive, name, random_array(&random, dtype)), TN_OK);
            }
            assert_int_equal(tn_archive_set_text(archive, "model", "linear:10 \n\"quoted\""), TN_OK);
            assert_int_equal(tn_archive_save(archive, path), TN_OK);
            tn_archive *back = load_same(path, archive);
            assert_int_equal(tn_archive_count(back), count);
            assert_string_equal(tn_archive_text(back, "model"), "linear:10 \n\"quoted\"");
            tn_archive_free(archive);
            tn_archive_free(back);
        }
}

/* The header ends on a multiple of 8, and every array begins on a multiple of its elements' size. */
static void alignment(void **state)
{
    (void)state;
    const char *path = scratch_path("aligned.safetensors");
    tn_archive *archive = tn_archive_new();
    static const tn_dtype dtypes[] = {TN_BOOL, TN_FLOAT64, TN_INT8, TN_FLOAT16, TN_FLOAT32, TN_BFLOAT16, TN_INT64};
    for (int i = 0; i < 7; i++)
        assert_int_equal(tn_archive_add(archive, tn_dtype_name(dtypes[i]), tn_ones(TN_SHAPE(3), .dtype = dtypes[i])),
                         TN_OK);
    assert_int_equal(tn_archive_save(archive, path), TN_OK);
    size_t size;
    uint8_t *file = scratch_read(path, &size);
    uint64_t length = tn__get_little(file, 8);
    assert_int_equal(length % 8, 0);
    json_t *header = json_loadb((const char *)file + 8, (size_t)length, 0, NULL), *object;
    const char *name;
    json_object_foreach(header, name, object) {
        json_int_t begin = json_integer_value(json_array_get(json_object_get(object, "data_offsets"), 0));
        assert_int_equal((size_t)begin % tn_dtype_size(tn_dtype_parse(name)), 0);
    }
    json_decref(header);
    free(file);
    tn_archive_free(archive);
}

#define U8(name, begin, end, n) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #n "],\"data_offsets\":[" #begin "," #end "]}"
static const struct {
    const char *header;
    size_t elements;
    tn_status status;
    const char *words;
} cases[] = {
    {"{}", 0, TN_OK, ""},
    {"{" U8("a", 0, 1, 1) "," U8("b", 1, 3, 2) "}", 3, TN_OK, ""},
    {" {}", 0, TN_ERR_FORMAT, "begin with '{'"},
    {"[]", 0, TN_ERR_FORMAT, "begin with '{'"},
    {"{" U8("a", 0, 1, 1), 1, TN_ERR_FORMAT, "not valid JSON"},
    {"{} {}", 0, TN_ERR_FORMAT, "not valid JSON"},
    {"{" U8("a", 0, 1, 1) "," U8("a", 1, 2, 1) "}", 2, TN_ERR_FORMAT, "not valid JSON"},
    {"{" U8("a", 0, 1, 1) "," U8("\\u0061", 1, 2, 1) "}", 2, TN_ERR_FORMAT, "not valid JSON"},
    {"{\"a\":3}", 0, TN_ERR_FORMAT, "'a' to be an object"},
    {"{\"a\":{\"shape\":[],\"data_offsets\":[0,1]}}", 1, TN_ERR_FORMAT, "\"dtype\" to be a string"},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, TN_OK, ""},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[],\"data_offsets\":[0,2]}}", 1, TN_ERR_FORMAT, "to end by 1"},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[]}}", 1, TN_ERR_FORMAT, "\"data_offsets\" to be"},
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, TN_ERR_FORMAT, "\"shape\" to be"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1, TN_ERR_FORMAT, "whole numbers"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}}", 1, TN_ERR_FORMAT, "whole numbers"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, TN_ERR_FORMAT, "at most 8"},
    {"{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,1]}}", 1, TN_ERR_SHAPE, "larger"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, TN_ERR_FORMAT, "\"data_offsets\" to be"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, TN_ERR_FORMAT, "\"data_offsets\" to be"},
    {"{" U8("a", -1, 0, 1) "}", 1, TN_ERR_FORMAT, "\"data_offsets\" to be"},
    {"{" U8("a", 1, 0, 0) "}", 1, TN_ERR_FORMAT, "\"data_offsets\" to be"},
    {"{" U8("a", 0, 99999999999999999999, 1) "}", 1, TN_ERR_FORMAT, "not valid JSON"},
    {"{" U8("a", 0, 1, 2) "}", 1, TN_ERR_FORMAT, "expected 2 bytes for uint8 of shape (2,)"},
    {"{" U8("a", 0, 3, 3) "," U8("b", 2, 4, 2) "}", 4, TN_ERR_FORMAT, "'b' lies at [2, 4]: expected it to begin at 3"},
    {"{" U8("a", 0, 2, 2) "," U8("b", 0, 2, 2) "}", 2, TN_ERR_FORMAT, "expected it to begin at 2"},
    {"{" U8("a", 1, 3, 2) "}", 3, TN_ERR_FORMAT, "expected it to begin at 0"},
    {"{" U8("a", 0, 1, 1) "," U8("b", 2, 3, 1) "}", 3, TN_ERR_FORMAT, "expected it to begin at 1"},
    {"{" U8("a", 0, 9, 9) "}", 3, TN_ERR_FORMAT, "to end by 3"},
    {"{" U8("a", 0, 1, 1) "}", 3, TN_ERR_FORMAT, "expected 1 bytes of elements by its header, found 3"},
    {"{\"__metadata__\":{\"a\":1}}", 0, TN_ERR_FORMAT, "'a': expected a string"},
    {"{\"__metadata__\":[]}", 0, TN_ERR_FORMAT, "an object of strings"},
};

/* What Tanso has no dtype for is an error when it is asked for; the others are there. */
static void unknown_dtypes(void **state)
{
    (void)state;
    size_t arrays = tn_live_arrays();
    tn_archive *archive = tn_archive_new();
    assert_int_equal(parse("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                           "\"half\":{\"dtype\":\"F8_E5M2\",\"shape\":[2,2],\"data_offsets\":[2,6]},"
                           "\"b\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[6,8]}}", 8, archive), TN_OK);
    assert_true(tn_ok());
    assert_int_equal(tn_archive_count(archive), 3);
    assert_string_equal(tn_archive_name(archive, 1), "half");
    TN_SCOPE {
        assert_int_equal(tn_size(tn_archive_find(archive, "a")), 2);
        assert_int_equal(tn_dtype_of(tn_archive_find(archive, "b")), TN_INT16);
        assert_true(tn_device_equal(tn_archive_device(archive), tn_cpu()));
        assert_true(tn_ok());
        assert_int_equal(tn_status_of(tn_archive_find(archive, "half")), TN_ERR_DTYPE);
        assert_failed(TN_ERR_DTYPE, "array 'half' has the dtype 'F8_E5M2', which is not supported");
        assert_true(tn_is_error(tn_archive_array(archive, 1)));
        assert_failed(TN_ERR_DTYPE, "'F8_E5M2'");
        assert_int_equal(tn_archive_save(archive, scratch_path("half.safetensors")), TN_ERR_DTYPE);
        assert_failed(TN_ERR_DTYPE, "'F8_E5M2'");
        assert_int_equal(tn_archive_add(archive, "half", tn_ones(TN_SHAPE(3))), TN_OK);
        assert_int_equal(tn_size(tn_archive_find(archive, "half")), 3);
    }
    tn_archive_free(archive);
    assert_int_equal(tn_live_arrays(), arrays);
}

static void headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_archive *archive = tn_archive_new();
        tn_status status = parse(cases[i].header, cases[i].elements, archive);
        if (status != cases[i].status)
            printf("case %zu: %s\n", i, tn_error());
        assert_int_equal(status, cases[i].status);
        if (status != TN_OK)
            assert_failed(cases[i].status, cases[i].words);
        tn_archive_free(archive);
    }
}

static void lengths(void **state)
{
    (void)state;
    tn_archive *archive = tn_archive_new();
    uint8_t file[16] = {0};
    const uint64_t claims[] = {3, 100000001, (uint64_t)1 << 63, UINT64_MAX};
    for (size_t size = 0; size < 10; size++) {
        assert_int_equal(tn__safetensors_parse("test", "short", file, size, archive), TN_ERR_FORMAT);
        assert_failed(TN_ERR_FORMAT, "expected at least 10 bytes");
    }
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        tn__put_little(file, 8, claims[i]);
        memcpy(file + 8, "{}", 2);
        assert_int_equal(tn__safetensors_parse("test", "lies", file, 10, archive), TN_ERR_FORMAT);
        assert_failed(TN_ERR_FORMAT, "claims a header of");
    }
    tn_archive_free(archive);
}

static void saving_errors(void **state)
{
    (void)state;
    const char *path = scratch_path("bad.safetensors");
    static const struct {
        const char *name;
        tn_status status;
        const char *words;
    } names[] = {{"a\xff", TN_ERR_VALUE, "UTF-8"}, {"__metadata__", TN_ERR_NAME, "rename it"}};
    for (int i = 0; i < 2; i++) {
        tn_archive *archive = tn_archive_new();
        assert_int_equal(tn_archive_add(archive, names[i].name, tn_zeros(TN_SHAPE(1))), TN_OK);
        assert_int_equal(tn_archive_save(archive, path), names[i].status);
        assert_failed(names[i].status, names[i].words);
        assert_int_not_equal(access(path, F_OK), 0);
        tn_archive_free(archive);
    }
    tn_archive *archive = tn_archive_new();
    assert_int_equal(tn_archive_set_text(archive, "k", "\xc0\x80"), TN_OK);
    assert_int_equal(tn_archive_save(archive, path), TN_ERR_VALUE);
    assert_failed(TN_ERR_VALUE, "text 'k' is not valid UTF-8");
    tn_archive_free(archive);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand), cmocka_unit_test(round_trips), cmocka_unit_test(alignment),
        cmocka_unit_test(headers),
        cmocka_unit_test(unknown_dtypes), cmocka_unit_test(lengths),     cmocka_unit_test(saving_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
