# SPDX-License-Identifier: MIT
"""Calls at the ends of what is defined: infinities that meet zeros, whole numbers without an inverse, results in wider
dtypes, forms of arguments that a generator may choose."""
import numpy as np

from casewriter import INTEGERS, NEW, array, pick, rng, values

INF, NAN = np.inf, np.nan


def infinities(w):
    """What lies beyond the ends of a convolution counts for nothing, not 0 times infinity; nor do products of
    infinities find a sign."""
    z = np.array([complex(INF, INF),
                  complex(0, INF)])  # two: of more the order of products, a device's own, would decide
    w.case("cumprod", np.cumprod, [z])
    w.case("cumprod", np.cumprod, [z.astype("complex64")])
    for dtype in ("float32", "float64"):
        a = np.array([1, INF, -2, NAN, 0, 3, 4]).astype(dtype)
        b = np.array([2, -1, INF]).astype(dtype)
        for op in ("convolve", "correlate"):
            for mode in ("full", "same", "valid"):
                for x, y in ((a, b), (b, a), (a, b[:1]), (values(dtype, (5,), False), b)):
                    w.case(op, getattr(np, op), [x, y], {"mode": mode}, rtol=1e-4, atol=1e-4)


def whole(w):
    for dtype in INTEGERS:
        w.case("reciprocal", np.reciprocal, [np.array([0, 1, 2, 5, 0]).astype(dtype)])
        w.case("reciprocal", np.reciprocal, [np.zeros((), dtype)])
    big = np.array([2**62 + 1, -(2**62) - 3, 5])
    w.case("quantile", np.quantile, [big, [0, 1]])
    w.case("quantile", np.quantile, [big, 1])
    for value in (1e300, 1e10, -5.0, 300.7, -0.5, NAN, 2.0**63):
        for dtype in ("int16", "uint8", "uint64", "int64"):
            if NEW:  # NumPy 1 lets some wrap around
                w.case("setitem", assign, [np.zeros(3, dtype), 1, value], mutable=True)
                w.case("setitem", assign, [np.zeros(3, dtype), slice(0, 2), [1.0, value]], mutable=True)


def assign(x, *rest):
    index = rest[:-1]
    x[index[0] if len(index) == 1 else index] = rest[-1]
    return x


def wider(w):
    """Interpolated, averaged and counted in another dtype than the operand's."""
    for dtype in ("float16", "float32"):
        x = values(dtype, (3, 7), False)
        for method in ("linear", "hazen", "weibull", "median_unbiased", "interpolated_inverted_cdf"):
            for op, scale in (("quantile", 1), ("percentile", 100), ("nanquantile", 1)):
                q = rng.random(3) * scale
                w.case(op, getattr(np, op), [x, pick([q, list(map(float, q))])],
                       {"axis": pick([0, 1, None]), "method": method}, rtol=1e-12)
    for op in ("quantile", "percentile"):
        q = np.float32(0.3 if op == "quantile" else 30)
        w.case(op, getattr(np, op), [values("float64", (2, 9), False), q], {"axis": 1}, rtol=1e-12)
        w.case(op, getattr(np, op), [np.arange(6.0), q], rtol=1e-12)
    for op in ("var", "std", "nanvar", "nanstd"):
        for dtype in ("complex64", "complex128"):
            x = values(dtype, (4, 5), False)
            for into in ("float32", "float64", "complex128"):
                w.case(op, getattr(np, op), [x], {"dtype": np.dtype(into), "axis": pick([0, None])}, rtol=1e-5)
    for dtype in ("float32", "float64"):
        x, y = values(dtype, (9,), False), values(dtype, (9,), False)
        for kwargs in ({"range": [[-2, 2], [-1, 3]]}, {"bins": [3, 4], "range": [[-9, 9], [-9, 9]], "density": True}):
            w.case("histogram2d", np.histogram2d, [x, y], kwargs, rtol=1e-12)
        w.case("histogram2d", np.histogram2d, [x[:0], y[:0]])
        w.case("histogram_bin_edges", np.histogram_bin_edges, [x, [0, 1, 2]], {"range": [3, 1]})
    for op in ("var", "std"):
        for into in ("int16", "int64", "uint8"):
            w.case(op, getattr(np, op), [values("float64", (17,), False)], {"dtype": np.dtype(into)})
    for dtype in ("float32", "float16", "bool", "complex64"):
        counted = values(dtype, (40,), False)
        w.case("histogram", np.histogram, [values("float64", (40,), False)], {"weights": counted, "bins": 5},
               rtol=2e-7 if dtype != "float16" else 1e-3)
        w.case("histogram", np.histogram, [np.arange(40)], {"weights": counted, "bins": [0, 5, 30, 39]},
               rtol=1e-4 if dtype != "float16" else 5e-2, atol=1e-4 if dtype != "float16" else 5e-2)
    x = values("complex128", (3, 5), False)
    w.case("corrcoef", np.corrcoef, [x], rtol=1e-10, atol=1e-10)
    for into in ("float32", "complex64"):
        for weights in ({"aweights": np.arange(1.0, 6)}, {"fweights": [1, 2, 3, 2, 1]}):
            w.case("cov", np.cov, [values("float32", (3, 5), False)], {"dtype": np.dtype(into), **weights}, rtol=1e-5,
                   atol=1e-5)
    for op in ("modf", "frexp"):
        for dtype in ("int8", "float16", "float32"):
            w.case(op, getattr(np, op), [values(dtype, (4,), False)], {"dtype": np.dtype("float64")})
    for op in ("sum", "mean", "cumsum", "cumprod", "nansum", "nanmean", "var"):
        for dtype in ("float32", "complex64"):
            if op == "var" and dtype == "complex64":
                continue
            x = values(dtype, (3, 9), False)
            out = np.zeros(np.asarray(getattr(np, op)(x, axis=1)).shape, "float64" if dtype == "float32"
                           else "complex128")
            w.case(op, getattr(np, op), [x], {"axis": 1, "out": out}, rtol=1e-5 if op == "var" else 1e-11,
                   atol=1e-11)  # in out's dtype
    for method in ("reduce", "accumulate"):
        x = values("float32", (3, 9), False)
        out = np.zeros((3,) if method == "reduce" else (3, 9))
        w.case(f"add.{method}", getattr(np.add, method), [x], {"axis": 1, "out": out}, rtol=1e-12, atol=1e-12)
    for op in ("nanquantile", "nanpercentile"):
        w.case(op, getattr(np, op), [values("float64", (3, 7), False), 0.25], {"axis": 1, "out": np.zeros(3, "int64")})
    x = values("float64", (2, 3), False)
    w.case("nanmedian", np.nanmedian, [x], {"out": np.zeros((), "uint8")})
    w.case("polyval", np.polyval, [[1.5, -2, 3], values("float32", (4,), False)], rtol=1e-5, atol=1e-6)
    w.case("kron", np.kron, [values("int16", (2, 2), False), 2])
    for dtype in ("float16", "float32", "float64"):
        w.case("spacing", np.spacing, [np.array([0.0, -0.0, 1, -1, INF, NAN]).astype(dtype)])
    x = values("int32", (700,), False)
    w.case("delete", np.delete, [x, slice(None, None, 2)])
    w.case("insert", np.insert, [x, np.arange(300), 7])
    w.case("add.reduceat", np.add.reduceat, [x, np.arange(0, 690, 3)])
    for n in (2, 5, 8, 33):
        for op in ("blackman", "hamming", "hanning", "bartlett"):
            w.case(op, getattr(np, op), [n], rtol=1e-12, atol=1e-18)


def places(w):
    """Unsigned values taken from others, scans of numbers, tuples of numbers as an index."""
    for method in ("add", "subtract"):
        function = getattr(np, method)

        def at(x, i, y, function=function):
            function.at(x, i, y)
            return x

        for dtype in ("float16", "float64", "int32"):
            w.case(f"{method}.at", at, [values(dtype, (5,), False), np.array([0, 3, 3]),
                                        np.array([5, 6, 200], "uint8")], mutable=True)
    for method in ("reduce", "accumulate"):
        for x in ([-3], [2, 3], [[-2, 4]]):
            w.case(f"power.{method}", getattr(np.power, method), [np.array(x)])
    for rule in ("no", "safe", "same_kind"):
        parts = [values("complex64", (3,), False), np.zeros(0, "int32"), values("float32", (3,), False)]
        w.case("concatenate", np.concatenate, [parts], {"casting": rule})
        w.case("concatenate", np.concatenate, [parts[1:]], {"casting": rule})
        w.case("concatenate", np.concatenate, [parts[:1]], {"casting": rule})
    for axes in ([(-2, -1), (-2, -1), (-2, -1)], [(0, 1), (1, 0), (0, 1)], [(1, 2), (0, 1), (0, 2)], [(0, 1)]):
        w.case("matmul", np.matmul, [values("float64", (3, 3, 3), False), values("float64", (3, 3, 3), False)],
               {"axes": axes}, rtol=1e-12, atol=1e-12)
    w.case("minimum.accumulate", np.minimum.accumulate, [values("float32", (2, 3))], {"axis": None})
    w.case("add.reduce", np.add.reduce, [values("float32", (2, 3))], {"initial": 1 + 2j})
    x = array("float64", (3, 4))
    for index in ((1, 2), (-1, 0), (0,)):
        w.case("getitem", lambda a, i: a[tuple(i)], [x, index])
        w.case("setitem", lambda a, i, v: assign(a, tuple(i), v), [x, index, 7.5], mutable=True)
    w.case("getitem", lambda a, i: a[()], [x, ()])
    w.case("getitem", lambda a, i: a[[1, 2]], [x, [1, 2]])

    def resize(a, shape, refcheck):
        a = a.copy()
        a.resize(shape, refcheck=refcheck)
        return a

    for shape in ((2, 2), (3, 5), 4):
        w.case("ndarray.resize", resize, [x[:, :1], shape, False])


def write(w):
    infinities(w)
    whole(w)
    wider(w)
    places(w)
