/* SPDX-License-Identifier: MIT */
/*
 * What VGG-16 sees in a picture (DeZero's step 58): the five classes that it holds for likeliest.
 *
 *     vgg16 [WEIGHTS.safetensors [CLASSES [WIDTH [PICTURE]]]]
 *
 * The weights are torchvision's, saved by safetensors.torch.save_file(vgg16(weights="DEFAULT").state_dict(), path);
 * without a file they are random. A picture is a PNG or JPEG file; without one it is a field of colours.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

int main(int argc, char **argv)
{
    const char *weights = argc > 1 ? argv[1] : NULL, *path = argc > 4 ? argv[4] : NULL;
    int64_t classes = argc > 2 ? atoll(argv[2]) : 1000;
    tn_layer *net = tn_vgg16(classes, .width = argc > 3 ? atof(argv[3]) : 1);
    tn_layer_train(net, false);
    tn_status loaded = weights ? tn_layer_load(net, weights, .torch = true) : TN_OK;
    if (loaded == TN_OK) TN_NO_GRAD {
        tn_array *field = tn_remainder(tn_multiply(tn_arange(0, 3 * 64 * 64, 1), 0.013), 1);
        tn_array *x = path ? tn_load_image(path, .channels = 3) : tn_reshape(field, TN_SHAPE(3, 64, 64));
        tn_array *chance = tn_flatten(tn_softmax(tn_forward(net, tn_prepare(x)), 1));
        tn_array *order = tn_flip(tn_argsort(chance), TN_AXES(0));
        for (int64_t i = 0; i < 5 && i < classes && tn_ok(); i++) {
            int64_t class = tn_item_int(tn_index(order, i));
            printf("class %4lld: %5.1f %%\n", (long long)class, 100 * tn_item(tn_index(chance, class)));
        }
    }
    tn_layer_free(net);
    if (!tn_ok())
        fprintf(stderr, "%s\n", tn_error());
    return tn_ok() ? 0 : 1;
}
