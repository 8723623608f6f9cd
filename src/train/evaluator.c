/* SPDX-License-Identifier: MIT */
/* The evaluator: means of what a model reports over one epoch of a loader. */
#include <string.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include "nn/layer.h"
#include "train/meter.h"
#include "train/observation.h"
#include "train/parts.h"

typedef struct evaluator {
    tn_extension *self;
    tn_loader *loader;
    tn_layer *model;
    tn_device device;
    tn_loss_function loss;
    void *user;
    char *name;
    tn_status (*hook)(void *user);
    tn_comm *comm; /* NULL: of this rank alone */
} evaluator;

/* ---- modes ---- */

static size_t count_layers(const tn_layer *layer)
{
    size_t count = 1;
    for (size_t i = 0; i < layer->child_count; i++)
        count += count_layers(layer->children[i].layer);
    return count;
}

/* Each layer's mode, in order; gives where the next one's goes. */
static bool *note_modes(const tn_layer *layer, bool *evaluating)
{
    *evaluating++ = layer->evaluating;
    for (size_t i = 0; i < layer->child_count; i++)
        evaluating = note_modes(layer->children[i].layer, evaluating);
    return evaluating;
}

static const bool *restore_modes(tn_layer *layer, const bool *evaluating)
{
    layer->evaluating = *evaluating++;
    for (size_t i = 0; i < layer->child_count; i++)
        evaluating = restore_modes(layer->children[i].layer, evaluating);
    return evaluating;
}

/* ---- an evaluation ---- */

static tn_status add_weighted(tn_summary *means, const tn_observation *seen, int64_t samples)
{
    tn_status status = TN_OK;
    tn__observed one;
    for (int i = 0; status == TN_OK && tn__observation_at(seen, i, &one); i++) {
        double weight = one.weight != 0 ? one.weight : (double)samples;
        status = one.array ? tn_summary_add(means, one.key, one.array, weight)
                           : tn_summary_add_number(means, one.key, one.number, weight);
    }
    return status;
}

static tn_status measure(evaluator *e, tn_reporter *reporter, tn_observation *seen, tn_summary *means)
{
    tn_status status = TN_OK;
    for (tn_batch batch; status == TN_OK && tn_loader_next(e->loader, &batch);)
        TN_SCOPE
            TN_NO_GRAD {
                tn_observation_clear(seen);
                tn_reporter_push(reporter, seen);
                tn_array *loss = tn__loss_on(e->device, e->loss, e->model, &batch, e->user);
                tn_reporter_pop();
                status = loss && tn_is_error(loss) ? tn_status_of(loss) : tn_error_code();
                if (status == TN_OK)
                    status = tn__observation_eval(seen);
                if (status == TN_OK)
                    status = add_weighted(means, seen, batch.size);
            }
    return tn__or_latched(status);
}

typedef struct noted {
    tn_layer *model;
    bool *modes;
} noted;

static void restore(noted *before)
{
    if (before->modes)
        restore_modes(before->model, before->modes);
    tn__free(before->modes);
}

/* In evaluation mode, every layer of which has its own mode again afterwards. */
static tn_status evaluate(evaluator *e, tn_reporter *reporter, tn_observation *seen, tn_summary *means)
{
    tn_status status = tn__layer_raise(e->model);
    if (status != TN_OK)
        return status;
    noted before __attribute__((cleanup(restore))) = {e->model, tn__alloc(count_layers(e->model) * sizeof(bool))};
    if (!before.modes)
        return tn__fail_memory("evaluator", count_layers(e->model));
    note_modes(e->model, before.modes);
    tn_layer_train(e->model, false);
    status = e->hook ? tn__or_latched(e->hook(e->user)) : TN_OK;
    if (status == TN_OK && e->device.kind != TN_DEVICE_DEFAULT)
        status = tn_layer_to(e->model, e->device);
    if (status == TN_OK)
        status = tn_loader_set_epoch(e->loader, 0); /* the same order each time */
    int depth = tn__report_depth();
    if (status == TN_OK)
        status = measure(e, reporter, seen, means);
    tn__report_back_to(depth);
    return status;
}

/* An evaluation goes through its loader from the beginning, and training would go on where that ends. */
static tn_status evaluator_initialize(tn_trainer *trainer, void *user)
{
    const evaluator *e = user;
    const tn_updater *updater = tn_trainer_updater(trainer);
    for (int i = 0; updater && i < updater->loader_count; i++)
        if (updater->loaders[i].loader == e->loader)
            return tn__fail(TN_ERR_VALUE, "evaluator",
                            "its loader is the updater's \"%s\", whose place each evaluation would change: make "
                            "another loader of the same dataset",
                            updater->loaders[i].name);
    return TN_OK;
}

static tn_status evaluator_call(tn_trainer *trainer, void *user)
{
    (void)trainer;
    evaluator *e = user;
    tn_reporter *reporter __attribute__((cleanup(tn__reporter_end))) = tn_reporter_new();
    tn_observation *seen __attribute__((cleanup(tn__observation_end))) = tn_observation_new();
    tn_observation *result = tn_current_observation();
    tn_summary *means __attribute__((cleanup(tn__summary_end))) = tn_summary_new_with(NULL);
    TN__FREED char *name = tn__format("%s/%s", tn_extension_name(e->self), e->name);
    tn_status status = name ? tn_reporter_add(reporter, name, e->model) : tn__fail_memory("evaluator", 64);
    if (status == TN_OK)
        status = evaluate(e, reporter, seen, means);
    if (status == TN_OK && e->comm)
        status = tn__summary_share(means, e->comm);
    if (status == TN_OK && result)
        status = tn_summary_observe(means, NULL, result);
    return tn__or_latched(status);
}

static void evaluator_free(void *user)
{
    evaluator *e = user;
    tn__free(e->name);
    tn__free(e);
}

static tn_trigger *each_epoch(void) { return tn_every(1, TN_EPOCH); }

static const tn_extension_kind evaluator_kind = {.name = "validation",
                                                 .priority = TN_PRIORITY_WRITER,
                                                 .trigger = each_epoch,
                                                 .initialize = evaluator_initialize,
                                                 .call = evaluator_call,
                                                 .free = evaluator_free};

static tn_status check_evaluator(const tn_loader *loader, const tn_layer *model, const char *name)
{
    if (!loader || !model)
        return tn__fail(TN_ERR_VALUE, "evaluator", "expected a loader and a model, got NULL");
    tn_status status = tn__layer_raise(model);
    if (status == TN_OK && tn_loader_status(loader) != TN_OK)
        status = tn_loader_set_epoch((tn_loader *)loader, 0); /* which gives its error */
    if (status == TN_OK && tn_loader_length(loader) == 0)
        status = tn__fail(TN_ERR_VALUE, "evaluator", "the loader has no minibatches: there are no means over none");
    if (status == TN_OK && tn_loader_repeats(loader))
        status = tn__fail(TN_ERR_VALUE, "evaluator", "the loader repeats, and an evaluation is over one epoch: make "
                          "one without .repeat");
    if (status == TN_OK && !*name)
        status = tn__fail(TN_ERR_NAME, "evaluator", "expected a name for the model, got \"\"");
    return status;
}

tn_extension *tn_evaluator_with(tn_loader *loader, tn_layer *model, const tn_evaluator_opts *opts)
{
    static const tn_evaluator_opts defaults;
    opts = opts ? opts : &defaults;
    const char *name = opts->name ? opts->name : "main";
    if (check_evaluator(loader, model, name) != TN_OK)
        return tn__extension_error();
    evaluator *e = tn__calloc(1, sizeof *e);
    if (e)
        *e = (evaluator){.loader = loader, .model = model, .device = opts->device, .user = opts->user,
                         .hook = opts->hook, .comm = opts->comm, .loss = opts->loss ? opts->loss : tn_usual_loss,
                         .name = tn__strdup(name)};
    if (!e || !e->name) {
        tn__free(e);
        tn__fail_memory("evaluator", sizeof *e);
        return tn__extension_error();
    }
    tn_extension *extension = tn_extension_new(&evaluator_kind, e);
    if (tn_extension_status(extension) == TN_OK)
        e->self = extension;
    return extension;
}
