/* SPDX-License-Identifier: MIT */
/*
 * Users' raw kernels on the CPU: a C source is compiled with one function appended to it, which takes the arguments
 * from a table and calls the user's function, so that the compiler checks and converts them.
 */
#include "device/launch.h"

#include <pthread.h>
#include <string.h>

#include "backends/cpu/base/step.h"
#include "backends/cpu/jit/module.h"
#include "backends/cpu/launch.h"
#include "core/error.h"
#include "core/memory.h"

#define ENTRY "tn_launched"

/* A loaded kernel, found by source, name and kinds of arguments; it stays until the process ends. */
typedef struct launched {
    tn__launch like;
    tn__cpu_module *module;
    tn__cpu_kernel kernel;
    struct launched *next;
} launched;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static launched *first;

static launched *find(const tn__launch *l)
{
    launched *at = first;
    while (at && (at->like.source != l->source || at->like.name != l->name || at->like.count != l->count ||
                  memcmp(at->like.dtype, l->dtype, sizeof l->dtype) != 0))
        at = at->next;
    return at;
}

static char *text_of(const tn__launch *l)
{
    tn__text text = {0};
    tn__text_addf(&text, "#line 1 \"%s\"\n%s\n#line 1 \"the call of %s\"\n", l->name, l->source, l->name);
    tn__text_addf(&text,
                  "void " ENTRY "(void *const *tn_p, const long long *tn_n, const unsigned long long *tn_s, long long "
                  "tn_begin, long long tn_end, long long *tn_fault)\n{\n    %s(",
                  l->name);
    for (int k = 0; k < l->count; k++) {
        static const char *const types[TN_DTYPE_COUNT] = {
            [TN_BOOL] = "_Bool",           [TN_INT8] = "signed char",      [TN_INT16] = "short",
            [TN_INT32] = "int",            [TN_INT64] = "long long",       [TN_UINT8] = "unsigned char",
            [TN_UINT16] = "unsigned short", [TN_UINT32] = "unsigned int",  [TN_UINT64] = "unsigned long long",
            [TN_FLOAT32] = "float",        [TN_FLOAT64] = "double"};
        if (l->dtype[k])
            tn__text_addf(&text, "%s*(const %s *)&tn_s[%d]", k ? ", " : "", types[l->dtype[k]], k);
        else
            tn__text_addf(&text, "%stn_p[%d]", k ? ", " : "", k);
    }
    tn__text_add(&text, ");\n}\n");
    return tn__text_take(&text);
}

static tn_status load(const tn__launch *l, launched **made)
{
    launched *fresh = tn__calloc(1, sizeof *fresh);
    char *text = fresh ? text_of(l) : NULL;
    tn_status status = text ? tn__cpu_module_load(text, 1, (const char *[]){ENTRY}, &fresh->module)
                            : tn__fail_memory(l->name, sizeof *fresh);
    tn__free(text);
    if (status != TN_OK) {
        tn__free(fresh);
        return status;
    }
    fresh->like = *l;
    fresh->kernel = tn__cpu_module_kernel(fresh->module, ENTRY);
    pthread_mutex_lock(&lock);
    fresh->next = first;
    *made = first = fresh; /* if two threads load the same kernel, there are two entries of one module */
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

tn_status tn__cpu_launch(tn__device *device, const tn__launch *l)
{
    (void)device;
    pthread_mutex_lock(&lock);
    launched *entry = find(l);
    pthread_mutex_unlock(&lock);
    tn_status status = entry ? TN_OK : load(l, &entry);
    if (status != TN_OK)
        return status;
    void *pointer[TN__LAUNCH_ARGS];
    uint64_t number[TN__LAUNCH_ARGS];
    for (int k = 0; k < l->count; k++) {
        number[k] = l->value[k].bits;
        pointer[k] = (void *)(uintptr_t)l->value[k].bits;
    }
    int64_t fault[2] = {0, 0};
    entry->kernel(pointer, NULL, number, 0, 1, fault);
    return TN_OK;
}

__attribute__((destructor)) static void free_all(void)
{
    for (launched *at = first, *next; at; at = next) {
        next = at->next;
        tn__cpu_module_release(at->module);
        tn__free(at);
    }
    first = NULL;
}
