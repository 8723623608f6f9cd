/* SPDX-License-Identifier: MIT */
/*
 * Modules: a program's kernels, loaded once in a process, from the cache on disk if they are there. Compiling
 * happens outside the lock: two threads, or two processes, may compile the same text at once, and one result wins.
 */
#include "backends/cpu/jit/module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <tanso/device.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/jit/objects.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/memory.h"

struct tn__cpu_module {
    char name[33]; /* hash of all that the code depends on */
    int references;
    void *handle;
    tn__cpu_module *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tn__cpu_module *loaded;

/* ---- the table ---- */

static tn__cpu_module *find(const char *name)
{
    tn__cpu_module *module = loaded;
    while (module && strcmp(module->name, name) != 0)
        module = module->next;
    return module;
}

static tn__cpu_module *find_and_retain(const char *name)
{
    tn__cpu_module *module = find(name);
    if (module)
        module->references++;
    return module;
}

/* Adds a loaded handle to the table; if another thread has added the same one, that module is taken. */
static tn_status enter(const char *name, void *handle, tn__cpu_module **module)
{
    tn__cpu_module *fresh = tn__calloc(1, sizeof(*fresh));
    if (fresh == NULL) {
        dlclose(handle);
        return tn__fail_memory("kernels", sizeof(*fresh));
    }
    pthread_mutex_lock(&lock);
    *module = find_and_retain(name);
    if (*module == NULL) {
        memcpy(fresh->name, name, sizeof(fresh->name));
        fresh->references = 1;
        fresh->handle = handle;
        fresh->next = loaded;
        loaded = *module = fresh;
        fresh = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (fresh) {
        tn__free(fresh);
        dlclose(handle);
    }
    return TN_OK;
}

void tn__cpu_module_release(tn__cpu_module *module)
{
    pthread_mutex_lock(&lock);
    bool last = --module->references == 0;
    if (last) {
        tn__cpu_module **link = &loaded;
        while (*link != module)
            link = &(*link)->next;
        *link = module->next;
    }
    pthread_mutex_unlock(&lock);
    if (last) {
        dlclose(module->handle);
        tn__free(module);
    }
}

tn__cpu_kernel tn__cpu_module_kernel(const tn__cpu_module *module, const char *name)
{
    tn__cpu_kernel kernel;
    void *symbol = dlsym(module->handle, name);
    memcpy(&kernel, &symbol, sizeof(kernel)); /* ISO C has no cast from an object to a function */
    return kernel;
}

/* ---- what both ways of loading begin with ---- */

static tn_status begin(tn__cpu_call *c, tn__text *identity)
{
    *c = (tn__cpu_call){.folder.file = -1};
    tn_status status = tn__compiler_find(&c->compiler);
    if (status != TN_OK)
        return status;
    tn__text_add(identity, "tanso kernels 2\n");
    tn__compiler_identity(&c->compiler, identity);
    tn__text_add(identity, "\n");
    return TN_OK;
}

static tn__cpu_module *loaded_already(const char *key)
{
    pthread_mutex_lock(&lock);
    tn__cpu_module *module = find_and_retain(key);
    pthread_mutex_unlock(&lock);
    if (module)
        atomic_fetch_add(&tn__kernels_found, 1);
    return module;
}

/* ---- a text as a whole ---- */

static tn_status make_whole(tn__cpu_call *c, const char *key, const char *source, int count, const char *const *kernel,
                            void **handle)
{
    tn__cpu_job j = {0};
    tn_status status = tn__kernel_folder_with_room(&c->folder);
    if (status != TN_OK)
        return status;
    tn__compiler_watch_begin(&c->watch);
    tn__cpu_job_start(c, &j, key, source);
    while (j.running)
        tn__cpu_job_look(c, &j, true);
    tn__compiler_watch_end(&c->watch);
    status = j.compiled ? tn__cpu_object_take(c, &j, key, count, kernel, handle) : j.status;
    tn__cpu_job_end(c, &j);
    return status;
}

tn_status tn__cpu_module_load(const char *source, int count, const char *const *kernel, tn__cpu_module **module)
{
    tn__cpu_call c;
    char key[TN__KEY];
    tn__text text = {0};
    tn_status status = begin(&c, &text);
    tn__text_add(&text, source);
    if (!text.failed)
        tn__hash_name(text.data, text.length, key);
    else if (status == TN_OK)
        status = tn__fail_memory("kernels", text.length);
    tn__free(text.data);
    if (status != TN_OK || (*module = loaded_already(key)))
        return status;
    status = tn__kernel_folder_open(&c.folder);
    if (status != TN_OK)
        return status;
    void *handle = tn__cpu_object_find(&c, key, count, kernel);
    if (!handle)
        status = make_whole(&c, key, source, count, kernel, &handle);
    tn__kernel_folder_close(&c.folder);
    return status == TN_OK ? enter(key, handle, module) : status;
}

/* ---- kernels one by one ---- */

enum { LEAST = 16 << 10, MOST = 96 << 10 }; /* bytes of a batch: a compiler's start is as much as a kernel of 6 kB */

typedef struct kernels {
    tn__cpu_call c;
    const tn__program *program;
    tn__cpu_module **module;
    char (*key)[TN__KEY];
    bool *missing;
    tn__kernel_batches batches;
    tn__cpu_job *job;
} kernels;

/* Finds the kernels that are loaded already, or are in the folder; *missing: how many are neither. */
static tn_status find_kernels(kernels *k, int *missing)
{
    const tn__program_text *text = &k->program->text;
    tn_status status = TN_OK;
    *missing = 0;
    for (int i = 0; i < text->kernel_count && status == TN_OK; i++) {
        k->module[i] = loaded_already(k->key[i]);
        k->missing[i] = k->module[i] == NULL;
        if (k->missing[i] && k->c.folder.file < 0)
            status = tn__kernel_folder_open(&k->c.folder);
        void *handle = k->missing[i] && status == TN_OK
                           ? tn__cpu_object_find(&k->c, k->key[i], 1, (const char *const *)&text->kernel[i].name)
                           : NULL;
        if (handle)
            status = enter(k->key[i], handle, &k->module[i]);
        k->missing[i] = k->module[i] == NULL;
        *missing += k->missing[i];
    }
    return status;
}

static int kernels_of(const kernels *k, int batch) { return k->batches.first[batch + 1] - k->batches.first[batch]; }

static void start_batch(kernels *k, int batch)
{
    const int *first = &k->batches.kernel[k->batches.first[batch]];
    char *text = tn__program_text_of(k->program, kernels_of(k, batch), first);
    if (text)
        tn__cpu_job_start(&k->c, &k->job[batch], k->key[*first], text);
    else
        k->job[batch].status = tn__fail_memory("kernels", 0);
    tn__free(text);
}

/* Waits a little, then checks which jobs are done. */
static void look_at_all(kernels *k, int started)
{
    enum { PAUSE = 1000000 }; /* nanoseconds */
    int running = 0;
    for (int b = 0; b < started; b++)
        if (k->job[b].running) {
            tn__cpu_job_look(&k->c, &k->job[b], false);
            running += k->job[b].running;
            k->c.progress.done += k->job[b].running ? 0 : kernels_of(k, b);
        }
    tn__kernel_progress_tell(&k->c.progress, "the CPU");
    if (running)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
}

/* Compiles all batches, as many at a time as there are threads; one that fails lets no other one start. */
static void compile_batches(kernels *k)
{
    int started = 0, running = 0, workers = tn_threads();
    bool failed = false;
    tn__compiler_watch_begin(&k->c.watch);
    do {
        for (; !failed && started < k->batches.count && running < workers; started++, running++) {
            start_batch(k, started);
            failed = k->job[started].status != TN_OK;
        }
        look_at_all(k, started);
        running = 0;
        for (int b = 0; b < started; b++) {
            running += k->job[b].running;
            failed = failed || k->job[b].status != TN_OK;
        }
    } while (running || (!failed && started < k->batches.count));
    tn__compiler_watch_end(&k->c.watch);
    tn__kernel_progress_end(&k->c.progress);
}

static tn_status take_batch(kernels *k, int batch)
{
    tn_status status = k->job[batch].status;
    for (int i = k->batches.first[batch]; i < k->batches.first[batch + 1] && status == TN_OK; i++) {
        int kernel = k->batches.kernel[i];
        void *handle = NULL;
        status = tn__cpu_object_take(&k->c, &k->job[batch], k->key[kernel], 1,
                             (const char *const *)&k->program->text.kernel[kernel].name, &handle);
        if (status == TN_OK)
            status = enter(k->key[kernel], handle, &k->module[kernel]);
    }
    return status;
}

static tn_status make_kernels(kernels *k, int missing)
{
    tn_status status = tn__kernel_folder_with_room(&k->c.folder);
    if (status == TN_OK)
        status = tn__kernel_batches_make(k->program, k->missing, tn_threads(), LEAST, MOST, &k->batches);
    if (status != TN_OK)
        return status;
    k->job = tn__calloc((size_t)k->batches.count, sizeof *k->job);
    k->c.progress = (tn__kernel_progress){.began = tn__seconds(), .all = missing};
    if (k->job)
        compile_batches(k);
    else
        status = tn__fail_memory("kernels", sizeof *k->job * (size_t)k->batches.count);
    for (int b = 0; b < k->batches.count && k->job; b++) {
        if (status == TN_OK)
            status = k->job[b].compiled || k->job[b].status != TN_OK ? take_batch(k, b) : TN_OK;
        if (k->job[b].bytes)
            tn__cpu_job_end(&k->c, &k->job[b]);
    }
    return status;
}

tn_status tn__cpu_modules_load(const tn__program *program, tn__cpu_module **module)
{
    kernels k = {.program = program, .module = module};
    size_t count = (size_t)program->text.kernel_count + 1;
    tn__text identity = {0};
    int missing = 0;
    k.key = tn__alloc(count * sizeof *k.key);
    k.missing = tn__calloc(count, sizeof *k.missing);
    tn_status status = begin(&k.c, &identity);
    k.c.file = tn__alloc(count * sizeof *k.c.file);
    if (status == TN_OK && (!k.key || !k.missing || !k.c.file || identity.failed))
        status = tn__fail_memory("kernels", count * sizeof *k.key);
    if (status == TN_OK)
        status = tn__kernel_keys(program, identity.data, k.key);
    if (status == TN_OK)
        status = find_kernels(&k, &missing);
    if (status == TN_OK && missing)
        status = make_kernels(&k, missing);
    tn__kernel_folder_close(&k.c.folder);
    tn__kernel_batches_free(&k.batches);
    tn__free(k.job);
    tn__free(k.c.file);
    tn__free(identity.data);
    tn__free(k.key);
    tn__free(k.missing);
    return status;
}

/* Is a kernel neither loaded nor in the folder? */
static bool is_missing(const tn__cpu_call *c, const char *key)
{
    char final[TN__KERNEL_NAME];
    tn__cpu_object_name(final, key);
    pthread_mutex_lock(&lock);
    bool loaded = find(key) != NULL;
    pthread_mutex_unlock(&lock);
    return !loaded && faccessat(c->folder.file, final, F_OK, 0) != 0;
}

/* An estimate of a kernel's compile time: 10 us a byte, and more for long kernels: gcc 12 takes 0.8 s for one of 14 kB,
 * 11 s for 32 kB. */
static int64_t nanoseconds_of(const tn__program *program, int kernel)
{
    double bytes = (double)tn__kernel_bytes(program, kernel), long_one = bytes / 8192;
    return (int64_t)(1e4 * bytes * (1 + long_one * long_one));
}

int64_t tn__cpu_modules_pause(const tn__program *program)
{
    tn__cpu_call c;
    tn__text identity = {0};
    int count = program->text.kernel_count, threads = tn_threads();
    char(*key)[TN__KEY] = tn__alloc(((size_t)count + 1) * sizeof *key);
    bool clean = !tn__latched();
    int64_t all = 0, longest = 0;
    if (key && begin(&c, &identity) == TN_OK && !identity.failed &&
        tn__kernel_keys(program, identity.data, key) == TN_OK && tn__kernel_folder_open(&c.folder) == TN_OK) {
        for (int k = 0; k < count; k++) {
            int64_t pause = is_missing(&c, key[k]) ? nanoseconds_of(program, k) : 0;
            all += pause;
            longest = pause > longest ? pause : longest;
        }
        tn__kernel_folder_close(&c.folder);
    }
    if (clean) /* the error is not lost: loading the program meets it again */
        tn_clear_error();
    tn__free(identity.data);
    tn__free(key);
    return all / threads > longest ? all / threads : longest;
}
