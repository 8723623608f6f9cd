/* SPDX-License-Identifier: MIT */
/* The loop: order, names, the life of a run, errors, stopping, where a run stands. */
#include <signal.h>
#include <unistd.h>
#include <tanso/extensions.h>
#include "trainer_setup.h"

/* ---- an extension that writes down what happens to it ---- */

typedef struct diary {
    char text[4096];
    size_t length;
} diary;

static void note(diary *d, const char *what, const char *who)
{
    d->length += (size_t)snprintf(d->text + d->length, sizeof d->text - d->length, "%s%s%s%s", d->length ? " " : "",
                                  what, *what ? " " : "", who);
}

typedef struct writer {
    diary *diary;
    const char *name;
    int64_t fails_at; /* the iteration of the call that fails, -1: before training, -2: when it begins; 0: none */
    bool all;         /* notes everything, not calls alone */
} writer;

static tn_status writer_initialize(tn_trainer *trainer, void *user)
{
    (void)trainer;
    writer *w = user;
    if (w->all)
        note(w->diary, "init", w->name);
    if (w->fails_at == -2)
        tn_slice_axis(tn_ones(TN_SHAPE(2)), 5, 0, 1, 1); /* latches */
    return TN_OK;
}

static tn_status writer_call(tn_trainer *trainer, void *user)
{
    writer *w = user;
    if (!w->all)
        note(w->diary, "", w->name);
    if (w->fails_at && tn_trainer_iteration(trainer) == (w->fails_at > 0 ? w->fails_at : 0))
        tn_slice_axis(tn_ones(TN_SHAPE(2)), 5, 0, 1, 1); /* latches */
    return TN_OK;
}

static void writer_on_error(tn_trainer *trainer, void *user)
{
    writer *w = user;
    assert_true(tn_ok());
    assert_non_null(strstr(tn_trainer_error(trainer), "axis"));
    if (w->all)
        note(w->diary, "on_error", w->name);
    tn_zeros_like(NULL); /* an error of its own ends nothing */
}

static void writer_finalize(tn_trainer *trainer, void *user)
{
    (void)trainer;
    writer *w = user;
    assert_true(tn_ok());
    if (w->all)
        note(w->diary, "finalize", w->name);
}

static void writer_free(void *user) { free(user); }

static const tn_extension_kind writer_kind = {.name = "writer",
                                              .priority = 100,
                                              .initialize = writer_initialize,
                                              .call = writer_call,
                                              .on_error = writer_on_error,
                                              .finalize = writer_finalize,
                                              .free = writer_free};

static tn_extension *writer_new(diary *d, const char *name, bool all, int64_t fails_at)
{
    writer *w = malloc(sizeof *w);
    *w = (writer){d, name, fails_at, all};
    return tn_extension_new(&writer_kind, w);
}

static tn_trainer *idle_trainer(tn_trigger *stop)
{
    return tn_trainer_new(tn_updater_of(idle, NULL, NULL), .stop = stop, .out = folder, .quiet = true);
}

/* ---- tests ---- */

static void test_order(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int priority;
    } row[] = {{"a", 100}, {"b", 300}, {"c", 200}, {"d", 100}, {"e", -100}, {"f", 300}};
    diary d = {0};
    tn_trainer *trainer = idle_trainer(TN_EVERY(1, TN_ITERATION));
    for (int i = 0; i < 6; i++)
        assert_int_equal(tn_extend(trainer, writer_new(&d, row[i].name, false, 0), .priority = row[i].priority), TN_OK);
    assert_int_equal(tn_trainer_run(trainer), TN_OK);
    assert_string_equal(d.text, "b f c a d e");
    assert_int_equal(tn_trainer_iteration(trainer), 1);
    assert_false(tn_trainer_stopped(trainer));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_STATE);
    check_latched(TN_ERR_STATE, "has done its run");
    tn_trainer_free(trainer);
}

/* Measured with Chainer: w 300, bad 200, which fails in iteration 2, a 100. */
static void test_failure(void **state)
{
    (void)state;
    diary d = {0};
    tn_trainer *trainer = idle_trainer(TN_EVERY(5, TN_ITERATION));
    tn_extend(trainer, writer_new(&d, "w", true, 0), .priority = 300);
    tn_extend(trainer, writer_new(&d, "bad", true, 2), .priority = 200);
    tn_extend(trainer, writer_new(&d, "a", true, 0));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_INDEX);
    check_latched(TN_ERR_INDEX, "axis");
    assert_string_equal(d.text, "init w init bad init a on_error w on_error bad on_error a finalize w finalize bad "
                                "finalize a");
    assert_int_equal(tn_trainer_iteration(trainer), 2);
    assert_int_equal(tn_trainer_run(trainer), TN_OK); /* goes on */
    assert_int_equal(tn_trainer_iteration(trainer), 5);
    tn_trainer_free(trainer);
}

/* As one in an iteration does: a call before training that fails is told to all. Chainer tells nobody. */
static void test_failure_before(void **state)
{
    (void)state;
    diary d = {0};
    tn_trainer *trainer = idle_trainer(TN_EVERY(5, TN_ITERATION));
    tn_extend(trainer, writer_new(&d, "w", true, 0), .priority = 300, .call_before_training = true);
    tn_extend(trainer, writer_new(&d, "bad", true, -1), .priority = 200, .call_before_training = true);
    tn_extend(trainer, writer_new(&d, "a", true, 0));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_INDEX);
    check_latched(TN_ERR_INDEX, "axis");
    assert_string_equal(d.text, "init w init bad init a on_error w on_error bad on_error a finalize w finalize bad "
                                "finalize a");
    assert_int_equal(tn_trainer_iteration(trainer), 0);
    tn_trainer_free(trainer);
    /* one that cannot even begin: those are told that have */
    d = (diary){0};
    trainer = idle_trainer(TN_EVERY(5, TN_ITERATION));
    tn_extend(trainer, writer_new(&d, "w", true, 0), .priority = 300);
    tn_extend(trainer, writer_new(&d, "bad", true, -2), .priority = 200);
    tn_extend(trainer, writer_new(&d, "a", true, 0));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_INDEX);
    check_latched(TN_ERR_INDEX, "axis");
    assert_string_equal(d.text, "init w init bad on_error w finalize w finalize bad finalize a");
    tn_trainer_free(trainer);
}

/* A function that gives a status and latches no error ends the run all the same, whichever it is. */
static tn_status bare(tn_trainer *trainer, void *user)
{
    (void)user;
    return tn_trainer_iteration(trainer) == 0 || tn_trainer_iteration(trainer) == 3 ? TN_ERR_INDEX : TN_OK;
}

static tn_status bare_update(tn_updater *updater, void *user)
{
    (void)updater, (void)user;
    return TN_ERR_INDEX;
}

static int told;

static void count_told(tn_trainer *trainer, void *user)
{
    (void)user;
    told += strstr(tn_trainer_error(trainer), "TN_ERR_INDEX") != NULL;
}

static void test_bare_status(void **state)
{
    (void)state;
    static volatile int stop_now = 1;
    static const tn_extension_kind kinds[] = {{.name = "a", .prepare = bare}, {.name = "b", .initialize = bare},
                                              {.name = "c", .call = bare}, {.name = "d", .after = bare},
                                              {.name = "e", .on_stop = bare}},
                                   listener = {.name = "listener", .on_error = count_told};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (int i = 0; i <= KINDS; i++) {
        bool stopped = i < KINDS && kinds[i].on_stop;
        tn_updater *updater = tn_updater_of(i == KINDS ? bare_update : idle, NULL, NULL);
        tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(5, TN_ITERATION), .out = folder, .quiet = true,
                                             .stop_flag = stopped ? &stop_now : NULL);
        tn_extend(trainer, tn_extension_new(&listener, NULL));
        if (i < KINDS)
            tn_extend(trainer, tn_extension_new(&kinds[i], NULL));
        told = 0;
        assert_int_equal(tn_trainer_run(trainer), TN_ERR_INDEX);
        check_latched(TN_ERR_INDEX, "latched no error");
        assert_int_equal(tn_trainer_iteration(trainer), i == 2 || i == 3 ? 3 : 0);
        assert_int_equal(told, i >= 1 && !stopped); /* where a run cannot be prepared, nobody has begun */
        tn_trainer_free(trainer);
    }
}

static tn_status count_call(tn_trainer *trainer, void *user)
{
    (void)trainer;
    ++*(int *)user;
    return TN_OK;
}

static void test_names(void **state)
{
    (void)state;
    int calls = 0, before = 0;
    tn_trainer *trainer = idle_trainer(TN_EVERY(4, TN_ITERATION));
    for (int i = 0; i < 3; i++)
        assert_int_equal(tn_extend_function(trainer, count_call, &calls, .name = "LogReport"), TN_OK);
    assert_non_null(tn_trainer_extension(trainer, "LogReport"));
    assert_string_equal(tn_extension_name(tn_trainer_extension(trainer, "LogReport_2")), "LogReport_2");
    assert_null(tn_trainer_extension(trainer, "LogReport_3"));
    check_latched(TN_ERR_NAME, "LogReport_3");
    assert_int_equal(tn_extend_function(trainer, count_call, &calls, .name = "training"), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "training");
    tn_extend_function(trainer, count_call, &before, .trigger = TN_EVERY(3, TN_ITERATION),
                       .call_before_training = true);
    assert_int_equal(tn_trainer_run(trainer), TN_OK);
    assert_int_equal(calls, 12);
    assert_int_equal(before, 2); /* before iteration 1, and at 3 */
    tn_trainer_free(trainer);
}

/* What is wrong is told when it is given to the trainer, which frees it. */
static void test_bad_parts(void **state)
{
    (void)state;
    tn_layer *net = tn_linear(2, .in = 2);
    tn_array *const weight[] = {tn_param(net, 0)};
    tn_extension *const elsewhere[] = {
        tn_log_report(.file = "/x"),
        tn_print_report_of(TN_KEYS_OF("epoch"), .file = "/x"),
        tn_plot_report(TN_KEYS_OF("epoch"), .file = "/x.svg"),
        tn_dump_graph("main/loss", .file = "/x.dot"),
        tn_profile(.file = "/x"),
        tn_variable_statistics_plot(1, weight, .file = "/x.svg"),
        tn_snapshot(.file = "/x"),
        tn_print_report_of(TN_KEYS_OF("epoch"), .file = "../x"),
        tn_profile(.file = "a/.././../x"),
        tn_log_report(.file = ".."),
        tn_plot_report(TN_KEYS_OF("epoch"), .title = "\xff"),
    };
    assert_non_null(strstr(tn_error(), "absolute path '/x'")); /* the first one's */
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        assert_int_equal(tn_extension_status(elsewhere[i]), TN_ERR_VALUE);
        tn_extension_free(elsewhere[i]);
    }
    tn_clear_error();
    tn_layer_free(net);
    tn_trainer *trainer = idle_trainer(NULL);
    int calls = 0;
    assert_int_equal(tn_extend(trainer, tn_log_report(.file = "../x")), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "got '../x', which lies outside");
    assert_int_equal(tn_extend(trainer, tn_plot_report(TN_KEYS_OF("epoch"), .title = "\xff")), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "the title");
    assert_int_equal(tn_extend(trainer, tn_log_report(.file = "a/../x")), TN_OK);
    assert_int_equal(tn_extend(trainer, tn_print_report_of(TN_KEYS_OF("epoch"), .file = "x", .stream = stderr)),
                     TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "a .stream or a .file, got both");
    assert_int_equal(tn_extend_function(trainer, count_call, &calls, .trigger = TN_EVERY(0, TN_EPOCH)), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "more than 0 epochs");
    assert_int_equal(tn_extend(trainer, tn_snapshot(.file = "a/{iteration}")), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "a/{iteration}");
    assert_int_equal(tn_extend(trainer, tn_snapshot(.file = "a_{step}")), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "{iteration} or {epoch}");
    tn_trainer_free(trainer);

    setup s = setup_new(10, 3, "linear:3", "sgd");
    tn_trainer *bad = setup_trainer(&s, TN_EVERY(-1, TN_ITERATION));
    assert_int_equal(tn_trainer_status(bad), TN_ERR_VALUE);
    tn_clear_error();
    assert_int_equal(tn_trainer_run(bad), TN_ERR_VALUE);
    check_latched(TN_ERR_VALUE, "1 iteration or more");
    tn_trainer_free(bad);
    setup_free(&s);
}

/* ---- a real run ---- */

typedef struct rows {
    double epoch_detail[16], lr[16];
    int64_t epoch[16];
    bool new_epoch[16];
    char keys[4][256];
} rows;

static tn_status take_row(tn_trainer *trainer, void *user)
{
    rows *r = user;
    int i = (int)tn_trainer_iteration(trainer);
    r->epoch_detail[i] = tn_trainer_epoch_detail(trainer);
    r->epoch[i] = tn_trainer_epoch(trainer);
    r->new_epoch[i] = tn_trainer_is_new_epoch(trainer);
    tn_observation *seen = tn_trainer_observation(trainer);
    if (i < 5 && i >= 1)
        for (int k = 0; k < tn_observation_count(seen); k++) {
            strcat(r->keys[i - 1], tn_observation_key(seen, k));
            strcat(r->keys[i - 1], " ");
        }
    return TN_OK;
}

/* 10 samples, 4 a minibatch: 4, 8, 10 samples after each, and the loss falls. */
static void test_progress(void **state)
{
    (void)state;
    setup s = setup_new(10, 4, "linear:3", "sgd:lr=0.1");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(2, TN_EPOCH));
    rows r = {0};
    tn_extend(trainer, tn_evaluator(s.test_loader, s.model));
    tn_extend_function(trainer, take_row, &r);
    assert_int_equal(tn_trainer_run(trainer), TN_OK);
    check_fine();
    static const double detail[] = {0.4, 0.8, 1, 1.4, 1.8, 2};
    assert_int_equal(tn_trainer_iteration(trainer), 6);
    for (int i = 1; i <= 6; i++) {
        assert_float_equal(r.epoch_detail[i], detail[i - 1], 1e-15);
        assert_int_equal(r.epoch[i], i / 3);
        assert_int_equal(r.new_epoch[i], i % 3 == 0);
    }
    assert_string_equal(r.keys[0], "main/loss main/accuracy ");
    assert_string_equal(r.keys[2], "main/loss main/accuracy validation/main/loss validation/main/accuracy ");
    assert_float_equal(tn_trainer_length(trainer).count, 2, 0);
    assert_int_equal(tn_trainer_length(trainer).unit, TN_EPOCH);
    assert_true(tn_trainer_elapsed_time(trainer) > 0);
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* ---- stopping ---- */

static volatile int flag;

static tn_status raise_flag(tn_trainer *trainer, void *user)
{
    if (tn_trainer_iteration(trainer) == 2) {
        if (user)
            raise(SIGINT);
        else
            flag = 1;
    }
    return TN_OK;
}

static void test_stopped(void **state)
{
    (void)state;
    signal(SIGINT, SIG_DFL); /* a shell has its background jobs ignore it */
    for (int by_signal = 0; by_signal < 2; by_signal++) {
        setup s = setup_new(10, 4, "linear:3", "sgd:lr=0.1");
        flag = 0;
        diary d = {0};
        tn_trainer *trainer = tn_trainer_new(tn_standard_updater(s.loader, s.optimizer), .out = folder,
                                             .stop_flag = &flag, .ctrl_c = true, .quiet = true);
        tn_extend_function(trainer, raise_flag, by_signal ? &by_signal : NULL);
        tn_extend(trainer, writer_new(&d, "w", true, 0));
        tn_extend(trainer, tn_snapshot());
        assert_int_equal(tn_trainer_run(trainer), TN_OK);
        assert_true(tn_trainer_stopped(trainer));
        assert_int_equal(tn_trainer_iteration(trainer), 2);
        assert_string_equal(d.text, "init w finalize w");
        char path[600];
        snprintf(path, sizeof path, "%s/snapshot_iter_2.safetensors", folder);
        assert_int_equal(access(path, R_OK), 0);
        unlink(path);
        check_fine();
        tn_trainer_free(trainer);
        setup_free(&s);
    }
    struct sigaction now;
    sigaction(SIGINT, NULL, &now);
    assert_true(now.sa_handler == SIG_DFL);
}

/* Minibatches go to the updater's and the evaluator's device: the same run as with loaders that are there. */
static void test_minibatches_go_there(void **state)
{
    (void)state;
    tn_device there = tn_virtual(1);
    float weights[2][15];
    double losses[2];
    for (int moved = 0; moved < 2; moved++) TN_SCOPE {
        tn_device device = moved ? tn_cpu() : there;
        tn_seed(7);
        tn_layer *model = tn_layer_parse("linear:3");
        tn_optimizer *optimizer = tn_momentum_sgd(model);
        tn_loader *loader = tn_loader_new(setup_data(30, 1), .batch = 8, .device = device),
                  *test_loader = tn_loader_new(setup_data(11, 2), .batch = 4, .device = device);
        tn_trainer *trainer = tn_trainer_new(tn_standard_updater(loader, optimizer, .device = there), .quiet = true,
                                             .stop = TN_EVERY(2, TN_EPOCH), .out = folder);
        tn_extend(trainer, tn_evaluator(test_loader, model, .device = there));
        if (tn_trainer_run(trainer) != TN_OK)
            fail_msg("%s", tn_error());
        losses[moved] = tn_observation_number(tn_trainer_observation(trainer), "validation/main/loss");
        assert_true(tn_device_equal(tn_device_of(model), there));
        memcpy(weights[moved], tn_data(tn_to(tn_param(model, 0), tn_cpu())), 12 * sizeof(float));
        memcpy(weights[moved] + 12, tn_data(tn_to(tn_param(model, 1), tn_cpu())), 3 * sizeof(float));
        tn_trainer_free(trainer);
        tn_loader_free(loader);
        tn_loader_free(test_loader);
        tn_optimizer_free(optimizer);
        tn_layer_free(model);
    }
    assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
    assert_true(losses[0] == losses[1] && losses[0] > 0);
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failure_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bare_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bad_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_progress, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_minibatches_go_there, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
