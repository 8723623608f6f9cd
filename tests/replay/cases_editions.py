# SPDX-License-Identifier: MIT
"""What NumPy 1 answers otherwise than NumPy 2, where NumPy 1 is running: promotion by values above all. With NumPy 2,
its own answers."""
import numpy as np

import casewriter
from casewriter import NEW, REALS, chance, pick, rng, values

NUMBERS = [0, 5, -1, 200, 300, -200, 70000, -70000, 2**31, 2**40, 0.5, 1e5, float("nan"), True]
OF_TWO = "add subtract multiply divide maximum fmin equal less logical_or".split()


def promotion(w):
    for _ in range(300):
        name = pick(OF_TWO)
        x, y = values(pick(REALS), (4,), False), pick(NUMBERS) if chance(0.5) else values(pick(REALS), (), False)
        args = [x, y] if chance(0.5) else [y, x]
        w.case(name, getattr(np, name), args, rtol=4e-3, atol=1e-3)
        if chance(0.2):
            w.case(name + ".outer", getattr(np, name).outer, args, rtol=4e-3, atol=1e-3)
    for _ in range(40):
        x, low, high = values(pick(REALS), (5,), False), pick(NUMBERS[:6]), values(pick(REALS), (), False)
        w.case("where", np.where, [values("bool", (5,)), x, low])
        w.case("clip", np.clip, [x, low, high])


def functions(w):
    for dtype in REALS:
        for name in ("floor", "ceil", "trunc", "fix", "sinc"):
            w.case(name, getattr(np, name), [values(dtype, (3,), False)], rtol=4e-3, atol=1e-3)
        x = values(dtype, (6,), False)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn"):
            if NEW and dtype == "float16":
                continue
            w.case("fft." + name, getattr(np.fft, name), [x], rtol=1e-5, atol=1e-5)
        w.case("unique", np.unique, [values(dtype, (2, 3), False)], {"return_inverse": True})
    for dtype in ("complex64", "complex128"):
        x = rng.integers(-2, 3, 8) + 1j * rng.integers(-2, 3, 8)
        w.case("sign", np.sign, [x.astype(dtype)], rtol=1e-6)
        w.case("fft.fft", np.fft.fft, [x.astype(dtype)], rtol=1e-5, atol=1e-5)
    for shape in ((2, 3), (2, 3, 1), *([(3,)] if NEW else [])):
        a = rng.standard_normal((2, 3, 3)) + 4 * np.eye(3)
        w.case("linalg.solve", np.linalg.solve, [a, rng.standard_normal(shape)], rtol=1e-9, atol=1e-9)
    for dtype in ("uint8", "uint16", "int8"):
        x = values(dtype, (4,), False)
        for value in (-1, 300):
            w.case("setitem", lambda a, *v: (a.__setitem__(*v), a)[1], [x, 1, value], mutable=True)
            w.case("full_like", np.full_like, [x, value])
            w.case("max", np.max, [x], {"initial": value})


def write(w):
    casewriter.legacy = True
    if not NEW and hasattr(np, "_set_promotion_state"):
        np._set_promotion_state("legacy")
    for part in (promotion, functions):
        part(w)
    if not NEW and hasattr(np, "_set_promotion_state"):
        np._set_promotion_state("weak")
    casewriter.legacy = False
