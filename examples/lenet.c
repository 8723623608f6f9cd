/* SPDX-License-Identifier: MIT */
/* LeNet-5 learns digits: convolutions, pooling, the loop by hand. lenet [DATASET [EPOCHS [SAMPLES]]] */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "mnist";
    int epochs = argc > 2 ? atoi(argv[2]) : 5;
    tn_device device = tn_device_best();
    tn_dataset *train = tn_dataset_named(name, TN_TRAIN), *test = tn_dataset_named(name, TN_TEST);
    if (argc > 3) { /* so many samples of each */
        tn_dataset *all[] = {train, test};
        train = tn_dataset_slice(train, 0, atoi(argv[3]));
        test = tn_dataset_slice(test, 0, atoi(argv[3]));
        tn_dataset_free(all[0]);
        tn_dataset_free(all[1]);
    }
    tn_layer *net = tn_sequential(tn_image_layer(1), tn_conv2d(20, TN_SHAPE(5)), tn_relu_layer(),
                                  tn_max_pool_layer(TN_SHAPE(2)), tn_conv2d(50, TN_SHAPE(5)), tn_relu_layer(),
                                  tn_max_pool_layer(TN_SHAPE(2)), tn_flatten_layer(), tn_linear(500), tn_relu_layer(),
                                  tn_linear(10)); /* the same as tn_lenet5(10) */
    tn_layer_to(net, device);
    tn_optimizer *opt = tn_adam(net);
    tn_loader *batches = tn_loader_new(train, .batch = 100, .shuffle = true, .device = device);
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
    tn_dataset_free(test);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
