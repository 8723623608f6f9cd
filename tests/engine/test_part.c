/* SPDX-License-Identifier: MIT */
/* A step of which some gradients are evaluated before the rest: the same parameters come of it, and nothing but what
 * costs little is computed twice. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <tanso.h>

#include "array/build.h"
#include "autograd/backward.h"
#include "core/memory.h"
#include "engine/engine.h"
#include "support/device.h"
#include "support/random.h"

enum { MOST = 4096, UNITS = 7, SIDE = 7, BATCH = 5, ROUNDS = 12 };

static test_random common;

/* ---- pending nodes ---- */

typedef struct nodes {
    const tn__node *node[MOST];
    int count;
} nodes;

static bool has(const nodes *n, const tn__node *node)
{
    for (int i = 0; i < n->count; i++)
        if (n->node[i] == node)
            return true;
    return false;
}

static void add_under(nodes *n, const tn__node *node)
{
    if (node->storage || has(n, node))
        return;
    assert_true(n->count < MOST);
    n->node[n->count++] = node;
    for (int i = 0; i < node->arity; i++)
        add_under(n, node->in[i]);
}

/* Is it worth keeping? */
static bool costs(const tn__node *node)
{
    int kind = tn__ops[node->op].kind;
    return node->arity > 0 && kind != TN__KIND_MAP && kind != TN__KIND_VIEW && node->op != TN__OP_EXPAND &&
           node->op != TN__OP_SLICE;
}

/* ---- a network, twice ---- */

/* Of some layers, or of two convolutions. */
static tn_layer *make(int layers, uint64_t seed, const tn_array *x)
{
    static const char *const between[] = {"relu", "tanh", "gelu", "layer_norm", "sigmoid", "dropout:0.5"};
    char words[256] = "conv:3,3,pad=1 bn relu maxpool:2 dropout:0.3 conv:4,3 relu gap ";
    tn_seed(seed);
    for (int i = 0; i < layers; i++) {
        size_t at = i ? strlen(words) : 0;
        snprintf(words + at, sizeof words - at, "%slinear:%d %s ", i ? "" : "flatten ", UNITS,
                 between[(seed + (uint64_t)i) % 6]);
    }
    strcat(words, "linear:3");
    tn_layer *net = tn_layer_parse(words);
    TN_SCOPE assert_false(tn_is_error(tn_forward(net, x))); /* which makes parameters */
    return net;
}

static tn__node *gradient_of(const tn_layer *net, int i)
{
    return tn__var_grad(tn__array_var(tn_param(net, i)));
}

/* Some gradients from the last on, and then what is left. */
static void check_part(tn_layer *net, const tn_array *loss, int count)
{
    static nodes first, rest;
    tn__node *root[64];
    int params = tn_param_count(net);
    first.count = rest.count = 0;
    for (int i = 0; i < count; i++) {
        root[i] = gradient_of(net, params - 1 - i);
        add_under(&first, root[i]);
    }
    assert_int_equal(tn__evaluate_part(count, root), TN_OK);
    for (int i = 0; i < count; i++)
        assert_non_null(root[i]->storage);
    for (int i = 0; i < params - count; i++)
        add_under(&rest, gradient_of(net, i));
    add_under(&rest, tn__array_node(loss));
    for (int i = 0; i < rest.count; i++)
        if (costs(rest.node[i]) && has(&first, rest.node[i]))
            fail_msg("%s would be computed again", tn__ops[rest.node[i]->op].name);
}

static void assert_close(const tn_array *a, const tn_array *b)
{
    static float x[1024], y[1024];
    assert_int_equal(tn_to_host(a, x, sizeof x), TN_OK);
    assert_int_equal(tn_to_host(b, y, sizeof y), TN_OK);
    for (int64_t i = 0; i < tn_size(a); i++)
        assert_true(fabs((double)x[i] - (double)y[i]) <= 1e-5 * (1 + fabs((double)x[i])));
}

static void test_parts(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int layers = (int)test_random_int(&common, 0, 3);
        uint64_t seed = (uint64_t)test_random_int(&common, 0, 1 << 20);
        tn_array *x = NULL, *t = NULL;
        TN_SCOPE {
            x = tn_own(tn_random_normal(TN_SHAPE(BATCH, 1, SIDE, SIDE)));
            t = tn_own(tn_random_integers(0, 3, TN_SHAPE(BATCH)));
        }
        tn_layer *net[2] = {make(layers, seed, x), make(layers, seed, x)};
        tn_optimizer *optimizer[2];
        for (int n = 0; n < 2; n++)
            optimizer[n] = tn_momentum_sgd(net[n], .lr = 0.1);
        for (int step = 0; step < 2; step++)
            for (int n = 0; n < 2; n++)
                TN_SCOPE {
                    tn_seed(seed + (uint64_t)step); /* of dropout */
                    tn_array *loss = tn_softmax_cross_entropy(tn_forward(net[n], x), t);
                    assert_int_equal(tn_backward(loss), TN_OK);
                    int params = tn_param_count(net[n]);
                    if (n == 1)
                        check_part(net[n], loss, (int)test_random_int(&common, 1, params));
                    assert_int_equal(tn_step(optimizer[n]), TN_OK);
                    assert_true(isfinite(tn_item(loss)));
                }
        for (int i = 0; i < tn_param_count(net[0]); i++)
            assert_close(tn_param(net[0], i), tn_param(net[1], i));
        for (int n = 0; n < 2; n++) {
            tn_optimizer_free(optimizer[n]);
            tn_layer_free(net[n]);
        }
        tn_free(x);
        tn_free(t);
    }
}

/* Roots of several dtypes in one block of memory, but for one that has a value before, and one that is the transpose of
 * another: their places stay free. */
static void test_side_by_side(void **state)
{
    (void)state;
    enum { ROOTS = 7 };
    for (int round = 0; round < ROUNDS; round++)
        TN_SCOPE {
            static const tn_dtype dtypes[] = {TN_FLOAT64, TN_FLOAT32, TN_FLOAT32, TN_INT64, TN_FLOAT16, TN_FLOAT32};
            tn_array *x = tn_random_normal(TN_SHAPE(1 + test_random_int(&common, 0, 40), 3)), *root[ROOTS];
            assert_int_equal(tn_eval(x), TN_OK);
            tn__node *node[ROOTS];
            for (int i = 0; i < ROOTS - 1; i++)
                root[i] = tn_cast(tn_multiply(i % 2 ? x : tn_slice_axis(x, 0, 0, 1, 1), 2.0 + i), dtypes[i]);
            root[ROOTS - 1] = tn_swapaxes(root[1], 0, 1);
            int before = (int)test_random_int(&common, 0, ROOTS - 2);
            assert_int_equal(tn_eval(root[before]), TN_OK);
            for (int i = 0; i < ROOTS; i++)
                node[i] = tn__array_node(root[i]);
            assert_int_equal(tn__evaluate_side_by_side(ROOTS, node, round % 2), TN_OK);
            const char *block = NULL;
            int64_t at = 0;
            for (int i = 0; i < ROOTS - 1; i++) {
                const char *memory = (const char *)node[i]->storage->memory +
                                     node[i]->offset * (int64_t)tn_dtype_size(dtypes[i]);
                if (i != before && !block)
                    block = memory - at;
                assert_true(node[i]->storage->references > 0 && (i == before) == (memory != block + at));
                at = tn__side_by_side(at, node[i]);
                assert_true(at % TN__ALIGNMENT == 0);
            }
            for (int i = 0; i < ROOTS - 1; i++) {
                tn_array *again = tn_cast(tn_multiply(i % 2 ? x : tn_slice_axis(x, 0, 0, 1, 1), 2.0 + i), dtypes[i]);
                assert_true(tn_array_equal(root[i], again, false));
            }
            assert_true(tn_array_equal(tn_swapaxes(root[ROOTS - 1], 0, 1), root[1], false));
        }
}

/* The first rows of a product, whose other rows find no room in their place, in front of another root. */
static void test_beginnings_side_by_side(void **state)
{
    (void)state;
    TN_SCOPE {
        int64_t rows = test_random_int(&common, 65, 300), few = test_random_int(&common, 1, 16);
        tn_array *x = tn_random_normal(TN_SHAPE(rows, 8)), *w = tn_random_normal(TN_SHAPE(8, 4));
        assert_true(tn_eval(x) == TN_OK && tn_eval(w) == TN_OK);
        tn_array *product = tn_matmul(x, w), *first = tn_slice_axis(product, 0, 0, few, 1);
        tn_array *other = tn_add(w, 1.0), *rest = tn_slice_axis(product, 0, few, rows, 1);
        tn__node *node[] = {tn__array_node(first), tn__array_node(other), tn__array_node(rest)};
        assert_int_equal(tn__evaluate_side_by_side(3, node, false), TN_OK);
        assert_true(node[0]->storage != node[1]->storage);
        assert_true(tn_array_equal(other, tn_add(w, 1.0), false));
        tn_array *again = tn_matmul(x, w);
        assert_int_equal(tn_eval(again), TN_OK);
        assert_true(tn_array_equal(first, tn_slice_axis(again, 0, 0, few, 1), false));
        assert_true(tn_array_equal(rest, tn_slice_axis(again, 0, few, rows, 1), false));
    }
}

int main(void)
{
    common = test_random_new();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_side_by_side),
                                       cmocka_unit_test(test_beginnings_side_by_side)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
