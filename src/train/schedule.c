/* SPDX-License-Identifier: MIT */
/* The table of schedules. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>
#include "core/error.h"

static double constant(double done)
{
    (void)done;
    return 1;
}

static double linear(double done) { return 1 - done; }

/* Loshchilov and Hutter 2017, without restarts. */
static double cosine(double done) { return (1 + cos(M_PI * done)) / 2; }

static const tn__schedule schedules[] = {{"constant", constant}, {"linear", linear}, {"cosine", cosine}};
enum { COUNT = sizeof schedules / sizeof *schedules };

const tn__schedule *tn__schedule_find(const char *name)
{
    const char *names[COUNT];
    for (int i = 0; i < COUNT; i++) {
        if (strcmp(schedules[i].name, name) == 0)
            return &schedules[i];
        names[i] = schedules[i].name;
    }
    const char *near = tn__nearest_name(name, names, COUNT);
    tn__fail(TN_ERR_NAME, "train", "there is no schedule '%s': %s%s%s", name,
             near ? "did you mean '" : "expected constant, linear or ", near ? near : "cosine", near ? "'?" : "");
    return NULL;
}
