/* SPDX-License-Identifier: MIT */
/* Replaying numpy.linalg. */
#include "replay.h"

#include <math.h>
#include <string.h>

#define NAME(f) (void (*)(void))(f)

static void of_matrix(call *c, const row *r)
{
    tn_array *(*f)(const tn_array *) = (tn_array * (*)(const tn_array *)) r->function;
    give(c, f(array(c, 0)));
}

static bool upper(call *c, int i)
{
    const char *word = string(c, i, "L");
    if (strlen(word) != 1 || !strchr("LlUu", *word))
        refuse(c, "UPLO '%s'", word);
    return *word == 'U' || *word == 'u';
}

static void solve(call *c, const row *r)
{
    (void)r;
    tn_array *a = array(c, 0), *b = array(c, 1);
    if (numpy_1 && tn_ndim(b) == 1 && tn_ndim(a) != 2)
        refuse(c, "as many vectors as matrices");
    bool vectors = numpy_1 && tn_ndim(b) == tn_ndim(a) - 1; /* one for each matrix */
    give(c, vectors ? tn_squeeze(tn_linalg_solve(a, tn_expand_dims(b, -1)), TN_AXES(-1)) : tn_linalg_solve(a, b));
}

static void slogdet(call *c, const row *r)
{
    (void)r;
    tn_array *sign, *logdet;
    if (tn_linalg_slogdet(array(c, 0), &sign, &logdet) != TN_OK) { /* the results tell */
    }
    give(c, sign);
    give(c, logdet);
}

static void cholesky(call *c, const row *r)
{
    (void)r;
    give(c, tn_linalg_cholesky(array(c, 0), .upper = boolean(c, 1, false)));
}

static void qr(call *c, const row *r)
{
    (void)r;
    static const char *const words[] = {"reduced", "complete", "r", "raw"};
    const char *word = string(c, 1, "reduced");
    int mode = 0;
    if (!strcmp(word, "full") || !strcmp(word, "f"))
        word = "reduced"; /* as they were called once */
    while (mode < 4 && strcmp(word, words[mode]))
        mode++;
    if (mode == 4) {
        refuse(c, "no such mode: %s", word);
        return;
    }
    tn_array *q, *other;
    if (tn_linalg_qr(array(c, 0), &q, &other, .mode = (tn_qr_mode)mode) != TN_OK) {
    }
    if (mode == TN_QR_RAW)
        give(c, q);
    else if (mode != TN_QR_R)
        give_vectors(c, q, 1);
    give(c, other);
    c->holds = mode == TN_QR_REDUCED || mode == TN_QR_COMPLETE ? holds_qr : NULL;
    c->open = 3;
}

static void svd(call *c, const row *r)
{
    (void)r;
    tn_array *u, *s, *vh, *a = array(c, 0);
    if (!boolean(c, 2, true)) {
        give(c, tn_linalg_svdvals(a));
        return;
    }
    if (tn_linalg_svd(a, &u, &s, &vh, .reduced = !boolean(c, 1, true), .hermitian = boolean(c, 3, false)) != TN_OK) {
    }
    give_vectors(c, u, 2);
    give(c, s);
    give(c, vh);
    c->holds = holds_svd;
    c->open = 5;
}

static void eigh(call *c, const row *r)
{
    (void)r;
    tn_array *w, *v;
    if (tn_linalg_eigh(array(c, 0), &w, &v, .upper = upper(c, 1)) != TN_OK) {
    }
    give(c, w);
    give_vectors(c, v, -1);
    c->holds = holds_eigh;
    c->open = 2;
}

static void eigvalsh(call *c, const row *r)
{
    (void)r;
    give(c, tn_linalg_eigvalsh(array(c, 0), .upper = upper(c, 1)));
}

/* Of real matrices real where all eigenvalues are, until NumPy 2.5. */
static tn_array *eigen(tn_array *x)
{
    if (!numpy_2_5 || tn_is_error(x) || tn_dtype_is_complex(tn_dtype_of(x)))
        return x;
    return tn_cast(x, tn_dtype_of(x) == TN_FLOAT32 ? TN_COMPLEX64 : TN_COMPLEX128);
}

static void eig(call *c, const row *r)
{
    (void)r;
    tn_array *w, *v;
    if (tn_linalg_eig(array(c, 0), &w, &v) != TN_OK) {
    }
    give(c, eigen(w));
    give_vectors(c, eigen(v), -1);
    c->spectrum = true;
    c->holds = holds_eig;
    c->open = 2;
}

static void eigvals(call *c, const row *r)
{
    (void)r;
    give(c, eigen(tn_linalg_eigvals(array(c, 0))));
    c->spectrum = true;
}

static void lstsq(call *c, const row *r)
{
    (void)r;
    tn_array *x, *residuals, *rank, *s;
    if (tn_linalg_lstsq(array(c, 0), array(c, 1), &x, &residuals, &rank, &s, .rcond = number(c, 2, 0)) != TN_OK) {
    }
    give(c, x);
    give(c, residuals);
    give(c, rank);
    give(c, s);
}

/* A tolerance a matrix: an array of one axis or more. */
static tn_array *tolerances(call *c, int i)
{
    bool several =
        given(c, i) && (c->slot[i]->kind == LIST || (c->slot[i]->kind == ARRAY && tn_ndim(c->slot[i]->array) > 0));
    return several ? tn_expand_dims(array(c, i), -1) : NULL;
}

/* rcond and rtol are two names of one thing; hermitian may be the third argument or behind them. */
static void pinv(call *c, const row *r)
{
    (void)r;
    if (given(c, 1) && given(c, 3))
        refuse(c, "rcond and rtol");
    tn_array *rcond = tolerances(c, given(c, 3) ? 3 : 1), *u, *s, *vh;
    if (rcond && !boolean(c, 2, false) && tn_size(array(c, 0)) > 0) {
        if (tn_linalg_svd(array(c, 0), &u, &s, &vh, .reduced = true) != TN_OK)
            return;
        tn_array *kept = tn_greater(s, tn_multiply(rcond, tn_max(s, .axis = TN_AXES(-1), .keepdims = true)));
        tn_array *inverse = tn_where(kept, tn_reciprocal(s), 0);
        if (tn_ndim(kept) != tn_ndim(s) || tn_size(kept) != tn_size(s))
            refuse(c, "tolerances that are none of a matrix");
        give(c, tn_matmul(tn_multiply(tn_conjugate(tn_swapaxes(vh, -1, -2)), tn_expand_dims(inverse, -2)),
                          tn_conjugate(tn_swapaxes(u, -1, -2))));
        return;
    }
    const tn_pinv_opts o = {._ = given(c, 1) || given(c, 3) ? ".rcond" : NULL, /* zero, too */
                            .rcond = given(c, 3) ? number(c, 3, 0) : number(c, 1, 0),
                            .hermitian = boolean(c, 2, false)};
    give(c, tn_linalg_pinv_with(array(c, 0), &o));
}

static void matrix_rank(call *c, const row *r)
{
    (void)r;
    if (given(c, 1) && given(c, 3))
        refuse(c, "tol and rtol");
    tn_array *tol = tolerances(c, 1), *rtol = tolerances(c, 3);
    if (rtol)
        tol = tn_multiply(rtol, tn_max(tn_linalg_svdvals(array(c, 0)), .axis = TN_AXES(-1), .keepdims = true));
    if (tol && tn_ndim(array(c, 0)) > 1) {
        give(c, tn_count_nonzero(tn_greater(tn_linalg_svdvals(array(c, 0)), tol), .axis = TN_AXES(-1)));
        return;
    }
    const tn_pinv_opts o = {._ = given(c, 1) ? ".tol" : given(c, 3) ? ".rcond" : NULL, /* zero, too */
                            .rcond = number(c, 3, 0),
                            .tol = number(c, 1, 0),
                            .hermitian = boolean(c, 2, false)};
    give(c, tn_linalg_matrix_rank_with(array(c, 0), &o));
}

static void matrix_power(call *c, const row *r)
{
    (void)r;
    give(c, tn_linalg_matrix_power(array(c, 0), integer(c, 1, 0)));
}

static void multi_dot(call *c, const row *r)
{
    (void)r;
    tn_array *part[MAX_ARGUMENTS];
    int count = arrays(c, c->slot[0], part, MAX_ARGUMENTS);
    tn_out_opts opts = {.out = given(c, 1) ? array(c, 1) : NULL};
    give(c, tn_linalg_multi_dot_with(count, (const tn_array *const *)part, &opts));
}

static tn_norm_order order(call *c, int i)
{
    if (!given(c, i))
        return (tn_norm_order){0, 0};
    if (c->slot[i]->kind != STRING)
        return TN_ORD(number(c, i, 2));
    const char *word = string(c, i, "");
    if (strcmp(word, "nuc") == 0)
        return TN_NUC;
    if (strcmp(word, "fro") && strcmp(word, "f"))
        refuse(c, "no such norm: %s", word);
    return TN_FRO;
}

static void norm(call *c, const row *r)
{
    (void)r;
    const value *ord = given(c, 1) ? c->slot[1] : NULL;
    int over = axes(c, 2).count ? axes(c, 2).count : tn_ndim(array(c, 0));
    bool least = ord && (ord->kind == FLOAT ? over == 2 || isinf(ord->f)
                                            : over == 2 && (ord->kind != STRING || *ord->text == 'n'));
    if (numpy_1 && least && tn_size(array(c, 0)) == 0)
        refuse(c, "nothing has no largest element");
    give(c, tn_linalg_norm(array(c, 0), .ord = order(c, 1), .axis = axes(c, 2), .keepdims = boolean(c, 3, false)));
}

/* Of the array as a vector, or along an axis. */
static void vector_norm(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0);
    tn_axes along = axes(c, 1);
    tn_norm_order ord = given(c, 3) ? order(c, 3) : TN_ORD(2);
    if (given(c, 1) && along.count == 1) {
        give(c, tn_linalg_norm(x, .ord = ord, .axis = along, .keepdims = boolean(c, 2, false)));
    } else if (given(c, 1)) { /* several axes as one: behind the others */
        int ndim = tn_ndim(x);
        tn_axes last = {.count = along.count};
        tn_shape flat = {.ndim = ndim - along.count + 1}, ones = tn_shape_of(x);
        for (int i = 0; i < along.count; i++) {
            last.axis[i] = ndim - along.count + i;
            ones.dim[along.axis[i] < 0 ? along.axis[i] + ndim : along.axis[i]] = 1;
        }
        x = tn_moveaxis(x, along, last);
        for (int i = 0; i < flat.ndim; i++)
            flat.dim[i] = i < flat.ndim - 1 ? tn_dim(x, i) : -1;
        tn_array *y = tn_linalg_norm(tn_reshape(x, flat), .ord = ord, .axis = TN_AXES(-1));
        give(c, boolean(c, 2, false) ? tn_reshape(y, ones) : y);
    } else {
        tn_array *y = tn_linalg_norm(tn_flatten(x), .ord = ord);
        tn_shape ones = {.ndim = boolean(c, 2, false) ? tn_ndim(x) : 0};
        for (int i = 0; i < ones.ndim; i++)
            ones.dim[i] = 1;
        give(c, tn_reshape(y, ones));
    }
}

static void matrix_norm(call *c, const row *r)
{
    (void)r;
    give(c, tn_linalg_norm(array(c, 0), .ord = given(c, 2) ? order(c, 2) : TN_FRO, .axis = TN_AXES(-2, -1),
                           .keepdims = boolean(c, 1, false)));
}

static void cond(call *c, const row *r)
{
    (void)r;
    tn_array *x = array(c, 0), *y = tn_linalg_cond(x, order(c, 1));
    bool complex = numpy_1 && tn_dtype_is_complex(tn_dtype_of(x)) && !tn_is_error(y);
    give(c, complex ? tn_cast(y, tn_dtype_of(x)) : y);
}

/* number: 0 diagonal, 1 trace, of the last two axes; 2: they change places */
static void last_two(call *c, const row *r)
{
    tn_array *x = array(c, 0);
    int k = r->number < 2 ? (int)integer(c, 1, 0) : 0;
    if (tn_ndim(x) < 2)
        refuse(c, "expected two axes");
    if (c->refused)
        return;
    give(c, r->number == 2 ? tn_swapaxes(x, -1, -2)
            : r->number ? tn_trace(x, k, -2, -1, dtype(c, 2, TN_DTYPE_DEFAULT)) : tn_diagonal(x, k, -2, -1));
}

static void tensorsolve(call *c, const row *r)
{
    (void)r;
    give(c, tn_linalg_tensorsolve(array(c, 0), array(c, 1), axes(c, 2)));
}

static void tensorinv(call *c, const row *r)
{
    (void)r;
    give(c, tn_linalg_tensorinv(array(c, 0), (int)integer(c, 1, 2)));
}

static const row rows[] = {
    {"linalg.diagonal", "x offset", last_two, NULL, 0},
    {"linalg.trace", "x offset dtype", last_two, NULL, 1},
    {"linalg.matrix_transpose", "x", last_two, NULL, 2},
    {"linalg.tensorsolve", "a b axes", tensorsolve, NULL, 0},
    {"linalg.tensorinv", "a ind", tensorinv, NULL, 0},
    {"linalg.solve", "a b", solve, NULL, 0},
    {"linalg.inv", "a", of_matrix, NAME((tn_linalg_inv)), 0},
    {"linalg.det", "a", of_matrix, NAME((tn_linalg_det)), 0},
    {"linalg.slogdet", "a", slogdet, NULL, 0},
    {"linalg.cholesky", "a upper", cholesky, NULL, 0},
    {"linalg.qr", "a mode", qr, NULL, 0},
    {"linalg.svd", "a full_matrices compute_uv hermitian", svd, NULL, 0},
    {"linalg.svdvals", "x", of_matrix, NAME((tn_linalg_svdvals)), 0},
    {"linalg.eigh", "a UPLO", eigh, NULL, 0},
    {"linalg.eigvalsh", "a UPLO", eigvalsh, NULL, 0},
    {"linalg.eig", "a", eig, NULL, 0},
    {"linalg.eigvals", "a", eigvals, NULL, 0},
    {"linalg.lstsq", "a b rcond", lstsq, NULL, 0},
    {"linalg.pinv", "a rcond hermitian rtol", pinv, NULL, 0},
    {"linalg.matrix_rank", "A tol hermitian rtol", matrix_rank, NULL, 0},
    {"linalg.matrix_power", "a n", matrix_power, NULL, 0},
    {"linalg.multi_dot", "arrays out", multi_dot, NULL, 0},
    {"linalg.norm", "x ord axis keepdims", norm, NULL, 0},
    {"linalg.vector_norm", "x axis keepdims ord", vector_norm, NULL, 0},
    {"linalg.matrix_norm", "x keepdims ord", matrix_norm, NULL, 0},
    {"linalg.cond", "x p", cond, NULL, 0},
};
REPLAY_ROWS(rows)
