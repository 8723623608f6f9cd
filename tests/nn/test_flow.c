/* SPDX-License-Identifier: MIT */
/* Layers of the program's own, of several inputs and outputs, and the data that belong to each of them. */
#include "nn/check.h"

#include "support/starve.h"

enum { IN = 3, OUT = 2, ROWS = 4 };

/* ---- a recurrent cell: (x, h) to (new h, its square) ---- */

typedef struct cell {
    double gain;
    int *calls; /* shared with the copies */
} cell;

static tn_status cell_forward(tn_layer *layer, const tn_flow *flow, void *user)
{
    cell *c = user;
    ++*c->calls;
    tn_array *sum = tn_forward(tn_layer_child(layer, "x"), flow->in[0]);
    if (flow->in[1])
        sum = tn_add(sum, tn_matmul(flow->in[1], tn_param_named(layer, "H")));
    flow->out[0] = tn_multiply(tn_tanh(sum), c->gain);
    flow->out[1] = tn_square(flow->out[0]);
    return TN_OK;
}

static tn_layer *new_cell(double gain, int *calls)
{
    cell own = {gain, calls};
    tn_layer *layer =
        tn_flow_layer("cell", cell_forward, &own, NULL, .size = sizeof own, .inputs = 2, .optional = 1, .outputs = 2);
    TN_SCOPE {
        tn_layer_param(layer, "H", tn_random_normal(TN_SHAPE(OUT, OUT)));
        tn_layer_add(layer, "x", tn_linear(OUT));
    }
    return layer;
}

/* The same in plain C. */
static void cell_by_hand(const tn_layer *layer, double gain, const double *x, const double *h, double *y)
{
    double w[IN * OUT], u[OUT * OUT], b[OUT];
    check_read(tn_param_named(layer, "x.W"), w, IN * OUT);
    check_read(tn_param_named(layer, "x.b"), b, OUT);
    check_read(tn_param_named(layer, "H"), u, OUT * OUT);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < OUT; j++) {
            double sum = b[j];
            for (int k = 0; k < IN; k++)
                sum += x[i * IN + k] * w[k * OUT + j];
            for (int k = 0; k < OUT && h; k++)
                sum += h[i * OUT + k] * u[k * OUT + j];
            y[i * OUT + j] = gain * tanh(sum);
        }
}

static void squares(const double *y, double *out)
{
    for (int i = 0; i < ROWS * OUT; i++)
        out[i] = y[i] * y[i];
}

static void test_several(void **state)
{
    (void)state;
    int calls = 0;
    tn_layer *layer = new_cell(0.5, &calls);
    TN_SCOPE {
        double x[ROWS * IN], h[ROWS * OUT], y[ROWS * OUT], square[ROWS * OUT];
        check_fill(x, ROWS * IN, -1, 1);
        check_fill(h, ROWS * OUT, -1, 1);
        tn_array *in = check_array(x, TN_SHAPE(ROWS, IN), TN_FLOAT32);
        tn_array *before = tn_requires_grad(check_array(h, TN_SHAPE(ROWS, OUT), TN_FLOAT32));
        tn_array *first = NULL, *second = NULL;
        size_t live = tn_live_arrays();
        assert_int_equal(tn_forward_all(layer, TN_ARRAYS(in, before), TN_RESULTS(&first, &second)), TN_OK);
        assert_int_equal(tn_live_arrays(), live + 2 + 2); /* and the two that were inferred */
        cell_by_hand(layer, 0.5, x, h, y);
        squares(y, square);
        check_near(first, y, ROWS * OUT, 1e-5);
        check_near(second, square, ROWS * OUT, 1e-5);
        check_near(tn_forward(layer, in, before), y, ROWS * OUT, 1e-5);
        assert_int_equal(tn_forward_all(layer, TN_ARRAYS(in, before), TN_RESULTS(NULL, &second)), TN_OK);
        check_near(second, square, ROWS * OUT, 1e-5);

        /* What is left out, or NULL. */
        cell_by_hand(layer, 0.5, x, NULL, y);
        check_near(tn_forward(layer, in), y, ROWS * OUT, 1e-5);
        check_near(tn_forward(layer, in, NULL), y, ROWS * OUT, 1e-5);

        /* Gradients flow through both outputs and into both inputs. */
        assert_int_equal(tn_forward_all(layer, TN_ARRAYS(in, before), TN_RESULTS(&first, &second)), TN_OK);
        assert_int_equal(tn_backward(tn_sum(tn_add(first, second))), TN_OK);
        assert_true(tn_has_grad(before) && tn_has_grad(tn_param_named(layer, "H")));
        double g[ROWS * OUT], u[OUT * OUT], want[ROWS * OUT];
        cell_by_hand(layer, 0.5, x, h, y);
        check_read(tn_param_named(layer, "H"), u, OUT * OUT);
        for (int i = 0; i < ROWS * OUT; i++)
            g[i] = (1 + 2 * y[i]) * (0.25 - y[i] * y[i]) / 0.5;
        for (int i = 0; i < ROWS; i++)
            for (int k = 0; k < OUT; k++)
                want[i * OUT + k] = g[i * OUT] * u[k * OUT] + g[i * OUT + 1] * u[k * OUT + 1];
        check_near(tn_grad(before), want, ROWS * OUT, 1e-4);
        check_fine();
    }
    assert_int_equal(calls, 6);
    tn_layer_free(layer);
}

static void test_in_sequence(void **state)
{
    (void)state;
    int calls = 0;
    tn_layer *net = tn_sequential(new_cell(1, &calls), tn_tanh_layer(), new_cell(2, &calls));
    TN_SCOPE {
        tn_array *x = tn_random_normal(TN_SHAPE(ROWS, IN)), *h = tn_random_normal(TN_SHAPE(ROWS, OUT));
        assert_int_equal(tn_eval_all(TN_ARRAYS(x, h)), TN_OK);
        tn_array *y = NULL, *square = NULL;
        assert_int_equal(tn_forward_all(net, TN_ARRAYS(x, h), TN_RESULTS(&y, &square)), TN_OK);
        tn_array *step = tn_tanh(tn_forward(tn_layer_child(net, "0"), x, h));
        tn_array *want = tn_forward(tn_layer_child(net, "2"), step);
        assert_true(tn_allclose(y, want));
        assert_true(tn_allclose(square, tn_square(want)));
        assert_true(tn_allclose(tn_forward(net, x), tn_forward(net, x, NULL)));
        check_fine();
        assert_int_equal(tn_forward_all(net, TN_ARRAYS(x, h, h), TN_RESULTS(&y)), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "has 1 to 2 inputs, and 3 came");
    }
    tn_layer_free(net);
    net = tn_sequential_of(0, NULL);
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2)), *y = NULL;
        assert_true(tn_array_equal(tn_forward(net, x), x, false));
        assert_int_equal(tn_forward_all(net, TN_ARRAYS(x, x), TN_RESULTS(&y)), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "sequential: the layer has 1 input, and 2 came");
    }
    tn_layer_free(net);
}

/* ---- any number ---- */

static tn_status total(tn_layer *layer, const tn_flow *flow, void *user)
{
    (void)layer, (void)user;
    flow->out[0] = tn_add(flow->in[0], 0);
    for (int i = 1; i < flow->in_count; i++)
        flow->out[0] = tn_add(flow->out[0], flow->in[i]);
    return TN_OK;
}

static void test_any_number(void **state)
{
    (void)state;
    tn_layer *layer = tn_flow_layer("total", total, NULL, NULL);
    TN_SCOPE {
        const tn_array *many[40];
        for (int i = 0; i < 40; i++)
            many[i] = tn_full(TN_SHAPE(3), i);
        assert_true(tn_item(tn_index(tn_forward_of(layer, 40, many), 2)) == 780);
        assert_true(tn_item(tn_index(tn_forward(layer, many[3]), 0)) == 3);
        assert_true(tn_item(tn_index(tn_forward(layer, many[1], many[2], many[3], many[4], many[5], many[6], many[7],
                                                many[8]), 0)) == 36);
        check_fine();
        assert_true(tn_is_error(tn_forward(layer, many[0], NULL)));
        check_latched(TN_ERR_VALUE, "total: input 1 of 2 is NULL, and can't be left out");
        assert_true(tn_is_error(tn_forward_of(layer, 0, many)));
        check_latched(TN_ERR_VALUE, "arrays in and out");
    }
    tn_layer_free(layer);
}

/* ---- what goes wrong ---- */

static tn_status sets_one(tn_layer *layer, const tn_flow *flow, void *user)
{
    (void)layer;
    flow->out[1] = tn_add(flow->in[0], 1);
    return *(tn_status *)user;
}

static void test_refusals(void **state)
{
    (void)state;
    tn_status says = TN_OK;
    tn_layer *layer = tn_flow_layer("odd", sets_one, &says, NULL, .inputs = 2, .outputs = 2);
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(2)), *a = NULL, *b = NULL, *c = NULL;
        assert_int_equal(tn_forward_all(layer, TN_ARRAYS(x, x), TN_RESULTS(&a, &b)), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "odd: the layer's function left output 0 unset");
        assert_true(tn_is_error(a) && tn_is_error(b));
        says = TN_ERR_IO;
        assert_int_equal(tn_forward_all(layer, TN_ARRAYS(x, x), TN_RESULTS(&a, &b)), TN_ERR_IO);
        check_latched(TN_ERR_IO, "odd: the layer's function failed with TN_ERR_IO");
        assert_int_equal(tn_forward_all(layer, TN_ARRAYS(x, x), TN_RESULTS(&a, &b, &c)), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "has 2 outputs, and 3 were asked for");
        assert_true(tn_is_error(c));
        assert_true(tn_is_error(tn_forward(layer, x)));
        check_latched(TN_ERR_VALUE, "odd: the layer has 2 inputs, and 1 came");
        tn_array *wrong = tn_add(x, tn_ones(TN_SHAPE(3)));
        tn_clear_error();
        assert_true(tn_is_error(tn_forward(layer, x, wrong)));
        tn_layer *plain = tn_linear(2);
        tn_clear_error();
        assert_true(tn_is_error(tn_forward(plain, x, x)));
        check_latched(TN_ERR_VALUE, "linear: the layer has 1 input, and 2 came");
        assert_int_equal(tn_forward_all(NULL, TN_ARRAYS(x), TN_RESULTS(&a)), TN_ERR_VALUE);
        check_latched(TN_ERR_VALUE, "expected a layer");
        tn_layer_free(plain);
    }
    tn_layer_free(layer);
    static const tn_layer_opts wrong[] = {
        {.inputs = -1}, {.outputs = -1}, {.inputs = 2, .optional = 2}, {.optional = 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_layer_free(tn_flow_layer_with("odd", sets_one, NULL, NULL, &wrong[i]));
        check_latched(TN_ERR_VALUE, "flow_layer: expected inputs and outputs");
    }
}

/* ---- data of each layer ---- */

typedef struct holder {
    char *text;
    int *freed;
} holder;

static tn_array *hold(tn_layer *layer, const tn_array *x, void *user)
{
    (void)layer;
    return tn_multiply(x, (double)strlen(((holder *)user)->text));
}

static void free_holder(void *user)
{
    holder *h = user;
    if (h->freed)
        ++*h->freed;
    free(h->text);
}

static bool copy_fails;
static int params_of_copy;

static tn_status copy_holder(tn_layer *copy, void *user)
{
    holder *h = user;
    assert_ptr_equal(tn_layer_user(copy, "holder"), h);
    params_of_copy = tn_param_count(copy);
    h->text = copy_fails ? NULL : strdup(h->text);
    return h->text ? TN_OK : TN_ERR_IO;
}

static tn_layer *new_holder(const char *text, int *freed)
{
    holder own = {strdup(text), freed};
    tn_layer *layer = tn_layer_new("holder", hold, &own, free_holder, .size = sizeof own, .copy = copy_holder);
    TN_SCOPE tn_layer_param(layer, "p", tn_ones(TN_SHAPE(2)));
    return layer;
}

static void test_own_data(void **state)
{
    (void)state;
    int freed = 0;
    tn_layer *net = tn_sequential(new_holder("four", &freed), tn_linear(2)), *copy = tn_layer_copy(net);
    check_fine();
    assert_int_equal(params_of_copy, 1); /* it has its parameters by then */
    holder *mine = tn_layer_user(tn_layer_child(net, "0"), "holder");
    holder *theirs = tn_layer_user(tn_layer_child(copy, "0"), "holder");
    assert_ptr_not_equal(mine, theirs);
    assert_ptr_not_equal(mine->text, theirs->text);
    strcpy(theirs->text, "one");
    assert_null(tn_layer_user(tn_layer_child(net, "1"), "holder"));
    check_fine();
    TN_SCOPE {
        assert_true(tn_item(tn_forward(tn_layer_child(net, "0"), tn_scalar(1.0))) == 4);
        assert_true(tn_item(tn_forward(tn_layer_child(copy, "0"), tn_scalar(1.0))) == 3);
    }
    tn_layer_free(copy);
    assert_int_equal(freed, 1);
    copy_fails = true;
    copy = tn_layer_copy(net);
    copy_fails = false;
    assert_int_equal(tn_layer_status(copy), TN_ERR_IO);
    check_latched(TN_ERR_IO, "the data of a holder could not be copied");
    tn_layer_free(copy);
    assert_int_equal(freed, 1); /* nothing of the layer's that was copied */
    tn_layer_free(net);
    assert_int_equal(freed, 2);

    holder own = {NULL, &freed};
    tn_layer_free(tn_layer_new("holder", NULL, &own, free_holder, .size = sizeof own));
    check_latched(TN_ERR_VALUE, "NULL function");
    tn_layer_free(tn_layer_new("holder", hold, &own, free_holder, .size = sizeof own, .outputs = 2));
    check_latched(TN_ERR_VALUE, "use tn_flow_layer");
    assert_int_equal(freed, 4);
    tn_layer *blank = tn_layer_new("holder", hold, NULL, NULL, .size = sizeof(holder)), *twin = tn_layer_copy(blank);
    assert_null(((holder *)tn_layer_user(twin, "holder"))->text);
    check_fine();
    tn_layer_free(blank);
    tn_layer_free(twin);
    blank = tn_layer_new("holder", hold, NULL, free_holder, .size = sizeof(holder));
    twin = tn_layer_copy(blank);
    check_latched(TN_ERR_UNSUPPORTED, "only the program can copy");
    tn_layer_free(blank);
    tn_layer_free(twin);
    assert_null(tn_layer_user(NULL, "x"));
    check_latched(TN_ERR_VALUE, "layer_user");
}

/* ---- without memory ---- */

static tn_status starved(void *user)
{
    (void)user;
    int calls = 0;
    tn_layer *layer = new_cell(1, &calls), *held = new_holder("x", NULL), *copy = tn_layer_copy(held);
    tn_layer *net = tn_layer_copy(layer);
    TN_SCOPE {
        tn_array *x = tn_ones(TN_SHAPE(ROWS, IN)), *h = tn_ones(TN_SHAPE(ROWS, OUT)), *a = NULL, *b = NULL;
        tn_forward_all(net, TN_ARRAYS(x, h), TN_RESULTS(&a, &b));
        (void)!tn_eval_all(TN_ARRAYS(tn_forward(copy, tn_add(a, b)), tn_forward(held, a)));
    }
    tn_layer_free(layer);
    tn_layer_free(net);
    tn_layer_free(held);
    tn_layer_free(copy);
    return tn_error_code();
}

static void test_starved(void **state)
{
    (void)state;
    starve("own layers", starved, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_several),  cmocka_unit_test(test_in_sequence),
                                       cmocka_unit_test(test_any_number), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_own_data),     cmocka_unit_test(test_starved)};
    return cmocka_run_group_tests_name("flow", tests, check_seed, NULL);
}
