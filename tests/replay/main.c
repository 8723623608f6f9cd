/* SPDX-License-Identifier: MIT */
/*
 * replay CASES_DIR [--device D] [--op NAME] [--jobs N] [--share N] [--compile always|never|auto]: runs the calls in
 * CASES_DIR/cases.jsonl, which NumPy made, and compares: dtypes, shapes, values; vectors of linalg.eig, eigh, svd and
 * qr but for their signs, eigenvalues but for their order; where editions of NumPy differ, any one's answer. What NumPy
 * refuses shall be refused; "refused" counts apart where that was this tool, before Tanso was asked. D is
 * TANSO_TEST_DEVICE, else cpu. --share runs one case in N, others each time (TANSO_TEST_SEED repeats a choice). With
 * --compile always, kernels are made of every graph; else the reference evaluator computes most. Workers are processes
 * of their own, so that a case that crashes is a failed case and no more.
 */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_JOBS 64
#define FEW_CASES 64 /* not worth another process */

typedef struct cases {
    char **line;
    char **op, **id;
    size_t count, capacity;
} cases;

typedef struct options {
    const char *folder, *device, *op;
    int jobs, share;
    uint64_t seed;
    tn_compile_mode compile;
} options;

static void *checked(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "replay: out of memory\n");
    exit(2);
}

/* ---- reading ---- */

static char *string_of(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return checked(json_is_string(v) ? strdup(json_string_value(v)) : v ? json_dumps(v, JSON_ENCODE_ANY) : strdup("?"));
}

/* Is the case in this line one of those to run? */
static bool chosen(const options *o, size_t line)
{
    uint64_t mixed = (o->seed + line) * 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 32) * 0xBF58476D1CE4E5B9u;
    return (mixed >> 32) % (uint64_t)o->share == 0;
}

static void add_line(cases *all, const char *line, const options *o)
{
    json_t *object = json_loads(line, 0, NULL);
    char *op = string_of(object, "op");
    if (o->op && strcmp(op, o->op)) {
        free(op);
        json_decref(object);
        return;
    }
    if (all->count == all->capacity) {
        all->capacity = all->capacity ? 2 * all->capacity : 1024;
        all->line = checked(realloc(all->line, all->capacity * sizeof *all->line));
        all->op = checked(realloc(all->op, all->capacity * sizeof *all->op));
        all->id = checked(realloc(all->id, all->capacity * sizeof *all->id));
    }
    all->line[all->count] = checked(strdup(line));
    all->id[all->count] = string_of(object, "id");
    all->op[all->count++] = op;
    json_decref(object);
}

static bool read_cases(cases *all, const options *o)
{
    char path[4096], *line = NULL;
    size_t capacity = 0;
    snprintf(path, sizeof path, "%s/cases.jsonl", o->folder);
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
        return false;
    }
    for (size_t number = 0; getline(&line, &capacity, file) > 0; number++)
        if (line[strspn(line, " \t\r\n")] && chosen(o, number)) {
            char *strict = checked(strict_json(line));
            add_line(all, strict, o);
            free(strict);
        }
    free(line);
    fclose(file);
    return true;
}

/* ---- running ---- */

/* What a worker has done, in memory that parent and workers share. */
typedef struct progress {
    size_t at; /* the case at hand */
    unsigned char outcome[];
} progress;

static void worker(const cases *all, const options *o, progress *shared, size_t first, size_t step, FILE *report)
{
    if (step > 1)
        tn_set_threads(1);
    tn_set_compile(o->compile);
    tn_status status;
    tn_device device = tn_device_parse(o->device, &status);
    if (status != TN_OK || tn_set_device(device) != TN_OK) {
        fprintf(stderr, "replay: %s\n", tn_error());
        _exit(2);
    }
    for (size_t i = first; i < all->count; i += step) {
        const char *message;
        shared->at = i;
        shared->outcome[i] = (unsigned char)replay_line(all->line[i], o->folder, device, &message);
        if (shared->outcome[i] == FAILED)
            fprintf(report, "FAILED %s %s: %s\n", all->id[i], all->op[i], message);
        fflush(report);
    }
    fflush(report);
    _exit(0);
}

/* Runs cases first, first + step, ... in a process, and in another one from behind each case that ends it. */
static bool supervise(const cases *all, const options *o, progress *shared, size_t first, size_t step, FILE *report)
{
    while (first < all->count) {
        shared->at = first;
        pid_t pid = fork();
        if (pid == 0)
            worker(all, o, shared, first, step, report);
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
            return false;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return true;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
            return false;
        size_t i = shared->at;
        shared->outcome[i] = FAILED;
        fseek(report, 0, SEEK_END);
        fprintf(report, "FAILED %s %s: ended the process (%s %d)\n", all->id[i], all->op[i],
                WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        fflush(report);
        first = i + step;
    }
    return true;
}

static progress *shared_memory(size_t count)
{
    progress *p = mmap(NULL, sizeof *p + count + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool run_all(const cases *all, const options *o, unsigned char *outcome)
{
    progress *shared[MAX_JOBS];
    FILE *report[MAX_JOBS];
    pid_t pid[MAX_JOBS];
    bool good = true;
    for (int j = 0; j < o->jobs; j++) {
        shared[j] = checked(shared_memory(all->count));
        report[j] = checked(tmpfile());
        fflush(stdout);
        pid[j] = fork();
        if (pid[j] == 0)
            _exit(supervise(all, o, shared[j], (size_t)j, (size_t)o->jobs, report[j]) ? 0 : 2);
    }
    for (int j = 0; j < o->jobs; j++) {
        int status;
        good = waitpid(pid[j], &status, 0) == pid[j] && WIFEXITED(status) && WEXITSTATUS(status) == 0 && good;
        rewind(report[j]);
        for (int ch; (ch = getc(report[j])) != EOF;)
            putchar(ch);
        fclose(report[j]);
        for (size_t i = (size_t)j; i < all->count; i += (size_t)o->jobs)
            outcome[i] = shared[j]->outcome[i];
        munmap(shared[j], sizeof **shared + all->count + 1);
    }
    return good;
}

/* ---- the summary ---- */

static const cases *sorted_cases;
static int by_op(const void *a, const void *b)
{
    return strcmp(sorted_cases->op[*(const size_t *)a], sorted_cases->op[*(const size_t *)b]);
}

static void print_counts(const size_t *count)
{
    printf("%zu passed, %zu failed, %zu unknown, %zu refused\n", count[PASSED], count[FAILED], count[UNKNOWN],
           count[REFUSED]);
}

/* A count an operation, then the totals; the number of failed cases. */
static size_t summarize(const cases *all, const unsigned char *outcome)
{
    size_t *order = checked(malloc((all->count + 1) * sizeof *order)), total[REFUSED + 1] = {0}, other = 0;
    for (size_t i = 0; i < all->count; i++)
        order[i] = i;
    sorted_cases = all;
    qsort(order, all->count, sizeof *order, by_op);
    for (size_t i = 0; i < all->count;) {
        size_t count[REFUSED + 1] = {0};
        const char *op = all->op[order[i]];
        for (; i < all->count && !strcmp(all->op[order[i]], op); i++) {
            unsigned char o = outcome[order[i]];
            other += o == PASSED_AS_OTHER;
            count[o == NOT_RUN ? FAILED : o == PASSED_AS_OTHER ? PASSED : o]++;
        }
        printf("%s: ", op);
        print_counts(count);
        for (int k = 0; k <= REFUSED; k++)
            total[k] += count[k];
    }
    if (other)
        fprintf(stderr,
                "replay: %zu calls passed as those of NumPy 1 or 2.5, which differ from NumPy 2.0 to 2.4 (edition.c)\n",
                other);
    print_counts(total);
    free(order);
    return total[FAILED];
}

static bool mode_named(const char *name, tn_compile_mode *mode)
{
    static const char *const names[] = {
        [TN_COMPILE_AUTO] = "auto", [TN_COMPILE_ALWAYS] = "always", [TN_COMPILE_NEVER] = "never"};
    for (size_t k = 0; name && k < sizeof names / sizeof *names; k++)
        if (!strcmp(name, names[k])) {
            *mode = (tn_compile_mode)k;
            return true;
        }
    return !name;
}

static bool parse(int argc, char **argv, options *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const char *device = getenv("TANSO_TEST_DEVICE");
    const char *seed = getenv("TANSO_TEST_SEED"), *jobs = NULL, *share = NULL, *compile = NULL;
    *o = (options){.device = device ? device : "cpu", .seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL)};
    const struct {
        const char *word, **into;
    } words[] = {{"--device", &o->device}, {"--op", &o->op}, {"--jobs", &jobs}, {"--share", &share},
                 {"--compile", &compile}};
    for (int i = 1; i < argc; i++) {
        const char **into = argv[i][0] != '-' && !o->folder ? &o->folder : NULL;
        for (size_t k = 0; argv[i][0] == '-' && k < sizeof words / sizeof *words; k++)
            if (!strcmp(argv[i], words[k].word) && i + 1 < argc)
                into = words[k].into, i++;
        if (!into)
            return false;
        *into = argv[i];
    }
    o->jobs = jobs ? atoi(jobs) : cores > 16 ? 16 : cores < 1 ? 1 : (int)cores;
    o->share = share ? atoi(share) : 1;
    return o->folder && o->jobs >= 1 && o->jobs <= MAX_JOBS && o->share >= 1 && mode_named(compile, &o->compile);
}

int main(int argc, char **argv)
{
    options o;
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: replay CASES_DIR [--device D] [--op NAME] [--jobs N] [--share N]\n"
                        "              [--compile always|never|auto]\n");
        return 2;
    }
    cases all = {0};
    if (!read_cases(&all, &o))
        return 2;
    if ((size_t)o.jobs > all.count / FEW_CASES + 1)
        o.jobs = (int)(all.count / FEW_CASES) + 1;
    unsigned char *outcome = checked(calloc(all.count + 1, 1));
    if (o.share > 1)
        printf("%zu cases, one in %d: TANSO_TEST_SEED=%llu\n", all.count, o.share, (unsigned long long)o.seed);
    bool good = run_all(&all, &o, outcome);
    size_t failed = summarize(&all, outcome);
    for (size_t i = 0; i < all.count; i++)
        free(all.line[i]), free(all.op[i]), free(all.id[i]);
    free(all.line), free(all.op), free(all.id), free(outcome);
    if (!good)
        fprintf(stderr, "replay: some cases were not run\n");
    return !good ? 2 : failed ? 1 : 0;
}
