/* SPDX-License-Identifier: MIT */
/* Windows of random chains of views against indexing element by element. */
#include "graphs.h"

enum { MOST = 4096 };

/* Positions in C order of a shape. */
static void unravel(const tn__shape *shape, int64_t flat, int64_t *at)
{
    for (int d = shape->ndim - 1; d >= 0; d--) {
        at[d] = flat % shape->dim[d];
        flat /= shape->dim[d];
    }
}

static int64_t ravel(const tn__shape *shape, const int64_t *at)
{
    int64_t flat = 0;
    for (int d = 0; d < shape->ndim; d++)
        flat = flat * shape->dim[d] + at[d];
    return flat;
}

/* The element of its input that element `at` of a view is. */
static int64_t origin(const tn__graph *graph, const tn__value *v, const int64_t *at)
{
    const tn__shape *from = graph->value[v->in[0]].shape;
    int64_t source[TN_MAX_NDIM] = {0};
    for (int d = 0; d < from->ndim; d++) {
        if (v->op == TN__OP_EXPAND)
            source[d] = from->dim[d] == 1 ? 0 : at[d];
        else if (v->op == TN__OP_SLICE)
            source[d] = v->attr.ints->v[2 * d] + at[d] * v->attr.ints->v[2 * d + 1];
        else if (v->op == TN__OP_PERMUTE)
            source[v->attr.perm[d]] = at[d];
        else if (v->op == TN__OP_WINDOWS)
            source[d] = at[d];
    }
    for (int i = 0; v->op == TN__OP_WINDOWS && i < v->attr.ints->count; i += 3) {
        const int64_t *one = &v->attr.ints->v[i];
        source[one[0]] = at[one[0]] * one[1] + at[from->ndim + i / 3] * one[2];
    }
    return v->op == TN__OP_RESHAPE ? ravel(v->shape, at) : ravel(from, source);
}

/* Windows along some axes of v, or v itself where they would be too many. */
static int random_windows(tn__graph *graph, int v, test_random *chance)
{
    const tn__shape *from = graph->value[v].shape;
    int64_t dim[TN_MAX_NDIM] = {0}, list[3 * TN_MAX_NDIM];
    int count = 0;
    memcpy(dim, from->dim, sizeof dim);
    for (int d = 0; d < from->ndim && from->ndim + count < TN_MAX_NDIM; d++) {
        if (from->dim[d] == 0 || test_random_int(chance, 0, 1))
            continue;
        int64_t spread = test_random_int(chance, 1, 3), step = test_random_int(chance, 1, 3);
        int64_t extent = test_random_int(chance, 1, (from->dim[d] - 1) / spread + 1);
        memcpy(&list[3 * count], (int64_t[]){d, step, spread}, 3 * sizeof *list);
        dim[d] = (from->dim[d] - 1 - (extent - 1) * spread) / step + 1;
        dim[from->ndim + count++] = extent;
    }
    const tn__shape *shape = tn__shape_intern(from->ndim + count, dim);
    if (count == 0 || shape->size > MOST)
        return v;
    int number = graph_op(graph, TN__OP_WINDOWS, shape, v, -1);
    graph->value[number].attr.ints = tn__ints_intern(3 * count, list);
    assert_non_null(graph->value[number].attr.ints);
    return number;
}

/* A random view of v with at most MOST elements. */
static int random_view(tn__graph *graph, int v, test_random *chance)
{
    const tn__shape *from = graph->value[v].shape;
    int64_t dim[TN_MAX_NDIM] = {0}, start[TN_MAX_NDIM], step[TN_MAX_NDIM];
    memcpy(dim, from->dim, sizeof dim);
    switch (test_random_int(chance, 0, 4)) {
    case 4:
        return random_windows(graph, v, chance);
    case 0: {
        uint8_t perm[TN_MAX_NDIM] = {0};
        for (int d = 0; d < from->ndim; d++) {
            int other = (int)test_random_int(chance, 0, d);
            perm[d] = perm[other];
            perm[other] = (uint8_t)d;
        }
        return graph_permute(graph, v, perm);
    }
    case 1:
        for (int d = 0; d < from->ndim; d++) {
            step[d] = test_random_int(chance, 1, 3) * (test_random_int(chance, 0, 1) ? 1 : -1);
            start[d] = from->dim[d] ? test_random_int(chance, 0, from->dim[d] - 1) : 0;
            int64_t room = step[d] > 0 ? from->dim[d] - 1 - start[d] : start[d];
            int64_t most = from->dim[d] ? room / llabs(step[d]) + 1 : 0;
            dim[d] = test_random_int(chance, 0, 9) ? most : test_random_int(chance, 0, most);
        }
        return graph_slice(graph, v, start, step, tn__shape_intern(from->ndim, dim));
    case 2:
        for (int d = 0; d < from->ndim; d++)
            if (from->dim[d] == 1 && from->size <= MOST / 3)
                dim[d] = test_random_int(chance, 0, 9) ? 3 : 1;
        if (tn__shape_intern(from->ndim, dim)->size > MOST)
            return v;
        return graph_op(graph, TN__OP_EXPAND, tn__shape_intern(from->ndim, dim), v, -1);
    default: { /* factors of the size, spread over new dimensions */
        int ndim = (int)test_random_int(chance, 1, 5);
        int64_t left = from->size;
        for (int d = 0; d < ndim; d++)
            dim[d] = 1;
        for (int64_t factor = 2; factor <= left; factor++)
            for (; left % factor == 0 && left; left /= factor)
                dim[test_random_int(chance, 0, ndim - 1)] *= factor;
        if (!left)
            dim[0] = 0;
        return graph_op(graph, TN__OP_RESHAPE, tn__shape_intern(ndim, dim), v, -1);
    }
    }
}

/* Can these positions be reached by strides at all? */
static bool affine(const tn__shape *shape, const int64_t *position)
{
    int64_t stride[TN_MAX_NDIM], at[TN_MAX_NDIM];
    for (int d = 0; d < shape->ndim; d++) {
        int64_t one[TN_MAX_NDIM] = {0};
        one[d] = shape->dim[d] > 1;
        stride[d] = position[ravel(shape, one)] - position[0];
    }
    for (int64_t i = 0; i < shape->size; i++) {
        int64_t sum = position[0];
        unravel(shape, i, at);
        for (int d = 0; d < shape->ndim; d++)
            sum += at[d] * stride[d];
        if (sum != position[i])
            return false;
    }
    return true;
}

static void test_chains(void **state)
{
    (void)state;
    test_random chance = test_random_new();
    static int64_t position[2][MOST];
    int blocks = 0, empties = 0;
    for (int round = 0; round < 3000; round++) {
        tn__graph graph = {0};
        int64_t dim[TN_MAX_NDIM] = {0}, at[TN_MAX_NDIM];
        int ndim = (int)test_random_int(&chance, 0, 5);
        for (int d = 0; d < ndim; d++)
            dim[d] = test_random_int(&chance, 0, 30) ? test_random_int(&chance, 1, 4) : 0;
        int v = graph_leaf(&graph, tn__shape_intern(ndim, dim), false);
        int64_t *now = position[0], *next = position[1];
        for (int64_t i = 0; i < graph.value[v].shape->size; i++)
            now[i] = i;
        for (int link = 0; link < 6; link++) {
            int view = random_view(&graph, v, &chance);
            if (view == v)
                continue;
            const tn__shape *to = graph.value[view].shape;
            for (int64_t i = 0; i < to->size; i++) {
                unravel(to, i, at);
                next[i] = now[origin(&graph, &graph.value[view], at)];
            }
            tn__window w;
            int blocked = -1;
            if (!tn__window_of(&graph, view, NULL, &w, &blocked)) {
                assert_int_equal(blocked, v);
                assert_true(to->size > 0);
                assert_false(affine(to, next));
                blocks++;
                break;
            }
            assert_int_equal(w.base, 0);
            assert_int_equal(w.ndim, to->ndim);
            assert_memory_equal(w.dim, to->dim, sizeof(int64_t) * (size_t)to->ndim);
            for (int64_t i = 0; i < to->size; i++) {
                int64_t sum = w.offset;
                unravel(to, i, at);
                for (int d = 0; d < w.ndim; d++)
                    sum += at[d] * w.stride[d];
                if (sum != next[i])
                    fail_msg("round %d, link %d (%s): element %lld is read at %lld, expected %lld", round, link,
                             tn__ops[graph.value[view].op].name, (long long)i, (long long)sum, (long long)next[i]);
            }
            empties += to->size == 0;
            v = view;
            int64_t *swap = now;
            now = next;
            next = swap;
        }
        tn__graph_free(&graph);
    }
    assert_true(blocks > 30 && empties > 30);
}

/* What is stored on the way is the base, in C order. */
static void test_stored_views(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int leaf = graph_leaf(&graph, shape(2, 3, 4), false);
    int turned = graph_permute(&graph, leaf, (const uint8_t[]){1, 0});
    int flat = graph_op(&graph, TN__OP_RESHAPE, shape(1, 12), turned, -1);
    bool stored[3] = {false};
    tn__window w;
    int blocked;
    assert_false(tn__window_of(&graph, flat, stored, &w, &blocked));
    assert_int_equal(blocked, turned);
    stored[turned] = true;
    assert_true(tn__window_of(&graph, flat, stored, &w, &blocked));
    assert_int_equal(w.base, turned);
    assert_int_equal(w.ndim, 1);
    assert_int_equal(w.stride[0], 1);
    tn__graph_free(&graph);
}

/* A leaf that is itself a window is read through its strides. */
static void test_strided_leaves(void **state)
{
    (void)state;
    tn__graph graph = {0};
    int leaf = graph_leaf(&graph, shape(2, 3, 4), false);
    graph.value[leaf].strides = tn__ints_intern(2, (const int64_t[]){-8, 2});
    int turned = graph_permute(&graph, leaf, (const uint8_t[]){1, 0});
    int part = graph_slice(&graph, turned, (const int64_t[]){3, 0}, (const int64_t[]){-1, 2}, shape(2, 4, 2));
    tn__window w;
    int blocked;
    assert_true(tn__window_of(&graph, part, NULL, &w, &blocked));
    assert_int_equal(w.offset, 6);
    assert_int_equal(w.stride[0], -2);
    assert_int_equal(w.stride[1], -16);
    tn__graph_free(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_stored_views),
        cmocka_unit_test(test_strided_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
