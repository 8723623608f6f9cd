/* SPDX-License-Identifier: MIT */
/* Finding and running the system's C compiler. */
#include "backends/cpu/jit/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tanso/device.h>
#include <unistd.h>

#include "backends/cpu/base/processor.h"
#include "core/error.h"
#include "tn_build_config.h"

extern char **environ;

/*
 * The flags give the same bits as the reference evaluator: no contraction, no reassociation, wrap-around integers.
 * Vectors have the full register width: gcc's default of half of it made exp(-x^2 / 2) 1.3 times and sigmoid 1.5 times
 * as slow on an AVX-512 Xeon. -Bsymbolic: a text's own functions take precedence over functions of the process with the
 * same name (a user's may be called `remove`).
 */
static const char *const flags[] = {
#if defined(__x86_64__)
    "-mprefer-vector-width=512",
#endif
    "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-std=gnu11",
    "-fPIC",         "-shared",           "-Wl,-Bsymbolic",  "-w",                 "-pipe",   "-x",
    "c",
};
#define FLAG_COUNT  (sizeof(flags) / sizeof(*flags))

/*
 * -march=native is the real processor; this process may run on a lesser one, as under valgrind, which emulates a
 * processor without AVX-512. Writes the flags that switch off the absent features, and returns their number.
 */
enum { MOST_ABSENT = 8 };
static size_t absent_features(const char *absent[MOST_ABSENT])
{
    size_t count = 0;
#if defined(__x86_64__)
#define WITHOUT(feature)                   \
    if (!__builtin_cpu_supports(#feature)) \
        absent[count++] = "-mno-" #feature
    WITHOUT(avx512f);
    WITHOUT(gfni);
    WITHOUT(fma);
    WITHOUT(avx2);
    WITHOUT(avx);
    WITHOUT(bmi2);
#undef WITHOUT
#else
    (void)absent;
#endif
    return count;
}

/*
 * The optimizations of gcc that are worth their compile time in these kernels: -O3's vectorizer; moving loads of
 * extents and strides, and invariant conditions, out of loops; and unrolling loops over a few vectors of lanes, which
 * then stay in registers (a sum of float64 takes 0.4 of its time; compiling, a tenth more). Kernels run as fast as with
 * -O3 and compile in a third of the time (0.6 s of one core instead of 1.8 for 80 kB). Clang does not know these flags
 * and is run again with its own.
 */
static const char *const levels[][7] = {
    {"-O1", "-ftree-pre", "-fstrict-aliasing", "-ftree-loop-vectorize", "-fvect-cost-model=dynamic",
     "-funswitch-loops", "-fpeel-loops"},
    {"-O3"},
};
#define LEVEL_COUNT (sizeof(levels) / sizeof(*levels))
#define LEVEL_FLAGS (sizeof(levels[0]) / sizeof(*levels[0]))

static bool executable_file(const char *path, struct stat *info)
{
    return stat(path, info) == 0 && S_ISREG(info->st_mode) && access(path, X_OK) == 0;
}

/* Joins a folder and a name to an absolute path: compilers do not run in this process's working folder. */
static bool join(char path[PATH_MAX], const char *folder, int length, const char *name)
{
    char here[PATH_MAX] = "";
    if (*folder != '/' && getcwd(here, sizeof here) == NULL)
        return false;
    return snprintf(path, PATH_MAX, "%s%s%.*s%s%s", here, *here ? "/" : "", length, folder, length ? "/" : "", name) <
           PATH_MAX;
}

/* Resolves a program's name as execvp would. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    struct stat info;
    if (strchr(name, '/'))
        return join(path, name, 0, name) && executable_file(path, &info);
    const char *folders = getenv("PATH");
    if (folders == NULL)
        folders = "/usr/local/bin:/usr/bin:/bin";
    while (*folders) {
        int length = (int)strcspn(folders, ":");
        if (length > 0 && join(path, folders, length, name) && executable_file(path, &info))
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

tn_status tn__compiler_find(tn__compiler *compiler)
{
    const char *chosen = getenv("TANSO_CC");
    if (chosen && *chosen) {
        if (find_program(chosen, compiler->path))
            return TN_OK;
        return tn__fail(TN_ERR_COMPILE, "kernels",
                        "no C compiler: TANSO_CC names \"%s\", which is not an executable file; point TANSO_CC at a C "
                        "compiler or unset it",
                        chosen);
    }
    static const char *const names[] = {
#ifdef TN_BUILD_CC
        TN_BUILD_CC,
#endif
        "cc", "gcc", "clang"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (find_program(names[i], compiler->path))
            return TN_OK;
    return tn__fail(
        TN_ERR_COMPILE, "kernels",
        "no C compiler found: neither cc, gcc nor clang is on PATH; install one (package gcc) or name one in "
        "TANSO_CC");
}

void tn__compiler_identity(const tn__compiler *compiler, tn__text *text)
{
    /* The binary's size and time stand for its version: asking it would cost a process at every start. */
    char real[PATH_MAX];
    struct stat info = {0};
    const char *path = realpath(compiler->path, real) ? real : compiler->path;
    if (stat(path, &info) != 0)
        info.st_size = 0;
    tn__text_addf(text, "%s %s %lld %lld.%09ld\n", compiler->path, path, (long long)info.st_size,
                  (long long)info.st_mtim.tv_sec, (long)info.st_mtim.tv_nsec);
    for (size_t i = 0; i < FLAG_COUNT; i++)
        tn__text_addf(text, "%s ", flags[i]);
    for (size_t i = 0; i < LEVEL_COUNT * LEVEL_FLAGS; i++)
        tn__text_addf(text, "%s ",
                      levels[i / LEVEL_FLAGS][i % LEVEL_FLAGS] ? levels[i / LEVEL_FLAGS][i % LEVEL_FLAGS] : "");
    tn__processor_identity(text);
}

/* The first lines of the compiler's output, for a message. */
static void first_lines(int folder, const char *log, char *lines, size_t size)
{
    lines[0] = 0;
    int descriptor = openat(folder, log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
    if (file == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    size_t length = fread(lines, 1, size - 1, file);
    fclose(file);
    lines[length] = 0;
    while (length > 0 && (lines[length - 1] == '\n' || lines[length - 1] == ' '))
        lines[--length] = 0;
}

/* ---- the compiler's processes ---- */

/* The watch is a shell that reads from a pipe whose write end only this process has: when the process ends, by whatever
 * signal, the shell ends its process group, which contains the compilers. */
void tn__compiler_watch_begin(tn__compiler_watch *watch)
{
    static char *const argument[] = {"sh", "-c", "read x; kill -KILL 0", NULL};
    int ends[2];
    *watch = (tn__compiler_watch){.hold = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    bool made = posix_spawn_file_actions_init(&actions) == 0;
    bool ready = made && posix_spawnattr_init(&attributes) == 0;
    bool started = ready && posix_spawn_file_actions_adddup2(&actions, ends[0], 0) == 0 &&
                   posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) == 0 &&
                   posix_spawn_file_actions_adddup2(&actions, 1, 2) == 0 &&
                   posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP) == 0 &&
                   posix_spawn(&watch->group, "/bin/sh", &actions, &attributes, argument, environ) == 0;
    if (ready)
        posix_spawnattr_destroy(&attributes);
    if (made)
        posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    if (started)
        watch->hold = ends[1];
    else
        close(ends[1]);
    watch->group = started ? watch->group : 0;
}

void tn__compiler_watch_end(tn__compiler_watch *watch)
{
    if (!watch->group)
        return;
    kill(-watch->group, SIGKILL); /* a child forked meanwhile may keep the write end open */
    close(watch->hold);
    while (waitpid(watch->group, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* 0, or why it could not be started. */
static int spawn(tn__compiling *c, char *const *argument)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    if (c->watch->group) { /* the group may be gone already */
        posix_spawnattr_setpgroup(&attributes, c->watch->group);
        code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    }
    if (code == 0)
        code = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (code == 0)
        code = posix_spawn_file_actions_addfchdir_np(&actions, c->folder);
    if (code == 0)
        code = posix_spawn_file_actions_addopen(&actions, 1, c->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (code == 0)
        code = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (code == 0)
        code = posix_spawn(&c->child, c->compiler->path, &actions, &attributes, argument, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static int start_level(tn__compiling *c)
{
    const char *argument[FLAG_COUNT + MOST_ABSENT + LEVEL_FLAGS + 8];
    size_t count = 0;
    argument[count++] = c->compiler->path;
    for (size_t i = 0; i < LEVEL_FLAGS && levels[c->level][i]; i++)
        argument[count++] = levels[c->level][i];
    for (size_t i = 0; i < FLAG_COUNT; i++)
        argument[count++] = flags[i];
    count += absent_features(argument + count);
    argument[count++] = c->source;
    argument[count++] = "-o";
    argument[count++] = c->object;
    argument[count++] = "-lm";
    argument[count] = NULL;
    c->child = 0;
    return spawn(c, (char *const *)argument);
}

static tn_status cannot_run(const tn__compiling *c, int code)
{
    return tn__fail(TN_ERR_COMPILE, "kernels", "cannot run the C compiler %s: %s; name another in TANSO_CC",
                    c->compiler->path, strerror(code));
}

tn_status tn__compiler_start(tn__compiling *c)
{
    c->level = 0;
    int code = start_level(c);
    return code == 0 ? TN_OK : cannot_run(c, code);
}

tn_status tn__compiler_look(tn__compiling *c, bool wait, bool *done)
{
    int status = 0;
    pid_t waited;
    *done = false;
    while ((waited = waitpid(c->child, &status, wait ? 0 : WNOHANG)) < 0 && errno == EINTR)
        ;
    if (waited == 0)
        return TN_OK;
    c->child = 0;
    *done = true;
    /* if the program ignores SIGCHLD there is no exit status: then the output decides */
    if (waited < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return TN_OK;
    if (++c->level < (int)LEVEL_COUNT) {
        *done = false;
        int code = start_level(c);
        *done = code != 0;
        return code == 0 ? TN_OK : cannot_run(c, code);
    }
    char lines[1200];
    first_lines(c->folder, c->log, lines, sizeof(lines));
    return tn__fail(TN_ERR_COMPILE, "kernels", "the C compiler %s failed (TANSO_CC names another): %s",
                    c->compiler->path, *lines ? lines : "it said nothing");
}

char *tn_kernel_compiler(void)
{
    tn__compiler compiler;
    if (tn__compiler_find(&compiler) != TN_OK)
        return NULL;
    char *path = tn__strdup(compiler.path);
    if (!path)
        tn__fail_memory("kernel_compiler", strlen(compiler.path));
    return path;
}
