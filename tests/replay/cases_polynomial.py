# SPDX-License-Identifier: MIT
"""Polynomials, windows, phases, bits, histograms of points."""
import numpy as np

from casewriter import FLOATS, INTEGERS, array, chance, integers, pick, rng, values

NEAR = dict(rtol=1e-5, atol=1e-5)


def coefficients(n=None):
    n = int(rng.integers(1, 6)) if n is None else n
    return pick([values(pick(["float64", "float32", "int64", "complex128", "int16"]), (n,), False), [1, -3, 2],
                 [0, 2.0, 1], np.zeros(n)])


def polynomials(w):
    for _ in range(60):
        p, q = coefficients(), coefficients()
        at = pick([2, 1.5, values("float64", (2, 3), False), values("int32", (4,), False), [1, 2]])
        w.case("polyval", np.polyval, [p, at], rtol=1e-4, atol=1e-4)
        for name in ("polyadd", "polysub", "polymul"):
            w.case(name, getattr(np, name), [p, q], **NEAR)
        w.case("polydiv", np.polydiv, [p, pick([[1, 2], [2.0], [4.0, 0, 1]])], rtol=1e-4, atol=1e-4)
        w.case("polyder", np.polyder, [p, *pick([[], [1], [2], [0], [-1]])], **NEAR)
        w.case("polyint", np.polyint, [p, *pick([[], [1], [3], [0]])], pick([{}, {"k": 3}, {"k": [1, 2, 3]}]), **NEAR)
    for _ in range(20):
        roots = pick([[1, 2, 3], values("float64", (4,), False), values("float64", (3, 3), False), [1 + 1j, 1 - 1j],
                      [1j, 2]])
        w.case("poly", np.poly, [roots], **NEAR)
        w.case("roots", np.roots,
               [pick([[1, -3, 2], [1, 0, -1, 0], [0, 0, 1, -2], [1], [0, 0], [2, 4], [1, 3, 2, 0, 0]])], **NEAR)
        n = int(rng.integers(5, 9))
        x, degree = np.arange(n) / 2 + rng.random(n) * 0.1, int(rng.integers(0, 4))
        y = values("float64", pick([(n,), (n, 2)]), False)
        w.case("polyfit", np.polyfit, [x, y, degree],
               pick([{}, {"w": np.linspace(1, 2, n)}, {"cov": True}, {"cov": "unscaled"}]), rtol=1e-6, atol=1e-6)
    w.case("polyval", np.polyval, [3, 2])
    w.case("polyfit", np.polyfit, [np.ones(3), np.ones(4), 1])


def windows(w):
    for n in (0, 1, 2, 5, 8, 33, -1):
        for name in ("bartlett", "blackman", "hamming", "hanning"):
            w.case(name, getattr(np, name), [n], rtol=1e-12, atol=1e-14)
        for beta in (0, 2.5, 14, 40.0):
            w.case("kaiser", np.kaiser, [n, beta], rtol=1e-11, atol=1e-12)
    for dtype in FLOATS[1:] + INTEGERS:
        w.case("i0", np.i0, [integers(dtype, (3, 4)) if dtype in INTEGERS
                             else (rng.standard_normal(40) * 20).astype(dtype)],
               rtol=1e-5 if dtype == "float32" else 1e-12)
    for dtype in ("float64", "float32", "int32"):
        for _ in range(8):
            x = values(dtype, pick([(7,), (3, 5)]), False) * 3
            kwargs = pick([{}, {"axis": 0}, {"period": 4}, {"period": 5}, {"period": 3.0}, {"discont": 4.0}])
            w.case("unwrap", np.unwrap, [x.astype(dtype)], kwargs, rtol=1e-4, atol=1e-4)


def bits(w):
    for dtype in ["bool", *INTEGERS]:
        for shape in ((9,), (3, 5), (2, 3, 8), (0,), ()):
            x = integers(dtype, shape, 0, 2) if dtype != "bool" else values("bool", shape)
            w.case("packbits", np.packbits, [x],
                   pick([{}, {"axis": -1}, {"axis": 0}, {"bitorder": "little"}, {"axis": 1}]))
    for shape in ((3,), (2, 3), (1, 4, 2)):
        for kwargs in ({}, {"axis": -1}, {"axis": 0, "count": 5}, {"count": -3}, {"axis": -1, "count": 30},
                       {"bitorder": "little"}, {"count": -99}, {"axis": 7}):
            w.case("unpackbits", np.unpackbits, [values("uint8", shape)], kwargs)
    w.case("packbits", np.packbits, [np.ones(3)])
    w.case("unpackbits", np.unpackbits, [np.ones(3, "int16")])


def points(w):
    for _ in range(25):
        x, y = values("float64", (30,), False), values("float64", (30,), False)
        edges = np.array([-3.0, 0, 1, 4])
        kwargs = pick([{}, {"bins": 4}, {"bins": [3, 5]}, {"bins": [edges, np.array([-1.0, 2])]}, {"bins": edges},
                       {"bins": [3, edges]}, {"density": True},
                       {"range": [[-2, 2], [0, 3]]}, {"weights": rng.random(30)}, {"bins": [0, 2]}])
        w.case("histogram2d", np.histogram2d, [x, y], kwargs, rtol=1e-10, atol=1e-12)
        sample = pick([np.stack([x, y], 1), x.reshape(10, 3), [x, y]])
        w.case("histogramdd", lambda *a, **k: flat(np.histogramdd(*a, **k)), [sample],
               pick([{}, {"bins": 3}, {"density": True, "bins": 2}]), rtol=1e-10, atol=1e-12)


def flat(result):
    return (result[0], *result[1])


def write(w):
    for part in (polynomials, windows, bits, points):
        part(w)
    for _ in range(30):
        x = array(pick(["float64", "int32"]), (5,), False)
        conditions = [values("bool", (5,)), values("bool", (5,))]
        w.case("piecewise", np.piecewise, [x, conditions, [1, 2] if chance(0.5) else [1, 2, 3]])
        blocks = [[values("float64", (2, 2)), np.ones((2, 1))], [np.zeros((1, 2)), values("float64", (1, 1))]]
        w.case("block", np.block,
               [pick([blocks, [1, 2], [np.arange(2), 3], blocks[0], [[1], [2]], [blocks[:1]], [[1, 2], [3]]])])
        w.case("sort_complex", np.sort_complex,
               [array(pick(["int8", "int32", "float32", "complex64", "complex128"]), pick([(5,), (3, 4)]), False)])
        w.case("real_if_close", np.real_if_close, [values("complex128", (3,), False).real + pick([0, 1e-15j, 1j])],
               pick([{}, {"tol": 1e-3}, {"tol": 1000}]))
        w.case("broadcast_shapes", lambda *s: [np.asarray(n) for n in np.broadcast_shapes(*s)],
               pick([[(2, 3), (3,)], [(1, 4), (3, 1)], [(2,), (3,)], [5, (1,)]]))
