/* SPDX-License-Identifier: MIT */
/*
 * A small residual network learns MNIST's digits, turned, scaled and shifted anew each time. resnet_mnist [DATASET
 * [EPOCHS [SAMPLES]]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { SIDE = 28 };

/* A stage has half the extents and twice the channels of the one before. */
static const char network[] =
    "image:1 conv:16,3,pad=1,bias=0 bn relu "
    "residual(conv:32,3,pad=1,stride=2,bias=0 bn relu conv:32,3,pad=1,bias=0 bn|conv:32,1,stride=2,bias=0 bn|relu)"
    "residual(conv:64,3,pad=1,stride=2,bias=0 bn relu conv:64,3,pad=1,bias=0 bn|conv:64,1,stride=2,bias=0 bn|relu)"
    "residual(conv:64,3,pad=1,bias=0 bn relu conv:64,3,pad=1,bias=0 bn||relu) gap linear:10";

static double between(tn_generator *g, double low, double high)
{
    return low + (high - low) * tn_generator_uniform(g);
}

/* The picture's value at a place between pixels; outside it is black. */
static float at(const float *from, double y, double x)
{
    int top = (int)floor(y), left = (int)floor(x);
    double sum = 0;
    for (int i = top; i <= top + 1; i++)
        for (int j = left; j <= left + 1; j++)
            if (i >= 0 && i < SIDE && j >= 0 && j < SIDE)
                sum += from[i * SIDE + j] * (1 - fabs(y - i)) * (1 - fabs(x - j));
    return (float)sum;
}

/* Turned by 10 degrees at most, scaled by a tenth, shifted by two pixels. */
static tn_status move(void *user, const void *x, const void *t, tn_generator *g, void *new_x, void *new_t)
{
    (void)user;
    const double middle = (SIDE - 1) / 2.0, quarter_turn = 1.57079632679489662;
    double angle = between(g, -1, 1) * quarter_turn / 9, scale = between(g, 0.9, 1.1);
    double down = middle + between(g, -2, 2), right = middle + between(g, -2, 2);
    double along = cos(angle) / scale, across = sin(angle) / scale;
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            ((float *)new_x)[i * SIDE + j] = at(x, along * (i - middle) - across * (j - middle) + down,
                                                across * (i - middle) + along * (j - middle) + right);
    *(int64_t *)new_t = *(const int64_t *)t;
    return TN_OK;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "mnist";
    int epochs = argc > 2 ? atoi(argv[2]) : 15;
    tn_device device = tn_device_best();
    tn_dataset *all = tn_dataset_named(name, TN_TRAIN), *test = tn_dataset_named(name, TN_TEST);
    if (argc > 3) { /* so many samples of each */
        tn_dataset *whole[] = {all, test};
        all = tn_dataset_slice(all, 0, atoi(argv[3]));
        test = tn_dataset_slice(test, 0, atoi(argv[3]));
        tn_dataset_free(whole[0]);
        tn_dataset_free(whole[1]);
    }
    tn_sample_type picture = {TN_FLOAT32, TN_SHAPE(SIDE * SIDE)}, label = {.dtype = TN_INT64};
    tn_dataset *train = tn_dataset_transform(all, picture, label, move, NULL);
    tn_layer *net = tn_layer_parse(network);
    tn_layer_to(net, device);
    tn_optimizer *opt = tn_nesterov(net, .lr = 0.05, .weight_decay = 5e-4);
    tn_loader *batches = tn_loader_new(train, .batch = 100, .shuffle = true, .workers = 1, .device = device);
    tn_meter *mean = tn_meter_new(device);
    double steps = 0, last = (double)epochs * (double)(tn_dataset_size(all) / 100 + 1);

    for (int epoch = 1; epoch <= epochs && tn_ok(); epoch++) {
        for (tn_batch b; tn_loader_next(batches, &b); ) TN_SCOPE {
            tn_optimizer_set_lr(opt, 0.05 * (1 - steps++ / last));
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, b.x), b.t);
            tn_backward(loss);
            tn_step(opt);
            tn_meter_add(mean, loss, (double)b.size);
        }
        double accuracy = 0;
        if (tn_evaluate(net, test, 0, device, NULL, &accuracy) == TN_OK)
            printf("epoch %d, loss %.4f, accuracy %.4f\n", epoch, tn_meter_take(mean), accuracy);
        fflush(stdout);
    }
    tn_meter_free(mean);
    tn_loader_free(batches);
    tn_optimizer_free(opt);
    tn_layer_free(net);
    tn_dataset_free(all);
    tn_dataset_free(test);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
