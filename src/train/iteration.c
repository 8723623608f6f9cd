/* SPDX-License-Identifier: MIT */
/* An iteration of the updater that most runs have: the loss of a minibatch, or of several, backward, a step. */
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/engine.h>
#include "nn/layer.h"
#include "optim/optimizer.h"
#include "train/classifier.h"
#include "train/observation.h"
#include "train/parts.h"
#include "train/run.h"

/* ---- the usual loss ---- */

tn_array *tn_usual_loss(tn_layer *model, const tn_batch *batch, void *user)
{
    (void)user;
    if (!model || !batch || !batch->x || !batch->t) {
        tn__fail(TN_ERR_VALUE, "usual_loss", "expected a model and a minibatch, got NULL");
        return tn__failed_array();
    }
    if (tn__is_classifier(model))
        return tn_classifier_loss(model, batch->x, batch->t);
    tn__ports ports = tn__layer_ports(model);
    if (ports.inputs - ports.optional == 2)
        return tn_forward_of(model, 2, (const tn_array *[]){batch->x, batch->t});
    bool classifies = !tn_dtype_is_float(tn_dtype_of(batch->t));
    tn_array *y = tn_forward(model, batch->x);
    tn_array *loss = tn__task_loss(classifies, y, batch->t);
    if (tn_is_error(loss))
        return loss;
    tn_report_with(model, "loss", loss, NULL);
    if (classifies && tn_current_observation())
        tn_report_with(model, "accuracy", tn_accuracy(y, batch->t), NULL);
    return loss;
}

/* ---- an iteration ---- */

static tn_status take_gradients(tn_optimizer *optimizer)
{
    int count = tn_param_count(optimizer->layer), found = 0;
    const tn_array **grads = tn__calloc((size_t)count + 1, sizeof *grads);
    if (!grads)
        return tn__fail_memory("updater", (size_t)count * sizeof *grads);
    for (int i = 0; i < count; i++)
        if (tn_has_grad(tn_param(optimizer->layer, i)))
            grads[found++] = tn_grad(tn_param(optimizer->layer, i));
    tn_status status = tn_eval_all(found, grads);
    tn__free(grads);
    return status;
}

tn_status tn__updater_backward(const tn_updater *updater, const tn_array *loss, double part)
{
    if (!loss)
        return tn__fail(TN_ERR_VALUE, "updater", "the loss function returned NULL; expected an array of one element");
    if (tn_is_error(loss) || tn__latched())
        return tn__or_latched(tn_status_of(loss));
    if (tn_size(loss) != 1)
        return tn__fail(TN_ERR_SHAPE, "updater",
                        "the loss function returned an array of %lld elements; expected one element: take their mean",
                        (long long)tn_size(loss));
    if (part == 1 && updater->accumulate == 1)
        return tn_backward_with(loss, NULL);
    tn_status status = TN_OK;
    TN_SCOPE { /* so that the step computes no such number for its own sake */
        tn_create_opts like = {.dtype = tn_dtype_of(loss), .device = tn_device_of(loss)};
        tn_array *seed = tn_full_with(tn_shape_of(loss), part / updater->accumulate, &like);
        status = tn_backward_with(loss, &(tn_backward_opts){.grad = seed});
    }
    return status;
}

static tn_array *brought(tn_array *x, tn_device device)
{
    return x && !tn_device_equal(tn_device_of(x), device) ? tn_to(x, device) : x;
}

tn_array *tn__loss_on(tn_device device, tn_loss_function loss, tn_layer *model, const tn_batch *batch, void *user)
{
    if (device.kind == TN_DEVICE_DEFAULT)
        return loss(model, batch, user);
    tn_array *fields[TN_MAX_FIELDS] = {NULL};
    tn_batch there = *batch;
    there.x = brought(batch->x, device);
    there.t = brought(batch->t, device);
    there.fields = fields;
    for (int k = 0; k < batch->field_count; k++)
        fields[k] = batch->fields[k] == batch->x   ? there.x
                    : batch->fields[k] == batch->t ? there.t
                                                   : brought(batch->fields[k], device);
    return loss(model, &there, user);
}

tn_status tn__one_minibatch(tn_updater *updater, tn_optimizer *optimizer)
{
    tn_batch batch;
    if (!tn_updater_next(updater, NULL, &batch))
        return tn_error_code();
    tn_array *loss = tn__loss_on(updater->device, updater->loss, optimizer->layer, &batch, updater->user);
    return tn__updater_backward(updater, loss, 1);
}

/* Several minibatches for one step; what they report is the mean. */
static tn_status several_minibatches(tn_updater *updater, tn_optimizer *optimizer)
{
    tn_observation *all = tn_current_observation();
    tn_observation *one __attribute__((cleanup(tn__observation_end))) = tn_observation_new();
    tn_summary *means __attribute__((cleanup(tn__summary_end))) = tn_summary_new_with(NULL);
    tn_status status = tn_error_code();
    for (int i = 0; i < updater->accumulate && status == TN_OK; i++)
        TN_SCOPE {
            tn_observation_clear(one);
            tn_report_scope_push(one);
            status = updater->minibatch(updater, optimizer);
            tn_reporter_pop();
            if (status == TN_OK)
                status = take_gradients(optimizer);
            if (status == TN_OK)
                status = tn__observation_eval(one);
            if (status == TN_OK && all)
                status = tn_summary_add_observation(means, one);
        }
    if (status == TN_OK && all)
        status = tn_summary_observe(means, NULL, all);
    return status;
}

static bool has_gradients(const tn_optimizer *optimizer)
{
    for (int i = 0; i < tn_param_count(optimizer->layer); i++)
        if (tn_has_grad(tn_param(optimizer->layer, i)))
            return true;
    return false;
}

/* Those beside "main" are of parts of the model, or of other layers that the loss is computed by. */
static tn_status step_others(const tn_updater *updater)
{
    tn_status status = TN_OK;
    for (int i = 1; i < updater->optimizer_count && status == TN_OK; i++) {
        tn_optimizer *optimizer = updater->optimizers[i].optimizer;
        status = tn__optimizer_raise(optimizer);
        if (status == TN_OK && has_gradients(optimizer))
            status = tn_step(optimizer);
    }
    return status;
}

tn_status tn__standard_update(tn_updater *updater, void *user)
{
    (void)user;
    tn_optimizer *optimizer = updater->optimizers[0].optimizer;
    tn_status status = tn__optimizer_raise(optimizer);
    if (status != TN_OK)
        return status;
    TN_SCOPE {
        status = updater->accumulate > 1 ? several_minibatches(updater, optimizer)
                                         : updater->minibatch(updater, optimizer);
        if (status == TN_OK)
            status = tn_step(optimizer);
        if (status == TN_OK)
            status = step_others(updater);
    }
    return status;
}
