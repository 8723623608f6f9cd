/* SPDX-License-Identifier: MIT */
/* After Chainer's tutorial "Using GPU(s) in Chainer": a network on the first GPU, where there is one, by the trainer.
 * gpu_trainer [DATASET [EPOCHS [UNITS]]] */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

static tn_layer *mlp(int64_t units, int64_t out)
{
    return tn_sequential(tn_linear(units), tn_relu_layer(), tn_linear(units), tn_relu_layer(), tn_linear(out));
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "mnist";
    double epochs = argc > 2 ? atof(argv[2]) : 20;
    tn_device device = tn_device_best();
    tn_layer *model = tn_classifier(mlp(argc > 3 ? atoi(argv[3]) : 1000, 10)); /* the input size is inferred */
    tn_optimizer *optimizer = tn_sgd(model);
    tn_loader *train = tn_loader_new(tn_dataset_named(name, TN_TRAIN), .batch = 100, .shuffle = true, .device = device);
    tn_loader *test = tn_loader_new(tn_dataset_named(name, TN_TEST), .batch = 100, .device = device);

    tn_updater *updater = tn_standard_updater(train, optimizer, .device = device);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(epochs, TN_EPOCH), .out = "result");
    tn_extend(trainer, tn_evaluator(test, model, .device = device));
    tn_status status = tn_trainer_run(trainer);

    printf("test accuracy %.3f\n",
           tn_observation_number(tn_trainer_observation(trainer), "validation/main/accuracy"));
    tn_trainer_free(trainer);
    tn_loader_free(train);
    tn_loader_free(test);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    return status != TN_OK;
}
