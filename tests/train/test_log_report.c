/* SPDX-License-Identifier: MIT */
/* Logs, tables, plots and events of runs: what Chainer's have, and the same of a run that was resumed anywhere. */
#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/random.h"
#include "support/terminal.h"
#include "trainer_setup.h"

static test_random chance;

/* ---- a trainer of 12 samples in fours, which observes what it is told to ---- */

typedef struct observed {
    double values[64];
    int count;
} observed;

static tn_status observe(tn_trainer *trainer, void *user)
{
    const observed *o = user;
    int64_t i = tn_trainer_iteration(trainer) - 1;
    if (i >= 0 && i < o->count && !isnan(o->values[i]))
        return tn_observation_set_number(tn_trainer_observation(trainer), "value", o->values[i], 0);
    return TN_OK;
}

static tn_status no_clock(tn_observation *entry, void *user)
{
    (void)user;
    return tn_observation_set_number(entry, "elapsed_time", 0, 0);
}

static tn_trainer *counting(setup *s, const observed *o, tn_trigger *stop)
{
    tn_trainer *trainer =
        tn_trainer_new(tn_updater_of(take_one, s->loader, s->optimizer), .stop = stop, .out = folder, .quiet = true);
    assert_int_equal(tn_extend_function(trainer, observe, (void *)o, .name = "observe", .priority = 300), TN_OK);
    return trainer;
}

static setup small(void)
{
    setup s = setup_new(12, 3, "linear:3", "sgd:lr=0.1");
    setup_make_params(&s);
    return s;
}

static void run(tn_trainer *trainer)
{
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
}

/* A run of the small network that counts: what it observes, and a terminal, if it is to have one. */
typedef struct counted {
    setup s;
    observed o;
    terminal t;
    tn_trainer *trainer;
} counted;

static void begin(counted *c, int count, const double *values, tn_trigger *stop)
{
    *c = (counted){.s = small(), .o = {.count = count}};
    for (int i = 0; i < count; i++)
        c->o.values[i] = values[i];
    c->trainer = counting(&c->s, &c->o, stop);
}

static void end(counted *c)
{
    tn_trainer_free(c->trainer);
    setup_free(&c->s);
}

/* 80 columns wide; skips in a place without terminals. */
static void begin_on_terminal(counted *c, tn_trigger *stop)
{
    begin(c, 0, NULL, stop);
    if (terminal_open(&c->t, 80))
        return;
    end(c);
    skip();
}

#define VALUES(...) (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__}

static char *contents(const char *name)
{
    char *text = test_read(test_path(folder, name), NULL);
    if (!text)
        fail_msg("there is no %s", name);
    return text;
}

static void assert_contents(const char *name, const char *expected)
{
    char *text = contents(name);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- logs ---- */

static void test_entries(void **state)
{
    (void)state;
    counted c;
    begin(&c, VALUES(1, 2, 3, NAN, 5, 6, 7, 8), TN_EVERY(2, TN_EPOCH));
    tn_extend(c.trainer, tn_log_report(.postprocess = no_clock), .call_before_training = true);
    run(c.trainer);
    assert_contents("log", "[\n    {\n        \"epoch\": 0,\n        \"iteration\": 0,\n        \"elapsed_time\": 0.0\n"
                           "    },\n    {\n        \"value\": 2.0,\n        \"epoch\": 1,\n        \"iteration\": 4,\n"
                           "        \"elapsed_time\": 0.0\n    },\n    {\n        \"value\": 6.5,\n"
                           "        \"epoch\": 2,\n        \"iteration\": 8,\n        \"elapsed_time\": 0.0\n"
                           "    }\n]\n");
    end(&c);
}

/* Called each 5 iterations, an entry a epoch: the first time that it is called after an epoch. */
static void test_asked_rarely(void **state)
{
    (void)state;
    counted c;
    begin(&c, 0, NULL, TN_EVERY(14, TN_ITERATION));
    tn_extend(c.trainer, tn_log_report(.postprocess = no_clock), .trigger = TN_EVERY(5, TN_ITERATION));
    run(c.trainer);
    char *log = contents("log");
    assert_non_null(strstr(log, "\"iteration\": 5,"));
    assert_non_null(strstr(log, "\"iteration\": 10,"));
    assert_null(strstr(strstr(log, "\"iteration\": 10,") + 5, "iteration"));
    free(log);
    end(&c);
}

/* ---- the table ---- */

static void test_table(void **state)
{
    (void)state;
    counted c;
    begin(&c, VALUES(1, 2, 3, 4, NAN, NAN, NAN, NAN), TN_EVERY(3, TN_EPOCH));
    tn_extend(c.trainer, tn_log_report());
    const char *const keys[] = {"epoch", "iteration", "value", "valu"};
    tn_extend(c.trainer, tn_print_report_with(3, keys, TN_OPTS(tn_print_report_opts, .file = "table")));
    run(c.trainer);
    assert_contents("table", "epoch       iteration   value\n"
                             "1           4           2.5\n"
                             "2           8\n"
                             "3           12\n");
    end(&c);
}

/* On a terminal each line wipes the bar below; rarely called, it prints all that came since. */
static void test_terminal(void **state)
{
    (void)state;
    counted c;
    begin_on_terminal(&c, TN_EVERY(5, TN_EPOCH));
    tn_extend(c.trainer, tn_log_report());
    const char *const keys[] = {"epoch"};
    tn_extend(c.trainer, tn_print_report_with(1, keys, TN_OPTS(tn_print_report_opts, .stream = c.t.stream)),
              .trigger = TN_EVERY(2, TN_EPOCH));
    run(c.trainer);
    assert_string_equal(terminal_text(&c.t), "\033[Jepoch\r\n1\r\n2\r\n"
                                             "\033[J3\r\n4\r\n\033[J5\r\n");
    terminal_close(&c.t);
    end(&c);
}

static void test_bar(void **state)
{
    (void)state;
    counted c;
    begin_on_terminal(&c, TN_EVERY(2, TN_EPOCH));
    tn_extend(c.trainer, tn_progress_bar(.every = 3, .stream = c.t.stream));
    run(c.trainer);
    const char *text = terminal_text(&c.t);
    assert_non_null(strstr(text, "     total [##################................................] 37.50%"));
    assert_non_null(strstr(text, "         6 iter, 1 epoch / 2 epochs"));
    assert_string_equal(text + strlen(text) - 7, "\033[4A\033[J");
    terminal_close(&c.t);
    end(&c);
}

/* ---- what goes wrong ---- */

static tn_extension *bad_file(void) { return tn_plot_report(TN_KEYS_OF("a"), .file = "x.gif"); }
static tn_extension *no_key(void) { return tn_plot_report_with(0, NULL, NULL); }
static tn_extension *no_period(void) { return tn_log_report(.every = TN_EVERY(0, TN_EPOCH)); }
static tn_extension *bad_every(void) { return tn_progress_bar(.every = -1); }

/* What is known when the run starts. */
static void assert_refused(counted *c, const char *says)
{
    assert_int_equal(tn_trainer_run(c->trainer), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, says);
    end(c);
}

static void test_told(void **state)
{
    (void)state;
    counted c;
    begin(&c, 0, NULL, TN_EVERY(1, TN_EPOCH));
    tn_extend(c.trainer, tn_print_report("epoch"));
    assert_refused(&c, "give it tn_log_report(), too");

    begin(&c, 0, NULL, TN_EVERY(1, TN_EPOCH));
    tn_extend(c.trainer, tn_plot_report(TN_KEYS_OF("a"), .file = "x.svg"));
    tn_extend(c.trainer, tn_plot_report(TN_KEYS_OF("b"), .file = "x.svg"));
    assert_refused(&c, "'x.svg' is written by the extension PlotReport_1 already");
}

static tn_extension *log_into(const char *file) { return tn_log_report(.file = file); }
static tn_extension *snapshot_into(const char *file) { return tn_snapshot(.file = file); }
static tn_layer *layer;
static tn_extension *layer_into(const char *file) { return tn_snapshot_layer(layer, file); }

/* Also by another spelling, and patterns whose files would be each other's. */
static void test_one_file(void **state)
{
    (void)state;
    const struct {
        tn_extension *(*first)(const char *), *(*second)(const char *);
        const char *file, *same;
    } rows[] = {{log_into, log_into, "log", "./log"},
                {snapshot_into, layer_into, "x.safetensors", "x"},
                {layer_into, layer_into, "best", "best.safetensors"},
                {snapshot_into, layer_into, "s_{iteration}", "s_{epoch}"},
                {snapshot_into, log_into, "x", "x.safetensors"}};
    layer = tn_linear(3, .in = 4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        counted c;
        begin(&c, 0, NULL, TN_EVERY(1, TN_EPOCH));
        tn_extend(c.trainer, rows[i].first(rows[i].file), .name = "first");
        tn_extend(c.trainer, rows[i].second(rows[i].same), .name = "second");
        assert_refused(&c, " already: give one of the two another .file");
    }
    tn_layer_free(layer);
}

/* What is known when the extension is made. */
static void test_told_at_once(void **state)
{
    (void)state;
    counted c;
    begin(&c, 0, NULL, TN_EVERY(1, TN_EPOCH));
    const struct {
        tn_extension *(*make)(void);
        const char *says;
    } rows[] = {{bad_file, ".svg or .png"}, {no_key, "at least one key"}, {no_period, "period"},
                {bad_every, ".every = -1"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tn_extend(c.trainer, rows[i].make()), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, rows[i].says);
    }
    end(&c);
}

/* What a run says on stderr, for free. */
static char *said_by(tn_trainer *trainer, tn_status expected)
{
    FILE *said = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_true(said && before >= 0 && dup2(fileno(said), STDERR_FILENO) >= 0);
    tn_status status = tn_trainer_run(trainer);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
    rewind(said);
    char *text = calloc(1, 1 << 16);
    assert_true(fread(text, 1, (1 << 16) - 1, said) < 1 << 16);
    fclose(said);
    assert_int_equal(status, expected);
    return text;
}

static int count_of(const char *text, const char *words)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, words)); at++)
        count++;
    return count;
}

/* Keys that never come are told of once, with the nearest; so is a loss that is NaN. */
static void test_warnings(void **state)
{
    (void)state;
    setup s = setup_new(12, 4, "linear:3", "sgd:lr=1e39");
    tn_trainer *trainer =
        tn_trainer_new(tn_standard_updater(s.loader, s.optimizer), .stop = TN_EVERY(3, TN_EPOCH), .out = folder);
    tn_extend(trainer, tn_log_report());
    tn_extend(trainer, tn_snapshot_layer(s.model, "best.npz"), .trigger = tn_min_value("main/los"));
    tn_extend(trainer, tn_reduce_on_plateau("lr", "main/accurac"));
    tn_extend(trainer, tn_micro_average("main/loss", "nothing", "ratio"));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss"), .x_key = "main/acuracy"));
    char *text = said_by(trainer, TN_OK);
    static const char *const words[] = {"best_value: nothing has been observed under 'main/los'; did you mean",
                                        "under 'main/accurac'; did you mean 'main/accuracy'?",
                                        "micro_average: nothing has been observed under 'nothing'",
                                        "plot_report: nothing has been observed under 'main/acuracy'; did you mean",
                                        "'main/loss' is NaN in iteration"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (count_of(text, words[i]) != 1)
            fail_msg("\"%s\" is said %d times in: %s", words[i], count_of(text, words[i]), text);
    free(text);
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* What would be said at each look, or before anything was reported, is said once, when it is so. */
static void test_said_once(void **state)
{
    (void)state;
    setup s = setup_new(12, 4, "linear:3", "sgd:lr=0.01");
    tn_trigger *stop = tn_early_stopping(.monitor = "validation/main/loss", .check = TN_EVERY(2, TN_ITERATION),
                                         .max = TN_EVERY(4, TN_EPOCH));
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s.loader, s.optimizer), .stop = stop, .out = folder);
    tn_extend(trainer, tn_log_report(), .call_before_training = true);
    tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("main/loss", "main/los"), .file = "table"),
              .call_before_training = true);
    tn_extend(trainer, tn_observe_lr(.key = "main/loss"), .trigger = TN_EVERY(1, TN_ITERATION));
    tn_extend(trainer, tn_observe_lr(), .trigger = TN_EVERY(1, TN_ITERATION));
    tn_extend(trainer, tn_micro_average("main/loss", "main/loss", "lr", .every = TN_EVERY(1, TN_ITERATION)));
    tn_extend(trainer, tn_cosine_shift("lr", .warmup = 5, .length = {4, TN_EPOCH}));
    char *text = said_by(trainer, TN_OK);
    static const struct {
        const char *words;
        int times;
    } said[] = {{"is not among what was reported in iteration 2,", 1}, {"is not among what was reported", 1},
                {"print_report: nothing has been observed under 'main/los'", 1}, {"under 'main/loss'", 0},
                {"observe_lr: 'main/loss' has been reported in iteration 1 already", 1},
                {"micro_average: 'lr' has been reported in iteration 1 already", 1}, {"already", 2},
                {"CosineShift: a .warmup of 5 in a course of 4 epochs: 'lr' rises to the end", 1}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (count_of(text, said[i].words) != said[i].times)
            fail_msg("\"%s\" is said %d times in: %s", said[i].words, count_of(text, said[i].words), text);
    free(text);
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* A file that cannot be written is told of when the run starts, and what is there stays. */
static void test_no_place(void **state)
{
    (void)state;
    static const char *const names[] = {"plot.svg", "statistics.svg", "cg.dot", "log"};
    for (int i = 0; i < 4; i++) {
        setup s = small();
        observed o = {{0}, 0};
        char path[600];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(mkdir(path, 0777), 0);
        tn_trainer *trainer = counting(&s, &o, TN_EVERY(1, TN_EPOCH));
        tn_array *weight = tn_param(s.model, 0);
        tn_extend(trainer, i == 0   ? tn_plot_report(TN_KEYS_OF("a"))
                           : i == 1 ? tn_variable_statistics_plot(1, &weight)
                           : i == 2 ? tn_dump_graph("a")
                                    : tn_log_report());
        assert_int_equal(tn_trainer_run(trainer), TN_ERR_IO);
        assert_int_equal(tn_trainer_iteration(trainer), 0);
        check_latched(TN_ERR_IO, names[i]);
        assert_int_equal(rmdir(path), 0);
        tn_trainer_free(trainer);
        setup_free(&s);
    }
}

/* ---- resuming ---- */

static double of_iteration(tn_trainer *trainer, void *user)
{
    (void)user;
    return sin((double)tn_trainer_iteration(trainer));
}

/* A run with everything that writes; `stop` iterations, from the newest snapshot of the folder. */
static void full_run(int64_t stop, bool png)
{
    setup s = setup_new(13, 3, "linear:5 sigmoid linear:3", "momentum:lr=0.1");
    setup_make_params(&s);
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY((double)stop, TN_ITERATION));
    tn_extend(trainer, tn_snapshot(.keep = 2, .autoload = true, .wait = true), .trigger = TN_EVERY(7, TN_ITERATION));
    tn_extend(trainer, tn_evaluator(s.test_loader, s.model));
    tn_extend(trainer, tn_observe_value("wave", of_iteration, NULL), .trigger = TN_EVERY(2, TN_ITERATION));
    tn_extend(trainer, tn_observe_lr(.key = "rate"));
    tn_extend(trainer, tn_exponential_shift("lr", 0.9), .trigger = TN_EVERY(1, TN_EPOCH));
    tn_extend(trainer, tn_micro_average("wave", "main/loss", "ratio"));
    tn_extend(trainer, tn_reduce_on_plateau("momentum", "main/loss", .patience = 0, .factor = 0.9));
    tn_extend(trainer, tn_parameter_statistics());
    tn_extend(trainer, tn_fail_on_nan());
    tn_extend(trainer, tn_dump_graph("main/loss"));
    tn_extend(trainer, tn_log_report(.postprocess = no_clock));
    tn_extend(trainer, tn_log_report(.file = "often", .every = TN_EVERY(2, TN_ITERATION), .postprocess = no_clock),
              .name = "Often");
    const char *const keys[] = {"epoch", "iteration", "main/loss", "validation/main/loss", "rate", "ratio"};
    tn_extend(trainer, tn_print_report_with(6, keys, TN_OPTS(tn_print_report_opts, .file = "table")),
              .trigger = TN_EVERY(2, TN_EPOCH));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss", "validation/main/loss")));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("wave"), .file = png ? "wave.png" : "wave.svg", .x_key = "main/loss",
                                      .every = TN_EVERY(3, TN_ITERATION)));
    tn_extend(trainer,
              tn_variable_statistics_plot(1, (tn_array *[]){tn_param(s.model, 0)}, .every = TN_EVERY(3, TN_ITERATION)));
    run(trainer);
    tn_trainer_free(trainer);
    setup_free(&s);
}

static void test_resumed(void **state)
{
    (void)state;
    static const char *const files[] = {"log", "often", "table", "plot.svg", "wave.svg", "statistics.svg", "cg.dot"};
    enum { FILES = sizeof files / sizeof *files };
    int64_t whole = 60;
    char first[256], *expected[FILES];
    strcpy(first, folder);
    full_run(whole, false);
    for (int i = 0; i < FILES; i++)
        expected[i] = contents(files[i]);
    for (int round = 0; round < 6; round++) {
        test_folder_make(folder);
        for (int64_t at = 0; at < whole;) {
            at += test_random_int(&chance, 1, 30);
            full_run(at < whole ? at : whole, false);
        }
        for (int i = 0; i < FILES; i++)
            assert_contents(files[i], expected[i]);
        test_folder_remove(folder);
    }
    strcpy(folder, first);
    for (int i = 0; i < FILES; i++)
        free(expected[i]);
}

static void test_board(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        counted c;
        begin(&c, VALUES(1, 2, 3, 4, 5, 6, 7, 8), TN_EVERY(round + 1, TN_EPOCH));
        tn_extend(c.trainer, tn_snapshot(.autoload = true, .wait = true));
        tn_extend(c.trainer, tn_log_report());
        tn_extend(c.trainer, tn_tensorboard(.folder = test_path(folder, "board")));
        run(c.trainer);
        end(&c);
    }
    DIR *board = opendir(test_path(folder, "board"));
    int files = 0;
    for (struct dirent *entry; (entry = readdir(board));) {
        if (entry->d_name[0] == '.')
            continue;
        files++;
        size_t size;
        char *data = test_read(test_path(test_path(folder, "board"), entry->d_name), &size);
        assert_non_null(memmem(data, size, "brain.Event:2", 13));
        assert_non_null(memmem(data, size, "value", 5));
        assert_null(memmem(data, size, "iteration", 9));
        free(data);
    }
    closedir(board);
    assert_int_equal(files, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_entries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_asked_rarely, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_terminal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bar, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_file, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_warnings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_said_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_told_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resumed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_board, set_up, tear_down),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
