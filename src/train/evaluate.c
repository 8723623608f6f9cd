/* SPDX-License-Identifier: MIT */
/* Measuring a network on a dataset. */
#include <math.h>
#include <tanso/array.h>
#include <tanso/autograd.h>
#include <tanso/device.h>
#include <tanso/engine.h>
#include "core/error.h"
#include "train/run.h"

#define DEFAULT_BATCH 1000

tn_array *tn__task_loss(bool classifies, const tn_array *y, const tn_array *t)
{
    return classifies ? tn_softmax_cross_entropy(y, t) : tn_mean_squared_error(y, t);
}

static void measure(tn_layer *net, tn_loader *loader, bool classifies, tn_meter *loss, tn_meter *accuracy)
{
    for (tn_batch b; tn_loader_next(loader, &b);)
        TN_SCOPE
            TN_NO_GRAD {
                tn_array *y = tn_forward(net, b.x);
                const tn_array *figure[] = {tn__task_loss(classifies, y, b.t), classifies ? tn_accuracy(y, b.t) : NULL};
                if (tn_eval_all(classifies ? 2 : 1, figure) != TN_OK) /* together: one forward serves both */
                    continue;
                tn_meter_add(loss, figure[0], (double)b.size);
                if (classifies)
                    tn_meter_add(accuracy, figure[1], (double)b.size);
            }
}

static tn_status evaluate_loader(tn_layer *net, tn_loader *loader, bool classifies, tn_device device, double *loss,
                              double *accuracy)
{
    tn_meter *mean_loss = tn_meter_new(device), *mean_accuracy = tn_meter_new(device);
    bool training = tn_layer_training(net);
    tn_layer_train(net, false);
    measure(net, loader, classifies, mean_loss, mean_accuracy);
    tn_layer_train(net, training);
    double found = !tn__latched() ? tn_meter_take(mean_loss) : NAN;
    if (loss)
        *loss = found;
    if (accuracy)
        *accuracy = classifies && !tn__latched() ? tn_meter_take(mean_accuracy) : NAN;
    tn_meter_free(mean_loss);
    tn_meter_free(mean_accuracy);
    return tn_error_code();
}

tn_status tn_evaluate(tn_layer *net, tn_dataset *dataset, int64_t batch, tn_device device, double *loss,
                      double *accuracy)
{
    TN__NO_PLACE();
    if (loss)
        *loss = NAN;
    if (accuracy)
        *accuracy = NAN;
    if (!net || !dataset)
        return tn__fail(TN_ERR_VALUE, "evaluate", "expected a layer and a dataset, got NULL");
    if (tn__latched())
        return tn_error_code();
    tn_loader_opts opts = {.batch = batch ? batch : DEFAULT_BATCH, .keep_dataset = true, .device = device};
    tn_loader *loader = tn_loader_new_with(dataset, &opts);
    tn_status status = tn_loader_status(loader);
    if (status == TN_OK && tn_dataset_size(dataset) == 0)
        status = tn__fail(TN_ERR_VALUE, "evaluate", "the dataset holds no samples: there is no mean over them");
    if (status == TN_OK)
        status = evaluate_loader(net, loader, !tn_dtype_is_float(tn_dtype_of(tn_dataset_t(dataset))), device, loss,
                                     accuracy);
    tn_loader_free(loader);
    return status;
}
