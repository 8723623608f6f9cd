# SPDX-License-Identifier: MIT
"""Where calls end: casts beyond a dtype's range, arrays for results that do not fit, rules of casting, wrong words,
nothing."""
import platform

import numpy as np

from casewriter import FLOATS, INTEGERS, NEW, REALS, chance, pick, rng, values


def casts(w):
    """What C leaves open, as x86-64 has it. NumPy's vectors differ from its single elements in uint32 beyond int32."""
    beyond = [-0.5, -1.5, -200.7, 300.0, -40000.2, 70000.0, 2e9, -2e9, 3e9, 5e9, -5e9, 2.0**40 + 3, 1e19, -1e19, 1e30,
              np.inf, -np.inf, np.nan]
    for dtype in FLOATS if platform.machine() == "x86_64" else []:
        for to in INTEGERS:
            known = [v for v in beyond if to != "uint32" or -(2.0**31) <= v < 2.0**32]
            x = np.array(known).astype(dtype)
            w.case("astype", lambda v, d: v.astype(d), [x if to != "uint32" else x[np.isfinite(x)], np.dtype(to)])


def misfits(w):
    """`out` of another shape than the result's: an error, but for elementwise functions."""
    calls = dict(sum={"axis": 0}, mean={"axis": 1}, max={}, argmax={"axis": 0}, cumsum={"axis": 1}, median={"axis": 0},
                 var={}, ptp={"axis": 1},
                 any={}, round={"decimals": 1}, trace={}, take={}, concatenate={}, stack={}, dot={})
    for op, kwargs in calls.items():
        x = values("float64", (3, 4), False)
        args = {"take": [x, [0, 2]], "concatenate": [[x, x]], "stack": [[x, x]], "dot": [x, x.T]}.get(op, [x])
        shape = np.shape(getattr(np, op)(*args, **kwargs))
        for other in ((2, *shape), shape, shape[:-1] + (9,)):
            w.case(op, getattr(np, op), args,
                   {**kwargs, "out": np.zeros(other, "int64" if op == "argmax" else "bool" if op == "any"
                                              else "float64")},
                   rtol=1e-12)
    for name in ("add", "multiply", "maximum"):
        method = getattr(np, name)
        for _ in range(8):
            x = values(pick(["int16", "float32", "float64"]), (3, 4), False)
            out = np.zeros(pick([(4,), (3, 4), (2, 4)]), pick(["int64", "float64"]))
            w.case(name + ".reduce", method.reduce, [x], {"out": out}, rtol=1e-5, atol=1e-5)
            w.case(name + ".accumulate", method.accumulate, [x], {"out": out}, rtol=1e-5, atol=1e-5)
    if NEW:
        for name in ("fft", "ifft", "rfft", "irfft"):
            x = values("float64", (6,), False)
            for out in (np.zeros(7, complex), np.zeros(6), np.zeros((2, 6), complex), np.zeros(4, "complex64"),
                        np.zeros(10)):
                w.case("fft." + name, getattr(np.fft, name), [x], {"out": out}, rtol=1e-6, atol=1e-6)


def rules(w):
    for name in ("exp", "sin", "sqrt", "absolute", "negative", "add", "maximum", "equal", "hypot"):
        function = getattr(np, name)
        for _ in range(12):
            args = [values(pick(["bool", "uint8", "int32", "float16", "float64"]), (4,), False)
                    for _ in range(function.nin)]
            w.case(name, function, args, {"dtype": pick(["float32", "float64", "float16", "int64", "bool"]),
                                          "casting": pick(["no", "equiv", "safe", "same_kind", "unsafe"])},
                   rtol=2e-3, atol=2e-3)
    for name in ("place", "putmask"):
        for _ in range(10):
            x = values(pick(REALS), (5,), False)
            w.case(name, lambda a, *v, f=getattr(np, name): (f(a, *v), a)[1],
                   [x, values("bool", (5,)), values(pick(REALS), (3,), False)], mutable=True)
    for _ in range(20):
        parts = [values(pick(REALS), (2,), False) for _ in range(3)]
        w.case("concatenate", np.concatenate, [parts])
    for name in ("tan", "arctan", "isnan", "log1p", "fabs", "conjugate", "deg2rad"):
        w.case(name + ".at", lambda a, *v, f=getattr(np, name): (f.at(a, *v), a)[1],
               [abs(values("float64", (5,), False)), np.array([0, 2, 2])], rtol=1e-12, mutable=True)
    x = values("int32", (5,), False)
    for name in ("add", "divide", "multiply"):
        w.case(name + ".at", lambda a, *v, f=getattr(np, name): (f.at(a, *v), a)[1], [x, [1, 1, 3], 1.5], mutable=True)


def words(w):
    x = values("float64", (3, 4), False)
    for op in ("argmax", "argmin", "cumsum", "cumprod", "nanargmin", "sort", "argsort"):
        w.case(op, getattr(np, op), [x], {"axis": (0,)})
    for side in ("left", "right", "middle"):
        w.case("searchsorted", np.searchsorted, [np.arange(5), 2], {"side": side})
    for order in "CFAKX":
        w.case("zeros_like", np.zeros_like, [x], {"order": order})
        w.case("full", np.full, [(2, 2), 1.5], {"order": order})
        w.case("reshape", np.reshape, [x, (4, 3)], {"order": order})
        w.case("ndarray.reshape", lambda a, s, order: a.reshape(s, order=order), [x, (2, 6)], {"order": order})
        w.case("unravel_index", np.unravel_index, [[5, 7], (3, 4)], {"order": order})
    for word in ("L", "U", "l", "X"):
        w.case("linalg.eigvalsh", np.linalg.eigvalsh, [x[:, :3]], {"UPLO": word}, rtol=1e-9, atol=1e-9)
    for axes in (-1, 0, 1, 2, 3, (0, 1), ([0], [5])):
        w.case("tensordot", np.tensordot, [x, x], {"axes": axes}, rtol=1e-12, atol=1e-12)
    for op, kwargs in (("nanmean", {"dtype": "int32"}), ("nanvar", {"dtype": "int32"}),
                       ("std", {"axis": 0, "dtype": "int32"}),
                       ("repeat", {"repeats": 2.5}), ("squeeze", {"axis": 0}), ("array_split", {"indices_or_sections":
                       2.0})):
        w.case(op, getattr(np, op), [x if op != "squeeze" else np.float64(2)], kwargs)


def nothing(w):
    for shape in ((0,), (3, 0), (0, 3)):
        x = np.zeros(shape, pick(["int32", "float32", "float64"]))
        w.case("partition", np.partition, [x, 0], {"axis": 0 if shape[0] == 0 else -1})
        for op in ("nanquantile", "nanpercentile"):
            w.case(op, getattr(np, op), [x, pick([0.5, [0.1, 0.9]])], {} if chance(0.5)
                   else {"axis": 0, "keepdims": True})
        for op in ("logical_xor", "bitwise_or", "hypot"):
            y = x.astype("bool" if op == "bitwise_or" else x.dtype)
            w.case(op + ".reduce", getattr(np, op).reduce, [y], {"axis": None, "initial": 1})
        w.case("average", np.average, [x], {"axis": -1, "weights": np.ones(shape)} if shape == (0, 3) else {"axis": 0})
        w.case("empty", np.empty, [shape], {"dtype": pick(REALS)})
        w.case("empty_like", np.empty_like, [x])
        w.case("bincount", np.bincount, [[]], {"weights": [1.0, 2.0], "minlength": 3})
    for rows in (1, 3):
        w.case("linalg.lstsq", np.linalg.lstsq, [np.zeros((rows, 0)), rng.standard_normal((rows, 2))], {"rcond": None},
               rtol=1e-12)
    a = rng.standard_normal((2, 4, 3))
    w.case("linalg.pinv", np.linalg.pinv, [a], {"rcond": np.array([1e-3, 0.4])}, rtol=1e-9, atol=1e-9)
    w.case("linalg.matrix_rank", np.linalg.matrix_rank, [a], {"tol": np.array([1e-3, 1.0])})


def corners(w):
    for dtype in ("complex64", "complex128", "float16", "int16"):
        w.case("arange", np.arange, [1, 2, 0.25], {"dtype": np.dtype(dtype)}, rtol=1e-6)
        w.case("geomspace", np.geomspace, [np.array(1, dtype), np.array(8, dtype)], {"num": 4}, rtol=1e-6, atol=1e-6)
    for mode in ("mean", "median", "maximum"):
        w.case("pad", np.pad, [np.array([True, False, False, True, False]), 2, mode])
    x = values("float64", (3, 4), False)
    w.case("reshape", np.reshape, [x, None] if NEW else [x, (12,)])
    w.case("nanvar", np.nanvar, [np.float32(3)], {"axis": 0})
    w.case("mean", np.mean, [2.5], {"axis": -1})
    for conditions in ([x < 0], x < 0, [x < 0, x > 1]):
        for results in ([1, 2], [1], [1, 2, 3]):
            w.case("piecewise", np.piecewise, [x, conditions, results])


def write(w):
    for part in (casts, misfits, rules, words, nothing, corners):
        part(w)
