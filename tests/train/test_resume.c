/* SPDX-License-Identifier: MIT */
/*
 * Runs that are stopped after any iteration and resumed: the same bits of parameters, optimizer state and generator,
 * the same firings of triggers, the same means, as of a run that was not stopped.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "io/values.h"
#include "trainer_setup.h"

#define ITERATIONS 14

/* What a run has left: text of what fired when, and values. */
typedef struct trace {
    char text[ITERATIONS + 1][512];
    double rate;
} trace;

/* Notes who was called, and in one place means of what was seen since the last epoch. */
typedef struct noter {
    trace *trace;
    const char *name;
    tn_summary *means;
    tn_trigger *epoch;
} noter;

static void noter_write(noter *n, tn_trainer *trainer, const char *format, double value)
{
    char *text = n->trace->text[tn_trainer_iteration(trainer)];
    snprintf(text + strlen(text), sizeof n->trace->text[0] - strlen(text), format, n->name, value);
}

static tn_status noter_call(tn_trainer *trainer, void *user)
{
    noter *n = user;
    if (!n->means) {
        noter_write(n, trainer, "%s(%g) ", tn_trainer_epoch_detail(trainer));
        return TN_OK;
    }
    tn_summary_add_observation(n->means, tn_trainer_observation(trainer));
    if (!tn_trigger_fire(n->epoch, trainer))
        return tn_error_code();
    noter_write(n, trainer, "%s=%.17g ", tn_summary_mean(n->means, "main/loss"));
    if (tn_summary_has(n->means, "validation/main/loss"))
        noter_write(n, trainer, "%s v=%.17g ", tn_summary_mean(n->means, "validation/main/loss"));
    tn_summary_clear(n->means);
    return tn_error_code();
}

static tn_status noter_serialize(const tn_serializer *s, void *user)
{
    noter *n = user;
    if (!n->means)
        return TN_OK;
    tn_serialize_summary(s, "summary", n->means);
    return tn_serialize_trigger(s, "trigger", n->epoch);
}

static void noter_free(void *user)
{
    noter *n = user;
    tn_summary_free(n->means);
    tn_trigger_free(n->epoch);
    free(n);
}

static const tn_extension_kind noter_kind = {
    .name = "noter", .priority = 100, .call = noter_call, .serialize = noter_serialize, .free = noter_free};

static tn_extension *noter_new(trace *t, const char *name, bool means)
{
    noter *n = malloc(sizeof *n);
    *n = (noter){t, name, means ? tn_summary_new() : NULL, means ? TN_EVERY(1, TN_EPOCH) : NULL};
    return tn_extension_new(&noter_kind, n);
}

static tn_status halve(tn_trainer *trainer, void *user)
{
    (void)user;
    tn_optimizer *optimizer = tn_trainer_optimizer(trainer, NULL);
    tn_optimizer_set_lr(optimizer, tn_optimizer_lr(optimizer) / 2);
    return TN_OK;
}

/* What a snapshot may hang on: everything that has a state of its own, in priorities above and below it. */
static tn_trainer *build(setup *s, trace *t, int accumulate, tn_trigger *stop, tn_extension *snapshot,
                         tn_trigger *when)
{
    tn_updater *updater = tn_standard_updater(s->loader, s->optimizer, .accumulate = accumulate);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = stop, .out = folder, .quiet = true);
    tn_extend(trainer, snapshot, .trigger = when);
    tn_extend(trainer, tn_evaluator(s->test_loader, s->model));
    tn_extend_function(trainer, halve, NULL, .name = "halve", .trigger = TN_EVERY(0.8, TN_EPOCH));
    tn_extend(trainer, noter_new(t, "log", true), .name = "log");
    tn_extend(trainer, noter_new(t, "epoch", false), .trigger = TN_EVERY(1, TN_EPOCH));
    tn_extend(trainer, noter_new(t, "late", false), .trigger = TN_EVERY(1, TN_EPOCH), .priority = -200);
    tn_extend(trainer, noter_new(t, "points", false), .trigger = tn_at_points(TN_EPOCH, 0.5, 2.5));
    tn_extend(trainer, noter_new(t, "once", false), .trigger = tn_once());
    tn_extend(trainer, noter_new(t, "best", false),
              .trigger = tn_min_value("main/loss", .check = TN_EVERY(3, TN_ITERATION)), .priority = -150);
    return trainer;
}

#define MODEL "linear:7 dropout:0.3 relu linear:3"

static setup new_setup(const char *optimizer) { return setup_new(10, 3, MODEL, optimizer); }

static void assert_same_state(setup *a, setup *b)
{
    assert_int_equal(tn_param_count(a->model), tn_param_count(b->model));
    for (int i = 0; i < tn_param_count(a->model); i++)
        TN_SCOPE assert_memory_equal(test_data(tn_param(a->model, i)), test_data(tn_param(b->model, i)),
                                     (size_t)tn_size(tn_param(a->model, i)) * sizeof(float));
    assert_int_equal(tn_optimizer_steps(a->optimizer), tn_optimizer_steps(b->optimizer));
    assert_int_equal(tn_optimizer_state_count(a->optimizer), tn_optimizer_state_count(b->optimizer));
    for (int i = 0; i < tn_optimizer_state_count(a->optimizer); i++)
        TN_SCOPE {
            tn_array *x = tn_optimizer_state(a->optimizer, i), *y = tn_optimizer_state(b->optimizer, i);
            assert_memory_equal(test_data(x), test_data(y), (size_t)tn_size(x) * tn_dtype_size(tn_dtype_of(x)));
        }
    assert_true(tn_optimizer_lr(a->optimizer) == tn_optimizer_lr(b->optimizer));
}

static void run_well(tn_trainer *trainer)
{
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
}

static void empty_folder(void)
{
    test_folder_remove(folder);
    mkdir(folder, 0777);
}

/* Stopped after each iteration, in two ways: by its stop trigger with a snapshot of that iteration, and resumed by
 * autoload in objects made anew. */
static void check_resumed(const char *optimizer, int accumulate, const char *file)
{
    trace *whole = calloc(1, sizeof *whole), *parts = calloc(1, sizeof *parts);
    setup s = new_setup(optimizer);
    tn_trainer *trainer = build(&s, whole, accumulate, TN_EVERY(ITERATIONS, TN_ITERATION),
                                tn_snapshot(.file = file, .keep = 2), TN_EVERY(7, TN_ITERATION));
    run_well(trainer);
    uint64_t counter = tn_default_generator()->counter;
    for (int stop = 1; stop < ITERATIONS; stop++) {
        memset(parts, 0, sizeof *parts);
        setup r = {0};
        for (int part = 0; part < 2; part++) {
            if (part == 1)
                setup_free(&r);
            else
                empty_folder();
            r = new_setup(optimizer);
            int end = part ? ITERATIONS : stop;
            tn_trainer *again = build(&r, parts, accumulate, TN_EVERY(end, TN_ITERATION),
                                      tn_snapshot(.file = file, .autoload = true), TN_EVERY(stop, TN_ITERATION));
            run_well(again);
            tn_trainer_free(again);
        }
        for (int i = 1; i <= ITERATIONS; i++)
            assert_string_equal(parts->text[i], whole->text[i]);
        assert_same_state(&s, &r);
        assert_true(tn_default_generator()->counter == counter);
        setup_free(&r);
    }
    tn_trainer_free(trainer);
    setup_free(&s);
    check_fine();
    free(whole);
    free(parts);
}

static void test_any_iteration(void **state)
{
    (void)state;
    check_resumed("adam:lr=0.05", 1, "snapshot_iter_{iteration}");
}

static void test_accumulating(void **state)
{
    (void)state;
    check_resumed("momentum", 3, "{.updater.iteration}.npz");
}

/* ---- stopping by early stopping is the same, though its trigger is asked after the snapshot ---- */

static tn_trigger *early(void)
{
    return tn_early_stopping(.check = TN_EVERY(1, TN_ITERATION), .patience = 2, .max = TN_EVERY(40, TN_ITERATION));
}

static void test_early_stopping(void **state)
{
    (void)state;
    int64_t last = 0;
    for (int stop = 0; stop <= (last ? (int)last : 1); stop++) {
        trace *t = calloc(4, sizeof *t); /* more iterations than usual */
        setup s = {0};
        int64_t end = 0;
        empty_folder();
        for (int part = stop ? 0 : 1; part < 2; part++) {
            s = new_setup("sgd:lr=0.5");
            tn_updater *updater = tn_standard_updater(s.loader, s.optimizer);
            tn_trainer *trainer = tn_trainer_new(updater, .stop = early(), .out = folder, .quiet = true);
            tn_extend(trainer, tn_snapshot(.autoload = true), .trigger = TN_EVERY(stop ? stop : 1000, TN_ITERATION));
            run_well(trainer);
            end = tn_trainer_iteration(trainer);
            tn_trainer_free(trainer);
            setup_free(&s);
            if (part == 0) { /* only the first snapshot is left, as if the run had been killed after it */
                char path[600];
                for (int i = 2 * stop; stop && i <= end; i += stop) {
                    snprintf(path, sizeof path, "%s/snapshot_iter_%d.safetensors", folder, i);
                    unlink(path);
                }
            }
        }
        if (!stop)
            last = end;
        assert_int_equal(end, last);
        free(t);
    }
    assert_true(last > 2 && last < 40);
    check_fine();
}

/* A run that is complete stops at once; with a later stop it goes on. */
static void test_complete(void **state)
{
    (void)state;
    for (int part = 0; part < 3; part++) {
        setup s = setup_new(10, 3, "linear:3", "sgd");
        tn_trainer *trainer = setup_trainer(&s, TN_EVERY(part == 2 ? 3 : 2, TN_EPOCH));
        trace *t = calloc(1, sizeof *t);
        tn_extend(trainer, tn_snapshot(.autoload = true));
        tn_extend(trainer, noter_new(t, "x", false));
        run_well(trainer);
        assert_int_equal(tn_trainer_iteration(trainer), part == 2 ? 12 : 8);
        assert_int_equal(*t->text[8] != 0, part == 0);
        tn_trainer_free(trainer);
        setup_free(&s);
        free(t);
    }
    check_fine();
}

/* ---- files ---- */

static int files(const char *start)
{
    int count = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; (entry = readdir(open));)
        count += strncmp(entry->d_name, start, strlen(start)) == 0;
    closedir(open);
    return count;
}

static bool there(const char *name)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, R_OK) == 0;
}

/* Two generations of one pattern stay; files of another, which begins the same, stay all (Chainer takes them along). */
static void test_generations(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "sgd");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(4, TN_EPOCH));
    tn_extend(trainer, tn_snapshot_layer(s.model, "model_{.updater.epoch}", .keep = 2));
    tn_extend(trainer, tn_snapshot_layer(s.model, "model_best_{epoch}"));
    tn_extend(trainer, tn_snapshot(.keep = 2));
    run_well(trainer);
    assert_true(there("snapshot_iter_9.safetensors") && there("snapshot_iter_12.safetensors"));
    assert_int_equal(files("snapshot"), 2);
    assert_true(there("model_3.safetensors") && there("model_4.safetensors"));
    assert_int_equal(files("model_best"), 4);
    assert_int_equal(files("model"), 6);
    tn_layer *other = tn_layer_parse("linear:3");
    char path[600];
    snprintf(path, sizeof path, "%s/model_4.safetensors", folder);
    assert_int_equal(tn_layer_load(other, path), TN_OK);
    tn_layer_free(other);
    tn_trainer_free(trainer);
    setup_free(&s);
    check_fine();
}

/* Where one file is kept, snapshots that come faster than they can be written give way to the newest: the last is there
 * when the run has ended. */
static void test_newest(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "adam");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(200, TN_ITERATION));
    tn_extend(trainer, tn_snapshot(.keep = 1), .trigger = TN_EVERY(1, TN_ITERATION));
    run_well(trainer);
    assert_int_equal(files("snapshot"), 1);
    assert_true(there("snapshot_iter_200.safetensors"));
    setup r = setup_new(10, 4, "linear:3", "adam");
    tn_trainer *other = setup_trainer(&r, TN_EVERY(200, TN_ITERATION));
    tn_extend(other, tn_snapshot(.keep = 1, .autoload = true));
    run_well(other);
    assert_same_state(&s, &r);
    tn_trainer_free(other);
    setup_free(&r);
    tn_trainer_free(trainer);
    setup_free(&s);
    check_fine();
}

/* A trainer's snapshot knows that other files of its iteration have been written: it is on the disk after them, in
 * whichever order they were registered. */
static void test_order_of_files(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        setup s = setup_new(10, 4, "linear:300 linear:3", "adam");
        tn_trainer *trainer = setup_trainer(&s, TN_EVERY(20, TN_ITERATION));
        for (int i = 0; i < 2; i++)
            tn_extend(trainer, i == first ? tn_snapshot() : tn_snapshot_layer(s.model, "model_{iteration}"),
                      .trigger = TN_EVERY(2, TN_ITERATION));
        run_well(trainer);
        for (int i = 2; i <= 20; i += 2) {
            struct stat model, snapshot;
            char name[64];
            snprintf(name, sizeof name, "model_%d.safetensors", i);
            assert_int_equal(stat(test_path(folder, name), &model), 0);
            snprintf(name, sizeof name, "snapshot_iter_%d.safetensors", i);
            assert_int_equal(stat(test_path(folder, name), &snapshot), 0);
            double seconds = (double)(snapshot.st_mtim.tv_sec - model.st_mtim.tv_sec);
            assert_true(seconds + 1e-9 * (double)(snapshot.st_mtim.tv_nsec - model.st_mtim.tv_nsec) >= 0);
        }
        tn_trainer_free(trainer);
        setup_free(&s);
        empty_folder();
    }
    check_fine();
}

/* What a writer that was killed has left goes, what a living one is at stays. */
static void test_left_overs(void **state)
{
    (void)state;
    char path[600], kept[80];
    snprintf(kept, sizeof kept, "snapshot_iter_3.safetensors.tmp-%ld-1", (long)getpid());
    const char *const names[] = {"snapshot_iter_3.safetensors.tmp-999999999-1", kept, "x.tmp-999999999-1"};
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        close(open(path, O_CREAT | O_WRONLY, 0666));
    }
    setup s = setup_new(10, 4, "linear:3", "sgd");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(1, TN_ITERATION));
    tn_extend(trainer, tn_snapshot());
    run_well(trainer);
    assert_false(there(names[0]));
    assert_true(there(names[1]) && there(names[2]));
    tn_trainer_free(trainer);
    setup_free(&s);
}

static tn_status fail_at_2(tn_trainer *trainer, void *user)
{
    (void)user;
    if (tn_trainer_iteration(trainer) == 2)
        tn_zeros_like(NULL);
    return TN_OK;
}

/* What an extension has observed and nobody has read is only recorded: the writing thread finds it computed. */
static tn_status observe_recorded(tn_trainer *trainer, void *user)
{
    (void)user;
    tn_array *x = tn_from_doubles((const double[]){1, 2}, 2), *sum = tn_sum(tn_multiply(x, 3));
    return tn_observation_set(tn_trainer_observation(trainer), "recorded", sum, 0);
}

static void test_recorded(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "sgd");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(2, TN_ITERATION));
    tn_extend(trainer, tn_snapshot(), .trigger = TN_EVERY(1, TN_ITERATION));
    tn_extend_function(trainer, observe_recorded, NULL);
    run_well(trainer);
    assert_int_equal(tn_trainer_load(trainer, test_path(folder, "snapshot_iter_2.safetensors")), TN_OK);
    assert_float_equal(tn_observation_number(tn_trainer_observation(trainer), "recorded"), 9, 0);
    tn_trainer_free(trainer);
    setup_free(&s);
    check_fine();
}

static bool odd(tn_trainer *trainer, void *user)
{
    (void)user;
    return tn_trainer_iteration(trainer) % 2;
}

static void test_on_error_and_condition(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        empty_folder();
        setup s = setup_new(10, 4, "linear:3", "sgd");
        tn_trainer *trainer = setup_trainer(&s, TN_EVERY(3, TN_ITERATION));
        tn_extend(trainer, tn_snapshot(.on_error = true, .condition = odd), .trigger = TN_EVERY(1, TN_ITERATION));
        if (fails)
            tn_extend_function(trainer, fail_at_2, NULL, .priority = -300);
        assert_int_equal(tn_trainer_run(trainer) == TN_OK, !fails);
        tn_clear_error();
        assert_true(there("snapshot_iter_1.safetensors"));
        assert_int_equal(there("snapshot_iter_2.safetensors"), fails);
        assert_int_equal(there("snapshot_iter_3.safetensors"), !fails);
        tn_trainer_free(trainer);
        setup_free(&s);
    }
}

static tn_status fail_at_once(tn_trainer *trainer, void *user)
{
    (void)trainer, (void)user;
    return tn_status_of(tn_add(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(3))));
}

/* A run that fails before it trains has nothing new, for which an earlier run's snapshot would have to go. */
static void test_error_at_once(void **state)
{
    (void)state;
    static const tn_extension_kind unfit = {.name = "unfit", .priority = -300, .initialize = fail_at_once};
    for (int i = 0; i < 3; i++) { /* a run, and two that fail when they begin and before training */
        setup s = setup_new(10, 4, "linear:3", "sgd");
        if (i == 0)
            empty_folder();
        tn_trainer *trainer = setup_trainer(&s, TN_EVERY(3, TN_ITERATION));
        tn_extend(trainer, tn_snapshot(.on_error = true, .keep = 1), .trigger = TN_EVERY(3, TN_ITERATION));
        if (i == 1)
            tn_extend(trainer, tn_extension_new(&unfit, NULL));
        else if (i == 2)
            tn_extend_function(trainer, fail_at_once, NULL, .priority = -300, .call_before_training = true);
        assert_int_equal(tn_trainer_run(trainer), i ? TN_ERR_SHAPE : TN_OK);
        tn_clear_error();
        assert_true(there("snapshot_iter_3.safetensors"));
        assert_false(there("snapshot_iter_0.safetensors"));
        tn_trainer_free(trainer);
        setup_free(&s);
    }
}

/* ---- what does not fit ---- */

/* A trainer of this batch, network and optimizer does not take the file. */
static void assert_misfit(const char *path, int64_t batch, const char *network, const char *optimizer, tn_status code,
                          const char *words)
{
    setup s = setup_new(10, batch, network, optimizer);
    tn_trainer *trainer = setup_trainer(&s, NULL);
    assert_int_equal(tn_trainer_load(trainer, path), code);
    check_latched(code, words);
    tn_trainer_free(trainer);
    setup_free(&s);
}

static void test_misfits(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    setup s = setup_new(10, 4, "linear:3", "adam");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(4, TN_ITERATION));
    run_well(trainer);
    assert_int_equal(tn_trainer_save(trainer, path), TN_OK);
    tn_trainer_free(trainer);
    setup_free(&s);

    assert_misfit(path, 4, "linear:4", "adam", TN_ERR_SHAPE, "W");
    assert_misfit(path, 4, "linear:3", "adamw", TN_ERR_NAME, "of adam, and this optimizer is adamw");
    assert_misfit(path, 3, "linear:3", "adam", TN_ERR_VALUE, "multiple of 3");

    char unmarked[600];
    snprintf(unmarked, sizeof unmarked, "%s/b.safetensors", folder);
    tn_archive *texts = tn_archive_load(path);
    assert_int_equal(tn_archive_set_text(texts, "updater/optimizer:main/kind", "adam"), TN_OK);
    assert_int_equal(tn_archive_save(texts, unmarked), TN_OK);
    tn_archive_free(texts);
    assert_misfit(unmarked, 4, "linear:3", "adam", TN_ERR_FORMAT, "a text that begins with '='");

    setup more = setup_new(10, 4, "linear:3", "adam");
    trainer = setup_trainer(&more, TN_EVERY(9, TN_ITERATION));
    trace t = {0};
    tn_extend(trainer, noter_new(&t, "log", true), .name = "log");
    assert_int_equal(tn_trainer_load(trainer, path), TN_ERR_FORMAT);
    check_latched(TN_ERR_FORMAT, "extensions/log/summary");
    tn_trainer_free(trainer);
    setup_free(&more);

    tn_archive *archive = tn_archive_load(path);
    tn_archive_set_text(archive, "tanso.trainer", "2");
    assert_int_equal(tn_archive_save(archive, path), TN_OK);
    tn_archive_free(archive);
    assert_misfit(path, 4, "linear:3", "adam", TN_ERR_FORMAT, "newer");
}

/* A snapshot of iteration 0, when sizes are still to be inferred: what goes on from it has the weights of the run that
 * went on, made from the same generator; a model that has weights keeps them. */
static void test_before_first_forward(void **state)
{
    (void)state;
    static const char *const files[] = {"run.npz", "run.safetensors"};
    for (int k = 0; k < 2; k++) {
        char path[600], model[600];
        snprintf(path, sizeof path, "%s/%s", folder, files[k]);
        snprintf(model, sizeof model, "%s/model_0.npz", folder);
        setup a = new_setup("adam"), b = new_setup("adam"), c = new_setup("adam");
        tn_seed(check_bits());
        tn_trainer *first = setup_trainer(&a, TN_EVERY(4, TN_ITERATION));
        assert_int_equal(tn_trainer_save(first, path), TN_OK);
        tn_extend(first, tn_snapshot_layer(a.model, "model_{iteration}.npz"), .trigger = TN_EVERY(100, TN_EPOCH),
                  .call_before_training = true);
        run_well(first);
        tn_trainer *second = setup_trainer(&b, TN_EVERY(4, TN_ITERATION));
        tn_seed(check_bits());
        assert_int_equal(tn_trainer_load(second, path), TN_OK);
        assert_int_equal(tn_param_count(b.model), 0);
        assert_int_equal(tn_layer_load(b.model, model), TN_OK);
        assert_int_equal(tn_param_count(b.model), 0);
        run_well(second);
        assert_same_state(&a, &b);

        setup_make_params(&c);
        double w[28], now[28];
        check_read(tn_param(c.model, 0), w, 28);
        tn_trainer *third = setup_trainer(&c, TN_EVERY(4, TN_ITERATION));
        assert_int_equal(tn_trainer_load(third, path), TN_OK);
        assert_int_equal(tn_layer_load(c.model, model), TN_OK);
        check_read(tn_param(c.model, 0), now, 28);
        assert_memory_equal(w, now, sizeof w);
        run_well(third);
        check_fine();
        tn_trainer_free(first), tn_trainer_free(second), tn_trainer_free(third);
        setup_free(&a), setup_free(&b), setup_free(&c);
    }
}

/* The paths of a file are Chainer's. */
static void test_layout(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "momentum");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(5, TN_ITERATION));
    tn_extend(trainer, tn_evaluator(s.test_loader, s.model));
    run_well(trainer);
    char path[600];
    snprintf(path, sizeof path, "%s/a.safetensors", folder);
    assert_int_equal(tn_trainer_save(trainer, path), TN_OK);
    tn_archive *archive = tn_archive_load(path);
    static const struct {
        const char *path;
        double value;
    } row[] = {{"updater/iteration", 5},
               {"updater/iterator:main/current_position", 8},
               {"updater/iterator:main/epoch", 1},
               {"updater/iterator:main/is_new_epoch", 0},
               {"updater/iterator:main/previous_epoch_detail", 1.4},
               {"updater/optimizer:main/t", 5},
               {"stop_trigger/previous_iteration", 4}, /* as before it ended the run */
               {"stop_trigger/previous_epoch_detail", 1.4},
               {"extension_triggers/validation/previous_iteration", 5}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (!tn_archive_find(archive, row[i].path))
            fail_msg("no %s", row[i].path);
        assert_float_equal(tn_item(tn_archive_find(archive, row[i].path)), row[i].value, 1e-15);
    }
    assert_int_equal(tn_size(tn_archive_find(archive, "updater/model:main/0/W")), 12);
    assert_int_equal(tn_size(tn_archive_find(archive, "updater/optimizer:main/0/W/v")), 12);
    assert_non_null(tn_archive_find(archive, "_snapshot_elapsed_time"));
    tn_archive_free(archive);
    tn_trainer_free(trainer);
    setup_free(&s);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_iteration, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_accumulating, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_early_stopping, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_complete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_generations, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_newest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_order_of_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_left_overs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_recorded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_on_error_and_condition, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_error_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_misfits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_before_first_forward, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_layout, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
