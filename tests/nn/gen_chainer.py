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

    np.savez_compressed(KEPT, **values)


if sys.argv[1] == "--make":
    make()
else:
    shutil.copyfile(KEPT, pathlib.Path(sys.argv[1]) / "chainer.npz")
