/* SPDX-License-Identifier: MIT */
/*
 * Rows about training, through the loop a user writes: the loader, forward, backward, the optimizer's step, a meter;
 * and about a step alone, plain, read, and clipped in two ways.
 * MNIST is read from where tn_mnist finds it; else random numbers of its shape stand for it, and the row says so.
 */
#include "measure.h"

typedef struct training {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_loader *batches;
    tn_meter *mean;
    int epochs; /* a call */
} training;

static void train(void *context, bool last)
{
    (void)last;
    training *t = context;
    for (int epoch = 0; epoch < t->epochs && tn_ok(); epoch++) {
        for (tn_batch b; tn_loader_next(t->batches, &b);) TN_SCOPE {
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(t->net, b.x), b.t);
            tn_backward(loss);
            tn_step(t->optimizer);
            tn_meter_add(t->mean, loss, (double)b.size);
        }
        tn_meter_take(t->mean);
    }
}

static void training_free(training *t)
{
    tn_meter_free(t->mean);
    tn_loader_free(t->batches);
    tn_optimizer_free(t->optimizer);
    tn_layer_free(t->net);
}

/* Multiplications and additions of a step of two linear layers: twice a product forward, once more than that backward,
 * but for the gradient of the input. */
static double step_operations(double batch, double in, double hidden, double out)
{
    return 2 * batch * (2 * in * hidden + 3 * hidden * out);
}

/* Most of a row's time is its first calls: three epochs of which the first two warm up would be too few to tell. */
static timing measure_training(const bench *b, training *t)
{
    double seconds[MOST_REPETITIONS];
    int count = 0;
    train(t, true);
    double began = now();
    while (tn_ok() && count < MOST_REPETITIONS && (count < 3 || now() - began < b->budget)) {
        double start = now();
        train(t, true);
        seconds[count++] = now() - start;
    }
    return count ? timing_of(seconds, count) : (timing){0};
}

/* MNIST, or what has its shape; *note says which. */
static tn_dataset *mnist(const char **note)
{
    *note = "MNIST";
    tn_dataset *data = tn_mnist(TN_TRAIN);
    if (tn_dataset_status(data) != TN_OK) {
        tn_dataset_free(data);
        tn_clear_error();
        *note = "random data of MNIST's shape";
        TN_SCOPE data = tn_dataset_arrays(tn_random_uniform(TN_SHAPE(60000, 784)),
                                          tn_random_integers(0, 10, TN_SHAPE(60000)));
    }
    return data;
}

static void mnist_run(const bench *b)
{
    if (!wanted(b, "mnist-epoch"))
        return;
    const char *note;
    tn_dataset *data = mnist(&note);
    training t = {.net = tn_sequential(tn_linear(1000), tn_sigmoid_layer(), tn_linear(10)), .epochs = 1};
    tn_layer_to(t.net, b->device);
    t.optimizer = tn_sgd(t.net, .lr = 0.01);
    t.batches = tn_loader_new(data, .batch = 100, .shuffle = true, .device = b->device);
    t.mean = tn_meter_new(b->device);
    timing time = measure_training(b, &t);
    report(b, (row_facts){.row = "mnist-epoch", .work = "MLP 784-1000-10, sigmoid, batch 100, SGD: 600 steps",
                          .operations = 600 * step_operations(100, 784, 1000, 10), .note = note}, time);
    training_free(&t);
}

static void digits_run(const bench *b)
{
    if (!wanted(b, "digits"))
        return;
    training t = {.net = tn_sequential(tn_linear(30), tn_relu_layer(), tn_linear(10)), .epochs = 30};
    tn_layer_to(t.net, b->device);
    t.optimizer = tn_sgd(t.net, .lr = 0.03);
    t.batches = tn_loader_new(tn_digits(TN_TRAIN), .batch = 32, .shuffle = true, .device = b->device);
    t.mean = tn_meter_new(b->device);
    timing time = measure_training(b, &t);
    report(b, (row_facts){.row = "digits", .work = "MLP 64-30-10, relu, batch 32, SGD: 30 epochs, 1,350 steps",
                          .operations = 1350 * step_operations(32, 64, 30, 10)}, time);
    training_free(&t);
}

static void relu3_run(const bench *b)
{
    if (b->device.kind == TN_DEVICE_CPU || !wanted(b, "relu3-adam")) /* minutes on two cores */
        return;
    const char *note;
    tn_dataset *data = mnist(&note);
    training t = {.net = tn_mlp(3, (int64_t[]){1024, 1024, 10}, "relu"), .epochs = 1};
    tn_layer_to(t.net, b->device);
    t.optimizer = tn_adam(t.net, .lr = 0.001);
    t.batches = tn_loader_new(data, .batch = 128, .shuffle = true, .drop_last = true, .device = b->device);
    t.mean = tn_meter_new(b->device);
    timing time = measure_training(b, &t);
    double operations = 468 * (step_operations(128, 784, 1024, 1024) + 6 * 128.0 * 1024 * 10);
    report(b, (row_facts){.row = "relu3-adam", .work = "MLP 784-1024-1024-10, relu, batch 128, Adam: 468 steps",
                          .operations = operations, .note = note}, time);
    training_free(&t);
}

/* ---- one step of a network of three layers, and what is asked of it besides ---- */

typedef struct one_step {
    tn_layer *net;
    tn_optimizer *optimizer;
    tn_array *x, *t;
    bool reads; /* the loss, after each step */
} one_step;

/* What .clip_norm = 1 does, by arrays: gradients are divided by their common norm where it is above 1. */
static tn_status clip_by_arrays(tn_optimizer *optimizer, tn_layer *net, void *user)
{
    (void)optimizer, (void)user;
    tn_array *squares = tn_scalar(0.0f);
    for (int i = 0; i < tn_param_count(net); i++)
        squares = tn_add(squares, tn_sum(tn_square(tn_grad(tn_param(net, i)))));
    tn_array *ratio = tn_minimum(tn_divide(1.0f, tn_sqrt(squares)), 1.0f);
    tn_status status = TN_OK;
    for (int i = 0; i < tn_param_count(net) && status == TN_OK; i++)
        status = tn_set_grad(tn_param(net, i), tn_multiply(tn_grad(tn_param(net, i)), ratio));
    return status;
}

static void step_once(void *context, bool last)
{
    one_step *s = context;
    TN_SCOPE {
        tn_array *loss = tn_softmax_cross_entropy(tn_forward(s->net, s->x), s->t);
        if (tn_backward(loss) == TN_OK && tn_step(s->optimizer) == TN_OK && (s->reads || last))
            (void)tn_item(loss);
    }
}

static void step_row_run(const bench *b, const char *row, const char *work, double clip_norm, bool hook, bool reads)
{
    if (!wanted(b, row))
        return;
    one_step s = {.net = tn_mlp(3, (int64_t[]){1000, 1000, 10}, "relu"), .reads = reads};
    tn_layer_to(s.net, b->device);
    s.optimizer = tn_sgd(s.net, .lr = 0.01, .clip_norm = clip_norm);
    if (hook)
        (void)!tn_optimizer_add_hook(s.optimizer, clip_by_arrays, NULL);
    TN_SCOPE {
        s.x = tn_own(tn_random_normal(TN_SHAPE(100, 784), .device = b->device));
        s.t = tn_own(tn_random_integers(0, 10, TN_SHAPE(100), .device = b->device));
    }
    double operations = step_operations(100, 784, 1000, 1000) + 6 * 100.0 * 1000 * 10;
    timing time = measure(b, step_once, &s, 5e-3);
    report(b, (row_facts){.row = row, .work = work, .operations = operations}, time);
    tn_optimizer_free(s.optimizer);
    tn_layer_free(s.net);
    tn_free(s.x);
    tn_free(s.t);
}

static void steps_run(const bench *b)
{
    step_row_run(b, "step", "a step of 784-1000-1000-10, relu, batch 100, SGD", 0, false, false);
    step_row_run(b, "step-read", "the same, its loss read", 0, false, true);
    step_row_run(b, "step-clipped", "the same, gradients clipped by their norm", 1, false, false);
    step_row_run(b, "step-hook", "the same by a hook of arrays", 0, true, false);
}

int main(int argc, char **argv)
{
    bench b = bench_flags(argc, argv);
    tn_seed(1);
    mnist_run(&b);
    digits_run(&b);
    relu3_run(&b);
    steps_run(&b);
    return 0;
}
