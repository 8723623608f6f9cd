#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gen_print.py FOLDER: NumPy's str() and repr() of some thousand arrays, for test_print.c.

Writes print.bin: a line "seed N"; then for each case a line "dtype view length-of-str length-of-repr extent..." with
the bytes of the elements, the str and the repr behind it. view says how the array printed comes from the one stored:
plain, transposed (all axes reversed) or flipped (along every axis). bfloat16 is stored as float32.
"""
import os
import sys
import time

import numpy as np

SEED = int(os.environ.get("TANSO_TEST_SEED") or time.time_ns() % 2**32)
rng = np.random.default_rng(SEED)
np.seterr(all="ignore")
if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    np.set_printoptions(legacy="1.25") # newer ones name the shape of an array they abridge
if hasattr(np, "_set_promotion_state"):
    np._set_promotion_state("weak")  # compares numbers with 1e-4 in their own dtype, as NumPy 2 does

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64".split()
SHAPES = [(), (1,), (0,), (0, 3), (2, 0, 4), (5,), (17,), (40,), (3, 4), (2, 3, 4), (1, 1, 1), (2, 1, 3, 2), (6, 7),
          (3, 30), (2, 2, 2, 2, 2), (1, 1, 1, 1, 1, 1, 1, 2), (101,)]
LARGE = [(1000,), (1001,), (40, 30), (7, 200), (3, 400), (2, 3, 400), (1200, 1), (11, 11, 11), (6, 6, 6, 6), (500, 2),
         (1, 5000)]
SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.1, 1e-4, 9.999e-5, 1e8, 99999999.0, 1e16, 1e-5, 5e-324,
           1e-45, 6e-8,
           65504.0, 3.4e38, 1.7e308, 2.0**-44, 2.0**-9, 1 / 3, 2 / 3, 123456.789, 0.5, 1000.0, 1001.0, 9.5, 99.95,
           16777216.0]


def floats(shape):
    n = int(np.prod(shape))
    kind = rng.integers(12)
    if kind == 0:
        x = rng.standard_normal(n)
    elif kind == 1:
        x = np.round(rng.standard_normal(n) * 100, rng.integers(0, 5))
    elif kind == 2:
        x = rng.integers(-1000, 1000, n).astype(float)
    elif kind == 3:
        x = rng.standard_normal(n) * 10.0 ** rng.integers(-30, 30, n)
    elif kind == 4:
        x = rng.choice(SPECIAL, n)
    elif kind == 5:
        x = 2.0 ** rng.integers(-1074, 1024, n)
    elif kind == 6:
        x = rng.random(n) * 10.0 ** rng.integers(-8, 12)
    elif kind == 7:
        x = rng.integers(0, 2**63, n).view(np.float64)
    elif kind == 8:
        x = np.where(rng.random(n) < 0.1, rng.choice(SPECIAL, n), rng.standard_normal(n))
    elif kind == 9:
        x = np.full(n, rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0]))
    elif kind == 10:
        x = rng.integers(-2**20, 2**20, n) * 2.0**-rng.integers(0, 24)
    else:
        x = 10.0 ** rng.integers(-6, 17, n) * rng.choice([1, 1, -1], n)
    return x.reshape(shape)


def values(dtype, shape):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        reach = [(0, 9), (max(info.min, -5), 100), (info.min, info.max)][rng.integers(3)]
        x = rng.integers(reach[0], reach[1], shape, dtype, endpoint=True)
        return x if rng.random() < 0.8 else np.full(shape, rng.choice([info.min, info.max]), dtype)
    if dtype == "float16" and rng.random() < 0.3:
        return rng.integers(0, 2**16, shape).astype(np.uint16).view(np.float16)
    if dtype == "float32" and rng.random() < 0.3:
        return rng.integers(0, 2**32, shape).astype(np.uint32).view(np.float32)
    x = floats(shape).astype("float32" if dtype == "bfloat16" else dtype)
    if dtype == "bfloat16":
        x = (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return x


def repr_of(x, dtype):
    if dtype != "bfloat16":
        return repr(x)
    head = repr(x)[: repr(x).rindex("dtype=")].rstrip()
    last = len(head) - (head.rfind("\n") + 1)
    return head + (" " if last + len(" dtype=bfloat16)") <= 75 else "\n      ") + "dtype=bfloat16)"


def write(out, dtype, shape):
    x = np.asarray(values(dtype, shape))
    view = ["plain", "transposed", "flipped"][rng.integers(3)]
    shown = {"plain": x, "transposed": x.T, "flipped": np.asarray(np.flip(x))}[view]
    text, code = str(shown).encode(), repr_of(shown, dtype).encode()
    line = " ".join(map(str, [dtype, view, len(text), len(code), *x.shape]))
    out.write(line.encode() + b"\n" + np.ascontiguousarray(x).tobytes() + text + code)


with open(os.path.join(sys.argv[1], "print.bin"), "wb") as out:
    out.write(f"seed {SEED}\n".encode())
    for dtype in ["bool", *INTEGERS, *FLOATS]:
        for shape in SHAPES:
            for _ in range(40 if dtype in FLOATS else 6):
                write(out, dtype, shape)
        for shape in LARGE:
            write(out, dtype, shape)
