/* SPDX-License-Identifier: MIT */
/* What the losses of tanso/losses.h share: checked operands, and how a loss over elements is defined. */
#ifndef TN_NN_LOSS_PARTS_H
#define TN_NN_LOSS_PARTS_H

#include <tanso/losses.h>
#include "nn/terms.h"

#define TN__LOSS_MOST 3

/* Operands of a loss: floating, of one shape, in at least float32. */
typedef struct tn__operands {
    tn__node *x[TN__LOSS_MOST];
    tn__node *error; /* NULL: all is right */
    tn_dtype dtype;  /* that they promote to: the loss's */
} tn__operands;

/* Reads and checks `count` operands, named for messages. */
tn__operands tn__operands_of(const char *operation, int count, const tn_array *const *arrays,
                             const char *const *names);

#define TN__OPERANDS_2(operation, a, b) \
    tn__operands_of(operation, 2, (const tn_array *[]){a, b}, (const char *[]){#a, #b})
#define TN__OPERANDS_3(operation, a, b, c) \
    tn__operands_of(operation, 3, (const tn_array *[]){a, b, c}, (const char *[]){#a, #b, #c})

/* What becomes of the losses of operands. */
tn__node *tn__loss(const char *operation, const tn__operands *o, tn__node *loss, const tn_loss_opts *opts);
#define TN__REDUCTION(opts) ((opts) ? (opts)->reduction : TN_REDUCTION_MEAN)

/*
 * A loss over elements is a function over nodes:
 *
 *     TN__LOSS_2(poisson_nll, y, t) { return sub(map(EXP, y), mul(t, y)); }
 *
 * defines tn_poisson_nll_with(y, t, opts), which checks and widens the operands as above, calls that function, and
 * reduces what it gives, the losses of all elements, as options say. It may give an error instead. With a number behind
 * the operands, as tn_huber_loss_with(x, t, delta, opts) has one, it is TN__LOSS_2N or _3N; the function checks it.
 */
#define TN__LOSS_2(name, a, b) \
    static tn__node *name(tn__node *a, tn__node *b); \
    tn_array *tn_##name##_with(const tn_array *a, const tn_array *b, const tn_loss_opts *opts) \
    TN__LOSS_OF(#name, TN__OPERANDS_2(#name, a, b), name(o.x[0], o.x[1])) \
    static tn__node *name(tn__node *a, tn__node *b)
#define TN__LOSS_2N(name, a, b, number) \
    static tn__node *name(tn__node *a, tn__node *b, double number); \
    tn_array *tn_##name##_with(const tn_array *a, const tn_array *b, double number, const tn_loss_opts *opts) \
    TN__LOSS_OF(#name, TN__OPERANDS_2(#name, a, b), name(o.x[0], o.x[1], number)) \
    static tn__node *name(tn__node *a, tn__node *b, double number)
#define TN__LOSS_3(name, a, b, c) \
    static tn__node *name(tn__node *a, tn__node *b, tn__node *c); \
    tn_array *tn_##name##_with(const tn_array *a, const tn_array *b, const tn_array *c, const tn_loss_opts *opts) \
    TN__LOSS_OF(#name, TN__OPERANDS_3(#name, a, b, c), name(o.x[0], o.x[1], o.x[2])) \
    static tn__node *name(tn__node *a, tn__node *b, tn__node *c)
#define TN__LOSS_3N(name, a, b, c, number) \
    static tn__node *name(tn__node *a, tn__node *b, tn__node *c, double number); \
    tn_array *tn_##name##_with(const tn_array *a, const tn_array *b, const tn_array *c, double number, \
                               const tn_loss_opts *opts) \
    TN__LOSS_OF(#name, TN__OPERANDS_3(#name, a, b, c), name(o.x[0], o.x[1], o.x[2], number)) \
    static tn__node *name(tn__node *a, tn__node *b, tn__node *c, double number)
/* The public function's body; `losses` is evaluated where the operands are right only. */
#define TN__LOSS_OF(operation, operands, losses) \
    { \
        tn__call call = tn__enter(); \
        tn__operands o = operands; \
        return tn__leave_array(call, o.error ? o.error : tn__loss(operation, &o, losses, opts)); \
    }

/* Labels (N), integers, of rows; an error node if they are others. */
tn__node *tn__row_labels(const char *operation, const tn_array *t, int64_t rows);
tn__node *tn__fit_rows(const char *operation, tn__node *labels, int64_t rows);

/* How often each of two words or more occurs, as numbers in *values (freed with tn__free, also after a failure). */
tn_status tn__read_counts(const char *operation, const tn_array *counts, double **values, int64_t *words);

/* Losses over nodes, for their layers. */
tn__node *tn__crf_loss(tn__node *cost, tn__node *x, tn__node *labels, tn__node *lengths, tn_reduction reduction);
tn__node *tn__black_out(tn__node *x, tn__node *t, tn__node *w, tn__node *samples, tn_reduction reduction);
tn__node *tn__negative_sampling(tn__node *x, tn__node *t, tn__node *w, tn__node *samples, tn_reduction reduction);
tn__node *tn__hierarchical_softmax(tn__node *x, tn__node *t, tn__node *w, tn__node *paths, tn__node *codes,
                                   tn_reduction reduction);

#endif
