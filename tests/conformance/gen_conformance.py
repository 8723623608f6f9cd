#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gen_conformance.py FOLDER: what NumPy computes for every operation of tanso/array.h, over dtypes, shapes, views and
extreme values, for test_conformance.c. Writes conformance.bin (see casefile.py). TANSO_TEST_SEED repeats a run.

Operations that round are computed in a wider dtype and carry a bound: so many units in the last place of the result.
"""
import itertools
import math
import warnings

import numpy as np

from casefile import (DTYPES, FLOATS, INTEGERS, SHAPES, numpy_dtype, open_file, operand, pick, rng, stored, to_bfloat16,
                      weak)

warnings.simplefilter("ignore")
np.seterr(all="ignore")
if hasattr(np, "_set_promotion_state"):
    np._set_promotion_state("weak")
out = open_file("conformance.bin")

# ---- what is common -------------------------------------------------------------------------------------------------


def name_of(result, operands):
    """The dtype that stands for NumPy's: bfloat16 for float32 where all operands that count are bfloat16."""
    name = np.asarray(result).dtype.name
    strong = {o.dtype for o in operands if o.dtype != "weak"} - {"bool"}
    return "bfloat16" if name == "float32" and strong == {"bfloat16"} else name


def rounded(result, dtype):
    return to_bfloat16(result) if dtype == "bfloat16" else result


def ulp(result, dtype):
    size = np.abs(np.asarray(result, np.float64))
    if dtype == "bfloat16":
        return np.spacing(np.maximum(size, 2.0**-126).astype(np.float32)).astype(np.float64) * 65536
    below_largest = np.minimum(size, float(np.finfo(dtype).max) / 2)
    return np.spacing(below_largest.astype(dtype)).astype(np.float64)


def wider(x, dtype):
    """x as an operand of a computation in `dtype`, in a dtype to compute the expected value in."""
    x = rounded(np.asarray(x).astype(numpy_dtype(dtype)), dtype)
    return x.astype(np.longdouble if dtype == "float64" else np.float64)


def attempt(operation, function, operands, integers=(), mode="exact"):
    """NumPy's own result, or its refusal."""
    try:
        result = function(*[o.x for o in operands])
    except TypeError:
        out.refused(operation, operands, integers)
        return
    dtype = name_of(result, operands)
    out.exact(operation, operands, rounded(result, dtype), dtype, integers, mode)


def close(operation, function, operands, ulps, integers=(), extra=None, model=np.add):
    """The function in a wider dtype; the result's dtype is that of the model."""
    dtype = name_of(model(*[o.x for o in operands]), operands)
    wide = [wider(o.x, dtype) for o in operands]
    result = function(*wide)
    bound = ulp(result, dtype) * (1 if dtype in ("float16", "bfloat16") else ulps)
    if extra:
        bound = bound + extra(*wide) * np.finfo(numpy_dtype(dtype)).eps
    out.near(operation, operands, result, bound, dtype, integers)


# ---- elementwise ----------------------------------------------------------------------------------------------------

erf, erfc = (np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc))


def of_floats(function):
    """Integers stay as they are, as with NumPy 2.1 and later."""
    return lambda x: function(x) if x.dtype.kind in "fc" else x.copy()


UNARY = dict(
    negative=np.negative, abs=np.abs, square=np.square, sqrt=np.sqrt, floor=of_floats(np.floor),
    ceil=of_floats(np.ceil),
    trunc=of_floats(np.trunc), rint=np.rint, isnan=np.isnan, isinf=np.isinf, isfinite=np.isfinite, signbit=np.signbit,
    logical_not=np.logical_not, invert=np.invert, sign=np.sign, zeros_like=np.zeros_like, ones_like=np.ones_like)
# Bounds in units of the last place: what tests of the scalar functions state, and the C library's own error.
UNARY_NEAR = dict(
    exp=(np.exp, 4), exp2=(np.exp2, 4), expm1=(np.expm1, 4), log=(np.log, 4), log2=(np.log2, 4), log10=(np.log10, 4),
    log1p=(np.log1p, 4), cbrt=(np.cbrt, 6), sin=(np.sin, 4), cos=(np.cos, 4), tan=(np.tan, 6), arcsin=(np.arcsin, 4),
    arccos=(np.arccos, 4), arctan=(np.arctan, 4), sinh=(np.sinh, 6), cosh=(np.cosh, 6), tanh=(np.tanh, 6),
    arcsinh=(np.arcsinh, 6), arccosh=(np.arccosh, 6), arctanh=(np.arctanh, 6), erf=(erf, 6), erfc=(erfc, 8),
    rsqrt=(lambda x: 1 / np.sqrt(x), 4), sigmoid=(lambda x: 1 / (1 + np.exp(-x)), 4),
    softplus=(lambda x: np.logaddexp(x, np.zeros_like(x)), 6))


def unary():
    for name, function in UNARY.items():
        for dtype in DTYPES:
            for _ in range(4):
                mode = "value" if name == "sign" else "exact"
                attempt(name, function, [operand(dtype, pick(SHAPES))], mode=mode)
    for dtype in FLOATS + INTEGERS:
        for _ in range(4):
            attempt("relu", lambda x: np.maximum(x, x.dtype.type(0)), [operand(dtype, pick(SHAPES))], mode="value")
    for dtype in FLOATS:
        for _ in range(4):
            attempt("reciprocal", np.reciprocal, [operand(dtype, pick(SHAPES))])
    for name, (function, ulps) in UNARY_NEAR.items():
        for dtype in DTYPES:
            for _ in range(3):
                close(name, function, [operand(dtype, pick(SHAPES))], ulps, model=np.exp)
    for dtype in FLOATS:
        for _ in range(4): # in the left tail the error grows with the square of x
            x = operand(dtype, pick(SHAPES), "small")
            close("gelu", lambda v: v * erfc(-v / math.sqrt(2)) / 2, [x], 8, model=np.exp,
                  extra=lambda v: np.abs(v) * (v * v + 1) * np.exp(-np.minimum(v * v / 2, 700)))


BINARY = dict(
    add=np.add, subtract=np.subtract, multiply=np.multiply, divide=np.true_divide, floor_divide=np.floor_divide,
    remainder=np.remainder, fmod=np.fmod, maximum=np.maximum, minimum=np.minimum, fmax=np.fmax, fmin=np.fmin,
    copysign=np.copysign, equal=np.equal, not_equal=np.not_equal, less=np.less, less_equal=np.less_equal,
    greater=np.greater, greater_equal=np.greater_equal, logical_and=np.logical_and, logical_or=np.logical_or,
    logical_xor=np.logical_xor, bitwise_and=np.bitwise_and, bitwise_or=np.bitwise_or, bitwise_xor=np.bitwise_xor,
    left_shift=np.left_shift, right_shift=np.right_shift)
BINARY_NEAR = dict(arctan2=(np.arctan2, 4, None), hypot=(np.hypot, 2, None),
                   logaddexp=(np.logaddexp, 4, lambda a, b: np.maximum(np.abs(a), np.abs(b))))
EITHER_ZERO = {"maximum", "minimum", "fmax", "fmin"}


def two_shapes():
    """Shapes that broadcast."""
    shape = pick(SHAPES)
    other = tuple(n if rng.random() < 0.7 else 1 for n in shape)[rng.integers(0, len(shape) + 1):]
    return (shape, other) if rng.random() < 0.5 else (other, shape)


def dtype_pairs(mixed):
    pairs = [(d, d) for d in DTYPES for _ in range(3)]
    usual = [d for d in DTYPES if d != "bfloat16"]
    return pairs + [(pick(usual), pick(usual)) for _ in range(mixed)] + [("bfloat16", "float32"),
                                                                         ("float32", "bfloat16")]


def binary():
    for name, function in BINARY.items():
        mode = "value" if name in EITHER_ZERO else "exact"
        for a, b in dtype_pairs(18):
            shapes = two_shapes()
            x, y = operand(a, shapes[0]), operand(b, shapes[1])
            if name.endswith("shift") and b in INTEGERS:
                y = operand(b, shapes[1], "small")
            attempt(name, function, [x, y], mode=mode)
        for _ in range(8):
            x, y = operand(pick(DTYPES), pick(SHAPES)), weak(pick([2, 0, 1, 0.75, -0.0, 3.5, True]))
            if name == "subtract" and x.dtype == "bool" and y.x is True:
                continue
            if isinstance(y.x, float) and ("bitwise" in name or "shift" in name):
                continue
            attempt(name, function, [x, y] if rng.random() < 0.5 else [y, x], mode=mode)
    for name, (function, ulps, extra) in BINARY_NEAR.items():
        for a, b in dtype_pairs(18):
            shapes = two_shapes()
            close(name, function, [operand(a, shapes[0]), operand(b, shapes[1])], ulps, extra=extra, model=np.arctan2)
    for a, b in dtype_pairs(18):
        shapes = two_shapes()
        whole = a not in FLOATS and b not in FLOATS and np.result_type(a, b).kind != "f"
        x, y = operand(a, shapes[0]), operand(b, shapes[1], "small" if whole else None)
        if whole:
            y = stored(np.abs(y.x) if y.x.dtype != bool else y.x, b)
            attempt("power", np.power, [x, y])
        else:
            close("power", np.power, [x, y], 8, model=np.power)


def three():
    for dtype in DTYPES * 4:
        shape, other = two_shapes()
        c = operand(pick(["bool", "bool", "int32", "float32"]), pick([shape, other, ()]))
        second = weak(1) if rng.random() < 0.2 else operand(dtype if dtype == "bfloat16" else pick(
            [d for d in DTYPES if d != "bfloat16"]), other)
        operands = [c, operand(dtype, shape), second]
        common = np.result_type(operands[1].x, second.x if second.dtype == "weak" else second.x.dtype)
        if second.dtype == "weak":
            common = np.dtype("int64") if dtype == "bool" else numpy_dtype(dtype)
        result = np.where(c.x, operands[1].x.astype(common), np.asarray(second.x).astype(common))
        name = "bfloat16" if dtype == "bfloat16" else common.name
        out.exact("where", operands, result, name)
        if dtype != "bool":
            x, low, high = operand(dtype, shape), operand(dtype, other, "small"), operand(dtype, other, "small")
            attempt("clip", lambda v, lo, hi: np.minimum(np.maximum(v, lo), hi), [x, low, high], mode="value")


def truncated(x, dtype):
    """x as dtype; a float beyond an integer's range is what x86-64 gives: the low bits of 32 or 64, or the least of
    these."""
    if dtype == "bool" or dtype in FLOATS or x.dtype.kind != "f":
        return x.astype(numpy_dtype(dtype))

    def one(v, bits):
        return int(v) if -(2.0 ** (bits - 1)) <= v < 2.0 ** (bits - 1) else -(2 ** (bits - 1))

    size = 8 * np.dtype(dtype).itemsize
    bits = 64 if size == 64 or dtype == "uint32" else 32
    upper = dtype == "uint64"
    whole = [one(v - 2.0**63, 64) + 2**63 if upper and v >= 2.0**63 else one(v, bits)
             for v in x.astype("float64").ravel().tolist()]
    whole = [v % 2**size for v in whole]
    return np.array(whole, f"uint{size}").reshape(x.shape).view(dtype)


def casts():
    for a, b in itertools.product(DTYPES, DTYPES):
        for kind in ("small", "any"):
            x = operand(a, pick(SHAPES), kind)
            result = truncated(x.x, b)
            if b == "bfloat16": # one rounding: float64 and wide integers to float32 would round first
                if a in ("float64", "int32", "int64", "uint32", "uint64"):
                    continue
                result = to_bfloat16(result)
            out.exact("cast", [x], result, b, [DTYPES.index(b)])


# ---- reductions -----------------------------------------------------------------------------------------------------


def pick_axes(ndim):
    count = rng.integers(0, ndim + 1)
    axes = [int(a) for a in rng.permutation(ndim)[:count]]
    return [a - ndim if rng.random() < 0.5 else a for a in axes]


def reduce_arguments(shape, single=False):
    axes = pick_axes(len(shape))[: 1 if single else None]
    keep = bool(rng.integers(2))
    axis = tuple(axes) if axes and not single else axes[0] if axes else None
    return dict(axis=axis, keepdims=keep), [int(keep), 0, 0, len(axes), *axes]


REDUCE_SHAPES = SHAPES + [(17, 5), (4, 3, 6), (130,), (2, 70), (70, 2), (3000,), (1300, 3)]


def reductions():
    for dtype in DTYPES:
        for _ in range(10):
            shape = pick(REDUCE_SHAPES)
            for name, function in (("max", np.max), ("min", np.min), ("any", np.any), ("all", np.all)):
                arguments, integers = reduce_arguments(shape)
                x = operand(dtype, shape)
                try:
                    result = np.asarray(function(x.x, **arguments))
                except ValueError:
                    out.refused(name, [x], integers)
                    continue
                out.exact(name, [x], result, "bool" if name in ("any", "all") else dtype, integers, "value")
            for name, function in (("argmax", np.argmax), ("argmin", np.argmin)):
                arguments, integers = reduce_arguments(shape, single=True)
                x = operand(dtype, shape)
                try:
                    out.exact(name, [x], function(x.x, **arguments), "int64", integers)
                except ValueError:
                    out.refused(name, [x], integers)
            if dtype in FLOATS:
                float_totals(dtype, shape)
            else:
                for name, function in (("sum", np.sum), ("prod", np.prod)):
                    arguments, integers = reduce_arguments(shape)
                    if rng.random() < 0.3:
                        asked = pick(INTEGERS)
                        arguments["dtype"], integers[1] = asked, DTYPES.index(asked) + 1
                    x = operand(dtype, shape)
                    result = function(x.x, **arguments)
                    out.exact(name, [x], result, np.asarray(result).dtype.name, integers)


def counted(x, arguments):
    """Elements that go into one result."""
    return max(1, x.size // max(1, np.sum(x, **arguments).size))


def total_near(operation, operands, result, bound, dtype, integers=()):
    """Whatever the bound, the result is rounded to its dtype once more."""
    out.near(operation, operands, result, bound + ulp(result, dtype), dtype, integers)


def float_totals(dtype, shape):
    eps = float(np.finfo(numpy_dtype(dtype)).eps) * (65536 if dtype == "bfloat16" else 1)
    x = operand(dtype, shape, "small")
    wide = wider(x.x, dtype)
    arguments, integers = reduce_arguments(shape)
    n = counted(wide, arguments)
    size = np.sum(np.abs(wide), **arguments)
    total_near("sum", [x], np.sum(wide, **arguments), eps * n * size, dtype, integers)
    total_near("mean", [x], np.mean(wide, **arguments), eps * (n + 2) * size / n, dtype, integers)
    ratio = stored(np.exp(x.x.clip(-1, 1) / 8).astype(x.x.dtype), dtype) if dtype != "bfloat16" else x
    wide_ratio = wider(ratio.x, dtype)
    product = np.prod(wide_ratio, **arguments)
    if dtype != "bfloat16":
        total_near("prod", [ratio], product, eps * (n + 1) * np.abs(product), dtype, integers)
    ddof = int(rng.integers(0, 2))
    variance = np.var(wide, ddof=ddof, **arguments)
    bound = eps * (n + 8) * np.max(np.abs(wide), initial=0) ** 2
    total_near("var", [x], variance, bound, dtype, [integers[0], 0, ddof, *integers[3:]])
    total_near("std", [x], np.sqrt(variance), np.sqrt(bound), dtype, [integers[0], 0, ddof, *integers[3:]])
    if wide.size:
        largest = np.max(wide, axis=arguments["axis"], keepdims=True)
        total = np.log(np.sum(np.exp(wide - largest), axis=arguments["axis"], keepdims=True)) + largest
        total = total if arguments["keepdims"] else np.squeeze(total, axis=arguments["axis"]) if (
            arguments["axis"] is not None) else total.reshape(())
        total_near("logsumexp", [x], total, eps * (n + 4) * (1 + np.abs(total)), dtype, integers)
    if wide.ndim and wide.size:
        axis = int(rng.integers(-wide.ndim, wide.ndim))
        shifted = wide - wide.max(axis, keepdims=True)
        power = np.exp(shifted)
        total = power.sum(axis, keepdims=True)
        length = wide.shape[axis]
        bound = eps * (length + 8 + np.abs(shifted)) * power / total
        total_near("softmax", [x], power / total, bound, dtype, [axis])
        result = shifted - np.log(total)
        total_near("log_softmax", [x], result, eps * (length + 8) * (1 + np.abs(result)), dtype, [axis])


# ---- products -------------------------------------------------------------------------------------------------------

PRODUCTS = [((3,), (3,)), ((2, 3), (3, 4)), ((5, 7), (7,)), ((7,), (7, 5)), ((2, 3, 4), (2, 4, 5)),
            ((2, 1, 3, 4), (3, 4, 2)),
            ((3, 4), (2, 4, 5)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((1, 1), (1, 1)), ((17, 33), (33, 9)), ((3, 1), (1,
            3))]


def products():
    for dtype in DTYPES:
        for left, right in PRODUCTS:
            kind = "small" if dtype in FLOATS else None
            x, y = operand(dtype, left, kind), operand(dtype, right, kind)
            if dtype not in FLOATS:
                attempt("matmul", np.matmul, [x, y])
                continue
            eps = float(np.finfo(numpy_dtype(dtype)).eps) * (65536 if dtype == "bfloat16" else 1)
            a, b = wider(x.x, dtype), wider(y.x, dtype)
            total_near("matmul", [x, y], a @ b, eps * (left[-1] + 1) * (np.abs(a) @ np.abs(b)), dtype)
    for bad in (((3,), (4,)), ((2, 3), (2, 3)), ((), (3,)), ((2, 3, 4), (3, 4, 5))):
        out.refused("matmul", [operand("float32", bad[0]), operand("float32", bad[1])])


if __name__ == "__main__":
    import parts
    for group in (unary, binary, three, casts, reductions, products):
        group()
    parts.write(out)
    out.out.close()
