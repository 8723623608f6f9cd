/* SPDX-License-Identifier: MIT */
/* A network learns MNIST's digits: the whole training loop. The files come from "tanso data fetch mnist" or
 * $TANSO_DATA. */
#include <tanso.h>

int main(void)
{
    tn_device dev = tn_device_best();                     /* cuda:0 where there is one, else cpu */
    tn_layer *net = tn_sequential(tn_linear(1000), tn_sigmoid_layer(), tn_linear(10));
    tn_layer_to(net, dev);
    tn_optimizer *opt = tn_sgd(net, .lr = 0.01);
    tn_loader *batches = tn_loader_new(tn_mnist(TN_TRAIN), .batch = 100, .shuffle = true, .device = dev);
    tn_meter *mean = tn_meter_new(dev);                   /* accumulates on the device: no sync a step */

    for (int epoch = 1; epoch <= 5 && tn_ok(); epoch++) {
        TN_EACH(b, batches) {
            tn_array *loss = tn_softmax_cross_entropy(tn_forward(net, b.x), b.t);
            tn_backward(loss);
            tn_step(opt);
            tn_meter_add(mean, loss, b.size);
        }
        printf("epoch %d, loss: %.4f\n", epoch, tn_meter_take(mean));
    }
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
