# SPDX-License-Identifier: MIT
"""Operands and the file of cases for gen_conformance.py; test_conformance.c reads it.

Lines of text, each with its bytes (C order) behind it where it names a dtype:
    seed N
    case NUMBER OPERATION COUNT INTEGER...
    in DTYPE VIEW lazy|ready NDIM EXTENT...       the stored array; VIEW makes the operand of it
    in weak int|float|bool NUMBER
    out exact|value DTYPE NDIM EXTENT...          value: zeros of either sign are the same
    out near DTYPE NDIM EXTENT...                 float64 values, then float64 bounds of the absolute error
    out refused | out fails                       an error array | an error when evaluated
Views: plain; transposed (axes reversed); flipped (every axis); strided (every other element of the last axis);
broadcast (twice NDIM extents follow: stored, then broadcast to).
bfloat16, which NumPy lacks, is float32 here, rounded to bfloat16 after each operation.
"""
import os
import sys
import time
from collections import namedtuple

import numpy as np

SEED = int(os.environ.get("TANSO_TEST_SEED") or time.time_ns() % 2**32)
rng = np.random.default_rng(SEED)

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64".split()
DTYPES = ["bool", *INTEGERS, *FLOATS]
SHAPES = [(), (1,), (7,), (33,), (3, 5), (1, 9), (2, 3, 4), (5, 1, 3), (0,), (2, 0), (2, 1, 2, 3), (65,)]
VIEWS = "plain plain transposed flipped strided broadcast".split()

# An array with Tanso's name of its dtype; where it is stored (None: a weak scalar).
Operand = namedtuple("Operand", "x dtype line bytes")


def pick(options):
    return options[rng.integers(len(options))]


def to_bfloat16(x):
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), np.uint32(0x7FC00000), rounded).astype(np.uint32).view(np.float32).reshape(np.shape(x))


def numpy_dtype(dtype):
    return np.dtype("float32" if dtype == "bfloat16" else dtype)


def raw(x, dtype):
    x = np.ascontiguousarray(x, numpy_dtype(dtype))
    return ((x.view(np.uint32) >> 16).astype(np.uint16) if dtype == "bfloat16" else x).tobytes()


def special_floats(dtype):
    info = np.finfo(numpy_dtype(dtype))
    return [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, np.nan, np.inf, -np.inf, float(info.max),
            -float(info.max), float(info.tiny), -float(info.tiny), float(info.tiny) / 4, 100.0, -100.0, np.pi]


def values(dtype, shape, kind=None):
    """kind: small (near zero), any (edges too); None: either."""
    kind = kind or pick(["small", "any", "any"])
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        if kind == "small":
            return rng.integers(max(info.min, -9), 10, shape).astype(dtype)
        edges = [info.min, min(info.min + 1, 0), 0, 1, 2, 3, info.max - 1, info.max] + ([-1, -2] if info.min else [])
        wide = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        edge = np.array([pick(edges) for _ in range(int(np.prod(shape)))], dtype).reshape(shape)
        return np.where(rng.random(shape) < 0.5, edge, wide).astype(dtype)
    x = rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 2)
    if kind == "any":
        if rng.random() < 0.3:
            x = x * 10.0 ** rng.integers(-5, 6, shape)
        x = np.where(rng.random(shape) < 0.3, rng.choice(special_floats(dtype), shape), x)
    x = np.asarray(x).astype(numpy_dtype(dtype))
    return to_bfloat16(x) if dtype == "bfloat16" else x


def stored(x, dtype, view="plain"):
    """The operand x, stored so that the view of it is x; strided and broadcast need what operand() gives."""
    base, target = np.asarray(x), ()
    if view == "transposed":
        base = base.T
    elif view == "flipped":
        base = np.flip(base)
    elif view == "strided":
        base = np.repeat(base, 2, axis=-1)
        base[..., 1::2] = values(dtype, base[..., 1::2].shape)
    elif view == "broadcast":
        target = base.shape
        base = base[tuple(slice(0, 1) if s == 0 else slice(None) for s in base.strides)]
    line = ["in", dtype, view, pick(["lazy", "ready"]), base.ndim, *base.shape, *target]
    return Operand(np.asarray(x), dtype, " ".join(map(str, line)), raw(base, dtype))


def operand(dtype, shape, kind=None, plain=False):
    view = "plain" if plain or not shape else pick(VIEWS)
    if view == "broadcast" and all(shape):
        x = values(dtype, tuple(n if rng.random() < 0.5 else 1 for n in shape), kind)
        spread = np.broadcast_to(x, shape)
        if all(s == 0 or n == m for s, n, m in zip(spread.strides, x.shape, shape)):
            spread = np.lib.stride_tricks.as_strided(
                x, shape, [0 if n == 1 else s for n, s in zip(x.shape, x.strides)])
            return stored(spread, dtype, view)
    if view == "broadcast":
        view = "flipped"
    return stored(values(dtype, shape, kind), dtype, view)


def weak(number):
    kind = "bool" if isinstance(number, bool) else "int" if isinstance(number, int) else "float"
    text = float(number).hex() if kind == "float" else int(number)
    return Operand(number, "weak", f"in weak {kind} {text}", b"")


class File:
    def __init__(self, path):
        self.out = open(path, "wb")
        self.out.write(f"seed {SEED}\n".encode())
        self.count = 0

    def write(self, line, data=b""):
        self.out.write(line.encode() + b"\n" + data)

    def start(self, operation, operands, integers=()):
        self.write(" ".join(map(str, ["case", self.count, operation, len(integers), *integers])))
        self.count += 1
        for o in operands:
            self.write(o.line, o.bytes)

    def exact(self, operation, operands, result, dtype, integers=(), mode="exact"):
        self.start(operation, operands, integers)
        result = np.asarray(result)
        self.write(" ".join(map(str, ["out", mode, dtype, result.ndim, *result.shape])), raw(result, dtype))

    def near(self, operation, operands, result, bound, dtype, integers=()):
        self.start(operation, operands, integers)
        result = np.asarray(result)
        bound = np.broadcast_to(np.nan_to_num(np.asarray(bound, np.float64), posinf=0), result.shape)
        data = np.ascontiguousarray(result, np.float64).tobytes() + np.ascontiguousarray(bound).tobytes()
        self.write(" ".join(map(str, ["out", "near", dtype, result.ndim, *result.shape])), data)

    def refused(self, operation, operands, integers=(), word="refused"):
        self.start(operation, operands, integers)
        self.write(f"out {word}")


def open_file(name):
    return File(os.path.join(sys.argv[1], name))
