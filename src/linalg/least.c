/* SPDX-License-Identifier: MIT */
/*
 * Least squares: by LAPACK's driver, which NumPy calls, where it is on the operands' device and no gradient is wanted;
 * else made of singular values and vectors, which a GPU has and which are differentiable.
 */
#include <tanso/linalg.h>

#include <float.h>
#include <string.h>
#include "core/options.h"

#include "engine/engine.h"
#include "linalg/matrix.h"

typedef struct least {
    tn__node *x, *s, *rank, *residuals; /* s: (1, k), rank: (1, 1), int32, residuals: (1, sides) */
} least;

static tn__node *count_of(tn__node *kept)
{
    TN__PASS_ERROR(kept);
    return tn__cast(tn__reduce(TN__OP_SUM, tn__cast(kept, TN_INT64), 3), TN_INT32);
}

/* By the driver: what it packs. */
static least by_driver(tn__node *const *in, double rcond)
{
    int64_t m = tn__row_count(in[0]), n = tn__column_count(in[0]), k = m < n ? m : n, sides = tn__column_count(in[1]),
            bits;
    memcpy(&bits, &rcond, sizeof bits);
    const tn__ints *modes = tn__ints_intern(1, &bits);
    tn_shape shape = {.ndim = 2, .dim = {1, n * sides + k + 1 + sides}};
    if (!modes)
        tn__fail_memory("lstsq", sizeof(tn__ints));
    tn__node *all = modes ? tn__library(TN__OP_LSTSQ, (tn_dtype)in[0]->dtype, shape, 2, in, modes) : tn__failed();
    return (least){.x = tn__part(all, 0, n, sides),
                   .s = tn__real(tn__part(all, n * sides, 1, k)),
                   .rank = tn__cast(tn__real(tn__part(all, n * sides + k, 1, 1)), TN_INT32),
                   .residuals = tn__real(tn__part(all, n * sides + k + 1, 1, sides))};
}

/* By the pseudo-inverse, in double precision, as the driver computes. */
static least by_values(tn__node *const *in, double rcond)
{
    tn_dtype dtype = (tn_dtype)in[0]->dtype, wide = tn_dtype_is_complex(dtype) ? TN_COMPLEX128 : TN_FLOAT64;
    tn__node *a = tn__cast(in[0], wide), *b = tn__cast(in[1], wide), *part[3], *kept;
    tn__singular_vectors(a, false, part);
    tn__node *inverse = tn__inverted_values(part[1], rcond < 0 ? DBL_EPSILON / 2 : rcond, &kept);
    tn__node *x = tn__pseudo_inverse(a, part, inverse);
    x = tn__node_is_error(x) || tn__node_is_error(b) ? x : tn__matmul_node(x, b);
    if (tn__node_is_error(x))
        return (least){.x = x, .s = x, .rank = x, .residuals = x};
    tn__node *squares = tn__squared_size(tn__binary(TN__OP_SUBTRACT, b, tn__matmul_node(a, x)));
    tn_dtype real = tn__dtypes[dtype].component;
    return (least){.x = tn__cast(x, dtype),
                   .s = tn__cast(part[1], real),
                   .rank = count_of(kept),
                   .residuals =
                       tn__node_is_error(squares) ? squares : tn__cast(tn__reduce(TN__OP_SUM, squares, 1), real)};
}

/* How many residuals there are depends on the rank, so that this evaluates. */
static bool evaluate(least *l, int32_t *rank)
{
    tn__node **const node[] = {&l->x, &l->s, &l->rank, &l->residuals};
    tn__node *roots[4];
    for (int i = 0; i < 4; i++) {
        roots[i] = *node[i];
        if (tn__node_is_error(roots[i])) {
            tn__error_raise(roots[i]->error);
            return false;
        }
    }
    return tn__evaluate(4, roots) == TN_OK && tn__read(l->rank, rank) == TN_OK;
}

static tn__node *refused(tn__node *a, tn__node *b)
{
    TN__PASS_ERROR(a);
    TN__PASS_ERROR(b);
    if (a->shape->ndim != 2 || b->shape->ndim != 2 || tn__row_count(a) != tn__row_count(b))
        TN__REFUSE(TN_ERR_SHAPE, "lstsq",
                   "expected a matrix and a right-hand side of as many rows, of one or two axes");
    return NULL;
}

static void lstsq(tn__node *a, tn__node *b, const tn_pinv_opts *opts, tn__node *part[4])
{
    a = tn__matrix_operand("lstsq", a, 2);
    b = tn__matrix_operand("lstsq", b, 1);
    bool vector = !tn__node_is_error(b) && b->shape->ndim == 1;
    if (vector)
        b = tn__insert_axis("lstsq", b, 1);
    tn__node *in[] = {a, b}, *failed = refused(a, b);
    tn__device *device = failed ? NULL : tn__common_device("lstsq", 2, in);
    if (!failed && !device)
        failed = tn__failed();
    for (int i = 0; i < 4; i++)
        part[i] = failed;
    if (failed)
        return;
    bool weak, wanted = (a->flags | b->flags) & TN__NODE_NEEDS_GRAD;
    tn_dtype dtype = tn__common_dtype(2, in, &weak);
    int64_t m = tn__row_count(a), n = tn__column_count(a), sides = tn__column_count(b);
    for (int i = 0; i < 2; i++)
        in[i] = tn__adapt(in[i], dtype, in[i]->shape, device);
    if (sides == 0) { /* LAPACK takes no less than one */
        const tn__shape *column = tn__shape_make("lstsq", TN_SHAPE(m, 1), dtype);
        in[1] = column ? tn__const(0, dtype, column, device) : tn__failed();
    }
    double rcond = TN__OPTION(opts, rcond, (double)(m > n ? m : n) * DBL_EPSILON);
    bool elsewhere =
        !tn__node_is_error(in[0]) && !tn__library_native(TN__OP_LSTSQ, in[0]) && tn__library_native(TN__OP_SVD, in[0]);
    least l = (wanted || elsewhere) && m && n ? by_values(in, rcond) : by_driver(in, rcond);
    int32_t rank = 0;
    if (!evaluate(&l, &rank)) {
        part[0] = part[1] = part[2] = part[3] = tn__failed();
        return;
    }
    if (n == 0 && m > 0) { /* of no columns: b itself is left */
        tn__node *squares = tn__squared_size(in[1]);
        l.residuals = tn__node_is_error(squares) ? squares : tn__reduce(TN__OP_SUM, squares, 1);
    }
    part[0] = vector ? tn__drop_axes(l.x, 2) : sides ? l.x : tn__last_slice(l.x, 0, 0);
    part[1] = tn__drop_row(tn__last_slice(l.residuals, 0, rank == n && m > n ? sides : 0));
    part[2] = tn__drop_axes(l.rank, 3);
    part[3] = tn__drop_row(l.s);
}

tn_status tn_linalg_lstsq_with(const tn_array *a, const tn_array *b, tn_array **x, tn_array **residuals,
                               tn_array **rank, tn_array **s, const tn_pinv_opts *opts)
{
    tn__call call = tn__enter();
    tn__node *part[4];
    lstsq(tn__node_of(a, "lstsq"), tn__node_of(b, "lstsq"), opts, part);
    return tn__give_all(call, 4, part, (tn_array **const[]){x, residuals, rank, s});
}
