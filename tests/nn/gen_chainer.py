#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Values and gradients that Chainer 7.8.1 computed, in the form that gen_torch.py tells of.

    gen_chainer.py FOLDER       writes chainer.npz there: a copy of the file beside this script, when building
    gen_chainer.py --make       makes that file anew; needs chainer 7.8.1, and so numpy before 1.24
"""
import pathlib
import shutil
import sys

KEPT = pathlib.Path(__file__).with_name("chainer_values.npz")


def make():
    import chainer
    import chainer.functions as F
    import numpy as np

    chainer.global_config.dtype = np.float64
    rng = np.random.RandomState(3)
    values = {}

    def floats(*shape, low=-3.0, high=3.0):
        """Multiples of 1/64 that are no multiples of 1/2: kinks are kept away from."""
        x = np.round(rng.uniform(low, high, shape) * 64) / 64
        return x + np.where(np.mod(x, 0.5) == 0, 1 / 64, 0)

    def case(name, function, inputs, integers=(), dtype=np.float64):
        xs = [chainer.Variable(x.astype(dtype)) for x in inputs]
        y = function(*xs, *[np.asarray(i, dtype=np.int32) for i in integers])
        g = np.asarray(np.round(rng.uniform(-2, 2, y.shape) * 16) / 16)
        y.grad = g.astype(dtype)
        y.backward()
        for i, x in enumerate(xs):
            values[f"{name}.{i}"] = x.array
            values[f"{name}.d{i}"] = np.zeros(x.shape) if x.grad is None else x.grad
        for i, x in enumerate(integers):
            values[f"{name}.i{i}"] = np.asarray(x, dtype=np.int64)
        values[f"{name}.y"], values[f"{name}.g"] = y.array, g

    # ---- boxes: (picture, x1, y1, x2, y2); newer functions take (y1, x1, y2, x2) and the pictures, in float32 ----
    maps = floats(2, 3, 7, 9)
    boxes = np.array([[0, 1.2, 0.7, 12.4, 9.3], [1, -3.4, 2.2, 21.3, 15.6], [1, 6.6, 3.1, 9.4, 3.4], [0, 25, 1, 30, 9]])
    values["boxes"] = boxes
    turned, pictures = boxes[:, [2, 1, 4, 3]].astype(np.float32), boxes[:, 0].astype(np.int32)

    def newer(name, function, **keywords):
        case(name, lambda x: function(x, turned, pictures, (3, 2), 0.5, **keywords), [maps], dtype=np.float32)

    newer("roi_average_align", F.roi_average_align_2d, sampling_ratio=2)
    newer("roi_max_align", F.roi_max_align_2d, sampling_ratio=3)
    newer("roi_average_pooling", F.roi_average_pooling_2d)
    newer("roi_max_pooling", F.roi_max_pooling_2d)
    case("roi_pooling", lambda x: F.roi_pooling_2d(x, boxes.astype(np.float32), 3, 2, 0.5), [maps], dtype=np.float32)
    case("spatial_pyramid_pooling", lambda x: F.spatial_pyramid_pooling_2d(x, 3, "max")[:, :, 0, 0],
         [floats(2, 2, 7, 9)])

    # ---- spatial transformers ----
    theta = floats(2, 2, 3, low=-1, high=1)
    case("transformer", lambda x, t: F.spatial_transformer_sampler(x, F.spatial_transformer_grid(t, (4, 5))),
         [floats(2, 3, 6, 5), theta])

    # ---- links: their parameters under Chainer's names, so that layers load them from here ----
    L, V = chainer.links, chainer.Variable

    def keep(name, link):
        for path, parameter in link.namedparams():
            parameter.array[...] = floats(*parameter.shape, low=-1, high=1)
            values[f"{name}{path}"] = parameter.array.copy()

    def n_step(name, link, lengths, features):
        """Sequences, padded with zeros: (steps, N, features)."""
        keep(name, link)
        xs, steps = [floats(n, features, low=-1, high=1) for n in lengths], max(lengths)
        *states, ys = link(*[None] * (2 if "LSTM" in type(link).__name__ else 1), xs)
        pad = lambda x: np.pad(x, ((0, steps - len(x)), (0, 0)), "constant")
        values[f"{name}.x"] = np.stack([pad(x) for x in xs], 1)
        values[f"{name}.y"] = np.stack([pad(y.array) for y in ys], 1)
        values[f"{name}.lengths"] = np.array(lengths)
        for key, state in zip("hc", states):
            values[f"{name}.{key}"] = state.array

    n_step("n_lstm", L.NStepBiLSTM(2, 3, 2, 0), [4, 1, 3], 3)
    n_step("n_gru", L.NStepGRU(1, 2, 3, 0), [2, 3], 2)
    n_step("n_tanh", L.NStepRNNTanh(2, 2, 2, 0), [3, 2], 2)
    n_step("n_relu", L.NStepBiRNNReLU(1, 2, 2, 0), [3, 1], 2)
    for name, link in (("one_lstm", L.LSTM(3, 2)), ("one_gru", L.StatefulGRU(3, 2))):
        keep(name, link)
        if name == "one_gru": # without a state Chainer leaves out the biases of U
            link.set_state(V(np.zeros((2, 2))))
        x = floats(3, 2, 3, low=-1, high=1)
        values[f"{name}.x"], values[f"{name}.y"] = x, np.stack([link(V(step)).array for step in x])

    # ---- trees ----
    cells, hidden, x = floats(2, 2, 3, low=-1, high=1), floats(2, 2, 3, low=-1, high=1), floats(2, 4, low=-1, high=1)
    values["tree.x"], values["tree.h"], values["tree.c"] = x, hidden, cells
    sides = [cells[:, 0], cells[:, 1], hidden[:, 0], hidden[:, 1]]
    for name, link in (("tree_sum", L.ChildSumTreeLSTM(4, 3)), ("tree_two", L.NaryTreeLSTM(4, 3, 2))):
        keep(name, link)
        for key, given in (("", sides), ("leaf_", [side * 0 for side in sides])):
            c, h = link(*[V(side) for side in given], V(x))
            values[f"{name}.{key}c"], values[f"{name}.{key}h"] = c.array, h.array
    case("tree_lstm_step", lambda c, x: F.concat(F.tree_lstm(c[:, 0], c[:, 1], x)[::-1], axis=1),
         [cells, floats(2, 15)])

    # ---- hierarchical softmax: a given tree ----
    from chainer.links.loss.hierarchical_softmax import BinaryHierarchicalSoftmaxFunction as kind
    tree = ((2, (0, 4)), (1, 3))
    function = kind(tree, np.float64)
    depth = max(np.diff(function.begins))
    rows = [slice(*function.begins[i:i + 2]) for i in range(5)]
    fill = lambda x: np.stack([np.pad(x[row], (0, depth - len(x[row])), "constant") for row in rows])
    values["softmax_tree.paths"], values["softmax_tree.codes"] = fill(function.paths), fill(function.codes)
    labels = np.array([0, 3, 2, 2, 4, 1], dtype=np.int32)
    values["softmax_tree.t"] = labels
    case("hierarchical_softmax", lambda x, w: kind(tree, np.float64)(x, labels, w),
         [floats(6, 3), floats(4, 3, low=-1, high=1)])

    # ---- modules of convolutions ----
    maps = floats(2, 3, 5, 5, low=-1, high=1)
    values["modules.x"] = maps
    for name, link in (("inception", L.Inception(3, 2, 3, 2, 2, 3, 1)), ("inception_bn", L.InceptionBN(
            3, 2, 3, 2, 2, 3, "avg", 1)), ("inception_stride", L.InceptionBN(3, 0, 2, 3, 2, 3, "max", None, 2)),
                       ("perceptron", L.MLPConvolution2D(3, (4, 3, 2), 3, 2, 1, activation=F.tanh))):
        keep(name, link)
        values[f"{name}.y"] = link(V(maps)).array

    # ---- what chooses, shifts and scales ----
    case("absolute_error", F.absolute_error, [floats(3, 4), floats(3, 4)])
    case("squared_error", F.squared_error, [floats(3, 4), floats(3, 4)])
    case("select_item", F.select_item, [floats(5, 4)], [[0, 3, 1, 1, 2]])
    case("separate", lambda x: F.stack(F.separate(x, 1)[::-1], 0), [floats(2, 3, 4)])
    case("local_conv2d", lambda x, w, b: F.local_convolution_2d(x, w, b, (2, 1)),
         [floats(2, 3, 6, 5, low=-1, high=1), floats(4, 3, 3, 3, 2, 3, low=-1, high=1), floats(4, 3, 3)])
    case("shift", lambda x: F.shift(x, 3, 2), [floats(2, 11, 6, 5)])
    case("slstm_step", lambda c, d, x, y: F.concat(F.slstm(c, d, x, y)[::-1], axis=1),
         [floats(3, 2), floats(3, 2), floats(3, 8), floats(3, 8)])
    case("transpose_sequence", lambda x, y, z: F.concat(F.transpose_sequence([x, y, z]), axis=0),
         [floats(4, 2), floats(3, 2), floats(1, 2)])
    for name, link in (("scale", L.Scale(1, (3, 4), True)), ("bias", L.Bias(2, (4,)))):
        keep(name, link)
        x = floats(2, 3, 4, 2)
        values[f"{name}.x"], values[f"{name}.y"] = x, link(V(x)).array
    values["extents"] = np.array([[*numbers, chainer.utils.conv.get_conv_outsize(*numbers[:4], True, numbers[4]),
                                   chainer.utils.conv.get_conv_outsize(*numbers[:4], False, numbers[4]),
                                   chainer.utils.conv.get_deconv_outsize(*numbers[:4], False, numbers[4])]
                                  for numbers in ((7, 3, 2, 1, 1), (8, 3, 2, 0, 1), (9, 2, 3, 1, 2), (5, 5, 1, 0, 1))])

    np.savez_compressed(KEPT, **values)


if sys.argv[1] == "--make":
    make()
else:
    shutil.copyfile(KEPT, pathlib.Path(sys.argv[1]) / "chainer.npz")
