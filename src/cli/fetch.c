/* SPDX-License-Identifier: MIT */
/* tanso data fetch */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/command.h"

static const tn__flag flags[] = {
    {"--quiet", NULL, "say nothing but errors", TN__FLAG_SWITCH, .offset = offsetof(tn__options, quiet)},
};

/* The line that grows on a terminal. */
typedef struct progress {
    bool terminal;
    int64_t shown; /* tenths of a megabyte */
    char file[64];
} progress;

static void show(const char *file, int64_t done, int64_t total, void *user)
{
    progress *p = user;
    if (strncmp(p->file, file, sizeof p->file - 1) != 0) {
        if (p->terminal && *p->file)
            fputc('\n', stderr);
        snprintf(p->file, sizeof p->file, "%s", file);
        p->shown = -1;
        if (!p->terminal)
            fprintf(stderr, "fetching %s\n", file);
    }
    if (!p->terminal || p->shown == done / 100000)
        return;
    p->shown = done / 100000;
    fprintf(stderr, "\r\033[K%s  %.1f", file, (double)done / 1e6);
    if (total > 0)
        fprintf(stderr, " of %.1f", (double)total / 1e6);
    fprintf(stderr, " MB");
}

static int run(const tn__options *options)
{
    for (int i = 0; i < options->count; i++) { /* a wrong name is said before anything is fetched */
        char *folder = tn_data_cache(options->arguments[i]);
        tn_string_free(folder);
        if (!folder)
            return tn__library_error("data fetch");
    }
    for (int i = 0; i < options->count; i++) {
        const char *name = options->arguments[i];
        progress p = {.terminal = isatty(STDERR_FILENO)};
        tn_status status = tn_data_fetch(name, options->quiet ? NULL : show, &p);
        if (p.terminal && *p.file)
            fputc('\n', stderr);
        if (status != TN_OK)
            return tn__library_error("data fetch");
        char *folder = tn_data_cache(name);
        if (folder && !options->quiet)
            printf("%s is in %s\n", name, folder);
        tn_string_free(folder);
    }
    return TN__EXIT_DONE;
}

const tn__command tn__command_fetch = {
    .name = "data fetch",
    .arguments = "DATASET...",
    .summary = "download mnist, fashion-mnist, kmnist, cifar10, cifar100, svhn or ptb",
    .text = "Downloads datasets into the cache, $XDG_CACHE_HOME/tanso (~/.cache/tanso). Files that are there\n"
            "are kept, an interrupted download is gone on with, checksums are verified. Files in the folder\n"
            "$TANSO_DATA are used before those; $TANSO_MIRROR names another place to download from.",
    .examples = "  tanso data fetch mnist\n"
                "  TANSO_MIRROR=file:///mnt/datasets tanso data fetch mnist fashion-mnist\n",
    .flags = flags,
    .flag_count = TN__COUNT_OF(flags),
    .least = 1,
    .most = 1 << 30,
    .run = run,
};
