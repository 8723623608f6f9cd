/* SPDX-License-Identifier: MIT */
/* DLPack tensors (the structures of version 1 of its specification), both ways. */
#include <tanso/exchange.h>

#include "core/memory.h"
#include "io/wrap.h"

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_OPAQUE, DL_BFLOAT, DL_COMPLEX, DL_BOOL };

static const tn_dl_dtype dtypes[TN_DTYPE_COUNT] = {
    [TN_BOOL] = {DL_BOOL, 8, 1},      [TN_INT8] = {DL_INT, 8, 1},       [TN_INT16] = {DL_INT, 16, 1},
    [TN_INT32] = {DL_INT, 32, 1},     [TN_INT64] = {DL_INT, 64, 1},     [TN_UINT8] = {DL_UINT, 8, 1},
    [TN_UINT16] = {DL_UINT, 16, 1},   [TN_UINT32] = {DL_UINT, 32, 1},   [TN_UINT64] = {DL_UINT, 64, 1},
    [TN_FLOAT16] = {DL_FLOAT, 16, 1}, [TN_BFLOAT16] = {DL_BFLOAT, 16, 1}, [TN_FLOAT32] = {DL_FLOAT, 32, 1},
    [TN_FLOAT64] = {DL_FLOAT, 64, 1}, [TN_COMPLEX64] = {DL_COMPLEX, 64, 1}, [TN_COMPLEX128] = {DL_COMPLEX, 128, 1},
};

/* ---- to others ---- */

/* One allocation: either kind of tensor, with what it needs. */
typedef struct lent {
    union {
        tn_dlpack old;
        tn_dlpack_versioned versioned;
    };
    tn__storage *storage;
    int64_t shape[TN_MAX_NDIM], stride[TN_MAX_NDIM];
    bool copied;
} lent;

static void give_back(lent *l)
{
    tn__storage_release(l->storage);
    tn__free(l);
}

static void delete_old(tn_dlpack *self) { give_back(self->manager); }
static void delete_versioned(tn_dlpack_versioned *self) { give_back(self->manager); }

static tn_status name_device(const tn__device *device, tn_dl_device *named)
{
    *named = (tn_dl_device){device->id.kind == TN_DEVICE_CPU ? DL_CPU : DL_CUDA, device->id.index};
    if (device->id.kind == TN_DEVICE_CPU || device->id.kind == TN_DEVICE_CUDA)
        return TN_OK;
    return tn__fail(TN_ERR_DEVICE, "to_dlpack",
                    "DLPack has no name for the device %s: move the array to the CPU with tn_to", device->name);
}

static lent *lend(const tn_array *x, tn_dl_tensor *tensor)
{
    tn__lending lending;
    if (tn__lend_forward("to_dlpack", x, &lending) != TN_OK) /* DLPack's readers refuse negative strides, as here */
        return NULL;
    lent *l = tn__calloc(1, sizeof *l);
    tn_status status =
        l ? name_device(lending.storage->device, &tensor->device) : tn__fail_memory("to_dlpack", sizeof *l);
    if (status == TN_OK && !dtypes[lending.dtype].bits)
        status = tn__fail(TN_ERR_DTYPE, "to_dlpack", "DLPack has no dtype %s", tn_dtype_name(lending.dtype));
    if (status != TN_OK) {
        tn__storage_release(lending.storage);
        tn__free(l);
        return NULL;
    }
    l->storage = lending.storage;
    l->copied = lending.copied;
    for (int d = 0; d < lending.shape->ndim; d++) {
        l->shape[d] = lending.shape->dim[d];
        l->stride[d] = lending.stride[d];
    }
    tensor->data = lending.memory;
    tensor->ndim = lending.shape->ndim;
    tensor->dtype = dtypes[lending.dtype];
    tensor->shape = l->shape;
    tensor->strides = l->stride;
    return l;
}

tn_dlpack *tn_to_dlpack(const tn_array *x)
{
    tn_dl_tensor tensor = {0};
    lent *l = lend(x, &tensor);
    if (!l)
        return NULL;
    l->old = (tn_dlpack){.tensor = tensor, .manager = l, .deleter = delete_old};
    return &l->old;
}

tn_dlpack_versioned *tn_to_dlpack_versioned(const tn_array *x)
{
    tn_dl_tensor tensor = {0};
    lent *l = lend(x, &tensor);
    if (!l)
        return NULL;
    l->versioned = (tn_dlpack_versioned){.version = {1, 0}, .manager = l, .deleter = delete_versioned,
                                         .flags = TN_DLPACK_READ_ONLY | (l->copied ? TN_DLPACK_COPIED : 0),
                                         .tensor = tensor};
    return &l->versioned;
}

/* ---- from others ---- */

static tn_status find_dtype(const tn_dl_tensor *t, tn_dtype *dtype)
{
    for (int d = 1; d < TN_DTYPE_COUNT; d++)
        if (dtypes[d].bits && dtypes[d].code == t->dtype.code && dtypes[d].bits == t->dtype.bits &&
            t->dtype.lanes == 1) {
            *dtype = (tn_dtype)d;
            return TN_OK;
        }
    return tn__fail(TN_ERR_DTYPE, "from_dlpack",
                    "a dtype of code %d, %d bits and %d lanes: expected one lane of bool, integers, floats or bfloat16",
                    t->dtype.code, t->dtype.bits, t->dtype.lanes);
}

static tn_status find_device(const tn_dl_tensor *t, tn_device *device)
{
    bool cuda = t->device.type == DL_CUDA || t->device.type == DL_CUDA_MANAGED;
    if (!cuda && t->device.type != DL_CPU && t->device.type != DL_CUDA_HOST)
        return tn__fail(TN_ERR_DEVICE, "from_dlpack",
                        "memory of device type %d: expected that of the CPU (1, 3) or of a GPU (2, 13)",
                        (int)t->device.type);
    if (cuda && (t->device.id < 0 || t->device.id > INT16_MAX))
        return tn__fail(TN_ERR_DEVICE, "from_dlpack", "GPU number %d: expected 0 or more", (int)t->device.id);
    *device = cuda ? (tn_device){TN_DEVICE_CUDA, (short)t->device.id} : (tn_device){TN_DEVICE_CPU, 0};
    return TN_OK;
}

static tn_status check_layout(const tn_dl_tensor *t, tn__lent *l)
{
    if (t->ndim < 0 || t->ndim > TN_MAX_NDIM)
        return tn__fail(TN_ERR_SHAPE, "from_dlpack", "%d axes: expected 0 to %d", (int)t->ndim, TN_MAX_NDIM);
    if (t->ndim && !t->shape)
        return tn__fail(TN_ERR_VALUE, "from_dlpack", "%d axes, and no shape", (int)t->ndim);
    l->shape.ndim = t->ndim;
    for (int d = 0; d < t->ndim; d++) {
        l->shape.dim[d] = t->shape[d];
        if (t->strides && t->strides[d] < 0 && t->shape[d] > 1)
            return tn__fail(TN_ERR_VALUE, "from_dlpack",
                            "axis %d has the negative stride %lld: copy the tensor to C order before it is handed over",
                            d, (long long)t->strides[d]);
    }
    if (t->byte_offset > INT64_MAX / 4)
        return tn__fail(TN_ERR_VALUE, "from_dlpack", "an offset of %llu bytes reaches beyond all addresses",
                        (unsigned long long)t->byte_offset);
    l->strides = t->ndim ? t->strides : NULL;
    l->memory = t->data ? (char *)t->data + t->byte_offset : NULL;
    return TN_OK;
}

static tn_array *borrow(const tn_dl_tensor *t, void (*release)(void *, void *), void *user)
{
    tn__call call = tn__enter();
    tn__lent l = {.release = release, .user = user};
    if (find_dtype(t, &l.dtype) != TN_OK || find_device(t, &l.device) != TN_OK || check_layout(t, &l) != TN_OK)
        return tn__leave_error(call);
    return tn__leave_array(call, tn__wrap("from_dlpack", &l));
}

static void release_old(void *user, void *memory)
{
    tn_dlpack *tensor = user;
    (void)memory;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

static void release_versioned(void *user, void *memory)
{
    tn_dlpack_versioned *tensor = user;
    (void)memory;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

static tn_array *refuse(tn_status status)
{
    (void)status;
    return tn__failed_array();
}

tn_array *tn_from_dlpack(tn_dlpack *tensor)
{
    if (!tensor)
        return refuse(tn__fail(TN_ERR_VALUE, "from_dlpack", "the tensor is NULL"));
    return borrow(&tensor->tensor, release_old, tensor);
}

tn_array *tn_from_dlpack_versioned(tn_dlpack_versioned *tensor)
{
    if (!tensor)
        return refuse(tn__fail(TN_ERR_VALUE, "from_dlpack", "the tensor is NULL"));
    if (tensor->version.major != 1) /* whose other fields may lie anywhere */
        return refuse(tn__fail(TN_ERR_UNSUPPORTED, "from_dlpack", "a tensor of DLPack version %u.%u: expected 1",
                               (unsigned)tensor->version.major, (unsigned)tensor->version.minor));
    return borrow(&tensor->tensor, release_versioned, tensor);
}
