/* SPDX-License-Identifier: MIT */
/*
 * Operations on whole rows of the last axis: sorting (sort.c), scans, searching (search.c). Rows are shared out to
 * threads.
 */
#include <stdatomic.h>
#include <string.h>

#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/step.h"
#include "backends/cpu/sort/network.h"
#include "backends/cpu/sort/search.h"
#include "backends/cpu/sort/sort.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/memory.h"
#include "ops/scalar.h"

#define SEARCH_COST 32 /* cost of a search for one value */

typedef struct rows_data rows_data;

/* A function that computes one row, from its operands' addresses, with scratch memory. */
typedef void (*row_function)(const rows_data *data, char *const *p, void *scratch);

typedef struct scan_functions {
    void (*row[4])(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n);
} scan_functions;

struct rows_data {
    row_function function;
    void (*scan)(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n);
    tn__cpu_search search;
    tn__cpu_space rest;   /* all axes but the last */
    int64_t count[3];     /* elements of a row of each operand */
    int64_t step[3];      /* strides along a row, in bytes */
    bool right;           /* SEARCH_RIGHT */
    bool searches;        /* SEARCH_LEFT, SEARCH_RIGHT */
    bool positions;       /* ARGSORT, ARGPARTITION, LARGEST */
    bool largest;         /* LARGEST */
    int64_t place;        /* the position that a partition is about; -1: the row is sorted */
    tn_dtype dtype;       /* of input 0 */
    size_t scratch;       /* bytes a thread needs */
    size_t scratch_together; /* bytes of scratch for rows that are sorted several at a time; 0: they are not */
};

typedef struct rows_run {
    const rows_data *data;
    char *base[3];
    _Atomic bool no_memory;
} rows_run;

/* ---- sorting ---- */

/* Bytes of the order (positions) of n elements, rounded up to whole cache lines. */
static size_t order_bytes(int64_t n) { return (size_t)(n + 7) / 8 * 64; }

static tn__cpu_sort_row sort_of(const rows_data *data, char *const *p)
{
    return (tn__cpu_sort_row){.dtype = data->dtype, .positions = data->positions, .n = data->count[1], .from = p[1],
                              .from_step = data->step[1], .to = p[0], .to_step = data->step[0]};
}

/* Finds the largest elements as the end of the sorted order, which is made at the beginning of the scratch memory. */
static void find_largest(const rows_data *data, char *const *p, void *scratch, int team)
{
    int64_t *order = scratch;
    tn__cpu_sort_row row = sort_of(data, p);
    row.to = scratch;
    row.to_step = sizeof *order;
    tn__cpu_sort(&row, (char *)scratch + order_bytes(row.n), team);
    for (int64_t i = 0; i < data->count[0]; i++)
        *(int64_t *)(p[0] + i * data->step[0]) = order[row.n - 1 - i];
}

static void sort_by_team(const rows_data *data, char *const *p, void *scratch, int team)
{
    const tn__cpu_sort_row row = sort_of(data, p);
    if (data->largest)
        find_largest(data, p, scratch, team);
    else if (data->place < 0)
        tn__cpu_sort(&row, scratch, team);
    else
        tn__cpu_select(&row, data->place, scratch, team);
}

static void sort_row(const rows_data *data, char *const *p, void *scratch) { sort_by_team(data, p, scratch, 1); }

static void sort_short_rows(const rows_data *data, tn__cpu_cursor *at, int64_t count, void *scratch)
{
    tn__cpu_sort_row row[TN__NETWORK_ROWS];
    while (count > 0) {
        int rows = 0;
        for (; rows < TN__NETWORK_ROWS && rows < count; rows++) {
            row[rows] = sort_of(data, at->p);
            tn__cpu_cursor_move(at, 1);
        }
        tn__cpu_sort_together(row, rows, scratch);
        count -= rows;
    }
}

/* ---- searching ---- */

static tn__cpu_search_row search_of(const rows_data *data, char *const *p)
{
    return (tn__cpu_search_row){.sorted = p[1], .sorted_step = data->step[1], .n = data->count[1], .values = p[2],
                                .values_step = data->step[2], .m = data->count[2], .right = data->right, .to = p[0],
                                .to_step = data->step[0]};
}

static void search_row(const rows_data *data, char *const *p, void *scratch)
{
    (void)scratch;
    const tn__cpu_search_row row = search_of(data, p);
    data->search(&row);
}

typedef struct values_run {
    const rows_data *data;
    const tn__cpu_search_row *row;
} values_run;

static void some_values(void *context, int64_t begin, int64_t end)
{
    const values_run *run = context;
    tn__cpu_search_row part = *run->row;
    part.values += begin * part.values_step;
    part.to += begin * part.to_step;
    part.m = end - begin;
    run->data->search(&part);
}

/* ---- positions of what is true, up to as many as the result has elements ---- */

static void nonzero_row(const rows_data *data, char *const *p, void *scratch)
{
    (void)scratch;
    for (int64_t i = 0, found = 0; i < data->count[1] && found < data->count[0]; i++)
        if (p[1][i * data->step[1]])
            *(int64_t *)(p[0] + found++ * data->step[0]) = i;
}

/* ---- scans: float16 and bfloat16 round after each step, as the results themselves do ---- */

#define SAME(x) (x)
#define SCAN(name, s, S, W, LOAD, STORE) \
    static void scan_##name##_##s(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) \
    { \
        W total = n ? (W)LOAD(*(const S *)from) : (W)0; \
        for (int64_t i = 0; i < n; i++) { \
            if (i) total = LOAD(STORE(TN__SCAN_##name(W, total, (W)LOAD(*(const S *)(from + i * from_step))))); \
            *(S *)(to + i * to_step) = (S)STORE(total); \
        } \
    }
#define NARROW_SCANS(name) \
    SCAN(name, b8, tn_u8, tn_u8, SAME, SAME) \
    SCAN(name, i8, tn_i8, tn_i8, SAME, (tn_i8)) \
    SCAN(name, i16, tn_i16, tn_i16, SAME, (tn_i16)) \
    SCAN(name, i32, tn_i32, tn_i32, SAME, (tn_i32)) \
    SCAN(name, i64, tn_i64, tn_i64, SAME, SAME) \
    SCAN(name, u8, tn_u8, tn_u8, SAME, (tn_u8)) \
    SCAN(name, u16, tn_u16, tn_u16, SAME, (tn_u16)) \
    SCAN(name, u32, tn_u32, tn_u32, SAME, (tn_u32)) \
    SCAN(name, u64, tn_u64, tn_u64, SAME, SAME) \
    SCAN(name, f16, tn_f16, tn_f32, tn_f16_to_f32, tn_f32_to_f16) \
    SCAN(name, bf16, tn_bf16, tn_f32, tn_bf16_to_f32, tn_f32_to_bf16) \
    SCAN(name, f64, tn_f64, tn_f64, SAME, SAME)
#define SCANS(name) NARROW_SCANS(name) SCAN(name, f32, tn_f32, tn_f32, SAME, SAME)
#define TN__SCAN_sum(W, a, b)     ((W)(a + b))
#define TN__SCAN_product(W, a, b) ((W)(a * b))
#define TN__SCAN_largest(W, a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define TN__SCAN_smallest(W, a, b) ((a) < (b) || (a) != (a) ? (a) : (b))
NARROW_SCANS(sum)
SCANS(product)
SCANS(largest)
SCANS(smallest)
/*
 * Sums of float32 and complex64 go on in 64 bits, of which each is rounded: a long one would swallow its terms. Four
 * are summed up by themselves before the total is added, as one addition waits for the one before. The first total is
 * -0, to which anything is added without a change.
 */
#define WIDE_SCAN(s, S, W) \
    static void scan_sum_##s(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) \
    { \
        W total = -(W)0; \
        int64_t i = 0; \
        for (; i + 4 <= n; i += 4, from += 4 * from_step, to += 4 * to_step) { \
            W one = *(const S *)from, two = one + *(const S *)(from + from_step), \
              three = two + *(const S *)(from + 2 * from_step), four = three + *(const S *)(from + 3 * from_step); \
            *(S *)to = (S)(total + one); \
            *(S *)(to + to_step) = (S)(total + two); \
            *(S *)(to + 2 * to_step) = (S)(total + three); \
            *(S *)(to + 3 * to_step) = (S)(total += four); \
        } \
        for (; i < n; i++, from += from_step, to += to_step) \
            *(S *)to = (S)(total += *(const S *)from); \
    }
WIDE_SCAN(f32, tn_f32, tn_f64)
WIDE_SCAN(c64, tn_c64, tn_c128)
SCAN(sum, c128, tn_c128, tn_c128, SAME, SAME)
/* Products of complex numbers as everywhere else: C's own makes infinities of what is NaN by the formula. */
#define TN__SCAN_c64(W, a, b)  tns_mul_c64(a, b)
#define TN__SCAN_c128(W, a, b) tns_mul_c128(a, b)
SCAN(c64, product, tn_c64, tn_c64, SAME, SAME)
SCAN(c128, product, tn_c128, tn_c128, SAME, SAME)

#define ENTRY(dtype, s) [dtype] = {{scan_sum_##s, scan_product_##s, scan_largest_##s, scan_smallest_##s}}
static const scan_functions scans[TN_DTYPE_COUNT] = {
    ENTRY(TN_BOOL, b8),   ENTRY(TN_INT8, i8),     ENTRY(TN_INT16, i16),   ENTRY(TN_INT32, i32),
    ENTRY(TN_INT64, i64),
    ENTRY(TN_UINT8, u8),  ENTRY(TN_UINT16, u16),  ENTRY(TN_UINT32, u32),  ENTRY(TN_UINT64, u64),
    ENTRY(TN_FLOAT16, f16),
    ENTRY(TN_BFLOAT16, bf16), ENTRY(TN_FLOAT32, f32), ENTRY(TN_FLOAT64, f64),
    [TN_COMPLEX64] = {{scan_sum_c64, scan_c64_product}}, [TN_COMPLEX128] = {{scan_sum_c128, scan_c128_product}}};

static void scan_row(const rows_data *data, char *const *p, void *scratch)
{
    (void)scratch;
    data->scan(p[0], data->step[0], p[1], data->step[1], data->count[0]);
}

/* ---- steps ---- */

static const struct {
    int op;
    row_function function;
    int scan;     /* row of scan_functions; -1: none */
    bool scratch; /* needs scratch memory for sorting */
} operations[] = {
    {TN__OP_SORT, sort_row, -1, true},         {TN__OP_ARGSORT, sort_row, -1, true},
    {TN__OP_PARTITION, sort_row, -1, true},    {TN__OP_ARGPARTITION, sort_row, -1, true},
    {TN__OP_LARGEST, sort_row, -1, true},
    {TN__OP_SEARCH_LEFT, search_row, -1, false}, {TN__OP_SEARCH_RIGHT, search_row, -1, false},
    {TN__OP_NONZERO, nonzero_row, -1, false},
    {TN__OP_CUMSUM, scan_row, 0, false},       {TN__OP_CUMPROD, scan_row, 1, false},
    {TN__OP_CUMMAX, scan_row, 2, false},       {TN__OP_CUMMIN, scan_row, 3, false},
};

/* Sorts or searches rows when there are fewer rows than threads: all threads work on each row. */
static void by_all_threads(rows_run *run, int team)
{
    const rows_data *data = run->data;
    void *scratch = data->scratch ? tn__alloc_aligned(data->scratch) : NULL;
    run->no_memory = data->scratch && !scratch;
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &data->rest, run->base, 0);
    for (int64_t i = 0; !run->no_memory && i < data->rest.size; i++) {
        if (data->scratch) {
            sort_by_team(data, at.p, scratch, team);
        } else {
            const tn__cpu_search_row row = search_of(data, at.p);
            tn__cpu_for(row.m, SEARCH_COST, some_values, &(values_run){data, &row});
        }
        tn__cpu_cursor_move(&at, 1);
    }
    tn__free(scratch);
}

static void some_rows(void *context, int64_t begin, int64_t end)
{
    rows_run *run = context;
    const rows_data *data = run->data;
    bool together = data->scratch_together && end - begin > 1;
    size_t bytes = together ? data->scratch_together : data->scratch;
    void *scratch = bytes ? tn__alloc_aligned(bytes) : NULL;
    if (bytes && !scratch) {
        atomic_store(&run->no_memory, true);
        return;
    }
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, &data->rest, run->base, begin);
    if (together)
        sort_short_rows(data, &at, end - begin, scratch);
    for (int64_t i = begin; i < end && !together; i++) {
        data->function(data, at.p, scratch);
        tn__cpu_cursor_move(&at, 1);
    }
    tn__free(scratch);
}

static tn_status run_rows(const tn__cpu_step *step, void *const *buffers, const uint64_t *scalars)
{
    (void)scalars;
    rows_run run = {.data = step->data};
    tn__cpu_addresses(step, step->step->operand_count, buffers, run.base);
    const rows_data *data = run.data;
    int64_t items = data->count[step->step->operand_count - 1], rows = data->rest.size,
            cost = data->searches ? SEARCH_COST : 16;
    int team = (data->scratch || data->searches) && items > 0 ? tn__cpu_team(items, cost) : 1;
    if (rows > 0 && rows < team)
        by_all_threads(&run, team);
    else if (items > 0)
        tn__cpu_for(rows, items * cost, some_rows, &run);
    return run.no_memory ? tn__fail_memory(tn__cpu_ops[step->step->op].name, run.data->scratch) : TN_OK;
}

tn_status tn__cpu_prepare_sort_scan(tn__cpu_step *step)
{
    const tn__step *s = step->step;
    if (s->op == TN__OP_HISTOGRAM)
        return tn__cpu_prepare_histogram(step);
    const tn__operand *operand = s->operand;
    int ndim = operand[0].ndim, row = -1;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        row = operations[i].op == s->op ? (int)i : row;
    tn_dtype dtype = s->operand_count > 1 ? operand[1].dtype : TN_DTYPE_DEFAULT;
    bool scans_rows = row >= 0 && operations[row].scan >= 0;
    if (row < 0 || ndim == 0 ||
        (scans_rows ? scans[dtype].row[operations[row].scan] == NULL : tn__cpu_search_of(dtype) == NULL))
        return tn__cpu_no_such_operation(step);
    rows_data *data = tn__calloc(1, sizeof *data);
    if (!data)
        return tn__fail_memory("load", sizeof *data);
    step->data = data;
    step->run = run_rows;
    data->function = operations[row].function;
    data->scan = operations[row].scan < 0 ? NULL : scans[dtype].row[operations[row].scan];
    data->search = tn__cpu_search_of(dtype);
    data->searches = s->operand_count == 3;
    data->right = s->op == TN__OP_SEARCH_RIGHT;
    const int64_t *stride[3];
    int64_t itemsize[3];
    for (int k = 0; k < s->operand_count; k++) {
        itemsize[k] = tn__dtypes[operand[k].dtype].size;
        stride[k] = operand[k].stride;
        data->count[k] = operand[k].dim[ndim - 1];
        data->step[k] = operand[k].stride[ndim - 1] * itemsize[k];
    }
    data->dtype = dtype;
    data->largest = s->op == TN__OP_LARGEST;
    data->positions = s->op == TN__OP_ARGSORT || s->op == TN__OP_ARGPARTITION || data->largest;
    data->place = s->op == TN__OP_PARTITION || s->op == TN__OP_ARGPARTITION ? s->param[0] : -1;
    int64_t apart = data->largest ? (int64_t)sizeof(int64_t) : data->place < 0 ? data->step[0] : 0;
    data->scratch = operations[row].scratch ? tn__cpu_sort_scratch(dtype, data->positions, data->count[1], apart) : 0;
    data->scratch += data->largest ? order_bytes(data->count[1]) : 0;
    data->scratch_together = data->scratch && data->place < 0 && !data->largest
                                 ? tn__cpu_sort_scratch_together(dtype, data->positions, data->count[1]) : 0;
    tn__cpu_space_make(&data->rest, ~(1u << (ndim - 1)), ndim, operand[0].dim, s->operand_count, stride, itemsize);
    return TN_OK;
}
