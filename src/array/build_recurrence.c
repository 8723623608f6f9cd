/* SPDX-License-Identifier: MIT */
/* Whole recurrent networks as nodes; and their gradient step by step, for gradients of higher orders. */
#include "array/build_recurrence.h"

#include <string.h>

#include "array/build_parts.h"
#include "core/memory.h"
#include "tn_op_functions.h"

#define add(a, b) tn__binary(TN__OP_ADD, a, b)
#define sub(a, b) tn__binary(TN__OP_SUBTRACT, a, b)
#define mul(a, b) tn__binary(TN__OP_MULTIPLY, a, b)

/*
 * Few steps are recorded soon; a product by large weights, or of many rows, takes longer than recording a step, and is
 * a library's. One thread, an iteration of 500 steps of an LSTM, in one operation and step by step, on a machine that
 * others load, the least of a few: 64 units, 8 rows 18 and 50 ms; 64, 16: 38 and 45; 64, 32: 73 and 117; 48, 16: 45 and
 * 55; 48, 48: 118 and 161; 32, 128: 115 and 100; 16, 256: 55 and 49. Lengths are exact up to MOST_STEPS in single
 * precision.
 */
enum { FEWEST_STEPS = 8, MOST_STEPS = 1 << 24 };
enum { MOST_WEIGHTS = 1 << 14, MOST_PRODUCTS = 1 << 19 };

bool tn__recurrence_suits(const tn__recurrence *of, tn_dtype dtype, const tn__device *device)
{
    bool fits = of->steps >= FEWEST_STEPS && of->steps <= MOST_STEPS && of->rows > 0 && of->units > 0;
    if (!fits || (dtype != TN_FLOAT32 && dtype != TN_FLOAT64))
        return false;
    const tn__shape *shape = tn__shape_intern(2, (int64_t[]){of->rows, of->units});
    int64_t columns = tn__recurrence_row_of(of).gates * of->units;
    if (!shape || of->units > MOST_WEIGHTS / columns)
        return false;
    return of->rows <= MOST_PRODUCTS / (columns * of->units) && tn__native(device, TN__OP_RECUR, dtype, shape);
}

static tn__node *recorded(tn__op op, const tn__recurrence *of, int64_t rows, int64_t columns, tn__node *const *in)
{
    int64_t modes[TN__RECURRENCE_MODES];
    for (int i = 0; i < 3; i++)
        TN__PASS_ERROR(in[i]);
    memcpy(modes, of, sizeof modes);
    const tn__ints *list = tn__ints_intern(TN__RECURRENCE_MODES, modes);
    const tn__shape *shape =
        tn__shape_make(tn__ops[op].name, (tn_shape){.ndim = 2, .dim = {rows, columns}}, (tn_dtype)in[0]->dtype);
    if (!shape)
        return tn__failed();
    if (!list)
        TN__REFUSE(TN_ERR_MEMORY, tn__ops[op].name, "no memory for modes");
    return tn__apply(op, (tn_dtype)in[0]->dtype, shape, 3, in, (tn__attr){.ints = list});
}

tn__node *tn__recur(const tn__recurrence *of, tn__node *sums, tn__node *weights, tn__node *state)
{
    return recorded(TN__OP_RECUR, of, tn__recurrence_rows(of), of->units, (tn__node *[]){sums, weights, state});
}

tn__node *tn__recur_back(const tn__recurrence *of, tn__node *value, tn__node *g, tn__node *weights)
{
    return recorded(TN__OP_RECUR_BACK, of, tn__recurrence_back_rows(of), tn__recurrence_row_of(of).gates * of->units,
                    (tn__node *[]){value, g, weights});
}

void tn__recurrence_of(const tn__node *node, tn__recurrence *of) { memcpy(of, node->attr.ints->v, sizeof *of); }

tn__node *tn__rows_of(tn__node *a, int64_t start, int64_t count)
{
    TN__PASS_ERROR(a);
    return tn__slice_node(a, (int64_t[]){start, 0}, (int64_t[]){1, 1}, (int64_t[]){count, a->shape->dim[1]});
}

/* Columns likewise. */
static tn__node *columns_of(tn__node *a, int64_t start, int64_t count)
{
    TN__PASS_ERROR(a);
    return tn__slice_node(a, (int64_t[]){0, start}, (int64_t[]){1, 1}, (int64_t[]){a->shape->dim[0], count});
}

tn__node *tn__recurrence_part(const tn__recurrence *of, tn__node *value, int block, int64_t place, int64_t count)
{
    return tn__rows_of(value, tn__recurrence_place(of, block, place), count * of->rows);
}

/* ---- the gradient, step by step ---- */

/* One step: the gradients by its states, dh and dc, which become those by the states before; the sums' gradient, and
 * that of h U + b. */
typedef struct step {
    const tn__recurrence *of;
    tn__node *value, *g;
    int64_t before, after;
    tn__node *dh, *dc, *sums, *hu;
} step;

static tn__node *made(const step *s, int block) { return tn__recurrence_part(s->of, s->value, block, s->after, 1); }
static tn__node *by_it(const step *s, int block) { return tn__recurrence_part(s->of, s->g, block, s->after, 1); }
static tn__node *from_one(tn__node *x) { return tn__node_is_error(x) ? x : sub(tn__const_like(x, 1), x); }
static tn__node *sigmoid_slope(tn__node *y) { return mul(y, from_one(y)); }
static tn__node *tanh_slope(tn__node *y) { return from_one(mul(y, y)); }

static void back_plain(step *s)
{
    tn__node *h = made(s, 0);
    s->sums = s->hu = s->of->kind == TN__RECUR_TANH ? mul(s->dh, tanh_slope(h))
                                                    : tn__where(tn__with(TN__OP_GREATER, h, 0), s->dh,
                                                                tn__with(TN__OP_MULTIPLY, s->dh, 0));
    s->dh = NULL;
}

static void back_lstm(step *s)
{
    tn__node *old = tn__recurrence_part(s->of, s->value, 1, s->before, 1), *tanh_c = tn__unary(TN__OP_TANH, made(s, 1));
    tn__node *in = made(s, 2), *forget = made(s, 3), *candidate = made(s, 4), *out = made(s, 5);
    tn__node *c = add(s->dc, mul(mul(s->dh, out), tanh_slope(tanh_c)));
    tn__node *gates[] = {mul(add(mul(c, candidate), by_it(s, 2)), sigmoid_slope(in)),
                         mul(add(mul(c, old), by_it(s, 3)), sigmoid_slope(forget)),
                         mul(add(mul(c, in), by_it(s, 4)), tanh_slope(candidate)),
                         mul(add(mul(s->dh, tanh_c), by_it(s, 5)), sigmoid_slope(out))};
    s->sums = s->hu = tn__joined(4, gates, 1);
    s->dc = mul(c, forget);
    s->dh = NULL;
}

static void back_gru(step *s)
{
    tn__node *old = tn__recurrence_part(s->of, s->value, 0, s->before, 1);
    tn__node *reset = made(s, 1), *update = made(s, 2), *candidate = made(s, 3), *hu = made(s, 4);
    tn__node *n = mul(add(mul(s->dh, from_one(update)), by_it(s, 3)), tanh_slope(candidate));
    tn__node *r = mul(add(mul(n, hu), by_it(s, 1)), sigmoid_slope(reset));
    tn__node *z = mul(add(mul(s->dh, sub(old, candidate)), by_it(s, 2)), sigmoid_slope(update));
    s->sums = tn__joined(3, (tn__node *[]){r, z, n}, 1);
    s->hu = tn__joined(3, (tn__node *[]){r, z, add(mul(n, reset), by_it(s, 4))}, 1);
    s->dh = mul(s->dh, update);
}

/* What comes to a state at a place, added. */
static tn__node *taken(const step *s, tn__node *d, int state, int64_t place)
{
    tn__node *g = tn__recurrence_part(s->of, s->g, state, place, 1);
    return d ? add(d, g) : g;
}

static tn__node *chosen(tn__node *condition, tn__node *yes, tn__node *no)
{
    TN__PASS_ERROR(yes);
    return tn__where(condition, yes, no ? no : tn__const_like(yes, 0));
}

/* One step; `u` is U's transpose, `lengths` NULL or (rows, units). */
static void back_step(step *s, int64_t at, tn__node *u, tn__node *lengths)
{
    static void (*const back[TN__RECUR_KINDS])(step *) = {[TN__RECUR_TANH] = back_plain, [TN__RECUR_RELU] = back_plain,
                                                          [TN__RECUR_LSTM] = back_lstm, [TN__RECUR_GRU] = back_gru};
    bool cell = tn__recurrence_row_of(s->of).states == 2;
    s->before = tn__recurrence_before(s->of, at);
    s->after = tn__recurrence_after(s->of, at);
    tn__node *dh = s->dh = taken(s, s->dh, 0, s->after), *dc = s->dc = cell ? taken(s, s->dc, 1, s->after) : NULL;
    tn__node *lasts = lengths ? tn__with(TN__OP_GREATER, lengths, (double)at) : NULL;
    back[s->of->kind](s);
    if (lasts) {
        tn__node *wide = columns_of(lasts, 0, 1);
        s->sums = tn__node_is_error(s->sums) || tn__node_is_error(wide)
                      ? s->sums : chosen(tn__expand(wide, s->sums->shape), s->sums, NULL);
        s->hu = tn__node_is_error(s->hu) || tn__node_is_error(wide)
                    ? s->hu : chosen(tn__expand(wide, s->hu->shape), s->hu, NULL);
    }
    tn__node *through = tn__matmul_node(s->hu, u);
    s->dh = s->dh ? add(s->dh, through) : through;
    s->dh = lasts ? chosen(lasts, s->dh, dh) : s->dh;
    s->dc = lasts && cell ? chosen(lasts, s->dc, dc) : s->dc;
}

/* A state's gradient as the last rows have it: zeros behind it. */
static tn__node *widened(tn__node *d, int64_t columns)
{
    TN__PASS_ERROR(d);
    const tn__shape *shape = tn__shape_intern(2, (int64_t[]){d->shape->dim[0], columns});
    if (!shape)
        TN__REFUSE(TN_ERR_MEMORY, "recur", "no memory for a shape");
    return tn__update_along(tn__const(0, (tn_dtype)d->dtype, shape, d->device), d, 1, 0);
}

tn__node *tn__recur_back_by_steps(const tn__recurrence *of, tn__node *value, tn__node *g, tn__node *weights)
{
    tn__recurrence_row row = tn__recurrence_row_of(of);
    int64_t steps = of->steps, columns = row.gates * of->units, first;
    step s = {.of = of, .value = value, .g = g};
    tn__node *u = tn__swap_last(tn__rows_of(weights, 0, of->units));
    tn__node *lengths = of->lengths ? tn__rows_of(value, tn__recurrence_place(of, row.blocks, 0), of->rows) : NULL;
    size_t count = (size_t)(row.products * steps + row.states);
    tn__node **parts = tn__alloc(count * sizeof *parts);
    if (!parts)
        TN__REFUSE(TN_ERR_MEMORY, "recur", "no memory for %lld steps", (long long)steps);
    for (int64_t i = steps; i-- > 0;) {
        int64_t at = tn__recurrence_step(of, i);
        back_step(&s, at, u, lengths);
        parts[at] = s.sums;
        if (row.products == 2)
            parts[steps + at] = s.hu;
    }
    first = tn__recurrence_before(of, tn__recurrence_step(of, 0));
    for (int state = 0; state < row.states; state++)
        parts[row.products * steps + state] = widened(taken(&s, state ? s.dc : s.dh, state, first), columns);
    tn__node *all = tn__joined((int)count, parts, 0);
    tn__free(parts);
    return all;
}
