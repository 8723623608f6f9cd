/* SPDX-License-Identifier: MIT */
/* Rows about files of arrays, which lie in the system's cache of pages: reading them beside read() alone, the rate that
 * is there. */
#include "measure.h"

#include <fcntl.h>
#include <unistd.h>

enum { COUNT = 20000000 };
static const size_t bytes = COUNT * sizeof(float);
static char folder[] = "/tmp/bench-files-XXXXXX";

static const char *at(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static tn_array *from_archive(const char *name)
{
    tn_archive *archive = tn_archive_load(at(name));
    tn_array *x = tn_archive_find(archive, "x");
    double sum = x ? tn_item(tn_index(x, 0)) : 0;
    tn_archive_free(archive);
    return tn_scalar(sum);
}

/* read() alone, into memory that has been touched. */
static tn_array *plain(void)
{
    static char *memory;
    if (!memory && (memory = malloc(bytes + 4096)))
        memset(memory, 1, bytes + 4096);
    int file = open(at("x.npy"), O_RDONLY);
    size_t done = 0;
    for (ssize_t got = 1; memory && file >= 0 && got > 0; done += got > 0 ? (size_t)got : 0)
        got = read(file, memory + done, bytes + 4096 - done);
    if (file >= 0)
        close(file);
    return tn_scalar((double)done);
}

static tn_array *load_npy(void) { return tn_load_npy(at("x.npy")); }
static tn_array *map_npy(void) { return tn_map_npy(at("x.npy")); }
static tn_array *map_and_sum(void) { return tn_sum(tn_map_npy(at("x.npy"))); }
static tn_array *load_npz(void) { return from_archive("x.npz"); }
static tn_array *load_compressed(void) { return from_archive("c.npz"); }
static tn_array *load_safetensors(void) { return from_archive("x.safetensors"); }
static tn_array *load_csv(void) { return tn_load_csv(at("x.csv")); }

/* `moved`: how often the array's bytes are read or written. */
static const struct row {
    const char *row, *work;
    tn_array *(*run)(void);
    double moved;
} rows[] = {
    {"file-read", "read() of 80 MB", plain, 2},
    {"npy-load", "tn_load_npy, 2e7 float32", load_npy, 2},
    {"npy-map", "tn_map_npy, 2e7 float32", map_npy, 0},
    {"npy-map-sum", "tn_map_npy and the sum, 2e7 float32", map_and_sum, 1},
    {"npz-load", "tn_archive_load of .npz, 2e7 float32", load_npz, 2},
    {"npz-load-deflated", "the same, compressed: 2e7 small whole numbers", load_compressed, 2},
    {"safetensors-load", "tn_archive_load of .safetensors, 2e7 float32", load_safetensors, 2},
    {"csv-load", "tn_load_csv, 2e5 x 10 numbers", load_csv, 0},
};

static bool make_files(void)
{
    tn_array *x = tn_random_normal(TN_SHAPE(COUNT)), *whole = tn_floor(tn_multiply(x, 100));
    tn_archive *plain_one = tn_archive_new(), *small_one = tn_archive_new();
    tn_archive_add(plain_one, "x", x);
    tn_archive_add(small_one, "x", whole);
    bool made = mkdtemp(folder) && tn_save_npy(x, at("x.npy")) == TN_OK &&
                tn_archive_save(plain_one, at("x.npz")) == TN_OK &&
                tn_archive_save(small_one, at("c.npz"), .compressed = true) == TN_OK &&
                tn_archive_save(plain_one, at("x.safetensors")) == TN_OK &&
                tn_save_csv(tn_reshape(tn_slice_axis(x, 0, 0, 2000000, 1), TN_SHAPE(200000, 10)), at("x.csv")) == TN_OK;
    tn_archive_free(plain_one);
    tn_archive_free(small_one);
    return made;
}

static void remove_files(void)
{
    static const char *const names[] = {"x.npy", "x.npz", "c.npz", "x.safetensors", "x.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(at(names[i]));
    rmdir(folder);
}

static void run(void *context, bool last)
{
    const struct row *row = context;
    TN_SCOPE {
        (void)!tn_eval(row->run()); /* a failure is latched */
    }
    (void)last;
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    bool made = false;
    if (b.device.kind != TN_DEVICE_CPU) /* where files are read to */
        return 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!wanted(&b, rows[i].row))
            continue;
        if (!made)
            TN_SCOPE made = make_files();
        timing t = measure(&b, run, (void *)&rows[i], 5e-3);
        report(&b, (row_facts){.row = rows[i].row, .work = rows[i].work, .bytes = rows[i].moved * (double)bytes}, t);
    }
    if (made)
        remove_files();
    return 0;
}
