/* SPDX-License-Identifier: MIT */
/* Ranks in one run, whose clocks and losses differ and of which one is asked to stop: they do the same, after the same
 * iteration. */
#include "comm/ranks.h"

#include <time.h>

static tn_comm *comm;
static int rank, size;
static volatile int stop;

enum { MOST = 4000 };
typedef struct seen {
    int64_t fired[MOST], from;
    int count;
} seen;

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)(seconds * 1e9)}, NULL);
}

/* The clocks of the other ranks are ahead of rank 0's by more than a period. */
static tn_status late(tn_trainer *trainer, void *user)
{
    (void)trainer, (void)user;
    pause_for(0.06 * rank);
    return tn_comm_barrier(comm);
}

/* In lockstep, as ranks are whose gradients go round. */
static tn_status step(tn_trainer *trainer, void *user)
{
    const seen *s = user;
    pause_for(0.0005);
    if (rank == size - 1 && s->count >= 3 && !s->from)
        stop = 1;
    return tn_trainer_iteration(trainer) > MOST ? TN_ERR_STATE : tn_comm_barrier(comm);
}

static tn_status note(tn_trainer *trainer, void *user)
{
    seen *s = user;
    s->fired[s->count++ % MOST] = tn_trainer_iteration(trainer);
    return TN_OK;
}

static tn_trainer *trainer_of(tn_layer *net, tn_optimizer **optimizer, tn_loader **loader, seen *s)
{
    static const tn_extension_kind kind = {.name = "late", .initialize = late}, steps = {.name = "step", .call = step};
    *optimizer = tn_sgd(net, .lr = 0.1);
    *loader = tn_loader_new(tn_spiral(5, 1), .batch = 5, .repeat = true);
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(*loader, *optimizer), .comm = comm, .stop_flag = &stop);
    assert_int_equal(tn_extend(trainer, tn_extension_new(&kind, NULL)), TN_OK);
    assert_int_equal(tn_extend(trainer, tn_extension_new(&steps, s)), TN_OK);
    assert_int_equal(tn_extend_function(trainer, note, s, .trigger = tn_every_seconds(0.04)), TN_OK);
    return trainer;
}

/* The same number on all ranks. */
static void assert_agreed(int64_t number)
{
    int64_t most[2];
    TN_SCOPE {
        const int64_t own[] = {number, -number};
        tn_array *all = tn_comm_all_reduce(comm, tn_from_host(own, TN_SHAPE(2), TN_INT64), TN_COMM_MAX);
        assert_int_equal(tn_to_host(all, most, sizeof most), TN_OK);
    }
    assert_int_equal(most[0], number);
    assert_int_equal(most[1], -number);
}

static void test_one_is_asked(void **state)
{
    (void)state;
    seen s = {.count = 0};
    tn_optimizer *optimizer;
    tn_loader *loader;
    tn_layer *net = tn_linear(3, .in = 2);
    tn_trainer *trainer = trainer_of(net, &optimizer, &loader, &s);
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
    assert_true(tn_trainer_stopped(trainer));
    assert_int_equal(stop, rank == size - 1);
    assert_agreed(tn_trainer_iteration(trainer));
    assert_true(s.count >= 3);
    assert_agreed(s.count);
    for (int i = 0; i < s.count; i++)
        assert_agreed(s.fired[i]);
    tn_trainer_free(trainer);
    tn_loader_free(loader);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    stop = 0;
}

/* Losses rise on rank 0 and fall, by more, on the others: none ends before the others. */
static tn_status tell_loss(tn_trainer *trainer, void *user)
{
    double iteration = (double)tn_trainer_iteration(trainer), by = rank ? -3 : iteration <= 4 ? 1 : 20;
    (void)user;
    return tn_observation_set_number(tn_trainer_observation(trainer), "value", by * iteration, 0);
}

static void test_early_stopping(void **state)
{
    (void)state;
    tn_layer *net = tn_linear(3, .in = 2);
    tn_optimizer *optimizer = tn_sgd(net, .lr = 0.1);
    tn_loader *loader = tn_loader_new(tn_spiral(5, 1), .batch = 5, .repeat = true);
    tn_trigger *end = tn_early_stopping(.monitor = "value", .patience = 2, .check = tn_every(1, TN_ITERATION),
                                        .max = tn_every(50, TN_ITERATION));
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(loader, optimizer), .stop = end, .comm = comm);
    assert_int_equal(tn_extend_function(trainer, tell_loss, NULL), TN_OK);
    if (tn_trainer_run(trainer) != TN_OK)
        fail_msg("%s", tn_error());
    assert_agreed(tn_trainer_iteration(trainer));
    /* Alone: 1 was the best, and 2 and 3 were not. Of several: until 4 the sum falls, and then it rises. */
    assert_int_equal(tn_trainer_iteration(trainer), size == 1 ? 3 : 6);
    tn_trainer_free(trainer);
    tn_loader_free(loader);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

static void test_bad_communicator(void **state)
{
    (void)state;
    tn_optimizer *optimizer;
    tn_loader *loader = tn_loader_new(tn_spiral(5, 1), .batch = 5);
    tn_layer *net = tn_linear(3, .in = 2);
    optimizer = tn_sgd(net, .lr = 0.1);
    tn_comm *devices = tn_comm_devices((const tn_device[]){tn_cpu(), {TN_DEVICE_DEFAULT, 0}});
    tn_trainer *trainer = tn_trainer_new(tn_standard_updater(loader, optimizer), .comm = devices);
    assert_int_equal(tn_trainer_run(trainer), TN_ERR_UNSUPPORTED);
    tn_clear_error();
    tn_trainer_free(trainer);
    tn_comm_free(devices);
    tn_loader_free(loader);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
}

int main(void)
{
    if (!ranks_begin(&comm, &rank, &size))
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_is_asked), cmocka_unit_test(test_early_stopping),
                                       cmocka_unit_test(test_bad_communicator)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
