/* SPDX-License-Identifier: MIT */
/*
 * Runs that are killed (SIGKILL) at random iterations, in random places of them or at any moment, and gone on with from
 * snapshots of every seventh iteration, with every extension that has state in use: they end with the same bits, the
 * same logs and the same pictures as a run that was left in peace. TANSO_TEST_KILLS=1000 makes it as many as one likes.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "support/device.h"
#include "support/random.h"
#include "trainer_setup.h"

enum { KILLS = 100, MOST_ITERATIONS = 90, LONGEST_LIFE = 24 };

static test_random chance;

/* ---- the run, in a child ---- */

/* When a child kills itself. */
typedef struct death {
    int64_t iterations; /* after so many of its own; 0: not */
    int priority;       /* among the extensions' */
    int64_t seen;
} death;

static tn_status die(tn_trainer *trainer, void *user)
{
    (void)trainer;
    death *d = user;
    if (++d->seen == d->iterations)
        raise(SIGKILL);
    return TN_OK;
}

static double epoch_of(tn_trainer *trainer, void *user)
{
    (void)user;
    return tn_trainer_epoch_detail(trainer);
}

static tn_trainer *build(setup *s, const char *out, death *d, FILE *silent)
{
    tn_trigger *stop = tn_early_stopping(.monitor = "validation/main/loss", .patience = 9,
                                         .max = TN_EVERY(MOST_ITERATIONS, TN_ITERATION));
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s->loader, s->optimizer), .stop = stop, .out = out,
                                         .quiet = true);
    tn_extend(trainer, tn_evaluator(s->test_loader, s->model));
    tn_extend(trainer, tn_snapshot(.keep = 1, .autoload = true), .trigger = TN_EVERY(7, TN_ITERATION));
    tn_extend(trainer, tn_snapshot_layer(s->model, "best"), .trigger = tn_min_value("validation/main/loss"));
    tn_extend(trainer, tn_exponential_shift("weight_decay", 0.97, .first = 0.01), .trigger = TN_EVERY(1, TN_EPOCH));
    tn_extend(trainer, tn_reduce_on_plateau("lr", "main/loss", .patience = 2, .factor = 0.8));
    tn_extend(trainer, tn_cosine_shift("momentum", .length = {MOST_ITERATIONS, TN_ITERATION}, .last = 0.1));
    tn_extend(trainer, tn_observe_lr());
    tn_extend(trainer, tn_observe_value("place", epoch_of, NULL), .trigger = TN_EVERY(0.8, TN_EPOCH));
    tn_extend(trainer, tn_micro_average("main/loss", "main/accuracy", "ratio", .every = TN_EVERY(2, TN_ITERATION)));
    tn_extend(trainer, tn_parameter_statistics());
    tn_extend(trainer, tn_fail_on_nan());
    tn_extend(trainer, tn_log_report());
    tn_extend(trainer, tn_log_report(.file = "often", .every = TN_EVERY(3, TN_ITERATION)));
    tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("epoch", "main/loss", "validation/main/loss", "lr"),
                                            .file = "table"));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss", "validation/main/loss"),
                                      .every = TN_EVERY(2, TN_ITERATION)));
    tn_array *const arrays[] = {tn_param(s->model, 0), tn_param(s->model, 1)};
    tn_extend(trainer, tn_variable_statistics_plot(2, arrays, .every = TN_EVERY(5, TN_ITERATION)));
    tn_extend(trainer, tn_tensorboard());
    tn_extend(trainer, tn_dump_graph("main/loss"), .trigger = tn_once());
    tn_extend(trainer, tn_progress_bar(.stream = silent));
    tn_extend_function(trainer, die, d, .name = "death", .priority = d->priority);
    return trainer;
}

/* The exit code of the child: 0 for a run that has ended. */
static int live(const char *out, death d)
{
    tn_set_compile(TN_COMPILE_NEVER); /* a life is short */
    FILE *silent = fopen("/dev/null", "w");
    setup s = setup_new(10, 3, "linear:7 dropout:0.3 relu linear:3", "momentum:lr=0.1");
    setup_make_params(&s);
    tn_trainer *trainer = build(&s, out, &d, silent);
    tn_status status = tn_ok() ? tn_trainer_run(trainer) : tn_error_code();
    if (status == TN_OK)
        status = tn_layer_save(s.model, test_path(out, "final.safetensors"));
    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_error());
    tn_trainer_free(trainer);
    setup_free(&s);
    fclose(silent);
    return status != TN_OK;
}

static pid_t start(const char *out, death d)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(live(out, d));
    assert_true(child > 0);
    return child;
}

/* Whether the run has ended; else it was killed. */
static bool finished(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return false;
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("a run failed with status %x", (unsigned)status);
    return true;
}

/* ---- lives and deaths ---- */

/* One life; whether it was the last one. By its own hand at an iteration, or by another's at any moment. */
static bool live_and_die(const char *out)
{
    static const int priorities[] = {1000, 250, 150, 50, -50, -150};
    int place = (int)test_random_int(&chance, 0, (int64_t)(sizeof priorities / sizeof *priorities) - 1);
    death d = {.priority = priorities[place], .iterations = test_random_int(&chance, 1, LONGEST_LIFE)};
    bool by_another = test_random_int(&chance, 0, 3) == 0;
    if (by_another)
        d.iterations = 0;
    pid_t child = start(out, d);
    if (by_another) {
        nanosleep(&(struct timespec){0, (long)test_random_int(&chance, 0, 60000000)}, NULL);
        kill(child, SIGKILL);
    }
    return finished(child);
}

/* Without the lines that tell the time. */
static char *without_times(const char *path)
{
    char *text = test_read(path, NULL), *out = text ? calloc(strlen(text) + 1, 1) : NULL;
    for (char *line = text, *end; out && *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        if (!memmem(line, (size_t)(end - line), "elapsed_time", 12))
            strncat(out, line, (size_t)(end - line));
    }
    free(text);
    return out;
}

static void assert_same(const char *whole, const char *out)
{
    static const char *const bits[] = {"final.safetensors", "best.safetensors", "plot.svg", "statistics.svg", "table",
                                       "cg.dot"};
    static const char *const logs[] = {"log", "often"};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (!test_same_files(test_path(whole, bits[i]), test_path(out, bits[i])))
            fail_msg("%s is not that of a run that was left in peace", bits[i]);
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        char *one = without_times(test_path(whole, logs[i])), *two = without_times(test_path(out, logs[i]));
        assert_non_null(one);
        assert_non_null(two);
        assert_string_equal(one, two);
        free(one);
        free(two);
    }
    DIR *open = opendir(out);
    for (struct dirent *entry; (entry = readdir(open));)
        /* The program's own last file is no extension's: what a kill leaves of it is for the program to remove. */
        if (strstr(entry->d_name, ".tmp-") && strncmp(entry->d_name, "final.", 6))
            fail_msg("%s is left over", entry->d_name);
    closedir(open);
}

static void test_killed(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("children by fork, which a GPU does not work for");
    const char *wanted = getenv("TANSO_TEST_KILLS");
    int kills = wanted ? atoi(wanted) : KILLS, killed = 0, runs = 0;
    char whole[300], out[300];
    snprintf(whole, sizeof whole, "%s", test_path(folder, "whole"));
    snprintf(out, sizeof out, "%s", test_path(folder, "run"));
    assert_true(finished(start(whole, (death){0})));
    for (; killed < kills; runs++) {
        while (killed < kills && !live_and_die(out))
            killed++;
        assert_true(finished(start(out, (death){0}))); /* one that has ended already does nothing */
        assert_same(whole, out);
        test_folder_remove(out);
    }
    print_message("%d runs, killed %d times\n", runs, killed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down)};
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
