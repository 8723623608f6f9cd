# SPDX-License-Identifier: MIT
"""Values that NumPy gives for creation, indexing, joins, products and reductions, for test_values.c.

Writes values.bin: for each case a line "name dtype extent..." and the elements' bytes, in C order.
"""
import os
import sys

import numpy as np

F = np.float32
x = np.arange(60).reshape(3, 4, 5).astype(F) * F(0.37) - F(7.1)
xt = x.swapaxes(1, 2)
i = (np.arange(6) * 7 % 4).astype(np.int32).reshape(2, 3)
small = x.astype(np.int8)


def updated():
    y = x.copy()
    y[0:3:2, ::-2] = np.arange(5)
    return y


def scattered():
    y = x.copy()
    np.add.at(y, (slice(None), i), np.take(x, i, 1))
    return y


def softmax(a, axis):
    e = np.exp(a.astype(np.float64))
    return e / e.sum(axis, keepdims=True)


CASES = dict(
    x=x,
    arange_f32=np.arange(0.1, 7, 0.3, dtype=F), arange_f64=np.arange(-1.7, 7, 0.3),
    arange_f16=np.arange(-1.7, 7, 0.3, dtype=np.float16), arange_i8=np.arange(-5, 7, 2, dtype=np.int8),
    arange_cut=np.arange(0.5, 6, 1, dtype=np.int64), arange_down=np.arange(9, -3, -2),
    arange_bool=np.arange(0, 2, 1, dtype=bool),
    linspace=np.linspace(0.3, 2.9, 17, dtype=F), linspace_f64=np.linspace(-0.3, 2.9, 50),
    linspace_i32=np.linspace(-3, 5, 7, dtype=np.int32), linspace_one=np.linspace(2, 5, 1, dtype=F),
    linspace_tiny=np.linspace(0, 5e-324, 4), eye=np.eye(3, 5, dtype=F),
    slice=x[::-1, 1::2, -1:-5:-2], index=x[-2], flip=x[::-1, :, ::-1], slice_update=updated(),
    concatenate=np.concatenate([x, x + F(1), np.ones((3, 2, 5))], 1), stack=np.stack([x, -x], -1),
    transpose=x.transpose(1, 2, 0).transpose(2, 1, 0),
    take=np.take(x, i, 1), take_negative=np.take(x, -i, 1),
    take_along=np.take_along_axis(x, i.reshape(3, 2, 1), 1), scatter_add=scattered(), one_hot=np.eye(5, dtype=F)[i],
    matmul=x @ xt, matmul_shared=x @ xt[0], matmul_vector=x @ x[0, 1], vector_matmul=x[0, 1] @ xt,
    matmul_broadcast=x[:, None] @ xt, matmul_int=small.astype(np.int32) @ small.swapaxes(1, 2).astype(np.int32),
    matmul_bool=(x > 3) @ (xt > 9), matmul_empty=np.zeros((3, 2, 4), F),
    sum=x.sum((0, 2)), sum_bool=(x > 1).sum(), sum_int8=small.sum(1), prod=small.prod(0),
    mean=x.mean(1), mean_f16=x.astype(np.float16).mean(0), mean_same=np.full(49, 3, F).mean(),
    var=x.var(-1, ddof=1), std=small.std(), max=x.max(0), max_bool=(x > 14).max(1),
    argmin=(i - 1).argmin(1), argmax=i.argmax(), any=(x > 14).any(1), all=x.all(1),
    logsumexp=np.log(np.exp(x).sum(1)), logsumexp_inf=F(-np.inf), softmax=softmax(x, 1).astype(F),
    log_softmax=np.log(softmax(x, -1)).astype(F),
    clip=np.clip(x, F(-2), F(3.5)), where=np.where(x > 0, x, F(0)),
    less_beyond=np.ones(5, bool), equal_beyond=np.zeros(5, bool), less_negative=np.zeros(5, bool),
    floor_divide_bool=np.floor_divide(np.array([False, True]), np.array([True, True])),
    assign=x / F(3) + x[1],
)

with open(os.path.join(sys.argv[1], "values.bin"), "wb") as out:
    for name, value in CASES.items():
        value = np.asarray(value)
        out.write(" ".join([name, value.dtype.name, *map(str, value.shape)]).encode() + b"\n" + value.tobytes())
