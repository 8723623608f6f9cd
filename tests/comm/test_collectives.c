/* SPDX-License-Identifier: MIT */
/* What collectives give, for every dtype, alone and as several ranks: compared with what each rank works out by itself,
 * as it knows what the others hold. */
#include "comm/ranks.h"

#include <math.h>

#include "support/starve.h"

static tn_comm *comm;
static int rank, size;
static uint64_t seed;

static const tn_shape shapes[] = {{.ndim = 0}, {1, {0}}, {1, {1}}, {2, {3, 5}}, {3, {2, 0, 3}}, {1, {131}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static tn_array *held(int of, tn_dtype dtype, tn_shape shape) { return held_by(of, seed, dtype, shape); }

/* x of all ranks along a new first axis. */
static tn_array *stacked(tn_dtype dtype, tn_shape shape)
{
    const tn_array *all[16];
    for (int r = 0; r < size; r++)
        all[r] = held(r, dtype, shape);
    return tn_stack(size, all, 0);
}

static tn_array *combined(tn_comm_op op, tn_dtype dtype, tn_shape shape)
{
    tn_array *sum = held(0, dtype, shape);
    for (int r = 1; r < size; r++) {
        tn_array *x = held(r, dtype, shape);
        sum = op == TN_COMM_MAX    ? tn_maximum(sum, x)
              : op == TN_COMM_MIN  ? tn_minimum(sum, x)
              : op == TN_COMM_PROD ? tn_multiply(sum, x)
                                   : tn_add(sum, x);
    }
    return op == TN_COMM_MEAN ? tn_divide(sum, size) : sum;
}

static tn_array *nothing(tn_dtype dtype) { return tn_zeros(TN_SHAPE(0), .dtype = dtype); }

static void test_reductions(void **state)
{
    (void)state;
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++)
            for (int op = TN_COMM_SUM; op <= TN_COMM_PROD; op++) TN_SCOPE {
                tn_dtype dtype = (tn_dtype)d;
                if (op == TN_COMM_MEAN && !tn_dtype_is_float(dtype) && !tn_dtype_is_complex(dtype))
                    continue;
                int root = (d + s + op) % size;
                tn_array *x = held(rank, dtype, shapes[s]), *expected = combined((tn_comm_op)op, dtype, shapes[s]);
                assert_same(tn_comm_all_reduce(comm, x, (tn_comm_op)op), expected);
                assert_same(tn_comm_reduce(comm, x, (tn_comm_op)op, root), rank == root ? expected : nothing(dtype));
            }
}

static void test_gathers(void **state)
{
    (void)state;
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++) TN_SCOPE {
            tn_dtype dtype = (tn_dtype)d;
            int root = (d + s) % size;
            tn_array *x = held(rank, dtype, shapes[s]), *all = stacked(dtype, shapes[s]);
            assert_same(tn_comm_all_gather(comm, x), all);
            assert_same(tn_comm_gather(comm, x, root), rank == root ? all : nothing(dtype));
            assert_same(tn_comm_broadcast(comm, rank == root || s % 2 ? x : NULL, root), held(root, dtype, shapes[s]));
            assert_same(tn_comm_scatter(comm, rank == root ? all : NULL, root), x);
        }
}

/* What rank r of the communicator has for rank s: element s along the first axis. */
static void test_exchanges(void **state)
{
    (void)state;
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        for (int s = 0; s < SHAPES; s++) TN_SCOPE {
            tn_dtype dtype = (tn_dtype)d;
            tn_shape whole = {.ndim = shapes[s].ndim + 1, .dim = {size}};
            memcpy(whole.dim + 1, shapes[s].dim, sizeof *whole.dim * (size_t)shapes[s].ndim);
            const tn_array *own[16];
            for (int r = 0; r < size; r++)
                own[r] = tn_slice_axis(held(r, dtype, whole), 0, rank, rank + 1, 1);
            tn_array *x = held(rank, dtype, whole);
            assert_same(tn_comm_all_to_all(comm, x), tn_concatenate(size, own, 0));
            tn_array *sum = tn_slice_axis(combined(TN_COMM_SUM, dtype, whole), 0, rank, rank + 1, 1);
            assert_same(tn_comm_reduce_scatter(comm, x, TN_COMM_SUM), tn_reshape(sum, shapes[s]));
        }
}

static void test_messages(void **state)
{
    (void)state;
    if (size == 1) {
        assert_true(tn_is_error(tn_comm_send(comm, tn_scalar(1), 0, 0)));
        assert_int_equal(tn_error_code(), TN_ERR_VALUE);
        tn_clear_error();
        return;
    }
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int s = 0; s < SHAPES; s++) TN_SCOPE {
        tn_dtype dtype = (tn_dtype)(1 + s * 2);
        tn_array *x = held(rank, dtype, shapes[s]), *got;
        if (rank % 2) {
            got = tn_comm_receive(comm, before, s, NULL);
            assert_same(tn_comm_send(comm, x, next, s), nothing(dtype));
        } else {
            assert_same(tn_comm_send(comm, x, next, s), nothing(dtype));
            got = tn_comm_receive(comm, before, s, NULL);
        }
        assert_same(got, held(before, dtype, shapes[s]));
    }
}

/* An operand that is a view, one still to be computed, and NaN among numbers. */
static void test_operands(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = held(rank, TN_FLOAT32, TN_SHAPE(4, 3));
        tn_array *all = tn_comm_all_gather(comm, tn_transpose(x, (tn_axes){0}));
        tn_array *sum = tn_comm_all_reduce(comm, tn_add(x, 1), TN_COMM_SUM);
        assert_same(tn_transpose(all, TN_AXES(0, 2, 1)), stacked(TN_FLOAT32, TN_SHAPE(4, 3)));
        assert_same(sum, tn_add(combined(TN_COMM_SUM, TN_FLOAT32, TN_SHAPE(4, 3)), size));
        float numbers[2] = {rank == size - 1 ? NAN : 1, (float)rank}, most[2], least[2];
        tn_array *y = tn_from_floats(numbers, 2);
        assert_int_equal(tn_to_host(tn_comm_all_reduce(comm, y, TN_COMM_MAX), most, sizeof most), TN_OK);
        assert_int_equal(tn_to_host(tn_comm_all_reduce(comm, y, TN_COMM_MIN), least, sizeof least), TN_OK);
        assert_true(isnan(most[0]) && isnan(least[0]) && most[1] == (float)(size - 1) && least[1] == 0);
    }
}

/* Sums that round: near the exact ones, and the same bits on all ranks and each time. */
static void test_rounded_sums(void **state)
{
    (void)state;
    TN_SCOPE {
        enum { N = 5000 };
        double exact[N] = {0};
        static float own[N], sums[2][N];
        for (int r = 0; r < size; r++) {
            test_random numbers = {seed * 31 + (uint64_t)r};
            for (int i = 0; i < N; i++) {
                float x = (float)(test_random_bits(&numbers) >> 40) * 0x1p-20f - 8;
                exact[i] += x;
                if (r == rank)
                    own[i] = x;
            }
        }
        for (int k = 0; k < 2; k++)
            assert_int_equal(tn_to_host(tn_comm_all_reduce(comm, tn_from_floats(own, N), TN_COMM_SUM), sums[k],
                                        sizeof sums[k]),
                             TN_OK);
        assert_memory_equal(sums[0], sums[1], sizeof sums[0]);
        for (int i = 0; i < N; i++)
            assert_true(fabs(sums[0][i] - exact[i]) <= 8 * 0x1p-22 * size);
        tn_array *bits = tn_comm_all_gather(comm, tn_from_floats(sums[0], N));
        assert_true(tn_item(tn_all(tn_equal(bits, tn_slice_axis(bits, 0, 0, 1, 1)))) == 1);
    }
}

static void test_split(void **state)
{
    (void)state;
    /* Those of one parity, the last one first. */
    tn_comm *part = tn_comm_split(comm, rank % 2, -rank);
    int members = (size + 1 - rank % 2) / 2;
    assert_int_equal(tn_comm_status(part), TN_OK);
    assert_int_equal(tn_comm_size(part), members);
    assert_int_equal(tn_comm_rank(part), members - 1 - rank / 2);
    assert_int_equal(tn_comm_node(part), 0);
    assert_int_equal(tn_comm_node_count(part), 1);
    assert_int_equal(tn_comm_local_rank(part), tn_comm_rank(part));
    assert_int_equal(tn_comm_local_size(part), members);
    TN_SCOPE {
        int64_t expected = 0;
        for (int r = rank % 2; r < size; r += 2)
            expected += r;
        assert_int_equal(tn_item_int(tn_comm_all_reduce(part, tn_from_int64s((int64_t[]){rank}, 1), TN_COMM_SUM)),
                         expected);
    }
    tn_comm_free(part);
    tn_comm *none = tn_comm_split(comm, rank == 0 ? 0 : -1, 0);
    assert_true((none != NULL) == (rank == 0));
    tn_comm_free(none);
    assert_true(tn_ok());
}

/* Made and freed a thousand times, or, where GPUs are connected for each, a few: nothing is left. */
static void test_many(void **state)
{
    (void)state;
    int files = 0, rounds = test_device().kind == TN_DEVICE_CUDA ? 20 : 1000;
    size_t arrays = tn_live_arrays(), bytes = tn_memory_stats(test_device()).used;
    for (int i = 0; i < rounds; i++) {
        tn_comm *part = tn_comm_split(comm, 0, 0);
        TN_SCOPE assert_int_equal(tn_item_int(tn_comm_all_reduce(part, tn_scalar(1), TN_COMM_SUM)), size);
        tn_comm_free(part);
        if (i == 10)
            files = open_files();
    }
    assert_int_equal(open_files(), files);
    assert_int_equal(tn_live_arrays(), arrays);
    assert_int_equal(tn_memory_stats(test_device()).used, bytes);
}

static void expect(tn_status code, const char *words)
{
    if (tn_error_code() != code || !strstr(tn_error(), words))
        fail_msg("expected %s with '%s', got '%s'", tn_status_name(code), words, tn_error());
    tn_clear_error();
}

/* All ranks make the same mistakes, so nobody waits. */
static void test_mistakes(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(size + 1, 2));
        assert_true(tn_is_error(tn_comm_all_reduce(comm, x, (tn_comm_op)9)));
        expect(TN_ERR_VALUE, "tn_comm_op");
        assert_true(tn_is_error(tn_comm_all_reduce(comm, tn_cast(x, TN_INT32), TN_COMM_MEAN)));
        expect(TN_ERR_DTYPE, "int32");
        assert_true(tn_is_error(tn_comm_reduce(comm, x, TN_COMM_SUM, size)));
        expect(TN_ERR_VALUE, "root");
        assert_true(tn_is_error(tn_comm_gather(comm, x, -1)));
        expect(TN_ERR_VALUE, "root");
        assert_true(tn_is_error(tn_comm_all_to_all(comm, x)));
        expect(TN_ERR_SHAPE, "first axis");
        assert_true(tn_is_error(tn_comm_reduce_scatter(comm, tn_scalar(1), TN_COMM_SUM)));
        expect(TN_ERR_SHAPE, "first axis");
        assert_true(tn_is_error(tn_comm_scatter(comm, x, 0)));
        expect(rank ? TN_ERR_VALUE : TN_ERR_SHAPE, rank ? "the root's" : "first axis");
        assert_true(tn_is_error(tn_comm_all_gather(comm, tn_ones(((tn_shape){8, {1, 1, 1, 1, 1, 1, 1, 1}})))));
        expect(TN_ERR_SHAPE, "8 axes");
        assert_true(tn_is_error(tn_comm_send(comm, x, rank, 0)));
        expect(TN_ERR_VALUE, "itself");
        assert_true(tn_is_error(tn_comm_receive(comm, size, 0, NULL)));
        expect(TN_ERR_VALUE, "other rank");
        assert_true(tn_is_error(tn_comm_receive(comm, 0, -1, NULL)));
        expect(TN_ERR_VALUE, "tag");
        assert_true(tn_is_error(tn_comm_connect(x, x)));
        expect(TN_ERR_SHAPE, "(0,)");
        assert_true(tn_is_error(tn_comm_all_reduce(NULL, x, TN_COMM_SUM)));
        expect(TN_ERR_VALUE, "communicator");
        tn_comm_free(tn_comm_world());
        expect(TN_ERR_STATE, "the library");
    }
    tn_comm *part = tn_comm_split(comm, 0, 0);
    tn_comm_free(part);
    assert_int_equal(tn_comm_rank(part), -1);
    expect(TN_ERR_STATE, "freed");
}

/* Without memory a process that is alone goes on as before. */
static tn_status all_calls(void *user)
{
    (void)user;
    tn_comm *part = tn_comm_split(tn_comm_self(), 0, 0);
    tn_status status = tn_comm_status(part);
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(1, 3));
        x = tn_comm_all_reduce(part, x, TN_COMM_MEAN);
        x = tn_comm_broadcast(part, tn_comm_all_to_all(part, x), 0);
        x = tn_comm_scatter(part, tn_comm_gather(part, x, 0), 0);
        float numbers[3];
        status = status == TN_OK ? tn_to_host(x, numbers, sizeof numbers) : status;
    }
    tn_comm_free(part);
    return status;
}

static void test_without_memory(void **state)
{
    (void)state;
    for (int n = 0; n < 4; n++) { /* what lasts is made in the end */
        tn__fail_allocation_after(n);
        tn_status status = tn_comm_status(tn_comm_self());
        tn__fail_allocation_after(-1);
        assert_true(status == TN_OK || status == TN_ERR_MEMORY);
        tn_clear_error();
    }
    assert_int_equal(tn_comm_status(tn_comm_self()), TN_OK);
    starve("communicators", all_calls, NULL);
}

int main(void)
{
    if (!ranks_begin(&comm, &rank, &size))
        return 1;
    const char *by_mpi = getenv("OMPI_COMM_WORLD_SIZE"), *launched = by_mpi ? by_mpi : getenv("WORLD_SIZE");
    if (size != (launched ? atoi(launched) : 1))
        return 1;
    seed = shared_seed(comm);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions),   cmocka_unit_test(test_gathers),  cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_messages),     cmocka_unit_test(test_operands), cmocka_unit_test(test_rounded_sums),
        cmocka_unit_test(test_split),        cmocka_unit_test(test_many),     cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
