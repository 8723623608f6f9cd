/* SPDX-License-Identifier: MIT */
/* The array interface of NumPy and, for a GPU's memory, of CUDA (Numba's "CUDA Array Interface (Version 3)"). */
#include <tanso/exchange.h>

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "io/bytes.h"
#include "io/formats.h"
#include "io/wrap.h"

tn_status tn_array_interface_of(const tn_array *x, tn_array_interface *description)
{
    if (!description)
        return tn__fail_null("array_interface", "a tn_array_interface to fill in");
    tn__lending lending;
    tn_status status = tn__lend("array_interface", x, &lending);
    if (status != TN_OK)
        return status;
    const char *code = tn__npy_code(lending.dtype);
    size_t itemsize = tn_dtype_size(lending.dtype);
    *description =
        (tn_array_interface){.version = 3, .ndim = lending.shape->ndim, .data = lending.memory, .read_only = true};
    for (int d = 0; d < lending.shape->ndim; d++) {
        description->shape[d] = lending.shape->dim[d];
        description->strides[d] = lending.stride[d] * (int64_t)itemsize;
    }
    if (code)
        snprintf(description->typestr, sizeof description->typestr, "%c%s",
                 itemsize == 1     ? '|'
                 : TN__HOST_LITTLE ? '<'
                                   : '>',
                 code);
    tn__storage_release(lending.storage); /* x holds it */
    return code ? TN_OK
                : tn__fail(TN_ERR_DTYPE, "array_interface", "%s has no typestr: cast the array to float32 first",
                           tn_dtype_name(lending.dtype));
}

static void add_list(tn__text *text, const char *key, int count, const int64_t *values)
{
    tn__text_addf(text, "\"%s\": [", key);
    for (int i = 0; i < count; i++)
        tn__text_addf(text, "%s%lld", i ? ", " : "", (long long)values[i]);
    tn__text_add(text, "], ");
}

char *tn_array_interface_json(const tn_array *x)
{
    tn_array_interface a;
    if (tn_array_interface_of(x, &a) != TN_OK)
        return NULL;
    tn__text text = {0};
    tn__text_add(&text, "{");
    add_list(&text, "shape", a.ndim, a.shape);
    tn__text_addf(&text, "\"typestr\": \"%s\", \"data\": [%llu, true], ", a.typestr,
                  (unsigned long long)(uintptr_t)a.data);
    add_list(&text, "strides", a.ndim, a.strides);
    tn__text_addf(&text, "\"version\": %d, \"stream\": null}", a.version);
    char *string = tn__text_take(&text);
    if (!string)
        tn__fail_memory("array_interface", 0);
    return string;
}
