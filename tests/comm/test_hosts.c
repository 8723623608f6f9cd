/* SPDX-License-Identifier: MIT */
/*
 * A run over three hosts, which are namespaces (tests/hosts), of which one loses its network, or is killed: the others
 * end, those that it is cut off from say because of whom, and the last snapshot can be gone on from. Skipped where
 * there are no rights to make networks.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/device.h"
#include "support/fresh_folder.h"
#include "support/read.h"

enum { LIMIT = 60 }; /* seconds that a machine may take to start all of it, or to end */

static const char *said(void)
{
    static char *text;
    free(text);
    return text = test_exists(test_path(folder, "out")) ? test_read(test_path(folder, "out"), NULL) : calloc(1, 1);
}

static void become(void)
{
    int out = open(test_path(folder, "out"), O_WRONLY | O_CREAT, 0666);
    if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir(folder) != 0)
        _exit(126);
    setenv("TANSO_COMM_TIMEOUT", "8", 1); /* ranks may compile their first kernels apart */
    execl(getenv("TANSO_TEST_HOSTS"), "hosts", getenv("TANSO_COMMAND"), "train", "digits", "--model", "linear:10",
          "--batch", "120", "--epochs", "1000000", "--out", "run", (char *)NULL);
    _exit(126);
}

static bool has_snapshot(int times, const char *words)
{
    (void)times, (void)words;
    return test_exists(test_path(folder, "run/snapshot.safetensors"));
}

static bool never(int times, const char *words)
{
    (void)times, (void)words;
    return false;
}

static bool has_said(int times, const char *words)
{
    int count = 0;
    for (const char *at = said(); (at = strstr(at, words)); at++)
        count++;
    return count >= times;
}

/* Whether something came about before the job, which is set to 0 then, has ended. */
static bool await(pid_t *job, bool (*there)(int times, const char *words), int times, const char *words)
{
    for (int i = 0; i < LIMIT * 20; i++) {
        bool ended = *job && waitpid(*job, &(int){0}, WNOHANG) == *job;
        if (ended)
            *job = 0;
        if (there(times, words))
            return true;
        if (ended)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return false;
}

static void end(pid_t job)
{
    if (job && kill(job, SIGTERM) == 0)
        waitpid(job, &(int){0}, 0);
}

static void lose_host_2(const char *how, int times, const char *words)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        become();
    if (!await(&pid, has_snapshot, 0, NULL)) {
        end(pid);
        if (strstr(said(), "skipped: no"))
            skip();
        fail_msg("no snapshot: %s", said());
    }
    close(open(test_path(folder, how), O_WRONLY | O_CREAT, 0666));
    bool told = words ? await(&pid, has_said, times, words) : !await(&pid, never, 0, NULL) && !pid;
    end(pid);
    if (!told)
        fail_msg("host 2 %s: expected '%s' %d times: %s", how, words ? words : "an end", times, said());
    char command[4096];
    snprintf(command, sizeof command, "cd '%s' && '%s' train digits --resume --epochs 1 --out run >again 2>&1",
             folder, getenv("TANSO_COMMAND"));
    if (system(command) != 0)
        fail_msg("%s", test_read(test_path(folder, "again"), NULL));
    char *again = test_read(test_path(folder, "again"), NULL);
    assert_non_null(strstr(again, "resumed after epoch"));
    free(again);
}

static void test_cut_off(void **state)
{
    (void)state;
    lose_host_2("cut", 2, "rank 1 does not answer");
}

/* Open MPI sees that by itself, and ends all; whether it has time to say why is not told. */
static void test_killed(void **state)
{
    (void)state;
    lose_host_2("kill", 0, NULL);
}

int main(void)
{
    if (!getenv("TANSO_TEST_HOSTS") || test_elsewhere())
        return TEST_SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_cut_off, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
