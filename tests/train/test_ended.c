/* SPDX-License-Identifier: MIT */
/*
 * What is saved of a run that has ended: it ends at once when it is gone on with, unless its stop is a later one now,
 * and then goes on as if it had never ended. And snapshots of which one file is kept, which are put off while they
 * would cost too much: the last state is there when the run has ended. And
 * weights that are no numbers any more.
 */
#include <dirent.h>
#include <math.h>
#include <unistd.h>
#include "trainer_setup.h"

#define MODEL "linear:5 dropout:0.3 relu linear:3"

static void run_well(tn_trainer *trainer)
{
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
}

/* ---- stop triggers; `later` is one that ends the run some time after ---- */

static tn_trigger *by_iteration(bool later) { return TN_EVERY(later ? 11 : 6, TN_ITERATION); }

static tn_trigger *by_epoch(bool later) { return TN_EVERY(later ? 3 : 2, TN_EPOCH); }

static tn_trigger *by_part(bool later) { return TN_EVERY(later ? 2.4 : 1.6, TN_EPOCH); }

static tn_trigger *at_point(bool later) { return later ? tn_at_points(TN_EPOCH, 2.5) : tn_at_points(TN_EPOCH, 1.5); }

/* Losses do not become better than 0. */
static double distance(tn_trainer *trainer, void *user)
{
    (void)user;
    return fabs(tn_trainer_epoch_detail(trainer) - 1);
}

static tn_trigger *without_patience(bool later)
{
    return tn_early_stopping(.monitor = "distance", .patience = later ? 4 : 2, .max = TN_EVERY(4, TN_EPOCH),
                             .check = TN_EVERY(2, TN_ITERATION));
}

/* Its maximum ends it in an iteration in which it would have looked, too. */
static tn_trigger *by_maximum(bool later)
{
    return tn_early_stopping(.monitor = "distance", .patience = 3, .max = TN_EVERY(later ? 30 : 6, TN_ITERATION),
                             .check = TN_EVERY(2, TN_ITERATION));
}

static bool own_fire(tn_trainer *trainer, void *user) { return tn_trainer_iteration(trainer) >= (user ? 9 : 6); }

static tn_trigger *of_my_own(bool later)
{
    static char yes;
    return tn_trigger_of(own_fire, later ? &yes : NULL);
}

static tn_trigger *at_the_best(bool later)
{
    (void)later;
    return tn_min_value("main/loss", .check = TN_EVERY(3, TN_ITERATION));
}

static tn_trigger *by_time(bool later)
{
    (void)later;
    return tn_every_seconds(1e-6);
}

static const struct {
    const char *name;
    tn_trigger *(*make)(bool later);
    bool has_later;
} stops[] = {{"iterations", by_iteration, true},     {"epochs", by_epoch, true}, {"parts", by_part, true},
             {"a point", at_point, true},            {"patience", without_patience, true},
             {"its maximum", by_maximum, true},      {"one's own", of_my_own, true},
             {"the best value", at_the_best, false}, {"time", by_time, false}};

static tn_trainer *trainer_of(setup *s, int which, bool later)
{
    *s = setup_new(10, 3, MODEL, "momentum:lr=0.1");
    tn_trainer *trainer = setup_trainer(s, stops[which].make(later));
    tn_extend(trainer, tn_observe_value("distance", distance, NULL), .trigger = TN_EVERY(1, TN_ITERATION));
    tn_extend(trainer, tn_log_report(.every = TN_EVERY(2, TN_ITERATION)));
    return trainer;
}

/* The log without its times. */
static char *read_log(void)
{
    char *text = test_read(test_path(folder, "log"), NULL), *to = text;
    assert_non_null(text);
    for (char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        size_t length = (size_t)(end - line);
        bool time = memmem(line, length, "elapsed_time", 12) != NULL;
        memmove(to, line, time ? 0 : length);
        to += time ? 0 : length;
    }
    *to = '\0';
    return text;
}

static void assert_same_params(const setup *a, const setup *b)
{
    for (int i = 0; i < tn_param_count(a->model); i++)
        TN_SCOPE assert_memory_equal(test_data(tn_param(a->model, i)), test_data(tn_param(b->model, i)),
                                     (size_t)tn_size(tn_param(a->model, i)) * sizeof(float));
}

static void free_run(tn_trainer *trainer, setup *s)
{
    tn_trainer_free(trainer);
    setup_free(s);
}

static void test_ends_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof stops / sizeof *stops); i++) {
        setup s, r;
        char *path = strdup(test_path(folder, "end.safetensors"));
        tn_trainer *trainer = trainer_of(&s, i, false);
        run_well(trainer);
        int64_t end = tn_trainer_iteration(trainer);
        assert_int_equal(tn_trainer_save(trainer, path), TN_OK);
        for (int again = 0; again < 2; again++) { /* and what is saved of that, too */
            tn_trainer *other = trainer_of(&r, i, false);
            assert_int_equal(tn_trainer_load(other, path), TN_OK);
            run_well(other);
            if (tn_trainer_iteration(other) != end)
                fail_msg("a run that %s had ended went on from %d to %d", stops[i].name, (int)end,
                         (int)tn_trainer_iteration(other));
            assert_same_params(&s, &r);
            assert_int_equal(tn_trainer_save(other, path), TN_OK);
            free_run(other, &r);
        }
        free_run(trainer, &s);
        free(path);
    }
    check_fine();
}

/* With a later stop: the parameters and the log of a run that had that from its beginning. */
static void test_goes_on_later(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof stops / sizeof *stops); i++) {
        if (!stops[i].has_later)
            continue;
        setup s, r;
        char *path = strdup(test_path(folder, "end.safetensors"));
        tn_trainer *trainer = trainer_of(&s, i, true);
        run_well(trainer);
        char *log = read_log();
        tn_trainer *first = trainer_of(&r, i, false);
        run_well(first);
        int64_t end = tn_trainer_iteration(first);
        assert_int_equal(tn_trainer_save(first, path), TN_OK);
        free_run(first, &r);
        tn_trainer *second = trainer_of(&r, i, true);
        assert_int_equal(tn_trainer_load(second, path), TN_OK);
        run_well(second);
        if (tn_trainer_iteration(second) != tn_trainer_iteration(trainer) || tn_trainer_iteration(second) <= end)
            fail_msg("by %s: ended at %d, then at %d instead of %d", stops[i].name, (int)end,
                     (int)tn_trainer_iteration(second), (int)tn_trainer_iteration(trainer));
        assert_same_params(&s, &r);
        char *other = read_log();
        assert_string_equal(log, other);
        free(log);
        free(other);
        free_run(second, &r);
        free_run(trainer, &s);
        free(path);
    }
    check_fine();
}

/* ---- snapshots that are put off ---- */

static tn_status count_saves(const tn_serializer *s, void *user)
{
    *(int *)user += !s->loading;
    int64_t padding = 0;
    return tn_serialize_int(s, "padding", &padding);
}

static const tn_extension_kind counter_kind = {.name = "counter", .serialize = count_saves};

/* The iteration of the one snapshot in the folder. */
static int only_snapshot(void)
{
    int found = -1, count = 0, at;
    DIR *open = opendir(folder);
    for (struct dirent *entry; (entry = readdir(open));)
        if (sscanf(entry->d_name, "snapshot_iter_%d.safetensors", &at) == 1)
            found = at, count++;
    closedir(open);
    assert_int_equal(count, 1);
    return found;
}

/* Iterations that take less than saving them: most snapshots are put off, and the last state is there in the end. */
static void test_put_off(void **state)
{
    (void)state;
    for (int each = 1; each <= 7; each += 6) {
        int saves = 0;
        setup s = setup_new(1000, 1, "linear:3", "sgd");
        setup_make_params(&s);
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer),
                                             .stop = TN_EVERY(500, TN_ITERATION), .out = folder, .quiet = true);
        tn_extend(trainer, tn_snapshot(.keep = 1), .trigger = TN_EVERY(each, TN_ITERATION));
        tn_extend(trainer, tn_extension_new(&counter_kind, &saves));
        run_well(trainer);
        if (saves < 1 || saves > 400 / each)
            fail_msg("%d of %d snapshots were gathered", saves, 500 / each);
        assert_true(only_snapshot() >= 500 / each * each);
        free_run(trainer, &s);
        unlink(test_path(folder, "log"));
        tear_down(NULL);
        set_up(NULL);
    }
    check_fine();
}

static tn_status fail_at_300(tn_trainer *trainer, void *user)
{
    (void)user;
    return tn_trainer_iteration(trainer) == 300 ? TN_ERR_VALUE : TN_OK;
}

/* A run that fails: what was put off is given up, as its iteration may be half done; a run that is stopped by its flag
 * has its last state. */
static void test_put_off_and_left(void **state)
{
    (void)state;
    static volatile int stop_now = 1;
    for (int stopped = 0; stopped < 2; stopped++) {
        setup s = setup_new(1000, 1, "linear:3", "sgd");
        setup_make_params(&s);
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer),
                                             .stop = TN_EVERY(500, TN_ITERATION), .out = folder, .quiet = true,
                                             .stop_flag = stopped ? &stop_now : NULL);
        tn_extend(trainer, tn_snapshot(.keep = 1), .trigger = TN_EVERY(1, TN_ITERATION));
        if (!stopped)
            tn_extend_function(trainer, fail_at_300, NULL, .trigger = TN_EVERY(1, TN_ITERATION), .priority = 50);
        tn_status status = tn_trainer_run(trainer);
        assert_int_equal(status, stopped ? TN_OK : TN_ERR_VALUE);
        tn_clear_error();
        int last = only_snapshot();
        assert_true(stopped ? last == 0 : last >= 1 && last < 300);
        free_run(trainer, &s);
        tear_down(NULL);
        set_up(NULL);
    }
}

/* ---- weights that are no numbers ---- */

static tn_status spoil(tn_trainer *trainer, void *user)
{
    const setup *s = user;
    int64_t at = tn_trainer_iteration(trainer);
    if (at == 3 || at == 6) /* NaN from 3 to 5; and infinite at 8 */
        TN_SCOPE tn_assign(tn_param(s->model, 0), tn_full(TN_SHAPE(4, 3), at == 3 ? NAN : 0.5));
    if (at == 8)
        TN_SCOPE tn_assign(tn_param(s->model, 1), tn_full(TN_SHAPE(3), -INFINITY));
    return tn_error_code();
}

static bool is_there(const char *pattern, int iteration)
{
    char name[64];
    snprintf(name, sizeof name, pattern, iteration);
    return access(test_path(folder, name), F_OK) == 0;
}

/* Such weights push out no good ones, alone and with a trainer, in a thread and without; once they are good again, they
 * are saved. A run goes on from the last good ones. */
static void test_spoiled(void **state)
{
    (void)state;
    for (int wait = 0; wait < 2; wait++) {
        setup s = setup_new(10, 3, "linear:3", "sgd");
        setup_make_params(&s);
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer),
                                             .stop = TN_EVERY(9, TN_ITERATION), .out = folder, .quiet = true);
        tn_extend_function(trainer, spoil, &s);
        tn_extend(trainer, tn_snapshot(.keep = 3, .wait = wait), .trigger = TN_EVERY(1, TN_ITERATION));
        tn_extend(trainer, tn_snapshot_layer(s.model, "model_{iteration}.npz", .keep = 9, .wait = wait),
                  .trigger = TN_EVERY(1, TN_ITERATION));
        run_well(trainer);
        for (int i = 1; i <= 9; i++) {
            assert_int_equal(is_there("model_%d.npz", i), i < 3 || i == 6 || i == 7);
            assert_int_equal(is_there("snapshot_iter_%d.safetensors", i), i == 2 || i == 6 || i == 7);
        }
        tn_trainer *other = setup_trainer(&s, TN_EVERY(7, TN_ITERATION));
        tn_extend(other, tn_snapshot(.autoload = true));
        tn_extend(other, tn_snapshot_layer(s.model, "model_{iteration}.npz"));
        run_well(other);
        assert_int_equal(tn_trainer_iteration(other), 7);
        tn_trainer_free(other);
        free_run(trainer, &s);
        tear_down(NULL);
        set_up(NULL);
    }
    check_fine();
}

/* A model that has had infinite weights from its beginning is saved as any other. */
static void test_meant_infinite(void **state)
{
    (void)state;
    setup s = setup_new(10, 3, "linear:3", "sgd");
    setup_make_params(&s);
    TN_SCOPE tn_assign(tn_param(s.model, 0), tn_full(TN_SHAPE(4, 3), -INFINITY));
    tn_trainer *trainer = tn_trainer_new(tn_updater_of(take_one, s.loader, s.optimizer),
                                         .stop = TN_EVERY(4, TN_ITERATION), .out = folder, .quiet = true);
    tn_extend(trainer, tn_snapshot(.keep = 2), .trigger = TN_EVERY(1, TN_ITERATION));
    run_well(trainer);
    for (int i = 1; i <= 4; i++)
        assert_int_equal(is_there("snapshot_iter_%d.safetensors", i), i > 2);
    free_run(trainer, &s);
    check_fine();
}

static double wrong;
static tn_status go_wrong(tn_trainer *trainer, void *user)
{
    const setup *s = user;
    if (tn_trainer_iteration(trainer) == 2)
        TN_SCOPE tn_assign(tn_param(s->model, 0), tn_full(TN_SHAPE(4, 3), wrong));
    return tn_error_code();
}

/* A run that goes wrong before its first snapshot leaves none behind that the next would go on from: its weights were
 * finite at its beginning, or made by it. */
static void test_wrong_before_the_first(void **state)
{
    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        setup s = setup_new(10, 3, "linear:3", "sgd");
        wrong = kind & 1 ? NAN : INFINITY;
        if (kind & 2)
            setup_make_params(&s);
        tn_trainer *trainer = setup_trainer(&s, TN_EVERY(9, TN_ITERATION));
        tn_trigger *late = TN_EVERY(9, TN_ITERATION);
        if (kind & 4)
            tn_extend(trainer, tn_snapshot_layer(s.model, "kept", .on_error = true), .trigger = late);
        else
            tn_extend(trainer, tn_snapshot(.file = "kept", .on_error = true, .autoload = true), .trigger = late);
        tn_extend_function(trainer, go_wrong, &s, .priority = TN_PRIORITY_WRITER);
        tn_extend(trainer, tn_fail_on_nan());
        assert_int_equal(tn_trainer_run(trainer), TN_ERR_NAN);
        tn_clear_error();
        assert_int_equal(is_there("kept.safetensors", 0), 0);
        free_run(trainer, &s);
    }
    check_fine();
}

static volatile int stop;

static tn_status stop_at_five(tn_trainer *trainer, void *user)
{
    (void)user;
    stop = tn_trainer_iteration(trainer) == 5;
    return TN_OK;
}

/* A layer's file stays that of the iteration that its trigger chose, whatever ends the run. */
static void test_chosen(void **state)
{
    (void)state;
    setup runs[2];
    for (int stopped = 0; stopped < 2; stopped++) {
        setup *s = &runs[stopped];
        *s = setup_new(30, 3, "linear:3", "sgd:lr=0.1");
        stop = 0;
        tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s->loader, s->optimizer), .quiet = true, .out = folder,
                                             .stop = TN_EVERY(stopped ? 9 : 3, TN_ITERATION), .stop_flag = &stop);
        tn_extend(trainer, tn_snapshot_layer(s->model, "chosen.npz"), .trigger = tn_at_points(TN_ITERATION, 3));
        tn_extend_function(trainer, stop_at_five, NULL);
        run_well(trainer);
        assert_int_equal(tn_trainer_iteration(trainer), stopped ? 5 : 3);
        tn_trainer_free(trainer);
    }
    assert_int_equal(tn_layer_load(runs[1].model, test_path(folder, "chosen.npz")), TN_OK);
    assert_same_params(&runs[0], &runs[1]);
    setup_free(&runs[0]);
    setup_free(&runs[1]);
    check_fine();
}

/* A table on a stream has what is new: the other run's lines were printed by that, under a header of their own. */
static void test_table(void **state)
{
    (void)state;
    static const struct {
        int epochs;
        const char *printed;
    } runs[] = {{2, "epoch\n1\n2\n"}, {2, ""}, {3, "epoch\n3\n"}};
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        FILE *stream = tmpfile();
        char text[64] = "";
        assert_non_null(stream);
        setup s = setup_new(10, 5, "linear:3", "sgd");
        tn_trainer *trainer = setup_trainer(&s, TN_EVERY(runs[i].epochs, TN_EPOCH));
        tn_extend(trainer, tn_snapshot(.autoload = true));
        tn_extend(trainer, tn_log_report());
        tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("epoch"), .stream = stream));
        run_well(trainer);
        free_run(trainer, &s);
        rewind(stream);
        text[fread(text, 1, sizeof text - 1, stream)] = '\0';
        fclose(stream);
        assert_string_equal(text, runs[i].printed);
    }
    check_fine();
}

/* What a stream has, from its beginning on. */
static void read_stream(FILE *stream, char text[256])
{
    rewind(stream);
    text[fread(text, 1, 255, stream)] = '\0';
}

typedef struct printed {
    FILE *stream;
    char early[256]; /* what there was after the snapshot of iteration 6, before anything else was printed */
} printed;

static tn_status note_early(tn_trainer *trainer, void *user)
{
    printed *p = user;
    if (tn_trainer_iteration(trainer) == 7)
        read_stream(p->stream, p->early);
    return TN_OK;
}

static printed run_printed(bool first, int64_t stop)
{
    printed p = {.stream = tmpfile()};
    assert_non_null(p.stream);
    setup s = setup_new(100, 5, "linear:3", "sgd");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(stop, TN_ITERATION));
    tn_extend(trainer, tn_snapshot(.file = "six", .autoload = true, .wait = true, .not_on_stop = true),
              .trigger = tn_at_points(TN_ITERATION, 6));
    tn_extend(trainer, tn_log_report(.every = TN_EVERY(1, TN_ITERATION)));
    tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("iteration"), .stream = p.stream));
    if (first)
        tn_extend_function(trainer, note_early, &p, .priority = 1000);
    run_well(trainer);
    free_run(trainer, &s);
    return p;
}

/* Lines that come faster than they are printed: those up to a snapshot are there before it, as a run that is killed
 * then prints no more, and one that goes on from it prints those after. */
static void test_killed_table(void **state)
{
    (void)state;
    char text[256];
    printed killed = run_printed(true, 8);
    assert_string_equal(killed.early, "iteration\n1\n2\n3\n4\n5\n6\n");
    read_stream(killed.stream, text);
    assert_string_equal(text, "iteration\n1\n2\n3\n4\n5\n6\n7\n8\n");
    printed resumed = run_printed(false, 9);
    read_stream(resumed.stream, text);
    assert_string_equal(text, "iteration\n7\n8\n9\n");
    fclose(killed.stream);
    fclose(resumed.stream);
    check_fine();
}

/* A trainer that is stopped by its flag and runs on prints its lines under the header that is there. */
static void test_one_header(void **state)
{
    (void)state;
    char text[256];
    FILE *stream = tmpfile();
    assert_non_null(stream);
    stop = 0;
    setup s = setup_new(30, 3, "linear:3", "sgd");
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s.loader, s.optimizer), .quiet = true, .out = folder,
                                         .stop = TN_EVERY(7, TN_ITERATION), .stop_flag = &stop);
    tn_extend(trainer, tn_log_report(.every = TN_EVERY(1, TN_ITERATION)));
    tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("iteration"), .stream = stream));
    tn_extend_function(trainer, stop_at_five, NULL);
    run_well(trainer);
    assert_int_equal(tn_trainer_iteration(trainer), 5);
    stop = 0;
    run_well(trainer);
    read_stream(stream, text);
    assert_string_equal(text, "iteration\n1\n2\n3\n4\n5\n6\n7\n");
    fclose(stream);
    free_run(trainer, &s);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ends_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_goes_on_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_put_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_put_off_and_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_spoiled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_meant_infinite, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_before_the_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_chosen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_table, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_header, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
