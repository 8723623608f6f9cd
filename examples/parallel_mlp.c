/* SPDX-License-Identifier: MIT */
/* After Chainer's tutorial "Using GPU(s) in Chainer": a network of six layers on two GPUs, which meet after the third
 * and the sixth; without two GPUs, on two virtual devices. parallel_mlp [DATASET [EPOCHS [UNITS]]] */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

static tn_layer *mlp(int64_t units, int64_t outputs, tn_device device)
{
    tn_layer *layer = tn_mlp_of(units / 2, units / 2, outputs);
    tn_layer_to(layer, device);
    return layer;
}

static tn_array *parallel_mlp(tn_layer *self, const tn_array *x, void *user)
{
    const tn_device *gpu = user;
    /* x is on GPU 0 */
    tn_array *z0 = tn_forward(tn_layer_child(self, "mlp1_gpu0"), x);
    tn_array *z1 = tn_forward(tn_layer_child(self, "mlp1_gpu1"), tn_to(x, gpu[1]));

    /* sync */
    tn_array *h0 = tn_relu(tn_add(z0, tn_to(z1, gpu[0])));
    tn_array *h1 = tn_relu(tn_add(z1, tn_to(z0, gpu[1])));

    tn_array *y0 = tn_forward(tn_layer_child(self, "mlp2_gpu0"), h0);
    tn_array *y1 = tn_forward(tn_layer_child(self, "mlp2_gpu1"), h1);

    /* sync */
    return tn_add(y0, tn_to(y1, gpu[0])); /* on GPU 0 */
}

static tn_layer *parallel_mlp_new(int64_t units, tn_device *gpu)
{
    tn_layer *layer = tn_layer_new("parallel_mlp", parallel_mlp, gpu, NULL, .size = 2 * sizeof *gpu);
    tn_layer_add(layer, "mlp1_gpu0", mlp(units, units, gpu[0]));
    tn_layer_add(layer, "mlp1_gpu1", mlp(units, units, gpu[1]));
    tn_layer_add(layer, "mlp2_gpu0", mlp(units, 10, gpu[0]));
    tn_layer_add(layer, "mlp2_gpu1", mlp(units, 10, gpu[1]));
    return layer;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "mnist", *kind = tn_cuda_count() > 1 ? "cuda" : "virtual";
    int epochs = argc > 2 ? atoi(argv[2]) : 20;
    char names[2][16];
    tn_device gpu[2];
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "%s:%d", kind, i);
        gpu[i] = tn_device_parse(names[i], NULL);
    }
    tn_layer *model = parallel_mlp_new(argc > 3 ? atoi(argv[3]) : 2000, gpu);
    tn_optimizer *optimizer = tn_sgd(model);
    tn_loader *train = tn_loader_new(tn_dataset_named(name, TN_TRAIN), .batch = 100, .shuffle = true, .device = gpu[0]);
    tn_meter *mean = tn_meter_new(gpu[0]);

    for (int epoch = 1; epoch <= epochs && tn_ok(); epoch++) {
        for (tn_batch b; tn_loader_next(train, &b);) TN_SCOPE {
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(model, b.x), b.t);
            tn_backward(loss);
            tn_step(optimizer);
            tn_meter_add(mean, loss, (double)b.size);
        }
        printf("epoch %d, loss %.4f\n", epoch, tn_meter_take(mean));
    }
    tn_meter_free(mean);
    tn_loader_free(train);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
