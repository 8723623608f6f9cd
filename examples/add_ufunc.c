/* SPDX-License-Identifier: MIT */
/*
 * A plain C function of two numbers as a function of arrays, with arrays that are on the device already and a result
 * that is written into an existing one; timed, beside the library's own addition and a copy.
 */
#include <stdio.h>
#include <tanso.h>
#include <time.h>

TN_UFUNC(float, add_ufunc, (float x, float y), { return x + y; })

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tn_kernel *f;

typedef tn_array *operation(tn_array *x, tn_array *y, tn_array *out);

static tn_array *by_ufunc(tn_array *x, tn_array *y, tn_array *out) { return tn_call(f, TN_ARGS(x, y), .out = out); }

static tn_array *by_library(tn_array *x, tn_array *y, tn_array *out) { return tn_write(out, tn_add(x, y), NULL); }

/* Seconds of a call whose result is waited for, and of one of many that follow each other. */
static void measure(const char *name, operation *run, tn_array *x, tn_array *y, tn_array *out)
{
    enum { CALLS = 200 };
    double one = 1, start;
    for (int i = 0; i < 20; i++) TN_SCOPE {
        start = seconds();
        if (tn_eval(run(x, y, out)) || tn_synchronize(tn_device_of(out)))
            return;
        if (seconds() - start < one)
            one = seconds() - start;
    }
    start = seconds();
    for (int i = 0; i < CALLS; i++)
        TN_SCOPE
            if (tn_eval(run(x, y, out)))
                return;
    if (tn_synchronize(tn_device_of(out)))
        return;
    double many = (seconds() - start) / CALLS;
    printf("%-12s %8.2f us alone, %8.2f us in a row, %6.1f GB/s\n", name, 1e6 * one, 1e6 * many,
           1e-9 * 12 * (double)tn_size(x) / many);
}

int main(void)
{
    tn_device device = tn_device_best();
    if (tn_set_device(device))
        return 1;
    TN_SCOPE {
        tn_array *x = tn_arange(0, 100000, 1, .dtype = TN_FLOAT32), *y = tn_multiply(x, 2);
        tn_array *out = tn_empty(TN_SHAPE(100000));
        if (tn_eval(x) || tn_eval(y))
            break;

        f = tn_vectorize(add_ufunc, .identity = "0");
        tn_call(f, TN_ARGS(x, y), .out = out);
        tn_print(out);
        tn_print(tn_ufunc_reduce(f, tn_reshape(tn_slice_axis(x, 0, 0, 12, 1), TN_SHAPE(3, 4))));
        tn_print(tn_ufunc_accumulate(f, tn_slice_axis(x, 0, 0, 6, 1)));
        tn_print(tn_ufunc_outer(f, tn_slice_axis(x, 0, 0, 2, 1), tn_slice_axis(x, 0, 0, 3, 1)));

        printf("100,000 elements on %s:\n", tn_device_name(device));
        measure("add_ufunc", by_ufunc, x, y, out);
        measure("tn_add", by_library, x, y, out);
    }
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return !tn_ok();
}
