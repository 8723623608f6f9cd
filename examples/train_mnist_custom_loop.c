/* SPDX-License-Identifier: MIT */
/* After Chainer's examples/mnist/train_mnist_custom_loop.py: the loop of train_mnist.c without a trainer, over loaders
 * of which one goes on without an end. train_mnist_custom_loop [DATASET [EPOCHS [FOLDER [UNITS]]]] */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

/* The loss of a minibatch, and what its samples add to the means. */
static tn_array *loss_of(tn_layer *model, const tn_batch *batch, tn_meter *mean_loss, tn_meter *mean_accuracy)
{
    tn_array *y = tn_forward(model, batch->x), *loss = tn_softmax_cross_entropy(y, batch->t);
    tn_meter_add(mean_loss, loss, (double)batch->size);
    tn_meter_add(mean_accuracy, tn_accuracy(y, batch->t), (double)batch->size);
    return loss;
}

static void print_means(const char *which, tn_meter *loss, tn_meter *accuracy)
{
    double mean = tn_meter_take(loss);
    printf("%s mean loss=%.5f, accuracy=%.4f\n", which, mean, tn_meter_take(accuracy));
}

static void save(tn_layer *model, tn_optimizer *optimizer, const char *folder)
{
    char path[256];
    snprintf(path, sizeof path, "%s/mlp_model.npz", folder);
    tn_status status = tn_layer_save(model, path);
    printf("saved the model: %s\n", tn_status_name(status));
    snprintf(path, sizeof path, "%s/mlp_state.npz", folder);
    status = tn_optimizer_save(optimizer, path);
    printf("saved the optimizer: %s\n", tn_status_name(status));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "mnist";
    int64_t epochs = argc > 2 ? atoi(argv[2]) : 20, units = argc > 4 ? atoi(argv[4]) : 1000;
    tn_device device = tn_device_best();
    tn_layer *model = tn_mlp_of(units, units, 10);
    tn_layer_to(model, device);
    tn_optimizer *optimizer = tn_adam(model);
    tn_loader *train = tn_loader_new(tn_dataset_named(name, TN_TRAIN), .batch = 100, .shuffle = true, .device = device,
                                     .repeat = true);
    tn_loader *test = tn_loader_new(tn_dataset_named(name, TN_TEST), .batch = 100, .device = device);
    tn_meter *loss = tn_meter_new(device), *accuracy = tn_meter_new(device);

    for (tn_batch batch; tn_loader_epoch(train) < epochs;) {
        int64_t epoch = tn_loader_epoch(train);
        if (!tn_loader_next(train, &batch))
            break;
        TN_SCOPE {
            tn_backward(loss_of(model, &batch, loss, accuracy));
            tn_step(optimizer);
        }
        if (tn_loader_epoch(train) == epoch)
            continue;
        print_means("train", loss, accuracy);
        tn_layer_train(model, false);
        while (tn_loader_next(test, &batch)) TN_SCOPE TN_NO_GRAD
            loss_of(model, &batch, loss, accuracy);
        tn_layer_train(model, true);
        print_means("test", loss, accuracy);
    }
    save(model, optimizer, argc > 3 ? argv[3] : ".");
    tn_meter_free(loss);
    tn_meter_free(accuracy);
    tn_loader_free(train);
    tn_loader_free(test);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
