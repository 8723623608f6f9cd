/* SPDX-License-Identifier: MIT */
/*
 * Gradient rules of decompositions, solutions and Fourier transforms.
 *
 * For matrices, A^H is the conjugate transpose, and gX the gradient by X. Sources: M. Giles, "Collected matrix
 * derivative results for forward and reverse mode algorithmic differentiation" (2008); for complex matrices and the
 * vectors of the singular value decomposition, L. Wan, S. Zhang, "Automatic differentiation for complex valued SVD"
 * (2019); QR, S. Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions with application in
 * optimum experimental design" (2010); of general matrices' eigenvectors, C. Boeddeker and others, "On the computation
 * of complex-valued gradients with application to statistically optimum beamforming" (2017); pseudo-inverses, G. Golub,
 * V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate"
 * (1973). Gradients by vectors of eigenvalues and singular values exist where the values differ from each other.
 */
#include "array/build_library.h"
#include "autograd/rules.h"

#define add(a, b) tn__binary(TN__OP_ADD, a, b)
#define sub(a, b) tn__binary(TN__OP_SUBTRACT, a, b)
#define mul(a, b) tn__binary(TN__OP_MULTIPLY, a, b)
#define over(a, b) tn__binary(TN__OP_DIVIDE, a, b)
#define dot(a, b) tn__matmul_node(a, b)
#define adjoint(a) tn__adjoint(a)

static int64_t rows(const tn__node *a) { return a->shape->dim[a->shape->ndim - 2]; }
static int64_t columns(const tn__node *a) { return a->shape->dim[a->shape->ndim - 1]; }

static tn__node *solve(tn__node *a, tn__node *b)
{
    if (tn__node_is_error(a))
        return a;
    if (tn__node_is_error(b))
        return b;
    return tn__library(TN__OP_SOLVE, (tn_dtype)b->dtype, tn__shape_value(b->shape), 2, (tn__node *[]){a, b}, NULL);
}

static tn__node *identity_like(tn__node *a)
{
    return tn__node_is_error(a) ? a : tn__cast(tn__on_diagonal(a), (tn_dtype)a->dtype);
}

/* Half of a plus its adjoint. */
static tn__node *hermitian(tn__node *a) { return tn__with(TN__OP_MULTIPLY, add(a, adjoint(a)), 0.5); }

/* The lower triangle with half of the diagonal. */
static tn__node *half_lower(tn__node *a)
{
    if (tn__node_is_error(a))
        return a;
    return tn__where(tn__on_diagonal(a), tn__with(TN__OP_MULTIPLY, a, 0.5), tn__lower(a, -1));
}

/* A = L L^H (mode: A = U^H U): gA = L^-H half_lower(L^H gL) L^-1, made Hermitian: A is taken to be so. */
void tn__grad_cholesky(tn__chain *c)
{
    bool upper = c->node->attr.ints && c->node->attr.ints->v[0];
    tn__node *l = upper ? adjoint(c->node) : c->node, *g = upper ? adjoint(c->g) : c->g;
    tn__node *inner = half_lower(dot(adjoint(l), tn__lower(g, 0)));
    tn__node *left = solve(adjoint(l), inner);
    c->in[0] = hermitian(adjoint(solve(adjoint(l), adjoint(left))));
}

/* X = A^-1 B: gB = A^-H gX, gA = -gB X^H. */
void tn__grad_solve(tn__chain *c)
{
    tn__node *gb = solve(adjoint(c->node->in[0]), c->g);
    if (tn__wanted(c, 1))
        c->in[1] = gb;
    if (tn__wanted(c, 0))
        c->in[0] = tn__unary(TN__OP_NEGATIVE, dot(gb, adjoint(c->node)));
}

/* Of log |det A|: A^-H; the phase of a complex determinant turns with the imaginary part of the same. */
void tn__grad_slogdet(tn__chain *c)
{
    tn__node *a = c->node->in[0];
    tn__node *factor = tn__part(c->g, 1, 1, 1);
    if (tn_dtype_is_complex((tn_dtype)a->dtype)) {
        tn__node *phase = mul(tn__part(c->g, 0, 1, 1), tn__conjugate(tn__part(c->node, 0, 1, 1)));
        factor = tn__complex(tn__real(factor), tn__imaginary(phase));
    }
    c->in[0] = mul(factor, solve(adjoint(a), identity_like(a)));
}

/* A = Q R with as many columns of Q as of A: with M = R gR^H - gQ^H Q, whose lower triangle is mirrored,
 * gA = (gQ + Q M) R^-H. */
void tn__grad_qr(tn__chain *c)
{
    tn__node *a = c->node->in[0];
    int64_t m = rows(a), n = columns(a), k = c->node->attr.ints->v[0];
    if (k != n || c->node->attr.ints->v[1]) {
        c->in[0] = tn__node_error(tn__error_new(TN_ERR_UNSUPPORTED, "qr",
                                                "has a gradient for mode reduced and at least as many "
                                                "rows as columns only; got %lld rows, %lld columns",
                                                (long long)m, (long long)n));
        return;
    }
    tn__node *q = tn__part(c->node, 0, m, n), *r = tn__part(c->node, m * n, n, n);
    tn__node *gq = tn__part(c->g, 0, m, n), *gr = tn__upper(tn__part(c->g, m * n, n, n), 0);
    tn__node *inner = sub(dot(r, adjoint(gr)), dot(adjoint(gq), q));
    tn__node *low = tn__lower(inner, -1), *mirrored = add(add(low, adjoint(low)), sub(tn__lower(inner, 0), low));
    tn__node *left = add(gq, dot(q, mirrored));
    c->in[0] = adjoint(solve(r, adjoint(left)));
}

/* dP = -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P: gA = -P^H gP P^H + (1 - A P) gP^H P P^H +
 * P^H P gP^H (1 - P A), wherever the rank stays. */
void tn__grad_pinv(tn__chain *c)
{
    tn__node *a = c->node->in[1], *p = c->node, *ph = adjoint(p), *gh = adjoint(c->g);
    tn__node *within = dot(dot(ph, c->g), ph), *left = sub(gh, dot(a, dot(p, gh))),
             *right = sub(gh, dot(dot(gh, p), a));
    c->in[0] = NULL;
    c->in[1] = sub(add(dot(left, dot(p, ph)), dot(dot(ph, p), right)), within);
}

/* x_k - x_j at (j, k), 1 on the diagonal. */
static tn__node *differences(tn__node *x)
{
    tn__node *d = sub(x, tn__swap_last(x));
    if (tn__node_is_error(d))
        return d;
    return tn__where(tn__on_diagonal(d), tn__const_like(d, 1), d);
}

/* a / b, and 0 where both are 0: where values are equal, or 0, vectors have no derivatives, and a loss that is not made
 * of them has gradients all the same. */
static tn__node *quotient(tn__node *a, tn__node *b)
{
    tn__node *none = tn__binary(TN__OP_LOGICAL_AND, tn__with(TN__OP_EQUAL, a, 0), tn__with(TN__OP_EQUAL, b, 0));
    return tn__node_is_error(none) ? none : over(a, tn__where(none, tn__const_like(b, 1), b));
}

static tn__node *skew(tn__node *a) { return sub(a, adjoint(a)); }

/* A = U S V^H: gA = U (((skew(U^H gU) S + S skew(V^H gV)) / E + gS) V^H, with E_jk = s_k² - s_j²; and where U or V are
 * not square, what of gU and gV lies outside of their columns. */
static void svd_gradient(tn__chain *c, tn__node *a, int64_t m, int64_t n)
{
    int64_t k = m < n ? m : n;
    tn__node *y = c->node, *g = c->g;
    tn__node *u = tn__part(y, 0, m, k), *s = tn__part(y, m * k, 1, k), *vh = tn__part(y, (m + 1) * k, k, n);
    tn__node *gu = tn__part(g, 0, m, k), *gs = tn__part(g, m * k, 1, k), *gvh = tn__part(g, (m + 1) * k, k, n);
    bool is_complex = tn_dtype_is_complex((tn_dtype)a->dtype);
    tn__node *sizes = is_complex ? tn__cast(tn__real(s), (tn_dtype)a->dtype) : s;
    tn__node *column = tn__swap_last(sizes), *by_u = skew(dot(adjoint(u), gu)), *by_v = skew(dot(vh, adjoint(gvh)));
    tn__node *inner =
        quotient(add(mul(by_u, sizes), mul(column, by_v)), differences(tn__unary(TN__OP_SQUARE, sizes)));
    if (tn__node_is_error(inner)) {
        c->in[0] = inner;
        return;
    }
    if (is_complex) { /* on the diagonal, what turns a pair of vectors */
        tn__node *turn = quotient(by_u, tn__with(TN__OP_MULTIPLY, sizes, 2));
        inner = tn__where(tn__on_diagonal(inner), turn, inner);
    }
    inner = add(inner, tn__diagonal_matrix(is_complex ? tn__cast(tn__real(gs), (tn_dtype)a->dtype) : gs));
    tn__node *ga = dot(dot(u, inner), vh);
    if (m > k) {
        tn__node *outside = sub(gu, dot(u, dot(adjoint(u), gu)));
        ga = add(ga, dot(quotient(outside, sizes), vh));
    }
    if (n > k) {
        tn__node *outside = sub(gvh, dot(dot(gvh, adjoint(vh)), vh));
        ga = add(ga, dot(u, quotient(outside, column)));
    }
    c->in[0] = ga;
}

void tn__grad_svd(tn__chain *c)
{
    tn__node *a = c->node->in[0];
    int64_t m = rows(a), n = columns(a), mode = c->node->attr.ints->v[0];
    if (mode == 1 || (mode == 2 && m == n)) {
        svd_gradient(c, a, m, n);
    } else if (mode == 0) { /* values only: U gS V^H, of vectors computed for it */
        int64_t k = m < n ? m : n;
        tn_shape value = tn__shape_value(c->node->shape);
        value.dim[value.ndim - 1] = (m + n + 1) * k;
        const tn__ints *reduced = tn__ints_intern(1, (int64_t[]){1});
        tn__node *y = reduced ? tn__library(TN__OP_SVD, (tn_dtype)a->dtype, value, 1, &a, reduced)
                              : tn__node_error(tn__error_new(TN_ERR_MEMORY, "svd", "no memory for a gradient"));
        tn__node *u = tn__part(y, 0, m, k), *vh = tn__part(y, (m + 1) * k, k, n);
        tn__node *gs = c->g;
        if (tn_dtype_is_complex((tn_dtype)a->dtype))
            gs = tn__cast(tn__real(gs), (tn_dtype)a->dtype);
        c->in[0] = dot(mul(u, gs), vh);
    } else {
        c->in[0] = tn__node_error(tn__error_new(TN_ERR_UNSUPPORTED, "svd",
                                                "of full matrices has no gradient unless they are "
                                                "square; give .reduced = true"));
    }
}

/* A = V W V^H: gA = V ((V^H gV) / E + gW) V^H, with E_jk = w_k - w_j, made Hermitian. */
void tn__grad_eigh(tn__chain *c)
{
    tn__node *a = c->node->in[0], *y = c->node, *g = c->g;
    int64_t n = rows(a);
    bool is_complex = tn_dtype_is_complex((tn_dtype)a->dtype), vectors = y->attr.ints->v[0];
    if (!vectors) {
        tn_shape value = tn__shape_value(y->shape);
        value.dim[value.ndim - 1] = n + n * n;
        const tn__ints *with = tn__ints_intern(2, (int64_t[]){1, y->attr.ints->v[1]});
        y = with ? tn__library(TN__OP_EIGH, (tn_dtype)a->dtype, value, 1, &a, with)
                 : tn__node_error(tn__error_new(TN_ERR_MEMORY, "eigh", "no memory for a gradient"));
    }
    tn__node *w = tn__part(y, 0, 1, n), *v = tn__part(y, n, n, n), *gw = tn__part(g, 0, 1, n);
    if (is_complex) {
        w = tn__cast(tn__real(w), (tn_dtype)a->dtype);
        gw = tn__cast(tn__real(gw), (tn_dtype)a->dtype);
    }
    tn__node *inner = tn__diagonal_matrix(gw);
    if (vectors) {
        tn__node *turn = quotient(dot(adjoint(v), tn__part(g, n, n, n)), differences(w));
        if (tn__node_is_error(turn)) {
            c->in[0] = turn;
            return;
        }
        inner = add(inner, tn__where(tn__on_diagonal(turn), tn__const_like(turn, 0), turn));
    }
    c->in[0] = hermitian(dot(dot(v, inner), adjoint(v)));
}

/* A V = V W with columns of V of length one: gA = V^-H (gW + (V^H gV - V^H V Re diag(V^H gV)) / conj(w_k - w_j)) V^H,
 * the quotient off the diagonal. Of a real matrix, which has complex values, its real part. */
void tn__grad_eig(tn__chain *c)
{
    tn__node *a = c->node->in[0], *y = c->node;
    int64_t n = rows(a);
    bool vectors = y->attr.ints->v[0];
    if (!vectors) {
        tn_shape value = tn__shape_value(y->shape);
        value.dim[value.ndim - 1] = n + n * n;
        const tn__ints *with = tn__ints_intern(1, (int64_t[]){1});
        y = with ? tn__library(TN__OP_EIG, (tn_dtype)y->dtype, value, 1, &a, with)
                 : tn__node_error(tn__error_new(TN_ERR_MEMORY, "eig", "no memory for a gradient"));
    }
    tn__node *w = tn__part(y, 0, 1, n), *back = adjoint(tn__part(y, n, n, n)),
             *inner = tn__diagonal_matrix(tn__part(c->g, 0, 1, n));
    if (vectors) {
        tn__node *turn = dot(back, tn__part(c->g, n, n, n)),
                 *zero = tn__node_is_error(turn) ? turn : tn__const_like(turn, 0);
        if (tn__node_is_error(turn)) {
            c->in[0] = turn;
            return;
        }
        tn__node *on = tn__on_diagonal(turn);
        tn__node *longer = tn__reduce(TN__OP_SUM, tn__where(on, turn, zero), 1u << (turn->shape->ndim - 2));
        turn = sub(turn, mul(dot(back, adjoint(back)), tn__cast(tn__real(longer), (tn_dtype)turn->dtype)));
        inner = add(inner, tn__where(on, zero, quotient(turn, tn__conjugate(differences(w)))));
    }
    tn__node *ga = solve(back, dot(inner, back));
    c->in[0] = tn_dtype_is_complex((tn_dtype)a->dtype) ? ga : tn__real(ga);
}

/* ---- Fourier transforms: linear operations, whose adjoints are transforms the other way ---- */

static tn__node *transform(tn__op op, tn_dtype dtype, tn_shape shape, tn__node *a, int64_t mode)
{
    const tn__ints *modes = tn__ints_intern(1, &mode);
    return modes ? tn__library(op, dtype, shape, 1, &a, modes)
                 : tn__node_error(tn__error_new(TN_ERR_MEMORY, "fft", "no memory for a gradient"));
}

void tn__grad_fft(tn__chain *c)
{
    c->in[0] =
        transform(TN__OP_FFT, (tn_dtype)c->g->dtype, tn__shape_value(c->g->shape), c->g, !c->node->attr.ints->v[0]);
}

/* The half of a transform of n real numbers, times `factor` but for those that are their own conjugates: the others
 * stand for two. */
static tn__node *weighed(tn__node *half, int64_t n, double factor)
{
    if (tn__node_is_error(half))
        return half;
    tn__node *i = tn__iota(half->shape, half->shape->ndim - 1, half->device), *alone = tn__with(TN__OP_EQUAL, i, 0);
    if (n % 2 == 0)
        alone = tn__binary(TN__OP_LOGICAL_OR, alone, tn__with(TN__OP_EQUAL, i, (double)(n / 2)));
    return tn__where(alone, half, tn__with(TN__OP_MULTIPLY, half, factor));
}

void tn__grad_rfft(tn__chain *c)
{
    tn__node *a = c->node->in[0];
    int64_t n = columns(a);
    c->in[0] = transform(TN__OP_IRFFT, (tn_dtype)a->dtype, tn__shape_value(a->shape), weighed(c->g, n, 0.5), n);
}

void tn__grad_irfft(tn__chain *c)
{
    tn__node *a = c->node->in[0];
    int64_t n = columns(c->node);
    c->in[0] = weighed(transform(TN__OP_RFFT, (tn_dtype)a->dtype, tn__shape_value(a->shape), c->g, n), n, 2);
}
