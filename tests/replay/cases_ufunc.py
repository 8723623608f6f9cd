# SPDX-License-Identifier: MIT
"""Elementwise functions."""
import numpy as np

from casewriter import FLOATS, INTEGERS, REALS, SHAPES, TOLERANCE, array, chance, pick, rng


def two_shapes():
    """Shapes that broadcast."""
    shape = pick(SHAPES)
    other = tuple(n if chance(0.7) else 1 for n in shape)[rng.integers(0, len(shape) + 1):]
    return (shape, other) if chance(0.5) else (other, shape)


def write(w):
    for name in ["negative", "absolute", "exp"]:
        for dtype in REALS:
            for _ in range(4):
                w.case(name, getattr(np, name), [array(dtype, pick(SHAPES))])
    for name in ["add", "subtract", "multiply"]:
        for _ in range(40):
            a, b = two_shapes()
            w.case(name, getattr(np, name), [array(pick(REALS), a), array(pick(REALS), b)])
