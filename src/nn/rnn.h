/* SPDX-License-Identifier: MIT */
/* Recurrent steps over borrowed nodes, for their public functions and for the layers. */
#ifndef TN_NN_RNN_H
#define TN_NN_RNN_H

#include <tanso/recurrent.h>
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
} tn__rnn_row;

/* By tn_rnn_kind. */
extern const tn__rnn_row tn__rnn_rows[TN_RNN_KIND_COUNT];

tn__node *tn__zoneout(tn__node *h, tn__node *next, double ratio, bool training, tn_generator *generator);

#endif
