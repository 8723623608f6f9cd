/* SPDX-License-Identifier: MIT */
/*
 * What the programs of this folder share: timing by repetition, their flags, and the line of JSON that each row is. A
 * repetition is made of so many calls that it lasts long enough for the clock; the least and the median time of a call
 * are reported, since on a busy machine the least is what the work takes and the median what was had.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso.h>
#include <time.h>

typedef struct bench {
    tn_device device;
    double budget;     /* seconds for a row */
    const char *only;  /* rows whose name has this in it; NULL: all */
    bool list;         /* only print the rows' names */
} bench;

typedef struct timing {
    double best, median; /* seconds a call */
    int repetitions;
} timing;

/* What a row is, for the table; zero where it does not apply. */
typedef struct row_facts {
    const char *row, *work;
    double bytes, operations; /* the least that must be moved, done */
    const char *unit;         /* default "s" */
    const char *note;
} row_facts;

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

enum { MOST_REPETITIONS = 4000 };

static inline timing timing_of(double *seconds, int count)
{
    qsort(seconds, (size_t)count, sizeof *seconds, by_value);
    return (timing){.best = seconds[0], .median = seconds[count / 2], .repetitions = count};
}

/* One call of the work; `last` is true at the end of a repetition, where what is still under way must be waited for. */
typedef void (*work_fn)(void *context, bool last);

static inline double repetition(work_fn work, void *context, int calls)
{
    double began = now();
    for (int i = 0; i < calls; i++)
        work(context, i == calls - 1);
    return (now() - began) / calls;
}

/* Calls until kernels are compiled and memory is there, then repetitions of at least `shortest` seconds. */
static inline timing measure(const bench *b, work_fn work, void *context, double shortest)
{
    double seconds[MOST_REPETITIONS];
    for (int i = 0; i < 4 && tn_ok(); i++)
        work(context, true);
    int calls = 1, count = 0;
    double once = repetition(work, context, calls);
    if (once < shortest)
        calls = (int)(shortest / (once > 1e-9 ? once : 1e-9)) + 1;
    double began = now();
    while (tn_ok() && count < MOST_REPETITIONS && (count < 3 || now() - began < b->budget))
        seconds[count++] = repetition(work, context, calls);
    return count ? timing_of(seconds, count) : (timing){0};
}

static inline bool wanted(const bench *b, const char *row)
{
    if (b->list) {
        puts(row);
        return false;
    }
    return !b->only || strstr(row, b->only);
}

/* Prints a row, or why there is none; forgets the error. */
static inline void report(const bench *b, row_facts facts, timing t)
{
    printf("{\"row\": \"%s\", \"by\": \"tanso\", \"device\": \"%s\", \"work\": \"%s\", ", facts.row,
           tn_device_name(b->device), facts.work);
    if (!tn_ok()) {
        printf("\"failed\": \"");
        for (const char *c = tn_error(); *c; c++)
            if ((unsigned char)*c >= ' ')
                printf(*c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
        printf("\"}\n");
        tn_clear_error();
    } else {
        printf("\"unit\": \"%s\", \"best\": %.9g, \"median\": %.9g, \"repetitions\": %d, \"bytes\": %.0f, "
               "\"operations\": %.0f, \"note\": \"%s\"}\n",
               facts.unit ? facts.unit : "s", t.best, t.median, t.repetitions, facts.bytes, facts.operations,
               facts.note ? facts.note : "");
    }
    fflush(stdout);
}

/* Waits until what was asked of x's device is done. */
static inline void settle(const tn_array *x)
{
    (void)!tn_synchronize(tn_device_of(x)); /* a failure is latched */
}

/* Reads the flags; exits with status 2 on a wrong one. */
static inline bench bench_flags(int argc, char **argv)
{
    bench b = {.budget = 1.5};
    const char *device = "cpu";
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--device") && more)
            device = argv[++i];
        else if (!strcmp(argv[i], "--only") && more)
            b.only = argv[++i];
        else if (!strcmp(argv[i], "--seconds") && more)
            b.budget = atof(argv[++i]);
        else if (!strcmp(argv[i], "--list"))
            b.list = true;
        else {
            fprintf(stderr, "usage: %s [--device NAME] [--only PART_OF_A_ROW'S_NAME] [--seconds EACH_ROW] [--list]\n",
                    argv[0]);
            exit(2);
        }
    }
    tn_status status;
    b.device = tn_device_parse(device, &status);
    if (status != TN_OK || tn_set_device(b.device) != TN_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], tn_error());
        exit(2);
    }
    return b;
}

#endif
