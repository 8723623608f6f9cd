/* SPDX-License-Identifier: MIT */
/*
 * Layers, initialisers and losses.
 *
 * A layer is an opaque object with named, ordered parameters and child layers. Layers are made by constructors, which
 * never return NULL: a failed one gives an inert layer whose forward returns its error. A layer given to
 * tn_sequential (or tn_layer_add) belongs to it; the root is freed with tn_layer_free. A layer that a failed call has
 * freed gives TN_ERR_STATE from then on.
 */
#ifndef TANSO_NN_H
#define TANSO_NN_H

#include <tanso/base.h>
#include <tanso/random.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_layer tn_layer;

/* ---- initialisers ---- */
/* Chainer's, by name. fan_in and fan_out are the shape's extents: weights are (fan_in, fan_out). */

typedef enum tn_init_kind {
    TN_INIT_DEFAULT = 0,    /* the layer's documented default */
    TN_INIT_ZEROS,
    TN_INIT_ONES,
    TN_INIT_CONSTANT,       /* gain */
    TN_INIT_NORMAL,         /* N(0, gain²) */
    TN_INIT_UNIFORM,        /* U(-gain, gain) */
    TN_INIT_LECUN_NORMAL,   /* N(0, gain²/fan_in)                 (LeCun et al. 1998) */
    TN_INIT_LECUN_UNIFORM,  /* U(±gain sqrt(3/fan_in)) */
    TN_INIT_GLOROT_NORMAL,  /* N(0, 2 gain²/(fan_in + fan_out))   (Glorot and Bengio 2010) */
    TN_INIT_GLOROT_UNIFORM,
    TN_INIT_HE_NORMAL,      /* N(0, 2 gain²/fan_in)               (He et al. 2015) */
    TN_INIT_HE_UNIFORM,
    TN_INIT_ORTHOGONAL,     /* gain × a random orthogonal matrix  (Saxe et al. 2014) */
    TN_INIT_IDENTITY,
    TN_INIT_TRUNCATED_NORMAL, /* N(0, gain²) without what lies beyond -2 and 2, as PyTorch's trunc_normal_ */
    TN_INIT_COUNT
} tn_init_kind;

typedef struct tn_init {
    tn_init_kind kind;
    double gain; /* 0 stands for 1, but of TN_INIT_CONSTANT */
} tn_init;

/* A new array of the innermost scope, filled by the initialiser; dtype, device and generator from opts (NULL:
 * defaults). */
TN_API tn_array *tn_initialize(tn_init init, tn_shape shape, const tn_random_opts *opts);
/* The kind of a name such as "he_normal"; TN_INIT_COUNT if there is none. */
TN_API tn_init_kind tn_init_parse(const char *name);

/* ---- layers ---- */

typedef struct tn_linear_opts {
    const char *_;
    int64_t in;     /* input features; default: inferred at the first forward */
    bool no_bias;
    tn_init weight; /* default LeCun normal */
    tn_init bias;   /* default zeros */
    tn_dtype dtype; /* default float32 */
} tn_linear_opts;

/* y = x W + b over the last axis, x of any dtype as in tn_matmul; parameters "W" (in, out), "b" (out). */
TN_API tn_layer *tn_linear_with(int64_t out, const tn_linear_opts *opts);

/* Activations as layers without parameters: the functions of array.h, and tn_leaky_relu below, of the same names. */
TN_API tn_layer *tn_sigmoid_layer(void);
TN_API tn_layer *tn_relu_layer(void);
TN_API tn_layer *tn_tanh_layer(void);
TN_API tn_layer *tn_gelu_layer(void);
TN_API tn_layer *tn_softplus_layer(void);
TN_API tn_layer *tn_leaky_relu_layer(double slope);
TN_API tn_layer *tn_softmax_layer(int axis);
TN_API tn_layer *tn_flatten_layer(void); /* (N, ...) to (N, product) */
/* A layer of any function of one array. `user` must outlive it. */
TN_API tn_layer *tn_function_layer(const char *name, tn_array *(*f)(const tn_array *x, void *user), void *user);

/* In training mode zeroes each element with probability `ratio` and scales the others by 1/(1-ratio) (Srivastava et
 * al. 2014); the identity in evaluation mode. */
TN_API tn_layer *tn_dropout(double ratio);
typedef struct tn_embedding_opts {
    const char *_;
    int64_t padding_index; /* what is no word: its row is zeros, whatever the table has there, and learns nothing
                              (Chainer's ignore_label, PyTorch's padding_idx); any integer; default: none */
    tn_init weight;        /* of the layer; default N(0, 1) */
} tn_embedding_opts;
/* Rows of the table "W" (count, features) chosen by integers x in [0, count): of shape x.shape + (features). As a
 * function: tn_embedding_function, connections.h. */
TN_API tn_layer *tn_embedding_with(int64_t count, int64_t features, const tn_embedding_opts *opts);
/* Normalises the last axis of x, floating (Ba, Kiros, Hinton 2016): (x - mean)/sqrt(var + eps) * gamma + beta;
 * parameters "gamma", "beta" (features; 0: inferred at the first forward); eps 0 stands for 1e-5. */
TN_API tn_layer *tn_layer_norm(int64_t features, double eps);

/* Applies its children one after another; children are named "0", "1", ... Takes ownership of them all: should it
 * fail, they are freed, but for those that belong to another layer already. */
TN_API tn_layer *tn_sequential_of(int count, tn_layer *const *layers);
/* Puts a layer, which it takes over, before the layer at `index` of a tn_sequential, or behind the last one where that
 * is how many there are; negative ones count from the end. Those behind it go on by one, and so do their names, where
 * these are the numbers of their places, and the paths of their parameters. TN_ERR_STATE while there is an optimizer
 * of the sequence, or of a layer around it; TN_ERR_INDEX out of range. If it fails nothing changes, and the layer is
 * freed, unless it belongs to another one. */
TN_API tn_status tn_sequential_insert(tn_layer *sequence, int index, tn_layer *layer);
/* Takes the layer at `index` out, -1 the last one; it is the caller's then. Those behind it go back by one, as above.
 * An error layer, and nothing changes, if it fails. The last layer may go, too: an empty sequence gives what it gets.
 * */
TN_API tn_layer *tn_sequential_pop(tn_layer *sequence, int index);
/* linear(sizes[0]) activation linear(sizes[1]) ... ; `activation` is a layer name such as "relu", none after the
 * last. tn_mlp_of(1000, 1000, 10) lists the sizes, and has ReLU between. */
TN_API tn_layer *tn_mlp(int count, const int64_t *sizes, const char *activation);
/*
 * A network written as words, "linear:1000 sigmoid linear:10", "conv:64,3,pad=1 relu maxpool:2 gap linear:10", or a
 * model of tanso/models.h, "resnet18:10,stem=cifar". Groups in parentheses are layers, too:
 *
 *     (conv:8,3 relu)                         a tn_sequential
 *     repeat:3(conv:8,3,pad=1 bn relu)        the same as if those stood there three times
 *     residual(conv:8,3,pad=1 bn|conv:8,1|relu) the sum of what both parts make of the input, then a ReLU; an empty or
 *                                             missing second part is the input itself
 *     concat(conv:8,1|maxpool:3,stride=1,pad=1|)
 *                                             what each part makes of the input, and here the input itself, one behind
 *                                             another along the channels (concat:2 along axis 2)
 *
 * A layer's name as a child is the number of its place, or another one that stands in front of it: fc=linear:10,
 * body=(linear:5 relu). Parts of a residual are its children themselves. An error names the column; an unknown word's
 * the nearest valid one, too.
 */
TN_API tn_layer *tn_layer_parse(const char *text);

/* The layer's output for x; makes what parameters its shape was still needed for. An error array, which names the
 * layer, if x does not suit it. tn_forward(layer, x, h) gives a layer of several inputs all of them. */
TN_API tn_array *tn_forward(tn_layer *layer, const tn_array *x);
/* The first output for `count` inputs. */
TN_API tn_array *tn_forward_of(tn_layer *layer, int count, const tn_array *const *in);
/* The first `out_count` outputs, each into *out[i] (NULL: not wanted); error arrays, and the status, if that fails:
 *     tn_forward_all(cell, TN_ARRAYS(x, h, c), TN_RESULTS(&h, &c));
 * In a tn_sequential the first layer takes all inputs, the last one gives all outputs, and what lies between has the
 * first output of the one before. */
TN_API tn_status tn_forward_all(tn_layer *layer, int count, const tn_array *const *in, int out_count,
                                tn_array **const *out);
#define TN_RESULTS(...) TN__LIST(tn_array **, __VA_ARGS__)
/* Frees a layer, its children and parameters. NULL is ignored; another layer's child is TN_ERR_STATE. */
TN_API void tn_layer_free(tn_layer *layer);
/* TN_OK, or why construction failed. */
TN_API tn_status tn_layer_status(const tn_layer *layer);

/*
 * A layer of the user's own: a function, called with the layer and `user`, in a scope of its own, out of which only its
 * results are kept. Parameters and children are added by name; the layer owns them, and frees `user` with free_user
 * (may be NULL; also called when making the layer fails).
 *
 * With .size = sizeof(data) the layer keeps *user (NULL: zeros) in memory of its own, and so does each copy of it;
 * free_user then frees only what the data point at:
 *
 *     typedef struct scale { double by; } scale;
 *     static tn_array *forward(tn_layer *layer, const tn_array *x, void *user)
 *     {
 *         return tn_multiply(tn_forward(tn_layer_child(layer, "inner"), x), ((scale *)user)->by);
 *     }
 *     scale half = {0.5};
 *     tn_layer *layer = tn_layer_new("scale", forward, &half, NULL, .size = sizeof half);
 *     tn_layer_add(layer, "inner", tn_linear(10));
 */
typedef tn_array *(*tn_forward_fn)(tn_layer *layer, const tn_array *x, void *user);
typedef struct tn_layer_opts {
    const char *_;
    size_t size; /* of *user; default: `user` is the program's own */
    /* Of layers with .size and free_user: called with a copy, whose data are the same bytes still, once it has its
     * parameters and children, to give the data what they point at anew. If it fails, they are not freed. */
    tn_status (*copy)(tn_layer *copy, void *user);
    int inputs;   /* tn_flow_layer: arrays that it takes; default: any number, at least one */
    int optional; /* how many of these, the last ones, may be left out or NULL; default 0 */
    int outputs;  /* arrays that it gives; default 1 */
} tn_layer_opts;
TN_API tn_layer *tn_layer_new_with(const char *kind, tn_forward_fn forward, void *user, void (*free_user)(void *user),
                                   const tn_layer_opts *opts);

/*
 * The same of several arrays, whose function fills all outputs:
 *
 *     static tn_status forward(tn_layer *layer, const tn_flow *flow, void *user)
 *     {
 *         const tn_array *x = flow->in[0], *h = flow->in[1];
 *         flow->out[0] = tn_tanh(tn_add(tn_forward(tn_layer_child(layer, "x"), x),
 *                                       tn_forward(tn_layer_child(layer, "h"), h)));
 *         return TN_OK;
 *     }
 *     tn_layer *layer = tn_flow_layer("rnn", forward, NULL, NULL, .inputs = 2);
 */
typedef struct tn_flow {
    int in_count, out_count;   /* as many as were given; as many as it has */
    const tn_array *const *in; /* NULL, up to .inputs, for those that were left out */
    tn_array **out;
} tn_flow;
typedef tn_status (*tn_flow_fn)(tn_layer *layer, const tn_flow *flow, void *user);
TN_API tn_layer *tn_flow_layer_with(const char *kind, tn_flow_fn flow, void *user, void (*free_user)(void *user),
                                    const tn_layer_opts *opts);
/* The `user` of a layer of that kind; NULL if it is of another one. */
TN_API void *tn_layer_user(const tn_layer *layer, const char *kind);
/* Names have no '.' and no '/', are not empty, and are taken once. The child is freed if it can't be added, unless it
 * belongs to another layer. */
TN_API tn_status tn_layer_add(tn_layer *parent, const char *name, tn_layer *child);
/* The layer at a path of children's names, "norm" or "2.norm", which stays its parent's; NULL, with TN_ERR_NAME
 * latched, if there is none. */
TN_API tn_layer *tn_layer_child(const tn_layer *layer, const char *path);
/* Makes `value` (floating, evaluated here) a parameter: a leaf that requires its gradient. Returns it, owned by the
 * layer; or an error array, and then `value` stays the caller's. */
TN_API tn_array *tn_layer_param(tn_layer *layer, const char *name, tn_array *value);

/* Makes `value` (evaluated here, of any dtype) a value that the layer keeps, and saves, loads, copies and moves with
 * itself, but that no optimizer trains: running statistics, counters. Forward may tn_assign to it, what it assigns
 * tn_detach'ed. Returns it, owned by the layer; or an error array, and then `value` stays the caller's. */
TN_API tn_array *tn_layer_persistent(tn_layer *layer, const char *name, tn_array *value);

/* All there is in a layer and below it, in order: each layer (its path "" for the first, and no value), then its
 * parameters and persistent values, then its children. The walk ends where the visitor gives another status than TN_OK,
 * which it gives too. Paths are valid during the call only. */
typedef enum tn_part_kind { TN_PART_LAYER, TN_PART_PARAM, TN_PART_PERSISTENT } tn_part_kind;
typedef struct tn_layer_part {
    tn_part_kind kind;
    const char *path;
    tn_layer *layer;
    tn_array *value;
} tn_layer_part;
typedef tn_status (*tn_layer_visitor)(const tn_layer_part *part, void *user);
TN_API tn_status tn_layer_walk(tn_layer *layer, tn_layer_visitor visit, void *user);

/* Freezes the parameters whose paths match a pattern of the shell ("0.*"; NULL: all), also those still to be inferred:
 * they get no gradient, nothing is recorded for them, and optimizers leave them alone; or, with false, makes them learn
 * again. A "*." at the beginning may stand for nothing: "*.W" is also a bare layer's "W". TN_ERR_NAME if none matches,
 * with the names there are. */
TN_API tn_status tn_layer_freeze(tn_layer *layer, const char *pattern, bool frozen);

/* Marks a layer whose gradients, or parameters too, the ranks of a distributed optimizer may have in parts:
 * tn_optimizer_distribute with .shard = 2 or 3 (optim.h). Alone it changes nothing; within one that is marked it is not
 * looked at. Returns the layer: tn_sequential(tn_layer_shard(tn_linear(4096)), ...). */
TN_API tn_layer *tn_layer_shard(tn_layer *layer);

typedef enum tn_copy_mode {
    TN_COPY_USUAL = 0, /* of tn_layer_copy values, of tn_layer_repeat first weights */
    TN_COPY_VALUES,    /* arrays of its own of the same values */
    TN_COPY_INIT,      /* arrays of its own with first weights of their own */
    TN_COPY_SHARE      /* the very same arrays, parameters and persistent values, which are freed with the last of the
                          layers: one value, one gradient, and an optimizer of both updates it once. They must have
                          their shapes. A file has them under each path; a copy of a layer that shares within itself
                          does so, too */
} tn_copy_mode;
typedef struct tn_layer_copy_opts {
    const char *_;
    tn_copy_mode mode;
} tn_layer_copy_opts;
/* A layer like this one, with arrays of its own of the same values (in its mode, its frozen parameters frozen). Layers
 * of the program's own have copies of their data (tn_layer_opts.size), or the same `user` pointer; those with free_user
 * and without .size, or without .copy, can't be copied. */
TN_API tn_layer *tn_layer_copy_with(const tn_layer *layer, const tn_layer_copy_opts *opts);
/* A tn_sequential of the layer, which it takes over, and copies of it with first weights of their own, `count` in all;
 * what an initialiser did not make, as a program's own parameters, is copied. */
TN_API tn_layer *tn_layer_repeat_with(tn_layer *layer, int count, const tn_layer_copy_opts *opts);
/* Parameters and persistent values of the same paths and shapes from another layer; nothing changes if they differ. */
TN_API tn_status tn_layer_copy_params(tn_layer *to, const tn_layer *from);
/* The moving average of a layer's weights, in a tn_layer_copy of it: a = decay a + (1 - decay) p, evaluated; integers
 * are copied. */
TN_API tn_status tn_layer_average(tn_layer *average, const tn_layer *layer, double decay);
/* Adds the gradients of another layer's parameters, of the same paths, to this one's. */
TN_API tn_status tn_layer_add_grads(tn_layer *to, const tn_layer *from);

/* The parameters of a layer and its children in order, named by path ("0.W", "2.b"). The handles stay the layer's and
 * stay the same through training, moving and loading. */
TN_API int tn_param_count(const tn_layer *layer);
TN_API tn_array *tn_param(const tn_layer *layer, int i);
/* Valid until the layer changes. "" with TN_ERR_INDEX latched for an i out of range; tn_param gives an error array
 * then. */
TN_API const char *tn_param_name(const tn_layer *layer, int i);
/* The parameter of a path; an error array (TN_ERR_NAME, naming the nearest path) if there is none. */
TN_API tn_array *tn_param_named(const tn_layer *layer, const char *path);
/* Number of elements of all parameters. */
TN_API int64_t tn_param_total(const tn_layer *layer);
/* All of them in one row, differentiable; and back: each parameter takes its elements of such a row, as by tn_assign
 * (PyTorch's parameters_to_vector, vector_to_parameters). A layer without parameters has an empty row, of float32. */
TN_API tn_array *tn_params_to_vector(const tn_layer *layer);
TN_API tn_status tn_vector_to_params(const tn_array *vector, tn_layer *layer);

/* Moves parameters, their gradients and the state of every optimizer of them to a device, in place. Parameters still to
 * be inferred will be made there (else, where the first input is). If it fails, as when the device has no room, all of
 * it stays where it was. */
TN_API tn_status tn_layer_to(tn_layer *layer, tn_device device);
/* Training mode (the default) or evaluation mode, for the layer and its children. */
TN_API void tn_layer_train(tn_layer *layer, bool training);
TN_API bool tn_layer_training(const tn_layer *layer);
TN_API void tn_layer_clear_grads(tn_layer *layer);

/* Saves parameters to a file, by its ending: .safetensors or .npz; written beside, synced, renamed. */
TN_API tn_status tn_layer_save(const tn_layer *layer, const char *path) TN_MUST_CHECK;
typedef struct tn_load_opts {
    const char *_;
    bool strict;           /* .strict = false: what the file does not hold stays as it is; default: an error */
    const char *prefix;    /* before each path in the file: "model.", or "model/" */
    const char *ignore;    /* parameters to be left alone: patterns of the shell, with spaces between: "2.* *.b" */
    const char *transpose; /* those that the file has as (out, in), as PyTorch's and Chainer's weights: "*.W" */
    bool chainer;          /* a file of Chainer's save_npz: the weights of tn_linear are transposed, too */
    bool torch;            /* a file of PyTorch's state_dict, as safetensors: "weight", "bias", "running_mean" and so on
                              stand for "W" and "b", "gamma" and "beta", ...; the weights of tn_linear are transposed */
    const char *rename;    /* last names of paths and what the file has instead of them: "W=weight b=bias";
                              TN_ERR_VALUE for a word of another form */
} tn_load_opts;
/* Loads them. Every parameter must be in the file with its shape; a misfit is named with both shapes and nothing
 * changes. Parameters still to be inferred take the file's shapes. In the file and in all options '/' may stand for '.'
 * between names, and '.' for '/'. Patterns are those of the layer's own names, and a "*." at their beginning may stand
 * for nothing: "*.W" is also the "W" of a bare layer. TN_ERR_NAME, and nothing changes: a pattern that matches none of
 * the layer's names, which are told; a file that holds nothing of what was asked for, as of another .prefix, also with
 * .strict = false. */
TN_API tn_status tn_layer_load_with(tn_layer *layer, const char *path, const tn_load_opts *opts) TN_MUST_CHECK;
/* A description, a line a layer with its parameters; freed with tn_string_free. */
TN_API char *tn_layer_string(const tn_layer *layer);

/* ---- losses and measures ---- */

/* Mean over the rows of -log softmax(x)[t]; x (N, classes) floating, t (N) integers in range (checked at
 * evaluation). */
TN_API tn_array *tn_softmax_cross_entropy(const tn_array *x, const tn_array *t);

/* What becomes of the losses of all rows. */
typedef enum tn_reduction { TN_REDUCTION_MEAN, TN_REDUCTION_SUM, TN_REDUCTION_NONE } tn_reduction;

typedef struct tn_cross_entropy_opts {
    const char *_;
    int64_t ignore_index;   /* rows with this label count for nothing, whatever their scores; default: no label */
    const tn_array *weight; /* (classes) floating: a row's loss is multiplied by its class's, and the mean divided by
                               the sum of these; no gradient goes there. Default: 1 each */
    double label_smoothing; /* e from 0 to 1: e / classes of a row's label is each class's, 1 - e its own (Szegedy et
                               al. 2016). Default: 0 */
    tn_reduction reduction; /* default: mean, which is 0 where no row counts; NONE: the losses in the labels' shape */
    int axis;               /* of the classes, negative from the end; default 1, as in (N, classes, height, width) */
} tn_cross_entropy_opts;

/* The same with options, and of scores with more axes than two: t has their shape without the classes' axis, and each
 * of its elements is a row. tn_softmax_cross_entropy(x, t, .ignore_index = -1). */
TN_API tn_array *tn_softmax_cross_entropy_with(const tn_array *x, const tn_array *t,
                                               const tn_cross_entropy_opts *opts);
/* t may also be floating and of x's shape: the chances of all classes, of which the loss is -sum of t log softmax(x),
 * as in both frameworks (weights multiply each class's term, and the mean is over the rows); no ignore_index then. */

/* Mean of -t log s - (1-t) log(1-s), s = sigmoid(x), computed stably from x; t the shape of x, in [0, 1]. */
TN_API tn_array *tn_sigmoid_cross_entropy(const tn_array *x, const tn_array *t);
typedef struct tn_sigmoid_opts {
    const char *_;
    double ignore_index;        /* elements with this target count for nothing (Chainer's -1); default: none */
    const tn_array *weight;     /* floating, broadcasts to x: what each loss is multiplied by; default: 1 */
    const tn_array *pos_weight; /* floating, broadcasts to x: what the first term is multiplied by; default: 1 */
    tn_reduction reduction;     /* the mean is over the elements that count, 0 where none does */
} tn_sigmoid_opts;
/* The same with options, which get no gradient: tn_sigmoid_cross_entropy(x, t, .ignore_index = -1). */
TN_API tn_array *tn_sigmoid_cross_entropy_with(const tn_array *x, const tn_array *t, const tn_sigmoid_opts *opts);
/* The same from probabilities p instead of logits; p is clamped to [u, 1 - u], u the dtype's rounding unit, so that 0
 * and 1 give large losses, not infinite ones. */
TN_API tn_array *tn_binary_cross_entropy(const tn_array *p, const tn_array *t);
typedef struct tn_loss_opts {
    const char *_;
    tn_reduction reduction; /* default: mean */
} tn_loss_opts;
/* Mean of (a - b)²; a and b of one shape, nothing is broadcast. More losses are in tanso/losses.h. */
TN_API tn_array *tn_mean_squared_error(const tn_array *a, const tn_array *b);
TN_API tn_array *tn_mean_squared_error_with(const tn_array *a, const tn_array *b, const tn_loss_opts *opts);
/* Share of the rows whose largest element is at t: a float32 scalar, without gradient. */
TN_API tn_array *tn_accuracy(const tn_array *y, const tn_array *t);
/* Dropout as a function: it always drops; generator NULL: the thread's default one. */
TN_API tn_array *tn_dropout_function(const tn_array *x, double ratio, tn_generator *generator);
/* Layer normalisation of x, floating, as a function, over as many last axes as gamma and beta have, which are of their
 * extents; over the last one where both are NULL. Either may be. */
TN_API tn_array *tn_layer_norm_function(const tn_array *x, const tn_array *gamma, const tn_array *beta, double eps);
/* x where x >= 0, else slope x (Maas, Hannun, Ng 2013). */
TN_API tn_array *tn_leaky_relu(const tn_array *x, double slope);

#ifndef TN_NO_MACROS
#define tn_initialize(...) TN_HERE(tn_initialize(__VA_ARGS__))
#define tn_function_layer(...) TN_HERE(tn_function_layer(__VA_ARGS__))
#define tn_leaky_relu_layer(...) TN_HERE(tn_leaky_relu_layer(__VA_ARGS__))
#define tn_softmax_layer(...) TN_HERE(tn_softmax_layer(__VA_ARGS__))
#define tn_dropout(...) TN_HERE(tn_dropout(__VA_ARGS__))
#define tn_embedding(...) TN__CALL_VV(tn_embedding_with, tn_embedding_opts, __VA_ARGS__, )
#define tn_layer_norm(...) TN_HERE(tn_layer_norm(__VA_ARGS__))
#define tn_mlp(...) TN_HERE(tn_mlp(__VA_ARGS__))
#define tn_mlp_of(...) TN_AT(tn_mlp)(TN__LIST(int64_t, __VA_ARGS__), "relu")
#define tn_layer_parse(...) TN_HERE(tn_layer_parse(__VA_ARGS__))
#define tn_layer_new(...) TN__CALL_VVVV(tn_layer_new_with, tn_layer_opts, __VA_ARGS__, )
#define tn_flow_layer(...) TN__CALL_VVVV(tn_flow_layer_with, tn_layer_opts, __VA_ARGS__, )
#define tn_layer_user(...) TN_HERE(tn_layer_user(__VA_ARGS__))
#define tn_layer_add(...) TN_HERE(tn_layer_add(__VA_ARGS__))
#define tn_layer_child(...) TN_HERE(tn_layer_child(__VA_ARGS__))
#define tn_layer_param(...) TN_HERE(tn_layer_param(__VA_ARGS__))
#define tn_layer_persistent(...) TN_HERE(tn_layer_persistent(__VA_ARGS__))
#define tn_layer_walk(...) TN_HERE(tn_layer_walk(__VA_ARGS__))
#define tn_layer_freeze(...) TN_HERE(tn_layer_freeze(__VA_ARGS__))
#define tn_layer_copy(...) TN__CALL_V(tn_layer_copy_with, tn_layer_copy_opts, __VA_ARGS__, )
#define tn_layer_repeat(...) TN__CALL_VV(tn_layer_repeat_with, tn_layer_copy_opts, __VA_ARGS__, )
#define tn_layer_copy_params(...) TN_HERE(tn_layer_copy_params(__VA_ARGS__))
#define tn_layer_average(...) TN_HERE(tn_layer_average(__VA_ARGS__))
#define tn_layer_add_grads(...) TN_HERE(tn_layer_add_grads(__VA_ARGS__))
#define tn_param(...) TN_HERE(tn_param(__VA_ARGS__))
#define tn_param_name(...) TN_HERE(tn_param_name(__VA_ARGS__))
#define tn_param_named(...) TN_HERE(tn_param_named(__VA_ARGS__))
#define tn_params_to_vector(...) TN_HERE(tn_params_to_vector(__VA_ARGS__))
#define tn_vector_to_params(...) TN_HERE(tn_vector_to_params(__VA_ARGS__))
#define tn_layer_to(...) TN_HERE(tn_layer_to(__VA_ARGS__))
#define tn_layer_string(...) TN_HERE(tn_layer_string(__VA_ARGS__))
#define tn_binary_cross_entropy(...) TN_HERE(tn_binary_cross_entropy(__VA_ARGS__))
#define tn_dropout_function(...) TN_HERE(tn_dropout_function(__VA_ARGS__))
#define tn_layer_norm_function(...) TN_HERE(tn_layer_norm_function(__VA_ARGS__))
#define tn_leaky_relu(...) TN_HERE(tn_leaky_relu(__VA_ARGS__))
/* Up to 8 inputs; one by itself is no list. */
#define tn_forward(layer, ...) TN__FORWARD_BY(__VA_ARGS__, S, S, S, S, S, S, S, 1, )(layer, __VA_ARGS__)
#define TN__FORWARD_BY(a, b, c, d, e, f, g, h, n, ...) TN__FORWARD_##n
#define TN__FORWARD_1(layer, x) TN_AT(tn_forward)(layer, x)
#define TN__FORWARD_S(layer, ...) TN_AT(tn_forward_of)(layer, TN_ARRAYS(__VA_ARGS__))
#define tn_forward_of(...) TN_HERE(tn_forward_of(__VA_ARGS__))
#define tn_forward_all(...) TN_HERE(tn_forward_all(__VA_ARGS__))
#define tn_softmax_cross_entropy(...) \
    TN__CALL_VV(tn_softmax_cross_entropy_with, tn_cross_entropy_opts, __VA_ARGS__, )
#define tn_sigmoid_cross_entropy(...) TN__CALL_VV(tn_sigmoid_cross_entropy_with, tn_sigmoid_opts, __VA_ARGS__, )
#define tn_mean_squared_error(...) TN__CALL_VV(tn_mean_squared_error_with, tn_loss_opts, __VA_ARGS__, )
#define tn_accuracy(y, t) TN_AT(tn_accuracy)(y, t)
#define tn_layer_load(...) TN__CALL_VV(tn_layer_load_with, tn_load_opts, __VA_ARGS__, )
#define tn_linear(...) TN__CALL_V(tn_linear_with, tn_linear_opts, __VA_ARGS__, )
#define tn_sequential_insert(...) TN_HERE(tn_sequential_insert(__VA_ARGS__))
#define tn_sequential_pop(...) TN_HERE(tn_sequential_pop(__VA_ARGS__))
/* tn_sequential(layer, layer, ...) */
#define tn_sequential(...) TN_AT(tn_sequential_of)(TN__LIST(tn_layer *, __VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif
#endif
