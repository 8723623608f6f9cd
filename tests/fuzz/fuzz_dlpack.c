/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the fields of a DLPack tensor over a block of memory: an array whose elements all lie in addresses that
 * its own fields claim, or a latched error; the tensor is given back once, or not at all.
 */
#include <string.h>
#include <tanso/array.h>
#include <tanso/engine.h>
#include <tanso/exchange.h>

#define BLOCK 4096

static int deleted;
static void count_delete(tn_dlpack *self) { deleted += self != NULL; }

/* Whether every element lies in the block, by the claim itself: only then may it be read. */
static bool inside(const tn_dl_tensor *t)
{
    if (t->ndim < 0 || t->ndim > TN_MAX_NDIM || t->byte_offset > BLOCK)
        return false;
    __int128 last = 0, dense = 1;
    for (int d = t->ndim - 1; d >= 0; d--) {
        if (t->shape[d] <= 0)
            return false;
        last += (__int128)(t->shape[d] - 1) * (t->strides ? t->strides[d] : dense);
        dense *= t->shape[d];
        if (last > BLOCK || last < 0 || dense > BLOCK)
            return false;
    }
    return t->byte_offset + (uint64_t)(last + 1) * (t->dtype.bits / 8) <= BLOCK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static _Alignas(64) char block[BLOCK];
    struct {
        int32_t ndim, device, id;
        tn_dl_dtype dtype;
        uint64_t offset;
        int64_t shape[12], strides[12];
        uint8_t has_strides, has_data, has_shape;
    } claim = {0};
    memcpy(&claim, data, size < sizeof claim ? size : sizeof claim);
    tn_dlpack tensor = {.deleter = count_delete,
                        .tensor = {.data = claim.has_data & 1 ? NULL : block, .device = {claim.device, claim.id},
                                   .ndim = claim.ndim, .dtype = claim.dtype, .byte_offset = claim.offset,
                                   .shape = claim.has_shape & 1 ? NULL : claim.shape,
                                   .strides = claim.has_strides & 1 ? claim.strides : NULL}};
    deleted = 0;
    tn_scope_push();
    tn_array *x = tn_from_dlpack(&tensor);
    bool error = tn_is_error(x);
    if (error == tn_ok())
        __builtin_trap();
    if (!error && tensor.tensor.data && tensor.tensor.shape && inside(&tensor.tensor) && tn_size(x) <= BLOCK) {
        static char copy[8 * BLOCK];
        if (tn_to_host(x, copy, sizeof copy) != TN_OK)
            __builtin_trap();
    }
    tn_scope_pop();
    if (deleted != !error)
        __builtin_trap();
    tn_clear_error();
    return 0;
}
