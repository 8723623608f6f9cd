/* SPDX-License-Identifier: MIT */
/* After Chainer's tutorial "Using GPU(s) in Chainer": the training loop by hand, where each minibatch is brought to the
 * GPU. gpu_loop [DATASET [EPOCHS [UNITS]]] */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

int main(int argc, char **argv)
{
    tn_dataset *data = tn_dataset_named(argc > 1 ? argv[1] : "mnist", TN_TRAIN);
    int64_t size = tn_dataset_size(data), batch = 100, epochs = argc > 2 ? atoi(argv[2]) : 20;
    int64_t units = argc > 3 ? atoi(argv[3]) : 1000;
    tn_array *x_train = tn_dataset_x(data), *t_train = tn_dataset_t(data);
    tn_device device = tn_device_best();
    tn_layer *model = tn_classifier(tn_mlp_of(units, units, 10));
    tn_optimizer *optimizer = tn_sgd(model);
    double loss = 0;
    tn_layer_to(model, device);

    for (int64_t epoch = 0; epoch < epochs && tn_ok(); epoch++) TN_SCOPE {
        tn_array *order = tn_random_permutation(size, .device = tn_cpu());
        for (int64_t i = 0; i < size; i += batch) TN_SCOPE {
            tn_array *at = tn_slice_axis(order, 0, i, i + batch, 1);
            tn_array *x = tn_to(tn_take(x_train, at, 0), device), *t = tn_to(tn_take(t_train, at, 0), device);
            tn_array *error = tn_classifier_loss(model, x, t);
            tn_backward(error);
            tn_step(optimizer);
            if (i + batch >= size)
                loss = tn_item(error);
        }
        printf("epoch %d, loss %.4f\n", (int)epoch, loss);
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    tn_dataset_free(data);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
