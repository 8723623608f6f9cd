/* SPDX-License-Identifier: MIT */
/* Schedules in runs: which iteration has which value, also after a resumption, where Chainer 7.8.1 had others. */
#include <math.h>
#include "support/random.h"
#include "trainer_setup.h"

static test_random chance;

enum { MOST = 64 };

/* The value that each iteration is made with. */
typedef struct used {
    double lr[MOST + 1], momentum[MOST + 1];
} used;

static used *noting;
static tn_status step(tn_updater *updater, void *user)
{
    tn_progress at = tn_updater_progress(updater);
    tn_optimizer *optimizer = tn_updater_optimizer(updater, "main");
    noting->lr[at.iteration + 1] = tn_optimizer_lr(optimizer);
    return take_one(updater, user);
}

typedef tn_extension *(*shift_maker)(void);

/* A run to iteration `stop`, from a snapshot at `from` (0: from the beginning), with a snapshot at its end. 12 samples
 * in threes: 4 iterations an epoch. */
static void run(used *u, shift_maker make, tn_trigger *trigger, int64_t from, int64_t stop)
{
    setup s = setup_new(12, 3, "linear:3", "momentum:lr=0.1");
    setup_make_params(&s);
    noting = u;
    tn_trainer *trainer = tn_trainer_new(tn_updater_of(step, s.loader, s.optimizer),
                                         .stop = TN_EVERY((double)stop, TN_ITERATION), .out = folder, .quiet = true);
    assert_int_equal(tn_extend(trainer, make(), .trigger = trigger), TN_OK);
    char name[64];
    snprintf(name, sizeof name, "at_%d.safetensors", (int)from);
    if (from)
        assert_int_equal(tn_trainer_load(trainer, test_path(folder, name)), TN_OK);
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
    snprintf(name, sizeof name, "at_%d.safetensors", (int)stop);
    assert_int_equal(tn_trainer_save(trainer, test_path(folder, name)), TN_OK);
    tn_trainer_free(trainer);
    setup_free(&s);
}

static void assert_lrs(const used *u, int count, const double *expected)
{
    for (int i = 1; i <= count; i++)
        if (!(fabs(u->lr[i] - expected[i - 1]) < 1e-9))
            fail_msg("iteration %d: expected %g, got %.9g", i, expected[i - 1], u->lr[i]);
}
#define LRS(u, ...) assert_lrs(u, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static tn_extension *exponential(void) { return tn_exponential_shift("lr", 0.5); }
static tn_extension *multistep(void) { return tn_multistep_shift("lr", 0.1, TN_POINTS(2, 5)); }
static tn_extension *warmup(void) { return tn_warmup_shift("lr", 0.01, 5, .first = 0.1); }
static tn_extension *to_zero(void) { return tn_polynomial_shift("lr", 2, 5, .target = 0.01); }
static tn_extension *cosine(void)
{
    return tn_cosine_shift("lr", .length = {20, TN_ITERATION}, .warmup = 4, .last = 0.001);
}
static tn_extension *cycle(void) { return tn_one_cycle_shift("lr", .length = {5, TN_EPOCH}); }

/* One for an epoch takes effect in the iteration after it. */
static void test_effect(void **state)
{
    (void)state;
    used u = {0};
    run(&u, exponential, TN_EVERY(1, TN_EPOCH), 0, 9);
    LRS(&u, .1, .1, .1, .1, .05, .05, .05, .05, .025);
    run(&u, multistep, TN_EVERY(1, TN_ITERATION), 0, 8);
    LRS(&u, .1, .1, .01, .01, .01, .001, .001, .001);
    run(&u, warmup, TN_EVERY(1, TN_ITERATION), 0, 8);
    LRS(&u, .01, .028, .046, .064, .082, .1, .1, .1);
    run(&u, to_zero, TN_EVERY(1, TN_ITERATION), 0, 8);
    LRS(&u, .1, .064, .036, .016, .01, .01, .01, .01);
    run(&u, exponential, tn_at_points(TN_EPOCH, 1), 0, 9);
    LRS(&u, .1, .1, .1, .1, .05, .05, .05, .05, .05);
}

/* Every kind, stopped anywhere: the same values as of the whole run. */
static void test_resumed(void **state)
{
    (void)state;
    static const shift_maker makers[] = {exponential, multistep, warmup, to_zero, cosine, cycle};
    for (size_t k = 0; k < sizeof makers / sizeof *makers; k++)
        for (int points = 0; points < 3; points++) {
            used whole = {0}, parts = {0};
            tn_trigger *trigger[2];
            for (int i = 0; i < 2; i++)
                trigger[i] = points == 0   ? TN_EVERY(1, TN_ITERATION)
                             : points == 1 ? TN_EVERY(1, TN_EPOCH)
                                           : tn_at_points(TN_EPOCH, 1);
            run(&whole, makers[k], trigger[0], 0, 20);
            int64_t at = test_random_int(&chance, 1, 19);
            run(&parts, makers[k], trigger[1], 0, at);
            trigger[0] = points == 0   ? TN_EVERY(1, TN_ITERATION)
                         : points == 1 ? TN_EVERY(1, TN_EPOCH)
                                       : tn_at_points(TN_EPOCH, 1);
            run(&parts, makers[k], trigger[0], at, 20);
            for (int i = 1; i <= 20; i++)
                if (whole.lr[i] != parts.lr[i])
                    fail_msg("kind %zu, stopped at %d, iteration %d: %g, not %g", k, (int)at, i, parts.lr[i],
                             whole.lr[i]);
        }
}

/* By the place in the run, whatever calls it. */
static void test_placed(void **state)
{
    (void)state;
    used u = {0};
    run(&u, cosine, TN_EVERY(1, TN_ITERATION), 0, 20);
    assert_true(u.lr[1] == 0 && fabs(u.lr[3] - .05) < 1e-12 && fabs(u.lr[5] - .1) < 1e-12);
    assert_true(fabs(u.lr[13] - (.1 + .001) / 2) < 1e-12); /* half way between 4 and 20 */
    run(&u, cycle, TN_EVERY(1, TN_ITERATION), 0, 20);
    assert_true(fabs(u.lr[1] - .1 / 25) < 1e-12 && fabs(u.lr[7] - .1) < 1e-12); /* 6 of 20 iterations up */
}

/* ---- plateaus ---- */

static const double *losses;
static tn_status observe(tn_trainer *trainer, void *user)
{
    (void)user;
    double loss = losses[tn_trainer_iteration(trainer) - 1];
    return tn_observation_set_number(tn_trainer_observation(trainer), "main/loss", loss, 0);
}

static void plateau_run(used *u, const double *values, int count, tn_extension *plateau)
{
    setup s = setup_new(12, 3, "linear:3", "sgd:lr=1");
    noting = u;
    losses = values;
    tn_trainer *trainer = tn_trainer_new(tn_updater_of(step, s.loader, s.optimizer),
                                         .stop = TN_EVERY(count, TN_ITERATION), .out = folder, .quiet = true);
    tn_extend_function(trainer, observe, NULL, .name = "observe", .priority = 300);
    tn_extend(trainer, plateau);
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* PyTorch 2's ReduceLROnPlateau(factor=0.5, patience=1) and with cooldown=2 over these losses, by hand. */
static void test_plateau(void **state)
{
    (void)state;
    used u = {0};
    const double values[] = {5, 4, 4, 4, 4, 4, 3, 3, 3, 3};
    plateau_run(
        &u, values, 10,
        tn_reduce_on_plateau("lr", "main/loss", .check = TN_EVERY(1, TN_ITERATION), .factor = 0.5, .patience = 1));
    LRS(&u, 1, 1, 1, 1, .5, .5, .25, .25, .25, .125);
    plateau_run(&u, values, 10,
                tn_reduce_on_plateau("lr", "main/loss", .check = TN_EVERY(1, TN_ITERATION), .factor = 0.5,
                                     .patience = 1, .cooldown = 2, .least = 0.3));
    LRS(&u, 1, 1, 1, 1, .5, .5, .5, .5, .5, .3);
    /* a mean of two: 4.5, 4, 4, 3.5 */
    plateau_run(
        &u, values, 8,
        tn_reduce_on_plateau("lr", "main/loss", .check = TN_EVERY(2, TN_ITERATION), .factor = 0.1, .patience = 0));
    LRS(&u, 1, 1, 1, 1, 1, 1, .1, .1);
}

static void test_told(void **state)
{
    (void)state;
    static const struct {
        const char *attribute;
        double rate;
        tn_status status;
        const char *words;
    } bad[] = {{"lrr", .5, TN_ERR_NAME, "did you mean 'lr'"},
               {"momentum", 2, TN_ERR_VALUE, "and < 1"},        {NULL, 1, TN_ERR_VALUE, "attribute"},
               {"lr", -1, TN_ERR_VALUE, "a rate of 0 or more"}, {"lr", NAN, TN_ERR_VALUE, "a rate of 0 or more"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setup s = setup_new(12, 3, "linear:3", "momentum:lr=0.1");
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer),
                                             .stop = TN_EVERY(3, TN_ITERATION), .out = folder, .quiet = true);
        if (tn_extend(trainer, tn_exponential_shift(bad[i].attribute, bad[i].rate)) == TN_OK)
            assert_int_not_equal(tn_trainer_run(trainer), TN_OK);
        check_latched(bad[i].status, bad[i].words);
        tn_trainer_free(trainer);
        setup_free(&s);
    }
    setup s = setup_new(12, 3, "linear:3", "momentum:lr=0.1");
    static const int stop = 0;
    tn_trainer *trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer), .stop_flag = &stop,
                                         .out = folder, .quiet = true);
    tn_extend(trainer, tn_cosine_shift("lr"));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "or this a .length");
    tn_trainer_free(trainer);
    setup_free(&s);
}
/* Two of one attribute: told at the start, where the second would begin with what the first has set, or they would undo
 * one another, in any order; not of two attributes, of a warm-up that comes last, and of those at points. */
static void test_beside(void **state)
{
    (void)state;
    static const struct {
        int first, second;  /* of `made` below */
        const char *one, *other; /* what the error names; NULL: there is none */
    } rows[] = {
        {0, 1, "CosineShift", "MultistepShift"}, {1, 0, "MultistepShift", "CosineShift"},
        {2, 1, "WarmupShift", "MultistepShift"}, {2, 3, "WarmupShift", "MultistepShift"},
        {3, 2, NULL, NULL},                      {1, 2, NULL, NULL},
        {4, 5, NULL, NULL},                      {0, 8, "CosineShift", "LinearShift"},
        {8, 5, "LinearShift", "ExponentialShift"},
        {1, 5, "MultistepShift", "ExponentialShift"}, {0, 6, NULL, NULL},
        {1, 1, "MultistepShift", "MultistepShift"},   {7, 3, "LinearShift", "MultistepShift"},
        {9, 1, "ReduceOnPlateau", "MultistepShift"},  {1, 9, "MultistepShift", "ReduceOnPlateau"},
        {2, 9, NULL, NULL},                           {9, 2, NULL, NULL}, /* a warm-up ends */
        {9, 9, NULL, NULL},                           {9, 4, NULL, NULL}, {6, 9, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setup s = setup_new(12, 3, "linear:3", "momentum:lr=0.1");
        setup_make_params(&s);
        used u = {0};
        noting = &u;
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(step, s.loader, s.optimizer), .stop = TN_EVERY(2, TN_EPOCH),
                                             .out = folder, .quiet = true);
        for (int k = 0; k < 2; k++) {
            int which = k ? rows[i].second : rows[i].first;
            tn_extension *made = which == 0   ? tn_cosine_shift("lr", .warmup = 1)
                                 : which == 1 ? tn_multistep_shift("lr", 0.1, TN_POINTS(1))
                                 : which == 2 ? tn_warmup_shift("lr", 0.01, 3, .first = 0.1)
                                 : which == 3 ? tn_multistep_shift("lr", 0.1, TN_POINTS(1), .first = 0.1)
                                 : which < 6  ? tn_exponential_shift("lr", 0.5)
                                 : which == 6 ? tn_exponential_shift("momentum", 0.5)
                                 : which == 9 ? tn_reduce_on_plateau("lr", "main/loss")
                                              : tn_linear_shift("lr", 0.2, 0.1, 0, 4); /* 7; 8: at a point */
            tn_trigger *trigger = which == 2 || which == 9                ? TN_EVERY(1, TN_ITERATION)
                                  : which == 4 || which == 5 || which == 8 ? tn_at_points(TN_ITERATION, which - 2)
                                                             : TN_EVERY(1, TN_EPOCH);
            assert_int_equal(tn_extend(trainer, made, .trigger = trigger), TN_OK);
        }
        tn_status status = tn_trainer_run(trainer);
        if (status != (rows[i].one ? TN_ERR_VALUE : TN_OK))
            fail_msg("row %zu: %s: %s", i, tn_status_name(status), tn_error());
        if (rows[i].one && (!strstr(tn_error(), rows[i].one) || !strstr(tn_error(), rows[i].other)))
            fail_msg("row %zu: %s", i, tn_error());
        assert_int_equal(tn_trainer_iteration(trainer), rows[i].one ? 0 : 8);
        tn_clear_error();
        tn_trainer_free(trainer);
        setup_free(&s);
        if (rows[i].second == 2 && rows[i].first != 9)
            LRS(&u, .01, .04, .07, .1, .01, .01, .01, .01);
    }
}


/* A run that was saved before its beginning, and loaded, begins as any other does. */
static void test_saved_before_its_run(void **state)
{
    (void)state;
    double rates[2];
    for (int loaded = 0; loaded < 2; loaded++) {
        setup s = setup_new(10, 3, "linear:3", "sgd:lr=0.1");
        tn_trainer *trainer = setup_trainer(&s, TN_EVERY(2, TN_EPOCH));
        tn_extend(trainer, tn_exponential_shift("lr", 0.5), .trigger = TN_EVERY(1, TN_EPOCH));
        if (loaded) {
            assert_int_equal(tn_trainer_save(trainer, test_path(folder, "begin.npz")), TN_OK);
            assert_int_equal(tn_trainer_load(trainer, test_path(folder, "begin.npz")), TN_OK);
        }
        assert_int_equal(tn_trainer_run(trainer), TN_OK);
        rates[loaded] = tn_optimizer_lr(s.optimizer);
        tn_trainer_free(trainer);
        setup_free(&s);
    }
    assert_float_equal(rates[0], 0.025, 1e-15);
    assert_true(rates[1] == rates[0]);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_effect, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resumed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_placed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_plateau, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_beside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_saved_before_its_run, set_up, tear_down),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
