/* SPDX-License-Identifier: MIT */
/*
 * tanso launch: a program as several processes of this host, each told by its environment which rank it is. They end
 * together: when one fails, the others are ended, and all may begin again.
 *
 * Each process has a group of its own, so that what a terminal sends, as ^C, comes to this one alone and is handed on
 * once; and ends with this one, however that ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cli/command.h"
#include "cli/launch_output.h"

#define GRACE 10.0 /* seconds that a process has to end when it is asked to */
#define MOST  1024 /* processes */

static const tn__flag flags[] = {
    {"-n", "N", "processes (default: 1)", TN__FLAG_COUNT, .offset = offsetof(tn__options, ranks), .most = MOST},
    {"--restarts", "N", "begin again, up to N times, when a process fails (default: 0)", TN__FLAG_NUMBER,
     .offset = offsetof(tn__options, restarts), .most = INT32_MAX - 1},
    {"--port", "N", "of MASTER_PORT (default: a free one)", TN__FLAG_COUNT, .offset = offsetof(tn__options, port),
     .most = 65535},
    {"--prefix", NULL, "each line of output begins with its rank: \"[1] \"", TN__FLAG_SWITCH,
     .offset = offsetof(tn__options, prefix)},
};

typedef struct process {
    pid_t pid; /* 0: has ended */
    tn__line_reader out, err;
} process;

typedef struct job {
    const tn__options *options;
    int count, alive, signals; /* signals: a descriptor to read them from */
    process *process;
    sigset_t before;           /* the mask that the processes get */
    pid_t self;
    int code;                  /* of the first that failed; 0: none has */
    int asked;                 /* a signal that was to end all of it */
    double ending;             /* since when the others have been asked to end; 0: they have not */
    bool killed;
} job;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- starting ---- */

/* A port of this host that nobody has now; 0: none. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        port = ntohs(address.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

static bool set_number(const char *name, long number)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", number);
    return setenv(name, text, 1) == 0;
}

/* What all processes are told. */
static int set_environment(const job *j, long restarts)
{
    long port = j->options->port ? j->options->port : free_port();
    if (port < 1)
        return tn__cli_failure("launch", "no port is free: %s", strerror(errno));
    bool done = set_number("WORLD_SIZE", j->count) && set_number("LOCAL_WORLD_SIZE", j->count) &&
                set_number("MASTER_PORT", port) && set_number("TANSO_RESTARTS", restarts) &&
                setenv("MASTER_ADDR", "127.0.0.1", 1) == 0 &&
                (restarts || set_number("TANSO_LAUNCHED", (long)time(NULL)));
    return done ? TN__EXIT_DONE : tn__cli_failure("launch", "out of memory");
}

/* In the new process; does not return. */
static void become(const job *j, int rank, int out, int err)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != j->self)
        _exit(TN__EXIT_FAILED); /* the launcher has ended meanwhile */
    sigprocmask(SIG_SETMASK, &j->before, NULL);
    bool done = set_number("RANK", rank) && set_number("LOCAL_RANK", rank) && freopen("/dev/null", "r", stdin) &&
                (out < 0 || dup2(out, STDOUT_FILENO) >= 0) && (err < 0 || dup2(err, STDERR_FILENO) >= 0);
    if (done)
        execvp(j->options->arguments[0], j->options->arguments);
    int error = errno, code = error == ENOENT ? 127 : 126;
    if (rank != 0) /* the first one has most likely the same to say, and is to come to it before it is ended */
        nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    tn__cli_failure("launch", "cannot run %s: %s", j->options->arguments[0], strerror(error));
    _exit(code);
}

static bool start(job *j, int rank)
{
    process *p = &j->process[rank];
    int out = -1, err = -1;
    bool piped = !j->options->prefix ||
                 (tn__line_reader_open(&p->out, rank, STDOUT_FILENO, &out) &&
                  tn__line_reader_open(&p->err, rank, STDERR_FILENO, &err));
    fflush(NULL);
    p->pid = piped ? fork() : -1;
    if (p->pid == 0)
        become(j, rank, out, err);
    if (out >= 0)
        close(out);
    if (err >= 0)
        close(err);
    if (p->pid > 0) {
        setpgid(p->pid, p->pid); /* whoever of both comes first */
        j->alive++;
        return true;
    }
    j->code = tn__cli_failure("launch", "cannot start rank %d: %s", rank, strerror(errno));
    p->pid = 0;
    return false;
}

/* ---- ending ---- */

static void signal_all(const job *j, int number)
{
    for (int r = 0; r < j->count; r++)
        if (j->process[r].pid)
            kill(-j->process[r].pid, number);
}

static void end_others(job *j)
{
    if (j->ending || !j->alive)
        return;
    j->ending = seconds();
    signal_all(j, SIGTERM);
    signal_all(j, SIGCONT); /* one that is stopped hears it, too */
}

/* What became of a rank; the first that fails is told of, as others fail because of it. */
static void note_end(job *j, int rank, int status)
{
    j->process[rank].pid = 0;
    j->alive--;
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int code = number ? 128 + number : WEXITSTATUS(status);
    if (code == 0 || j->code)
        return;
    j->code = code;
    if (j->asked)
        return;
    if (number)
        tn__cli_failure("launch", "rank %d was killed by signal %d (%s)%s", rank, number, strsignal(number),
                        j->alive ? ": ending the others" : "");
    else
        tn__cli_failure("launch", "rank %d ended with exit status %d%s", rank, code,
                        j->alive ? ": ending the others" : "");
    end_others(j);
}

static void collect_ended(job *j)
{
    for (int r = 0; r < j->count; r++) {
        int status;
        if (j->process[r].pid && waitpid(j->process[r].pid, &status, WNOHANG) == j->process[r].pid)
            note_end(j, r, status);
    }
}

static void take_signals(job *j)
{
    struct signalfd_siginfo info;
    while (read(j->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGCHLD)
            continue;
        if (number == SIGINT || number == SIGTERM || number == SIGHUP)
            j->asked = number;
        signal_all(j, number);
    }
}

/* ---- a round ---- */

/* Waits for a signal, output, or, where processes were asked to end, for that to have taken too long. */
static void wait_for_more(job *j, struct pollfd *poll_at)
{
    int count = 0, wait = -1;
    poll_at[count++] = (struct pollfd){.fd = j->signals, .events = POLLIN};
    for (int r = 0; r < j->count; r++) {
        tn__line_reader *both[] = {&j->process[r].out, &j->process[r].err};
        for (int k = 0; k < 2; k++)
            if (tn__line_reader_is_open(both[k]))
                poll_at[count++] = (struct pollfd){.fd = both[k]->fd, .events = POLLIN};
    }
    if (j->ending && !j->killed) {
        double left = j->ending + GRACE - seconds();
        wait = left > 0 ? (int)(left * 1000) + 1 : 0;
        if (left <= 0) {
            signal_all(j, SIGKILL);
            j->killed = true;
        }
    }
    if (poll(poll_at, (nfds_t)count, wait) < 0)
        return;
    take_signals(j);
    for (int r = 0; r < j->count; r++) {
        tn__line_reader_take(&j->process[r].out);
        tn__line_reader_take(&j->process[r].err);
    }
}

/* All processes, from their start to the end of the last. */
static int run_round(job *j, long restarts)
{
    j->code = set_environment(j, restarts);
    j->ending = 0;
    j->killed = false;
    struct pollfd *poll_at = calloc(2 * (size_t)j->count + 1, sizeof *poll_at);
    if (!poll_at)
        j->code = tn__cli_failure("launch", "out of memory");
    for (int r = 0; r < j->count && j->code == 0; r++)
        if (!start(j, r))
            end_others(j);
    while (j->alive) {
        wait_for_more(j, poll_at);
        collect_ended(j);
    }
    for (int r = 0; r < j->count; r++) {
        tn__line_reader_close(&j->process[r].out);
        tn__line_reader_close(&j->process[r].err);
    }
    free(poll_at);
    return j->code;
}

/* ---- the command ---- */

static bool hold_signals(job *j)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    sigset_t held;
    sigemptyset(&held);
    for (int i = 0; i < TN__COUNT_OF(numbers); i++)
        sigaddset(&held, numbers[i]);
    sigprocmask(SIG_BLOCK, &held, &j->before);
    j->signals = signalfd(-1, &held, SFD_NONBLOCK | SFD_CLOEXEC);
    return j->signals >= 0;
}

static int run(const tn__options *options)
{
    long count = options->ranks ? options->ranks : 1;
    job j = {.options = options, .count = (int)count, .self = getpid()};
    j.process = calloc((size_t)count, sizeof *j.process);
    if (!j.process || !hold_signals(&j)) {
        free(j.process);
        return tn__cli_failure("launch", "cannot begin: %s", strerror(errno));
    }
    options->arguments[options->count] = NULL; /* behind flags that were read it may be a word that was moved */
    int code = run_round(&j, 0);
    for (uint64_t again = 1; code && !j.asked && again <= options->restarts; again++) {
        fprintf(stderr, "tanso launch: beginning again, %llu of %llu\n", (unsigned long long)again,
                (unsigned long long)options->restarts);
        code = run_round(&j, (long)again);
    }
    close(j.signals);
    sigprocmask(SIG_SETMASK, &j.before, NULL);
    free(j.process);
    return code;
}

const tn__command tn__command_launch = {
    .name = "launch",
    .arguments = "PROGRAM [ARGUMENT]...",
    .summary = "start a program as several processes of this host",
    .text = "Starts a program N times, each as one rank: RANK and LOCAL_RANK (from 0), WORLD_SIZE and\n"
            "LOCAL_WORLD_SIZE (N), MASTER_ADDR and MASTER_PORT tell it which, as schedulers do. Flags behind\n"
            "PROGRAM are its own. Signals go to all processes. When one fails, the others are ended, and its\n"
            "rank and exit status, which becomes the command's, are told; with --restarts all of them begin\n"
            "again, TANSO_RESTARTS telling how often they have: 'tanso train' then goes on from its last\n"
            "snapshot. Programs that use communicators meet there, and what is on GPUs goes by NCCL. For\n"
            "much between processes without GPUs, or on several hosts, use mpirun, which this command may\n"
            "start again, too.",
    .examples = "  tanso launch -n 2 tanso train mnist\n"
                "  tanso launch -n 2 --prefix ./program --its-own-flag\n"
                "  tanso launch --restarts 3 mpirun -n 4 tanso train mnist\n",
    .flags = flags,
    .flag_count = TN__COUNT_OF(flags),
    .least = 1,
    .most = INT32_MAX,
    .starts_program = true,
    .run = run,
};
