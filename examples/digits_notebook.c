/* SPDX-License-Identifier: MIT */
/*
 * Handwritten digits in one screenful: 64 inputs, 30 hidden units with ReLU, 10 classes; weights by He et al.,
 * minibatches of 32, plain SGD at 0.03, 30 epochs; pixels normalised by the training set's mean and deviation; a fifth
 * of the samples, drawn by the seed, is kept for testing. Nothing is downloaded: the digits are in the library.
 *
 *     digits_notebook [SEED]
 */
#include <stdlib.h>
#include <tanso.h>

enum { HIDDEN = 30, CLASSES = 10, BATCH = 32, EPOCHS = 30 };

/* The samples from `start` to `stop` of an order, less `mean` and over `deviation`. */
static tn_dataset *part(tn_dataset *all, const tn_array *order, int64_t start, int64_t stop, double mean,
                        double deviation)
{
    tn_array *rows = tn_slice_axis(order, 0, start, stop, 1);
    tn_array *x = tn_take(tn_dataset_x(all), rows, 0);
    return tn_dataset_arrays(tn_divide(tn_subtract(x, mean), deviation), tn_take(tn_dataset_t(all), rows, 0));
}

/* Both parts of the digits, normalised by the mean and deviation of the first. */
static void split(tn_dataset **train, tn_dataset **test)
{
    tn_dataset *all = tn_digits_raw();
    int64_t count = tn_dataset_size(all), train_count = count * 8 / 10;
    TN_SCOPE {
        tn_array *order = tn_random_permutation(count);
        tn_array *x = tn_take(tn_dataset_x(all), tn_slice_axis(order, 0, 0, train_count, 1), 0);
        double mean = tn_item(tn_mean(x)), deviation = tn_item(tn_std(x));
        *train = part(all, order, 0, train_count, mean, deviation);
        *test = part(all, order, train_count, count, mean, deviation);
    }
    tn_dataset_free(all);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    tn_device device = tn_device_best();
    tn_dataset *train = NULL, *test = NULL;
    tn_seed(seed);
    split(&train, &test);

    tn_init he = {.kind = TN_INIT_HE_NORMAL};
    tn_layer *net = tn_sequential(tn_linear(HIDDEN, .weight = he), tn_relu_layer(), tn_linear(CLASSES, .weight = he));
    tn_layer_to(net, device);
    tn_optimizer *optimizer = tn_sgd(net, .lr = 0.03);
    tn_loader *batches = tn_loader_new(train, .batch = BATCH, .shuffle = true, .seed = seed, .device = device);
    tn_meter *mean = tn_meter_new(device);

    for (int epoch = 0; epoch < EPOCHS && tn_ok(); epoch++) {
        for (tn_batch b; tn_loader_next(batches, &b);)
            TN_SCOPE {
                tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, b.x), b.t);
                tn_backward(loss);
                tn_step(optimizer);
                tn_meter_add(mean, loss, (double)b.size);
            }
        double loss = tn_meter_take(mean), accuracy;
        if (tn_evaluate(net, test, 0, device, NULL, &accuracy) == TN_OK)
            printf("epoch %d: loss %.4f, accuracy %.1f%%\n", epoch, loss, 100 * accuracy);
    }
    tn_meter_free(mean);
    tn_loader_free(batches); /* and with it the training set */
    tn_dataset_free(test);
    tn_optimizer_free(optimizer);
    tn_layer_free(net);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
