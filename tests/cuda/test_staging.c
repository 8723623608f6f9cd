/* SPDX-License-Identifier: MIT */
/*
 * Transfers through pinned memory on a fake driver that does nothing before it must: how much may be under way before
 * the host waits, on one stream and on several, and that each piece of memory gets what was written to it last.
 */
#include "cuda/two_streams.h"
#include "support/random.h"

#define PIECE ((size_t)1 << 20)
enum { PIECES = 32, PIECES_FIRST = 8 };

static test_random common;

static unsigned roll(unsigned sides) { return (unsigned)(test_random_bits(&common) % sides); }

static tn_memory_info stats(void) { return tn_memory_stats(tn_cuda(0)); }

static void write_bytes(char *to, const void *from, size_t bytes)
{
    if (device->ops->write(device, to, from, bytes) != TN_OK)
        fail_msg("%s", tn_error());
}

/* Small writes, of several streams by turns, lie behind one another: none of them waits, and little memory is pinned
 * for them. */
static void test_small(void **state)
{
    (void)state;
    enum { WRITES = 1000, STREAMS = 3 };
    tn_stream *streams[STREAMS] = {NULL, a, b};
    static uint64_t back[STREAMS][WRITES][2];
    char *memory = device->ops->allocate(device, sizeof back);
    assert_non_null(memory);
    int waits = fake.count.event_waits;
    cuda->waits = TN__CUDA_WAITS_FORBIDDEN;
    for (uint64_t i = 0; i < WRITES; i++)
        for (uint64_t s = 0; s < STREAMS; s++) {
            uint64_t words[2] = {i * i + s, ~i};
            TN_ON_STREAM (streams[s])
                write_bytes(memory + (s * WRITES + i) * 16, words, sizeof words);
        }
    cuda->waits = TN__CUDA_WAITS_ALLOWED;
    assert_int_equal(fake.count.event_waits, waits);
    assert_true(waiting(a) >= WRITES && waiting(b) >= WRITES);
    assert_int_equal(stats().pinned, PIECES_FIRST * PIECE);
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    assert_int_equal(device->ops->read(device, back, memory, sizeof back), TN_OK);
    for (uint64_t s = 0; s < STREAMS; s++)
        for (uint64_t i = 0; i < WRITES; i++) {
            assert_int_equal(back[s][i][0], i * i + s);
            assert_int_equal(back[s][i][1], ~i);
        }
    device->ops->release(device, memory, sizeof back);
}

/* Where no more memory can be pinned, that is no failure: what there is does, with waits. */
static void test_no_more(void **state)
{
    (void)state;
    size_t bytes = 3 * PIECES_FIRST * PIECE;
    char *host = malloc(bytes), *memory = device->ops->allocate(device, bytes);
    assert_true(host && memory);
    for (size_t i = 0; i < bytes; i++)
        host[i] = (char)(i * 11 + (i >> 20));
    fake.no_pinned = true;
    int waits = fake.count.event_waits;
    write_bytes(memory, host, bytes);
    assert_int_equal(fake.count.event_waits, waits + 2 * PIECES_FIRST);
    fake.no_pinned = false;
    assert_true(tn_ok());
    assert_int_equal(stats().pinned, PIECES_FIRST * PIECE);
    char *back = malloc(bytes);
    assert_non_null(back);
    assert_int_equal(device->ops->read(device, back, memory, bytes), TN_OK);
    assert_memory_equal(back, host, bytes);
    device->ops->release(device, memory, bytes);
    free(back);
    free(host);
}

/* As much as there are pieces is under way at once; who writes more waits for the first of them alone. */
static void test_large(void **state)
{
    (void)state;
    size_t bytes = PIECES * PIECE;
    char *host = malloc(bytes), *memory = device->ops->allocate(device, bytes);
    assert_true(host && memory);
    for (size_t i = 0; i < bytes; i++)
        host[i] = (char)(i * 7 + (i >> 20));
    cuda->waits = TN__CUDA_WAITS_FORBIDDEN;
    TN_ON_STREAM (a) {
        write_bytes(memory, host, bytes);
        assert_int_equal(waiting(a), PIECES);
        memset(host, 'x', 16);
        assert_int_equal(device->ops->write(device, memory, host, 16), TN_ERR_STATE);
    }
    assert_failed(TN_ERR_STATE, "more is written than the pinned memory holds");
    cuda->waits = TN__CUDA_WAITS_ALLOWED;
    int waits = fake.count.event_waits;
    TN_ON_STREAM (a)
        write_bytes(memory, host, 16);
    assert_int_equal(fake.count.event_waits, waits + 1);
    assert_true(waiting(a) >= PIECES - 1);
    assert_int_equal(stats().pinned, PIECES * PIECE);
    char *back = malloc(bytes);
    assert_non_null(back);
    TN_ON_STREAM (a)
        assert_int_equal(device->ops->read(device, back, memory, bytes), TN_OK);
    assert_memory_equal(back, host, bytes);
    device->ops->release(device, memory, bytes);
    free(back);
    free(host);
}

/* A stream that waits for something long has its own pieces; another goes on with the rest. */
static void test_stalled(void **state)
{
    (void)state;
    static char host[PIECE];
    char *memory = device->ops->allocate(device, PIECE);
    assert_non_null(memory);
    TN_ON_STREAM (a)
        write_bytes(memory, host, 16);
    for (int i = 0; i < 2 * PIECES; i++)
        TN_ON_STREAM (b)
            write_bytes(memory, host, PIECE);
    assert_true(waiting(a) > 0);
    assert_true(waiting(b) > 0 && waiting(b) < PIECES);
    assert_int_equal(tn_synchronize(tn_cuda(0)), TN_OK);
    device->ops->release(device, memory, PIECE);
}

/* Writes and reads of any size on any stream, each of which has memory of its own. */
static void test_random_transfers(void **state)
{
    (void)state;
    enum { STREAMS = 3, ROUNDS = 600 };
    const size_t bytes = 5 * PIECE;
    tn_stream *streams[STREAMS] = {NULL, a, b};
    char *memory[STREAMS], *expected[STREAMS], *host = malloc(bytes);
    assert_non_null(host);
    for (int s = 0; s < STREAMS; s++) {
        memory[s] = device->ops->allocate(device, bytes);
        expected[s] = calloc(1, bytes);
        assert_true(memory[s] && expected[s]);
        TN_ON_STREAM (streams[s])
            write_bytes(memory[s], expected[s], bytes);
    }
    fake.dice = roll;
    for (int i = 0; i < ROUNDS; i++) {
        static const size_t most[] = {1, 100, 5000, 700 << 10, 5 << 20};
        size_t limit = most[roll(i % 20 ? 3 : 5)], at = test_random_bits(&common) % bytes;
        size_t part = 1 + test_random_bits(&common) % limit, s = roll(STREAMS);
        part = part < bytes - at ? part : bytes - at;
        TN_ON_STREAM (streams[s]) {
            if (roll(8)) {
                memset(expected[s] + at, (int)roll(256), part);
                memcpy(host, expected[s] + at, part);
                write_bytes(memory[s] + at, host, part);
                memset(host, 0xee, part); /* the caller's again */
            } else {
                assert_int_equal(device->ops->read(device, host, memory[s] + at, part), TN_OK);
                assert_memory_equal(host, expected[s] + at, part);
            }
        }
    }
    fake.dice = NULL;
    for (int s = 0; s < STREAMS; s++) {
        TN_ON_STREAM (streams[s])
            assert_int_equal(device->ops->read(device, host, memory[s], bytes), TN_OK);
        assert_memory_equal(host, expected[s], bytes);
        device->ops->release(device, memory[s], bytes);
        free(expected[s]);
    }
    free(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(test_small), TEST(test_no_more), TEST(test_large), TEST(test_stalled),
                                       TEST(test_random_transfers)};
    if (test_about_cpu("a fake driver, which a device that is open already would not use"))
        return TEST_SKIPPED;
    common = test_random_new();
    if (!two_streams_open())
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
