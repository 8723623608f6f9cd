/* SPDX-License-Identifier: MIT */
/*
 * Processes that meet by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and those that do not: this program starts
 * itself as ranks, and looks at what they say.
 */
#include "comm/ranks.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static int run_rank(void)
{
    puts("here");
    fflush(stdout);
    const tn_comm *comm = tn_comm_world();
    if (tn_comm_status(comm) == TN_OK)
        printf("rank %d of %d, local %d of %d\n", tn_comm_rank(comm), tn_comm_size(comm), tn_comm_local_rank(comm),
               tn_comm_local_size(comm));
    else
        printf("%s\n", tn_error());
    return 0;
}

/* A socket at a port of this machine that nobody has. */
static int take_port(int *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static FILE *begin(int rank, int size, int port, int seconds)
{
    char self[2048], command[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = 0;
    snprintf(command, sizeof command,
             "RANK=%d WORLD_SIZE=%d MASTER_ADDR=127.0.0.1 MASTER_PORT=%d TANSO_COMM_TIMEOUT=%d TANSO_TEST_MEETING=1 "
             "exec '%s' meeting 2>&1",
             rank, size, port, seconds, self);
    return popen(command, "r");
}

/* Until a rank has begun, however long a busy machine takes for that: from there on it looks for the others. */
static void await(FILE *output)
{
    char line[80];
    assert_non_null(fgets(line, sizeof line, output));
    assert_string_equal(line, "here\n");
}

static void expect(FILE *output, const char *words)
{
    static char text[1 << 14];
    text[fread(text, 1, sizeof text - 1, output)] = 0;
    pclose(output);
    if (!strstr(text, words))
        fail_msg("expected '%s', got\n%s", words, text);
}

/* Whoever comes by and does not know the words is sent away. */
static void knock(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    char words[4096] = "GET / HTTP/1.0\r\n\r\n";
    for (int i = 0; i < 1000; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0) {
            assert_true(send(fd, words, sizeof words, MSG_NOSIGNAL) > 0);
            close(fd);
            return;
        }
        close(fd);
        usleep(10000);
    }
    fail_msg("nobody listens at port %d", port);
}

static void test_meet(void **state)
{
    (void)state;
    int port;
    close(take_port(&port));
    FILE *first = begin(0, 3, port, 60);
    knock(port);
    FILE *second = begin(1, 3, port, 60), *third = begin(2, 3, port, 60);
    expect(first, "rank 0 of 3, local 0 of 3");
    expect(second, "rank 1 of 3, local 1 of 3");
    expect(third, "rank 2 of 3, local 2 of 3");
}

static void test_do_not_meet(void **state)
{
    (void)state;
    int port, other;
    close(take_port(&port));
    FILE *third = begin(2, 3, port, 60);
    await(third);
    FILE *first = begin(0, 3, port, 3); /* which waits so long for the two */
    close(take_port(&other));
    FILE *alone = begin(1, 2, other, 1);
    expect(first, "these ranks have not come to 127.0.0.1");
    expect(third, "not all ranks have come");
    expect(alone, "rank 0 is not at 127.0.0.1");

    close(take_port(&port));
    first = begin(0, 2, port, 60), third = begin(1, 3, port, 60);
    expect(first, "rank 1 has WORLD_SIZE=3, rank 0 2");
    expect(third, "has sent this one away");

    int taken = take_port(&port);
    assert_int_equal(listen(taken, 1), 0);
    expect(begin(0, 2, port, 5), "rank 0 cannot listen at 127.0.0.1");
    close(taken);
    expect(begin(3, 2, port, 5), "expected a rank below that");
}

int main(void)
{
    if (getenv("TANSO_TEST_MEETING"))
        return run_rank();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_meet), cmocka_unit_test(test_do_not_meet)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
