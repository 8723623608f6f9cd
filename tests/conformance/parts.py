# SPDX-License-Identifier: MIT
"""The cases of gen_conformance.py that move elements: views, joins, indexing, creation, assignment."""
import numpy as np

from casefile import (DTYPES, FLOATS, INTEGERS, SHAPES, numpy_dtype, operand, pick, rng, stored, to_bfloat16, values,
                      weak)

NONE = -(2**63)
FULL = [s for s in SHAPES if s and all(s)] + [(4, 6), (3, 2, 5)]


def rearranged(shape):
    """Another shape of as many elements, perhaps with one extent left open."""
    size = int(np.prod(shape))
    options = [(size,), (1, size), (size, 1)] + [(n, size // n) for n in (2, 3, 5) if size and size % n == 0]
    new = list(pick(options))
    if size and rng.random() < 0.4:
        new[rng.integers(len(new))] = -1
    return new


def bound(n):
    return NONE if rng.random() < 0.3 else int(rng.integers(-n - 2, n + 3))


def ranges(shape, count):
    return [[bound(n), bound(n), int(pick([1, 1, 2, 3, -1, -2]))] for n in shape[:count]]


def as_slices(rows):
    return tuple(slice(*[None if v == NONE else v for v in row]) for row in rows)


def views(out, dtype):
    x = operand(dtype, pick(SHAPES))
    new = rearranged(x.x.shape)
    out.exact("reshape", [x], x.x.reshape(new), dtype, new)
    out.exact("flatten", [x], x.x.reshape(-1), dtype)
    x = operand(dtype, pick(FULL))
    ndim = x.x.ndim
    order = [int(a) for a in rng.permutation(ndim)]
    out.exact("transpose", [x], x.x.transpose(order), dtype, order)
    out.exact("transpose", [x], x.x.T, dtype)
    a, b = (int(v) for v in rng.integers(-ndim, ndim, 2))
    out.exact("swapaxes", [x], x.x.swapaxes(a, b), dtype, [a, b])
    axis = int(rng.integers(-ndim - 1, ndim + 1))
    out.exact("expand_dims", [x], np.expand_dims(x.x, axis), dtype, [axis])
    out.exact("squeeze", [x], x.x.squeeze(), dtype)
    lead = [int(v) for v in rng.integers(0, 4, rng.integers(0, 3))]
    small = operand(dtype, tuple(1 if rng.random() < 0.5 else n for n in x.x.shape))
    target = lead + list(x.x.shape)
    out.exact("broadcast_to", [small], np.broadcast_to(small.x, target), dtype, target)
    axes = sorted(int(v) for v in rng.permutation(ndim)[: rng.integers(0, ndim + 1)])
    out.exact("flip", [x], np.flip(x.x, axes or None), dtype, axes)


def slices(out, dtype):
    x = operand(dtype, pick(FULL))
    ndim = x.x.ndim
    rows = ranges(x.x.shape, rng.integers(0, ndim + 1))
    out.exact("slice", [x], x.x[as_slices(rows)], dtype, sum(rows, []))
    axis = int(rng.integers(-ndim, ndim))
    row = ranges((x.x.shape[axis],), 1)[0]
    index = [slice(None)] * ndim
    index[axis] = as_slices([row])[0]
    out.exact("slice_axis", [x], x.x[tuple(index)], dtype, [axis, *row])
    i = int(rng.integers(-x.x.shape[0], x.x.shape[0]))
    out.exact("index", [x], x.x[i], dtype, [i])
    rows = ranges(x.x.shape, rng.integers(1, ndim + 1))
    y = x.x.copy()
    window = y[as_slices(rows)]
    value = operand(dtype,
                    tuple(n if rng.random() < 0.6 else 1 for n in window.shape)[rng.integers(0, window.ndim + 1):])
    window[...] = value.x
    out.exact("slice_update", [x, value], y, dtype, sum(rows, []))
    out.refused("index", [x], [x.x.shape[0]])


def joins(out, dtype):
    shape = pick(FULL)
    axis = int(rng.integers(-len(shape), len(shape)))
    parts = []
    for _ in range(rng.integers(1, 5)):
        extents = list(shape)
        extents[axis] = int(rng.integers(0, 5))
        parts.append(operand(dtype, tuple(extents)))
    out.exact("concatenate", parts, np.concatenate([p.x for p in parts], axis), dtype, [axis])
    axis = int(rng.integers(-len(shape) - 1, len(shape) + 1))
    parts = [operand(dtype, shape) for _ in range(rng.integers(1, 4))]
    out.exact("stack", parts, np.stack([p.x for p in parts], axis), dtype, [axis])
    axis, sections = int(rng.integers(0, len(shape))), int(rng.integers(1, 4))
    extents = list(shape)
    extents[axis] *= sections
    x, which = operand(dtype, tuple(extents)), int(rng.integers(0, sections))
    out.exact("split", [x], np.split(x.x, sections, axis)[which], dtype, [sections, axis, which])
    if dtype != "bfloat16":
        other = operand(pick([d for d in DTYPES if d != "bfloat16"]), shape)
        x = operand(dtype, shape)
        result = np.concatenate([x.x, other.x])
        out.exact("concatenate", [x, other], result, result.dtype.name, [0])


def indices(n, shape, kind=None):
    dtype = kind or pick(["int64", "int32", "int8", "uint8"])
    low = 0 if dtype == "uint8" else -n
    return stored(rng.integers(low, n, shape).astype(dtype), dtype, pick(["plain", "flipped"]) if shape else "plain")


def indexing(out, dtype):
    x = operand(dtype, pick(FULL))
    axis = int(rng.integers(-x.x.ndim, x.x.ndim))
    n = x.x.shape[axis]
    i = indices(n, pick([(), (3,), (2, 3), (0,), (5,)]))
    out.exact("take", [x, i], np.take(x.x, i.x.astype(np.int64), axis), dtype, [axis])
    extents = list(x.x.shape)
    extents[axis] = int(rng.integers(1, 5))
    i = indices(n, tuple(extents))
    out.exact("take_along_axis", [x, i], np.take_along_axis(x.x, i.x.astype(np.int64), axis), dtype, [axis])
    out.refused("take", [x, stored(np.array([0, n]), "int64")], [axis], word="fails")
    if dtype == "bool":
        return
    x = operand(dtype, pick(FULL), "small")
    axis = int(rng.integers(-x.x.ndim, x.x.ndim))
    i = indices(x.x.shape[axis], pick([(), (3,), (2, 3), (7,)]))
    shape = np.take(x.x, i.x.astype(np.int64), axis).shape
    added = stored(np.broadcast_to(values(dtype, (), "small"), shape), dtype) if rng.random() < 0.2 else operand(
        dtype, shape, "small")
    y = np.moveaxis(x.x.copy(), axis, 0)
    spread = np.moveaxis(added.x, range(axis % x.x.ndim, axis % x.x.ndim + i.x.ndim), range(i.x.ndim))
    for at in np.ndindex(i.x.shape): # in order, rounded after each addition
        row = y[i.x[at]] + spread[at]
        y[i.x[at]] = to_bfloat16(row) if dtype == "bfloat16" else row
    out.exact("scatter_add", [x, i, added], np.moveaxis(y, 0, axis), dtype, [axis])
    i = stored(rng.integers(-2, 6, pick([(), (4,), (2, 3)])), "int64")
    result = (i.x[..., None] == np.arange(5)).astype(numpy_dtype(dtype))
    out.exact("one_hot", [i], result, dtype, [5, DTYPES.index(dtype)])


def creation(out, dtype):
    number = DTYPES.index(dtype)
    kind = numpy_dtype(dtype)
    shape = list(pick(SHAPES))
    out.exact("zeros", [], np.zeros(shape, kind), dtype, [number, *shape])
    out.exact("ones", [], np.ones(shape, kind), dtype, [number, *shape])
    value = int(rng.integers(0, 2 if dtype == "bool" else 100))
    out.exact("full", [], np.full(shape, value, kind), dtype, [number, value, *shape])
    out.exact("scalar", [], np.asarray(value, kind), dtype, [number, value])
    n, m = (int(v) for v in rng.integers(0, 7, 2))
    out.exact("eye", [], np.eye(n, m, dtype=kind), dtype, [number, n, m])
    if dtype in ("bool", "bfloat16"):
        return
    start, count, step = int(rng.integers(0, 20)), int(rng.integers(0, 20)), int(rng.integers(1, 5))
    out.exact("arange", [], np.arange(start, start + count, step, dtype=kind), dtype,
              [number, start, start + count, step])
    stop = start + int(rng.integers(0, 40))
    out.exact("linspace", [], np.linspace(start, stop, count + 1, dtype=kind), dtype, [number, start, stop, count + 1])


def assignment(out, dtype):
    shape = pick(FULL)
    x = operand(dtype, shape, "small")
    y = operand(dtype, shape[rng.integers(0, len(shape) + 1):], "small")
    steps = dict(assign=lambda a, b: np.broadcast_to(b, a.shape), add_assign=np.add, multiply_assign=np.multiply)
    if dtype != "bool":
        steps["subtract_assign"] = np.subtract
    if dtype in FLOATS:
        steps["divide_assign"] = np.true_divide
    for name, function in steps.items():
        result = function(x.x, y.x)
        out.exact(name, [x, y], to_bfloat16(result) if dtype == "bfloat16" else result, dtype)
    if dtype in INTEGERS:
        divisor = weak(2)
        quotient = np.trunc(np.true_divide(x.x, 2)).astype(dtype)
        out.exact("divide_assign", [x, divisor], quotient, dtype)


def write(out):
    for dtype in DTYPES:
        for _ in range(4):
            for group in (views, slices, joins, indexing, creation, assignment):
                group(out, dtype)
