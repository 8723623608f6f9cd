/* SPDX-License-Identifier: MIT */
#include "support/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <tanso/stream.h>
#include <unistd.h>

static tn_device chosen = {TN_DEVICE_CPU, 0};

__attribute__((constructor)) static void choose(void)
{
    const char *name = getenv("TANSO_TEST_DEVICE");
    if (!name || !*name)
        return;
    tn_status status;
    tn_device device = tn_device_parse(name, &status);
    if (status == TN_OK)
        status = tn_set_device(device);
    if (status != TN_OK) { /* to pass on the CPU would be a lie */
        fprintf(stderr, "TANSO_TEST_DEVICE: %s\n", tn_error());
        _exit(1);
    }
    chosen = device;
}

tn_device test_device(void) { return chosen; }

bool test_elsewhere(void) { return chosen.kind != TN_DEVICE_CPU; }

bool test_same_bits(void) { return chosen.kind == TN_DEVICE_CPU || chosen.kind == TN_DEVICE_VIRTUAL; }

bool test_about_cpu(const char *what)
{
    if (test_elsewhere())
        printf("skipped on %s: about the CPU: %s\n", tn_device_name(chosen), what);
    return test_elsewhere();
}

bool test_no_gpu(void)
{
    const char *why = "";
    bool none = !tn_device_available(tn_cuda(0), &why);
    if (none)
        printf("skipped: no GPU: %s\n", why);
    return none;
}

bool test_too_few(tn_device *on, int count)
{
    tn_device_kind kind = chosen.kind == TN_DEVICE_CUDA ? TN_DEVICE_CUDA : TN_DEVICE_VIRTUAL;
    bool few = tn_device_count(kind) < count;
    if (few)
        printf("skipped: there are not %d devices of this kind\n", count);
    for (int i = 0; i < count && !few; i++)
        on[i] = (tn_device){(short)kind, (short)i};
    return few;
}

tn_status test_eval(const tn_array *x)
{
    tn_status status = tn_eval(x);
    return status == TN_OK ? tn_synchronize(chosen) : status;
}
