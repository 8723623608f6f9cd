/* SPDX-License-Identifier: MIT */
/* After Chainer's examples/mnist/train_mnist.py: a network of two hidden layers, a trainer and its usual extensions.
 * train_mnist [DATASET [EPOCHS [FOLDER]]], by default the digits that come with the library; started again with the
 * same folder it goes on where it stood. Ctrl-C ends it with a snapshot. */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "digits";
    double epochs = argc > 2 ? atof(argv[2]) : 5;
    const char *out = argc > 3 ? argv[3] : "result";

    tn_device device = tn_device_best();
    tn_layer *model = tn_classifier(tn_layer_parse("linear:100 relu linear:100 relu linear:10"));
    tn_optimizer *optimizer = tn_adam(model);
    tn_loader *train = tn_loader_new(tn_dataset_named(name, TN_TRAIN), .batch = 100, .shuffle = true, .device = device);
    tn_loader *test = tn_loader_new(tn_dataset_named(name, TN_TEST), .batch = 100, .device = device);

    tn_updater *updater = tn_standard_updater(train, optimizer, .device = device);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(epochs, TN_EPOCH), .out = out, .ctrl_c = true);
    tn_extend(trainer, tn_evaluator(test, model));
    tn_extend(trainer, tn_snapshot(.keep = 2, .autoload = true));
    tn_extend(trainer, tn_log_report());
    tn_extend(trainer, tn_plot_report(TN_KEYS_OF("main/loss", "validation/main/loss"), .file = "loss.svg"));
    tn_extend(trainer, tn_print_report("epoch", "main/loss", "validation/main/loss", "main/accuracy",
                                       "validation/main/accuracy", "elapsed_time"));
    tn_extend(trainer, tn_progress_bar());
    tn_status status = tn_trainer_run(trainer);

    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_error());
    tn_trainer_free(trainer);
    tn_loader_free(train);
    tn_loader_free(test);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    return status != TN_OK;
}
