/* SPDX-License-Identifier: MIT */
/* After Chainer's examples/serialization: a network and its optimizer saved into files, of NumPy's archives and of
 * safetensors, and loaded into others that were made in the same way. serialization [FOLDER] */
#include <stdio.h>
#include <tanso.h>

static tn_layer *model_new(void) { return tn_classifier(tn_mlp_of(100, 100, 10)); }

/* One step of training on given numbers. */
static double train(tn_layer *model, tn_optimizer *optimizer)
{
    double value = 0;
    TN_SCOPE {
        tn_array *x = tn_divide(tn_reshape(tn_arange(0, 784, 1, .dtype = TN_FLOAT32), TN_SHAPE(1, 784)), 784);
        tn_array *loss = tn_classifier_loss(model, x, tn_from_int64s((int64_t[]){3}, 1));
        tn_backward(loss);
        tn_step(optimizer);
        value = tn_item(loss);
    }
    return value;
}

int main(int argc, char **argv)
{
    static const char *const endings[] = {"npz", "safetensors"};
    tn_layer *model = model_new();
    tn_optimizer *optimizer = tn_adam(model);
    train(model, optimizer);
    for (int i = 0; i < 2 && tn_ok(); i++) {
        char model_path[256], state_path[256];
        snprintf(model_path, sizeof model_path, "%s/model.%s", argc > 1 ? argv[1] : ".", endings[i]);
        snprintf(state_path, sizeof state_path, "%s/state.%s", argc > 1 ? argv[1] : ".", endings[i]);
        tn_layer *other = model_new();
        tn_optimizer *other_optimizer = tn_adam(other);
        if (tn_layer_save(model, model_path) == TN_OK && tn_optimizer_save(optimizer, state_path) == TN_OK &&
            tn_layer_load(other, model_path) == TN_OK && tn_optimizer_load(other_optimizer, state_path) == TN_OK) {
            double loss = train(other, other_optimizer), expected = train(model, optimizer);
            printf("%s: the step after it is %s\n", endings[i], loss == expected ? "the same" : "another one");
        }
        tn_optimizer_free(other_optimizer);
        tn_layer_free(other);
    }
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    return tn_ok() ? 0 : (fprintf(stderr, "%s\n", tn_error()), 1);
}
