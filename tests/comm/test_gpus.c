/* SPDX-License-Identifier: MIT */
/*
 * Ranks that have a GPU each: what goes from one's memory to the other's, by a library of the tests' own (tests/nccl)
 * between the GPUs of a driver of the tests' own (tests/emulator). This program starts itself as two ranks, which meet
 * by MASTER_ADDR and MASTER_PORT, once for each way in which that goes well or does not.
 */
#include "comm/ranks.h"

#include "array/build.h"
#include "comm/comm.h"
#include "engine/engine.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- the ranks ---- */

static tn_comm *comm;
static int rank, size;
static uint64_t seed;

static tn_array *here(tn_array *x) { return tn_to(x, tn_cuda(rank)); }

/* What arrays of the host become, and stay on the GPU. */
static void assert_on(tn_device device, tn_array *got, tn_array *expected)
{
    if (!tn_device_equal(tn_device_of(got), device))
        fail_msg("on %s: %s", tn_device_name(tn_device_of(got)), tn_ok() ? "no error" : tn_error());
    assert_same(tn_to(got, tn_cpu()), expected);
}

static void assert_there(tn_array *got, tn_array *expected) { assert_on(tn_cuda(rank), got, expected); }

static tn_array *all_of(tn_dtype dtype, tn_shape shape)
{
    tn_array *a = held_by(0, seed, dtype, shape), *b = held_by(1, seed, dtype, shape);
    return tn_stack(2, (const tn_array *[]){a, b}, 0);
}

static void check_moves(tn_dtype dtype, tn_shape shape, int root)
{
    tn_array *own = held_by(rank, seed, dtype, shape), *all = all_of(dtype, shape), *x = here(own);
    tn_array *nothing = tn_zeros(TN_SHAPE(0), .dtype = dtype);
    assert_there(tn_comm_all_gather(comm, x), all);
    assert_there(tn_comm_gather(comm, x, root), rank == root ? all : nothing);
    assert_there(tn_comm_broadcast(comm, x, root), held_by(root, seed, dtype, shape));
    assert_there(tn_comm_scatter(comm, here(all), root), own);
    tn_array *other = held_by(1 - rank, seed, dtype, shape); /* as element `rank` of what each rank has is its own */
    tn_array *given[] = {rank ? other : own, rank ? own : other};
    tn_array *got[] = {held_by(rank, seed, dtype, shape), held_by(rank, seed, dtype, shape)};
    assert_there(tn_comm_all_to_all(comm, here(tn_stack(2, (const tn_array *const *)given, 0))),
                 tn_stack(2, (const tn_array *const *)got, 0));
}

static void check_sums(tn_dtype dtype, tn_shape shape, int root)
{
    tn_array *own = held_by(rank, seed, dtype, shape), *x = here(own);
    tn_array *sum = tn_add(held_by(0, seed, dtype, shape), held_by(1, seed, dtype, shape));
    assert_there(tn_comm_all_reduce(comm, x, TN_COMM_SUM), sum);
    assert_there(tn_comm_reduce(comm, x, TN_COMM_SUM, root),
                 rank == root ? sum : tn_zeros(TN_SHAPE(0), .dtype = dtype));
    tn_array *twice = tn_stack(2, (const tn_array *[]){own, own}, 0);
    assert_there(tn_comm_reduce_scatter(comm, here(twice), TN_COMM_SUM), sum);
    if (!tn_dtype_is_float(dtype) && !tn_dtype_is_complex(dtype))
        assert_there(tn_comm_all_reduce(comm, x, TN_COMM_MAX),
                     tn_maximum(held_by(0, seed, dtype, shape), held_by(1, seed, dtype, shape)));
}

static void test_values(void **state)
{
    (void)state;
    static const tn_shape shapes[] = {{.ndim = 0}, {1, {0}}, {2, {3, 5}}};
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        for (int s = 0; s < 3; s++) TN_SCOPE {
            check_moves((tn_dtype)d, shapes[s], (d + s) % 2);
            if (d != TN_INT16 && d != TN_UINT16) /* by kernels, below */
                check_sums((tn_dtype)d, shapes[s], (d + s) % 2);
        }
}

/* What takes several pieces, and a slice, which lies apart. */
static void test_many(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_shape shape = TN_SHAPE(211, 301);
        tn_array *sum = tn_add(held_by(0, seed, TN_FLOAT32, shape), held_by(1, seed, TN_FLOAT32, shape));
        tn_array *x = here(held_by(rank, seed, TN_FLOAT32, shape));
        for (int i = 0; i < 3; i++)
            assert_there(tn_comm_all_reduce(comm, x, TN_COMM_SUM), sum);
        tn_array *some = tn_slice_axis(x, 0, 7, 9, 1);
        assert_there(tn_comm_all_reduce(comm, some, TN_COMM_SUM), tn_slice_axis(sum, 0, 7, 9, 1));
    }
}

/* What NCCL does not combine, or not as it is meant: 16 bits, and extremes, which keep NaN. */
static void test_by_kernels(void **state)
{
    (void)state;
    TN_SCOPE {
        float own[] = {1, -2, rank ? NAN : 3, (float)rank}, most[4];
        int16_t high[] = {32767, (int16_t)rank}, sums[2];
        tn_array *x = here(tn_from_host(own, TN_SHAPE(4), TN_FLOAT32));
        assert_int_equal(tn_to_host(tn_comm_all_reduce(comm, x, TN_COMM_MAX), most, sizeof most), TN_OK);
        assert_true(most[0] == 1 && most[1] == -2 && isnan(most[2]) && most[3] == 1);
        x = here(tn_from_host(high, TN_SHAPE(2), TN_INT16));
        assert_int_equal(tn_to_host(tn_comm_all_reduce(comm, x, TN_COMM_SUM), sums, sizeof sums), TN_OK);
        assert_true(sums[0] == -2 && sums[1] == 1);
    }
}

/* Sums of arrays of several dtypes by one call: on rank 0 they lie side by side, on rank 1 apart. */
static void test_sums_at_once(void **state)
{
    (void)state;
    static const struct {
        tn_dtype dtype;
        tn_shape shape;
    } rows[] = {{TN_FLOAT64, {1, {5}}}, {TN_FLOAT32, {2, {3, 5}}}, {TN_FLOAT32, {.ndim = 0}}, {TN_FLOAT32, {1, {33}}},
                {TN_INT32, {1, {1}}}};
    enum { ARRAYS = sizeof rows / sizeof *rows };
    TN_SCOPE {
        tn__node *node[ARRAYS];
        tn_array *x[ARRAYS];
        for (int i = 0; i < ARRAYS; i++) {
            x[i] = tn_multiply(here(held_by(rank, seed, rows[i].dtype, rows[i].shape)), 2);
            node[i] = tn__array_node(x[i]);
        }
        tn__call call = tn__enter();
        assert_int_equal(rank ? tn__evaluate(ARRAYS, node) : tn__evaluate_side_by_side(ARRAYS, node, false), TN_OK);
        assert_int_equal(tn__comm_sums(comm, ARRAYS, node, false, "test"), TN_OK);
        tn_array *sum[ARRAYS];
        for (int i = 0; i < ARRAYS; i++)
            sum[i] = tn__leave_array(tn__enter(), node[i]);
        tn__leave(call);
        for (int i = 0; i < ARRAYS; i++)
            assert_there(sum[i], tn_multiply(tn_add(held_by(0, seed, rows[i].dtype, rows[i].shape),
                                                    held_by(1, seed, rows[i].dtype, rows[i].shape)),
                                             2));
    }
}

/* ---- steps ---- */

enum { STEPS = 3 };

/* Two parameters, whose gradients are each a part that travels by itself (optim/travel.c), and one that rank 1 leaves
 * out in the second step and both in the third, all of whole numbers. Rank 0 has other ones at first, which count. */
static tn_array *start_of(int i, tn_shape shape)
{
    return tn_subtract(held_by(2 + i, seed, TN_FLOAT32, shape), 2);
}

static tn_array *few_of(tn_array *x)
{
    return tn_slice_axis(tn_reshape(x, TN_SHAPE(1, tn_size(x))), 1, 0, 3, 1);
}

/* The loss of one rank: its gradients are (1 + w1) x, w0 x and x's first ones. */
static tn_array *loss_of(tn_array *const *w, tn_array *x, bool all)
{
    tn_array *h = tn_multiply(w[0], x), *loss = tn_add(tn_sum(h), tn_sum(tn_multiply(w[1], h)));
    return all ? tn_add(loss, tn_sum(tn_multiply(w[2], few_of(x)))) : loss;
}

/* How often streams have been told to wait for one another. */
static int follows(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(driver);
    int (*count)(void) = (int (*)(void))dlsym(driver, "emulated_follows");
    assert_non_null(count);
    return count();
}

static void make_step(tn_optimizer *optimizer, tn_array *const *w, tn_array **expected, int step, bool counts)
{
    tn_shape shape = tn_shape_of(w[0]);
    tn_array *x[2], *sum, *few = tn_zeros(TN_SHAPE(1, 3), .device = tn_cpu());
    for (int r = 0; r < 2; r++) {
        x[r] = held_by(r, seed + 1 + (uint64_t)step, TN_FLOAT32, shape);
        if (step + r < 2)
            few = tn_add(few, few_of(x[r]));
    }
    tn_device on = tn_device_of(w[0]);
    tn_array *loss = loss_of(w, tn_to(x[rank], on), step + rank < 2);
    int before = follows();
    assert_int_equal(tn_backward(loss), TN_OK);
    if (step == 1 && rank == 0) /* then it does not lie beside what travels with it */
        assert_int_equal(tn_eval(tn_grad(w[1])), TN_OK);
    assert_int_equal(tn_step(optimizer), TN_OK);
    if (counts) /* each part waits for its gradients, and the update for them: no part for another one */
        assert_true(follows() - before <= 3);
    assert_same(tn_to(loss, tn_cpu()), loss_of(expected, x[rank], step + rank < 2));
    sum = tn_add(x[0], x[1]);
    tn_array *next[] = {tn_subtract(expected[0], tn_multiply(tn_multiply(sum, tn_add(expected[1], 1)), 0.25)),
                        tn_subtract(expected[1], tn_multiply(tn_multiply(sum, expected[0]), 0.25)),
                        tn_subtract(expected[2], tn_multiply(few, 0.25))};
    for (int i = 0; i < 3; i++) {
        assert_on(on, w[i], next[i]);
        expected[i] = next[i];
    }
}

typedef struct training {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_array *w[3], *expected[3];
} training;

static training begin_training(tn_device device)
{
    tn_layer *layer[] = {tn_linear(720, .in = 730, .no_bias = true), tn_linear(720, .in = 730, .no_bias = true),
                         tn_linear(3, .in = 1, .no_bias = true)};
    training t = {.net = tn_sequential(layer[0], layer[1], layer[2])};
    t.optimizer = tn_sgd(t.net, .lr = 0.5);
    for (int i = 0; i < 3; i++) {
        tn_shape shape = tn_shape_of(tn_param(t.net, i));
        t.expected[i] = start_of(i, shape);
        tn_array *own = rank ? tn_zeros(shape, .device = tn_cpu()) : t.expected[i];
        assert_int_equal(tn_assign(tn_param(t.net, i), own), TN_OK);
    }
    assert_int_equal(tn_layer_to(t.net, device), TN_OK);
    assert_int_equal(tn_optimizer_distribute(t.optimizer, comm, .bucket = (int64_t)1 << 21), TN_OK);
    for (int i = 0; i < 3; i++)
        t.w[i] = tn_param(t.net, i);
    return t;
}

static void end_training(const training *t)
{
    tn_optimizer_free(t->optimizer);
    tn_layer_free(t->net);
}

static void test_steps(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) TN_SCOPE { /* which rank 1 has on its own GPU, or on the other one */
        training t = begin_training(tn_cuda(k ? 0 : rank));
        for (int step = 0; step < STEPS; step++)
            make_step(t.optimizer, t.w, t.expected, step, step + k == 0);
        end_training(&t);
    }
}

/* In a loop, whose memory is that of the step before, a part is not put behind another one's transfer because of what
 * its memory was used for: each part waits for its gradients, and the update for them. */
static void test_beside(void **state)
{
    (void)state;
    TN_SCOPE {
        tn_layer *net = tn_sequential(tn_linear(150, .in = 140), tn_relu_layer(), tn_linear(150, .in = 150),
                                      tn_relu_layer(), tn_linear(10, .in = 150));
        assert_int_equal(tn_layer_to(net, tn_cuda(rank)), TN_OK);
        tn_optimizer *optimizer = tn_momentum_sgd(net, .lr = 0.01);
        assert_int_equal(tn_optimizer_distribute(optimizer, comm, .bucket = 90000), TN_OK);
        tn_array *x = here(tn_ones(TN_SHAPE(10, 140))), *t = here(tn_zeros(TN_SHAPE(10), .dtype = TN_INT64));
        assert_int_equal(tn_eval(x), TN_OK);
        assert_int_equal(tn_eval(t), TN_OK);
        for (int step = 0; step < 6; step++)
            TN_SCOPE {
                int before = follows();
                assert_int_equal(tn_backward(tn_softmax_cross_entropy(tn_forward(net, x), t)), TN_OK);
                assert_int_equal(tn_step(optimizer), TN_OK);
                if (step > 0) /* before, parameters are told */
                    assert_true(follows() - before <= 3);
            }
        tn_optimizer_free(optimizer);
        tn_layer_free(net);
    }
}

/* Of a rank whose other one is killed while gradients travel, which shows when anything is waited for. */
static void train_on(void)
{
    TN_SCOPE {
        training t = begin_training(tn_cuda(rank));
        tn_array *x = here(held_by(rank, seed, TN_FLOAT32, tn_shape_of(t.w[0])));
        tn_status status = TN_OK;
        for (int step = 0; step < 4 && status == TN_OK; step++) {
            if (rank == 1 && step == 1)
                raise(SIGKILL);
            status = tn_backward(loss_of(t.w, x, true));
            if (status == TN_OK)
                status = tn_step(t.optimizer);
            if (status == TN_OK)
                status = tn_synchronize(tn_cuda(rank));
        }
        end_training(&t);
    }
}

static int check_values(void)
{
    seed = shared_seed(comm);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_many),
                                       cmocka_unit_test(test_by_kernels), cmocka_unit_test(test_sums_at_once),
                                       cmocka_unit_test(test_steps), cmocka_unit_test(test_beside)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d checks failed\n", failed);
    return failed;
}

static tn_status everybody(void)
{
    float one = 1, sum;
    tn_array *x = here(tn_from_host(&one, (tn_shape){.ndim = 0}, TN_FLOAT32));
    return tn_to_host(tn_comm_all_reduce(comm, x, TN_COMM_SUM), &sum, sizeof sum);
}

/* Until the test has heard what the other rank says. */
static void hang(void)
{
    char mark[4096];
    snprintf(mark, sizeof mark, "%s/%s", getenv("TANSO_TEST_KERNELS"), getenv("MASTER_PORT"));
    while (access(mark, F_OK) != 0)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    remove(mark);
}

static int run_rank(const char *mode)
{
    if (!ranks_begin(&comm, &rank, &size))
        return 1;
    if (strcmp(mode, "values") == 0)
        return check_values();
    if (strcmp(mode, "killed in a step") == 0)
        train_on();
    if (strcmp(mode, "hangs early") == 0)
        (void)!tn_eval(tn_comm_broadcast(comm, here(tn_ones(TN_SHAPE(0))), 0)); /* connects, and transfers nothing */
    if (rank == 1 && strcmp(mode, "hangs early") == 0)
        hang();
    for (int i = 0; i < 4 && tn_ok() && everybody() == TN_OK; i++) {
        if (rank == 1 && i == 1 && strcmp(mode, "ends") == 0)
            return 0;
        if (rank == 1 && i == 1 && strcmp(mode, "killed") == 0)
            raise(SIGKILL);
        if (rank == 1 && i == 1 && strcmp(mode, "hangs") == 0)
            hang();
    }
    printf("%s\n", tn_ok() ? "all is well" : tn_error());
    return 0;
}

/* ---- what they say ---- */

typedef struct run {
    const char *mode, *environment, *words[3]; /* words: that rank 0 says; NULL: no more */
    int both;                                  /* rank 1 says so, too */
} run;

static const run runs[] = {
    {"values", "", {"\n0 checks failed"}, 1},
    {"ends", "", {"rank 1 has ended", "all_reduce(sum) of float32 ()", "fewer calls"}, 0},
    {"killed", "", {"rank 1 has ended", "it was killed"}, 0},
    {"killed in a step", "", {"rank 1 has ended", "all_reduce(sum) of", "it was killed"}, 0},
    {"hangs", "", {"rank 1 does not answer", "TANSO_COMM_TIMEOUT"}, 0},
    {"hangs early", "", {"rank 1 does not answer", "all_reduce(sum) of float32 ()"}, 0}, /* in the first transfer */
    {"dies", "TANSO_FAKE_NCCL_DIES=1", {"rank 1 has ended", "the connecting of GPUs", "it was killed"}, 0},
    {"network", "TANSO_FAKE_NCCL_FAILS=2", {"NCCL", "the network, or another rank, failed: as the test says"}, 1},
    {"version", "TANSO_FAKE_NCCL_VERSION=30102", {"rank 0", "NCCL 3.1.2", "expected one of major version 2"}, 1},
    {"absent", "LD_LIBRARY_PATH=$TANSO_TEST_DRIVER:$TANSO_TEST_KERNELS",
     {"by way of the host", "libnccl.so.2", "all is well"}, 0},
};
enum { RUNS = sizeof runs / sizeof *runs };

/* A port of this machine that nobody has now. */
static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static FILE *begin(const run *r, int number, int port)
{
    char self[2048], command[8192];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = 0;
    snprintf(command, sizeof command,
             "unset CUDA_HOME CUDA_PATH TANSO_TEST_DEVICE; "
             "export LD_LIBRARY_PATH=\"$TANSO_TEST_DRIVER:$TANSO_TEST_NCCL\"; %s WORLD_SIZE=2 RANK=%d "
             "MASTER_ADDR=127.0.0.1 MASTER_PORT=%d TANSO_COMM_TIMEOUT=%d TANSO_TEST_GPUS='%s' "
             "TANSO_EMULATOR_FOLDER=\"$TANSO_TEST_KERNELS\" TANSO_CACHE_DIR=\"$TANSO_TEST_KERNELS\" exec '%s' gpus "
             "2>&1",
             r->environment, number, port, strncmp(r->mode, "hangs", 5) == 0 ? 3 : 60, r->mode,
             self);
    return popen(command, "r");
}

static void end_hanging(int port)
{
    char mark[4096];
    snprintf(mark, sizeof mark, "%s/%d", getenv("TANSO_TEST_KERNELS"), port);
    FILE *file = fopen(mark, "w");
    assert_non_null(file);
    fclose(file);
}

static void test_ranks(void **state)
{
    (void)state;
    FILE *output[RUNS][2];
    int port[RUNS];
    assert_int_equal(system("echo no library >\"$TANSO_TEST_KERNELS/libnccl.so.2\""), 0); /* of "absent" */
    for (int i = 0; i < RUNS; i++) {
        port[i] = free_port();
        for (int r = 0; r < 2; r++)
            assert_non_null(output[i][r] = begin(&runs[i], r, port[i]));
    }
    for (int i = 0; i < RUNS; i++)
        for (int r = 0; r < 2; r++) {
            static char text[1 << 16];
            text[fread(text, 1, sizeof text - 1, output[i][r])] = 0;
            pclose(output[i][r]);
            if (r == 0 && strncmp(runs[i].mode, "hangs", 5) == 0)
                end_hanging(port[i]);
            for (int w = 0; w < 3 && runs[i].words[w] && (r == 0 || runs[i].both); w++)
                if (!strstr(text, runs[i].words[w]))
                    fail_msg("%s: expected rank %d to say '%s', got\n%s", runs[i].mode, r, runs[i].words[w], text);
        }
}

int main(void)
{
    const char *mode = getenv("TANSO_TEST_GPUS");
    if (mode)
        return run_rank(mode);
    if (!getenv("TANSO_TEST_NCCL") || system("command -v g++ >/dev/null && command -v python3 >/dev/null") != 0) {
        print_message("skipped: no NCCL plug-in, or no g++ or python3, by which kernels are emulated\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
