/* SPDX-License-Identifier: MIT */
/* Extensions that look at values, parameters, graphs and time; and all of them without memory. */
#include <jansson.h>
#include <math.h>
#include "support/latched.h"
#include "support/random.h"
#include "support/starve.h"
#include "support/svg.h"
#include "trainer_setup.h"

static test_random chance;

static void run(tn_trainer *trainer)
{
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
}

static setup small(void)
{
    setup s = setup_new(12, 3, "linear:3", "sgd:lr=0.1");
    setup_make_params(&s);
    return s;
}

static tn_trainer *still(setup *s, int64_t iterations)
{
    return tn_trainer_new(tn_updater_of(take_one, s->loader, s->optimizer),
                          .stop = TN_EVERY((double)iterations, TN_ITERATION), .out = folder, .quiet = true);
}

/* ---- observed values ---- */

static tn_status two_values(tn_trainer *trainer, void *user)
{
    (void)user;
    tn_observation *seen = tn_trainer_observation(trainer);
    double i = (double)tn_trainer_iteration(trainer);
    if (i != 6)
        tn_observation_set_number(seen, "right", i, 0);
    return i == 2 ? TN_OK : tn_observation_set(seen, "all", tn_full(TN_SHAPE(1), 2 * i + 1), 0);
}

static double results[32];
static tn_status note_result(tn_trainer *trainer, void *user)
{
    double value = tn_observation_number(tn_trainer_observation(trainer), user);
    results[tn_trainer_iteration(trainer)] = value;
    return TN_OK;
}

static void test_micro_average(void **state)
{
    (void)state;
    setup s = small();
    tn_trainer *trainer = still(&s, 9);
    tn_extend_function(trainer, two_values, NULL, .name = "two", .priority = 300);
    tn_extend(trainer, tn_micro_average("right", "all", "ratio"));
    tn_extend_function(trainer, note_result, "ratio", .name = "note");
    run(trainer);
    for (int i = 1; i <= 9; i++)
        assert_true(i == 4   ? fabs(results[i] - (1 + 3 + 4) / (3.0 + 7 + 9)) < 1e-12
                    : i == 8 ? fabs(results[i] - (5 + 7 + 8) / (11.0 + 15 + 17)) < 1e-12
                             : isnan(results[i]));
    tn_trainer_free(trainer);
    setup_free(&s);
    tn_extension_free(tn_micro_average("right", "", "ratio"));
    assert_failed(TN_ERR_VALUE, "expected a key");
}

static double tenfold(tn_trainer *trainer, void *user)
{
    return *(double *)user * (double)tn_trainer_iteration(trainer);
}

static void test_observe(void **state)
{
    (void)state;
    setup s = small();
    tn_trainer *trainer = still(&s, 9);
    double ten = 10;
    tn_extend(trainer, tn_observe_value("tenfold", tenfold, &ten));
    tn_extend(trainer, tn_observe_lr());
    tn_extend_function(trainer, note_result, "tenfold", .name = "note");
    tn_extend_function(trainer, note_result, "lr", .name = "note_lr", .trigger = TN_EVERY(8, TN_ITERATION));
    run(trainer);
    assert_true(isnan(results[3]) && results[4] == 40 && fabs(results[8] - 0.1) < 1e-12 && isnan(results[9]));
    tn_trainer_free(trainer);
    trainer = still(&s, 1);
    tn_extend(trainer, tn_observe_lr(.optimizer = "gen"));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_NAME);
    check_latched(TN_ERR_NAME, "gen");
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* ---- parameters ---- */

static tn_status spoil(tn_trainer *trainer, void *user)
{
    tn_array *w = tn_param(tn_trainer_optimizer(trainer, NULL) ? user : NULL, 0);
    float values[12] = {0};
    values[test_random_int(&chance, 0, 11)] = test_random_bits(&chance) % 2 ? NAN : -INFINITY;
    return tn_assign(w, tn_from_host(values, TN_SHAPE(4, 3), TN_FLOAT32));
}

/* Where the host reads the device's memory in the iteration itself, elsewhere at the next look. */
static void test_fail_on_nan(void **state)
{
    (void)state;
    setup s = small();
    tn_trainer *trainer = still(&s, 20);
    tn_extend_function(trainer, spoil, s.model, .name = "spoil", .priority = 300,
                       .trigger = tn_at_points(TN_ITERATION, 6));
    tn_extend(trainer, tn_fail_on_nan(.every = 3));
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_NAN);
    check_latched(TN_ERR_NAN, "'0.W' that the optimizer 'main' trains is not finite");
    int64_t at = tn_trainer_iteration(trainer);
    assert_true(at >= 6 && at <= 8 && (at == 6 || test_elsewhere()));
    tn_trainer_free(trainer);
    setup_free(&s);

    s = small();
    trainer = still(&s, 20);
    tn_extend(trainer, tn_fail_on_nan());
    run(trainer);
    assert_int_not_equal(tn_extend(trainer, tn_fail_on_nan(.every = 0)), TN_OK);
    check_latched(TN_ERR_VALUE, "got 0");
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* NumPy 1.23's numbers of arange(12). */
static void test_parameter_statistics(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double value;
    } expected[] = {{"mean", 5.5},
                    {"std", 3.452052529534663},
                    {"min", 0},
                    {"max", 11},
                    {"zeros", 1},
                    {"percentile/0", 0.0143},
                    {"percentile/1", 0.2508},
                    {"percentile/2", 1.7457},
                    {"percentile/3", 5.5},
                    {"percentile/4", 9.2543},
                    {"percentile/5", 10.7492},
                    {"percentile/6", 10.9857}};
    setup s = small();
    TN_SCOPE {
        tn_assign(tn_param(s.model, 0), tn_reshape(tn_arange(0, 12, 1), TN_SHAPE(4, 3)));
    }
    tn_trainer *trainer = still(&s, 4);
    tn_extend(trainer, tn_parameter_statistics(.prefix = "all"));
    run(trainer);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char key[64];
        snprintf(key, sizeof key, "all/main/0/W/data/%s", expected[i].name);
        double value = tn_observation_number(tn_trainer_observation(trainer), key);
        if (!(fabs(value - expected[i].value) < 1e-5))
            fail_msg("%s: %.9g, not %.9g", key, value, expected[i].value);
    }
    assert_int_equal(tn_observation_count(tn_trainer_observation(trainer)), 2 * 12); /* W and b */
    tn_trainer_free(trainer);
    setup_free(&s);
}

static void test_variable_statistics(void **state)
{
    (void)state;
    setup s = small();
    tn_trainer *trainer = still(&s, 2500);
    tn_extend(trainer, tn_variable_statistics_plot(2, ((tn_array *[]){tn_param(s.model, 0), tn_param(s.model, 1)}),
                                                   .every = TN_EVERY(1, TN_ITERATION)));
    run(trainer);
    char *svg = test_read(test_path(folder, "statistics.svg"), NULL);
    test_well_formed(svg);
    assert_int_equal(test_count(svg, ">median<"), 1);
    assert_int_equal(test_count(svg, "fill-opacity"), 2 + 5); /* two in the legends, five bands */
    assert_int_equal(test_count(svg, ">2000<"), 2);
    assert_true(strlen(svg) < 400000);
    free(svg);
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* ---- looking inside ---- */

static void test_dump_graph(void **state)
{
    (void)state;
    setup s = small();
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(3, TN_ITERATION));
    tn_extend(trainer, tn_dump_graph("main/loss"));
    run(trainer);
    char *dot = test_read(test_path(folder, "cg.dot"), NULL);
    assert_true(strncmp(dot, "digraph", 7) == 0 && strstr(dot, "matmul") && strstr(dot, "fillcolor=orange"));
    free(dot);
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* An iteration of a trace, and how many evaluations it had. */
static int64_t check_iteration(json_t *event, int iteration, double *end)
{
    char name[32];
    snprintf(name, sizeof name, "iteration %d", iteration);
    assert_string_equal(json_string_value(json_object_get(event, "name")), name);
    double start = json_number_value(json_object_get(event, "ts"));
    double duration = json_number_value(json_object_get(event, "dur"));
    assert_true(fabs(start - *end) < 0.01 && duration > 0);
    *end = start + duration;
    int64_t evaluations = json_integer_value(json_object_get(json_object_get(event, "args"), "evaluations"));
    assert_true(evaluations >= 1);
    return evaluations;
}

/* A run of a plan, somewhere in the iterations; a GPU's clock and the host's agree about. */
static void check_plan(json_t *event, double end)
{
    double start = json_number_value(json_object_get(event, "ts"));
    double duration = json_number_value(json_object_get(event, "dur"));
    assert_true(duration >= 0);
    if (!test_elsewhere())
        assert_true(start >= 0 && start + duration < end + 0.01);
    json_t *args = json_object_get(event, "args");
    assert_true(json_integer_value(json_object_get(args, "steps")) >= 1);
    assert_true(json_integer_value(json_object_get(args, "bytes")) >= 1);
}

static void check_trace(const char *file, int first, int count)
{
    json_error_t error;
    json_t *trace = json_load_file(test_path(folder, file), 0, &error);
    if (!trace)
        fail_msg("%s: %s at line %d", file, error.text, error.line);
    json_t *events = json_object_get(trace, "traceEvents");
    double end = 0;
    int64_t evaluations = 0, plans = 0;
    for (int k = 0; k < count; k++)
        evaluations += check_iteration(json_array_get(events, (size_t)(2 * k)), first + k, &end);
    for (size_t i = 2 * (size_t)count; i < json_array_size(events); i++) {
        json_t *event = json_array_get(events, i);
        const char *kind = json_string_value(json_object_get(event, "ph"));
        bool runs = strcmp(kind, "X") == 0;
        assert_true(runs || strcmp(kind, "M") == 0);
        if (runs)
            check_plan(event, end);
        plans += runs;
    }
    assert_int_equal(plans, evaluations);
    json_decref(trace);
}

/* The table's second part: a line a plan. All of what the iterations ran is there: a step has products. */
static void check_plans(const char *file, int count)
{
    char *table = test_read(test_path(folder, file), NULL);
    char *plans = strstr(table, "\n\n");
    assert_non_null(plans);
    *plans = '\0';
    assert_int_equal(test_count(table, "\n"), 1 + count);
    assert_non_null(strstr(plans + 2, " of\n"));
    assert_non_null(strstr(plans + 2, "matmul"));
    long runs = 0;
    for (char *line = strchr(plans + 2, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        long of = 0;
        double time = -1, share = -1;
        if (sscanf(line, "%*d %lf %lf%% %ld", &time, &share, &of) == 3) {
            assert_true(time >= 0 && share >= 0);
            runs += of;
        }
    }
    assert_true(runs >= count);
    free(table);
}

/* Of several that measure at the same time each has its own. */
static void test_profile(void **state)
{
    (void)state;
    static const struct {
        const char *name, *trace, *table;
        int first, count, left;
    } made[] = {{"profile", "profile.json", "profile.txt", 3, 5, 5},
                {"both", "both.json", "both.txt", 5, 4, 4},
                {"rest", "rest.json", "rest.txt", 10, 50, 3}};
    setup s = small();
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(12, TN_ITERATION));
    for (int i = 0; i < 3; i++)
        tn_extend(trainer, tn_profile(.first = made[i].first, .count = made[i].count, .file = made[i].name));
    run(trainer);
    for (int i = 0; i < 3; i++) {
        check_trace(made[i].trace, made[i].first, made[i].left);
        check_plans(made[i].table, made[i].left);
    }
    tn_trainer_free(trainer);
    setup_free(&s);
}

/* An evaluation at the end of iteration 4, after the trainer's other extensions. */
static tn_status evaluate_at_four(tn_trainer *trainer, void *user)
{
    (void)user;
    tn_status status = TN_OK;
    if (tn_trainer_iteration(trainer) == 4)
        TN_SCOPE status = tn_eval(tn_add(tn_ones(TN_SHAPE(3)), tn_ones(TN_SHAPE(3))));
    return status;
}

static const tn_extension_kind late_kind = {.name = "late", .priority = -200, .after = evaluate_at_four};

/* What an extension does at an iteration's end is that iteration's. */
static void test_profile_ends(void **state)
{
    (void)state;
    tn_trainer *trainer = tn_trainer_new(tn_updater_of(idle, NULL, NULL), .stop = TN_EVERY(6, TN_ITERATION),
                                         .out = folder, .quiet = true);
    tn_extend(trainer, tn_profile(.first = 3, .count = 3));
    tn_extend(trainer, tn_extension_new(&late_kind, NULL));
    run(trainer);
    tn_trainer_free(trainer);
    char *table = test_read(test_path(folder, "profile.txt"), NULL), *line = strchr(table, '\n');
    for (long i = 3; i <= 5; i++, line = strchr(line + 1, '\n')) {
        long iteration, evaluations;
        assert_int_equal(sscanf(line, "%ld %*f %ld", &iteration, &evaluations), 2);
        assert_int_equal(iteration, i);
        assert_int_equal(evaluations, i == 4);
    }
    free(table);
    check_fine();
}

/* One plan an iteration, that of 5 fails after it. */
static tn_status evaluate_and_fail(tn_updater *updater, void *user)
{
    tn_status status = TN_OK;
    TN_SCOPE status = tn_eval(tn_add(tn_ones(TN_SHAPE(3)), tn_ones(TN_SHAPE(3))));
    return *(bool *)user && tn_updater_progress(updater).iteration == 4 ? TN_ERR_VALUE : status;
}

/* Of a run that fails, no more than the iterations before; of one that goes on from within the window, those after, and
 * the table says which they are. */
static void test_profile_parts(void **state)
{
    (void)state;
    for (int part = 0; part < 2; part++) {
        bool fails = part == 0;
        setup s = setup_new(30, 3, "linear:3", "sgd");
        setup_make_params(&s);
        tn_trainer *trainer = tn_trainer_new(tn_updater_of(evaluate_and_fail, s.loader, s.optimizer, .user = &fails),
                                             .stop = TN_EVERY(8, TN_ITERATION), .out = folder, .quiet = true);
        tn_extend(trainer, tn_profile(.first = 2, .count = 6));
        tn_extend(trainer, tn_snapshot(.file = "four", .autoload = true, .wait = true),
                  .trigger = tn_at_points(TN_ITERATION, 4));
        assert_int_equal(tn_trainer_run(trainer), fails ? TN_ERR_VALUE : TN_OK);
        tn_clear_error();
        tn_trainer_free(trainer);
        setup_free(&s);
        char *table = test_read(test_path(folder, "profile.txt"), NULL), *plans = strstr(table, "\n\n");
        assert_non_null(plans);
        long runs = 0;
        assert_int_equal(sscanf(strchr(plans + 2, '\n'), "%*d %*f %*f%% %ld", &runs), 1);
        assert_int_equal(runs, 3); /* 2 to 4, 5 to 7 */
        *plans = '\0';
        assert_int_equal(test_count(table, "\n"), fails ? 4 : 5);
        const char *head = "of iterations 2 to 7 those from 5 on: ";
        assert_int_equal(strncmp(table, head, strlen(head)) == 0, !fails);
        free(table);
    }
    check_fine();
}

/* ---- without memory ---- */

static tn_status everything(void *user)
{
    (void)user;
    if (!tn_ok())
        return tn_error_code();
    setup s = setup_new(6, 3, "linear:3", "sgd:lr=0.1");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(2, TN_ITERATION));
    tn_extend(trainer, tn_log_report());
    const char *const keys[] = {"epoch", "main/loss"};
    tn_extend(trainer, tn_print_report_with(2, keys, TN_OPTS(tn_print_report_opts, .file = "table")));
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss")));
    tn_extend(trainer, tn_tensorboard());
    tn_extend(trainer, tn_progress_bar());
    tn_extend(trainer, tn_observe_lr());
    tn_extend(trainer, tn_micro_average("main/accuracy", "main/loss", "ratio"));
    tn_extend(trainer, tn_multistep_shift("weight_decay", 0.1, TN_POINTS(2, 5)));
    tn_extend(trainer, tn_reduce_on_plateau("lr", "main/loss"));
    tn_extend(trainer, tn_parameter_statistics(.prefix = "p"));
    tn_extend(trainer, tn_fail_on_nan());
    tn_extend(trainer, tn_dump_graph("main/loss"));
    tn_extend(trainer, tn_profile(.first = 1, .count = 2));
    tn_status status = tn_ok() ? tn_trainer_run(trainer) : tn_error_code();
    status = status == TN_OK ? tn_error_code() : status;
    tn_trainer_free(trainer);
    setup_free(&s);
    return status;
}

static void test_starved(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("what fails without host memory");
    starve("a run with extensions", everything, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_micro_average, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_observe, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fail_on_nan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_parameter_statistics, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_variable_statistics, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dump_graph, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_profile, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_profile_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_profile_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_starved, set_up, tear_down),
    };
    chance = test_random_new();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
