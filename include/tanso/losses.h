/* SPDX-License-Identifier: MIT */
/*
 * Losses beyond those of nn.h (cross entropies, mean squared error): distances, margins, likelihoods, divergences,
 * sampled and structured losses, under PyTorch's and Chainer's names.
 *
 * Operands are floating unless they are labels, and of one shape: nothing is broadcast. Losses are computed in at least
 * float32 and given in the dtype that the operands promote to. Every loss has the option .reduction: the mean
 * (default), the sum, or the losses themselves; of what the mean is taken each function says. (Several of Chainer's
 * functions sum by default: .reduction = TN_REDUCTION_SUM.)
 */
#ifndef TANSO_LOSSES_H
#define TANSO_LOSSES_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- distances of predictions from targets: means over all elements ---- */

/* |a - b| and (a - b)² of each element (Chainer's; squared_difference is another name of the second). */
TN_API tn_array *tn_absolute_error(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_squared_error(const tn_array *a, const tn_array *b);
/* |a - b| (PyTorch's l1_loss). */
TN_API tn_array *tn_mean_absolute_error_with(const tn_array *a, const tn_array *b, const tn_loss_opts *opts);
/* d = x - t: d² / 2 where |d| <= delta, else delta (|d| - delta / 2) (Huber 1964); delta > 0. */
TN_API tn_array *tn_huber_loss_with(const tn_array *x, const tn_array *t, double delta, const tn_loss_opts *opts);
/* That divided by its delta, beta: PyTorch's; beta > 0. */
TN_API tn_array *tn_smooth_l1_loss_with(const tn_array *x, const tn_array *t, double beta, const tn_loss_opts *opts);

/* ---- likelihoods and divergences: means over all elements ---- */

/* -log of the normal density at x: (log 2 pi + ln_var + (x - mean)² exp(-ln_var)) / 2. PyTorch's gaussian_nll_loss
 * leaves out log 2 pi unless it is .full, and takes the variance: ln_var is its logarithm. */
TN_API tn_array *tn_gaussian_nll_with(const tn_array *x, const tn_array *mean, const tn_array *ln_var,
                                      const tn_loss_opts *opts);
/* -log of the chance of x in [0, 1], where y is the logit of 1: softplus(y) - x y. */
TN_API tn_array *tn_bernoulli_nll_with(const tn_array *x, const tn_array *y, const tn_loss_opts *opts);
/* -log of a Poisson chance of t, less what does not depend on the mean exp(y): exp(y) - t y. */
TN_API tn_array *tn_poisson_nll_with(const tn_array *y, const tn_array *t, const tn_loss_opts *opts);
/* KL divergence of the normal distributions from the standard one: (mean² + exp(ln_var) - ln_var - 1) / 2 (Kingma and
 * Welling 2013). */
TN_API tn_array *tn_gaussian_kl_divergence_with(const tn_array *mean, const tn_array *ln_var, const tn_loss_opts *opts);

typedef struct tn_kl_opts {
    const char *_;
    bool log_target;        /* p, too, is a logarithm */
    bool batch_mean;        /* divide the sum by the extent of axis 0, as the mathematics has it; .reduction is not
                               read then */
    tn_reduction reduction; /* default: the mean over all elements */
} tn_kl_opts;
/* p (log p - log q), 0 where p is 0, of log_q and p: PyTorch's kl_div. */
TN_API tn_array *tn_kl_divergence_with(const tn_array *log_q, const tn_array *p, const tn_kl_opts *opts);

/* ---- labels: means over the rows ---- */

/* -logp[t]: of logarithms of chances what tn_softmax_cross_entropy_with is of scores, with the same options. */
TN_API tn_array *tn_nll_loss_with(const tn_array *logp, const tn_array *t, const tn_cross_entropy_opts *opts);

typedef struct tn_hinge_opts {
    const char *_;
    bool squared;           /* the squares of the hinges (Chainer's norm='L2') */
    tn_reduction reduction; /* the mean is the sum divided by the rows; NONE: (N, classes) */
} tn_hinge_opts;
/* Sum over the classes of max(0, 1 + s x), s being -1 at the label t, else 1; x (N, classes), t (N) integers. */
TN_API tn_array *tn_hinge_loss_with(const tn_array *x, const tn_array *t, const tn_hinge_opts *opts);

typedef struct tn_multi_margin_opts {
    const char *_;
    double margin;          /* default 1 */
    int p;                  /* 1 (default) or 2 */
    tn_reduction reduction; /* NONE: (N) */
} tn_multi_margin_opts;
/* max(0, margin - x[t] + x[i])^p over the other classes i, summed and divided by the number of classes: PyTorch's
 * multi_margin_loss (Crammer and Singer 2001). */
TN_API tn_array *tn_multi_margin_loss_with(const tn_array *x, const tn_array *t, const tn_multi_margin_opts *opts);
/* log(1 + exp(-y x)) of y that are -1 or 1: means over all elements. */
TN_API tn_array *tn_soft_margin_loss_with(const tn_array *x, const tn_array *y, const tn_loss_opts *opts);
/* x where y is 1, max(0, margin - x) where it is -1; means over all elements. */
TN_API tn_array *tn_hinge_embedding_loss_with(const tn_array *x, const tn_array *y, double margin,
                                              const tn_loss_opts *opts);
/* max(0, margin - y (a - b)), y 1 where a is to be the larger, else -1; means over all elements. */
TN_API tn_array *tn_margin_ranking_loss_with(const tn_array *a, const tn_array *b, const tn_array *y, double margin,
                                             const tn_loss_opts *opts);

/* ---- pairs and triples of vectors (N, features): means over the rows; NONE: (N) ---- */

/* (y d² + (1 - y) max(0, margin - d)²) / 2, d the distance of a's row from b's, y (N) 1 for like pairs, else 0
 * (Hadsell, Chopra, LeCun 2006). The slope of the second term at d = 0 is 0. */
TN_API tn_array *tn_contrastive_loss_with(const tn_array *a, const tn_array *b, const tn_array *y, double margin,
                                          const tn_loss_opts *opts);
/* 1 - cos of the angle between the rows where y (N) is 1, max(0, cos - margin) where it is -1. */
TN_API tn_array *tn_cosine_embedding_loss_with(const tn_array *a, const tn_array *b, const tn_array *y, double margin,
                                               const tn_loss_opts *opts);
typedef struct tn_triplet_opts {
    const char *_;
    double margin;          /* default 1 (PyTorch's; Chainer's is 0.2) */
    double p;               /* distances are norms of this order >= 1, default 2, of the difference plus .eps; with
                               .p = 0 they are squared Euclidean distances: Chainer's */
    double eps;             /* default 1e-6; of squared distances 0 */
    bool swap;              /* the negative one's distance is the smaller of those from anchor and positive */
    tn_reduction reduction;
} tn_triplet_opts;
/* max(0, d(anchor, positive) - d(anchor, negative) + margin) (Schroff, Kalenichenko, Philbin 2015). */
TN_API tn_array *tn_triplet_loss_with(const tn_array *anchor, const tn_array *positive, const tn_array *negative,
                                      const tn_triplet_opts *opts);

/* Sum of products over the product of norms, of which each is at least eps (0 stands for 1e-8), along an axis, which is
 * dropped. */
TN_API tn_array *tn_cosine_similarity(const tn_array *a, const tn_array *b, int axis, double eps);
/* The norm of order p >= 1 of a - b + eps along the last axis, which is dropped (PyTorch: p 2, eps 1e-6). */
TN_API tn_array *tn_pairwise_distance(const tn_array *a, const tn_array *b, double p, double eps);

/* ---- covariances ---- */

/* Half the sum of squares of the covariances between the columns of y and of z, (N, features) each (Cheung et al.
 * 2014); of those between different columns of h (Cogswell et al. 2015). */
TN_API tn_array *tn_cross_covariance(const tn_array *y, const tn_array *z);
TN_API tn_array *tn_decov(const tn_array *h);

/* ---- sampled softmax: means over the rows ---- */

/* softplus(-x w[t]) + sum over the samples s of softplus(x w[s]) (Mikolov et al. 2013): x (N, features), t (N), w
 * (words, features), samples (N, k) such as tn_random_choice(words, TN_SHAPE(N, k), .p = counts^0.75). Rows whose label
 * is -1 count for nothing: their loss is 0 (the mean still divides by N, as Chainer's). */
TN_API tn_array *tn_negative_sampling_with(const tn_array *x, const tn_array *t, const tn_array *w,
                                           const tn_array *samples, const tn_loss_opts *opts);
/* -log p[t] - sum over s of log(1 - p[s]), p the softmax over t and the samples alone (Ji et al. 2016). */
TN_API tn_array *tn_black_out_with(const tn_array *x, const tn_array *t, const tn_array *w, const tn_array *samples,
                                   const tn_loss_opts *opts);

/* The layer: inputs x (N, in) and t (N), output the mean loss, each row with `samples` words of its own, drawn by
 * their counts (words) to the power (Chainer's default is 0.75). Parameter "W" (words, in), zeros at first; what is
 * drawn by lies in the persistent values "chance" and "other" (Walker 1977). */
TN_API tn_layer *tn_negative_sampling_layer(int64_t in, const tn_array *counts, int64_t samples, double power);
/* The same of tn_black_out, by the counts themselves: Chainer's BlackOut. */
TN_API tn_layer *tn_black_out_layer(int64_t in, const tn_array *counts, int64_t samples);

/* Huffman's tree of words by their counts (words), two or more: *paths (words, depth), int64, the inner nodes on the
 * way from the root to each word, numbers from 0 to words - 2, and *codes (words, depth), float32, 1 where the way goes
 * left, -1 where it goes right, 0 behind its end. */
TN_API tn_status tn_huffman_tree(const tn_array *counts, tn_array **paths, tn_array **codes);
/* Sum over a label's path of softplus(-code x w[node]): -log of its chance, a product of one choice a node (Morin and
 * Bengio 2005). x (N, features), t (N), w (nodes, features), any binary tree as above. Means over the rows (Chainer's
 * sums). */
TN_API tn_array *tn_hierarchical_softmax_with(const tn_array *x, const tn_array *t, const tn_array *w,
                                              const tn_array *paths, const tn_array *codes, const tn_loss_opts *opts);
/* The layer: inputs x (N, in) and t (N), output the mean loss by Huffman's tree. Parameter "W" (words - 1, in), uniform
 * in [-1, 1) at first as Chainer's; the tree lies in the persistent values "paths" and "codes". */
TN_API tn_layer *tn_hierarchical_softmax_layer(int64_t in, const tn_array *counts);

/* ---- sequences ---- */

typedef struct tn_ctc_opts {
    const char *_;
    int64_t blank;                 /* the class of no label; default 0 */
    const tn_array *input_lengths; /* (N) integers: how many steps of each sequence count; default: all */
    const tn_array *label_lengths; /* (N) integers: how many labels; default: all */
    bool log_probabilities;        /* x holds logarithms of chances (PyTorch's), no softmax is taken (Chainer's) */
    bool by_label;                 /* the mean is of losses divided by their numbers of labels (PyTorch's), not of the
                                      losses (Chainer's) */
    bool zero_infinity;            /* 0 instead of infinite losses, where the labels don't fit the steps */
    tn_reduction reduction;        /* NONE: (N) */
} tn_ctc_opts;
/* Connectionist temporal classification (Graves et al. 2006): -log of the chance that the steps' classes, less
 * repetitions and blanks, are the labels. x (steps, N, classes), labels (N, most labels) integers, none of them the
 * blank within its length. One step or more. Where no path exists the loss is infinite and its gradient 0. */
TN_API tn_array *tn_ctc_loss_with(const tn_array *x, const tn_array *labels, const tn_ctc_opts *opts);

typedef struct tn_crf_opts {
    const char *_;
    const tn_array *lengths; /* (N) integers >= 1: how many steps of each sequence count; default: all */
    tn_reduction reduction;  /* NONE: (N) */
} tn_crf_opts;
/* Conditional random field of a chain (Lafferty et al. 2001): -log of the chance of the labels t (steps, N) among all,
 * whose scores are the sums of x (steps, N, classes) at the labels and of cost (classes, classes) from each label to
 * the next. */
TN_API tn_array *tn_crf_loss_with(const tn_array *cost, const tn_array *x, const tn_array *t, const tn_crf_opts *opts);
/* The layer: inputs x (steps, N, classes), t (steps, N) and, which may be left out, lengths (N); output the mean loss.
 * Parameter "cost" (classes, classes), zeros at first, as Chainer's CRF1d has it; the best labels are
 * tn_crf_decode(tn_param_named(layer, "cost"), x, lengths, NULL). */
TN_API tn_layer *tn_crf_layer(int64_t classes);
/* The labels (steps, N), int64, of the largest score (Viterbi's algorithm); 0 beyond a sequence's length. The scores
 * go to *score (N) unless that is NULL. */
TN_API tn_array *tn_crf_decode(const tn_array *cost, const tn_array *x, const tn_array *lengths, tn_array **score);

#ifndef TN_NO_MACROS
#define tn_mean_absolute_error(...) TN__CALL_VV(tn_mean_absolute_error_with, tn_loss_opts, __VA_ARGS__, )
#define tn_huber_loss(...) TN__CALL_VVV(tn_huber_loss_with, tn_loss_opts, __VA_ARGS__, )
#define tn_smooth_l1_loss(...) TN__CALL_VVV(tn_smooth_l1_loss_with, tn_loss_opts, __VA_ARGS__, )
#define tn_gaussian_nll(...) TN__CALL_VVV(tn_gaussian_nll_with, tn_loss_opts, __VA_ARGS__, )
#define tn_bernoulli_nll(...) TN__CALL_VV(tn_bernoulli_nll_with, tn_loss_opts, __VA_ARGS__, )
#define tn_poisson_nll(...) TN__CALL_VV(tn_poisson_nll_with, tn_loss_opts, __VA_ARGS__, )
#define tn_gaussian_kl_divergence(...) TN__CALL_VV(tn_gaussian_kl_divergence_with, tn_loss_opts, __VA_ARGS__, )
#define tn_kl_divergence(...) TN__CALL_VV(tn_kl_divergence_with, tn_kl_opts, __VA_ARGS__, )
#define tn_nll_loss(...) TN__CALL_VV(tn_nll_loss_with, tn_cross_entropy_opts, __VA_ARGS__, )
#define tn_hinge_loss(...) TN__CALL_VV(tn_hinge_loss_with, tn_hinge_opts, __VA_ARGS__, )
#define tn_absolute_error(...) TN_HERE(tn_absolute_error(__VA_ARGS__))
#define tn_squared_error(...) TN_HERE(tn_squared_error(__VA_ARGS__))
#define tn_multi_margin_loss(...) TN__CALL_VV(tn_multi_margin_loss_with, tn_multi_margin_opts, __VA_ARGS__, )
#define tn_soft_margin_loss(...) TN__CALL_VV(tn_soft_margin_loss_with, tn_loss_opts, __VA_ARGS__, )
#define tn_hinge_embedding_loss(...) TN__CALL_VVV(tn_hinge_embedding_loss_with, tn_loss_opts, __VA_ARGS__, )
#define tn_margin_ranking_loss(...) TN__CALL_VVVV(tn_margin_ranking_loss_with, tn_loss_opts, __VA_ARGS__, )
#define tn_contrastive_loss(...) TN__CALL_VVVV(tn_contrastive_loss_with, tn_loss_opts, __VA_ARGS__, )
#define tn_cosine_embedding_loss(...) TN__CALL_VVVV(tn_cosine_embedding_loss_with, tn_loss_opts, __VA_ARGS__, )
#define tn_triplet_loss(...) TN__CALL_VVV(tn_triplet_loss_with, tn_triplet_opts, __VA_ARGS__, )
#define tn_negative_sampling(...) TN__CALL_VVVV(tn_negative_sampling_with, tn_loss_opts, __VA_ARGS__, )
#define tn_black_out(...) TN__CALL_VVVV(tn_black_out_with, tn_loss_opts, __VA_ARGS__, )
#define tn_black_out_layer(...) TN_HERE(tn_black_out_layer(__VA_ARGS__))
#define tn_negative_sampling_layer(...) TN_HERE(tn_negative_sampling_layer(__VA_ARGS__))
#define tn_huffman_tree(...) TN_HERE(tn_huffman_tree(__VA_ARGS__))
#define tn_hierarchical_softmax(...) TN__CALL_VVVVV(tn_hierarchical_softmax_with, tn_loss_opts, __VA_ARGS__, )
#define tn_hierarchical_softmax_layer(...) TN_HERE(tn_hierarchical_softmax_layer(__VA_ARGS__))
#define tn_ctc_loss(...) TN__CALL_VV(tn_ctc_loss_with, tn_ctc_opts, __VA_ARGS__, )
#define tn_crf_loss(...) TN__CALL_VVV(tn_crf_loss_with, tn_crf_opts, __VA_ARGS__, )
#define tn_cosine_similarity(...) TN_HERE(tn_cosine_similarity(__VA_ARGS__))
#define tn_pairwise_distance(...) TN_HERE(tn_pairwise_distance(__VA_ARGS__))
#define tn_cross_covariance(...) TN_HERE(tn_cross_covariance(__VA_ARGS__))
#define tn_decov(...) TN_HERE(tn_decov(__VA_ARGS__))
#define tn_crf_layer(...) TN_HERE(tn_crf_layer(__VA_ARGS__))
#define tn_crf_decode(...) TN_HERE(tn_crf_decode(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
