/* SPDX-License-Identifier: MIT */
/* tanso info */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/command.h"
#include "device/device.h"
#include "tn_build_config.h"

#define COLUMN 12

static const struct {
    const char *name;
    bool have;
    const char *text;
} features[] = {
#define ROW(feature, is_there, about) {#feature, is_there, about},
    TN_BUILD_FEATURES(ROW)
#undef ROW
};

static void row(const char *head) { printf("%-*s", COLUMN, head); }

static void build(void)
{
    row("version");
    printf("%s\n", tn_version());
    row("build");
    printf("%s for %s by %s\n", TN_BUILD_TYPE, TN_BUILD_SYSTEM, TN_BUILD_COMPILER);
    row("");
    printf("%s\n", TN_BUILD_FLAGS);
    for (int i = 0; i < TN__COUNT_OF(features); i++) {
        row(i ? "" : "options");
        printf("%-8s %-4s %s\n", features[i].name, features[i].have ? "yes" : "no", features[i].text);
    }
}

#define GIB (1024.0 * 1024 * 1024)

/* A device's line: what `about` says of it, else what it says of itself. */
static void device(tn_device which, const char *about)
{
    printf("%-10s ", tn_device_name(which));
    if (*about) {
        printf("%s\n", about);
        return;
    }
    tn_device_info info = tn_device_properties(which);
    printf("%s%s%.1f GiB of memory", info.product, *info.product ? ", " : "", (double)info.memory / GIB);
    if (info.memory_free)
        printf(", %.1f free", (double)info.memory_free / GIB);
    if (info.capability)
        printf("; compute capability %d.%d, %d multiprocessors", info.capability / 10, info.capability % 10,
               info.multiprocessors);
    if (info.driver)
        printf("; driver for CUDA %d.%d, NVRTC %d.%d", info.driver / 1000, info.driver % 1000 / 10,
               info.compiler / 1000, info.compiler % 1000 / 10);
    putchar('\n');
}

/* What a device does without: a line each. */
static void missing(tn_device which)
{
    tn__device *opened = tn__device_get(which);
    const char *text;
    for (int i = 0; opened && opened->ops->missing && (text = opened->ops->missing(opened, i)); i++) {
        row("");
        printf("%-10s %s\n", i ? "" : "missing", text);
    }
}

/* Every device of every kind, and for kinds of which there is none, why. */
static void devices(void)
{
    static const struct {
        tn_device_kind kind;
        const char *name, *about;
    } kinds[] = {
        {TN_DEVICE_CPU, "cpu", ""},
        {TN_DEVICE_CUDA, "cuda", ""},
        {TN_DEVICE_VIRTUAL, "virtual", "parts of the CPU as devices of their own, for tests"},
        {TN_DEVICE_NULL, "null", "computes shapes only, for tests"},
    };
    for (int i = 0; i < TN__COUNT_OF(kinds); i++) {
        const char *why = "";
        int count = tn_device_count(kinds[i].kind);
        row(i ? "" : "devices");
        if (count == 0) {
            tn_device_available((tn_device){(short)kinds[i].kind, 0}, &why);
            printf("%-10s absent: %s\n", kinds[i].name, why ? why : "");
            continue;
        }
        for (int j = 0; j < count; j++) {
            if (j)
                row("");
            device((tn_device){(short)kinds[i].kind, (short)j}, kinds[i].about);
        }
        if (!*kinds[i].about)
            missing((tn_device){(short)kinds[i].kind, 0});
    }
    row("default");
    printf("%s\n", tn_device_name(tn_device_best()));
    row("threads");
    printf("%d\n", tn_threads());
}

/* nftw has no argument for its callback. */
static struct {
    long files;
    double bytes;
} found;

static int count_file(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)path, (void)place;
    if (kind == FTW_F) {
        found.files++;
        found.bytes += (double)info->st_size;
    }
    return 0;
}

/* Takes over the path. */
static void cache(const char *head, const char *what, char *path)
{
    row(head);
    if (!path) {
        printf("%-14s none: %s\n", what, tn__error_text("info"));
        tn_clear_error();
        return;
    }
    memset(&found, 0, sizeof found);
    printf("%-14s %s: ", what, path);
    if (nftw(path, count_file, 8, FTW_PHYS) != 0)
        printf("%s\n", errno == ENOENT ? "empty" : strerror(errno));
    else
        printf("%ld file%s, %.1f MB%s\n", found.files, found.files == 1 ? "" : "s", found.bytes / 1e6,
               access(path, W_OK) != 0 ? ", cannot be written to" : "");
    tn_string_free(path);
}

static void compiler(void)
{
    char *path = tn_kernel_compiler();
    row("compiler");
    if (path)
        printf("%s, for kernels\n", path);
    else
        printf("none: %s; the reference evaluator runs everything, slower\n", tn__error_text("info"));
    tn_clear_error();
    tn_string_free(path);
}

static int run(const tn__options *options)
{
    (void)options;
    build();
    devices();
    compiler();
    cache("caches", "kernels", tn_kernel_cache());
    cache("", "mnist", tn_data_cache("mnist"));
    cache("", "fashion-mnist", tn_data_cache("fashion-mnist"));
    const char *data = getenv("TANSO_DATA");
    row("TANSO_DATA");
    printf("%s\n", data && *data ? data : "not set");
    return TN__EXIT_DONE;
}

const tn__command tn__command_info = {
    .name = "info",
    .arguments = "",
    .summary = "show version, build, devices, caches",
    .text = "Shows the version, how this tanso was built, every kind of device and why one is absent, threads,\n"
            "the compiler of kernels, and the caches with their sizes.",
    .examples = "  tanso info\n",
    .run = run,
};
