/* SPDX-License-Identifier: MIT */
/*
 * Folds of users' functions along an axis: reduce and accumulate in NumPy's order, one element after another, for
 * functions of which nothing more is known. The source of a raw kernel is made around the function's text or address.
 */
#include <stdio.h>
#include <string.h>

#include "array/build_parts.h"
#include "array/vectorize.h"
#include "core/memory.h"
#include "engine/engine.h"
#include "ops/dialect.h"
#include <tanso/array.h>
#include <tanso/vectorize.h>

/* ---- the source ---- */

/* x of shape (outer, n, inner); the result is x's shape, or (outer, inner). On a GPU a thread takes every so-manieth
 * row. */
static const char loops[] =
    "#if defined(__CUDACC__) || defined(__CUDACC_RTC__)\n"
    "#define TN_ENTRY extern \"C\" __global__ void\n"
    "#define TN_FIRST blockIdx.x * (tn_i64)blockDim.x + threadIdx.x\n"
    "#define TN_STEP gridDim.x * (tn_i64)blockDim.x\n"
    "#else\n"
    "#define TN_ENTRY void\n"
    "#define TN_FIRST 0\n"
    "#define TN_STEP 1\n"
    "#endif\n"
    "TN_ENTRY %s(const %s *x, %s *y, tn_i64 outer, tn_i64 n, tn_i64 inner, tn_u64 function)\n"
    "{\n"
    "    for (tn_i64 row = TN_FIRST; row < outer * inner; row += TN_STEP) {\n"
    "        const tn_i64 at = row / inner * n * inner + row %% inner;\n"
    "        %s a = x[at];\n"
    "        %s\n"
    "        for (tn_i64 k = 1; k < n; k++) {\n"
    "            a = %s(a, x[at + k * inner]);\n"
    "            %s\n"
    "        }\n"
    "        %s\n"
    "    }\n"
    "}\n";

static tn_kernel *make_fold(const tn_kernel *f, bool every)
{
    const tn__signature *s = f->signature;
    const char *type = tn__dtypes[s->result].ctype;
    char name[TN__USER_NAME], call[128];
    tn__text text = {0};
    snprintf(name, sizeof name, "%.*s_%s", TN__USER_NAME - 8, s->name, every ? "scan" : "fold");
    if (s->body)
        snprintf(call, sizeof call, "%s", s->name);
    else
        snprintf(call, sizeof call, "((%s (*)(%s, %s))function)", type, type, type);
    tn__dialect_add(&text, TN__DIALECT_TYPES | TN__DIALECT_REAL | TN__DIALECT_USER);
    tn__text_add(&text, f->source);
    tn__text_addf(&text, loops, name, type, type, type, every ? "y[at] = a;" : "", call,
                  every ? "y[at + k * inner] = a;" : "", every ? "" : "y[row] = a;");
    char *source = tn__text_take(&text);
    tn_kernel *kernel = source ? tn_raw_kernel(source, name) : NULL;
    if (!source)
        tn__fail_memory(f->name, 0);
    tn__free(source);
    return kernel;
}

/* Made once for each function: its text is long. */
static const tn_kernel *fold_of(const tn_kernel *f, bool every)
{
    tn_kernel *_Atomic *place = &((tn_kernel *)f)->fold[every];
    tn_kernel *kernel = atomic_load(place);
    if (!kernel && (kernel = make_fold(f, every)) && tn_kernel_status(kernel) == TN_OK)
        atomic_store(place, kernel);
    return kernel;
}

/* ---- folding ---- */

static bool foldable(const tn_kernel *f, const char *operation)
{
    if (tn__kernel_check(f, operation, false) != TN_OK)
        return false;
    const tn__signature *s = f->signature;
    if (s && s->count == 2 && s->dtype[0] == s->result && s->dtype[1] == s->result)
        return true;
    tn__fail(TN_ERR_VALUE, operation,
             "'%s' cannot be applied to its own results: expected a function by tn_vectorize of two arguments "
             "and a result of one type",
             f->name);
    return false;
}

static tn__node *empty(const char *operation, tn_dtype dtype, tn_shape shape, tn__device *device)
{
    const tn__shape *interned = tn__shape_make(operation, shape, dtype);
    tn__storage *storage = interned ? tn__storage_new(device, (size_t)interned->size * tn_dtype_size(dtype)) : NULL;
    if (!storage)
        return tn__failed();
    tn__node *node = tn__node_value(storage, dtype, interned, 0, NULL);
    tn__storage_release(storage);
    return node;
}

/* The fold of x, of the function's dtype, along an axis: a value. */
static tn__node *fold(const tn_kernel *f, tn__node *x, int axis, bool every)
{
    const tn__shape *shape = x->shape;
    tn_shape result = tn__shape_value(shape);
    long long outer = 1, inner = 1, n = shape->dim[axis];
    for (int d = 0; d < axis; d++)
        outer *= shape->dim[d];
    for (int d = axis + 1; d < shape->ndim; d++)
        inner *= shape->dim[d];
    if (!every)
        result.dim[axis] = 1;
    tn__node *y = empty(f->name, f->signature->result, result, x->device);
    const tn_kernel *kernel = fold_of(f, every);
    if (tn__node_is_error(y) || !kernel || tn_kernel_status(kernel) != TN_OK)
        return tn__failed();
    if (outer * inner == 0 || n == 0)
        return y;
    tn_array *from = tn__array_own_new(x), *to = tn__array_own_new(y);
    long long blocks = (outer * inner + 255) / 256;
    tn_status status =
        tn_launch_with(kernel,
                       (tn_args){6,
                                 (tn_arg[]){tn__arg_array(from), tn__arg_array(to), tn__arg_i64(outer), tn__arg_i64(n),
                                            tn__arg_i64(inner), tn__arg_u64((uintptr_t)f->function)}},
                       &(tn_launch_opts){.grid = {(int)(blocks > 65535 ? 65535 : blocks)}, .block = {256}});
    tn__array_free_kept(from);
    tn__array_free_kept(to);
    return status == TN_OK ? y : tn__failed();
}

static tn__node *tree(const tn_kernel *f, tn__node *x, int axis)
{
    const char *type = tn_dtype_name(f->signature->result), *name = f->signature->name;
    tn__text input = {0}, output = {0}, combine = {0};
    tn__text_addf(&input, "%s x", type);
    tn__text_addf(&output, "%s y", type);
    tn__text_addf(&combine, "%s(a, b)", name);
    const tn_kernel *kernel = NULL;
    if (input.failed || output.failed || combine.failed)
        tn__fail_memory(name, 0);
    else
        kernel = tn_reduction_with(input.data, output.data, "x", combine.data, "y = a", f->identity, name,
                                   &(tn_kernel_opts){.preamble = f->source});
    tn__free(input.data);
    tn__free(output.data);
    tn__free(combine.data);
    if (!kernel || tn__kernel_check(kernel, "tn_ufunc_reduce", false) != TN_OK)
        return tn__failed();
    return tn__user_reduce(kernel, 1, &x, &(tn__user_wish){.device = x->device}, (tn_axes){1, {axis}});
}

static tn__node *along(const tn_kernel *f, const char *operation, const tn_array *x, const tn_ufunc_reduce_opts *opts,
                       bool every)
{
    tn__node *in = tn__node_of(x, operation);
    TN__PASS_ERROR(in);
    if (!foldable(f, operation))
        return tn__failed();
    int axis = tn__axis_check(operation, opts->axis, in->shape->ndim);
    if (axis < 0)
        return tn__failed();
    in = tn__cast(tn__strong(in), f->signature->result);
    TN__PASS_ERROR(in);
    if (f->function && in->device->capabilities.target != TN__TARGET_C)
        TN__REFUSE(TN_ERR_UNSUPPORTED, f->name,
                   "the function is known by its address only, which %s cannot call: define it with TN_UFUNC",
                   in->device->name);
    bool identity = f->identity && *f->identity && !f->function;
    if (!every && !identity && in->shape->dim[axis] == 0)
        TN__REFUSE(TN_ERR_SHAPE, operation, "axis %d has extent 0, and '%s' has no identity: give one to tn_vectorize",
                   axis, f->signature->name);
    tn__node *y = !every && identity ? tree(f, in, axis) : fold(f, in, axis, every);
    TN__PASS_ERROR(y);
    return every || opts->keepdims ? y : tn__drop_axes(y, 1u << axis);
}

static tn_array *run(const tn_kernel *f, const char *operation, const tn_array *x, const tn_ufunc_reduce_opts *opts,
                     bool every)
{
    static const tn_ufunc_reduce_opts defaults;
    opts = opts ? opts : &defaults;
    tn__call call = tn__enter();
    tn__node *y = along(f, operation, x, opts, every);
    if (!opts->out || tn__node_is_error(y))
        return tn__leave_array(call, y);
    y = tn__assignable(operation, tn__strong(tn__node_of(opts->out, operation)), y);
    if (tn__node_is_error(y))
        return tn__leave_array(call, y);
    tn__array_set(opts->out, y);
    tn__leave(call);
    return opts->out;
}

tn_array *tn_ufunc_reduce_with(const tn_kernel *f, const tn_array *x, const tn_ufunc_reduce_opts *opts)
{
    return run(f, "tn_ufunc_reduce", x, opts, false);
}

tn_array *tn_ufunc_accumulate_with(const tn_kernel *f, const tn_array *x, const tn_ufunc_reduce_opts *opts)
{
    return run(f, "tn_ufunc_accumulate", x, opts, true);
}
