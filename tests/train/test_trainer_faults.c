/* SPDX-License-Identifier: MIT */
/* A trainer without memory at any place, and a process that is killed at any iteration. */
#include <sys/wait.h>
#include <unistd.h>
#include "support/starve.h"
#include "trainer_setup.h"

/* ---- without memory ---- */

static tn_status a_run(void *user)
{
    (void)user;
    setup s = {.model = tn_layer_parse("linear:3"),
               .loader = tn_loader_new(setup_data(5, 1), .batch = 3),
               .test_loader = tn_loader_new(setup_data(4, 2), .batch = 4)};
    s.optimizer = tn_momentum_sgd(s.model);
    tn_trainer *trainer = setup_trainer(&s, tn_early_stopping(.max = TN_EVERY(2, TN_EPOCH)));
    tn_extend(trainer, tn_snapshot(.wait = true, .keep = 1, .autoload = true),
              .trigger = tn_min_value("validation/main/loss", .check = TN_EVERY(1, TN_EPOCH)));
    tn_extend(trainer, tn_evaluator(s.test_loader, s.model), .trigger = tn_at_points(TN_EPOCH, 1, 2));
    tn_status status = tn_trainer_run(trainer);
    char path[600];
    snprintf(path, sizeof path, "%s/kept.safetensors", folder);
    if (status == TN_OK)
        status = tn_trainer_save(trainer, path);
    if (status == TN_OK)
        status = tn_trainer_load(trainer, path);
    tn_trainer_free(trainer);
    setup_free(&s);
    return status != TN_OK ? status : tn_error_code();
}

static void empty_folder(tn_status status, void *user)
{
    (void)status, (void)user;
    test_folder_remove(folder);
    mkdir(folder, 0777);
}

static void test_without_memory(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("allocations of the host are counted");
    starve_checked("a run", a_run, empty_folder, NULL);
}

/* ---- killed ---- */

#define ITERATIONS 40
#define MODEL "linear:5 dropout:0.2 linear:3"

static tn_status die(tn_trainer *trainer, void *user)
{
    if (tn_trainer_iteration(trainer) == *(int64_t *)user)
        kill(getpid(), SIGKILL);
    return TN_OK;
}

/* A whole run, or up to a kill, with files that are written while it goes on. */
static void killable_run(int64_t dies_at, const char *result)
{
    setup s = setup_new(10, 3, MODEL, "adam:lr=0.02");
    tn_trainer *trainer = setup_trainer(&s, TN_EVERY(ITERATIONS, TN_ITERATION));
    tn_extend(trainer, tn_snapshot(.keep = 2, .autoload = true), .trigger = TN_EVERY(7, TN_ITERATION));
    tn_extend(trainer, tn_evaluator(s.test_loader, s.model));
    tn_extend(trainer, tn_snapshot_layer(s.model, "best_{iteration}", .keep = 1),
              .trigger = tn_min_value("validation/main/loss"));
    tn_extend_function(trainer, die, &dies_at, .priority = -300);
    tn_status status = tn_trainer_run(trainer);
    if (status == TN_OK)
        status = tn_layer_save(s.model, result);
    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_error());
    tn_trainer_free(trainer);
    setup_free(&s);
    _exit(status == TN_OK ? 0 : 1);
}

static int in_a_child(int64_t dies_at, const char *result)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        killable_run(dies_at, result);
    waitpid(child, &status, 0);
    return status;
}

/* Killed at a random iteration, and again, until it comes to its end. */
static void test_killed(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("processes are forked");
    char whole[600], parts[600];
    snprintf(whole, sizeof whole, "%s/whole.safetensors", folder);
    snprintf(parts, sizeof parts, "%s/parts.safetensors", folder);
    char clean[600];
    snprintf(clean, sizeof clean, "rm -f '%s'/snapshot_iter_* '%s'/best_*", folder, folder);
    assert_int_equal(in_a_child(0, whole), 0);
    int kills = 0;
    while (kills < 100) {
        int status = -1;
        assert_int_equal(system(clean), 0);
        for (int64_t at = 0; status != 0;) {
            at += 1 + (int64_t)(check_bits() % 20);
            status = in_a_child(at, parts);
            assert_true(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
            kills += status != 0;
        }
        tn_layer *a = tn_layer_parse(MODEL), *b = tn_layer_parse(MODEL);
        assert_int_equal(tn_layer_load(a, whole), TN_OK);
        assert_int_equal(tn_layer_load(b, parts), TN_OK);
        for (int i = 0; i < tn_param_count(a); i++)
            assert_memory_equal(tn_data(tn_param(a, i)), tn_data(tn_param(b, i)),
                                (size_t)tn_size(tn_param(a, i)) * sizeof(float));
        tn_layer_free(a);
        tn_layer_free(b);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down), /* forks before there are threads */
        cmocka_unit_test_setup_teardown(test_without_memory, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
