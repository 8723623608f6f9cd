/* SPDX-License-Identifier: MIT */
/* Recurrent steps over borrowed nodes, for their public functions and for the layers. */
#ifndef TN_NN_RNN_H
#define TN_NN_RNN_H

#include <tanso/recurrent.h>
#include "nn/layer.h"
#include "nn/terms.h"

/* What a step is computed of: the sums gx = x W + b of all gates, (N, gates × units), the last state, and weights. */
typedef struct tn__rnn_step {
    tn__node *gx, *h, *c; /* c: lstm */
    tn__node *u, *b;      /* (units, gates × units); what is added to h U where that is no part of gx, or NULL */
    tn__node *peepholes;  /* (3, units), or NULL */
    int64_t units;
} tn__rnn_step;

/* The next h, and, of lstm, into *c the next cell. */
typedef tn__node *(*tn__rnn_function)(const tn__rnn_step *s, tn__node **c);

typedef struct tn__rnn_row {
    const char *name;
    int gates;
    bool cell;     /* it has a state c */
    bool apart;    /* b of h is no part of gx */
    tn__rnn_function step;
    int whole;     /* its tn__recurrence_kind, or -1: it has none, and is always recorded step by step */
} tn__rnn_row;

/* By tn_rnn_kind. */
extern const tn__rnn_row tn__rnn_rows[TN_RNN_KIND_COUNT];

/* Places among the slots of a layer and direction: x's weights, h's, both biases, peepholes. */
enum { TN__RNN_W, TN__RNN_U, TN__RNN_B, TN__RNN_C, TN__RNN_P, TN__RNN_SLOTS };

typedef struct tn__rnn {
    tn_rnn_kind kind;
    int layers, directions;
    int64_t units;
    double dropout, zoneout, forget_bias;
    bool bias, peepholes, stateful, one_step;
    int place[TN__RNN_SLOTS], per; /* of a layer and direction's slots among their `per`; -1: none */
    tn_array *h, *c;       /* the state, owned; NULL: zeros */
} tn__rnn;

/* Its forward. */
void tn__rnn_flow(tn_layer *layer, const tn__flow *flow);
/* Adds forget_bias to that gate's part of the biases, which are zeros still. */
tn_status tn__rnn_set_forget_bias(const tn_layer *layer);

/* What a file of Chainer's has for a slot, whose names begin with `before`, in our order; NULL: nothing. */
tn_array *tn__rnn_from_chainer(const tn_layer *layer, const tn__slot *slot, const tn_archive *archive,
                               const char *before);

tn__node *tn__zoneout(tn__node *h, tn__node *next, double ratio, bool training, tn_generator *generator);

#endif
