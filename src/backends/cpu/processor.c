/* SPDX-License-Identifier: MIT */
/* The processor's identity: from its own instructions where it has some for that, else from the system. */
#include "backends/cpu/processor.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

static void add_leaf(tn__text *text, unsigned leaf, unsigned part, bool (*keep)(int))
{
    unsigned r[4] = {0};
    if (!__get_cpuid_count(leaf, part, &r[0], &r[1], &r[2], &r[3]))
        return;
    for (int i = 0; i < 4; i++)
        if (keep == NULL || keep(i))
            tn__text_addf(text, "%x ", r[i]);
}

/* Register ebx of leaf 1 tells which core is running. */
static bool not_ebx(int i)
{
    return i != 1;
}

static void add_processor(tn__text *text)
{
    add_leaf(text, 0, 0, NULL);
    add_leaf(text, 1, 0, not_ebx);
    add_leaf(text, 7, 0, NULL);
    add_leaf(text, 7, 1, NULL);
    add_leaf(text, 0x80000001u, 0, not_ebx);
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & bit_OSXSAVE)) { /* the vector registers that the system saves */
        unsigned low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        tn__text_addf(text, "%x %x ", low, high);
    }
}
#else
/* The lines of /proc/cpuinfo that do not change from moment to moment. */
static void add_processor(tn__text *text)
{
    static const char *const keys[] = {"CPU implementer", "CPU variant", "CPU part", "Features", "isa", "cpu"};
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[1024];
    while (file && fgets(line, sizeof(line), file) && line[0] != '\n')
        for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
            if (strncmp(line, keys[i], strlen(keys[i])) == 0)
                tn__text_add(text, line);
    if (file)
        fclose(file);
}
#endif

void tn__processor_identity(tn__text *text)
{
    struct utsname system;
    if (uname(&system) == 0)
        tn__text_addf(text, "%s ", system.machine);
    add_processor(text);
}
