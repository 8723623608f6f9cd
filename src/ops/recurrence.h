/* SPDX-License-Identifier: MIT */
/*
 * Recurrent networks of many short steps as two operations, RECUR and its gradient RECUR_BACK: what they take and give,
 * for who records them, who computes them, and who differentiates them.
 *
 * RECUR of
 *     sums    (steps × rows, gates × units): x W + b of all steps
 *     weights (units [+ 1], gates × units): U, and, with a bias, what is added to h U, as its last row
 *     state   ((states [+ 1]) × rows, units): h, and c of an LSTM; with lengths, how many steps each row has, in each
 *             column. A step beyond that changes no state.
 * gives (blocks × (steps + 1) × rows [+ rows], units): a block for each state and for what backward needs of each step;
 * within it the steps in order, with the state that the network begins with at the end where it begins; behind all
 * blocks the lengths. Blocks behind the states: an LSTM's gates i, f, g, o; a GRU's r, z, n and its part of h U + b
 * that r multiplies. Of the state at the beginning, and of steps beyond a row's length, they are zeros.
 *
 * RECUR_BACK of that, its gradient and the weights gives (products × steps × rows + states × rows, gates × units): the
 * gradient by the sums, and, where it is another one (GRU), that by h U + b; then those by the states at the beginning,
 * in the first columns of their rows.
 */
#ifndef TN_OPS_RECURRENCE_H
#define TN_OPS_RECURRENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tn__recurrence_kind {
    TN__RECUR_TANH,
    TN__RECUR_RELU,
    TN__RECUR_LSTM,
    TN__RECUR_GRU,
    TN__RECUR_KINDS
} tn__recurrence_kind;

/* The operations' modes, in this order. */
typedef struct tn__recurrence {
    int64_t kind, steps, rows, units;
    int64_t bias, lengths; /* whether there are any */
    int64_t backwards;     /* it begins with the last step */
} tn__recurrence;
#define TN__RECURRENCE_MODES 7

typedef struct tn__recurrence_row {
    int gates, states, blocks, products;
} tn__recurrence_row;

static inline tn__recurrence_row tn__recurrence_row_of(const tn__recurrence *r)
{
    static const tn__recurrence_row rows[TN__RECUR_KINDS] = {
        [TN__RECUR_TANH] = {1, 1, 1, 1}, [TN__RECUR_RELU] = {1, 1, 1, 1},
        [TN__RECUR_LSTM] = {4, 2, 6, 1}, [TN__RECUR_GRU] = {3, 1, 5, 2}};
    return rows[r->kind];
}

/* The first row of a block's place: place i lies before step i, and behind it for who goes backwards. */
static inline int64_t tn__recurrence_place(const tn__recurrence *r, int block, int64_t place)
{
    return (block * (r->steps + 1) + place) * r->rows;
}
/* The places before and after a step. */
static inline int64_t tn__recurrence_before(const tn__recurrence *r, int64_t step)
{
    return r->backwards ? step + 1 : step;
}
static inline int64_t tn__recurrence_after(const tn__recurrence *r, int64_t step)
{
    return r->backwards ? step : step + 1;
}
/* The step that is the nth one done. */
static inline int64_t tn__recurrence_step(const tn__recurrence *r, int64_t n)
{
    return r->backwards ? r->steps - 1 - n : n;
}
/* The extents of what both give: rows. */
static inline int64_t tn__recurrence_rows(const tn__recurrence *r)
{
    return tn__recurrence_place(r, tn__recurrence_row_of(r).blocks, 0) + (r->lengths ? r->rows : 0);
}
static inline int64_t tn__recurrence_back_rows(const tn__recurrence *r)
{
    tn__recurrence_row row = tn__recurrence_row_of(r);
    return (row.products * r->steps + row.states) * r->rows;
}

#endif
