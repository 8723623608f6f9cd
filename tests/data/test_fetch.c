/* SPDX-License-Identifier: MIT */
/* Downloads: whole, resumed, from servers that cannot resume, cut, refused; and fetching a set into the cache. */
#include "data/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>
#include "data/download.h"
#include "data/server.h"
#include "tn_build_config.h"

#ifdef TN_HAVE_CURL

#define SIZE 300000
static uint8_t content[SIZE];
static int64_t first_done, last_done, last_total;

static void note(const char *file, int64_t done, int64_t total, void *user)
{
    (void)file;
    int *calls = user;
    if ((*calls)++ == 0)
        first_done = done;
    last_done = done;
    last_total = total;
}

/* Downloads to a file that holds the first `have` bytes already (with `mark` in place of the first). */
static tn_status download(const server *s, const char *name, size_t have, uint8_t mark, uint64_t most)
{
    char url[128];
    int calls = 0;
    uint8_t *begin = malloc(SIZE + 10);
    memset(begin, 'x', SIZE + 10);
    memcpy(begin, content, have < SIZE ? have : SIZE);
    if (have)
        begin[0] = mark;
    test_write_bytes(scratch_path("part"), begin, have);
    free(begin);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s", s->port, name);
    int fd = open(scratch_path("part"), O_RDWR);
    tn__download how = {"file", most, note, &calls};
    tn_status status = tn__download_run(url, fd, "part", &how);
    close(fd);
    return status;
}

static void assert_content(void)
{
    size_t size;
    uint8_t *data = scratch_read(scratch_path("part"), &size);
    assert_int_equal(size, SIZE);
    assert_memory_equal(data, content, SIZE);
    free(data);
}

static void downloads(void **state)
{
    (void)state;
    test_random random = test_random_new();
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)test_random_bits(&random);
    server s = {.data = content, .size = SIZE, .ranges = true};
    assert_true(server_start(&s));
    assert_int_equal(download(&s, "file", 0, 0, SIZE), TN_OK);
    assert_content();
    assert_int_equal(last_done, SIZE);
    assert_int_equal(last_total, SIZE);

    assert_int_equal(download(&s, "file", 100000, content[0], SIZE), TN_OK); /* the rest only */
    assert_int_equal(s.last_start, 100000);
    assert_content();
    assert_true(first_done >= 100000);
    assert_int_equal(last_done, SIZE);
    assert_int_equal(last_total, SIZE);

    assert_int_equal(download(&s, "file", SIZE, content[0], SIZE), TN_OK); /* nothing is left: 416 */
    assert_content();

    s.ranges = false; /* the whole file comes again, and replaces what was there */
    assert_int_equal(download(&s, "file", 100000, (uint8_t)~content[0], SIZE), TN_OK);
    assert_content();

    s.ranges = true;
    s.cut = 50000;
    assert_int_equal(download(&s, "file", 100000, content[0], SIZE), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "go on where it stopped");
    struct stat info;
    stat(scratch_path("part"), &info);
    assert_int_equal(info.st_size, 150000); /* what came is kept */
    s.cut = 0;

    assert_int_equal(download(&s, "other", 0, 0, SIZE), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "404");
    assert_int_equal(download(&s, "file", 0, 0, SIZE / 2), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "larger than the 150000 bytes");
    server_stop(&s);
    assert_int_equal(download(&s, "file", 0, 0, SIZE), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "cannot fetch http://127.0.0.1");
}

/* ---- sets ---- */

static void use_scratch_cache(void)
{
    setenv("XDG_CACHE_HOME", scratch_path("cache"), 1);
}

static void wrong_files(void **state)
{
    (void)state;
    char url[1100];
    use_scratch_cache();
    assert_int_equal(tn_data_fetch("digits", NULL, NULL), TN_ERR_NAME);
    assert_failed(TN_ERR_NAME, "got 'digits'");
    assert_int_equal(tn_data_fetch(NULL, NULL, NULL), TN_ERR_NAME);
    assert_failed(TN_ERR_NAME, "got 'NULL'");
    snprintf(url, sizeof url, "file://%s", scratch_path("mirror"));
    setenv("TANSO_MIRROR", url, 1);
    mkdir(scratch_path("mirror"), 0777);
    assert_int_equal(tn_data_fetch("fashion-mnist", NULL, NULL), TN_ERR_IO);
    assert_failed(TN_ERR_IO, "train-images-idx3-ubyte.gz");
    test_write_bytes(scratch_path("mirror/train-images-idx3-ubyte.gz"), "something else", 14);
    assert_int_equal(tn_data_fetch("fashion-mnist", NULL, NULL), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT,
                  "expected the MD5 8d4fb7e6c68d591d4c3dfef9ec88bf0d, found 6c7ba9c5a141421e1c03cb9807c97c74");
    assert_int_not_equal(access(scratch_path("cache/tanso/fashion-mnist/train-images-idx3-ubyte.gz"), F_OK), 0);
    unsetenv("TANSO_MIRROR");
}

/* A mirror whose small file unpacks to more than any file of a set holds: no more than that is unpacked. */
static void bomb(void **state)
{
    (void)state;
    enum { PIECE = 1 << 20, TIMES = 300 };
    char url[1100];
    use_scratch_cache();
    uint8_t *zeros = calloc(1, PIECE), *packed = malloc(PIECE);
    z_stream z = {.next_in = zeros, .avail_in = PIECE, .next_out = packed, .avail_out = PIECE};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t size = PIECE - z.avail_out;
    deflateEnd(&z);
    uint8_t *file = malloc(TIMES * size); /* members one after another */
    for (int i = 0; i < TIMES; i++)
        memcpy(file + (size_t)i * size, packed, size);
    snprintf(url, sizeof url, "file://%s", scratch_path("mirror"));
    setenv("TANSO_MIRROR", url, 1);
    mkdir(scratch_path("mirror"), 0777);
    test_write_bytes(scratch_path("mirror/train-images-idx3-ubyte.gz"), file, TIMES * size);
    assert_int_equal(tn_data_fetch("mnist", NULL, NULL), TN_ERR_FORMAT);
    assert_failed(TN_ERR_FORMAT, "unpacks to more than 268435456 bytes");
    unsetenv("TANSO_MIRROR");
    unlink(scratch_path("mirror/train-images-idx3-ubyte.gz"));
    free(file);
    free(packed);
    free(zeros);
}

static void real_mnist(void **state)
{
    (void)state;
    static const char *const files[] = {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
                                        "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"};
    char path[2048], url[2048], name[128];
    const char *data = getenv("TANSO_DATA");
    snprintf(path, sizeof path, "%s/mnist/%s", data ? data : "", files[0]);
    if (!data || data[0] != '/' || access(path, R_OK) != 0)
        skip();
    use_scratch_cache();
    snprintf(url, sizeof url, "file://%s", data); /* has a subfolder mnist */
    setenv("TANSO_MIRROR", url, 1);
    mkdir(scratch_path("cache"), 0777);
    mkdir(scratch_path("cache/tanso"), 0777);
    mkdir(scratch_path("cache/tanso/mnist"), 0777);
    /* a part of the second file is there already, and a wrong part of the third */
    size_t size;
    snprintf(path, sizeof path, "%s/mnist/%s", data, files[1]);
    uint8_t *labels = scratch_read(path, &size);
    snprintf(name, sizeof name, "cache/tanso/mnist/%s.part", files[1]);
    test_write_bytes(scratch_path(name), labels, size / 2);
    snprintf(name, sizeof name, "cache/tanso/mnist/%s.part", files[2]);
    test_write_bytes(scratch_path(name), "wrong", 5);
    free(labels);
    int calls = 0;
    tn_status status = tn_data_fetch("mnist", note, &calls);
    assert_string_equal(tn_error(), "");
    assert_int_equal(status, TN_OK);
    assert_true(calls > 0);
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "cache/tanso/mnist/%s", files[i]);
        assert_int_equal(access(scratch_path(name), R_OK), 0);
        snprintf(name, sizeof name, "cache/tanso/mnist/%s.part", files[i]);
        assert_int_not_equal(access(scratch_path(name), F_OK), 0);
    }
    setenv("TANSO_MIRROR", "file:///nowhere", 1); /* all is there: nothing is fetched */
    assert_int_equal(tn_data_fetch("mnist", NULL, NULL), TN_OK);
    char *before = strdup(data);
    unsetenv("TANSO_DATA");
    tn_dataset *dataset = tn_mnist(TN_TEST);
    assert_int_equal(tn_dataset_size(dataset), 10000);
    tn_dataset_free(dataset);
    setenv("TANSO_DATA", before, 1);
    free(before);
    /* a damaged file is fetched again */
    snprintf(name, sizeof name, "cache/tanso/mnist/%s", files[3]);
    test_write_bytes(scratch_path(name), "damaged", 7);
    assert_int_equal(tn_data_fetch("mnist", NULL, NULL), TN_ERR_IO);
    assert_failed(TN_ERR_IO, files[3]);
    setenv("TANSO_MIRROR", url, 1);
    assert_int_equal(tn_data_fetch("mnist", NULL, NULL), TN_OK);
    unsetenv("TANSO_MIRROR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(downloads),
        cmocka_unit_test(wrong_files),
        cmocka_unit_test(bomb),
        cmocka_unit_test(real_mnist),
    };
    setenv("no_proxy", "127.0.0.1", 1); /* whatever the machine asks others through */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: no libcurl */
}

#endif
