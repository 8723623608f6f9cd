/* SPDX-License-Identifier: MIT */
/* After Chainer's tutorial "Using GPU(s) in Chainer": data-parallel computation on two GPUs without a trainer; without
 * two GPUs, on two virtual devices. data_parallel [DATASET [EPOCHS [UNITS]]] */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

int main(int argc, char **argv)
{
    tn_dataset *data = tn_dataset_named(argc > 1 ? argv[1] : "mnist", TN_TRAIN);
    int64_t size = tn_dataset_size(data), batch = 100, epochs = argc > 2 ? atoi(argv[2]) : 20;
    int64_t units = argc > 3 ? atoi(argv[3]) : 1000;
    tn_array *x_train = tn_dataset_x(data), *t_train = tn_dataset_t(data);
    bool gpus = tn_cuda_count() > 1;
    tn_device gpu0 = tn_device_parse(gpus ? "cuda:0" : "virtual:0", NULL);
    tn_device gpu1 = tn_device_parse(gpus ? "cuda:1" : "virtual:1", NULL);

    tn_layer *model_0 = tn_classifier(tn_mlp_of(units, units, 10));
    tn_layer *model_1 = tn_layer_copy(model_0);
    tn_layer_to(model_0, gpu0);
    tn_layer_to(model_1, gpu1);
    tn_optimizer *optimizer = tn_sgd(model_0);
    double loss = 0;

    for (int64_t epoch = 0; epoch < epochs && tn_ok(); epoch++) TN_SCOPE {
        tn_array *order = tn_random_permutation(size, .device = tn_cpu());
        for (int64_t i = 0; i < size; i += batch) TN_SCOPE {
            int64_t half = (i + batch < size ? batch : size - i) / 2;
            tn_array *at_0 = tn_slice_axis(order, 0, i, i + half, 1);
            tn_array *at_1 = tn_slice_axis(order, 0, i + half, i + batch, 1);
            tn_array *x0 = tn_to(tn_take(x_train, at_0, 0), gpu0), *t0 = tn_to(tn_take(t_train, at_0, 0), gpu0);
            tn_array *x1 = tn_to(tn_take(x_train, at_1, 0), gpu1), *t1 = tn_to(tn_take(t_train, at_1, 0), gpu1);

            tn_array *loss_0 = tn_classifier_loss(model_0, x0, t0);
            tn_array *loss_1 = tn_classifier_loss(model_1, x1, t1);

            tn_layer_clear_grads(model_0);
            tn_layer_clear_grads(model_1);

            tn_backward(loss_0);
            tn_backward(loss_1);

            tn_layer_add_grads(model_0, model_1);
            tn_step(optimizer);

            tn_layer_copy_params(model_1, model_0);
            if (i + batch >= size)
                loss = (tn_item(loss_0) + tn_item(loss_1)) / 2;
        }
        printf("epoch %d, loss %.4f\n", (int)epoch, loss);
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(model_0);
    tn_layer_free(model_1);
    tn_dataset_free(data);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
