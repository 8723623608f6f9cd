/* SPDX-License-Identifier: MIT */
/* tn_train by several ranks: the figures of a run by one, files by rank 0 alone, and going on from its snapshot. */
#include "comm/ranks.h"

#include <unistd.h>

static tn_comm *comm;
static int rank, size;
static char folder[RANKS_PATH]; /* the same for all ranks */

enum { BATCH = 60 }; /* which 1 to 4 ranks divide, and which divides the 300 samples */

static int shard; /* what ranks have in parts */
static const char *more = ""; /* words beside those that all runs have */
static const char *model = "linear:10 sigmoid linear:3", *rate = "sgd:lr=1";
static volatile int stop;

static tn_epoch figures(tn_comm *with, int epochs, const char *out, bool resume, int64_t batch, tn_status expected)
{
    tn_epoch last;
    char words[128];
    snprintf(words, sizeof words, "early-stopping:patience=50 log:file=means.json%s", more);
    tn_status status = tn_train("spiral", &last, .model = model, .optimizer = shard ? "momentum:lr=0.1" : rate,
                                .extend = words, .epochs = epochs, .stop = &stop,
                                .batch = batch, .seed = 3, .device = test_device(), .out = out, .resume = resume,
                                .comm = with, .shard = shard);
    if (status != expected)
        fail_msg("%s, %s", tn_status_name(status), tn_error());
    return last;
}

static void near(double got, double expected)
{
    if (!(got > expected - 1e-4 * expected - 1e-6 && got < expected + 1e-4 * expected + 1e-6))
        fail_msg("rank %d: got %.9g, expected %.9g", rank, got, expected);
}

static void assert_same_figures(const tn_epoch *a, const tn_epoch *b)
{
    assert_int_equal(a->epoch, b->epoch);
    near(a->train_loss, b->train_loss);
    near(a->test_loss, b->test_loss);
    near(a->test_accuracy, b->test_accuracy);
}

static void as_alone(int parts)
{
    char own[600], out[600], path[700];
    shard = parts;
    snprintf(own, sizeof own, "%s/own%d-%d", folder, shard, rank);
    snprintf(out, sizeof out, "%s/all%d", folder, shard);
    tn_epoch alone = figures(NULL, 4, own, false, BATCH, TN_OK);
    tn_epoch shared = figures(comm, 2, out, false, BATCH, TN_OK);
    assert_int_equal(shared.epoch, 2);
    assert_int_equal(tn_comm_barrier(comm), TN_OK);
    if (rank == 0) /* goes on by itself from what all have made */
        figures(NULL, 3, out, true, BATCH, TN_OK);
    assert_int_equal(tn_comm_barrier(comm), TN_OK);
    shared = figures(comm, 4, out, true, BATCH, TN_OK);
    assert_same_figures(&shared, &alone);
    assert_int_equal(tn_comm_barrier(comm), TN_OK);
    static const char *const files[] = {"snapshot.safetensors", "model.safetensors", "log.jsonl", "means.json"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", out, files[i]);
        assert_int_equal(access(path, F_OK), 0);
    }
    assert_int_equal(access("means.json", F_OK), -1);
    shard = 0;
}

static void test_as_alone(void **state)
{
    (void)state;
    as_alone(0);
}

/* States, and parameters too, lie in parts, and what is saved is whole. */
static void test_shared_out(void **state)
{
    (void)state;
    as_alone(1);
    as_alone(3);
    shard = 4;
    figures(comm, 1, NULL, false, BATCH, TN_ERR_VALUE);
    tn_clear_error();
    shard = 0;
}

/* Stops the run in one of its first steps, the same on all ranks: when the network has been called so often. */
static void stop_early(const char *operation, tn_dtype dtype, tn_shape shape, void *user)
{
    (void)dtype, (void)shape;
    int *calls = user;
    stop = stop || (strcmp(operation, "sigmoid") == 0 && ++*calls == 3);
}

/* The losses of a run's log, all digits of them. */
static char whole_log[4000], again_log[4000];
static void log_of(const char *out, char *text, size_t room)
{
    char command[1000];
    snprintf(command, sizeof command, "grep -o '\"[a-z_]*loss\": *[^,}]*' '%s/log.jsonl'", out);
    FILE *file = popen(command, "r");
    size_t length = file ? fread(text, 1, room - 1, file) : 0;
    text[length] = 0;
    assert_non_null(file);
    assert_int_equal(pclose(file), 0);
    assert_non_null(strstr(text, "loss"));
}

/* In the middle of an epoch, too, where the words ask for it: a run that is stopped there is gone on with. */
static void test_snapshots_between_epochs(void **state)
{
    (void)state;
    for (shard = 1; shard <= 3; shard += 2) {
        char own[600], out[600], path[700];
        snprintf(own, sizeof own, "%s/whole%d-%d", folder, shard, rank);
        snprintf(out, sizeof out, "%s/steps%d", folder, shard);
        snprintf(path, sizeof path, "%s/snapshot.safetensors", out);
        more = " snapshot:every=1it";
        tn_epoch alone = figures(NULL, 2, own, false, BATCH, TN_OK);
        int calls = 0;
        tn_set_function_hook(stop_early, &calls);
        figures(comm, 2, out, false, BATCH, TN_ERR_STATE);
        tn_clear_error();
        tn_set_function_hook(NULL, NULL);
        stop = 0;
        assert_int_equal(tn_comm_barrier(comm), TN_OK);
        assert_int_equal(access(path, F_OK), 0);
        tn_epoch shared = figures(comm, 2, out, true, BATCH, TN_OK);
        assert_same_figures(&shared, &alone);
        more = "";
    }
    shard = 0;
}

/* One rank alone is asked to stop, in the middle of an epoch: all do so after the same step, and what goes on from
 * there, by as many ranks, has the figures of a run that was not stopped, to the last bit; fewer are told. */
static void test_stopped(void **state)
{
    (void)state;
    for (shard = 0; shard <= 1; shard++) {
        char own[600], out[600], copy[1300];
        snprintf(own, sizeof own, "%s/unstopped%d", folder, shard);
        snprintf(out, sizeof out, "%s/stopped%d", folder, shard);
        snprintf(copy, sizeof copy, "cp -r '%s' '%s-alone'", out, out);
        more = shard ? "" : " snapshot:every=0.4ep";
        tn_epoch whole = figures(comm, 2, own, false, BATCH, TN_OK);
        int calls = 0;
        if (rank == size - 1)
            tn_set_function_hook(stop_early, &calls);
        figures(comm, 2, out, false, BATCH, TN_ERR_STATE);
        assert_non_null(strstr(tn_error(), "of epoch 1, as asked"));
        tn_clear_error();
        tn_set_function_hook(NULL, NULL);
        stop = 0;
        if (rank == 0)
            assert_int_equal(system(copy), 0);
        assert_int_equal(tn_comm_barrier(comm), TN_OK);
        tn_epoch again = figures(comm, 2, out, true, BATCH, TN_OK);
        assert_memory_equal(&again.train_loss, &whole.train_loss, sizeof again.train_loss);
        assert_memory_equal(&again.test_loss, &whole.test_loss, sizeof again.test_loss);
        if (rank == 0) {
            log_of(own, whole_log, sizeof whole_log);
            log_of(out, again_log, sizeof again_log);
            assert_string_equal(again_log, whole_log);
            snprintf(out, sizeof out, "%s/stopped%d-alone", folder, shard);
            figures(NULL, 2, out, true, BATCH, size == 1 ? TN_OK : TN_ERR_VALUE);
            tn_clear_error();
        }
        assert_int_equal(tn_comm_barrier(comm), TN_OK);
        more = "";
    }
    shard = 0;
}

static void test_batch_that_ranks_do_not_divide(void **state)
{
    (void)state;
    if (size == 1)
        return;
    figures(comm, 1, NULL, false, 12 * size + 1, TN_ERR_VALUE);
    tn_clear_error();
}

/* Rank 0 has another batch, or other parts, than the others: all are told, and all go on together. */
static void test_ranks_that_disagree(void **state)
{
    (void)state;
    if (size == 1)
        return;
    figures(comm, 1, NULL, false, rank ? BATCH : 2 * BATCH, TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), rank ? "batch 60" : "batch 120"));
    tn_clear_error();
    shard = rank ? 1 : 3;
    figures(comm, 1, NULL, false, BATCH, TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), rank ? "shard 1" : "shard 3"));
    tn_clear_error();
    shard = 0;
    figures(comm, 1, folder, false, BATCH, TN_OK);
    assert_int_equal(tn_comm_barrier(comm), TN_OK);
    figures(comm, 2, folder, rank == 0, BATCH, TN_ERR_STATE);
    assert_non_null(strstr(tn_error(), rank ? "from the beginning" : "going on from a snapshot"));
    tn_clear_error();
    figures(comm, 2, folder, true, BATCH, TN_OK);
}

/* A step that is too large: each rank tells of its own loss. */
static void test_not_finite(void **state)
{
    (void)state;
    char expected[64], out[600];
    snprintf(out, sizeof out, "%s/large", folder);
    rate = "sgd:lr=1e38";
    figures(comm, 4, out, false, BATCH, TN_ERR_NAN);
    snprintf(expected, sizeof expected, size > 1 ? "the loss of rank %d became " : "the loss became ", rank);
    if (!strstr(tn_error(), expected))
        fail_msg("rank %d: %s", rank, tn_error());
    tn_clear_error();
    rate = "sgd:lr=1";
}

/* Only rank 0 reads it, and all are told. */
static void test_snapshot_of_another_model(void **state)
{
    (void)state;
    char out[600];
    snprintf(out, sizeof out, "%s/another", folder);
    figures(comm, 1, out, false, BATCH, TN_OK);
    assert_int_equal(tn_comm_barrier(comm), TN_OK);
    model = "linear:11 sigmoid linear:3";
    figures(comm, 2, out, true, BATCH, TN_ERR_VALUE);
    if (!strstr(tn_error(), "linear:10") || !strstr(tn_error(), "linear:11"))
        fail_msg("rank %d: %s", rank, tn_error());
    tn_clear_error();
    model = "linear:10 sigmoid linear:3";
    figures(comm, 2, out, true, BATCH, TN_OK);
}

int main(void)
{
    if (!ranks_begin(&comm, &rank, &size) || !ranks_folder(comm, folder))
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_alone), cmocka_unit_test(test_shared_out),
                                       cmocka_unit_test(test_snapshots_between_epochs), cmocka_unit_test(test_stopped),
                                       cmocka_unit_test(test_ranks_that_disagree),
                                       cmocka_unit_test(test_batch_that_ranks_do_not_divide),
                                       cmocka_unit_test(test_not_finite),
                                       cmocka_unit_test(test_snapshot_of_another_model)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return tn_comm_barrier(comm) != TN_OK || (rank == 0 && system(command) != 0) || failed;
}
