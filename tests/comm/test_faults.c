/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong among several ranks: one that ends early, fails, hangs, is killed, or makes another call than the
 * others. This program starts itself as three ranks for each, all at once, and looks at what they say: each of the
 * others names the one, and nobody waits for ever.
 */
#include "comm/ranks.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

/* ---- the ranks ---- */

static tn_status everybody(tn_comm *comm)
{
    float sum;
    return tn_to_host(tn_comm_all_reduce(comm, tn_scalar(1.0), TN_COMM_SUM), &sum, sizeof sum);
}

/* What has gone wrong is said by the library at the end. Ranks end with 0, as far as they end by themselves: while
 * mpirun ends others because of one, it sometimes waits for ever. */
static void run_rank(const char *fault)
{
    tn_comm *comm = tn_comm_world();
    int rank = tn_comm_rank(comm);
    if (everybody(comm) != TN_OK || rank != 1)
        for (int i = 0; i < 2 && tn_comm_status(comm) == TN_OK; i++)
            (void)!everybody(comm);
    else if (strcmp(fault, "killed") == 0)
        raise(SIGKILL);
    else if (strcmp(fault, "hangs") == 0)
        nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    else if (strcmp(fault, "fails") == 0)
        tn_comm_all_reduce(comm, tn_add(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(3))), TN_COMM_SUM);
    else if (strcmp(fault, "calls") == 0)
        tn_comm_all_gather(comm, tn_scalar(1.0));
    else if (strcmp(fault, "shape") == 0)
        tn_comm_all_reduce(comm, tn_ones(TN_SHAPE(2)), TN_COMM_SUM);
    else if (strcmp(fault, "dtype") == 0)
        tn_comm_all_reduce(comm, tn_scalar(1.0, .dtype = TN_FLOAT64), TN_COMM_SUM);
}

/* ---- what they say ---- */

typedef struct fault {
    const char *name, *check;
    int times;             /* how many ranks say it */
    const char *words[3];  /* NULL: no more */
} fault;

static const fault faults[] = {
    {"ends", "0", 2, {"rank 1 has ended", "all_reduce(sum) of float32 ()", "fewer calls"}},
    {"fails", "0", 2, {"rank 1 has ended, or failed", "(2,)", "(3,)"}},
    {"hangs", "0", 2, {"rank 1 does not answer", "TANSO_COMM_TIMEOUT", "waits in all_reduce"}},
    {"killed", "0", 1, {"rank 1", "signal 9"}},
    {"calls", "1", 3, {"rank 0 calls all_reduce(sum) of float32 ()", "rank 1 all_gather of float32 ()", "faults.c:"}},
    {"shape", "1", 3, {"rank 0 calls all_reduce(sum) of float32 ()", "rank 1 all_reduce(sum) of float32 (2,)"}},
    {"dtype", "1", 3, {"rank 0 calls all_reduce(sum) of float32 ()", "rank 1 all_reduce(sum) of float64 ()"}},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static int occurrences(const char *text, const char *words)
{
    int count = 0;
    for (; (text = strstr(text, words)); text++)
        count++;
    return count;
}

static FILE *begin(const fault *f)
{
    char self[2048], command[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = 0;
    snprintf(command, sizeof command,
             "TANSO_TEST_MPIRUN_SECONDS=12 TANSO_TEST_FAULT=%s TANSO_COMM_CHECK=%s TANSO_COMM_TIMEOUT=1 '%s' 3 '%s' "
             "faults 2>&1",
             f->name, f->check, getenv("TANSO_TEST_MPIRUN"), self);
    return popen(command, "r");
}

static void test_faults(void **state)
{
    (void)state;
    FILE *output[FAULTS];
    for (int i = 0; i < FAULTS; i++)
        assert_non_null(output[i] = begin(&faults[i]));
    for (int i = 0; i < FAULTS; i++) {
        const fault *f = &faults[i];
        static char text[1 << 16];
        size_t length = fread(text, 1, sizeof text - 1, output[i]);
        text[length] = 0;
        pclose(output[i]);
        for (int w = 0; w < 3 && f->words[w]; w++) {
            if (occurrences(text, f->words[w]) < f->times)
                fail_msg("a rank that %s: expected '%s' %d times, got\n%s", f->name, f->words[w], f->times, text);
        }
    }
}

/* A process that was launched as one of several, without the plug-in: each call says what is missing. */
static void test_without_plugin(void **state)
{
    (void)state;
    setenv("TANSO_PLUGIN_DIR", "/", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    for (int i = 0; i < 3; i++) {
        tn_comm *comm = tn_comm_world();
        assert_int_equal(tn_comm_status(comm), TN_ERR_UNSUPPORTED);
        assert_non_null(strstr(tn_error(), "libtanso-mpi.so"));
        assert_non_null(strstr(tn_error(), "libopenmpi-dev"));
        TN_SCOPE assert_true(tn_is_error(tn_comm_all_reduce(comm, tn_scalar(1.0), TN_COMM_SUM)));
        assert_int_equal(tn_comm_barrier(comm), TN_ERR_UNSUPPORTED);
        tn_clear_error();
    }
    unsetenv("OMPI_COMM_WORLD_SIZE");
    assert_int_equal(tn_comm_size(tn_comm_world()), 1);
    assert_int_equal(tn_comm_barrier(tn_comm_world()), TN_OK);
}

int main(void)
{
    const char *fault = getenv("TANSO_TEST_FAULT");
    if (fault) {
        run_rank(fault);
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_plugin)},
                            with_ranks[] = {cmocka_unit_test(test_faults)};
    if (getenv("TANSO_TEST_MPIRUN") && system("command -v mpirun >/dev/null") == 0) {
        if (cmocka_run_group_tests(with_ranks, NULL, NULL))
            return 1;
    } else {
        print_message("without ranks: no mpirun (package openmpi-bin), or no MPI plug-in (libopenmpi-dev)\n");
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
