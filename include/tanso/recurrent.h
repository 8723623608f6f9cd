/* SPDX-License-Identifier: MIT */
/*
 * Recurrent networks: cells (functions of one step), layers that keep their state between calls, and stacks of layers
 * over whole sequences of equal or different lengths, in one or both directions.
 *
 * Sequences are (steps, N, features), time first. Weights are (in, gates x units), gate after gate, as W of tn_linear
 * is (in, out); PyTorch's and Chainer's are the same numbers transposed. The order of the gates is PyTorch's:
 *
 *     lstm: input, forget, candidate, output     gru: reset, update, candidate     rnn: the one
 *
 * Weights of other orders are brought into this one when they are loaded from Chainer's files.
 */
#ifndef TANSO_RECURRENT_H
#define TANSO_RECURRENT_H

#include <tanso/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one step, of gates' sums that the caller has computed ---- */

/* Of gates (N, 4 units) = x Wx + h Wh + b and the cell's state c (N, units), the next state f c + i g into *c_next, and
 * h = o tanh(c_next), returned; i, f, o are the sigmoids of their gates, g the tanh of its (Hochreiter and Schmidhuber
 * 1997; Gers et al. 2000). */
TN_API tn_array *tn_lstm_step(const tn_array *gates, const tn_array *c, tn_array **c_next);
/* The same with peepholes (3, units): c weighs into the input's and the forget gate, c_next into the output's (Gers
 * and Schmidhuber 2000). */
TN_API tn_array *tn_lstm_peephole_step(const tn_array *gates, const tn_array *c, const tn_array *peepholes,
                                       tn_array **c_next);
/* Of gx = x Wx + bx and gh = h Wh + bh, (N, 3 units) each, h' = (1 - z) n + z h, where n = tanh(gx_n + r gh_n), r and z
 * the sigmoids of sums (Cho et al. 2014, as in cuDNN, PyTorch and Chainer's NStepGRU). */
TN_API tn_array *tn_gru_step(const tn_array *gx, const tn_array *gh, const tn_array *h);
/* Long short-term memory along a tree (Tai, Socher, Manning 2015): of gates (N, (3 + children) units), candidate,
 * input, output and a forget gate for each child, and the children's cells c (N, children, units): the node's h (N,
 * units), its cell into *c_next. Children that are not there are zeros. Chainer's tree_lstm. */
TN_API tn_array *tn_tree_lstm_step(const tn_array *gates, const tn_array *c, tn_array **c_next);
/* The same of two sides, each with gates (N, 4 units) as tn_lstm_step has them and a cell (N, units): the cell is the
 * sum of both sides', behind forget and input gates of their own, and the output gate is that of the sum. Chainer's
 * slstm (Zhu, Sobhani, Guo 2015). */
TN_API tn_array *tn_slstm_step(const tn_array *gates, const tn_array *c, const tn_array *other_gates,
                               const tn_array *other_c, tn_array **c_next);
/* h elements kept with probability `ratio` each, others next: zoneout (Krueger et al. 2016); in evaluation the mix
 * ratio h + (1 - ratio) next. generator NULL: the thread's. */
TN_API tn_array *tn_zoneout(const tn_array *h, const tn_array *next, double ratio, bool training,
                            tn_generator *generator);

/* ---- layers ---- */

typedef enum tn_rnn_kind {
    TN_RNN_TANH,
    TN_RNN_RELU,
    TN_RNN_LSTM,
    TN_RNN_GRU,
    TN_RNN_MGU,        /* f = sigmoid(gate 0), h' = (1 - f) h + f tanh(x W + (f h) U + b) (Zhou et al. 2016) */
    TN_RNN_GRU_BEFORE, /* gru that resets before the product, as first described: n = tanh(x W + (r h) U + b) (Cho et
                          al. 2014; Chainer's StatefulGRU and StatelessGRU, Keras's reset_after=False) */
    TN_RNN_KIND_COUNT
} tn_rnn_kind;

typedef struct tn_rnn_opts {
    const char *_;
    int layers;         /* default 1 */
    bool bidirectional; /* each layer is two, the second from the last step to the first; their outputs stand side by
                           side, (steps, N, 2 units) */
    double dropout;     /* between layers, in training mode (PyTorch's; Chainer's also before the first); default 0 */
    bool no_bias;
    bool peepholes;     /* lstm only */
    double zoneout;     /* of h, and of c; one direction only; default 0 */
    double forget_bias; /* lstm: added to the forget gate's bias at first (Chainer's LSTM: 1); default 0 */
    bool stateful;      /* a call begins with the state the last one ended with; see tn_layer_reset_state */
    int64_t in;         /* input features; default: inferred at the first forward */
    tn_init weight;     /* default LeCun normal */
    tn_dtype dtype;     /* default float32 */
} tn_rnn_opts;

/*
 * A stack of recurrent layers over whole sequences. Inputs: x (steps, N, features), and, all of which may be left out,
 * h (layers x directions, N, units), c (the same; lstm only) and lengths (N) integers from 0 to steps. Outputs: y
 * (steps, N, directions x units), and the last h and c. tn_forward(rnn, x) is y alone.
 *
 * A sequence's steps from its length on count for nothing: y is 0 there, and the last states are those at its end; the
 * second direction begins at its end. (PyTorch's packed sequences and Chainer's lists give the same; N need not be
 * sorted.) States that are left out are 0. The products of the inputs of all steps are one.
 *
 * Parameters are named as PyTorch's, whose files load with .transpose = "*weight*": of layer 0 "weight_ih_l0" (in,
 * gates x units), "weight_hh_l0" (units, gates x units), "bias_ih_l0", "bias_hh_l0" (gates x units), and "peepholes_l0"
 * (3, units); of the second direction with a final "_reverse". (PyTorch's cells have no "_l0": .rename.)
 *
 * tn_layer_load's .chainer finds them in Chainer's files and puts gates in their order: NStepLSTM, NStepGRU,
 * NStepRNNTanh and NStepRNNReLU have a matrix a gate, "0/w0" ..., of layers and directions in turn; LSTM and
 * StatelessLSTM "upward/W" and "lateral/W", whose gates lie unit by unit; StatefulGRU and StatelessGRU "W_r/W",
 * "U_r/W", ..., whose z is the other way round.
 */
TN_API tn_layer *tn_rnn_with(tn_rnn_kind kind, int64_t units, const tn_rnn_opts *opts);
/* tn_rnn of these kinds. */
TN_API tn_layer *tn_lstm_with(int64_t units, const tn_rnn_opts *opts);
TN_API tn_layer *tn_gru_with(int64_t units, const tn_rnn_opts *opts);
/* One step: x (N, features) to h (N, units), keeping its state: Chainer's L.LSTM, L.GRU, DeZero's RNN and LSTM. A
 * tn_rnn, .stateful, in which x is a sequence of one step. */
TN_API tn_layer *tn_rnn_step_with(tn_rnn_kind kind, int64_t units, const tn_rnn_opts *opts);

/* A layer of that, called for nodes of a level at once: inputs x (N, features), h and c (N, children, units) of their
 * children, zeros where there are fewer, neither of leaves; outputs h and c (N, units). children 0: any number, whose h
 * are summed (ChildSumTreeLSTM); else as many, each with weights of its own (NaryTreeLSTM, Bowman et al. 2016). in 0:
 * inferred. Parameters "W" (in, gates), "U" (units or children x units, gates), "b"; Chainer's files load with
 * .chainer. */
TN_API tn_layer *tn_tree_lstm(int64_t units, int64_t children, int64_t in);

/* Forgets the states of this layer and all below it: the next call begins with zeros. */
TN_API tn_status tn_layer_reset_state(tn_layer *layer);
/* Cuts the states off from what computed them: backward through later calls ends there (truncated backpropagation
 * through time; Chainer's unchain_backward). */
TN_API tn_status tn_layer_detach_state(tn_layer *layer);

/* Sequences (length, ...), alike but for their lengths, side by side: (steps, count, ...), steps being `length`, or the
 * longest's where that is 0; `padding` behind their ends. The lengths for tn_rnn are the caller's: they are extents.
 *     tn_pad_sequence(TN_ARRAYS(a, b, c), 0, 0) */
TN_API tn_array *tn_pad_sequence(int count, const tn_array *const *xs, int64_t length, double padding);
/* Sequences (length, ...), the longest first, the other way round: out[i] (rows, ...) are their i-th elements, of those
 * that have one, in their order; as many as xs[0] is long. Twice, it gives the sequences back (Chainer's
 * transpose_sequence). */
TN_API tn_status tn_transpose_sequence(int count, const tn_array *const *xs, tn_array **out);

#ifndef TN_NO_MACROS
#define tn_pad_sequence(...) TN_HERE(tn_pad_sequence(__VA_ARGS__))
#define tn_rnn(...) TN__CALL_VV(tn_rnn_with, tn_rnn_opts, __VA_ARGS__, )
#define tn_lstm(...) TN__CALL_V(tn_lstm_with, tn_rnn_opts, __VA_ARGS__, )
#define tn_gru(...) TN__CALL_V(tn_gru_with, tn_rnn_opts, __VA_ARGS__, )
#define tn_rnn_step(...) TN__CALL_VV(tn_rnn_step_with, tn_rnn_opts, __VA_ARGS__, )
#define tn_lstm_step(...) TN_HERE(tn_lstm_step(__VA_ARGS__))
#define tn_lstm_peephole_step(...) TN_HERE(tn_lstm_peephole_step(__VA_ARGS__))
#define tn_gru_step(...) TN_HERE(tn_gru_step(__VA_ARGS__))
#define tn_slstm_step(...) TN_HERE(tn_slstm_step(__VA_ARGS__))
#define tn_transpose_sequence(...) TN_HERE(tn_transpose_sequence(__VA_ARGS__))
#define tn_tree_lstm_step(...) TN_HERE(tn_tree_lstm_step(__VA_ARGS__))
#define tn_tree_lstm(...) TN_HERE(tn_tree_lstm(__VA_ARGS__))
#define tn_zoneout(...) TN_HERE(tn_zoneout(__VA_ARGS__))
#define tn_layer_reset_state(...) TN_HERE(tn_layer_reset_state(__VA_ARGS__))
#define tn_layer_detach_state(...) TN_HERE(tn_layer_detach_state(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
