/* SPDX-License-Identifier: MIT */
/* Batch normalization over several ranks against the same of all minibatches in one: results, gradients, running
 * statistics; and means of persistent values. */
#include "ranks.h"

#include <math.h>

static tn_comm *comm;
static int rank, size;
static uint64_t seed;

enum { CHANNELS = 3, WIDTH = 2 };

#define MUST(call) \
    do { \
        if ((call) != TN_OK) \
            fail_msg("%s: %s", #call, tn_error()); \
    } while (0)

/* Samples of rank r: their numbers differ. */
static int64_t samples_of(int r) { return 2 + r; }

static tn_array *samples(int r, int which)
{
    static double values[8 * CHANNELS * WIDTH];
    test_random random = {seed + 1000 * (uint64_t)which + (uint64_t)r};
    int64_t count = samples_of(r) * CHANNELS * WIDTH;
    assert_true(count <= (int64_t)(sizeof values / sizeof *values));
    for (int64_t i = 0; i < count; i++)
        values[i] = test_random_double(&random) * (1 + r) + 3 * r;
    return tn_from_host(values, TN_SHAPE(samples_of(r), CHANNELS, WIDTH), TN_FLOAT64);
}

static tn_array *all_samples(int which)
{
    const tn_array *parts[16];
    for (int r = 0; r < size; r++)
        parts[r] = samples(r, which);
    return tn_concatenate(size, parts, 0);
}

/* This rank's part of what was made of all samples. */
static tn_array *own_part(const tn_array *all)
{
    int64_t begin = 0;
    for (int r = 0; r < rank; r++)
        begin += samples_of(r);
    return tn_slice_axis(all, 0, begin, begin + samples_of(rank), 1);
}

static void near(const tn_array *got, const tn_array *expected, const char *what)
{
    double most = tn_item(tn_max(tn_abs(tn_subtract(got, expected))));
    if (!(most <= 1e-10))
        fail_msg("rank %d of %d: %s differs by %g%s%s", rank, size, what, most, tn_ok() ? "" : ": ", tn_error());
}

static tn_layer *norm(void) { return tn_sequential(tn_batch_norm(CHANNELS, .dtype = TN_FLOAT64)); }

static tn_array *step(tn_layer *net, tn_array *x, const tn_array *weight)
{
    tn_requires_grad(x);
    tn_array *y = tn_forward(net, x);
    MUST(tn_backward(tn_sum(tn_multiply(tn_square(tn_add(y, 1)), weight))));
    return y;
}

static void test_as_one_batch(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *shared = norm(), *one = norm();
        MUST(tn_layer_share_statistics(shared, comm));
        for (int k = 0; k < 2; k++) {
            tn_array *all = all_samples(k), *own = samples(rank, k), *weights = all_samples(7);
            tn_array *expected = step(one, all, weights), *got = step(shared, own, own_part(weights));
            near(got, own_part(expected), "the result");
            near(tn_grad(own), own_part(tn_grad(all)), "the gradient");
        }
        for (int i = 0; i < tn_param_count(one); i++)
            near(tn_comm_all_reduce(comm, tn_grad(tn_param(shared, i)), TN_COMM_SUM), tn_grad(tn_param(one, i)),
                 tn_param_name(one, i));
        tn_layer_train(shared, false);
        tn_layer_train(one, false);
        if (rank == 0) /* by running statistics: no call of all ranks */
            near(tn_forward(shared, samples(0, 5)), tn_forward(one, samples(0, 5)), "the running statistics");
        tn_layer *copy = tn_layer_copy(shared);
        tn_layer_train(copy, true);
        tn_layer_train(one, true);
        near(tn_forward(copy, samples(rank, 6)), own_part(tn_forward(one, all_samples(6))), "the copy's result");
        MUST(tn_layer_share_statistics(shared, tn_comm_self()));
        tn_layer_train(shared, true);
        near(tn_mean(tn_forward(shared, samples(rank, 5))), tn_scalar(0.0), "an own minibatch's mean");
        tn_layer_free(copy);
        tn_layer_free(shared);
        tn_layer_free(one);
    }
}

static tn_status add_running(const tn_layer_part *part, void *user)
{
    double *sum = user;
    if (part->value && strstr(part->path, "avg_mean"))
        *sum += tn_item(tn_sum(part->value));
    return TN_OK;
}

static void test_average(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = norm();
        double own = 0, mean = 0;
        (void)tn_forward(net, samples(rank, 3));
        MUST(tn_layer_walk(net, add_running, &own));
        MUST(tn_layer_average_persistents(net, comm));
        MUST(tn_layer_walk(net, add_running, &mean));
        tn_array *all = tn_comm_all_reduce(comm, tn_from_host(&own, TN_SHAPE(1), TN_FLOAT64), TN_COMM_MEAN);
        near(tn_from_host(&mean, TN_SHAPE(1), TN_FLOAT64), all, "the mean of running means");
        tn_layer_free(net);
    }
}

static void test_mistakes(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = norm();
        assert_int_equal(tn_layer_share_statistics(net, NULL), TN_ERR_VALUE);
        tn_clear_error();
        tn_comm *part = tn_comm_split(comm, 0, 0);
        MUST(tn_layer_share_statistics(net, part));
        tn_comm_free(part);
        if (size > 1) {
            assert_true(tn_is_error(tn_forward(net, samples(rank, 0))));
            assert_int_equal(tn_error_code(), TN_ERR_STATE);
            tn_clear_error();
        }
        tn_layer_free(net);
    }
}

int main(void)
{
    (void)test_device();
    if (!ranks_begin(&comm, &rank, &size))
        return 1;
    seed = shared_seed(comm);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_one_batch), cmocka_unit_test(test_average),
                                       cmocka_unit_test(test_mistakes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
