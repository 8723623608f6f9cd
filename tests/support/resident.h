/* SPDX-License-Identifier: MIT */
/* How much memory this process has, for tests that want it flat. */
#ifndef TN_TESTS_RESIDENT_H
#define TN_TESTS_RESIDENT_H

#include <stdio.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { RESIDENT_SANITIZED = 1 }; /* whose own memory grows */
#else
enum { RESIDENT_SANITIZED = 0 };
#endif

/* Counted page by page, where the system does that: what statm says lags behind by up to 32 pages a processor. */
static inline long resident_kilobytes(void)
{
    long kilobytes = 0, pages = 0;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && kilobytes == 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "Rss: %ld kB", &kilobytes) != 1)
            kilobytes = 0;
    if (file)
        fclose(file);
    if (kilobytes > 0 || !(file = fopen("/proc/self/statm", "r")))
        return kilobytes;
    if (fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

#endif
