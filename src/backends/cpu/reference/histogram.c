/* SPDX-License-Identifier: MIT */
/*
 * HISTOGRAM: how many elements lie between ascending edges. An element's bin is guessed as if the edges were equally
 * far from one another, and searched for where the guess is wrong. Elements and edges are compared by keys in their
 * order, as in sorting. Each thread counts for itself; whole numbers add up to the same in any order.
 */
#include <stdatomic.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/step.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/scalar.h"

typedef struct histogram_run histogram_run;

typedef struct histogram_data {
    void (*count)(const histogram_run *run, int64_t begin, int64_t end, int64_t *counts);
    uint64_t (*key)(const char *at);
    double (*value)(const char *at);
    int64_t n, bins;
    int64_t to_step, edges_step, from_step; /* strides in bytes */
} histogram_data;

struct histogram_run {
    const histogram_data *data;
    const char *from;
    char *to;
    uint64_t *edge;               /* the edges' keys */
    double first, bins_a_unit;
    _Atomic bool no_memory;
};

static int64_t bin_of(const histogram_run *run, uint64_t key, double value)
{
    const uint64_t *edge = run->edge;
    int64_t bins = run->data->bins;
    double guess = (value - run->first) * run->bins_a_unit;
    int64_t bin = guess >= 0 ? (guess < (double)bins ? (int64_t)guess : bins - 1) : 0;
    if (edge[bin] <= key && key < edge[bin + 1])
        return bin;
    if (key < edge[0] || key > edge[bins])
        return -1;
    int64_t low = 0, high = bins; /* edge[low] <= key; edge[high] is above it, or the last one */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (edge[middle] <= key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* KEY and VALUE of an element's bits x. */
#define COUNT(s, S, KEY, VALUE) \
    static uint64_t key_##s(const char *at) \
    { \
        S x = *(const S *)at; \
        return KEY; \
    } \
    static double value_##s(const char *at) \
    { \
        S x = *(const S *)at; \
        return VALUE; \
    } \
    static void count_##s(const histogram_run *run, int64_t begin, int64_t end, int64_t *counts) \
    { \
        const char *at = run->from + begin * run->data->from_step; \
        for (int64_t i = begin; i < end; i++, at += run->data->from_step) { \
            int64_t bin = bin_of(run, key_##s(at), value_##s(at)); \
            if (bin >= 0) \
                counts[bin]++; \
        } \
    }
/* A float's bits as a sign and a magnitude; zeros of either sign are equal, NaN comes last. */
#define COUNT_FLOAT(s, S, infinity, VALUE) \
    static uint64_t order_##s(S x) \
    { \
        const S top = (S)((S)1 << (8 * sizeof(S) - 1)), size = (S)(x & (S)(top - 1)); \
        return size > (infinity) ? UINT64_MAX : x & top ? (uint64_t)(S)(top - size) : (uint64_t)top + size; \
    } \
    COUNT(s, S, order_##s(x), VALUE)

COUNT(u8, uint8_t, x, x)
COUNT(u16, uint16_t, x, x)
COUNT(u32, uint32_t, x, x)
COUNT(u64, uint64_t, x, (double)x)
COUNT(i8, int8_t, (uint64_t)x ^ (uint64_t)1 << 63, x)
COUNT(i16, int16_t, (uint64_t)x ^ (uint64_t)1 << 63, x)
COUNT(i32, int32_t, (uint64_t)x ^ (uint64_t)1 << 63, x)
COUNT(i64, int64_t, (uint64_t)x ^ (uint64_t)1 << 63, (double)x)
COUNT_FLOAT(f16, uint16_t, 0x7c00u, tn_f16_to_f32(x))
COUNT_FLOAT(bf16, uint16_t, 0x7f80u, tn_bf16_to_f32(x))
COUNT_FLOAT(f32, uint32_t, 0x7f800000u, tns_f32_bits(x))
COUNT_FLOAT(f64, uint64_t, 0x7ff0000000000000ull, tns_f64_bits(x))

#define ENTRY(dtype, s) [dtype] = {.count = count_##s, .key = key_##s, .value = value_##s}
static const histogram_data of_dtype[TN_DTYPE_COUNT] = {
    ENTRY(TN_BOOL, u8),    ENTRY(TN_INT8, i8),      ENTRY(TN_INT16, i16),    ENTRY(TN_INT32, i32),
    ENTRY(TN_INT64, i64),  ENTRY(TN_UINT8, u8),     ENTRY(TN_UINT16, u16),   ENTRY(TN_UINT32, u32),
    ENTRY(TN_UINT64, u64), ENTRY(TN_FLOAT16, f16),  ENTRY(TN_BFLOAT16, bf16), ENTRY(TN_FLOAT32, f32),
    ENTRY(TN_FLOAT64, f64)};

static void some_elements(void *context, int64_t begin, int64_t end)
{
    histogram_run *run = context;
    const histogram_data *data = run->data;
    int64_t *counts = tn__calloc((size_t)data->bins, sizeof *counts);
    if (!counts) {
        run->no_memory = true;
        return;
    }
    data->count(run, begin, end, counts);
    for (int64_t i = 0; i < data->bins; i++)
        if (counts[i])
            __atomic_fetch_add((int64_t *)(run->to + i * data->to_step), counts[i], __ATOMIC_RELAXED);
    tn__free(counts);
}

static tn_status run_histogram(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    const histogram_data *data = step->data;
    char *base[3];
    tn__cpu_addresses(step, 3, buffers, base);
    for (int64_t i = 0; i < data->bins; i++)
        *(int64_t *)(base[0] + i * data->to_step) = 0;
    if (data->bins == 0 || data->n == 0)
        return TN_OK;
    size_t bytes = (size_t)(data->bins + 1) * sizeof(uint64_t);
    histogram_run run = {.data = data, .from = base[2], .to = base[0], .edge = tn__alloc(bytes)};
    if (!run.edge)
        return tn__fail_memory("histogram", bytes);
    for (int64_t i = 0; i <= data->bins; i++)
        run.edge[i] = data->key(base[1] + i * data->edges_step);
    run.first = data->value(base[1]);
    run.bins_a_unit = (double)data->bins / (data->value(base[1] + data->bins * data->edges_step) - run.first);
    /* to add up a thread's counters costs about as much as to count elements */
    tn__cpu_for(data->n, data->n / data->bins < 64 ? 1 : 8, some_elements, &run);
    tn__free(run.edge);
    return run.no_memory ? tn__fail_memory("histogram", (size_t)data->bins * sizeof(int64_t)) : TN_OK;
}

tn_status tn__cpu_prepare_histogram(tn__cpu_step *step)
{
    const tn__operand *operand = step->step->operand;
    tn_dtype dtype = operand[1].dtype;
    if (!of_dtype[dtype].count || operand[0].ndim != 1 || operand[2].ndim != 1)
        return tn__cpu_no_such_operation(step);
    histogram_data *data = tn__calloc(1, sizeof *data);
    if (!data)
        return tn__fail_memory("load", sizeof *data);
    *data = of_dtype[dtype];
    data->n = operand[2].dim[0];
    data->bins = operand[0].dim[0];
    data->to_step = operand[0].stride[0] * (int64_t)sizeof(int64_t);
    data->edges_step = operand[1].stride[0] * tn__dtypes[dtype].size;
    data->from_step = operand[2].stride[0] * tn__dtypes[dtype].size;
    step->data = data;
    step->run = run_histogram;
    return TN_OK;
}
