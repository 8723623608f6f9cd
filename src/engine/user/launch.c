/* SPDX-License-Identifier: MIT */
/*
 * Raw kernels of users: arrays become addresses, and the device starts the function. Values are immutable for everybody
 * else, so an array that the kernel writes gets memory that only its handle holds.
 */
#include "device/launch.h"

#include <string.h>

#include "array/build_parts.h"
#include "core/memory.h"
#include "core/options.h"
#include "engine/engine.h"
#include "engine/users.h"

/* The argument's node with a value in C order, on the one device; an error node. */
static tn__node *ready(const tn_kernel *kernel, const tn_arg *arg, tn__device **device)
{
    tn__node *node = tn__strong(tn__node_of(arg->array, kernel->name));
    TN__PASS_ERROR(node);
    if (*device && node->device != *device)
        TN__REFUSE(TN_ERR_DEVICE, kernel->name, "arguments are on %s and %s, expected one device; move one with tn_to",
                   (*device)->name, node->device->name);
    *device = node->device;
    if (tn__evaluate(1, &node) != TN_OK)
        return tn__failed();
    if (!node->strides)
        return node;
    node = tn__apply(TN__OP_COPY, (tn_dtype)node->dtype, node->shape, 1, &node, (tn__attr){.raw = {0}});
    return tn__evaluate(1, &node) == TN_OK ? node : tn__failed();
}

/* Memory of its own for an array that is to be written: its own, where nobody else holds it, else a copy. */
static tn__node *own_memory(tn_array *x, tn__node *node)
{
    if (tn__array_node(x) == node && node->op == TN__OP_VALUE &&
        __atomic_load_n(&node->references, __ATOMIC_ACQUIRE) == 1 && atomic_load(&node->storage->references) == 1 &&
        !node->storage->release) {
        node->attr = (tn__attr){.raw = {0}}; /* what was known of its elements */
        return node;
    }
    size_t itemsize = tn_dtype_size((tn_dtype)node->dtype);
    tn__storage *storage = tn__storage_new(node->device, (size_t)node->shape->size * itemsize);
    if (!storage)
        return tn__failed();
    tn__node *fresh = tn__node_value(storage, (tn_dtype)node->dtype, node->shape, 0, NULL);
    const char *from = (const char *)node->storage->memory + node->offset * (int64_t)itemsize;
    tn_status status = TN_OK;
    if (node->shape->size)
        status = tn__storage_copy(storage, 0, node->storage, from, storage->bytes);
    tn__storage_release(storage);
    if (status != TN_OK)
        return tn__failed();
    TN__PASS_ERROR(fresh);
    tn__array_set(x, fresh);
    node = tn__array_node(x);
    return node->storage ? node : tn__failed();
}

/* An array that is written gets other memory where somebody else holds its own: then only that counts. */
static bool read_alone(const tn_args *args, const tn_arg *arg)
{
    for (int k = 0; k < args->count; k++)
        if (args->arg[k].written && args->arg[k].array == arg->array)
            return false;
    return !arg->written;
}

/* The argument's bytes, and of an array where they are; false with a latched failure. */
static bool fill(const tn_kernel *kernel, const tn_args *args, tn__launch *launch, int k, tn__device **device,
                 tn__storage **storage)
{
    const tn_arg *arg = &args->arg[k];
    if (arg->dtype) {
        launch->dtype[k] = arg->dtype;
        launch->value[k] = tn_dtype_is_float(arg->dtype) ? tn__scalar_from_double(arg->number.real, arg->dtype)
                                                         : tn__scalar_from_int(arg->number.whole, arg->dtype);
        if (arg->dtype == TN_INT64 || arg->dtype == TN_UINT64)
            launch->value[k].i = arg->number.whole;
        return true;
    }
    tn__node *node = ready(kernel, arg, device);
    if (!tn__node_is_error(node) && arg->written)
        node = own_memory((tn_array *)arg->array, node);
    if (tn__node_is_error(node))
        return tn__error_raise(node->error), false;
    *storage = arg->written || read_alone(args, arg) ? node->storage : NULL;
    launch->value[k].bits = (uintptr_t)node->storage->memory +
                            (uintptr_t)(node->offset * (int64_t)tn_dtype_size(node->dtype));
    return true;
}

static bool geometry(const tn_kernel *kernel, const tn_launch_opts *opts, tn__launch *launch)
{
    static const char *const field[] = {"grid", "block"};
    for (int k = 0; k < 2; k++) {
        if ((k ? opts->block : opts->grid)[0] == 0 && tn__option_written(opts->_, field[k])) {
            tn__fail(TN_ERR_VALUE, kernel->name, "a %s of 0: expected 1 or more; launch nothing where there is no work",
                     field[k]);
            return false;
        }
    }
    for (int d = 0; d < 3; d++) {
        if (opts->grid[d] < 0 || opts->block[d] < 0 || opts->shared < 0) {
            tn__fail(TN_ERR_VALUE, kernel->name,
                     "a grid of (%d, %d, %d), blocks of (%d, %d, %d) and %d bytes: expected no negative number",
                     opts->grid[0], opts->grid[1], opts->grid[2], opts->block[0], opts->block[1], opts->block[2],
                     opts->shared);
            return false;
        }
        launch->grid[d] = opts->grid[d] ? (unsigned)opts->grid[d] : 1;
        launch->block[d] = opts->block[d] ? (unsigned)opts->block[d] : 1;
    }
    launch->shared = (unsigned)opts->shared;
    return true;
}

/* What did not compile, with its lines, and the language that it is in, which the arguments' device decides. */
static tn_status explain(const tn_kernel *kernel, const tn__device *device)
{
    tn_status status = tn__error_status(tn__error_last());
    if (status != TN_ERR_COMPILE)
        return status;
    tn__text text = {0};
    tn__source_listing(kernel->name, kernel->source, &text);
    const char *language = device->id.kind == TN_DEVICE_CUDA ? "CUDA C, with an extern \"C\" __global__" : "C, with a";
    tn__text_addf(&text, "\non %s the source is %s function %s", device->name, language, kernel->name);
    char *more = tn__text_take(&text);
    if (more)
        status = tn__fail_explained(more);
    tn__free(more);
    return status;
}

/* Behind the streams that used the arrays, which are noted as used by this one. Handles hold them meanwhile, or the
 * call's temporaries. */
static tn_status start(tn__device *device, const tn__launch *l, const tn_args *args, tn__storage *const *storage)
{
    tn_status status = TN_OK;
    for (int k = 0; k < args->count && status == TN_OK; k++)
        if (storage[k])
            status = tn__use_begin(device, &storage[k]->use, args->arg[k].written);
    if (status != TN_OK)
        return status;
    status = device->ops->launch(device, l);
    for (int k = 0; k < args->count; k++)
        if (storage[k])
            tn__use_end(device, &storage[k]->use, args->arg[k].written);
    return status;
}

static tn_status launch(const tn_kernel *kernel, tn_args args, const tn_launch_opts *opts)
{
    tn_status status = tn__kernel_check(kernel, "tn_launch", true);
    if (status != TN_OK)
        return status;
    if (args.count < 0 || args.count > TN__LAUNCH_ARGS)
        return tn__fail(TN_ERR_VALUE, kernel->name, "got %d arguments, expected at most %d", args.count,
                        TN__LAUNCH_ARGS);
    if (args.count && !args.arg)
        return tn__fail(TN_ERR_VALUE, kernel->name, "expected %d arguments, got NULL", args.count);
    tn__launch l = {.source = kernel->source, .name = kernel->name, .count = args.count};
    tn__device *device = NULL;
    tn__storage *storage[TN__LAUNCH_ARGS] = {NULL};
    if (!geometry(kernel, opts, &l))
        return TN_ERR_VALUE;
    for (int k = 0; k < args.count; k++)
        if (!fill(kernel, &args, &l, k, &device, &storage[k]))
            return tn__error_status(tn__error_last());
    if (!device && !(device = tn__device_current()))
        return tn__error_status(tn__error_last());
    if (!device->ops->launch)
        return tn__fail(TN_ERR_UNSUPPORTED, kernel->name, "%s runs no raw kernels: use the CPU or a GPU", device->name);
    status = start(device, &l, &args, storage);
    return status == TN_OK ? TN_OK : explain(kernel, device);
}

tn_status tn_launch_with(const tn_kernel *kernel, tn_args args, const tn_launch_opts *opts)
{
    static const tn_launch_opts defaults;
    tn__call call = tn__enter();
    tn_status status = launch(kernel, args, opts ? opts : &defaults);
    tn__leave(call);
    return status;
}
