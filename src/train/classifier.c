/* SPDX-License-Identifier: MIT */
/* The classifier layer. It lies in this room because it reports what it measures. */
#include "train/classifier.h"

#include <tanso/report.h>
#include "core/options.h"
#include "nn/layer.h"

typedef struct measures {
    tn_measure loss, accuracy;
} measures;

static tn_array *predict(tn_layer *layer, const tn_array *x, void *user)
{
    (void)user;
    return tn_forward(layer->children[0].layer, x);
}

bool tn__is_classifier(const tn_layer *layer)
{
    return layer && !layer->is_static && layer->user.forward == predict;
}

tn_layer *tn_classifier_with(tn_layer *predictor, const tn_classifier_opts *opts)
{
    static const tn_classifier_opts none;
    opts = opts ? opts : &none;
    measures *m = tn__alloc(sizeof *m);
    tn_layer *layer = NULL;
    if (m) {
        *m = (measures){opts->loss ? opts->loss : tn_softmax_cross_entropy, opts->accuracy};
        if (!m->accuracy && !tn__option_written(opts->_, "accuracy"))
            m->accuracy = tn_accuracy;
        layer = tn_layer_new("classifier", predict, m, tn__free);
    }
    if (!layer || tn_layer_status(layer) != TN_OK) {
        tn_layer_free(predictor && !predictor->parent ? predictor : NULL);
        return layer ? layer : tn__layer_error((tn__fail_memory("classifier", sizeof *m),
                                                tn__error_retain(tn__error_last())));
    }
    return tn__layer_finish(layer, tn_layer_add(layer, "predictor", predictor));
}

tn_array *tn_classifier_loss(tn_layer *classifier, const tn_array *x, const tn_array *t)
{
    if (!tn__is_classifier(classifier)) {
        tn_status status = classifier ? tn__layer_raise(classifier) : TN_OK;
        if (status == TN_OK)
            tn__fail(TN_ERR_VALUE, "classifier_loss", "expected a layer of tn_classifier and arrays, got %s",
                     classifier ? tn__layer_name(classifier) : "NULL");
        return tn__failed_array();
    }
    const measures *m = classifier->user.data;
    tn_array *y = tn_forward(classifier, x), *loss = m->loss(y, t);
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
