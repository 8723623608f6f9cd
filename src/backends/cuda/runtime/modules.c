/* SPDX-License-Identifier: MIT */
/*
 * A program's kernels one by one: those that no cache has are compiled in batches, side by side, and kept under their
 * own names, so that another program, or another layer's kernel that is the same, finds them. Whoever loads the program
 * may compile something else meanwhile.
 */
#include <string.h>
#include <tanso/device.h>
#include <time.h>

#include "backends/cuda/runtime/module.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/signals.h"

/*
 * Bytes of a batch, and batches side by side. More threads of NVRTC hold one another up: on 16 cores six small texts at
 * once took 335 ms each that take 35 to 90 alone. Reading what all kernels share takes 50 ms a batch, a product alone
 * up to a second, and four products of one kernel 4.6: bytes tell little of the time, so that there are two batches for
 * each thread, which whoever is done takes.
 */
enum { LEAST = 16 << 10, MOST = 256 << 10, THREADS = 3 };

typedef struct made {
    char *code;
    size_t length, bytes;
    double began;
    tn__error *error;
} made;

struct tn__cuda_modules {
    tn__cuda_device *device;
    const tn__program *program;
    tn__cuda_module **module;
    char (*key)[TN__KEY];
    bool *missing;
    tn__kernel_folder folder;
    tn__kernel_file *file;
    int file_count;
    tn__kernel_batches batches;
    made *made; /* one for each batch */
    int missing_count;
    bool locked;  /* tn__cuda_loading is held, and the folder is open */
    int threads;
    pthread_t thread[THREADS];
    atomic_int next, kernels_done, batches_done;
    atomic_bool failed;
};
typedef tn__cuda_modules kernels;

static int workers(void) { return tn_threads() < THREADS ? tn_threads() : THREADS; }

static int kernels_of(const kernels *k, int batch) { return k->batches.first[batch + 1] - k->batches.first[batch]; }

static void make_batch(kernels *k, int batch)
{
    made *m = &k->made[batch];
    char *text =
        tn__program_text_of(k->program, kernels_of(k, batch), &k->batches.kernel[k->batches.first[batch]]);
    m->began = tn__seconds();
    m->bytes = text ? strlen(text) : 0;
    const tn__cuda_device *device = k->device;
    tn_status status = text ? tn__cuda_compile(device->libraries, device->architecture, text, &m->code, &m->length)
                            : tn__fail_memory("kernels", 0);
    tn__free(text);
    if (status == TN_OK)
        return;
    m->code = NULL;
    m->error = tn__error_retain(tn__error_last());
    atomic_store(&k->failed, true);
}

/* The compiling threads: each compiles one batch after another, until one fails. */
static void *make_batches(void *context)
{
    kernels *k = context;
    for (int b; !atomic_load(&k->failed) && (b = atomic_fetch_add(&k->next, 1)) < k->batches.count;) {
        make_batch(k, b);
        atomic_fetch_add(&k->kernels_done, kernels_of(k, b));
        atomic_fetch_add(&k->batches_done, 1);
    }
    tn_clear_error(); /* the error has been copied to `made` */
    return NULL;
}

/* Reports progress until the threads have finished all batches. */
static void wait_for_batches(kernels *k)
{
    tn__kernel_progress progress = {.began = tn__seconds(), .all = k->missing_count};
    while (!atomic_load(&k->failed) && atomic_load(&k->batches_done) < k->batches.count) {
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        progress.done = atomic_load(&k->kernels_done);
        tn__kernel_progress_tell(&progress, k->device->product);
    }
    tn__kernel_progress_end(&progress);
}

/* Compiles in other threads, so that their errors are not latched in this one. */
static void start_threads(kernels *k)
{
    sigset_t before;
    int wanted = workers() < k->batches.count ? workers() : k->batches.count;
    tn__signals_hold(&before);
    while (k->threads < wanted && pthread_create(&k->thread[k->threads], NULL, make_batches, k) == 0)
        k->threads++;
    tn__signals_let(&before);
}

/* In this thread only if no other could be made. */
static void end_threads(kernels *k)
{
    if (k->threads)
        wait_for_batches(k);
    for (int i = 0; i < k->threads; i++)
        pthread_join(k->thread[i], NULL);
    for (int b = 0; b < k->batches.count && !k->threads && !atomic_load(&k->failed); b++)
        make_batch(k, b);
}

static tn_status take_batch(kernels *k, int batch)
{
    made *m = &k->made[batch];
    const int *kernel = &k->batches.kernel[k->batches.first[batch]];
    int count = kernels_of(k, batch);
    tn__cuda_image *loaded;
    if (m->error)
        return tn__error_raise(m->error);
    if (!m->code)
        return TN_OK;
    tn__cuda_compiled(&k->folder, m->bytes, m->began, count);
    tn__cuda_keep(&k->folder, count, k->key, kernel, m->code, m->length);
    tn_status status = tn__cuda_image_load(k->device, m->code, &loaded);
    if (status != TN_OK)
        return status;
    for (int i = 0; i < count && status == TN_OK; i++)
        status = tn__cuda_module_add(k->device, k->key[kernel[i]], loaded, &k->module[kernel[i]]);
    tn__cuda_image_release(k->device, loaded);
    return status;
}

static tn_status begin_missing(kernels *k)
{
    tn_status status = tn__kernel_batches_make(k->program, k->missing, 2 * workers(), LEAST, MOST, &k->batches);
    if (status != TN_OK)
        return status;
    k->made = tn__calloc((size_t)k->batches.count + 1, sizeof *k->made);
    if (!k->made)
        return tn__fail_memory("kernels", sizeof *k->made * (size_t)k->batches.count);
    tn__cuda_tell_of_pause(k->device, &k->folder);
    start_threads(k);
    return TN_OK;
}

static tn_status end_missing(kernels *k)
{
    tn_status status = TN_OK;
    end_threads(k);
    for (int b = 0; b < k->batches.count; b++) {
        if (status == TN_OK)
            status = take_batch(k, b);
        tn__free(k->made[b].code);
        if (k->made[b].error)
            tn__error_release(k->made[b].error);
    }
    return status;
}

static bool has_kernel(const kernels *k, tn__cuda_image *loaded, int kernel)
{
    CUfunction function;
    return k->device->driver->cuModuleGetFunction(&function, loaded->handle, k->program->text.kernel[kernel].name) ==
           CUDA_SUCCESS;
}

/* From the folder; a file that is several kernels' is loaded once. */
static tn_status find_in_folder(kernels *k, int kernel)
{
    char name[TN__CUDA_FILE];
    tn__cuda_file_name(name, k->key[kernel]);
    tn__kernel_file *file =
        k->folder.temporary ? NULL : tn__kernel_file_of(&k->folder, name, k->file, &k->file_count);
    if (!file)
        return TN_OK;
    if (!file->good) {
        file->loaded = tn__cuda_image_find(k->device, &k->folder, name);
        file->good = true; /* true unless loading fails below */
    }
    if (!file->loaded) { /* by any of its names: else a new file would find this one taken */
        tn__kernel_remove(&k->folder, name);
        return TN_OK;
    }
    if (!has_kernel(k, file->loaded, kernel)) {
        tn__kernel_remove(&k->folder, name);
        return TN_OK;
    }
    atomic_fetch_add(&tn__kernels_found, 1);
    return tn__cuda_module_add(k->device, k->key[kernel], file->loaded, &k->module[kernel]);
}

/* From the folder, those that are there; the others are being compiled afterwards. The caller holds
 * tn__cuda_loading. */
static tn_status find_or_begin(kernels *k)
{
    tn_status status = TN_OK;
    tn__cuda_find_folder(&k->folder);
    for (int i = 0; i < k->program->text.kernel_count && status == TN_OK; i++) {
        if (!k->module[i])
            k->module[i] = tn__cuda_module_take(k->device, k->key[i]);
        if (!k->module[i])
            status = find_in_folder(k, i);
        k->missing[i] = !k->module[i];
        k->missing_count += k->missing[i];
    }
    if (status == TN_OK && k->missing_count)
        status = begin_missing(k);
    return status;
}

static void give_back(kernels *k)
{
    for (int i = 0; i < k->file_count; i++)
        if (k->file[i].loaded)
            tn__cuda_image_release(k->device, k->file[i].loaded);
    tn__kernel_batches_free(&k->batches);
    tn__free(k->made);
    if (k->locked) {
        tn__kernel_folder_close(&k->folder);
        pthread_mutex_unlock(&tn__cuda_loading);
    }
    tn__free(k->key);
    tn__free(k->missing);
    tn__free(k->file);
    tn__free(k);
}

/* Finds the kernels that are loaded, and begins with the others. */
static tn_status begin(kernels *k)
{
    const tn__program *program = k->program;
    tn__text identity = {0};
    bool all = true;
    tn__cuda_add_identity(k->device, &identity);
    tn_status status = !identity.failed ? tn__kernel_keys(program, identity.data, k->key)
                                        : tn__fail_memory("kernels", identity.length);
    tn__free(identity.data);
    for (int i = 0; i < program->text.kernel_count && status == TN_OK; i++) {
        k->module[i] = tn__cuda_module_take(k->device, k->key[i]);
        all = all && k->module[i];
        atomic_fetch_add(&tn__kernels_found, k->module[i] != NULL);
    }
    if (status != TN_OK || all)
        return status;
    pthread_mutex_lock(&tn__cuda_loading);
    k->locked = true;
    return find_or_begin(k);
}

tn_status tn__cuda_modules_begin(tn__cuda_device *device, const tn__program *program, tn__cuda_module **module,
                                 tn__cuda_modules **begun)
{
    size_t count = (size_t)program->text.kernel_count + 1;
    kernels *k = tn__calloc(1, sizeof *k);
    if (!k)
        return tn__fail_memory("kernels", sizeof *k);
    k->device = device;
    k->program = program;
    k->module = module;
    k->key = tn__alloc(count * sizeof *k->key);
    k->missing = tn__calloc(count, sizeof *k->missing);
    k->file = tn__calloc(count, sizeof *k->file);
    tn_status status = k->key && k->missing && k->file ? begin(k)
                                                       : tn__fail_memory("kernels", count * sizeof *k->key);
    if (status == TN_OK)
        *begun = k;
    else
        give_back(k);
    return status;
}

tn_status tn__cuda_modules_end(tn__cuda_modules *k)
{
    tn_status status = k->missing_count ? end_missing(k) : TN_OK;
    give_back(k);
    return status;
}
