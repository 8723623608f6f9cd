/* SPDX-License-Identifier: MIT */
/*
 * Einstein summation. Operands are brought into a form where each letter names one axis; then the first two are
 * contracted into one by a matrix product over (kept by both, kept of a, summed) and (kept by both, summed, kept of b),
 * until one is left.
 */
#include "numpy/compose.h"

#include <ctype.h>
#include <string.h>

#include "array/build_parts.h"

#define MAX_OPERANDS 32
#define DOTS '0' /* axes of an ellipsis are '0' for the last, '1' for the one before it, ... */

typedef struct term {
    tn_array *x;
    char label[TN_MAX_NDIM + 1]; /* one a axis */
} term;

typedef struct expression {
    const char *subscripts;
    int count;
    term operand[MAX_OPERANDS];
    char output[64];
    bool arrow;
    int dots; /* most axes of an ellipsis */
} expression;

static tn_array *malformed(const expression *e, const char *reason)
{
    return tn__refused(TN_ERR_VALUE, "einsum", "'%s': %s", e->subscripts, reason);
}

static bool has(const char *labels, char c)
{
    return strchr(labels, c) != NULL && c != '\0';
}

/* ---- parsing ---- */

/* Reads an operand's letters; its ellipsis stands for `dots` axes. The end of it, or NULL if it is malformed. */
static const char *read_labels(const char *at, int dots, char *labels, int capacity)
{
    int n = 0;
    bool ellipsis = false;
    for (; *at && *at != ',' && !(at[0] == '-' && at[1] == '>'); at++) {
        if (isspace((unsigned char)*at))
            continue;
        if (*at == '.') {
            if (ellipsis || strncmp(at, "...", 3) != 0)
                return NULL;
            ellipsis = true;
            for (int d = dots - 1; d >= 0; d--) {
                if (n >= capacity)
                    return NULL;
                labels[n++] = (char)(DOTS + d);
            }
            at += 2;
        } else if (isalpha((unsigned char)*at) && n < capacity) {
            labels[n++] = *at;
        } else {
            return NULL;
        }
    }
    labels[n] = '\0';
    return at;
}

/* Letters and whether there is an ellipsis, up to the end of an operand. */
static int letters_of(const char *at, bool *ellipsis)
{
    int n = 0;
    *ellipsis = false;
    for (; *at && *at != ',' && *at != '-'; at++) {
        n += isalpha((unsigned char)*at) != 0;
        *ellipsis |= *at == '.';
    }
    return n;
}

static tn_array *parse(expression *e, int count, const tn_array *const *operands)
{
    const char *at = e->subscripts;
    e->count = count;
    for (int i = 0; i < count; i++) {
        if (tn_is_error(operands[i]))
            return tn__again(operands[i]);
        bool ellipsis;
        int letters = letters_of(at, &ellipsis), ndim = tn_ndim(operands[i]), dots = ndim - letters;
        if (dots < 0 || (dots > 0 && !ellipsis))
            return malformed(e, "an operand has more or fewer axes than letters");
        e->dots = dots > e->dots && ellipsis ? dots : e->dots;
        at = read_labels(at, dots, e->operand[i].label, TN_MAX_NDIM);
        if (!at)
            return malformed(e, "expected letters and at most one '...' an operand");
        e->operand[i].x = tn__array_of(operands[i]);
        if ((i < count - 1) != (*at == ','))
            return malformed(e, "there are more or fewer operands than parts between commas");
        at += *at == ',';
    }
    e->arrow = *at == '-';
    at = e->arrow ? read_labels(at + 2, e->dots, e->output, (int)sizeof e->output - 1) : at;
    return !at || *at ? malformed(e, "expected letters behind '->'") : NULL;
}

/* Without an arrow: the ellipsis, then the letters that occur once. */
static void implicit_output(expression *e)
{
    int occurs[128] = {0}, n = 0;
    for (int i = 0; i < e->count; i++)
        for (const char *l = e->operand[i].label; *l; l++)
            occurs[(unsigned char)*l]++;
    for (int d = e->dots - 1; d >= 0; d--)
        e->output[n++] = (char)(DOTS + d);
    for (int c = 'A'; c <= 'z'; c++)
        if (isalpha(c) && occurs[c] == 1)
            e->output[n++] = (char)c;
}

static tn_array *check_output(const expression *e)
{
    for (const char *l = e->output; *l; l++) {
        bool known = *l < 'A';
        for (int i = 0; i < e->count; i++)
            known |= has(e->operand[i].label, *l);
        if (!known || strchr(l + 1, *l))
            return malformed(e, "a letter behind '->' is in no operand, or is there twice");
    }
    return strlen(e->output) > TN_MAX_NDIM ? malformed(e, "the result has too many axes") : NULL;
}

/* ---- one operand ---- */

/* Repeated letters: the diagonal, which becomes the last axis. */
static tn_array *take_diagonals(const expression *e, term *t)
{
    for (int a = 0; t->label[a]; a++) {
        char *again = strchr(t->label + a + 1, t->label[a]), letter = t->label[a];
        if (!again)
            continue;
        int b = (int)(again - t->label);
        if (tn_dim(t->x, a) != tn_dim(t->x, b))
            return malformed(e, "the axes of a repeated letter differ in extent");
        t->x = tn_diagonal(t->x, 0, a, b);
        memmove(t->label + b, t->label + b + 1, strlen(t->label + b));
        memmove(t->label + a, t->label + a + 1, strlen(t->label + a));
        size_t n = strlen(t->label);
        t->label[n] = letter;
        t->label[n + 1] = '\0';
        a = -1;
    }
    return NULL;
}

/* Sums over the axes whose letters are not in `kept`. */
static void sum_others(term *t, const char *kept)
{
    tn_reduce_opts opts = {.dtype = tn_dtype_of(t->x)};
    int n = 0;
    for (int a = 0; t->label[a]; a++)
        if (has(kept, t->label[a]))
            t->label[n++] = t->label[a];
        else
            opts.axis.axis[opts.axis.count++] = a;
    t->label[n] = '\0';
    if (opts.axis.count)
        t->x = tn_sum_with(t->x, &opts);
}

/* x with the axes of the letters given, in that order; those it lacks have extent 1. */
static tn_array *arranged(const term *t, const char *labels)
{
    tn_axes order = {0};
    tn_shape shape = {.ndim = (int)strlen(labels)};
    for (int d = 0; labels[d]; d++) {
        const char *found = strchr(t->label, labels[d]);
        shape.dim[d] = found ? tn_dim(t->x, (int)(found - t->label)) : 1;
        if (found)
            order.axis[order.count++] = (int)(found - t->label);
    }
    return tn_reshape(order.count ? tn_transpose(t->x, order) : t->x, shape);
}

/* ---- two operands ---- */

/* The letters of a (or of a alone), in `kept` or not. */
static void choose(char *out, const char *a, const char *b, bool in_b, const char *kept, bool in_kept)
{
    int n = 0;
    for (; *a; a++)
        if (has(b, *a) == in_b && has(kept, *a) == in_kept)
            out[n++] = *a;
    out[n] = '\0';
}

static int64_t extent_of(const term *a, const term *b, char letter)
{
    const char *i = strchr(a->label, letter), *k = strchr(b->label, letter);
    int64_t m = i ? tn_dim(a->x, (int)(i - a->label)) : 1, n = k ? tn_dim(b->x, (int)(k - b->label)) : 1;
    return m == 1 ? n : m;
}

/* A letter names axes of one extent, or of 1. */
static tn_array *check_extents(const expression *e)
{
    for (int i = 1; i < e->count; i++)
        for (const char *l = e->operand[i].label; *l; l++)
            for (int k = 0; k < i; k++) {
                static const term none;
                int64_t m = extent_of(&e->operand[k], &none, *l), n = extent_of(&e->operand[i], &none, *l);
                if (m != n && m != 1 && n != 1)
                    return tn__refused(TN_ERR_SHAPE, "einsum",
                                       "'%s': %s%c%s is %lld in operand %d and %lld in operand %d; they must agree",
                                       e->subscripts, *l < 'A' ? "an axis of '...' (-" : "'", *l < 'A' ? *l + 1 : *l,
                                       *l < 'A' ? ")" : "'", (long long)m, k, (long long)n, i);
            }
    return NULL;
}

/* x as (batch..., rows, columns), the axes of each group merged, after broadcasting to the common extents. */
static tn_array *as_matrices(const term *x, const term *other, const char *batch, const char *rows, const char *columns)
{
    char labels[3 * TN_MAX_NDIM + 1];
    tn_shape full = {0}, matrices = {0};
    int64_t merged[2] = {1, 1};
    strcat(strcat(strcpy(labels, batch), rows), columns);
    for (int d = 0; labels[d]; d++)
        full.dim[full.ndim++] = extent_of(x, other, labels[d]);
    int leading = (int)strlen(batch), middle = leading + (int)strlen(rows);
    for (int d = 0; d < full.ndim; d++)
        if (d < leading)
            matrices.dim[matrices.ndim++] = full.dim[d];
        else
            merged[d >= middle] *= full.dim[d];
    matrices.dim[matrices.ndim++] = merged[0];
    matrices.dim[matrices.ndim++] = merged[1];
    return tn_reshape(tn_broadcast_to(arranged(x, labels), full), matrices);
}

static tn_array *contract(const expression *e, term *a, term *b, const char *kept)
{
    char both[TN_MAX_NDIM + 1], summed[TN_MAX_NDIM + 1], only_a[TN_MAX_NDIM + 1], only_b[TN_MAX_NDIM + 1], result[64];
    choose(both, a->label, b->label, true, kept, true);
    choose(summed, a->label, b->label, true, kept, false);
    choose(only_a, a->label, b->label, false, kept, true);
    choose(only_b, b->label, a->label, false, kept, true);
    strcat(strcat(strcpy(result, both), only_a), only_b);
    if (strlen(result) > TN_MAX_NDIM || strlen(both) + 2 > TN_MAX_NDIM)
        return malformed(e, "a product of two operands has too many axes");
    tn_shape shape = {.ndim = (int)strlen(result)};
    for (int d = 0; d < shape.ndim; d++)
        shape.dim[d] = extent_of(a, b, result[d]);
    if (summed[0])
        a->x = tn_reshape(tn_matmul(as_matrices(a, b, both, only_a, summed), as_matrices(b, a, both, summed, only_b)),
                          shape);
    else
        a->x = tn_broadcast_to(tn_multiply(arranged(a, result), arranged(b, result)), shape);
    strcpy(a->label, result);
    return tn_is_error(a->x) ? a->x : NULL;
}

/* What is computed in: the dtype asked for; out's, if it holds what any operand does, each by itself (int16 and uint16
 * are held by float32, their common int32 is not); else the operands' common one. */
static tn_dtype computed_in(int count, const tn_array *const *operands, const tn_out_opts *opts)
{
    if (opts->dtype)
        return opts->dtype;
    tn_dtype common = tn_result_type(count, operands), out = opts->out ? tn_dtype_of(opts->out) : common;
    for (int i = 0; i < count && out != common; i++)
        if (!tn__is_weak(operands[i]) && tn_dtype_promote(tn_dtype_of(operands[i]), out) != out)
            return common;
    return out;
}

/* All in one dtype: sums of bool are sums where something else is not bool. */
static tn_array *alike(int count, const tn_array *const *operands, tn_array **out, const tn_out_opts *opts)
{
    tn_dtype dtype = computed_in(count, operands, opts);
    for (int i = 0; i < count; i++)
        out[i] = tn__again(operands[i]);
    const tn_out_opts to = {.dtype = dtype, .casting = opts->casting};
    return tn__operands_as("einsum", count, out, &to);
}

/* The letters of the result and of the operands from `first` on. */
static void letters_after(const expression *e, int first, int count, char *kept)
{
    strcpy(kept, e->output);
    for (int k = first; k < count; k++)
        strcat(kept, e->operand[k].label);
}

/* Operand 0, which holds what those up to i gave, times the next one; what nobody else needs of either is summed
 * first. */
static tn_array *contract_next(expression *e, int i, int count)
{
    char kept[MAX_OPERANDS * TN_MAX_NDIM + 64];
    term *so_far = &e->operand[0], *next = i + 1 < count ? &e->operand[i + 1] : NULL;
    letters_after(e, i + 1, count, kept);
    sum_others(so_far, kept);
    if (!next)
        return NULL;
    letters_after(e, i + 2, count, kept);
    strcat(kept, so_far->label);
    sum_others(next, kept);
    letters_after(e, i + 2, count, kept);
    return contract(e, so_far, next, kept);
}

static tn_array *einsum(expression *e, int count, const tn_array *const *given, const tn_out_opts *opts)
{
    static const tn_out_opts defaults = {.casting = "safe"};
    tn_out_opts own = opts ? *opts : defaults;
    own.casting = own.casting ? own.casting : defaults.casting;
    tn_array *operands[MAX_OPERANDS], *error = alike(count, given, operands, &own);
    if (!error)
        error = parse(e, count, (const tn_array *const *)operands);
    if (!error && !e->arrow)
        implicit_output(e);
    if (!error)
        error = check_output(e);
    for (int i = 0; i < count && !error; i++)
        error = take_diagonals(e, &e->operand[i]);
    if (!error)
        error = check_extents(e);
    for (int i = 0; i < count && !error; i++)
        error = contract_next(e, i, count);
    return error ? error : tn__given_out("einsum", arranged(&e->operand[0], e->output), &own);
}

tn_array *tn_einsum_with(const char *subscripts, int count, const tn_array *const *operands, const tn_out_opts *opts)
{
    if (!subscripts || count < 1 || count > MAX_OPERANDS || !operands)
        return tn__refused(TN_ERR_VALUE, "einsum", "expected a string and 1 to %d operands, got %d", MAX_OPERANDS,
                           count);
    expression e = {.subscripts = subscripts};
    TN__COMPOSE(einsum(&e, count, operands, opts));
}

tn_array *tn_einsum(const char *subscripts, int count, const tn_array *const *operands)
{
    return tn_einsum_with(subscripts, count, operands, NULL);
}
