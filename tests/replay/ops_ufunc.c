/* SPDX-License-Identifier: MIT */
/* Replaying elementwise functions: ufuncs of one and of two operands. */
#include "replay.h"

/* Calls go to the functions themselves: the macros of the headers would hide their names. */
#define NAME(f) (void (*)(void))(f)
#define UNARY "x out where dtype casting order subok"
#define BINARY "x1 x2 out where dtype casting order subok"

typedef tn_array *unary_function(const tn_array *x);
typedef tn_array *binary_function(const tn_array *a, const tn_array *b);

static void unary(call *c, const row *r) { give(c, ((unary_function *)r->function)(array(c, 0))); }

static void binary(call *c, const row *r)
{
    tn_array *a = operand(c, 0, 0, 1), *b = operand(c, 1, 0, 1);
    give(c, ((binary_function *)r->function)(a, b));
}

static const row rows[] = {
    {"negative", UNARY, unary, NAME(tn_negative)},
    {"absolute", UNARY, unary, NAME(tn_abs)},
    {"exp", UNARY, unary, NAME(tn_exp)},
    {"add", BINARY, binary, NAME(tn_add)},
    {"subtract", BINARY, binary, NAME(tn_subtract)},
    {"multiply", BINARY, binary, NAME(tn_multiply)},
};
REPLAY_ROWS(rows)
