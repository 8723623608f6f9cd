/* SPDX-License-Identifier: MIT */
/* A small ResNet learns CIFAR's pictures, shifted and mirrored anew each time. cifar [DATASET [EPOCHS [SAMPLES]]] */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

/* Nine blocks in three stages, ResNet-20 of He and others 2016. tn_resnet18(10, .stem = "cifar") is a larger one. */
static const char network[] =
    "conv:16,3,pad=1,bias=0 bn relu repeat:3(residual(conv:16,3,pad=1,bias=0 bn relu conv:16,3,pad=1,bias=0 bn||relu))"
    "residual(conv:32,3,pad=1,stride=2,bias=0 bn relu conv:32,3,pad=1,bias=0 bn|conv:32,1,stride=2,bias=0 bn|relu)"
    "repeat:2(residual(conv:32,3,pad=1,bias=0 bn relu conv:32,3,pad=1,bias=0 bn||relu))"
    "residual(conv:64,3,pad=1,stride=2,bias=0 bn relu conv:64,3,pad=1,bias=0 bn|conv:64,1,stride=2,bias=0 bn|relu)"
    "repeat:2(residual(conv:64,3,pad=1,bias=0 bn relu conv:64,3,pad=1,bias=0 bn||relu))"
    "gap linear:10";

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cifar10";
    int epochs = argc > 2 ? atoi(argv[2]) : 60;
    tn_device device = tn_device_best();
    tn_dataset *all = tn_dataset_named(name, TN_TRAIN), *test = tn_dataset_named(name, TN_TEST);
    if (argc > 3) { /* so many samples of each */
        tn_dataset *whole[] = {all, test};
        all = tn_dataset_slice(all, 0, atoi(argv[3]));
        test = tn_dataset_slice(test, 0, atoi(argv[3]));
        tn_dataset_free(whole[0]);
        tn_dataset_free(whole[1]);
    }
    tn_dataset *train = tn_dataset_images(all, .pad = 4, .crop_height = 32, .crop_width = 32, .flip = true);
    tn_layer *net = tn_layer_parse(network);
    tn_layer_to(net, device);
    tn_optimizer *opt = tn_nesterov(net, .lr = 0.05, .weight_decay = 5e-4);
    tn_loader *batches = tn_loader_new(train, .batch = 100, .shuffle = true, .workers = 2, .device = device);
    tn_meter *mean = tn_meter_new(device);

    for (int epoch = 1; epoch <= epochs && tn_ok(); epoch++) {
        for (tn_batch b; tn_loader_next(batches, &b); ) TN_SCOPE {
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, b.x), b.t);
            tn_backward(loss);
            tn_step(opt);
            tn_meter_add(mean, loss, (double)b.size);
        }
        double accuracy = 0;
        if (tn_evaluate(net, test, 0, device, NULL, &accuracy) == TN_OK)
            printf("epoch %d, loss %.4f, accuracy %.4f\n", epoch, tn_meter_take(mean), accuracy);
    }
    tn_meter_free(mean);
    tn_loader_free(batches);
    tn_optimizer_free(opt);
    tn_layer_free(net);
    tn_dataset_free(all);
    tn_dataset_free(test);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
