/* SPDX-License-Identifier: MIT */
/* After Chainer's examples/vae: a variational autoencoder (Kingma and Welling 2013) that learns to draw digits.
 * vae [DATASET [EPOCHS [FOLDER]]] */
#include <stdio.h>
#include <stdlib.h>
#include <tanso.h>

enum { PIXELS = 784, SIDE = 28, LATENT = 20, HIDDEN = 500, SHOWN = 9 };

static tn_array *encode(tn_layer *vae, const tn_array *x, tn_array **ln_var)
{
    tn_array *h = tn_tanh(tn_forward(tn_layer_child(vae, "le1"), x));
    *ln_var = tn_forward(tn_layer_child(vae, "le2_ln_var"), h); /* log(sigma**2) */
    return tn_forward(tn_layer_child(vae, "le2_mu"), h);
}

/* Logits of pixels. */
static tn_array *decode(tn_layer *vae, const tn_array *z)
{
    return tn_forward(tn_layer_child(vae, "ld2"), tn_tanh(tn_forward(tn_layer_child(vae, "ld1"), z)));
}

static tn_array *reconstruct(tn_layer *vae, const tn_array *x, void *user)
{
    (void)user;
    tn_array *ln_var;
    return tn_sigmoid(decode(vae, encode(vae, x, &ln_var)));
}

/* The negated evidence lower bound, by *user samples of each code. */
static tn_array *loss_of(tn_layer *vae, const tn_batch *batch, void *user)
{
    int samples = *(const int *)user;
    tn_array *ln_var, *mu = encode(vae, batch->x, &ln_var), *rec_loss = tn_scalar(0);
    for (int i = 0; i < samples; i++) {
        tn_array *noise = tn_random_normal(tn_shape_of(mu), .device = tn_device_of(mu));
        tn_array *y = decode(vae, tn_add(mu, tn_multiply(noise, tn_exp(tn_multiply(ln_var, 0.5)))));
        tn_array *nll = tn_bernoulli_nll(batch->x, y, .reduction = TN_REDUCTION_SUM);
        rec_loss = tn_add(rec_loss, tn_divide(nll, samples * (double)batch->size));
    }
    tn_array *kl = tn_gaussian_kl_divergence(mu, ln_var, .reduction = TN_REDUCTION_SUM);
    tn_array *loss = tn_add(rec_loss, tn_divide(kl, (double)batch->size));
    tn_report(vae, "rec_loss", rec_loss);
    tn_report(vae, "loss", loss);
    return loss;
}

/* Nine pictures beside one another, as a file of grey pixels that any viewer shows. */
static void save_images(const tn_array *x, const char *folder, const char *name)
{
    char path[300];
    unsigned char pixel[SIDE * SHOWN * SIDE];
    snprintf(path, sizeof path, "%s/%s.pgm", folder, name);
    tn_array *row = tn_reshape(tn_swapaxes(tn_reshape(x, TN_SHAPE(SHOWN, SIDE, SIDE)), 0, 1), TN_SHAPE(sizeof pixel));
    FILE *file = tn_to_host(tn_cast(tn_multiply(row, 255), TN_UINT8), pixel, sizeof pixel) == TN_OK ? fopen(path, "wb")
                                                                                                    : NULL;
    if (!file)
        return;
    fprintf(file, "P5 %d %d 255\n", SHOWN * SIDE, SIDE);
    fwrite(pixel, 1, sizeof pixel, file);
    fclose(file);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "mnist", *out = argc > 3 ? argv[3] : "result";
    double epochs = argc > 2 ? atof(argv[2]) : 100;
    int one = 1, ten = 10;
    tn_device device = tn_device_best();
    tn_layer *model = tn_layer_new("vae", reconstruct, NULL, NULL);
    tn_layer_add(model, "le1", tn_linear(HIDDEN, .in = PIXELS));
    tn_layer_add(model, "le2_mu", tn_linear(LATENT, .in = HIDDEN));
    tn_layer_add(model, "le2_ln_var", tn_linear(LATENT, .in = HIDDEN));
    tn_layer_add(model, "ld1", tn_linear(HIDDEN, .in = LATENT));
    tn_layer_add(model, "ld2", tn_linear(PIXELS, .in = HIDDEN));
    tn_optimizer *optimizer = tn_adam(model);
    tn_loader *train = tn_loader_new(tn_dataset_named(name, TN_TRAIN), .batch = 100, .shuffle = true, .device = device);
    tn_dataset *test_set = tn_dataset_named(name, TN_TEST);
    tn_loader *test = tn_loader_new(test_set, .batch = 100, .device = device);

    tn_updater *updater = tn_standard_updater(train, optimizer, .device = device, .loss = loss_of, .user = &one);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(epochs, TN_EPOCH), .out = out);
    tn_extend(trainer, tn_evaluator(test, model, .loss = loss_of, .user = &ten));
    tn_extend(trainer, tn_dump_graph("main/loss"));
    tn_extend(trainer, tn_snapshot(), .trigger = TN_EVERY(epochs, TN_EPOCH));
    tn_extend(trainer, tn_log_report());
    tn_extend(trainer, tn_print_report("epoch", "main/loss", "validation/main/loss", "main/rec_loss",
                                       "validation/main/rec_loss", "elapsed_time"));
    tn_extend(trainer, tn_progress_bar());
    tn_status status = tn_trainer_run(trainer);

    if (status == TN_OK) TN_SCOPE TN_NO_GRAD {
        tn_array *x = tn_to(tn_slice_axis(tn_dataset_x(test_set), 0, 0, SHOWN, 1), device);
        save_images(x, out, "test");
        save_images(tn_forward(model, x), out, "test_reconstructed");
        tn_array *z = tn_random_normal(TN_SHAPE(SHOWN, LATENT), .device = device);
        save_images(tn_sigmoid(decode(model, z)), out, "sampled");
    }
    tn_trainer_free(trainer);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    tn_loader_free(train);
    tn_loader_free(test);
    return status != TN_OK || !tn_ok();
}
