/* SPDX-License-Identifier: MIT */
/*
 * A trainer with all extensions over many iterations: its memory stays flat, and an entry of the log takes as long late
 * in a run as early, as the file is added to in place. TANSO_TEST_STEPS=1000000 makes the run as long as one likes.
 */
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include "support/device.h"
#include "support/resident.h"
#include "trainer_setup.h"

enum { STEPS = RESIDENT_SANITIZED ? 3000 : 12000, TENTHS = 10, LAST = 100 };

/* What is looked at along the way. */
typedef struct looks {
    int64_t steps;
    double began, seconds[TENTHS]; /* each tenth's */
    long resident[TENTHS]; /* the least of its last iterations: what is written may take some for a moment */
    size_t arrays[TENTHS];
    uint64_t misses[TENTHS];
    ino_t log[TENTHS];
} looks;

/* The process's own time: what else the machine does is not the run's. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static tn_status look(tn_trainer *trainer, void *user)
{
    looks *l = user;
    int64_t tenth = l->steps / TENTHS, at = tn_trainer_iteration(trainer), i = (at - 1) / tenth;
    if (i >= TENTHS || (at % tenth && at % tenth <= tenth - LAST))
        return TN_OK;
    long resident = resident_kilobytes();
    if (l->resident[i] == 0 || resident < l->resident[i])
        l->resident[i] = resident;
    if (at % tenth)
        return TN_OK;
    struct stat log;
    l->seconds[i] = now() - l->began;
    l->arrays[i] = tn_live_arrays();
    l->misses[i] = tn_engine_stats().plan_misses;
    l->log[i] = stat(test_path(folder, "log"), &log) == 0 ? log.st_ino : 0;
    l->began = now();
    return TN_OK;
}

static double place(tn_trainer *trainer, void *user)
{
    (void)user;
    return tn_trainer_epoch_detail(trainer);
}

/* 4 iterations an epoch. */
static tn_trainer *build(setup *s, looks *l, FILE *silent)
{
    tn_trigger *stop = tn_early_stopping(.monitor = "main/loss", .patience = 1000000000,
                                         .max = TN_EVERY((double)l->steps, TN_ITERATION));
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s->loader, s->optimizer), .stop = stop, .out = folder,
                                         .quiet = true);
    tn_extend(trainer, tn_evaluator(s->test_loader, s->model), .trigger = TN_EVERY(10, TN_ITERATION));
    tn_extend(trainer, tn_snapshot(.keep = 2, .wait = true), .trigger = TN_EVERY((double)l->steps / 50, TN_ITERATION));
    tn_extend(trainer, tn_snapshot_layer(s->model, "best", .wait = true), /* arrays are counted */
              .trigger = tn_min_value("main/loss", .check = TN_EVERY((double)l->steps / 20, TN_ITERATION)));
    tn_extend(trainer, tn_cosine_shift("momentum", .last = 0.1));
    tn_extend(trainer, tn_exponential_shift("weight_decay", 1, .first = 0.001), .trigger = TN_EVERY(1, TN_EPOCH));
    tn_extend(trainer, tn_reduce_on_plateau("lr", "main/loss", .patience = 1000000000));
    tn_extend(trainer, tn_observe_lr());
    tn_extend(trainer, tn_observe_value("place", place, NULL), .trigger = TN_EVERY(1, TN_ITERATION));
    tn_extend(trainer, tn_micro_average("main/loss", "main/accuracy", "ratio"));
    tn_extend(trainer, tn_parameter_statistics(), .trigger = TN_EVERY(100, TN_ITERATION));
    tn_extend(trainer, tn_fail_on_nan());
    tn_extend(trainer, tn_log_report(.every = TN_EVERY(10, TN_ITERATION)));
    tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("epoch", "main/loss"),
                                            .file = "table"));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss", "place"), .every = TN_EVERY(1, TN_ITERATION)));
    tn_array *const arrays[] = {tn_param(s->model, 0), tn_param(s->model, 1)};
    tn_extend(trainer, tn_variable_statistics_plot(2, arrays, .every = TN_EVERY(20, TN_ITERATION)));
    tn_extend(trainer, tn_tensorboard());
    tn_extend(trainer, tn_dump_graph("main/loss"));
    tn_extend(trainer, tn_profile());
    tn_extend(trainer, tn_progress_bar(.stream = silent));
    tn_extend_function(trainer, look, l, .name = "looks", .priority = -1000);
    return trainer;
}

static void test_long(void **state)
{
    (void)state;
    const char *wanted = getenv("TANSO_TEST_STEPS");
    looks l = {.steps = wanted ? atol(wanted) : STEPS, .began = now()};
    FILE *silent = fopen("/dev/null", "w");
    setup s = setup_new(12, 3, "linear:7 dropout:0.3 relu linear:3", "momentum:lr=0.01");
    setup_make_params(&s);
    tn_trainer *trainer = build(&s, &l, silent);
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
    for (int i = 0; i < TENTHS; i++)
        print_message("to %lld: %.1f us an iteration, %ld kB resident\n", (long long)(l.steps / TENTHS * (i + 1)),
                      1e6 * l.seconds[i] / (double)(l.steps / TENTHS), l.resident[i]);
    int settled = TENTHS / 2; /* pictures have all their points, the log is long */
    for (int i = settled; i < TENTHS; i++) {
        assert_int_equal(l.arrays[i], l.arrays[settled - 1]);
        assert_int_equal(l.misses[i], l.misses[settled - 1]);
        assert_true(l.log[i] != 0 && l.log[i] == l.log[settled - 1]);
        if (!RESIDENT_SANITIZED && l.steps >= STEPS)
            assert_true(l.resident[i] - l.resident[settled - 1] < 512);
    }
    if (l.steps >= 50 * STEPS) /* as long as chance has no say */
        assert_true(l.seconds[TENTHS - 1] < 1.5 * l.seconds[settled]);
    tn_trainer_free(trainer);
    setup_free(&s);
    fclose(silent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_long, set_up, tear_down)};
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* or the kernel may make 2 MiB resident at once, when it likes */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
