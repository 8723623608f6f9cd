/* SPDX-License-Identifier: MIT */
/* Finding and running the system's C compiler. */
#include "backends/cpu/compiler.h"

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

#include "backends/cpu/processor.h"
#include "core/error.h"
#include "tn_build_config.h"

extern char **environ;

/*
 * The same bits as the reference evaluator's: no contraction, no reassociation, wrap-around integers. Whole vector
 * registers: gcc's own choice of half of them made exp(-x^2 / 2) 1.3 times and sigmoid 1.5 times as slow on an AVX-512
 * Xeon. A text's own functions come first, whatever the process has by their names (a user's may be called `remove`).
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
 * The compiler takes the machine as it is; this process may see less of it, as under valgrind, which runs the process
 * on a processor of its own without AVX-512. Writes the flags that take away what is not there, and returns how many.
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
 * What of gcc's optimizations pays for itself in these kernels: -O3's vectoriser, moving loads of extents and strides,
 * and choices by what does not vary, out of loops, and writing out loops over a few vectors of lanes, which stay in
 * registers then (a sum of float64 takes 0.4 of its time; compiling, a tenth more). Kernels run as fast as with -O3 and
 * compile in a third of the time (0.6 s of one core instead of 1.8 for 80 kB). Clang, which does not know these flags,
 * is asked again in its own words.
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

/* Joins a folder and a name to a whole path: compilers are not started in the folder that this process is in. */
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

/* Starts the compiler and waits; true if it went well. *code: an errno if it could not be started, else 0. */
static bool spawn(const tn__compiler *compiler, int folder, char *const *argument, const char *log, int *code)
{
    posix_spawn_file_actions_t actions;
    if ((*code = posix_spawn_file_actions_init(&actions)) != 0)
        return false;
    *code = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (*code == 0)
        *code = posix_spawn_file_actions_addfchdir_np(&actions, folder);
    if (*code == 0)
        *code = posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (*code == 0)
        *code = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    if (*code == 0)
        *code = posix_spawn(&child, compiler->path, &actions, NULL, argument, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (*code != 0)
        return false;
    int status = 0;
    pid_t waited;
    while ((waited = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    if (waited < 0) /* a program that ignores SIGCHLD: only the output can tell */
        return true;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool compile(const tn__compiler *compiler, int level, int folder, const char *source, const char *object,
                    const char *log, int *code)
{
    const char *argument[FLAG_COUNT + MOST_ABSENT + LEVEL_FLAGS + 8];
    size_t count = 0;
    argument[count++] = compiler->path;
    for (size_t i = 0; i < LEVEL_FLAGS && levels[level][i]; i++)
        argument[count++] = levels[level][i];
    for (size_t i = 0; i < FLAG_COUNT; i++)
        argument[count++] = flags[i];
    count += absent_features(argument + count);
    argument[count++] = source;
    argument[count++] = "-o";
    argument[count++] = object;
    argument[count++] = "-lm";
    argument[count] = NULL;
    return spawn(compiler, folder, (char *const *)argument, log, code);
}

tn_status tn__compiler_run(const tn__compiler *compiler, int folder, const char *source, const char *object,
                           const char *log)
{
    int code = 0;
    for (size_t level = 0; level < LEVEL_COUNT && code == 0; level++)
        if (compile(compiler, (int)level, folder, source, object, log, &code))
            return TN_OK;
    if (code != 0)
        return tn__fail(TN_ERR_COMPILE, "kernels", "cannot run the C compiler %s: %s; name another in TANSO_CC",
                        compiler->path, strerror(code));
    char lines[1200];
    first_lines(folder, log, lines, sizeof(lines));
    return tn__fail(TN_ERR_COMPILE, "kernels", "the C compiler %s failed (TANSO_CC names another): %s", compiler->path,
                    *lines ? lines : "it said nothing");
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
