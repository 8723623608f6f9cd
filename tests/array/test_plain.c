/* SPDX-License-Identifier: MIT */
/* The straight way of elementwise calls gives the node that the builders give, whatever the operands. */
#include "array/graphs.h"

#include <tanso.h>

#include "array/plain.h"
#include "tn_op_functions.h"

static const int unary[] = {
#define TN_MAP(ID, name, arity, ...) arity == 1 ? TN__OP_##ID : -1,
#include "ops/ops.def"
};
static const int binary[] = {
#define TN_MAP(ID, name, arity, ...) arity == 2 ? TN__OP_##ID : -1,
#include "ops/ops.def"
};
enum { OPERATIONS = sizeof unary / sizeof *unary };

/* ---- operands of all sorts ---- */

static tn_array *in_dtype(tn_dtype dtype) { return tn_ones(TN_SHAPE(2, 3), .dtype = dtype); }

static tn_array *value(void) { return graph_array(graph_value); }
static tn_array *pending(void) { return tn_exp(value()); }
static tn_array *constant(void) { return tn_ones(TN_SHAPE(2, 3)); }
static tn_array *row(void) { return tn_ones(TN_SHAPE(3)); }
static tn_array *misfit(void) { return tn_ones(TN_SHAPE(4)); }
static tn_array *other(void) { return tn_ones(TN_SHAPE(2, 3), .device = tn_device_parse("null", NULL)); }
static tn_array *elsewhere(void) { return tn_exp(other()); }
static tn_array *doubles(void) { return in_dtype(TN_FLOAT64); }
static tn_array *halves(void) { return in_dtype(TN_FLOAT16); }
static tn_array *whole(void) { return in_dtype(TN_INT32); }
static tn_array *truth(void) { return in_dtype(TN_BOOL); }
static tn_array *weak(void) { return tn_weak_float(2); }
static tn_array *null(void) { return NULL; }

static tn_array *leaf(void)
{
    return tn_requires_grad(value());
}
static tn_array *of_leaf(void) { return tn_exp(leaf()); }

static tn_array *error(void)
{
    tn_array *x = tn_reshape(constant(), TN_SHAPE(5));
    tn_clear_error();
    return x;
}

static tn_array *released(void)
{
    tn_array *x = pending();
    tn__node_set_released(tn__array_node(x), tn__error_new(TN_ERR_STATE, "step", "consumed"));
    tn_clear_error();
    return x;
}

static tn_array *(*const operands[])(void) = {value,     pending, constant, row,   misfit,  other,
                                              elsewhere, doubles, halves,   whole, truth,   weak,
                                              null,      leaf,    of_leaf,  error, released};
enum { OPERANDS = sizeof operands / sizeof *operands };

/* ---- both ways ---- */

static tn_array *built(tn__op op, int arity, tn_array *const *x)
{
    tn__call call = tn__enter();
    tn__node *in[2];
    for (int i = 0; i < arity; i++)
        in[i] = tn__node_of(x[i], tn__ops[op].name);
    return tn__leave_array(call, arity == 1 ? tn__unary(op, in[0]) : tn__binary(op, in[0], in[1]));
}

static void assert_alike(const tn__node *a, const tn__node *b)
{
    if (a == b)
        return;
    assert_int_equal(a->op, b->op);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->arity, b->arity);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->owner, b->owner);
    assert_int_equal(a->depth, b->depth);
    assert_int_equal(a->references, b->references);
    assert_ptr_equal(a->shape, b->shape);
    assert_ptr_equal(a->device, b->device);
    assert_memory_equal(&a->attr, &b->attr, sizeof a->attr);
    assert_true(!a->storage && !a->offset && !a->strides && !a->var && !a->error == !b->error);
    for (int i = 0; i < TN__MAX_ARITY; i++) {
        assert_true(!a->in[i] == !b->in[i]);
        if (a->in[i])
            assert_alike(a->in[i], b->in[i]);
    }
}

/* One operation over operands of two sorts (the same array twice where the sorts are one and `twice` is set). */
static void compare(int op, int arity, int first, int second, bool twice)
{
    TN_SCOPE {
        tn_array *x[2] = {operands[first]()};
        x[1] = twice ? x[0] : operands[second]();
        tn_clear_error();
        size_t live = tn_live_arrays();
        tn_array *straight = arity == 1 ? tn__map_1((tn__op)op, x[0]) : tn__map_2((tn__op)op, x[0], x[1]);
        char *message = strdup(tn_error());
        tn_status status = tn_error_code();
        tn_clear_error();
        tn_array *general = built((tn__op)op, arity, x);
        assert_int_equal(tn_error_code(), status);
        assert_string_equal(tn_error(), message);
        tn_clear_error();
        free(message);
        assert_int_equal(tn_live_arrays(), live + 2);
        assert_ptr_equal(tn__handle_of(straight)->scope, tn__handle_of(general)->scope);
        assert_int_equal(tn__handle_of(straight)->owner, tn__handle_of(general)->owner);
        assert_int_equal(!tn__handle_of(straight)->pending, !tn__handle_of(general)->pending);
        assert_alike(tn__array_node(straight), tn__array_node(general));
    }
}

static void every_operation_of_every_operand(void **state)
{
    (void)state;
    for (int k = 0; k < OPERATIONS; k++)
        for (int i = 0; i < OPERANDS; i++) {
            if (unary[k] >= 0)
                compare(unary[k], 1, i, i, false);
            for (int j = 0; j < OPERANDS && binary[k] >= 0; j++)
                compare(binary[k], 2, i, j, false);
            if (binary[k] >= 0)
                compare(binary[k], 2, i, i, true);
        }
}

static void gradients_are_not_recorded_where_they_are_off(void **state)
{
    (void)state;
    tn__no_grad_depth++;
    for (int k = 0; k < OPERATIONS; k++)
        for (int i = 0; i < OPERANDS; i++)
            if (unary[k] >= 0)
                compare(unary[k], 1, i, i, false);
    tn__no_grad_depth--;
}

static void operands_count_what_holds_them(void **state)
{
    (void)state;
    tn_array *x = value(), *y;
    TN_SCOPE {
        y = tn_multiply(x, x);
        assert_int_equal(tn__array_node(x)->references, 3);
        assert_int_equal(tn__array_node(tn_exp(y))->in[0]->references, 2);
        assert_int_equal(tn__array_node(y)->references, 2);
    }
    assert_int_equal(tn__array_node(x)->references, 1);
}

/* ---- limits ---- */

static int evaluations;
static tn_status give_value(tn__node *node)
{
    evaluations++;
    tn__storage *storage = graph_storage();
    tn__node_set_value(node, storage, 0, NULL, true);
    tn__storage_release(storage);
    return TN_OK;
}

static void a_recording_that_grows_too_deep_is_evaluated(void **state)
{
    (void)state;
    tn_status (*hook)(tn__node *) = tn__engine.evaluate;
    tn__engine.evaluate = give_value;
    evaluations = 0;
    TN_SCOPE {
        tn_array *x = value();
        for (int i = 0; i < 2 * (int)tn__max_depth() + 1; i++) {
            x = i % 2 ? tn_exp(x) : tn_add(x, x);
            assert_true(tn__array_node(x)->depth <= tn__max_depth());
        }
    }
    tn__engine.evaluate = hook;
    assert_int_equal(evaluations, 2);
}

static void *call_with(tn_array *x)
{
    TN_SCOPE {
        tn_array *y = tn_exp(x);
        bool refused = tn_is_error(y) && tn_error_code() == TN_ERR_STATE && strstr(tn_error(), "tn_eval");
        tn_clear_error();
        if (refused)
            return x;
    }
    return NULL;
}

static void *call_first(void *x)
{
    *(void **)x = call_with(*(tn_array **)x); /* the thread's very first call, which registers it */
    return NULL;
}

static void what_another_thread_records_is_refused(void **state)
{
    (void)state;
    tn_array *x = pending();
    void *seen = x;
    graph_in_thread(call_first, &seen, 0);
    assert_ptr_equal(seen, x);
    graph_compute(x, true);
    seen = x;
    graph_in_thread(call_first, &seen, 0);
    assert_null(seen);
}

static int scope_and_empty(void **state)
{
    tn_scope_pop();
    return graph_nothing_left(state);
}
static int open_scope(void **state)
{
    (void)state;
    tn_scope_push();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_scope, scope_and_empty)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_operation_of_every_operand),
        TEST(gradients_are_not_recorded_where_they_are_off),
        TEST(operands_count_what_holds_them),
        TEST(a_recording_that_grows_too_deep_is_evaluated),
        TEST(what_another_thread_records_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
