/* SPDX-License-Identifier: MIT */
/*
 * Loads that fail half way: whatever is wrong with a snapshot, and wherever, the trainer, its model, optimizer, loader,
 * extensions and the random generator are as they were before, and the run goes on as if nobody had tried.
 */
#include "io/archive.h"
#include "support/device.h"
#include "support/random.h"
#include "trainer_setup.h"

#define MODEL "linear:4 batch_norm dropout:0.3 relu linear:3"

static test_random chance;

typedef struct run {
    setup s;
    tn_trainer *trainer;
} run;

static tn_status unlucky(const tn_serializer *s, void *user)
{
    int64_t last = 0;
    tn_status status = tn_serialize_int(s, "last", &last);
    bool fails = status == TN_OK && s->loading && *(bool *)user;
    *(bool *)user &= !fails; /* once */
    return fails ? TN_ERR_VALUE : status;
}

static const tn_extension_kind unlucky_kind = {.name = "unlucky", .serialize = unlucky};
static bool fails_bare;

static run run_new(int iterations)
{
    run r = {.s = setup_new(10, 3, MODEL, "adam:lr=0.05")};
    tn_trigger *stop = tn_early_stopping(.patience = 100, .max = TN_EVERY(iterations, TN_ITERATION));
    r.trainer = tn_trainer_new(tn_standard_updater(r.s.loader, r.s.optimizer), .stop = stop, .out = folder,
                               .quiet = true);
    tn_extend(r.trainer, tn_evaluator(r.s.test_loader, r.s.model));
    tn_extend(r.trainer, tn_exponential_shift("lr", 0.9), .trigger = TN_EVERY(1, TN_EPOCH));
    tn_extend(r.trainer, tn_micro_average("main/loss", "main/accuracy", "ratio"));
    tn_extend(r.trainer, tn_log_report(.every = TN_EVERY(3, TN_ITERATION)));
    tn_extend(r.trainer, tn_plot_report(TN_KEYS_OF("main/loss")));
    tn_extend(r.trainer, tn_extension_new(&unlucky_kind, &fails_bare));
    return r;
}

static void run_free(run *r)
{
    tn_trainer_free(r->trainer);
    setup_free(&r->s);
}

static void go(run *r)
{
    if (tn_trainer_run(r->trainer) != TN_OK)
        fail_msg("%s", tn_error());
}

/* Everything that a snapshot would hold. */
static tn_archive *state_of(const run *r)
{
    tn_archive *archive = tn_archive_new();
    tn_serializer root = {.archive = archive};
    if (tn_serialize_trainer(&root, "", r->trainer) != TN_OK)
        fail_msg("%s", tn_error());
    return archive;
}

static void assert_same(const tn_archive *a, const tn_archive *b, const char *after)
{
    if (tn_archive_count(a) != tn_archive_count(b) || a->text_count != b->text_count)
        fail_msg("after %s: %d arrays and %zu texts, %d and %zu before", after, tn_archive_count(b), b->text_count,
                 tn_archive_count(a), a->text_count);
    for (int i = 0; i < tn_archive_count(a); i++)
        TN_SCOPE {
            tn_array *x = tn_archive_array(a, i), *y = tn_archive_find(b, tn_archive_name(a, i));
            if (y && strncmp(tn_archive_name(a, i), "observation/", 12) == 0 && tn_item(x) == tn_item(y))
                continue; /* an array or a number */
            if (!y || tn_size(x) != tn_size(y) || tn_dtype_of(x) != tn_dtype_of(y) ||
                memcmp(test_data(x), test_data(y), (size_t)tn_size(x) * tn_dtype_size(tn_dtype_of(x))) != 0)
                fail_msg("after %s: another '%s'", after, tn_archive_name(a, i));
        }
    for (size_t i = 0; i < a->text_count; i++) {
        const char *text = tn_archive_text(b, a->texts[i].key);
        if (!text || strcmp(text, a->texts[i].value) != 0)
            fail_msg("after %s: another text '%s'", after, a->texts[i].key);
    }
}

/* The archive without one of its entries, arrays first, or with another array in its place. */
static void save_damaged(const tn_archive *whole, int which, bool replaced, const char *path)
{
    tn_archive *made = tn_archive_new();
    for (int i = 0; i < tn_archive_count(whole); i++)
        if (i != which)
            assert_int_equal(tn_archive_add(made, tn_archive_name(whole, i), tn_archive_array(whole, i)), TN_OK);
        else if (replaced)
            TN_SCOPE tn_archive_add(made, tn_archive_name(whole, i), tn_zeros(TN_SHAPE(3, 1, 2)));
    for (size_t i = 0; i < whole->text_count; i++)
        if ((int)i + tn_archive_count(whole) != which)
            assert_int_equal(tn_archive_set_text(made, whole->texts[i].key, whole->texts[i].value), TN_OK);
    assert_int_equal(tn_archive_save(made, path), TN_OK);
    tn_archive_free(made);
}

/* A load of a good snapshot with one entry that is missing or unfit; whether it was refused, as it need not be. */
static bool try_damaged(run *r, const tn_archive *whole, int which, bool replaced)
{
    char what[256];
    int arrays = tn_archive_count(whole);
    const char *name = which < arrays ? tn_archive_name(whole, which) : whole->texts[which - arrays].key;
    snprintf(what, sizeof what, "a load %s a good '%s'", replaced ? "with other than" : "without", name);
    const char *path = test_path(folder, "damaged.safetensors");
    save_damaged(whole, which, replaced, path);
    tn_archive *before = state_of(r);
    bool refused = tn_trainer_load(r->trainer, path) != TN_OK;
    if (refused) {
        assert_false(tn_ok());
        tn_clear_error();
        tn_archive *after = state_of(r);
        assert_same(before, after, what);
        tn_archive_free(after);
    }
    tn_archive_free(before);
    return refused;
}

/* `trained`: a run in its middle; else one whose model has no shapes yet. Each time another third of the entries, as
 * every file is waited for until it lies on the disk. */
static void check_damages(bool trained)
{
    char *path = strdup(test_path(folder, "whole.safetensors"));
    run source = run_new(8);
    go(&source);
    assert_int_equal(tn_trainer_save(source.trainer, path), TN_OK);
    run_free(&source);
    tn_archive *whole = tn_archive_load(path);
    int entries = tn_archive_count(whole) + (int)whole->text_count, refused = 0;
    for (int which = (int)test_random_int(&chance, 0, 2); which < entries; which += 3)
        for (int replaced = 0; replaced < (which < tn_archive_count(whole) ? 2 : 1); replaced++) {
            run r = run_new(5), other = run_new(5);
            if (trained)
                go(&r);
            bool was_refused = try_damaged(&r, whole, which, replaced);
            refused += was_refused;
            if (was_refused && !trained && which % 4 < 2) { /* it trains as one that never loaded anything */
                tn_archive *a = state_of(&r), *b = state_of(&other);
                assert_same(a, b, "a load that failed");
                tn_archive_free(a);
                tn_archive_free(b);
                tn_seed(11);
                go(&r);
                tn_seed(11);
                go(&other);
                for (int i = 0; i < tn_param_count(r.s.model); i++)
                    TN_SCOPE assert_memory_equal(test_data(tn_param(r.s.model, i)),
                                                 test_data(tn_param(other.s.model, i)),
                                                 (size_t)tn_size(tn_param(r.s.model, i)) * sizeof(float));
            }
            run_free(&other);
            run_free(&r);
        }
    assert_true(refused > entries / 4); /* most are, in both ways */
    tn_archive_free(whole);
    free(path);
    check_fine();
}

static void test_trained(void **state)
{
    (void)state;
    check_damages(true);
}

static void test_not_begun(void **state)
{
    (void)state;
    check_damages(false);
}

/* A function of the program's that fails without an error, behind everything else. */
static void test_bare_status(void **state)
{
    (void)state;
    char *path = strdup(test_path(folder, "whole.safetensors"));
    run source = run_new(8), r = run_new(5);
    go(&source);
    assert_int_equal(tn_trainer_save(source.trainer, path), TN_OK);
    go(&r);
    tn_archive *before = state_of(&r);
    fails_bare = true;
    assert_int_equal(tn_trainer_load(r.trainer, path), TN_ERR_VALUE);
    assert_false(fails_bare);
    check_latched(TN_ERR_VALUE, "latched no error");
    tn_archive *after = state_of(&r);
    assert_same(before, after, "a bare status");
    tn_archive_free(before);
    tn_archive_free(after);
    assert_int_equal(tn_trainer_load(r.trainer, path), TN_OK);
    run_free(&source);
    run_free(&r);
    free(path);
    check_fine();
}

/* The same of a loop of one's own: parameters, state and counts stay, of a network without shapes, too. */
static void test_own_loop(void **state)
{
    (void)state;
    for (int trained = 0; trained < 2; trained++) {
        char *path = strdup(test_path(folder, "own.safetensors"));
        setup source = setup_new(10, 3, "linear:3", "adam"), s = setup_new(10, 3, "linear:3", "adam");
        setup_make_params(&source);
        tn_array *W = tn_param(source.model, 0);
        TN_SCOPE tn_backward(tn_sum(tn_multiply(W, W)));
        assert_int_equal(tn_step(source.optimizer), TN_OK);
        assert_int_equal(tn_snapshot_save(path, source.model, source.optimizer, source.loader, NULL), TN_OK);
        if (trained)
            setup_make_params(&s);
        float before[12] = {0};
        if (trained)
            TN_SCOPE memcpy(before, test_data(tn_param(s.model, 0)), sizeof before);
        static const char *const keys[] = {"tanso.param_steps", "tanso.lr"}, *const values[] = {"1 x", "none"};
        for (int i = 0; i < 3; i++) {
            tn_archive *archive = tn_archive_load(path);
            const char *damaged = test_path(folder, "damaged.safetensors");
            if (i < 2)
                tn_archive_set_text(archive, keys[i], values[i]);
            else
                TN_SCOPE tn_archive_add(archive, "optimizer/0.W.v", tn_zeros(TN_SHAPE(3, 1, 2)));
            assert_int_equal(tn_archive_save(archive, damaged), TN_OK);
            tn_archive_free(archive);
            tn_generator generator = *tn_default_generator();
            assert_true(tn_snapshot_load(damaged, s.model, s.optimizer, s.loader) != TN_OK);
            tn_clear_error();
            assert_memory_equal(&generator, tn_default_generator(), sizeof generator);
            assert_int_equal(tn_param_count(s.model), trained ? 2 : 0);
            assert_int_equal(tn_optimizer_state_count(s.optimizer), 0);
            assert_int_equal(tn_optimizer_steps(s.optimizer), 0);
            if (trained)
                TN_SCOPE assert_memory_equal(test_data(tn_param(s.model, 0)), before, sizeof before);
        }
        assert_int_equal(tn_snapshot_load(path, s.model, s.optimizer, s.loader), TN_OK);
        setup_free(&source);
        setup_free(&s);
        free(path);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_trained, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_not_begun, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bare_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_own_loop, set_up, tear_down),
    };
    tn_set_compile(TN_COMPILE_NEVER); /* short runs, of many */
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
