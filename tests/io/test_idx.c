/* SPDX-License-Identifier: MIT */
/* IDX: every dtype, plain and gzipped, and headers that lie. */
#include "io/check.h"

#include <zlib.h>
#include "core/memory.h"
#include "io/formats.h"
#include "io/unpack.h"

/* data gzipped, for the caller to free. */
static uint8_t *gzipped(const uint8_t *data, size_t size, size_t *packed)
{
    z_stream z = {0};
    size_t room = size + 1024;
    uint8_t *out = malloc(room);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *packed = room - z.avail_out;
    deflateEnd(&z);
    return out;
}

/* Parses bytes as they are, and gzipped; both must give the same status. */
static tn_status parse_both(const uint8_t *data, size_t size, tn__values *values)
{
    size_t packed_size;
    uint8_t *exact = malloc(size ? size : 1), *packed = gzipped(data, size, &packed_size);
    memcpy(exact, data, size);
    tn_status status = tn__idx_parse("test", "gzipped", packed, packed_size, values);
    tn__values_free(values);
    tn_clear_error();
    assert_int_equal(tn__idx_parse("test", "plain", exact, size, values), status);
    free(exact);
    free(packed);
    return status;
}

static void every_dtype(void **state)
{
    (void)state;
    static const struct {
        uint8_t code;
        tn_dtype dtype;
    } codes[] = {{8, TN_UINT8}, {9, TN_INT8}, {0xb, TN_INT16}, {0xc, TN_INT32}, {0xd, TN_FLOAT32}, {0xe, TN_FLOAT64}};
    test_random random = test_random_new();
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        size_t item = tn_dtype_size(codes[c].dtype);
        uint8_t file[256] = {0, 0, codes[c].code, 2, 0, 0, 0, 3, 0, 0, 0, 5}, native[15 * 8];
        for (size_t i = 0; i < 15; i++)
            for (size_t b = 0; b < item; b++)
                native[i * item + item - 1 - b] = file[12 + i * item + b] = (uint8_t)test_random_bits(&random);
        tn__values values;
        assert_int_equal(parse_both(file, 12 + 15 * item, &values), TN_OK);
        assert_int_equal(values.dtype, codes[c].dtype);
        assert_int_equal(values.shape->ndim, 2);
        assert_int_equal(values.shape->dim[1], 5);
        assert_memory_equal(tn__values_data(&values), native, 15 * item); /* on a little-endian machine */
        tn__values_free(&values);
    }
}

#define CASE(status, words, ...) {status, words, {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})}
static const struct {
    tn_status status;
    const char *words;
    uint8_t bytes[48];
    size_t size;
} cases[] = {
    CASE(TN_OK, "", 0, 0, 8, 0, 7),
    CASE(TN_OK, "", 0, 0, 8, 1, 0, 0, 0, 0),
    CASE(TN_OK, "", 0, 0, 8, 3, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 9),
    CASE(TN_ERR_FORMAT, "expected 4 bytes of magic number, found 3", 0, 0, 8),
    CASE(TN_ERR_FORMAT, "not an IDX file", 1, 0, 8, 0, 7),
    CASE(TN_ERR_FORMAT, "found 00 00 0a", 0, 0, 0xa, 0, 7),
    CASE(TN_ERR_FORMAT, "9 axes", 0, 0, 8, 9, 0, 0, 0, 1, 0, 0, 0, 1),
    CASE(TN_ERR_FORMAT, "expected 8 bytes of extents, found 7", 0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0),
    CASE(TN_ERR_FORMAT, "expected 2 bytes of elements, found 1", 0, 0, 8, 1, 0, 0, 0, 2, 1),
    CASE(TN_ERR_FORMAT, "expected 2 bytes of elements by its header, found 3", 0, 0, 8, 1, 0, 0, 0, 2, 1, 2, 3),
    CASE(TN_ERR_FORMAT, "47040000 bytes of elements, found 2", 0, 0, 8, 3, 0, 0, 0xea, 0x60, 0, 0, 0, 28, 0, 0, 0, 28,
         1, 2),
    CASE(TN_ERR_FORMAT, "cut short", 0, 0, 0xe, 2, 0, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff), /* 2 PB */
    CASE(TN_ERR_SHAPE, "larger than any memory", 0, 0, 0xe, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
};

static void headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn__values values;
        tn_status status = parse_both(cases[i].bytes, cases[i].size, &values);
        if (status != cases[i].status)
            printf("case %zu: %s\n", i, tn_error());
        assert_int_equal(status, cases[i].status);
        if (status == TN_OK)
            tn__values_free(&values);
        else
            assert_failed(cases[i].status, cases[i].words);
    }
}

/* Members one after another, a cut at every byte, bytes after the end, a flipped bit. */
static void gzip_streams(void **state)
{
    (void)state;
    const uint8_t file[] = {0, 0, 8, 1, 0, 0, 0, 4, 9, 8, 7, 6};
    size_t first, second;
    uint8_t *a = gzipped(file, 9, &first), *b = gzipped(file + 9, 3, &second);
    uint8_t *both = malloc(first + second + 1);
    memcpy(both, a, first);
    memcpy(both + first, b, second);
    tn__values values;
    assert_int_equal(tn__idx_parse("test", "members", both, first + second, &values), TN_OK);
    assert_memory_equal(tn__values_data(&values), file + 8, 4);
    tn__values_free(&values);
    for (size_t cut = 2; cut < first + second; cut++) {
        assert_int_equal(tn__idx_parse("test", "cut", both, cut, &values), TN_ERR_FORMAT);
        assert_failed(TN_ERR_FORMAT, "'cut'");
    }
    both[first + second] = 'x';
    assert_int_equal(tn__idx_parse("test", "more", both, first + second + 1, &values), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "other bytes follow");
    both[first + second - 6] ^= 1; /* the checksum */
    assert_int_equal(tn__idx_parse("test", "flipped", both, first + second, &values), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "incorrect data check");
    free(both);
    free(a);
    free(b);
}

/* Small files that would fill the memory, here with 5.6 GB: refused before memory is taken, by what they claim and by
 * what can be in them. */
static void bombs(void **state)
{
    (void)state;
    enum { ZEROS = 1 << 20, TIMES = 1 << 10 };
    uint8_t *zeros = calloc(1, ZEROS), header[] = {0, 0, 8, 2, 0x70, 0, 0, 0, 0, 0, 0, 3};
    size_t first, piece;
    uint8_t *a = gzipped(header, sizeof header, &first), *b = gzipped(zeros, ZEROS, &piece);
    uint8_t *file = malloc(first + TIMES * piece);
    assert_true(a && b && file);
    memcpy(file, a, first);
    for (int i = 0; i < TIMES; i++)
        memcpy(file + first + (size_t)i * piece, b, piece);
    tn__values values;
    assert_int_equal(tn__idx_parse("test", "bomb", file, first + TIMES * piece, &values), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "claims 5637144576 bytes of elements, and may unpack to 1073741824");
    free(a);

    header[4] = 4; /* 200 MB: less than the limit, more than can be packed so tight */
    a = gzipped(header, sizeof header, &first);
    memcpy(file, a, first);
    memcpy(file + first, b, piece);
    assert_int_equal(tn__idx_parse("test", "liar", file, first + piece, &values), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "cut short");

    memcpy(file, b, piece); /* what unpacks to more than it may, however it is read */
    tn__unpack stream;
    uint8_t *all;
    size_t size;
    assert_int_equal(tn__unpack_open(&stream, "test", "all", file, piece), TN_OK);
    stream.limit = ZEROS - 1;
    assert_int_equal(tn__unpack_all(&stream, UINT64_MAX, &all, &size), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "'all' unpacks to more than 1048575 bytes");
    tn__unpack_close(&stream);
    free(a);
    free(b);
    free(file);
    free(zeros);
}

static void files(void **state)
{
    (void)state;
    const uint8_t file[] = {0, 0, 8, 1, 0, 0, 0, 2, 9, 8};
    test_write_bytes(scratch_path("plain"), file, sizeof file);
    tn_array *x = tn_load_idx(scratch_path("plain"));
    assert_int_equal(tn_size(x), 2);
    assert_int_equal(((const uint8_t *)test_data(x))[1], 8);
    tn_array *none = tn_load_idx(scratch_path("missing"));
    assert_int_equal(tn_status_of(none), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "missing': No such file");
    size_t packed;
    uint8_t *gz = gzipped(file, sizeof file, &packed);
    bool done = false;
    for (long n = 0; !done && n < 100; n++) {
        tn__values values;
        tn__fail_allocation_after(n);
        done = tn__idx_parse("test", "memory", gz, packed, &values) == TN_OK;
        tn__fail_allocation_after(-1);
        tn__values_free(&values);
        assert_true(done || tn_error_code() == TN_ERR_MEMORY);
        tn_clear_error();
    }
    assert_true(done);
    free(gz);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype),
        cmocka_unit_test(headers),
        cmocka_unit_test(gzip_streams),
        cmocka_unit_test(bombs),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
