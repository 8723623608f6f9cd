/* SPDX-License-Identifier: MIT */
/* Gradients through collectives, first and second ones: what every rank gets is compared with those of a graph that one
 * process makes of all ranks' operands, without any communicator. */
#include "comm/ranks.h"

static tn_comm *comm;
static int rank, size;
static uint64_t seed;

#define ROOT (size - 1)
#define MOST 8

/* A collective, and what rank r gets of all ranks' x by it. */
typedef struct collective {
    const char *name;
    bool cut;       /* x has an element for each rank */
    bool to_root, from_root;
    tn_array *(*call)(tn_array *x);
    tn_array *(*local)(tn_array *const *xs, int r);
} collective;

static tn_array *stacked(tn_array *const *xs) { return tn_stack(size, (const tn_array *const *)xs, 0); }
static tn_array *element(tn_array *x, int r) { return tn_squeeze(tn_slice_axis(x, 0, r, r + 1, 1), TN_AXES(0)); }

#define REDUCTION(name, op, of_axis) \
    static tn_array *call_##name(tn_array *x) { return tn_comm_all_reduce(comm, x, op); } \
    static tn_array *local_##name(tn_array *const *xs, int r) \
    { \
        (void)r; \
        return of_axis(stacked(xs), .axis = TN_AXES(0)); \
    }
REDUCTION(sum, TN_COMM_SUM, tn_sum)
REDUCTION(mean, TN_COMM_MEAN, tn_mean)
REDUCTION(max, TN_COMM_MAX, tn_max)
REDUCTION(min, TN_COMM_MIN, tn_min)
REDUCTION(prod, TN_COMM_PROD, tn_prod)

static tn_array *call_reduce(tn_array *x) { return tn_comm_reduce(comm, x, TN_COMM_MEAN, ROOT); }
static tn_array *call_most(tn_array *x) { return tn_comm_reduce(comm, x, TN_COMM_MAX, ROOT); }
static tn_array *call_broadcast(tn_array *x) { return tn_comm_broadcast(comm, rank == ROOT ? x : NULL, ROOT); }
static tn_array *local_broadcast(tn_array *const *xs, int r)
{
    (void)r;
    return tn_multiply(xs[ROOT], 1);
}
static tn_array *call_all_gather(tn_array *x) { return tn_comm_all_gather(comm, x); }
static tn_array *call_gather(tn_array *x) { return tn_comm_gather(comm, x, ROOT); }
static tn_array *local_gather(tn_array *const *xs, int r)
{
    (void)r;
    return stacked(xs);
}
static tn_array *call_scatter(tn_array *x) { return tn_comm_scatter(comm, rank == ROOT ? x : NULL, ROOT); }
static tn_array *local_scatter(tn_array *const *xs, int r) { return element(xs[ROOT], r); }
static tn_array *call_reduce_scatter(tn_array *x) { return tn_comm_reduce_scatter(comm, x, TN_COMM_SUM); }
static tn_array *call_prod_scatter(tn_array *x) { return tn_comm_reduce_scatter(comm, x, TN_COMM_PROD); }
static tn_array *local_reduce_scatter(tn_array *const *xs, int r)
{
    return element(tn_sum(stacked(xs), .axis = TN_AXES(0)), r);
}
static tn_array *local_prod_scatter(tn_array *const *xs, int r)
{
    return element(tn_prod(stacked(xs), .axis = TN_AXES(0)), r);
}
static tn_array *call_all_to_all(tn_array *x) { return tn_comm_all_to_all(comm, x); }
static tn_array *local_all_to_all(tn_array *const *xs, int r)
{
    const tn_array *parts[MOST];
    for (int s = 0; s < size; s++)
        parts[s] = element(xs[s], r);
    return tn_stack(size, parts, 0);
}

static const collective collectives[] = {
    {"sum", false, false, false, call_sum, local_sum},
    {"mean", false, false, false, call_mean, local_mean},
    {"max", false, false, false, call_max, local_max},
    {"min", false, false, false, call_min, local_min},
    {"prod", false, false, false, call_prod, local_prod},
    {"reduce", false, true, false, call_reduce, local_mean},
    {"reduce max", false, true, false, call_most, local_max},
    {"broadcast", false, false, true, call_broadcast, local_broadcast},
    {"all_gather", false, false, false, call_all_gather, local_gather},
    {"gather", false, true, false, call_gather, local_gather},
    {"scatter", true, false, true, call_scatter, local_scatter},
    {"reduce_scatter", true, false, false, call_reduce_scatter, local_reduce_scatter},
    {"product and scatter", true, false, false, call_prod_scatter, local_prod_scatter},
    {"all_to_all", true, false, false, call_all_to_all, local_all_to_all},
};

/* Numbers without ties, so that the largest is one alone. */
static tn_array *operand(int of, bool cut)
{
    double numbers[MOST * 3];
    int count = (cut ? size : 1) * 3;
    test_random r = {seed * 7 + (uint64_t)of};
    for (int i = 0; i < count; i++)
        numbers[i] = 0.5 + (double)(test_random_bits(&r) >> 12) * 0x1p-52;
    return tn_requires_grad(cut ? tn_from_host(numbers, TN_SHAPE(size, 3), TN_FLOAT64)
                                : tn_from_host(numbers, TN_SHAPE(3), TN_FLOAT64));
}

/* What rank r makes of its result: a loss that is not linear in it. */
static tn_array *loss_of(tn_array *y, int r) { return tn_sum(tn_multiply(tn_power(y, 3), 1 + r)); }

static void near(const char *name, const char *what, tn_array *got, tn_array *expected)
{
    if (tn_is_error(got) || !tn_allclose(got, expected, .rtol = 1e-12)) {
        char *left = tn_string(got), *right = tn_string(expected);
        fail_msg("%s, %s of rank %d: %s, expected %s. %s", name, what, rank, left, right, tn_error());
    }
}

/* The losses' gradients, and those of the gradients' squares: of own x, by the call; and by a graph of everything. */
static void check(const collective *c)
{
    tn_array *own = operand(rank, c->cut), *xs[MOST], *total = tn_scalar(0, .dtype = TN_FLOAT64);
    bool connected = !c->from_root || rank == ROOT;
    tn_array *y = c->call(own), *first[MOST], *mine = own;
    for (int r = 0; r < size; r++)
        xs[r] = operand(r, c->cut);
    for (int r = 0; r < size; r++) {
        tn_array *local = c->local(xs, r);
        if (r == rank && (!c->to_root || r == ROOT))
            near(c->name, "value", y, local);
        if (!c->to_root || r == ROOT)
            total = tn_add(total, loss_of(local, r));
    }
    assert_int_equal(tn_backward(loss_of(y, rank), .create_graph = true), TN_OK);
    assert_int_equal(tn_backward(total, .create_graph = true), TN_OK);
    assert_int_equal(tn_has_grad(mine), connected);
    tn_array *squares = tn_scalar(0, .dtype = TN_FLOAT64);
    for (int r = 0; r < size; r++) {
        if (!c->from_root || r == ROOT) {
            first[r] = tn_multiply(tn_grad(xs[r]), 1);
            tn_clear_grad(xs[r]);
            squares = tn_add(squares, tn_sum(tn_square(first[r])));
        }
    }
    if (connected)
        near(c->name, "gradient", tn_grad(own), first[rank]);
    if (c->from_root) /* where nothing reaches x there is no gradient to go on from */
        return;
    tn_array *gradient = tn_multiply(tn_grad(own), 1);
    tn_clear_grad(own);
    assert_int_equal(tn_backward(tn_sum(tn_square(gradient))), TN_OK);
    assert_int_equal(tn_backward(squares), TN_OK);
    near(c->name, "second gradient", tn_grad(own), tn_grad(xs[rank]));
}

static void test_collectives(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
        TN_SCOPE check(&collectives[i]);
    assert_true(tn_ok());
}

/* x goes from rank to rank, each of which multiplies it by its w, and the last one has the loss: the product of all. */
static void test_pipeline(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *w = tn_requires_grad(tn_scalar(2 + rank, .dtype = TN_FLOAT64));
        tn_array *x = rank == 0 ? tn_scalar(1, .dtype = TN_FLOAT64) : tn_comm_receive(comm, rank - 1, 3, NULL);
        tn_array *y = tn_multiply(x, w);
        if (rank < size - 1)
            y = tn_comm_send(comm, y, rank + 1, 3);
        assert_int_equal(tn_backward(y), TN_OK);
        double product = 1;
        for (int r = 0; r < size; r++)
            product *= r == rank ? 1 : 2 + r;
        assert_true(tn_item(tn_grad(w)) == product);
    }
}

/* There and back again: what the second message comes after leads backward to the first; and a result that is not the
 * message's is connected with it. */
static void test_connected(void **state)
{
    (void)state;
    if (size == 1)
        return;
    TN_SCOPE {
        if (rank == 0) {
            tn_array *w = tn_requires_grad(tn_scalar(3, .dtype = TN_FLOAT64));
            tn_array *sent = tn_comm_send(comm, tn_square(w), 1, 0);
            tn_array *back = tn_comm_receive(comm, 1, 0, sent);
            assert_int_equal(tn_backward(tn_multiply(back, 10)), TN_OK);
            assert_true(tn_item(tn_grad(w)) == 10 * 5 * 6);
            tn_clear_grad(w);
            sent = tn_comm_send(comm, tn_square(w), 1, 0);
            assert_int_equal(tn_backward(tn_comm_connect(sent, tn_multiply(w, 100))), TN_OK);
            assert_true(tn_item(tn_grad(w)) == 100 + 6);
        } else if (rank == 1) {
            tn_array *x = tn_comm_receive(comm, 0, 0, NULL);
            assert_int_equal(tn_backward(tn_comm_send(comm, tn_multiply(x, 5), 0, 0)), TN_OK);
            assert_int_equal(tn_backward(tn_comm_receive(comm, 0, 0, NULL)), TN_OK);
        }
    }
    assert_true(tn_ok());
}

static void test_freed(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_comm *part = tn_comm_split(comm, 0, 0);
        tn_array *y = tn_comm_all_reduce(part, operand(rank, false), TN_COMM_SUM);
        tn_comm_free(part);
        assert_int_equal(tn_backward(tn_sum(y)), TN_ERR_STATE);
        assert_non_null(strstr(tn_error(), "freed"));
        tn_clear_error();
    }
}

int main(void)
{
    if (!ranks_begin(&comm, &rank, &size))
        return 1;
    seed = shared_seed(comm);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_collectives), cmocka_unit_test(test_pipeline),
                                       cmocka_unit_test(test_connected), cmocka_unit_test(test_freed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
