/* SPDX-License-Identifier: MIT */
/*
 * What goes wrong among several ranks: one that ends early, fails, hangs, is killed, or makes another call than the
 * others. This program starts itself as three ranks for each, all at once, and looks at what they say: each of the
 * others names the one, and nobody waits for ever.
 */
#include "comm/ranks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
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
    bool all = everybody(comm) == TN_OK;
    setenv("TANSO_COMM_TIMEOUT", "1", 1); /* once all have started, which may take a busy machine long */
    if (!all || rank != 1)
        for (int i = 0; i < 2 && tn_comm_status(comm) == TN_OK; i++)
            (void)!everybody(comm);
    else if (strcmp(fault, "killed") == 0)
        raise(SIGKILL);
    else if (strcmp(fault, "hangs") == 0)
        nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    else if (strcmp(fault, "fails") == 0)
        tn_comm_all_reduce(comm, tn_add(tn_ones(TN_SHAPE(2)), tn_ones(TN_SHAPE(3))), TN_COMM_SUM);
    else if (strcmp(fault, "starves") == 0) {
        if (tn_memory_limit(test_device(), 1 << 16) == TN_OK) /* what is computed in the call does not fit */
            tn_comm_all_reduce(comm, tn_add(tn_ones(TN_SHAPE(1 << 20), .device = test_device()), 1), TN_COMM_SUM);
    } else if (strcmp(fault, "calls") == 0)
        tn_comm_all_gather(comm, tn_scalar(1.0));
    else if (strcmp(fault, "shape") == 0)
        tn_comm_all_reduce(comm, tn_ones(TN_SHAPE(2)), TN_COMM_SUM);
    else if (strcmp(fault, "dtype") == 0)
        tn_comm_all_reduce(comm, tn_scalar(1.0, .dtype = TN_FLOAT64), TN_COMM_SUM);
}

/* ---- what they say ---- */

typedef struct fault {
    const char *name, *check;
    int times;            /* how many ranks say it */
    const char *once;     /* what one of them says at least, or NULL */
    const char *words[3]; /* NULL: no more */
} fault;

static const fault faults[] = {
    {"ends", "0", 2, NULL, {"rank 1 has ended", "all_reduce(sum) of float32 ()", "fewer calls"}},
    {"fails", "0", 2, NULL, {"rank 1 has ended, or failed", "(2,)", "(3,)"}},
    {"hangs", "0", 2, "waits in all_reduce", {"rank 1 does not answer", "TANSO_COMM_TIMEOUT"}},
    {"killed", "0", 1, NULL, {"rank 1", "signal 9"}},
    {"starves", "0", 2, NULL, {"rank 1 has ended, or failed", "all_reduce(sum) of float32 ()", "memory"}},
    {"calls", "1", 3, NULL,
     {"rank 0 calls all_reduce(sum) of float32 ()", "rank 1 all_gather of float32 ()", "faults.c:"}},
    {"shape", "1", 3, NULL, {"rank 0 calls all_reduce(sum) of float32 ()", "rank 1 all_reduce(sum) of float32 (2,)"}},
    {"dtype", "1", 3, NULL, {"rank 0 calls all_reduce(sum) of float32 ()", "rank 1 all_reduce(sum) of float64 ()"}},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static int occurrences(const char *text, const char *words)
{
    int count = 0;
    for (; (text = strstr(text, words)); text++)
        count++;
    return count;
}

/* A job under way, with what it has said so far. */
typedef struct job {
    pid_t pid;
    int output;
    size_t length;
    char text[1 << 16];
} job;

static void become(const fault *f, int output)
{
    char self[2048];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0 && dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) {
        self[length] = 0;
        setenv("TANSO_TEST_MPIRUN_SECONDS", "80", 1);
        setenv("TANSO_TEST_FAULT", f->name, 1);
        setenv("TANSO_COMM_CHECK", f->check, 1);
        setenv("TANSO_COMM_TIMEOUT", "60", 1);
        execl(getenv("TANSO_TEST_MPIRUN"), "mpirun", "3", self, "faults", (char *)NULL);
    }
    _exit(126);
}

static void begin(const fault *f, job *j)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    j->pid = fork();
    assert_true(j->pid >= 0);
    if (j->pid == 0)
        become(f, ends[1]);
    close(ends[1]);
    j->output = ends[0];
}

/* The words that it has not said as often as it will; NULL: it has said all. */
static const char *missing(const fault *f, const job *j)
{
    for (int w = 0; w < 3 && f->words[w]; w++)
        if (occurrences(j->text, f->words[w]) < f->times)
            return f->words[w];
    return f->once && !strstr(j->text, f->once) ? f->once : NULL;
}

/* Until it has said what it is to say: mpirun sometimes goes on for ever while it ends what is left. */
static void test_faults(void **state)
{
    (void)state;
    static job jobs[FAULTS];
    for (int i = 0; i < FAULTS; i++)
        begin(&faults[i], &jobs[i]);
    for (int i = 0; i < FAULTS; i++) {
        job *j = &jobs[i];
        ssize_t got = 1;
        while (missing(&faults[i], j) && got > 0 && j->length < sizeof j->text - 1) {
            got = read(j->output, j->text + j->length, sizeof j->text - 1 - j->length);
            j->length += got > 0 ? (size_t)got : 0;
        }
        int status;
        kill(j->pid, SIGTERM);
        close(j->output);
        waitpid(j->pid, &status, 0);
    }
    for (int i = 0; i < FAULTS; i++)
        if (missing(&faults[i], &jobs[i]))
            fail_msg("a rank that %s: expected '%s' of %d ranks, got\n%s", faults[i].name,
                     missing(&faults[i], &jobs[i]), faults[i].times, jobs[i].text);
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
