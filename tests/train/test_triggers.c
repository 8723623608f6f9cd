/* SPDX-License-Identifier: MIT */
/* Triggers: when they fire, against what Chainer 7.8.1 does, and that they go on after saving and restoring. */
#include "train/parts.h"
#include "trainer_setup.h"

/* Ten samples, of which an iteration takes several: with three, as Chainer's iterator of minibatches of three, which go
 * over an epoch's end. */
typedef struct ten {
    tn_loader *loader;
    int taken;
    tn_trainer *trainer;
} ten;

static tn_status take_some(tn_updater *updater, void *user)
{
    for (int i = 0; i < *(int *)user; i++)
        take_one(updater, NULL);
    return tn_error_code();
}

static void ten_begin(ten *t, int taken)
{
    t->loader = tn_loader_new(setup_data(10, 1), .batch = 1);
    t->taken = taken;
    t->trainer = tn_trainer_new(tn_updater_of(take_some, t->loader, NULL, .user = &t->taken), .out = folder);
}

static void ten_end(ten *t)
{
    tn_trainer_free(t->trainer);
    tn_loader_free(t->loader);
    check_fine();
}

static void iterate(ten *t)
{
    assert_int_equal(tn_updater_update(tn_trainer_updater(t->trainer)), TN_OK);
    tn_observation_clear(tn_trainer_observation(t->trainer));
}

/* A copy of what a trigger remembers, in a trigger made alike. */
static void move_state(tn_trigger *from, tn_trigger *to)
{
    tn_archive *archive = tn_archive_new();
    assert_int_equal(tn_serialize_trigger(&(tn_serializer){.archive = archive}, "trigger", from), TN_OK);
    assert_int_equal(tn_serialize_trigger(&(tn_serializer){.archive = archive, .loading = true}, "trigger", to), TN_OK);
    tn_archive_free(archive);
}

/* The iterations at which a trigger fires, as text, when it is asked in each; from iteration `moved` on another one
 * goes on with its state. */
static void firings(ten *t, int iterations, tn_trigger *trigger, tn_trigger *successor, int moved, char *text)
{
    *text = 0;
    for (int i = 1; i <= iterations; i++) {
        iterate(t);
        if (i == moved) {
            move_state(trigger, successor);
            tn_trigger_free(trigger);
            trigger = successor;
        }
        if (tn_trigger_fire(trigger, t->trainer))
            sprintf(text + strlen(text), "%s%d", *text ? " " : "", i);
    }
    tn_trigger_free(trigger);
}

#define ASSERT_FIRINGS(taken_, iterations, make, expected) \
    for (int moved_ = 0; moved_ <= (iterations); moved_++) { \
        ten t_; \
        char text_[256]; \
        ten_begin(&t_, taken_); \
        firings(&t_, iterations, make, moved_ ? make : NULL, moved_, text_); \
        assert_string_equal(text_, expected); \
        ten_end(&t_); \
    }

static void test_progress(void **state)
{
    (void)state;
    static const struct {
        double detail, previous;
        int epoch, is_new, position;
    } row[] = {{.3, 0, 0, 0, 3},   {.6, .3, 0, 0, 6},   {.9, .6, 0, 0, 9},   {1.2, .9, 1, 1, 2},  {1.5, 1.2, 1, 0, 5},
               {1.8, 1.5, 1, 0, 8}, {2.1, 1.8, 2, 1, 1}, {2.4, 2.1, 2, 0, 4}, {2.7, 2.4, 2, 0, 7}, {3, 2.7, 3, 1, 0}};
    ten t;
    ten_begin(&t, 3);
    for (int i = 0; i < 10; i++) {
        iterate(&t);
        tn_progress at = tn_trainer_progress(t.trainer);
        assert_int_equal(at.iteration, i + 1);
        assert_float_equal(tn_trainer_epoch_detail(t.trainer), row[i].detail, 1e-15);
        assert_int_equal(tn_trainer_epoch(t.trainer), row[i].epoch);
        assert_int_equal(tn_trainer_is_new_epoch(t.trainer), row[i].is_new);
        assert_int_equal(at.samples % at.size, row[i].position);
        assert_float_equal((double)at.previous_samples / (double)at.size, row[i].previous, 1e-15);
    }
    ten_end(&t);
}

static void test_intervals(void **state)
{
    (void)state;
    ASSERT_FIRINGS(3, 10, TN_EVERY(1, TN_EPOCH), "4 7 10")
    ASSERT_FIRINGS(3, 10, TN_EVERY(2, TN_EPOCH), "7")
    ASSERT_FIRINGS(3, 10, TN_EVERY(0.5, TN_EPOCH), "2 4 5 7 9 10")
    ASSERT_FIRINGS(3, 10, TN_EVERY(3, TN_ITERATION), "3 6 9")
    ASSERT_FIRINGS(3, 10, tn_at_points(TN_EPOCH, 1, 2.5), "4 9")
    ASSERT_FIRINGS(3, 10, tn_at_points(TN_ITERATION, 2, 5), "2 5")
    ASSERT_FIRINGS(3, 10, tn_at_points(TN_EPOCH, 0, 2.1, 2.2), "7 8")
    ASSERT_FIRINGS(3, 10, tn_once(), "1")
}

/* Chainer divides floats, and misses iterations 3, 5, 9, ... here. */
static void test_exact_fractions(void **state)
{
    (void)state;
    ASSERT_FIRINGS(1, 20, TN_EVERY(0.1, TN_EPOCH), "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20")
    ASSERT_FIRINGS(1, 20, TN_EVERY(1.0 / 3, TN_EPOCH), "4 7 10 14 17 20")
    ASSERT_FIRINGS(1, 20, TN_EVERY(0.7, TN_EPOCH), "7 14")
    for (int i = 0; i < 1000; i++) { /* any fraction of small numbers is found again */
        int64_t p = 1 + (int64_t)(check_bits() % 9999), q = 1 + (int64_t)(check_bits() % 9999);
        tn__fraction found;
        assert_true(tn__fraction_of((double)p / (double)q, &found));
        assert_true(found.p * q == p * found.q);
        int64_t count = (int64_t)(check_bits() >> 12), size = 1 + (int64_t)(check_bits() >> 40);
        __int128 multiples = (__int128)count * q / ((__int128)p * size);
        assert_true(tn__fraction_multiples(found, count, size) == (int64_t)multiples);
        assert_true(tn__fraction_reached(found, count, size) == (multiples > 0));
    }
}

/* Asked now and then, it fires at the next asking after a multiple. */
static void test_asked_seldom(void **state)
{
    (void)state;
    ten t;
    char text[64] = "";
    ten_begin(&t, 3);
    tn_trigger *epoch = TN_EVERY(1, TN_EPOCH);
    for (int i = 1; i <= 14; i++) {
        iterate(&t);
        if (i % 5 == 0 && tn_trigger_fire(epoch, t.trainer))
            sprintf(text + strlen(text), "%d ", i);
    }
    assert_string_equal(text, "5 10 ");
    tn_trigger_free(epoch);
    ten_end(&t);
}

static void test_once_again(void **state)
{
    (void)state;
    ten t;
    ten_begin(&t, 1);
    iterate(&t);
    for (int on_resume = 0; on_resume < 2; on_resume++) {
        tn_trigger *first = tn_once(.on_resume = on_resume), *second = tn_once(.on_resume = on_resume);
        assert_true(tn_trigger_fire(first, t.trainer));
        assert_false(tn_trigger_fire(first, t.trainer));
        move_state(first, second);
        assert_int_equal(tn_trigger_fire(second, t.trainer), on_resume);
        assert_false(tn_trigger_fire(second, t.trainer));
        tn_trigger_free(first);
        tn_trigger_free(second);
    }
    ten_end(&t);
}

static void test_time(void **state)
{
    (void)state;
    static const double asked[] = {0.5, 1.9, 2.0, 2.1, 9.0, 9.1, 9.2, 9.3, 10.5};
    static const char fires[] = "nnnyyyyny";
    for (int moved = 0; moved < 9; moved++) {
        ten t;
        ten_begin(&t, 1);
        tn_trigger *trigger = tn_every_seconds(2);
        for (int i = 0; i < 9; i++) {
            t.trainer->elapsed_before = asked[i];
            if (i == moved) {
                tn_trigger *successor = tn_every_seconds(2);
                move_state(trigger, successor);
                tn_trigger_free(trigger);
                trigger = successor;
            }
            assert_int_equal(tn_trigger_fire(trigger, t.trainer), fires[i] == 'y');
        }
        tn_trigger_free(trigger);
        ten_end(&t);
    }
}

/* ---- by values ---- */

/* Which of the values, of iterations from 1 on (NaN: none is reported), makes the trigger fire. Every other value is an
 * array on the device. */
static void value_firings(tn_trigger *(*make)(void), const double *value, int count, bool ask_at_0, int moved,
                          char *text)
{
    ten t;
    ten_begin(&t, 1);
    tn_trigger *trigger = make();
    *text = 0;
    if (ask_at_0)
        assert_false(tn_trigger_fire(trigger, t.trainer));
    for (int i = 1; i <= count; i++)
        TN_SCOPE {
            iterate(&t);
            tn_observation *seen = tn_trainer_observation(t.trainer);
            if (!isnan(value[i - 1]) && i % 2)
                tn_observation_set_number(seen, "main/loss", value[i - 1], 0);
            else if (!isnan(value[i - 1]))
                tn_observation_set(seen, "main/loss", tn_scalar(value[i - 1], .dtype = TN_FLOAT32), 0);
            if (i == moved) {
                tn_trigger *successor = make();
                move_state(trigger, successor);
                tn_trigger_free(trigger);
                trigger = successor;
            }
            if (tn_trigger_fire(trigger, t.trainer))
                sprintf(text + strlen(text), "%s%d", *text ? " " : "", i);
        }
    tn_trigger_free(trigger);
    ten_end(&t);
}

#define ASSERT_VALUE_FIRINGS(make, at_0, expected, ...) \
    for (int moved_ = 0; moved_ <= TN__COUNT(double, __VA_ARGS__); moved_++) { \
        char text_[256]; \
        value_firings(make, (double[]){__VA_ARGS__}, TN__COUNT(double, __VA_ARGS__), at_0, moved_, text_); \
        assert_string_equal(text_, expected); \
    }

static tn_trigger *max_of_2(void) { return tn_max_value("main/loss", .check = TN_EVERY(2, TN_ITERATION)); }
static tn_trigger *min_of_2(void) { return tn_min_value("main/loss", .check = TN_EVERY(2, TN_ITERATION)); }

static void test_best_value(void **state)
{
    (void)state;
    ASSERT_VALUE_FIRINGS(max_of_2, false, "2 4 8", 1, 2, 3, 4, 0, 0, 9, 9, 9, 9)
    ASSERT_VALUE_FIRINGS(min_of_2, false, "2 4", 3, 3, 1, 1, 1, 1)
    /* Without a value since the last check Chainer fails: the check is left out, the summary goes on. */
    ASSERT_VALUE_FIRINGS(max_of_2, false, "2 6", 1, 2, NAN, NAN, NAN, 2, 1, NAN)
    /* A mean that is NaN is no best value, which nothing could be better than. */
    ASSERT_VALUE_FIRINGS(max_of_2, false, "4", INFINITY, -INFINITY, 1, 2, 0, 0)
}

static tn_trigger *early_3(void) { return tn_early_stopping(.check = TN_EVERY(1, TN_ITERATION)); }
static tn_trigger *early_max(void)
{
    return tn_early_stopping(.check = TN_EVERY(1, TN_ITERATION), .mode = TN_BETTER_GREATER);
}
static tn_trigger *early_of_2(void) { return tn_early_stopping(.check = TN_EVERY(2, TN_ITERATION), .patience = 1); }
static tn_trigger *early_bound(void)
{
    return tn_early_stopping(.check = TN_EVERY(1, TN_ITERATION), .max = TN_EVERY(2, TN_ITERATION));
}

static void test_early_stopping(void **state)
{
    (void)state;
    ASSERT_VALUE_FIRINGS(early_3, true, "5", 5, 4, 4, 4, 4)
    ASSERT_VALUE_FIRINGS(early_3, true, "8", 5, 4, 6, 7, 3, 8, 9, 10)
    ASSERT_VALUE_FIRINGS(early_3, true, "5", 5, NAN, 6, 7, 8)
    ASSERT_VALUE_FIRINGS(early_max, true, "5", 1, 2, 2, 2, 2)
    ASSERT_VALUE_FIRINGS(early_of_2, true, "4", 1, 3, 2, 4)
    ASSERT_VALUE_FIRINGS(early_bound, true, "2 4", 5, 4, 3, 2)
    tn_trigger *by_name = tn_early_stopping(.monitor = "validation/main/accuracy", .max = TN_EVERY(7, TN_EPOCH));
    assert_float_equal(tn_trigger_length(by_name).count, 7, 0);
    assert_int_equal(tn_trigger_length(by_name).unit, TN_EPOCH);
    tn_trigger_free(by_name);
}

/* ---- what is wrong ---- */

static bool at_three(tn_trainer *trainer, void *user)
{
    ++*(int *)user;
    return tn_trainer_iteration(trainer) == 3;
}

static void assert_bad(tn_trigger *trigger, const char *text)
{
    assert_int_equal(tn_trigger_status(trigger), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, text);
    ten t;
    ten_begin(&t, 1);
    assert_false(tn_trigger_fire(trigger, t.trainer));
    check_latched(TN_ERR_VALUE, text);
    tn_trigger_free(trigger);
    ten_end(&t);
}

static void test_bad(void **state)
{
    (void)state;
    assert_bad(TN_EVERY(0, TN_EPOCH), "more than 0 epochs");
    assert_bad(TN_EVERY(NAN, TN_EPOCH), "more than 0 epochs");
    assert_bad(TN_EVERY(INFINITY, TN_EPOCH), "at most 1e9");
    assert_bad(TN_EVERY(1.5, TN_ITERATION), "whole ones");
    assert_bad(TN_EVERY(1, (tn_unit)2), "TN_ITERATION or TN_EPOCH");
    assert_bad(tn_at_points(TN_EPOCH, 1, -1), "point 1");
    assert_bad(tn_at_points_of(TN_EPOCH, 0, NULL), "at least one point");
    assert_bad(tn_at_points(TN_ITERATION, 0), "above 0");
    assert_bad(tn_every_seconds(0), "more than 0 seconds");
    assert_bad(tn_max_value("", .check = TN_EVERY(1, TN_EPOCH)), "key");
    assert_bad(tn_max_value("a", .check = TN_EVERY(0, TN_EPOCH)), "more than 0 epochs");
    assert_bad(tn_early_stopping(.patience = 0, .check = TN_EVERY(1, TN_EPOCH)), "1 look or more");
    assert_bad(tn_trigger_of(NULL, NULL), "a function");
    ten t;
    int asked = 0;
    char text[64];
    ten_begin(&t, 1);
    firings(&t, 5, tn_trigger_of(at_three, &asked), NULL, 0, text);
    assert_string_equal(text, "3");
    assert_int_equal(asked, 5);
    assert_false(tn_trigger_fire(NULL, t.trainer));
    ten_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_progress, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_intervals, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_exact_fractions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_asked_seldom, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_once_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_best_value, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_early_stopping, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
