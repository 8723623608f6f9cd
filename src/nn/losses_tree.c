/* SPDX-License-Identifier: MIT */
/* Hierarchical softmax: a word's chance as a product of choices along its path in a binary tree; Huffman's tree. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <tanso/array.h>
#include <tanso/engine.h>

#include "core/memory.h"
#include "nn/loss_parts.h"

tn__node *tn__hierarchical_softmax(tn__node *x, tn__node *t, tn__node *w, tn__node *paths, tn__node *codes,
                                   tn_reduction reduction)
{
    static const char operation[] = "hierarchical_softmax";
    tn__node *error = tn__first_error(5, (tn__node *[]){x, t, w, paths, codes});
    if (error)
        return error;
    char text[TN__SHAPE_TEXT], other[TN__SHAPE_TEXT];
    if (x->shape->ndim != 2 || w->shape->ndim != 2 || x->shape->dim[1] != w->shape->dim[1])
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected x (N, features) and w (nodes, features), got %s and %s",
                   tn__shape_text(x->shape->ndim, x->shape->dim, text),
                   tn__shape_text(w->shape->ndim, w->shape->dim, other));
    if (paths->shape->ndim != 2 || paths->shape != codes->shape)
        TN__REFUSE(TN_ERR_SHAPE, operation, "expected paths and codes (words, depth), got %s and %s",
                   tn__shape_text(paths->shape->ndim, paths->shape->dim, text),
                   tn__shape_text(codes->shape->ndim, codes->shape->dim, other));
    t = tn__fit_rows(operation, t, x->shape->dim[0]);
    tn__node *wide = tn__widened(x);
    tn__node *code = tn__cast(tn__embed(operation, codes, t), (tn_dtype)wide->dtype);
    tn__node *rows = tn__embed(operation, w, tn__embed(operation, paths, t)); /* (N, depth, features) */
    tn__node *scores = tn__without_axis(tn__sum_over(mul(tn__spread(wide, 1), rows), 1u << 2), 2);
    tn__node *loss = tn__only_where(with(NOT_EQUAL, code, 0), map(SOFTPLUS, minus(mul(code, scores))));
    loss = tn__without_axis(tn__sum_over(loss, 1u << 1), 1);
    return tn__reduced(operation, loss, reduction, tn_dtype_promote((tn_dtype)x->dtype, (tn_dtype)w->dtype));
}

tn_array *tn_hierarchical_softmax_with(const tn_array *x, const tn_array *t, const tn_array *w, const tn_array *paths,
                                       const tn_array *codes, const tn_loss_opts *opts)
{
    static const char operation[] = "hierarchical_softmax";
    TN__RETURN(tn__hierarchical_softmax(tn__only_floating(x, operation), tn__only_integers(t, operation),
                                        tn__only_floating(w, operation), tn__only_integers(paths, operation),
                                        tn__only_floating(codes, operation),
                                        TN__REDUCTION(opts)));
}

/* ---- Huffman's tree ---- */

/* Nodes 0 .. words-1 are leaves; those behind are inner ones, in the order they are made: counts never fall. */
typedef struct huffman {
    int64_t words, depth;
    double *count;
    int64_t *parent, *order; /* of leaves by their counts */
    signed char *side;       /* 1: a left child */
} huffman;

typedef struct leaf {
    double count;
    int64_t word;
} leaf;

static int by_count(const void *a, const void *b)
{
    const leaf *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x->word < y->word ? -1 : x->word > y->word;
}

/* Joins the two smallest nodes, as long as there are two: leaves and inner nodes are queues in order of counts. */
static void join_all(huffman *h)
{
    int64_t leaf_at = 0, inner_at = h->words, made = h->words;
    for (; made < 2 * h->words - 1; made++) {
        for (int i = 0; i < 2; i++) {
            bool inner = leaf_at == h->words ||
                         (inner_at < made && h->count[inner_at] < h->count[h->order[leaf_at]]);
            int64_t child = inner ? inner_at++ : h->order[leaf_at++];
            h->parent[child] = made;
            h->side[child] = i == 0 ? 1 : -1;
            h->count[made] += h->count[child];
        }
    }
    h->parent[made - 1] = -1;
}

static int64_t length_of(const huffman *h, int64_t word)
{
    int64_t length = 0;
    for (int64_t node = word; h->parent[node] >= 0; node = h->parent[node])
        length++;
    return length;
}

static void fill(const huffman *h, int64_t *paths, float *codes)
{
    for (int64_t word = 0; word < h->words; word++) {
        int64_t at = word * h->depth + length_of(h, word);
        for (int64_t node = word; h->parent[node] >= 0; node = h->parent[node]) {
            paths[--at] = h->parent[node] - h->words;
            codes[at] = h->side[node];
        }
    }
}

static tn_status build(huffman *h, const double *counts, leaf *leaves)
{
    for (int64_t i = 0; i < h->words; i++) {
        if (!(counts[i] >= 0) || isinf(counts[i]))
            return tn__fail(TN_ERR_VALUE, "huffman_tree", "expected counts >= 0, got %g at %" PRId64, counts[i], i);
        h->count[i] = counts[i];
        leaves[i] = (leaf){counts[i], i};
    }
    qsort(leaves, (size_t)h->words, sizeof *leaves, by_count);
    for (int64_t i = 0; i < h->words; i++)
        h->order[i] = leaves[i].word;
    join_all(h);
    for (int64_t i = 0; i < h->words; i++) {
        int64_t length = length_of(h, i);
        h->depth = length > h->depth ? length : h->depth;
    }
    return TN_OK;
}

/* The tree as arrays of the open scope. */
static tn_status as_arrays(const huffman *h, tn_array **paths, tn_array **codes)
{
    size_t elements = (size_t)(h->words * h->depth);
    int64_t *path = tn__calloc(elements, sizeof *path);
    float *code = tn__calloc(elements, sizeof *code);
    tn_status status = TN_OK;
    if (path && code) {
        const tn_shape shape = {2, {h->words, h->depth}};
        fill(h, path, code);
        *paths = tn_from_host_with(path, shape, TN_INT64, NULL);
        *codes = tn_from_host_with(code, shape, TN_FLOAT32, NULL);
        status = tn_is_error(*paths) ? tn_status_of(*paths) : tn_status_of(*codes);
    } else {
        status = tn__fail_memory("huffman_tree", elements * (sizeof *path + sizeof *code));
    }
    tn__free(path);
    tn__free(code);
    return status;
}

tn_status tn__read_counts(const char *operation, const tn_array *counts, double **values, int64_t *words)
{
    tn__node *node = tn__node_of(counts, operation);
    if (tn__node_is_error(node))
        return tn__error_raise(node->error);
    *words = node->shape->size;
    if (node->shape->ndim != 1 || *words < 2 || tn_dtype_is_complex((tn_dtype)node->dtype))
        return tn__fail(TN_ERR_SHAPE, operation, "expected counts of two words or more, a vector of real numbers");
    if (!(*values = tn__calloc((size_t)*words, sizeof **values)))
        return tn__fail_memory(operation, (size_t)*words * sizeof **values);
    tn__scope_guard scope = tn__scope_enter();
    tn_status status = tn_to_host(tn_cast(counts, TN_FLOAT64), *values, (size_t)*words * sizeof **values);
    tn__scope_leave(&scope);
    return status;
}

tn_status tn_huffman_tree(const tn_array *counts, tn_array **paths, tn_array **codes)
{
    static const char operation[] = "huffman_tree";
    TN__NO_PLACE();
    if (!counts || !paths || !codes)
        return tn__fail_null(operation, "counts, and places for paths and codes");
    double *values = NULL;
    huffman h = {0};
    tn_status status = tn__read_counts(operation, counts, &values, &h.words);
    size_t nodes = (size_t)(2 * h.words);
    leaf *leaves = status == TN_OK ? tn__calloc(nodes, sizeof *leaves) : NULL;
    if (leaves) {
        h.count = tn__calloc(nodes, sizeof *h.count);
        h.parent = tn__calloc(nodes, sizeof *h.parent);
        h.order = tn__calloc(nodes, sizeof *h.order);
        h.side = tn__calloc(nodes, sizeof *h.side);
    }
    if (status == TN_OK && !(leaves && h.count && h.parent && h.order && h.side))
        status = tn__fail_memory(operation, nodes * (sizeof *leaves + sizeof *h.count + 2 * sizeof *h.parent));
    if (status == TN_OK)
        status = build(&h, values, leaves);
    if (status == TN_OK)
        status = as_arrays(&h, paths, codes);
    if (status != TN_OK)
        *paths = *codes = tn__failed_array();
    void *const all[] = {values, leaves, h.count, h.parent, h.order, h.side};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn__free(all[i]);
    return status;
}
