/* SPDX-License-Identifier: MIT */
/* Replaying what complex numbers are made of. */
#include "replay.h"

#define NAME(f) (void (*)(void))(f)

static void plain(call *c, const row *r)
{
    tn_array *(*f)(const tn_array *) = (tn_array * (*)(const tn_array *)) r->function;
    bool python = c->slot[0] && c->slot[0]->kind == BOOL; /* whose parts are integers */
    give(c, f(python ? tn_cast(array(c, 0), TN_INT64) : array(c, 0)));
}

static void angle(call *c, const row *r)
{
    (void)r;
    tn_array *x = tn_angle(array(c, 0));
    give(c, boolean(c, 1, false) ? tn_multiply(x, 180 / 3.14159265358979323846) : x);
}

/* The imaginary part differs from 0 (r->number: is 0). */
static void has_imaginary(call *c, const row *r)
{
    tn_array *im = tn_imag(array(c, 0));
    give(c, r->number ? tn_equal(im, 0) : tn_not_equal(im, 0));
}

static void is_complex(call *c, const row *r)
{
    give_bool(c, tn_dtype_is_complex(tn_dtype_of(array(c, 0))) != (r->number != 0));
}

static void real_if_close(call *c, const row *r)
{
    (void)r;
    give(c, tn_real_if_close(array(c, 0), number(c, 1, 100)));
}

static const row rows[] = {
    {"real", "val", plain, NAME((tn_real)), 0},
    {"imag", "val", plain, NAME((tn_imag)), 0},
    {"ndarray.conj", "x", plain, NAME((tn_conjugate)), 0},
    {"ndarray.conjugate", "x", plain, NAME((tn_conjugate)), 0},
    {"angle", "z deg", angle, NULL, 0},
    {"iscomplex", "x", has_imaginary, NULL, 0},
    {"isreal", "x", has_imaginary, NULL, 1},
    {"iscomplexobj", "x", is_complex, NULL, 0},
    {"isrealobj", "x", is_complex, NULL, 1},
    {"real_if_close", "a tol", real_if_close},
};
REPLAY_ROWS(rows)
