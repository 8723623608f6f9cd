/* SPDX-License-Identifier: MIT */
/* After Chainer's examples/word2vec: words as vectors, learned by the skip-gram model with negative sampling (Mikolov
 * et al. 2013): a word's vector is to be near to those of the words around it, and far from words by chance.
 * word2vec [DATASET [EPOCHS [FOLDER]]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tanso.h>

enum { UNITS = 100, WINDOW = 5, NEGATIVE = 5, BATCH = 1000 };

/* Sample i of a text: the words around the one at i + WINDOW, and that one. */
static tn_status window_at(void *text, int64_t i, tn_generator *generator, void *contexts, void *centre)
{
    (void)generator;
    const int64_t *word = (const int64_t *)text + i;
    for (int k = 0; k < 2 * WINDOW; k++)
        ((int64_t *)contexts)[k] = word[k + (k >= WINDOW)];
    *(int64_t *)centre = word[WINDOW];
    return TN_OK;
}

static tn_loader *windows(tn_dataset *text, bool shuffle, tn_device device)
{
    const tn_sample_type contexts = {TN_INT64, TN_SHAPE(2 * WINDOW)}, centre = {.dtype = TN_INT64};
    int64_t count = tn_dataset_size(text) - 2 * WINDOW;
    tn_dataset *samples = tn_dataset_of(count, contexts, centre, window_at, (void *)tn_data(tn_dataset_x(text)));
    return tn_loader_new(samples, .batch = BATCH, .shuffle = shuffle, .device = device);
}

static tn_array *vectors(tn_layer *model, const tn_array *words, void *user)
{
    (void)user;
    return tn_forward(tn_layer_child(model, "embed"), words);
}

/* Each word around is to tell the centre from words drawn as often as `counts`, numbers to the power 3/4, says. */
static tn_array *loss_of(tn_layer *model, const tn_batch *batch, void *counts)
{
    tn_array *weights = tn_param_named(model, "W");
    tn_array *e = tn_reshape(tn_forward(model, batch->x), TN_SHAPE(-1, UNITS));
    tn_array *centre = tn_repeat(batch->t, 2 * WINDOW, TN_AXES(0));
    tn_array *drawn = tn_random_choice(tn_dim(weights, 0), TN_SHAPE(tn_dim(e, 0), NEGATIVE), .p = counts,
                                       .device = tn_device_of(e));
    tn_array *loss = tn_negative_sampling(e, centre, weights, drawn);
    tn_report(model, "loss", loss);
    return loss;
}

/* The vectors as text, a word a line; words without a name are called by their number. */
static void save_vectors(tn_layer *model, const tn_words *names, const char *folder)
{
    char path[300];
    snprintf(path, sizeof path, "%s/word2vec.model", folder);
    tn_array *table = tn_to_cpu(tn_param_named(model, "embed.W"));
    const float *vector = tn_data(table);
    FILE *file = vector ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "%d %d", (int)tn_dim(table, 0), UNITS);
    for (int64_t i = 0; i < tn_size(table); i++) {
        if (i % UNITS == 0 && i / UNITS < tn_words_count(names))
            fprintf(file, "\n%s", tn_words_get(names, i / UNITS));
        else if (i % UNITS == 0)
            fprintf(file, "\n%d", (int)(i / UNITS));
        fprintf(file, " %g", vector[i]);
    }
    fputc('\n', file);
    fclose(file);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "ptb", *out = argc > 3 ? argv[3] : "result";
    double epochs = argc > 2 ? atof(argv[2]) : 20;
    tn_device device = tn_device_best();
    tn_dataset *text = tn_dataset_named(name, TN_TRAIN), *test_text = tn_dataset_named(name, TN_TEST);
    tn_words *names = strcmp(name, "ptb") == 0 ? tn_ptb_vocabulary() : tn_words_new();
    int64_t words = tn_dataset_classes(text);
    tn_array *counts = tn_keep(tn_power(tn_bincount(tn_dataset_x(text), NULL, words), 0.75));
    printf("%lld words, data length %lld\n", (long long)words, (long long)tn_dataset_size(text));

    tn_layer *model = tn_layer_new("skip_gram", vectors, NULL, NULL);
    tn_layer_add(model, "embed", tn_embedding(words, UNITS));
    tn_assign(tn_param_named(model, "embed.W"),
              tn_random_uniform(TN_SHAPE(words, UNITS), .low = -1.0 / UNITS, .high = 1.0 / UNITS));
    tn_layer_param(model, "W", tn_zeros(TN_SHAPE(words, UNITS)));
    tn_optimizer *optimizer = tn_adam(model);
    tn_loader *train = windows(text, true, device), *test = windows(test_text, false, device);
    tn_updater *updater = tn_standard_updater(train, optimizer, .device = device, .loss = loss_of, .user = counts);
    tn_trainer *trainer = tn_trainer_new(updater, .stop = TN_EVERY(epochs, TN_EPOCH), .out = out);
    tn_extend(trainer, tn_evaluator(test, model, .loss = loss_of, .user = counts));
    tn_extend(trainer, tn_log_report());
    tn_extend(trainer, tn_print_report("epoch", "main/loss", "validation/main/loss"));
    tn_extend(trainer, tn_progress_bar());
    tn_status status = tn_trainer_run(trainer);
    if (status == TN_OK) TN_SCOPE
        save_vectors(model, names, out);

    tn_trainer_free(trainer);
    tn_loader_free(train);
    tn_loader_free(test);
    tn_optimizer_free(optimizer);
    tn_layer_free(model);
    tn_words_free(names);
    tn_free(counts);
    tn_dataset_free(text);
    tn_dataset_free(test_text);
    return status != TN_OK || !tn_ok();
}
