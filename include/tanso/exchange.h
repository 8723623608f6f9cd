/* SPDX-License-Identifier: MIT */
/*
 * Arrays from and for other software, without a copy: memory that others own (tn_wrap), DLPack tensors, and the array
 * interface of NumPy and CUDA.
 *
 * What is exchanged is memory, not an array's history: an array is computed before it is handed out, and on a GPU its
 * work is waited for, so that any stream may read it. Tanso's values are immutable: who gets an array's memory must not
 * write into it, and who lends memory must not write into it while arrays made from it, or results not yet computed,
 * are in use.
 *
 * A call about a GPU leaves that GPU's context current in its thread. Other software that goes by the current one, as
 * CUDA's run-time library does, names its device again (cudaSetDevice) where there are several.
 */
#ifndef TANSO_EXCHANGE_H
#define TANSO_EXCHANGE_H

#include <tanso/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory of others ---- */

typedef struct tn_wrap_opts {
    const char *_;
    const int64_t *strides; /* bytes between neighbours along each axis, as NumPy's; may be 0 or negative, and are
                               multiples of the item size. Default: C order */
    tn_device device;       /* whose memory it is; default: the CPU */
    /* Called once, in any thread, when no array needs the memory any more, with its lowest address. */
    void (*release)(void *user, void *memory);
    void *user;
} tn_wrap_opts;

/* An array in memory that someone else owns; `memory` is the address of element [0, 0, ...], aligned to the item size,
 * on the CPU that of a part of a complex number. Bytes of bools must be 0 or 1: nobody looks, as the owner may write
 * them later, and sums would count others as they are. On failure an error array; then the memory stays the caller's
 * and `release` is not called. */
TN_API tn_array *tn_wrap_with(void *memory, tn_shape shape, tn_dtype dtype, const tn_wrap_opts *opts);

/* ---- DLPack ---- */

/* The structures of the DLPack specification (dmlc.github.io/dlpack, "C API (dlpack.h)", version 1), field by field;
 * the names are Tanso's, so that dlpack.h may be included as well: cast the pointers. */
typedef struct tn_dl_device {
    int32_t type; /* 1 CPU, 2 CUDA, 3 CUDA host memory, 13 CUDA managed memory */
    int32_t id;
} tn_dl_device;

typedef struct tn_dl_dtype {
    uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool */
    uint8_t bits;
    uint16_t lanes;
} tn_dl_dtype;

typedef struct tn_dl_tensor {
    void *data;
    tn_dl_device device;
    int32_t ndim;
    tn_dl_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: C order */
    uint64_t byte_offset;
} tn_dl_tensor;

/* DLManagedTensor, what a capsule called "dltensor" holds. */
typedef struct tn_dlpack {
    tn_dl_tensor tensor;
    void *manager;
    void (*deleter)(struct tn_dlpack *self);
} tn_dlpack;

/* DLManagedTensorVersioned, what a capsule called "dltensor_versioned" holds. */
typedef struct tn_dlpack_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *manager;
    void (*deleter)(struct tn_dlpack_versioned *self);
    uint64_t flags; /* bit 0: read only; bit 1: a copy */
    tn_dl_tensor tensor;
} tn_dlpack_versioned;

#define TN_DLPACK_READ_ONLY UINT64_C(1)
#define TN_DLPACK_COPIED    UINT64_C(2)

/* x's memory, computed, as a tensor that lives until its deleter is called (in any thread), whatever becomes of x. NULL
 * with a latched error: x can't be computed, is on a device that DLPack has no name for, or there is no memory. The
 * versioned one says read only. Of a view that goes backwards it is a copy, as readers take no negative strides. */
TN_API tn_dlpack *tn_to_dlpack(const tn_array *x);
TN_API tn_dlpack_versioned *tn_to_dlpack_versioned(const tn_array *x);
/* An array in a tensor's memory; takes the tensor over, and calls its deleter when no array needs it any more. On
 * failure (a dtype, device or layout that Tanso does not have, negative strides among them) an error array; then the
 * tensor stays the caller's. The producer's work on a GPU must be done, or in front of this thread's stream
 * (tn_stream_native): CUDA's default stream is no such order. */
TN_API tn_array *tn_from_dlpack(tn_dlpack *tensor);
TN_API tn_array *tn_from_dlpack_versioned(tn_dlpack_versioned *tensor);

/* ---- the array interface ---- */

/* What NumPy's __array_interface__ and, on a GPU, __cuda_array_interface__ (version 3) say of an array. */
typedef struct tn_array_interface {
    int version;
    int ndim;
    int64_t shape[TN_MAX_NDIM], strides[TN_MAX_NDIM]; /* strides in bytes */
    char typestr[8];                                  /* "<f4" */
    void *data;
    bool read_only;                                   /* always true */
} tn_array_interface;

/* Computes x and describes its memory, which stays valid while x has this value. bfloat16, which has no typestr, is
 * TN_ERR_DTYPE. */
TN_API tn_status tn_array_interface_of(const tn_array *x, tn_array_interface *description) TN_MUST_CHECK;
/* The same as JSON, for Python's json.loads: {"shape": [2, 3], "typestr": "<f4", "data": [140..., true], "strides":
 * [12, 4], "version": 3, "stream": null}. A string for tn_string_free; NULL with a latched error. */
TN_API char *tn_array_interface_json(const tn_array *x);

#ifndef TN_NO_MACROS
#define tn_to_dlpack(x) TN_AT(tn_to_dlpack)(x)
#define tn_to_dlpack_versioned(x) TN_AT(tn_to_dlpack_versioned)(x)
#define tn_from_dlpack(tensor) TN_AT(tn_from_dlpack)(tensor)
#define tn_from_dlpack_versioned(tensor) TN_AT(tn_from_dlpack_versioned)(tensor)
#define tn_array_interface_of(x, description) TN_AT(tn_array_interface_of)(x, description)
#define tn_array_interface_json(x) TN_AT(tn_array_interface_json)(x)
#define tn_wrap(...) TN__CALL_VVV(tn_wrap_with, tn_wrap_opts, __VA_ARGS__, )
#endif

#ifdef __cplusplus
}
#endif
#endif
