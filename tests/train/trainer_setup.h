/* SPDX-License-Identifier: MIT */
/* What the tests of the trainer share: a small classifier with its data, and an updater that only counts. */
#ifndef TESTS_TRAIN_TRAINER_SETUP_H
#define TESTS_TRAIN_TRAINER_SETUP_H

#include "nn/check.h"
#include "support/fresh_folder.h"

/* A model, its optimizer and loaders for `samples` samples in minibatches of `batch`. */
typedef struct setup {
    tn_layer *model;
    tn_optimizer *optimizer;
    tn_loader *loader, *test_loader;
} setup;

static inline tn_dataset *setup_data(int64_t samples, uint64_t seed)
{
    tn_dataset *made = NULL;
    tn_generator generator = {seed, 0};
    TN_SCOPE {
        tn_array *x = tn_random_uniform(TN_SHAPE(samples, 4), .low = -1, .high = 1, .generator = &generator);
        tn_array *t = tn_random_integers(0, 3, TN_SHAPE(samples), .generator = &generator);
        made = tn_dataset_arrays(x, t);
    }
    return made;
}

static inline setup setup_new(int64_t samples, int64_t batch, const char *model, const char *optimizer)
{
    setup s;
    tn_seed(7);
    s.model = tn_layer_parse(model);
    s.optimizer = tn_optimizer_parse(optimizer, s.model);
    s.loader = tn_loader_new(setup_data(samples, 1), .batch = batch, .shuffle = true, .seed = 3);
    s.test_loader = tn_loader_new(setup_data(samples + 1, 2), .batch = 4);
    return s;
}

/* For runs that never go forward, and are saved. */
static inline void setup_make_params(setup *s)
{
    TN_SCOPE {
        tn_forward(s->model, tn_zeros(TN_SHAPE(1, 4)));
    }
}

static inline void setup_free(setup *s)
{
    tn_loader_free(s->loader);
    tn_loader_free(s->test_loader);
    tn_optimizer_free(s->optimizer);
    tn_layer_free(s->model);
}

static inline tn_trainer *setup_trainer(setup *s, tn_trigger *stop)
{
    return tn_trainer_new(tn_standard_updater(s->loader, s->optimizer), .stop = stop, .out = folder, .quiet = true);
}

/* An iteration that does nothing. */
static inline tn_status idle(tn_updater *updater, void *user)
{
    (void)updater, (void)user;
    return TN_OK;
}

/* One that takes a minibatch and does no more. */
static inline tn_status take_one(tn_updater *updater, void *user)
{
    (void)user;
    tn_batch batch;
    tn_updater_next(updater, NULL, &batch);
    return TN_OK;
}

#endif
