/* SPDX-License-Identifier: MIT */
/* Copying one strided operand to another: a cast for each row, loops over short rows without a change of dtype. */
#include "backends/cpu/base/parallel.h"
#include "backends/cpu/base/step.h"

enum { SHORT = 24 }; /* rows of fewer elements are not worth a call each */

/* Moves m rows of n elements; strides from row to row and within a row. */
typedef void (*move_rows)(char *to, const int64_t to_step[2], const char *from, const int64_t from_step[2], int64_t m,
                          int64_t n);

#define MOVE_ROWS(size, T) \
    static void move_rows_##size(char *to, const int64_t to_step[2], const char *from, const int64_t from_step[2], \
                                 int64_t m, int64_t n) \
    { \
        const int64_t to_next = to_step[1], from_next = from_step[1]; \
        for (int64_t i = 0; i < m; i++, to += to_step[0], from += from_step[0]) \
            for (int64_t j = 0; j < n; j++) \
                *(T *)(to + j * to_next) = *(const T *)(from + j * from_next); \
    }
typedef struct sixteen {
    uint64_t half[2];
} sixteen;
MOVE_ROWS(1, uint8_t)
MOVE_ROWS(2, uint16_t)
MOVE_ROWS(4, uint32_t)
MOVE_ROWS(8, uint64_t)
MOVE_ROWS(16, sixteen)
static const move_rows movers[TN__CPU_ITEM + 1] = {
    [1] = move_rows_1, [2] = move_rows_2, [4] = move_rows_4, [8] = move_rows_8, [16] = move_rows_16};

typedef struct move_run {
    const tn__cpu_space *space;
    tn__cpu_cast cast;
    move_rows rows; /* NULL: rows are long, or need a conversion */
    char *const *base;
} move_run;

/* Moves the whole rows among the elements [begin, end) of short rows at once; returns how many elements that were. */
static int64_t move_short_rows(const move_run *run, const tn__cpu_cursor *at, int64_t begin, int64_t end)
{
    const tn__cpu_space *space = run->space;
    int last = space->ndim - 1;
    int64_t n = space->dim[last], rows = (end - begin) / n, left = space->dim[last - 1] - at->index[last - 1];
    rows = rows < left ? rows : left;
    if (at->index[last] == 0 && rows > 0)
        run->rows(at->p[0], &space->stride[0][last - 1], at->p[1], &space->stride[1][last - 1], rows, n);
    return at->index[last] == 0 ? rows * n : 0;
}

static void move_part(void *context, int64_t begin, int64_t end)
{
    const move_run *run = context;
    tn__cpu_cursor at;
    tn__cpu_cursor_set(&at, run->space, run->base, begin);
    while (begin < end) {
        int64_t done = run->rows ? move_short_rows(run, &at, begin, end) : 0;
        if (done) {
            begin += done;
            tn__cpu_cursor_set(&at, run->space, run->base, begin < run->space->size ? begin : 0);
            continue;
        }
        int64_t n = tn__cpu_cursor_row(&at, end - begin);
        run->cast(at.p[0], tn__cpu_space_step(run->space, 0), at.p[1], tn__cpu_space_step(run->space, 1), n);
        tn__cpu_cursor_move(&at, n);
        begin += n;
    }
}

void tn__cpu_move(const tn__cpu_space *space, tn__cpu_cast cast, int64_t size, char *const *base)
{
    move_run run = {space, cast, size && space->ndim > 1 && space->dim[space->ndim - 1] < SHORT ? movers[size] : NULL,
                    base};
    tn__cpu_for(space->size, 1, move_part, &run);
}
