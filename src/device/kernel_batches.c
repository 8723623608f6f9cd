/* SPDX-License-Identifier: MIT */
/* Names, batches and progress of kernels that are compiled one by one. */
#include "device/kernel_batches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/memory.h"

/* ---- names ---- */

static int by_name(const void *a, const void *b) { return memcmp(a, b, TN__KEY); }

/* Functions stand in a text in the order in which its kernels, in turn, first need them: equal kernels of two programs
 * have the same ones, but not in one order. */
tn_status tn__kernel_keys(const tn__program *program, const char *identity, char (*key)[TN__KEY])
{
    const tn__program_text *text = &program->text;
    char(*hash)[TN__KEY] = tn__alloc(sizeof *hash * ((size_t)text->stretch_count + 1));
    char(*used)[TN__KEY] = tn__alloc(sizeof *used * ((size_t)text->stretch_count + 1));
    tn__text made = {0};
    if (!hash || !used) {
        tn__free(hash);
        tn__free(used);
        return tn__fail_memory("kernels", sizeof *hash * (size_t)text->stretch_count);
    }
    for (int i = 0; i < text->stretch_count; i++)
        tn__hash_name(program->source + text->begin[i], text->begin[i + 1] - text->begin[i], hash[i]);
    tn__text_add(&made, identity);
    size_t length = made.length;
    for (int k = 0; k < text->kernel_count && !made.failed; k++) {
        const tn__kernel_text *kernel = &text->kernel[k];
        made.length = length;
        for (int i = 0; i < kernel->count; i++)
            memcpy(used[i], hash[kernel->stretch[i]], TN__KEY);
        qsort(used + kernel->own, (size_t)(kernel->count - kernel->own), sizeof *used, by_name);
        for (int i = 0; i < kernel->count; i++)
            tn__text_add(&made, used[i]);
        if (!made.failed)
            tn__hash_name(made.data, made.length, key[k]);
    }
    bool failed = made.failed;
    tn__free(made.data);
    tn__free(hash);
    tn__free(used);
    return failed ? tn__fail_memory("kernels", length) : TN_OK;
}

/* ---- batches ---- */

typedef struct weighed {
    int kernel, batch;
    size_t bytes;
} weighed;

size_t tn__kernel_bytes(const tn__program *program, int kernel)
{
    const tn__program_text *text = &program->text;
    const tn__kernel_text *k = &text->kernel[kernel];
    size_t bytes = 0;
    for (int i = k->own; i < k->count; i++)
        bytes += text->begin[k->stretch[i] + 1] - text->begin[k->stretch[i]];
    return bytes;
}

static int longest_first(const void *a, const void *b)
{
    const weighed *x = a, *y = b;
    return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : x->kernel - y->kernel;
}

static int by_batch(const void *a, const void *b)
{
    const weighed *x = a, *y = b;
    return x->batch != y->batch ? x->batch - y->batch : x->kernel - y->kernel;
}

static int how_many(size_t bytes, int kernels, int workers, size_t least, size_t most)
{
    size_t count = (bytes + most - 1) / most, side_by_side = bytes / least;
    if (side_by_side > (size_t)workers)
        side_by_side = (size_t)workers;
    if (count < side_by_side)
        count = side_by_side;
    return count < 1 ? 1 : count > (size_t)kernels ? kernels : (int)count;
}

/* The longest kernels first, each into the batch that has least by then. */
static void share_out(weighed *list, int count, size_t *load, int batches)
{
    qsort(list, (size_t)count, sizeof *list, longest_first);
    for (int i = 0; i < count; i++) {
        int least = 0;
        for (int b = 1; b < batches; b++)
            least = load[b] < load[least] ? b : least;
        list[i].batch = least;
        load[least] += list[i].bytes;
    }
    qsort(list, (size_t)count, sizeof *list, by_batch);
}

tn_status tn__kernel_batches_make(const tn__program *program, const bool *missing, int workers, size_t least,
                                  size_t most, tn__kernel_batches *batches)
{
    size_t room = (size_t)program->text.kernel_count + 2, bytes = 0;
    weighed *list = tn__alloc(room * sizeof *list);
    size_t *load = tn__calloc(room, sizeof *load);
    int count = 0;
    *batches = (tn__kernel_batches){.first = tn__calloc(room, sizeof(int)), .kernel = tn__alloc(room * sizeof(int))};
    bool done = list && load && batches->first && batches->kernel;
    for (int k = 0; k < program->text.kernel_count && done; k++)
        if (missing[k]) {
            list[count] = (weighed){.kernel = k, .bytes = tn__kernel_bytes(program, k)};
            bytes += list[count++].bytes;
        }
    if (done && count) {
        batches->count = how_many(bytes, count, workers, least, most);
        share_out(list, count, load, batches->count);
        for (int i = 0; i < count; i++) {
            batches->kernel[i] = list[i].kernel;
            batches->first[list[i].batch + 1] = i + 1;
        }
        for (int b = 0; b < batches->count; b++) /* one without kernels, where some are much longer than others */
            if (batches->first[b + 1] < batches->first[b])
                batches->first[b + 1] = batches->first[b];
    }
    tn__free(list);
    tn__free(load);
    if (done)
        return TN_OK;
    tn__kernel_batches_free(batches);
    return tn__fail_memory("kernels", room * sizeof *list);
}

void tn__kernel_batches_free(tn__kernel_batches *batches)
{
    tn__free(batches->first);
    tn__free(batches->kernel);
    *batches = (tn__kernel_batches){0};
}

/* ---- files ---- */

tn_status tn__kernel_link(const tn__kernel_folder *folder, const char *name, const char *other)
{
    if (linkat(folder->file, name, folder->file, other, 0) == 0 || errno == EEXIST)
        return TN_OK;
    size_t length;
    char *data = tn__kernel_read(folder, name, &length);
    if (!data)
        return tn__fail(TN_ERR_COMPILE, "kernels", "cannot read %s/%s, which has just been written", folder->path,
                        name);
    tn_status status = tn__kernel_write(folder, other, data, length);
    tn__free(data);
    return status;
}

void tn__kernel_remove(const tn__kernel_folder *folder, const char *name) { unlinkat(folder->file, name, 0); }

tn__kernel_file *tn__kernel_file_of(const tn__kernel_folder *folder, const char *name, tn__kernel_file *list,
                                    int *count)
{
    struct stat info;
    if (fstatat(folder->file, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return NULL;
    for (int i = 0; i < *count; i++)
        if (list[i].device == (uint64_t)info.st_dev && list[i].inode == (uint64_t)info.st_ino)
            return &list[i];
    list[*count] = (tn__kernel_file){.device = (uint64_t)info.st_dev, .inode = (uint64_t)info.st_ino};
    return &list[(*count)++];
}

/* ---- progress ---- */

enum { BAR = 30 };
#define PATIENCE 2.0 /* seconds */
#define STEP     0.2 /* seconds from one drawing of the bar to the next */

static bool on_terminal(void) { return isatty(STDERR_FILENO) == 1; }

void tn__kernel_progress_tell(tn__kernel_progress *progress, const char *what)
{
    double seconds = tn__seconds() - progress->began;
    if (seconds < PATIENCE || seconds - progress->drawn < STEP || (progress->told && !on_terminal()) ||
        !tn__log_shows(TN__LOG_NOTE))
        return;
    progress->told = true;
    progress->drawn = seconds;
    if (!on_terminal()) {
        tn__log(TN__LOG_NOTE, "kernels", "compiling %d kernels for %s, which a program's first run waits for: %d are "
                "done after %.0f s", progress->all, what, progress->done, seconds);
        return;
    }
    char bar[BAR + 1];
    int full = progress->all ? progress->done * BAR / progress->all : 0;
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)full);
    bar[BAR] = 0;
    fprintf(stderr, "\r\033[Ktanso: compiling kernels for %s [%s] %d of %d, %.0f s", what, bar, progress->done,
            progress->all, seconds);
    fflush(stderr);
}

void tn__kernel_progress_end(tn__kernel_progress *progress)
{
    if (progress->told && on_terminal()) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    progress->told = false;
}
