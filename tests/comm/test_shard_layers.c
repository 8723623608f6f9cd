/* SPDX-License-Identifier: MIT */
/*
 * Marked layers, whose gradients and parameters ranks have in parts, beside the same network with all of it on each
 * rank: values after some steps up to the order of sums, files, memory, and what is refused.
 */
#include "comm/ranks.h"

#include <unistd.h>

static tn_comm *comm;
static int rank, size;
static uint64_t seed;
static char folder[RANKS_PATH];

enum { ROWS = 6, IN = 5, OUT = 3 };

/* Smooth, so that what differs in the last bits stays so; with random numbers, and running means. */
static tn_layer *network(bool lazy)
{
    tn_seed(5);
    tn_layer *first = lazy ? tn_linear(9) : tn_linear(9, .in = IN);
    return tn_sequential(tn_layer_shard(first), tn_tanh_layer(),
                         tn_layer_shard(tn_sequential(tn_linear(8, .in = 9), tn_dropout(0.3), tn_batch_norm(8),
                                                      tn_sigmoid_layer(), tn_layer_shard(tn_linear(4, .in = 8)))),
                         tn_linear(OUT, .in = 4));
}

static tn_array *numbers(int step, tn_shape shape)
{
    test_random r = {seed + (uint64_t)(1000 * step + rank)};
    float values[ROWS * IN];
    for (int i = 0; i < ROWS * IN; i++)
        values[i] = (float)(test_random_bits(&r) >> 40) / (1 << 23) - 1;
    return tn_to(tn_from_host(values, shape, TN_FLOAT32), test_device());
}

static tn_array *loss_of(tn_layer *net, int step)
{
    tn_array *y = tn_forward(net, numbers(step, TN_SHAPE(ROWS, IN)));
    return tn_mean(tn_square(tn_subtract(y, numbers(step + 500, TN_SHAPE(ROWS, OUT)))));
}

/* Each of two backwards; random numbers as of the step. */
static void steps(tn_layer *net, tn_optimizer *optimizer, int from, int to)
{
    for (int t = from; t < to; t++) TN_SCOPE {
        tn_seed((uint64_t)t);
        for (int part = 0; part < 2; part++)
            if (tn_backward(loss_of(net, 10 * t + part)) != TN_OK)
                fail_msg("rank %d, step %d: %s", rank, t, tn_error());
        if (tn_step(optimizer) != TN_OK)
            fail_msg("rank %d, step %d: %s", rank, t, tn_error());
    }
}

static void assert_near(const tn_array *a, const tn_array *b, const char *what)
{
    if (!tn_allclose(tn_to(a, tn_cpu()), tn_to(b, tn_cpu()), .rtol = 1e-4, .atol = 1e-5))
        fail_msg("rank %d: %s differs: %s, %s", rank, what, tn_string(a), tn_string(b));
}

/* Of two networks that do the same: what comes out. */
static void assert_same_outputs(tn_layer *a, tn_layer *b)
{
    TN_SCOPE
        TN_NO_GRAD {
            tn_layer_train(a, false);
            tn_layer_train(b, false);
            tn_array *x = numbers(777, TN_SHAPE(ROWS, IN));
            assert_near(tn_forward(a, x), tn_forward(b, x), "an output");
            tn_layer_train(a, true);
            tn_layer_train(b, true);
        }
}

static void assert_same_params(tn_layer *a, tn_layer *b)
{
    assert_int_equal(tn_param_count(a), tn_param_count(b));
    for (int i = 0; i < tn_param_count(a); i++) TN_SCOPE
        assert_near(tn_param(a, i), tn_param(b, i), tn_param_name(a, i));
}

static void assert_same_states(tn_optimizer *a, tn_optimizer *b)
{
    assert_int_equal(tn_optimizer_state_count(a), tn_optimizer_state_count(b));
    for (int i = 0; i < tn_optimizer_state_count(a); i++) TN_SCOPE
        assert_near(tn_optimizer_state(a, i), tn_optimizer_state(b, i), tn_optimizer_state_name(a, i));
}

static const char *const optimizers[] = {"momentum:lr=0.1,clip_norm=0.5", "adam:lr=0.01,eps=0.1", "lamb:eps=0.1"};

static void test_as_whole(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) TN_SCOPE {
        tn_layer *a = network(k == 3), *b = network(k == 3);
        tn_optimizer *whole = tn_optimizer_parse(optimizers[k % 3], a);
        tn_optimizer *parts = tn_optimizer_parse(optimizers[k % 3], b);
        assert_int_equal(tn_layer_to(a, test_device()), TN_OK);
        assert_int_equal(tn_layer_to(b, test_device()), TN_OK);
        assert_int_equal(tn_optimizer_distribute(whole, comm), TN_OK);
        assert_int_equal(tn_optimizer_distribute(parts, comm, .shard = 2 + k / 3), TN_OK);
        steps(a, whole, 0, 3);
        steps(b, parts, 0, 3);
        assert_same_outputs(a, b);
        assert_int_equal(tn_optimizer_gather(parts), TN_OK);
        if (rank == 0) {
            assert_same_params(a, b);
            assert_same_states(whole, parts);
        }
        steps(a, whole, 3, 4);
        steps(b, parts, 3, 4);
        assert_int_equal(tn_optimizer_distribute(parts, comm), TN_OK); /* all is whole again */
        assert_same_params(a, b);
        steps(a, whole, 4, 5);
        steps(b, parts, 4, 5);
        assert_same_params(a, b);
        tn_optimizer_free(whole);
        tn_optimizer_free(parts);
        tn_layer_free(a);
        tn_layer_free(b);
    }
    assert_true(tn_ok());
}

/* What is saved is whole; ranks that have all, and those that have parts, go on from it. */
static void test_snapshot(void **state)
{
    (void)state;
    char file[600];
    snprintf(file, sizeof file, "%s/run.safetensors", folder);
    TN_SCOPE {
        tn_layer *nets[3] = {network(false), network(false), network(false)};
        tn_optimizer *of[3];
        for (int i = 0; i < 3; i++) {
            of[i] = tn_adam(nets[i], .eps = 0.1);
            assert_int_equal(tn_layer_to(nets[i], test_device()), TN_OK);
            assert_int_equal(tn_optimizer_distribute(of[i], comm, .shard = i < 2 ? 3 : 0), TN_OK);
        }
        steps(nets[0], of[0], 0, 2);
        if (size > 1) {
            assert_int_equal(tn_layer_save(nets[0], file), TN_ERR_STATE);
            assert_non_null(strstr(tn_error(), "'0.W'"));
            assert_non_null(strstr(tn_error(), "tn_optimizer_gather"));
            tn_clear_error();
        }
        assert_int_equal(tn_optimizer_gather(of[0]), TN_OK);
        if (rank == 0)
            assert_int_equal(tn_snapshot_save(file, nets[0], of[0], NULL, NULL), TN_OK);
        assert_int_equal(tn_comm_barrier(comm), TN_OK);
        steps(nets[0], of[0], 2, 4);
        for (int i = 1; i < 3; i++) {
            assert_int_equal(tn_snapshot_load(file, nets[i], of[i], NULL), TN_OK);
            steps(nets[i], of[i], 2, 4);
        }
        for (int i = 0; i < 3; i++)
            assert_int_equal(tn_optimizer_gather(of[i]), TN_OK);
        for (int i = 1; i < 3 && rank == 0; i++) {
            assert_same_params(nets[0], nets[i]);
            assert_same_states(of[0], of[i]);
        }
        for (int i = 0; i < 3; i++) {
            tn_optimizer_free(of[i]);
            tn_layer_free(nets[i]);
        }
    }
    assert_true(tn_ok());
}

enum { WIDTH = 150, LAYERS = 4 };
static const size_t layer_bytes = WIDTH * (WIDTH + 1) * sizeof(float);

/* Bytes that a network of marked layers takes between two steps, with its optimizer, and at most in a step. */
static void measure(int shard, size_t *used, size_t *most)
{
    size_t before = tn_memory_stats(test_device()).used;
    TN_SCOPE {
        tn_layer *layers[LAYERS];
        for (int i = 0; i < LAYERS; i++)
            layers[i] = tn_layer_shard(tn_linear(WIDTH, .in = WIDTH));
        tn_layer *net = tn_sequential_of(LAYERS, layers);
        assert_int_equal(tn_layer_to(net, test_device()), TN_OK);
        tn_optimizer *optimizer = tn_adam(net);
        assert_int_equal(tn_optimizer_distribute(optimizer, comm, .shard = shard), TN_OK);
        for (int t = 0; t < 3; t++) TN_SCOPE {
            if (t == 2)
                tn_memory_reset_peak(test_device());
            tn_array *x = tn_ones(TN_SHAPE(2, WIDTH), .device = test_device());
            assert_int_equal(tn_backward(tn_mean(tn_square(tn_forward(net, x)))), TN_OK);
            assert_int_equal(tn_step(optimizer), TN_OK);
        }
        tn_memory_info stats = tn_memory_stats(test_device());
        *used = stats.used - before;
        *most = stats.peak - before;
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
}

/* Parameters, gradients and two states of all layers are what a step needs where nothing is in parts. Stage 2 leaves
 * out the others' shares of states and sums, and has one layer's gradients, and a vector of them, at a time; stage 3
 * has the parameters of one layer besides its share of all. */
static void test_memory(void **state)
{
    (void)state;
    size_t used[4], most[4], all = LAYERS * layer_bytes, share = all / (size_t)size, rest = 1 << 16;
    if (size == 1)
        skip();
    for (int shard = 0; shard < 4; shard++)
        measure(shard, &used[shard], &most[shard]);
    if (rank == 0)
        for (int shard = 0; shard < 4; shard++)
            printf("%d ranks, stage %d: %zu bytes between steps, %zu at most; parameters are %zu\n", size, shard,
                   used[shard], most[shard], all);
    assert_true(used[0] >= 3 * all);
    assert_true(used[1] <= all + 2 * share + rest);
    assert_true(used[2] <= all + 2 * share + rest);
    assert_true(used[3] <= 3 * share + rest);
    assert_true(most[0] >= 3 * all);
    assert_true(most[3] < most[2] && most[2] < most[1]);
    assert_true(tn_ok());
}

/* What cannot be: second gradients, copies and moves of what is in parts, going back when the optimizer has gone. */
static void test_refused(void **state)
{
    (void)state;
    if (size == 1)
        skip();
    TN_SCOPE {
        tn_layer *net = network(false);
        assert_int_equal(tn_layer_to(net, test_device()), TN_OK);
        tn_optimizer *optimizer = tn_sgd(net, .lr = 0.1);
        assert_int_equal(tn_optimizer_distribute(optimizer, comm, .shard = 4), TN_ERR_VALUE);
        tn_clear_error();
        assert_int_equal(tn_optimizer_distribute(optimizer, comm, .shard = 3), TN_OK);
        assert_int_equal(tn_layer_to(net, tn_virtual(3)), TN_ERR_STATE);
        assert_non_null(strstr(tn_error(), "'0.W'"));
        tn_clear_error();
        tn_layer_free(tn_layer_copy(net));
        assert_int_equal(tn_error_code(), TN_ERR_STATE);
        tn_clear_error();
        tn_layer *other = network(false);
        assert_int_equal(tn_layer_copy_params(net, other), TN_ERR_STATE);
        tn_clear_error();
        assert_int_equal(tn_layer_copy_params(other, net), TN_ERR_STATE);
        tn_clear_error();
        tn_layer_free(other);
        assert_int_equal(tn_backward(loss_of(net, 0), .create_graph = true), TN_ERR_UNSUPPORTED);
        assert_non_null(strstr(tn_error(), "tn_layer_shard"));
        tn_clear_error();
        steps(net, optimizer, 0, 1);
        tn_layer *one = tn_layer_shard(tn_linear(OUT, .in = IN));
        assert_int_equal(tn_layer_to(one, test_device()), TN_OK);
        tn_optimizer *of_one = tn_sgd(one);
        assert_int_equal(tn_optimizer_distribute(of_one, comm, .shard = 2), TN_OK);
        tn_array *loss = loss_of(one, 0);
        tn_optimizer_free(of_one);
        assert_int_equal(tn_backward(loss), TN_ERR_STATE);
        assert_non_null(strstr(tn_error(), "optimizer has been freed"));
        tn_clear_error();
        tn_layer_free(one);
        steps(net, optimizer, 1, 2);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_whole), cmocka_unit_test(test_snapshot),
                                       cmocka_unit_test(test_memory), cmocka_unit_test(test_refused)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return tn_comm_barrier(comm) != TN_OK || (rank == 0 && system(command) != 0) || failed;
}
