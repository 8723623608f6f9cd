/* SPDX-License-Identifier: MIT */
/*
 * Recurrent networks of many steps, which are one operation on the CPU, against the same networks in pieces of few
 * steps, which are recorded one after another: values, states, gradients of three orders, lengths, both directions.
 */
#include "nn/check.h"

#include "array/build_recurrence.h"
#include "array/node.h"

enum { STEPS = 12, PIECE = 4, FEATURES = 3 };

typedef struct network {
    tn_rnn_kind kind;
    bool no_bias;
    tn_dtype dtype;
    int64_t rows, units;
} network;

static const network networks[] = {
    {TN_RNN_TANH, false, TN_FLOAT64, 2, 3},  {TN_RNN_RELU, true, TN_FLOAT64, 1, 5},
    {TN_RNN_LSTM, false, TN_FLOAT64, 3, 2},  {TN_RNN_LSTM, true, TN_FLOAT64, 1, 1},
    {TN_RNN_GRU, false, TN_FLOAT64, 2, 3},   {TN_RNN_GRU, true, TN_FLOAT64, 1, 2},
    {TN_RNN_LSTM, false, TN_FLOAT32, 5, 17}, {TN_RNN_GRU, false, TN_FLOAT32, 4, 9},
    {TN_RNN_TANH, true, TN_FLOAT32, 7, 4},   {TN_RNN_LSTM, false, TN_FLOAT32, 2, 40},
    {TN_RNN_LSTM, true, TN_FLOAT32, 9, 20},  {TN_RNN_GRU, false, TN_FLOAT32, 6, 24},
    {TN_RNN_LSTM, false, TN_FLOAT64, 4, 3},  {TN_RNN_RELU, false, TN_FLOAT32, 4, 33},
};

typedef struct call {
    const network *n;
    tn_layer *layer;
    tn_array *lengths; /* int64, or NULL */
    bool pieces;
} call;

static bool has_cell(const call *c) { return c->n->kind == TN_RNN_LSTM; }

/* xs: x, h and, of an LSTM, c; out: y and the last states. */
static bool forward(const call *c, tn_array *const *xs, tn_array *lengths, tn_array **out)
{
    int states = has_cell(c) ? 2 : 1;
    const tn_array *in[4] = {xs[0], xs[1], has_cell(c) ? xs[2] : lengths, lengths};
    tn_array **const to[] = {&out[0], &out[1], &out[2]};
    return tn_forward_all(c->layer, states + (lengths ? 2 : 1), in, states + 1, to) == TN_OK;
}

/* y, h and c of all steps, in one call or in pieces, as one vector. */
static tn_array *run(int count, tn_array *const *xs, void *user)
{
    const call *c = user;
    tn_array *out[3] = {xs[0], xs[1], count > 2 ? xs[2] : NULL}, *y = NULL, *lengths = c->lengths;
    int pieces = c->pieces ? STEPS / PIECE : 1;
    for (int i = 0; i < pieces; i++) {
        int64_t from = i * PIECE, to = c->pieces ? from + PIECE : STEPS;
        tn_array *in[] = {tn_slice_axis(xs[0], 0, from, to, 1), out[1], out[2]};
        if (c->lengths)
            lengths = tn_clip(tn_subtract(c->lengths, tn_weak_int(from)), 0, to - from);
        if (!forward(c, in, lengths, out))
            fail_msg("%s", tn_error());
        y = y ? tn_concatenate(TN_ARRAYS(y, out[0]), 0) : out[0];
    }
    tn_array *states = has_cell(c) ? tn_concatenate(TN_ARRAYS(out[1], out[2]), 0) : out[1];
    return tn_concatenate(TN_ARRAYS(tn_ravel(y), tn_ravel(states)), 0);
}

static tn_array *normal(const network *n, tn_shape shape)
{
    return tn_requires_grad(tn_random_normal(shape, .dtype = n->dtype));
}

static void same(const network *n, const char *what, tn_array *got, tn_array *want)
{
    double error = n->dtype == TN_FLOAT64 ? 1e-11 : 2e-4; /* sums of some 100 products of numbers near 1, three times */
    assert_string_equal(tn_is_error(got) ? tn_message_of(got) : "", "");
    if (!tn_allclose(got, want, .rtol = error, .atol = error))
        fail_msg("%s of kind %d, %d units: another by %g, the largest is %g", what, n->kind, (int)n->units,
                 tn_item(tn_max(tn_abs(tn_subtract(got, want)))), tn_item(tn_max(tn_abs(want))));
}

static call open_network(const network *n, bool lengths)
{
    call c = {.n = n, .layer = tn_rnn(n->kind, n->units, .in = FEATURES, .dtype = n->dtype, .no_bias = n->no_bias)};
    int64_t length[16];
    assert_in_range(n->rows, 1, sizeof length / sizeof *length);
    for (int64_t i = 0; i < n->rows; i++)
        length[i] = (STEPS + 5 * i) % (STEPS + 1); /* 12, 4, 9, 1, 6, 11, 3, 8, 0 */
    if (lengths)
        c.lengths = tn_from_int64s(length, n->rows);
    return c;
}

static int inputs(const network *n, const tn_array **xs)
{
    xs[0] = normal(n, TN_SHAPE(STEPS, n->rows, FEATURES));
    xs[1] = normal(n, TN_SHAPE(1, n->rows, n->units));
    xs[2] = normal(n, TN_SHAPE(1, n->rows, n->units));
    return n->kind == TN_RNN_LSTM ? 3 : 2;
}

/* A gradient of the order before, by all inputs and weights, weighed and added up, `order` times. */
static void check_orders(call *c, int count, const tn_array *const *xs, int orders)
{
    const tn_array *by[16];
    tn_array *got[2][16], *weight[16] = {NULL};
    int params = tn_param_count(c->layer);
    for (int i = 0; i < count + params; i++)
        by[i] = i < count ? xs[i] : tn_param(c->layer, i - count);
    tn_array *last[2], *first = NULL;
    for (int w = 0; w < 2; w++) {
        c->pieces = w;
        last[w] = run(count, (tn_array *const *)xs, c);
        first = first ? first : normal(c->n, tn_shape_of(last[w]));
        last[w] = tn_sum(tn_multiply(last[w], first));
    }
    for (int order = 0; order < orders; order++) {
        for (int w = 0; w < 2; w++)
            assert_int_equal(tn_gradients(last[w], count + params, by, order + 1 < orders, got[w]), TN_OK);
        last[0] = last[1] = NULL;
        for (int i = 0; i < count + params; i++) {
            same(c->n, (const char *[]){"the gradient", "a second gradient", "a third gradient"}[order], got[0][i],
                 got[1][i]);
            weight[i] = normal(c->n, tn_shape_of(by[i]));
            for (int w = 0; w < 2; w++) {
                tn_array *term = tn_sum(tn_multiply(got[w][i], weight[i]));
                last[w] = last[w] ? tn_add(last[w], term) : term;
            }
        }
    }
}

static void test_pieces(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        for (int lengths = 0; lengths < 2; lengths++)
            TN_SCOPE {
                call c = open_network(&networks[i], lengths);
                const tn_array *xs[3];
                int count = inputs(c.n, xs);
                tn_array *got = run(count, (tn_array *const *)xs, &c);
                c.pieces = true;
                same(c.n, "the value", got, run(count, (tn_array *const *)xs, &c));
                check_orders(&c, count, xs, c.n->dtype == TN_FLOAT64 ? 3 : 1);
                tn_layer_free(c.layer);
            }
    check_fine();
}

/* The direction that begins with the last step is the other one of each row's steps the other way round. */
static void test_backwards(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        TN_SCOPE {
            const network *n = &networks[i];
            call c = open_network(n, true);
            tn_layer *both = tn_rnn(n->kind, n->units, .in = FEATURES, .dtype = n->dtype, .no_bias = n->no_bias,
                                    .bidirectional = true);
            int half = tn_param_count(c.layer), cells = has_cell(&c) ? 2 : 1;
            for (int k = 0; k < half; k++)
                assert_int_equal(tn_assign(tn_param(c.layer, k), tn_param(both, half + k)), TN_OK);
            const tn_array *x = normal(n, TN_SHAPE(STEPS, n->rows, FEATURES));
            const tn_array *in[4] = {x, NULL, NULL, c.lengths};
            tn_array *y, *h, *cell, **const out[] = {&y, &h, &cell}, *loss = NULL;
            in[cells + 1] = c.lengths;
            assert_int_equal(tn_forward_all(both, cells + 2, in, cells + 1, out), TN_OK);
            tn_array *gy = normal(n, tn_shape_of(y));
            assert_int_equal(tn_backward(tn_sum(tn_multiply(y, gy))), TN_OK);
            tn_array *got = tn_grad(tn_param(both, half)), *other = tn_slice_axis(gy, 2, n->units, 2 * n->units, 1);
            for (int64_t row = 0; row < n->rows; row++) {
                int64_t length = (int64_t)tn_item(tn_index(c.lengths, row));
                if (length == 0)
                    continue;
                tn_array *mine = tn_slice_axis(tn_slice_axis(x, 1, row, row + 1, 1), 0, 0, length, 1);
                tn_array *want = tn_flip(tn_forward(c.layer, tn_flip(mine, TN_AXES(0))), TN_AXES(0));
                tn_array *part = tn_slice_axis(tn_slice_axis(y, 1, row, row + 1, 1), 2, n->units, 2 * n->units, 1);
                same(n, "a row backwards", tn_slice_axis(part, 0, 0, length, 1), want);
                tn_array *g = tn_slice_axis(tn_slice_axis(other, 1, row, row + 1, 1), 0, 0, length, 1);
                tn_array *term = tn_sum(tn_multiply(want, g));
                loss = loss ? tn_add(loss, term) : term;
                assert_true(tn_item(tn_all(tn_equal(tn_slice_axis(part, 0, length, STEPS, 1), 0))));
            }
            assert_int_equal(tn_backward(loss), TN_OK);
            same(n, "the weights' gradient backwards", got, tn_grad(tn_param(c.layer, 0)));
            tn_layer_free(both), tn_layer_free(c.layer);
        }
    check_fine();
}

/* Against differences, both orders, and lengths with them. */
static void test_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        TN_SCOPE {
            if (networks[i].dtype != TN_FLOAT64 || networks[i].kind == TN_RNN_RELU)
                continue; /* kinks are met by chance */
            call c = open_network(&networks[i], true);
            const tn_array *xs[3];
            int count = inputs(c.n, xs);
            if (tn_check_backward(run, &c, count, xs, .seed = check_bits()) != TN_OK ||
                tn_check_double_backward(run, &c, count, xs, .seed = check_bits()) != TN_OK)
                fail_msg("kind %d: %s", c.n->kind, tn_error());
            tn_layer_free(c.layer);
        }
    check_fine();
}

/* The same in C order. */
static tn_array *copy_of(const tn_array *x)
{
    float values[9 * 7 * 16 * 4];
    assert_true(tn_size(x) <= (int64_t)(sizeof values / sizeof *values));
    assert_int_equal(tn_to_host(x, values, (size_t)tn_size(x) * sizeof *values), TN_OK);
    return tn_from_host(values, tn_shape_of(x), TN_FLOAT32);
}

/* Operands that do not lie in C order give what their copies give, bit by bit. */
static void check_views(const tn__recurrence *of)
{
    tn__recurrence_row row = tn__recurrence_row_of(of);
    int64_t width = row.gates * of->units;
    const int64_t shape[][2] = {{of->steps * of->rows, width}, {of->units + of->bias, width},
                                {(row.states + of->lengths) * of->rows, of->units},
                                {tn__recurrence_rows(of), of->units}};
    tn_array *in[2][4], *value[2];
    for (int i = 0; i < 4; i++) { /* every second row of a transpose */
        tn_array *x = tn_random_uniform(TN_SHAPE(shape[i][1], 2 * shape[i][0]), .high = (double)of->steps);
        assert_int_equal(tn_eval(x), TN_OK);
        in[0][i] = tn_slice_axis(tn_swapaxes(x, 0, 1), 0, 0, 2 * shape[i][0], 2);
        in[1][i] = copy_of(in[0][i]);
    }
    for (int w = 0; w < 2; w++) {
        tn__node *n[4];
        for (int i = 0; i < 4; i++)
            n[i] = tn__array_node(in[w][i]);
        value[w] = tn__leave_array(tn__enter(), tn__recur(of, n[0], n[1], n[2]));
        tn_array *back = tn__leave_array(tn__enter(), tn__recur_back(of, tn__array_node(value[w]), n[3], n[1]));
        value[w] = tn_concatenate(TN_ARRAYS(tn_ravel(value[w]), tn_ravel(back)), 0);
    }
    if (!tn_item(tn_all(tn_equal(value[0], value[1]))))
        fail_msg("kind %d", (int)of->kind);
}

static void test_views(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("other devices record step by step");
    for (int kind = 0; kind < TN__RECUR_KINDS; kind++)
        for (int way = 0; way < 8; way++) TN_SCOPE {
            check_views(&(tn__recurrence){.kind = kind, .steps = 9, .rows = 3, .units = 4, .bias = way & 1,
                                          .lengths = way >> 1 & 1, .backwards = way >> 2});
        }
    check_fine();
}

/* Steps cost no recording: a plan of 300 is one of 100. */
static void test_plan(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("other devices record step by step");
    TN_SCOPE {
        tn_layer *layer = tn_lstm(8, .in = FEATURES);
        for (int64_t steps = 100; steps <= 300; steps += 200) {
            tn_array *y = tn_forward(layer, tn_ones(TN_SHAPE(steps, 2, FEATURES)));
            char *plan = tn_plan_describe(y);
            assert_non_null(plan);
            int lines = 0;
            for (const char *at = plan; (at = strchr(at, '\n')); at++)
                lines++;
            if (!strstr(plan, "recur") || lines > 40)
                fail_msg("%s", plan);
            tn_string_free(plan);
        }
        tn_layer_free(layer);
    }
    check_fine();
}

/* Where nothing is for gradients, who keeps outputs and states keeps no more than these. */
static void test_memory(void **state)
{
    (void)state;
    TEST_ABOUT_CPU("other devices record step by step");
    TN_SCOPE {
        tn_layer *layer = tn_lstm(8, .in = FEATURES);
        const tn_array *x = tn_ones(TN_SHAPE(1000, 2, FEATURES));
        tn_array *y[4], *h[4];
        size_t used = 0;
        for (int i = 0; i < 4; i++) {
            TN_NO_GRAD assert_int_equal(tn_forward_all(layer, 1, &x, 2, (tn_array **const[]){&y[i], &h[i]}), TN_OK);
            assert_int_equal(tn_eval_all(2, (const tn_array *[]){y[i], h[i]}), TN_OK);
            used = i ? used : tn_memory_stats(test_device()).used;
        }
        assert_true(tn_memory_stats(test_device()).used - used < 4 * (size_t)tn_size(y[0]) * sizeof(float));
        tn_layer_free(layer);
    }
    check_fine();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pieces), cmocka_unit_test(test_backwards),
                                       cmocka_unit_test(test_differences), cmocka_unit_test(test_views),
                                       cmocka_unit_test(test_plan), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, check_seed, NULL);
}
