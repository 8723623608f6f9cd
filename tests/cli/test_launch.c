/* SPDX-License-Identifier: MIT */
/* tanso launch: what processes are told, and that they end together, whoever ends. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/wait.h>
#include <time.h>
#include <tanso.h>
#include "cli/command_runner.h"
#include "support/device.h"
#include "support/fresh_folder.h"
#include "support/read.h"

static void write_script(const char *name, const char *text)
{
    FILE *file = fopen(test_path(folder, name), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect_text(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s' in\n%s", part, text);
}

static void pause_briefly(void) { nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL); }

/* Until a file is there with something in it; its first number. Gives up after 20 s. */
static long number_in(const char *name)
{
    for (int i = 0; i < 2000; i++) {
        long number = 0;
        FILE *file = fopen(test_path(folder, name), "r");
        bool got = file && fscanf(file, "%ld", &number) == 1;
        if (file)
            fclose(file);
        if (got)
            return number;
        pause_briefly();
    }
    fail_msg("%s was not written", name);
    return 0;
}

/* Each rank's place, flags that are the program's own, whole lines behind prefixes. */
static void test_ranks(void **state)
{
    (void)state;
    write_script("tell.sh", "printf '%s ' rank $RANK of $WORLD_SIZE, here $LOCAL_RANK of $LOCAL_WORLD_SIZE\n"
                            "sleep 0.1\n"
                            "echo at $MASTER_ADDR, again $TANSO_RESTARTS: \"$@\"\n"
                            "printf 'no newline' >&2\n");
    command_result got = command_run(folder, "launch -n 3 --prefix sh tell.sh --help -n 'two words' --");
    assert_int_equal(got.code, 0);
    for (int r = 0; r < 3; r++) {
        char line[128];
        snprintf(line, sizeof line,
                 "[%d] rank %d of 3, here %d of 3 at 127.0.0.1, again 0: --help -n two words --\n", r, r, r);
        expect_text(got.out, line);
        snprintf(line, sizeof line, "[%d] no newline\n", r);
        expect_text(got.err, line);
    }
    command_free(&got);
    write_script("port.sh", "echo $MASTER_PORT > port$RANK\n");
    got = command_run(folder, "launch -n 2 sh port.sh");
    assert_int_equal(got.code, 0);
    assert_in_range(number_in("port0"), 1, 65535);
    assert_int_equal(number_in("port0"), number_in("port1"));
    command_free(&got);
    got = command_run(folder, "launch --port 4711 sh port.sh");
    assert_int_equal(number_in("port0"), 4711);
    command_free(&got);
}

/* The first failure is told of and is the command's; the others do not go on for their hour. */
static void test_failures(void **state)
{
    (void)state;
    command_result got = command_run(folder, "launch -n 3 sh -c 'test $RANK = 1 && exit 7; exec sleep 3600'");
    assert_int_equal(got.code, 7);
    expect_text(got.err, "rank 1 ended with exit status 7: ending the others");
    command_free(&got);
    got = command_run(folder, "launch -n 2 sh -c 'test $RANK = 1 && kill -9 $$; exec sleep 3600'");
    assert_int_equal(got.code, 128 + SIGKILL);
    expect_text(got.err, "rank 1 was killed by signal 9");
    command_free(&got);
    got = command_run(folder, "launch -n 2 ./nowhere");
    assert_int_equal(got.code, 127);
    expect_text(got.err, "cannot run ./nowhere: No such file");
    command_free(&got);
    got = command_run(folder, "launch");
    assert_int_equal(got.code, 2);
    expect_text(got.err, "expected PROGRAM");
    command_free(&got);
    got = command_run(folder, "launch --port 65536 true");
    assert_int_equal(got.code, 2);
    command_free(&got);
}

/* Ranks that do not find each other do not each train by themselves, into one folder. */
static void test_not_connected(void **state)
{
    (void)state;
    write_script("train.sh", "unset MASTER_ADDR\nexec \"$TANSO_COMMAND\" train digits --epochs 1\n");
    command_result got = command_run(folder, "launch -n 2 sh train.sh");
    assert_int_equal(got.code, 1);
    expect_text(got.err, "of 2 (RANK, WORLD_SIZE), and the others cannot be found");
    assert_false(test_exists(test_path(folder, "runs")));
    command_free(&got);
}

static void test_restarts(void **state)
{
    (void)state;
    write_script("fail.sh", "echo $RANK.$TANSO_RESTARTS\ntest $RANK = 0 || test $TANSO_RESTARTS -ge $1\n");
    command_result got = command_run(folder, "launch -n 2 --restarts 2 sh fail.sh 2");
    assert_int_equal(got.code, 0);
    expect_text(got.err, "beginning again, 1 of 2");
    expect_text(got.err, "beginning again, 2 of 2");
    expect_text(got.out, "1.2");
    command_free(&got);
    got = command_run(folder, "launch -n 2 --restarts 1 sh fail.sh 2");
    assert_int_equal(got.code, 1);
    assert_null(strstr(got.out, "1.2"));
    command_free(&got);
}

/* A signal goes to all, once, and is the end: nothing begins again. */
static void test_signals(void **state)
{
    (void)state;
    write_script("wait.sh", "trap 'echo got $RANK; exit 5' TERM\necho $$ > ready$RANK\n"
                            "while :; do sleep 0.02; done\n");
    pid_t pid = command_start(folder, "launch -n 2 --restarts 3 sh wait.sh");
    number_in("ready0");
    number_in("ready1");
    kill(pid, SIGTERM);
    assert_int_equal(command_wait(pid), 5);
    char *out = test_read(test_path(folder, "out.txt"), NULL), *err = test_read(test_path(folder, "err.txt"), NULL);
    expect_text(out, "got 0");
    expect_text(out, "got 1");
    assert_null(strstr(err, "again"));
    free(out);
    free(err);
}

/* Killed itself, it leaves nobody behind. */
static void test_killed(void **state)
{
    (void)state;
    write_script("stay.sh", "trap '' TERM HUP INT\necho $$ > stays$RANK\nwhile :; do sleep 0.02; done\n");
    pid_t pid = command_start(folder, "launch -n 2 sh stay.sh");
    long ranks[2] = {number_in("stays0"), number_in("stays1")};
    kill(pid, SIGKILL);
    assert_int_equal(command_wait(pid), 128 + SIGKILL);
    for (int r = 0; r < 2; r++) {
        int rounds = 0;
        char path[64], state_letter = 0;
        snprintf(path, sizeof path, "/proc/%ld/stat", ranks[r]);
        for (;; rounds++) { /* one that nobody waits for may stay as a zombie */
            FILE *file = fopen(path, "r");
            bool there = file && fscanf(file, "%*d %*s %c", &state_letter) == 1 && state_letter != 'Z';
            if (file)
                fclose(file);
            if (!there || rounds > 1000)
                break;
            pause_briefly();
        }
        assert_true(rounds <= 1000);
    }
}

/* A run that begins again goes on from its snapshot, but not from that of a run before. */
static void test_training(void **state)
{
    (void)state;
    write_script("train.sh", "\"$TANSO_COMMAND\" train digits --model 'linear:5 relu linear:10' --out run "
                             "--epochs $((TANSO_RESTARTS + $1)) || exit 1\n"
                             "test $TANSO_RESTARTS -gt 0 || kill -9 $$\n");
    command_result got = command_run(folder, "launch --restarts 1 sh train.sh 1");
    if (got.code != 0)
        fail_msg("exit code %d: %s%s", got.code, got.out, got.err);
    expect_text(got.out, "resumed after epoch 1");
    command_free(&got);
    write_script("old.sh", "touch -d '1 hour ago' run/snapshot.safetensors; test $TANSO_RESTARTS -gt 0 || exit 1\n"
                           "exec \"$TANSO_COMMAND\" train digits --model 'linear:5 relu linear:10' --out run "
                           "--epochs 1\n");
    got = command_run(folder, "launch --restarts 1 sh old.sh");
    assert_int_equal(got.code, 0);
    assert_null(strstr(got.out, "resumed"));
    command_free(&got);
}

/* What is said of how to go on is the whole command, by which all of the ranks do. */
static void test_how_to_go_on(void **state)
{
    (void)state;
    write_script("stop.sh", "if test $RANK = 1; then\n"
                            "    (until test -e going/snapshot.safetensors; do sleep 0.02; done; kill -9 $$) &\n"
                            "fi\n"
                            "exec \"$TANSO_COMMAND\" train digits --model linear:10 --batch 120 --out going "
                            "--device cpu --shard 1 --epochs 1000000\n");
    command_result got = command_run(folder, "launch -n 2 sh stop.sh");
    assert_int_equal(got.code, 128 + SIGKILL);
    expect_text(got.err, "To go on from its last snapshot: tanso launch -n 2 tanso train digits --out going --resume "
                         "--device cpu --shard 1\n");
    command_free(&got);
}

/* The same of ranks that mpirun starts, and that have all in parts, one of which is killed once there is a snapshot:
 * the others end, and all go on from it. */
static void test_mpirun(void **state)
{
    (void)state;
    if (!getenv("TANSO_TEST_MPIRUN") || system("command -v mpirun >/dev/null") != 0)
        skip();
    write_script("rank.sh", "if test $TANSO_RESTARTS = 0 && test $OMPI_COMM_WORLD_RANK = 1; then\n"
                            "    (until test -e run/snapshot.safetensors; do sleep 0.02; done; kill -9 $$) &\n"
                            "fi\n"
                            "test $TANSO_RESTARTS = 0 && epochs=1000000 || epochs=2\n"
                            "exec \"$TANSO_COMMAND\" train digits --model linear:10 --batch 120 --out run "
                            "--epochs $epochs --shard 3\n");
    command_result got = command_run(folder, "launch --restarts 1 \"$TANSO_TEST_MPIRUN\" 3 sh rank.sh");
    if (got.code != 0)
        fail_msg("exit code %d: %s%s", got.code, got.out, got.err);
    expect_text(got.err, "exited on signal 9");
    expect_text(got.err, "beginning again, 1 of 1");
    expect_text(got.out, "resumed after");
    command_free(&got);
}

int main(void)
{
    (void)test_device();
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(test_ranks),   TEST(test_failures), TEST(test_restarts),
                                       TEST(test_signals), TEST(test_killed),   TEST(test_training),
                                       TEST(test_not_connected), TEST(test_how_to_go_on), TEST(test_mpirun)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
