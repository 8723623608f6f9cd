/* SPDX-License-Identifier: MIT */
/*
 * A transformer that learns to sort. It reads six digits and writes them in ascending order, one after another, each
 * time looking at all that it has read and written so far: a language model in small (Vaswani et al. 2017, Radford et
 * al. 2018). Layers of one's own with children, weights used twice, a schedule of the learning rate, generation.
 */
#include <math.h>
#include <stdio.h>
#include <tanso.h>

enum { DIGITS = 10, LENGTH = 6, WIDTH = 32, HEADS = 4, BLOCKS = 2, STEPS = 250, BATCH = 64, ASKED = 200 };

/* Each place takes from those up to itself what its query finds in their keys. */
static tn_array *attention(tn_layer *layer, const tn_array *x, void *user)
{
    (void)user;
    int64_t rows = tn_dim(x, 0), places = tn_dim(x, 1), width = WIDTH / HEADS;
    tn_array *all = tn_reshape(tn_forward(tn_layer_child(layer, "in"), x), TN_SHAPE(rows, places, 3, HEADS, width));
    all = tn_transpose(all, TN_AXES(2, 0, 3, 1, 4));
    tn_array *query = tn_index(all, 0), *key = tn_index(all, 1), *value = tn_index(all, 2);
    tn_array *score = tn_divide(tn_matmul(query, tn_matrix_transpose(key)), sqrt((double)width));
    tn_array *past = tn_tri(places, places, 0, .dtype = TN_BOOL);
    tn_array *found = tn_matmul(tn_softmax(tn_where(past, score, -INFINITY), -1), value);
    found = tn_reshape(tn_swapaxes(found, 1, 2), TN_SHAPE(rows, places, WIDTH));
    return tn_forward(tn_layer_child(layer, "out"), found);
}

static tn_array *block(tn_layer *layer, const tn_array *x, void *user)
{
    (void)user;
    tn_array *y = tn_forward(tn_layer_child(layer, "norm1"), x);
    tn_array *mixed = tn_add(x, tn_forward(tn_layer_child(layer, "attention"), y));
    y = tn_forward(tn_layer_child(layer, "norm2"), mixed);
    return tn_add(mixed, tn_forward(tn_layer_child(layer, "mlp"), y));
}

/* From digits (rows, places) to scores of what comes next at each place (rows, places, DIGITS). */
static tn_array *model(tn_layer *layer, const tn_array *digits, void *user)
{
    (void)user;
    tn_array *table = tn_param_named(layer, "digits"), *where = tn_param_named(layer, "places");
    tn_array *x = tn_add(tn_take(table, digits, 0), tn_slice_axis(where, 0, 0, tn_dim(digits, 1), 1));
    x = tn_forward(tn_layer_child(layer, "blocks"), x);
    return tn_matmul(tn_forward(tn_layer_child(layer, "norm"), x), tn_matrix_transpose(table));
}

static tn_layer *block_new(void)
{
    tn_layer *mixer = tn_layer_new("attention", attention, NULL, NULL);
    tn_layer *layer = tn_layer_new("block", block, NULL, NULL);
    tn_layer_add(mixer, "in", tn_linear(3 * WIDTH, .in = WIDTH));
    tn_layer_add(mixer, "out", tn_linear(WIDTH, .in = WIDTH));
    tn_layer_add(layer, "norm1", tn_layer_norm(WIDTH, 0));
    tn_layer_add(layer, "attention", mixer);
    tn_layer_add(layer, "norm2", tn_layer_norm(WIDTH, 0));
    tn_layer_add(layer, "mlp", tn_mlp(2, (int64_t[]){4 * WIDTH, WIDTH}, "gelu"));
    return layer;
}

static tn_layer *model_new(void)
{
    tn_layer *layer = tn_layer_new("sorter", model, NULL, NULL), *blocks[BLOCKS];
    tn_layer_param(layer, "digits", tn_random_normal(TN_SHAPE(DIGITS, WIDTH), .scale = 0.2));
    tn_layer_param(layer, "places", tn_random_normal(TN_SHAPE(2 * LENGTH, WIDTH), .scale = 0.2));
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = block_new();
    tn_layer_add(layer, "blocks", tn_sequential_of(BLOCKS, blocks));
    tn_layer_add(layer, "norm", tn_layer_norm(WIDTH, 0));
    return layer;
}

static void train(tn_layer *net)
{
    tn_optimizer *optimizer = tn_adamw(net, .clip_norm = 1);
    for (int step = 0; step < STEPS && tn_ok(); step++) TN_SCOPE {
        tn_optimizer_set_lr(optimizer, 0.004 * fmin(1, (step + 1) / 20.0) * (1 + cos(3.14159265 * step / STEPS)) / 2);
        tn_array *x = tn_random_integers(0, DIGITS, TN_SHAPE(BATCH, LENGTH)), *t = tn_sort(x);
        tn_array *text = tn_concatenate(2, (const tn_array *[]){x, tn_slice_axis(t, 1, 0, LENGTH - 1, 1)}, 1);
        tn_array *scores = tn_slice_axis(tn_forward(net, text), 1, LENGTH - 1, TN_NONE, 1);
        tn_array *loss = tn_softmax_cross_entropy(tn_reshape(scores, TN_SHAPE(-1, DIGITS)), tn_flatten(t));
        tn_backward(loss);
        tn_step(optimizer);
        if (step % 50 == 49)
            printf("step %d, loss %.4f\n", step + 1, tn_item(loss));
    }
    tn_optimizer_free(optimizer);
}

/* x with LENGTH digits more, each the likeliest after all before it. */
static tn_array *go_on(tn_layer *net, tn_array *x)
{
    TN_NO_GRAD for (int i = 0; i < LENGTH; i++) {
        tn_array *scores = tn_get(tn_forward(net, x), TN_WHOLE, TN_RANGE(-1, TN_NONE, 1));
        x = tn_concatenate(2, (const tn_array *[]){x, tn_argmax(scores, .axis = TN_AXES(2))}, 1);
    }
    return x;
}

int main(void)
{
    tn_seed(1);
    tn_layer *net = model_new();
    train(net);
    printf("%lld parameters\n", (long long)tn_param_total(net));

    int64_t right = 0;
    TN_SCOPE {
        tn_array *x = tn_random_integers(0, DIGITS, TN_SHAPE(ASKED, LENGTH)), *text = go_on(net, x);
        tn_array *written = tn_slice_axis(text, 1, LENGTH, TN_NONE, 1);
        right = tn_item_int(tn_sum(tn_all(tn_equal(written, tn_sort(x)), .axis = TN_AXES(1))));
        tn_print(tn_slice_axis(text, 0, 0, 3, 1));
        printf("sorted right: %lld of %d\n", (long long)right, ASKED);
    }
    tn_layer_free(net);
    return tn_ok() && right > ASKED * 9 / 10 ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
