/* SPDX-License-Identifier: MIT */
/* The processor's identity: from its own instructions where it has some for that, else from the system. */
#include "backends/cpu/base/processor.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

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

/* What comes after `key` and a colon in a file of such lines, without white space around it: "" if there is none. */
static void value_of(const char *path, const char *key, char *value, size_t size)
{
    FILE *file = fopen(path, "re");
    char line[1024];
    *value = 0;
    while (file && !*value && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, key, strlen(key)) == 0) {
            colon += 1 + strspn(colon + 1, " \t");
            snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        }
    }
    if (file)
        fclose(file);
}

void tn__processor_describe(tn__device *device, tn_device_info *info)
{
    (void)device;
    char available[64];
    unsigned long long kilobytes = 0;
    value_of("/proc/cpuinfo", "model name", info->product, sizeof info->product);
    value_of("/proc/meminfo", "MemAvailable", available, sizeof available);
    if (sscanf(available, "%llu kB", &kilobytes) == 1)
        info->memory_free = (size_t)kilobytes * 1024;
#ifdef _SC_LEVEL3_CACHE_SIZE
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    info->cache = cache > 0 ? (size_t)cache : 0;
#endif
}
