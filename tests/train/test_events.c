/* SPDX-License-Identifier: MIT */
/* TensorBoard's files, read by a reader that is written from the format's description. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "support/folder.h"
#include "support/fresh_folder.h"
#include "support/latched.h"
#include "support/random.h"
#include "train/events.h"

static test_random chance;

/* By a table, as the writer goes bit by bit. */
static uint32_t checksum(const uint8_t *bytes, size_t count)
{
    static uint32_t table[256];
    for (uint32_t i = 0; i < 256 && !table[255]; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++)
            c = c & 1 ? 0x82f63b78 ^ c >> 1 : c >> 1;
        table[i] = c;
    }
    uint32_t c = ~0u;
    while (count--)
        c = table[(c ^ *bytes++) & 255] ^ c >> 8;
    c = ~c;
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

typedef struct event {
    double time;
    int64_t step;
    char version[32], tag[64];
    float value;
    bool has_value, starts;
} event;

static uint64_t varint(const uint8_t **at)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        value |= (uint64_t)(**at & 127) << shift;
        if (!(*(*at)++ & 128))
            return value;
    }
}

/* A message by the fields that an Event, its Summary, the Summary's Value and its SessionLog have; `depth` says which.
 */
enum { EVENT, SUMMARY, VALUE, SESSION };
static void read_message(const uint8_t *at, const uint8_t *end, int depth, event *e)
{
    while (at < end) {
        uint64_t tag = varint(&at);
        int field = (int)(tag >> 3), wire = (int)(tag & 7);
        if (wire == 0) {
            uint64_t value = varint(&at);
            if (depth == EVENT && field == 2)
                e->step = (int64_t)value;
            if (depth == SESSION && field == 1)
                e->starts = value == 1;
        } else if (wire == 1) {
            assert_true(depth == EVENT && field == 1);
            memcpy(&e->time, at, 8);
            at += 8;
        } else if (wire == 5) {
            assert_true(depth == VALUE && field == 2);
            memcpy(&e->value, at, 4);
            e->has_value = true;
            at += 4;
        } else {
            assert_int_equal(wire, 2);
            uint64_t size = varint(&at);
            assert_true(size <= (uint64_t)(end - at));
            if (depth == EVENT && field == 3)
                snprintf(e->version, sizeof e->version, "%.*s", (int)size, (const char *)at);
            else if (depth == EVENT && field == 5)
                read_message(at, at + size, SUMMARY, e);
            else if (depth == EVENT && field == 7)
                read_message(at, at + size, SESSION, e);
            else if (depth == SUMMARY && field == 1)
                read_message(at, at + size, VALUE, e);
            else if (depth == VALUE && field == 1)
                snprintf(e->tag, sizeof e->tag, "%.*s", (int)size, (const char *)at);
            else
                fail_msg("field %d at depth %d", field, depth);
            at += size;
        }
    }
    assert_ptr_equal(at, end);
}

/* All events of a file; gives their number. */
static int read_events(const char *path, event *events, int most)
{
    size_t size;
    uint8_t *data = (uint8_t *)test_read(path, &size), *at = data;
    assert_non_null(data);
    int count = 0;
    while (at < data + size) {
        uint64_t length;
        uint32_t check;
        assert_true(data + size - at >= 16 && count < most);
        memcpy(&length, at, 8);
        memcpy(&check, at + 8, 4);
        assert_int_equal(check, checksum(at, 8));
        assert_true(length + 16 <= (uint64_t)(data + size - at));
        memcpy(&check, at + 12 + length, 4);
        assert_int_equal(check, checksum(at + 12, length));
        events[count] = (event){0};
        read_message(at + 12, at + 12 + length, EVENT, &events[count++]);
        at += length + 16;
    }
    free(data);
    return count;
}

static void test_known_checksum(void **state)
{
    (void)state;
    uint32_t masked = checksum((const uint8_t *)"123456789", 9), crc = masked - 0xa282ead8u; /* RFC 3720's check */
    assert_int_equal(crc << 15 | crc >> 17, 0xe3069283u);
}

static void test_values(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    double values[COUNT];
    int64_t steps[COUNT];
    for (int resumed = 0; resumed < 2; resumed++) {
        tn__events events = {0};
        assert_int_equal(tn__events_open(&events, test_path(folder, "sub"), resumed ? 1234567 : 0), TN_OK);
        for (int i = 0; i < COUNT; i++) {
            values[i] = i == 50 ? NAN : i == 51 ? -INFINITY : test_random_double(&chance) - 0.5;
            steps[i] = test_random_int(&chance, 0, INT64_MAX);
            assert_int_equal(tn__events_scalar(&events, i % 2 ? "main/loss" : "größe", values[i], steps[i]), TN_OK);
        }
        assert_int_equal(tn__events_flush(&events), TN_OK);
        event read[COUNT + 3];
        assert_int_equal(read_events(events.path, read, COUNT + 3), COUNT + 1 + resumed);
        assert_string_equal(read[0].version, "brain.Event:2");
        assert_true(!resumed || (read[1].starts && read[1].step == 1234567));
        for (int i = 0; i < COUNT; i++) {
            const event *e = &read[i + 1 + resumed];
            assert_true(e->has_value && e->step == steps[i] && e->time > 1.6e9);
            assert_string_equal(e->tag, i % 2 ? "main/loss" : "größe");
            assert_true(isnan(values[i]) ? isnan(e->value) : e->value == (float)values[i]);
        }
        tn__events_close(&events);
    }
}

static void test_unwritable(void **state)
{
    (void)state;
    tn__events events = {0};
    test_write(test_path(folder, "file"), "");
    assert_int_not_equal(tn__events_open(&events, test_path(folder, "file"), 0), TN_OK);
    assert_failed(TN_ERR_IO, "file");
    tn__events_close(&events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_checksum),
        cmocka_unit_test_setup_teardown(test_values, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unwritable, set_up, tear_down),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
