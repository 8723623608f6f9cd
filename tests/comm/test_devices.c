/* SPDX-License-Identifier: MIT */
/*
 * Communicators over devices of this process: what each collective gives, in every dtype, and its first and second
 * gradients, against the same on one device. Two GPUs where there are two, else virtual devices and the CPU.
 */
#include <math.h>

#include "core/memory.h"
#include "ranks.h"
#include "support/starve.h"

enum { RANKS = 3 };

static tn_device on[RANKS + 1];
static tn_comm *comm;
static uint64_t seed;

#define MUST(call) \
    do { \
        if ((call) != TN_OK) \
            fail_msg("%s: %s", #call, tn_error()); \
    } while (0)

static const tn_shape shapes[] = {{0, {0}}, {1, {0}}, {2, {3, 5}}};
enum { SHAPES = 3 };

/* ---- every dtype ---- */

/* What the ranks hold, on their devices; elsewhere[r] the same on the first. */
static void hold(tn_dtype dtype, tn_shape shape, tn_array **x, tn_array **elsewhere)
{
    for (int r = 0; r < RANKS; r++) {
        elsewhere[r] = tn_to(held_by(r, seed, dtype, shape), on[0]);
        x[r] = tn_to(elsewhere[r], on[r]);
    }
}

static void assert_at(tn_array *got, int rank, const tn_array *expected)
{
    if (tn_is_error(got) || !tn_device_equal(tn_device_of(got), on[rank]))
        fail_msg("rank %d: %s on %s", rank, tn_error(), tn_device_name(tn_device_of(got)));
    assert_same(tn_to(got, on[0]), expected);
}

static tn_array *combined(tn_comm_op op, tn_array *const *x)
{
    tn_array *all = x[0];
    for (int r = 1; r < RANKS; r++)
        all = op == TN_COMM_MAX    ? tn_maximum(all, x[r])
              : op == TN_COMM_MIN  ? tn_minimum(all, x[r])
              : op == TN_COMM_PROD ? tn_multiply(all, x[r])
                                   : tn_add(all, x[r]);
    return op == TN_COMM_MEAN ? tn_divide(all, RANKS) : all;
}

static tn_shape with_ranks(tn_shape shape)
{
    tn_shape whole = {.ndim = shape.ndim + 1, .dim = {RANKS}};
    memcpy(whole.dim + 1, shape.dim, sizeof *shape.dim * (size_t)shape.ndim);
    return whole;
}

static void check_copies(tn_dtype dtype, tn_shape shape, int root)
{
    tn_array *x[RANKS], *here[RANKS], *got[RANKS];
    hold(dtype, shape, x, here);
    tn_array *all = tn_stack(RANKS, (const tn_array *const *)here, 0);
    MUST(tn_comm_all_gather_each(comm, x, got));
    for (int r = 0; r < RANKS; r++)
        assert_at(got[r], r, all);
    assert_at(tn_comm_gather_each(comm, x, root), root, all);
    MUST(tn_comm_broadcast_each(comm, x[root], root, got));
    for (int r = 0; r < RANKS; r++)
        assert_at(got[r], r, here[root]);
    MUST(tn_comm_scatter_each(comm, tn_to(all, on[root]), root, got));
    for (int r = 0; r < RANKS; r++)
        assert_at(got[r], r, here[r]);
}

static tn_array *element(const tn_array *x, int r, tn_shape shape)
{
    return tn_reshape(tn_slice_axis(x, 0, r, r + 1, 1), shape);
}

static void check_reductions(tn_dtype dtype, tn_shape shape, int root)
{
    tn_array *x[RANKS], *here[RANKS], *got[RANKS];
    for (int op = TN_COMM_SUM; op <= TN_COMM_PROD; op++) {
        if (op == TN_COMM_MEAN && !tn_dtype_is_float(dtype) && !tn_dtype_is_complex(dtype))
            continue;
        hold(dtype, shape, x, here);
        tn_array *expected = combined((tn_comm_op)op, here);
        MUST(tn_comm_all_reduce_each(comm, x, (tn_comm_op)op, got));
        for (int r = 0; r < RANKS; r++)
            assert_at(got[r], r, expected);
        assert_at(tn_comm_reduce_each(comm, x, (tn_comm_op)op, root), root, expected);
        hold(dtype, with_ranks(shape), x, here);
        expected = combined((tn_comm_op)op, here);
        MUST(tn_comm_reduce_scatter_each(comm, x, (tn_comm_op)op, got));
        for (int r = 0; r < RANKS; r++)
            assert_at(got[r], r, element(expected, r, shape));
    }
    MUST(tn_comm_all_to_all_each(comm, x, got));
    for (int r = 0; r < RANKS; r++) {
        const tn_array *own[RANKS];
        for (int from = 0; from < RANKS; from++)
            own[from] = element(here[from], r, shape);
        assert_at(got[r], r, tn_stack(RANKS, own, 0));
    }
}

static void test_dtypes(void **state)
{
    (void)state;
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++)
            TN_SCOPE {
                check_copies((tn_dtype)d, shapes[s], (d + s) % RANKS);
                check_reductions((tn_dtype)d, shapes[s], (d + s) % RANKS);
            }
}

/* So many elements that each device reduces a share: no multiple of the ranks. Rounded sums are the same bits. */
static void test_many_elements(void **state)
{
    (void)state;
    TN_SCOPE {
        enum { N = 5000 };
        static float bits[RANKS][N];
        tn_array *x[RANKS], *got[RANKS], *here[RANKS];
        tn_seed(seed);
        for (int r = 0; r < RANKS; r++) {
            here[r] = tn_random_normal(TN_SHAPE(50, N / 50), .device = on[0]);
            x[r] = tn_to(here[r], on[r]);
        }
        MUST(tn_comm_all_reduce_each(comm, x, TN_COMM_SUM, got));
        for (int r = 0; r < RANKS; r++)
            MUST(tn_to_host(got[r], bits[r], sizeof bits[r]));
        for (int r = 1; r < RANKS; r++)
            assert_memory_equal(bits[0], bits[r], sizeof bits[0]);
        assert_same(tn_to(got[2], on[0]), combined(TN_COMM_SUM, here));
    }
}

/* ---- gradients ---- */

/* A number that depends on what each rank got, and not the same way. */
static tn_array *mixture(int count, tn_array *const *got)
{
    tn_array *sum = NULL;
    for (int r = 0; r < count; r++) {
        tn_array *one = tn_to(tn_sum(tn_sin(tn_multiply(got[r], 0.5 + r))), on[0]);
        sum = sum ? tn_add(sum, one) : one;
    }
    return sum;
}

/* The collective numbered `which` of x on the ranks' devices, or, with the same meaning, of x on the first alone. */
static tn_array *loss_of(int which, bool spread, tn_array *const *x)
{
    tn_array *got[RANKS] = {NULL};
    tn_comm_op op = (tn_comm_op)(which % 5);
    int count = RANKS;
    if (which < 5 && spread)
        MUST(tn_comm_all_reduce_each(comm, x, op, got));
    else if (which < 10 && spread)
        MUST(tn_comm_reduce_scatter_each(comm, x, op, got));
    else if (which < 15 && spread)
        got[0] = tn_comm_reduce_each(comm, x, op, 1);
    else if (which == 15 && spread)
        MUST(tn_comm_all_to_all_each(comm, x, got));
    else if (which == 16 && spread)
        MUST(tn_comm_scatter_each(comm, x[1], 1, got));
    else if (spread)
        MUST(tn_comm_broadcast_each(comm, x[2], 2, got));
    count = which >= 10 && which < 15 ? 1 : RANKS;
    for (int r = 0; r < count && !spread; r++) {
        const tn_array *own[RANKS];
        for (int from = 0; from < RANKS; from++)
            own[from] = tn_slice_axis(x[from], 0, r, r + 1, 1);
        got[r] = which < 5     ? combined(op, x)
                 : which < 10  ? tn_slice_axis(combined(op, x), 0, r, r + 1, 1)
                 : which < 15  ? combined(op, x)
                 : which == 15 ? tn_concatenate(RANKS, own, 0)
                 : which == 16 ? tn_slice_axis(x[1], 0, r, r + 1, 1)
                               : x[2];
    }
    return mixture(count, got);
}

/* First and second gradients of x, into numbers. */
static void derive(int which, bool spread, const double values[RANKS][RANKS * 2], double found[2][RANKS][RANKS * 2])
{
    tn_array *x[RANKS];
    for (int r = 0; r < RANKS; r++)
        x[r] = tn_requires_grad(tn_from_host(values[r], TN_SHAPE(RANKS, 2), TN_FLOAT64,
                                             .device = spread ? on[r] : on[0]));
    MUST(tn_backward(loss_of(which, spread, x), .create_graph = true));
    tn_array *second = NULL;
    for (int r = 0; r < RANKS; r++) {
        if (!tn_has_grad(x[r]))
            continue;
        tn_array *g = tn_grad(x[r]);
        MUST(tn_to_host(g, found[0][r], sizeof found[0][r]));
        tn_array *one = tn_to(tn_sum(tn_multiply(tn_square(g), 1 + r)), on[0]);
        second = second ? tn_add(second, one) : one;
    }
    for (int r = 0; r < RANKS; r++)
        tn_clear_grad(x[r]);
    MUST(tn_backward(second));
    for (int r = 0; r < RANKS; r++)
        if (tn_has_grad(x[r]))
            MUST(tn_to_host(tn_grad(x[r]), found[1][r], sizeof found[1][r]));
}

static void test_gradients(void **state)
{
    (void)state;
    test_random random = {seed};
    for (int which = 0; which < 18; which++)
        TN_SCOPE {
            double values[RANKS][RANKS * 2], several[2][RANKS][RANKS * 2] = {0}, single[2][RANKS][RANKS * 2] = {0};
            for (int r = 0; r < RANKS; r++)
                for (int i = 0; i < RANKS * 2; i++)
                    values[r][i] = test_random_double(&random) + 0.25;
            derive(which, true, values, several);
            derive(which, false, values, single);
            for (int i = 0; i < 2 * RANKS * RANKS * 2; i++) {
                double a = (&several[0][0][0])[i], b = (&single[0][0][0])[i];
                if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b))))
                    fail_msg("collective %d, number %d: %.12g on several devices, %.12g on one", which, i, a, b);
            }
        }
}

/* ---- objects ---- */

static void test_many_times(void **state)
{
    (void)state;
    int files = open_files();
    size_t arrays = tn_live_arrays(), bytes = tn_memory_stats(on[0]).used;
    for (int i = 0; i < 1000; i++) {
        tn_comm *other = tn_comm_devices(on);
        assert_int_equal(tn_comm_size(other), RANKS);
        if (i % 50 == 0)
            TN_SCOPE {
                tn_array *x[RANKS], *got[RANKS];
                for (int r = 0; r < RANKS; r++)
                    x[r] = tn_ones(TN_SHAPE(3), .device = tn_comm_device(other, r));
                MUST(tn_comm_all_reduce_each(other, x, TN_COMM_SUM, got));
                tn_comm_free(other);
                other = NULL;
                assert_true(tn_item(tn_max(got[1])) == RANKS); /* what came from it does not need it */
            }
        tn_comm_free(other);
    }
    assert_int_equal(open_files(), files);
    assert_int_equal(tn_live_arrays(), arrays);
    assert_int_equal(tn_memory_stats(on[0]).used, bytes);
}

static void expect(tn_status code, const char *words)
{
    if (tn_error_code() != code || !strstr(tn_error(), words))
        fail_msg("expected %s with '%s', got '%s'", tn_status_name(code), words, tn_error());
    tn_clear_error();
}

static void refused(tn_comm *made, tn_status code, const char *words)
{
    assert_int_equal(tn_comm_status(made), code);
    expect(code, words);
    tn_comm_free(made);
}

static void test_mistakes(void **state)
{
    (void)state;
    refused(tn_comm_devices(NULL), TN_ERR_VALUE, "devices");
    refused(tn_comm_devices(&(tn_device){TN_DEVICE_DEFAULT, 0}), TN_ERR_VALUE, "one device or more");
    refused(tn_comm_devices(TN_DEVICES(on[0], on[1], on[0])), TN_ERR_VALUE, "twice");
    refused(tn_comm_devices(TN_DEVICES(on[0], {TN_DEVICE_CUDA, 77})), TN_ERR_DEVICE, "device");
    TN_SCOPE {
        tn_array *x[RANKS], *here[RANKS], *got[RANKS];
        hold(TN_FLOAT32, TN_SHAPE(2, 2), x, here);
        assert_int_equal(tn_comm_all_reduce_each(comm, here, TN_COMM_SUM, got), TN_ERR_DEVICE);
        expect(TN_ERR_DEVICE, "rank 1");
        assert_true(tn_is_error(got[0]) && tn_is_error(got[RANKS - 1]));
        assert_int_equal(tn_comm_scatter_each(comm, x[0], 0, got), TN_ERR_SHAPE);
        expect(TN_ERR_SHAPE, "first axis");
        assert_true(tn_is_error(tn_comm_reduce_each(comm, x, (tn_comm_op)9, 0)));
        expect(TN_ERR_VALUE, "tn_comm_op");
        assert_true(tn_is_error(tn_comm_gather_each(comm, x, RANKS)));
        expect(TN_ERR_VALUE, "a root");
        x[2] = tn_cast(x[2], TN_INT32);
        assert_int_equal(tn_comm_all_gather_each(comm, x, got), TN_ERR_DTYPE);
        expect(TN_ERR_DTYPE, "rank 2 has int32");
        assert_true(tn_is_error(tn_comm_all_reduce(comm, x[0], TN_COMM_SUM)));
        expect(TN_ERR_UNSUPPORTED, "_each");
        assert_int_equal(tn_comm_rank(comm), -1);
        expect(TN_ERR_UNSUPPORTED, "_each");
    }
    assert_int_equal(tn_comm_device(comm, RANKS).kind, TN_DEVICE_DEFAULT);
    expect(TN_ERR_VALUE, "a rank");
}

/* A process is one rank of its own. */
static void test_alone(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(1, 2)), *got;
        MUST(tn_comm_all_reduce_each(tn_comm_self(), &x, TN_COMM_SUM, &got));
        MUST(tn_comm_all_to_all_each(tn_comm_self(), &got, &got));
        MUST(tn_comm_broadcast_each(tn_comm_self(), got, 0, &got));
        assert_same(tn_comm_reduce_each(tn_comm_self(), &got, TN_COMM_MAX, 0), x);
    }
}

static tn_status all_calls(void *user)
{
    (void)user;
    tn_comm *made = tn_comm_devices(on);
    tn_status status = tn_comm_status(made);
    TN_SCOPE {
        tn_array *x[RANKS], *got[RANKS];
        for (int r = 0; r < RANKS; r++)
            x[r] = tn_ones(TN_SHAPE(RANKS, 1500), .device = on[r]);
        if (status == TN_OK)
            status = tn_comm_all_reduce_each(made, x, TN_COMM_MEAN, got);
        if (status == TN_OK)
            status = tn_comm_all_to_all_each(made, got, got);
        if (status == TN_OK)
            status = tn_eval(tn_comm_gather_each(made, got, 2));
    }
    tn_comm_free(made);
    return status;
}

static void test_without_memory(void **state)
{
    (void)state;
    starve("communicators of devices", all_calls, NULL);
}

int main(void)
{
    if (test_too_few(on, 2))
        return TEST_SKIPPED;
    on[2] = tn_cpu();
    seed = test_seed_new();
    tn_set_compile(TN_COMPILE_NEVER);
    comm = tn_comm_devices(on);
    assert_int_equal(tn_comm_status(comm), TN_OK);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),    cmocka_unit_test(test_many_elements), cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_many_times), cmocka_unit_test(test_mistakes),     cmocka_unit_test(test_alone),
        cmocka_unit_test(test_without_memory),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tn_comm_free(comm);
    return failed;
}
