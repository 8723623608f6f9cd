/* SPDX-License-Identifier: MIT */
/*
 * Updates that ranks share out. Gradients are small whole numbers over eight, whose sums are exact in any order: so new
 * parameters have the bits of an optimizer of which each rank has all, but where a norm over all parameters comes in.
 */
#include "comm/ranks.h"

#include <unistd.h>

static tn_comm *comm;
static int rank, size;
static uint64_t seed;
static char folder[RANKS_PATH];

static tn_layer *network(bool lazy)
{
    tn_seed(5);
    tn_layer *last = lazy ? tn_linear(2) : tn_linear(2, .in = 7);
    return tn_sequential(tn_linear(7, .in = 5), tn_linear(1, .in = 1), last);
}

/* Gradients of step t; of some parameters on some ranks alone, or on none. */
static void set_gradients(tn_layer *net, int t)
{
    for (int i = 0; i < tn_param_count(net); i++) {
        test_random all = {seed + (uint64_t)(100 * t + i)}, r = {seed + (uint64_t)(100 * t + i + 10000 * (rank + 1))};
        int who = (int)(test_random_bits(&all) >> 33) % 8;
        if (i > 0 && (who == 0 || (who == 1 && rank != t % size)))
            continue;
        int64_t count = tn_size(tn_param(net, i));
        float values[64];
        for (int64_t k = 0; k < count; k++)
            values[k] = ((float)(test_random_bits(&r) >> 60) - 7.5f) / 8;
        tn_array *g = tn_from_host(values, tn_shape_of(tn_param(net, i)), TN_FLOAT32);
        g = tn_to(g, tn_device_of(tn_param(net, i)));
        assert_int_equal(tn_set_grad(tn_param(net, i), g), TN_OK);
    }
}

static void steps(tn_layer *net, tn_optimizer *optimizer, int from, int to)
{
    for (int t = from; t < to; t++) TN_SCOPE {
        set_gradients(net, t);
        if (tn_step(optimizer) != TN_OK)
            fail_msg("rank %d, step %d: %s", rank, t, tn_error());
    }
}

static void assert_same_params(tn_layer *a, tn_layer *b, bool bits)
{
    for (int i = 0; i < tn_param_count(a); i++) TN_SCOPE {
        tn_array *p = tn_to(tn_param(a, i), tn_cpu()), *q = tn_to(tn_param(b, i), tn_cpu());
        if (bits)
            assert_same(p, q);
        else
            assert_true(tn_allclose(p, q, .rtol = 1e-5, .atol = 1e-6));
    }
}

/* All states, which rank 0 has. */
static void assert_same_states(tn_optimizer *shared, tn_optimizer *whole, bool bits)
{
    assert_int_equal(tn_optimizer_gather(shared), TN_OK);
    for (int i = 0; i < 6; i++)
        assert_int_equal(tn_optimizer_param_steps(shared, i), tn_optimizer_param_steps(whole, i));
    if (rank != 0)
        return;
    assert_int_equal(tn_optimizer_state_count(shared), tn_optimizer_state_count(whole));
    for (int i = 0; i < tn_optimizer_state_count(whole); i++) TN_SCOPE {
        tn_array *a = tn_to(tn_optimizer_state(shared, i), tn_cpu());
        tn_array *b = tn_to(tn_optimizer_state(whole, i), tn_cpu());
        assert_string_equal(tn_optimizer_state_name(shared, i), tn_optimizer_state_name(whole, i));
        if (bits)
            assert_same(a, b);
        else
            assert_true(tn_allclose(a, b, .rtol = 1e-5, .atol = 1e-6));
    }
}

static tn_array *descend(const tn_update *update, const tn_array *p, const tn_array *g, tn_array **state)
{
    state[0] = tn_add(state[0], tn_mean(tn_square(g))); /* of the parameter as a whole */
    return tn_subtract(p, tn_multiply(update->set->lr, tn_divide(g, tn_add(1, state[0]))));
}

static tn_optimizer *make(const char *text, tn_layer *net)
{
    return *text ? tn_optimizer_parse(text, net) : tn_optimizer_new(net, "h", descend, NULL, .lr = 0.1);
}

/* Each way to cut: through parameters, and between them, where a rule or an option looks at them as wholes. */
static void test_as_whole(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool norm;
    } kinds[] = {{"sgd:lr=0.1", false},           {"adam:lr=0.01,weight_decay=0.1", false},
                 {"amsgrad:clip_value=0.3", false}, {"adam:clip_norm=0.5", true},
                 {"lamb", false},                  {"adafactor", false},
                 {"momentum:lars=1", false},       {"", false},
                 {"asgd:lr=0.1", false},           {"rprop", false}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) TN_SCOPE {
        tn_layer *a = network(false), *b = network(false);
        tn_optimizer *whole = make(kinds[k].text, a), *shared = make(kinds[k].text, b);
        assert_int_equal(tn_optimizer_for(whole, "0.b", .lr = 0.05), TN_OK);
        assert_int_equal(tn_optimizer_for(shared, "0.b", .lr = 0.05), TN_OK);
        assert_int_equal(tn_optimizer_distribute(whole, comm), TN_OK);
        assert_int_equal(tn_optimizer_distribute(shared, comm, .shard = 1), TN_OK);
        steps(a, whole, 0, 4);
        steps(b, shared, 0, 4);
        assert_same_params(b, a, !kinds[k].norm);
        assert_same_states(shared, whole, !kinds[k].norm);
        tn_optimizer_free(whole);
        tn_optimizer_free(shared);
        tn_layer_free(a);
        tn_layer_free(b);
    }
    assert_true(tn_ok());
}

/* Who has what changes: parameters come, one rank's lie elsewhere, which changes nothing, an option looks at wholes,
 * and in the end each rank has all again. */
static void test_moving(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *a = network(true), *b = network(true);
        tn_optimizer *whole = tn_adam(a), *shared = tn_adam(b);
        assert_int_equal(tn_optimizer_distribute(whole, comm), TN_OK);
        assert_int_equal(tn_optimizer_distribute(shared, comm, .shard = 1), TN_OK);
        for (int part = 0; part < 4; part++) {
            steps(a, whole, 2 * part, 2 * part + 2);
            steps(b, shared, 2 * part, 2 * part + 2);
            assert_same_params(b, a, true);
            if (part == 0) {
                tn_seed(9);
                tn_forward(tn_layer_child(a, "2"), tn_ones(TN_SHAPE(1, 7)));
                tn_seed(9);
                tn_forward(tn_layer_child(b, "2"), tn_ones(TN_SHAPE(1, 7)));
            } else if (part == 1) {
                tn_device elsewhere = test_elsewhere() ? tn_cpu() : tn_virtual(0);
                if (rank == size - 1 && test_device().kind != TN_DEVICE_CUDA)
                    assert_int_equal(tn_layer_to(b, elsewhere), TN_OK);
                steps(a, whole, 100, 102);
                steps(b, shared, 100, 102);
                assert_same_params(b, a, true);
                assert_int_equal(tn_optimizer_set(whole, "lars", 1), TN_OK);
                assert_int_equal(tn_optimizer_set(shared, "lars", 1), TN_OK);
            } else if (part == 2) {
                assert_int_equal(tn_optimizer_distribute(shared, comm), TN_OK);
            }
        }
        assert_same_states(shared, whole, true);
        tn_optimizer_free(whole);
        tn_optimizer_free(shared);
        tn_layer_free(a);
        tn_layer_free(b);
    }
    assert_true(tn_ok());
}

/* What is saved is whole, and goes on as if it had not stopped, shared out or not. */
static void test_snapshot(void **state)
{
    (void)state;
    char file[600];
    snprintf(file, sizeof file, "%s/run.safetensors", folder);
    TN_SCOPE {
        tn_layer *nets[3] = {network(false), network(false), network(false)};
        tn_optimizer *optimizers[3];
        for (int i = 0; i < 3; i++) {
            optimizers[i] = tn_adam(nets[i]);
            assert_int_equal(tn_optimizer_distribute(optimizers[i], comm, .shard = i < 2), TN_OK);
        }
        steps(nets[0], optimizers[0], 0, 3);
        if (size > 1) {
            assert_int_equal(tn_snapshot_save(file, nets[0], optimizers[0], NULL, NULL), TN_ERR_STATE);
            assert_non_null(strstr(tn_error(), "tn_optimizer_gather"));
            tn_clear_error();
        }
        assert_int_equal(tn_optimizer_gather(optimizers[0]), TN_OK);
        if (rank == 0)
            assert_int_equal(tn_snapshot_save(file, nets[0], optimizers[0], NULL, NULL), TN_OK);
        assert_int_equal(tn_comm_barrier(comm), TN_OK);
        steps(nets[0], optimizers[0], 3, 5);
        for (int i = 1; i < 3; i++) {
            assert_int_equal(tn_snapshot_load(file, nets[i], optimizers[i], NULL), TN_OK);
            steps(nets[i], optimizers[i], 3, 5);
            assert_same_params(nets[i], nets[0], true);
        }
        assert_same_states(optimizers[0], optimizers[2], true);
        for (int i = 0; i < 3; i++) {
            tn_optimizer_free(optimizers[i]);
            tn_layer_free(nets[i]);
        }
    }
    assert_true(tn_ok());
}

/* What an optimizer's states take, after a step. */
static size_t bytes_of_states(int shard)
{
    size_t bytes;
    TN_SCOPE {
        tn_layer *net = tn_linear(300, .in = 200);
        tn_optimizer *optimizer = tn_adam(net);
        assert_int_equal(tn_optimizer_distribute(optimizer, comm, .shard = shard), TN_OK);
        for (int t = 0; t < 2; t++) TN_SCOPE {
            assert_int_equal(tn_backward(tn_sum(tn_forward(net, tn_ones(TN_SHAPE(1, 200))))), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
        }
        tn_device device = tn_device_of(tn_param(net, 0));
        size_t before = tn_memory_stats(device).used;
        tn_optimizer_free(optimizer);
        bytes = before - tn_memory_stats(device).used;
        tn_layer_free(net);
    }
    return bytes;
}

static void test_memory(void **state)
{
    (void)state;
    size_t states = 2 * 300 * 201 * sizeof(float), whole = bytes_of_states(0), shared = bytes_of_states(1);
    assert_true(whole >= states);
    assert_true(shared <= states / (size_t)size + 4096);
    assert_true(tn_ok());
}

static tn_status look(tn_optimizer *optimizer, tn_layer *layer, void *user)
{
    (void)optimizer, (void)layer, (void)user;
    return TN_OK;
}

static void test_refused(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = network(false);
        tn_optimizer *optimizer = tn_sgd(net);
        assert_int_equal(tn_optimizer_distribute(optimizer, comm, .shard = 4), TN_ERR_VALUE);
        tn_clear_error();
        assert_int_equal(tn_optimizer_distribute(optimizer, comm, .shard = 1), TN_OK);
        if (size > 1) {
            assert_int_equal(tn_step(optimizer), TN_ERR_STATE); /* no gradients on any rank */
            tn_clear_error();
            set_gradients(net, 0);
            assert_int_equal(tn_optimizer_add_hook(optimizer, look, NULL), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_ERR_UNSUPPORTED);
            assert_false(tn_has_grad(tn_param(net, 0)));
            tn_clear_error();
            tn_optimizer_remove_hook(optimizer, look, NULL);
        }
        steps(net, optimizer, 0, 1); /* the communicator works on */
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
    assert_true(tn_ok());
}

int main(void)
{
    if (!ranks_begin(&comm, &rank, &size) || !ranks_folder(comm, folder))
        return 1;
    seed = shared_seed(comm);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_whole), cmocka_unit_test(test_moving),
                                       cmocka_unit_test(test_snapshot), cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_refused)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return tn_comm_barrier(comm) != TN_OK || (rank == 0 && system(command) != 0) || failed;
}
