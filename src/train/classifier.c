/* SPDX-License-Identifier: MIT */
/* The classifier layer. It lies in this room because it reports what it measures. */
#include "train/classifier.h"

#include <tanso/report.h>
#include "array/guard.h"
#include "core/options.h"
#include "nn/layer.h"

typedef struct measures {
    tn_measure loss, accuracy;
} measures;

/* The loss of predictions y, reported with what else is measured. */
static tn_array *loss_of(tn_layer *classifier, const tn_array *y, const tn_array *t)
{
    const measures *m = classifier->user.data;
    tn_array *loss = m->loss(y, t);
    if (!loss)
        return tn__fail(TN_ERR_VALUE, "classifier_loss", "the loss function gave NULL; expected an array"),
               tn__failed_array();
    if (tn_is_error(loss))
        return loss;
    tn_report_with(classifier, "loss", loss, NULL);
    if (m->accuracy && tn_current_observation()) {
        tn__no_grad_depth++;
        tn_array *accuracy = m->accuracy(y, t);
        tn__no_grad_depth--;
        tn_report_with(classifier, "accuracy", accuracy, NULL);
    }
    return loss;
}

/* Of x its prediction; of x and t its loss. */
static tn_status classify(tn_layer *layer, const tn_flow *flow, void *user)
{
    (void)user;
    tn_array *y = tn_forward(layer->children[0].layer, flow->in[0]);
    flow->out[0] = flow->in[1] ? loss_of(layer, y, flow->in[1]) : y;
    return TN_OK;
}

bool tn__is_classifier(const tn_layer *layer)
{
    return layer && !layer->is_static && layer->user.flow == classify;
}

tn_layer *tn_classifier_with(tn_layer *predictor, const tn_classifier_opts *opts)
{
    static const tn_classifier_opts none;
    opts = opts ? opts : &none;
    measures m = {opts->loss ? opts->loss : tn_softmax_cross_entropy, opts->accuracy};
    if (!m.accuracy && !tn__option_written(opts->_, "accuracy"))
        m.accuracy = tn_accuracy;
    const tn_layer_opts own = {.size = sizeof m, .inputs = 2, .optional = 1};
    tn_layer *layer = tn_flow_layer_with("classifier", classify, &m, NULL, &own);
    if (tn_layer_status(layer) != TN_OK) {
        tn__layer_discard(predictor);
        return layer;
    }
    return tn__layer_finish(layer, tn_layer_add(layer, "predictor", predictor));
}

tn_array *tn_classifier_loss(tn_layer *classifier, const tn_array *x, const tn_array *t)
{
    TN__GUARD("classifier_loss");
    if (tn__is_classifier(classifier))
        return loss_of(classifier, tn_forward(classifier, x), t);
    tn_status status = classifier ? tn__layer_raise(classifier) : TN_OK;
    if (status == TN_OK)
        tn__fail(TN_ERR_VALUE, "classifier_loss", "expected a layer of tn_classifier and arrays, got %s",
                 classifier ? tn__layer_name(classifier) : "NULL");
    return tn__failed_array();
}
