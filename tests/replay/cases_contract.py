# SPDX-License-Identifier: MIT
"""What NumPy promises where calls meet the edges of their dtypes: masks of extent 0, what is put beside arrays by
padding, numbers that a dtype does not hold, means that are given, weights, initial values, bins."""
import numpy as np

from casewriter import COMPLEXES, FLOATS, INTEGERS, NEW, REALS, chance, integers, pick, rng, values

ALL = [*REALS, *COMPLEXES]
NEAR = {"float16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


def near(dtype):
    return dict(rtol=NEAR.get(dtype, 1e-11), atol=NEAR.get(dtype, 1e-11))


def refusing(function):
    """As a function that raises what the writer takes for NumPy's refusal."""
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except RuntimeError as error:
            raise ValueError from error
    return call


def changed(function):
    def call(a, *args, **kwargs):
        function(a, *args, **kwargs)
        return a
    return call


def assigned(a, *args):
    a[args[:-1]] = args[-1]
    return a


def masks(w):
    for dtype in ALL:
        for shape in ((5,), (3, 4), (2, 3, 2)):
            x = values(dtype, shape, False)
            none = np.zeros(0, bool)
            for key in ((none,), (Ellipsis, none), (np.zeros((0, *shape[1:]), bool),), (np.zeros((0, 0), bool),)):
                w.case("getitem", lambda v, *i: v[i], [x, *key])
                w.case("setitem", assigned, [x, *key, pick([1, True, values(dtype, (), False)])], mutable=True)
        w.case("put", changed(np.put), [x, np.array([1.0, 0.0]), 1], {"mode": pick(["raise", "wrap", "clip"])},
               mutable=True)
        for number in (1, 300, -1, 2.5, np.nan, 1j):
            w.case("fill_diagonal", changed(np.fill_diagonal), [values(dtype, (3, 3), False), number], mutable=True)
            w.case("insert", np.insert, [values(dtype, (4,), False), pick([0, [1, 3]]), number])
            if NEW:
                w.case("copyto", changed(np.copyto), [values(dtype, (3,), False), number], {"casting": "unsafe"},
                       mutable=True)
        w.case("copyto", changed(np.copyto), [values(dtype, (3,), False), True], {"casting": "no"}, mutable=True)
        if NEW:
            w.case("choose", np.choose, [rng.integers(0, 3, 4), [values(dtype, (4,), False), 2.5, 3j]])
            w.case("select", np.select, [[values("bool", (4,)), values("bool", (4,))], [values("float32", (4,), False),
                                         1j]])


def pads(w):
    for dtype in ALL:
        x = values(dtype, pick([(4,), (2, 3), (1, 4)]), False)
        whole = dtype in INTEGERS
        for value in (2, -1, 2.5, 300, 2**60 + 7, (1, 2), [[i, i + 1] for i in range(x.ndim)], np.nan, 2 + 3j):
            if whole and value != value:
                continue  # what NaN is as an integer differs by dtype
            w.case("pad", np.pad, [x, (1, 2), "constant"], {"constant_values": value})
            drops = isinstance(value, complex) and dtype in ["bool", *FLOATS]  # its imaginary part, with a warning
            if not drops and not (whole and value == 2**60 + 7):
                w.case("pad", np.pad, [x, 3, "linear_ramp"], {"end_values": value}, **near(dtype))
        for kind in ("reflect", "symmetric"):
            w.case("pad", np.pad, [x, pick([2, (1, 5), (7, 0)]), kind], {"reflect_type": "odd"}, **near(dtype))
        for length in (1, (1, 2), 10, 0, -1):
            w.case("pad", np.pad, [x, pick([1, (0, 2)]), pick(["maximum", "minimum"])], {"stat_length": length})


def statistics(w):
    for dtype in ALL:
        for name in ("var", "std", "nanvar", "nanstd"):
            x = values(dtype, (3, 4), False)
            axis = pick([0, 1, None])
            mean = np.mean(x, axis=axis, keepdims=True)
            for known in (mean, mean + 1, 2):
                kwargs = {"axis": axis, "mean": known, "keepdims": bool(chance(0.5))}
                if chance(0.5):
                    kwargs.update(pick([{"ddof": 1}, {"correction": 1}, {"ddof": 5}]))
                if NEW:
                    w.case(name, getattr(np, name), [x], kwargs, rtol=2 * near(dtype)["rtol"], atol=near(dtype)["rtol"])
    for name in ("nanmax", "nanmin"):
        for dtype in FLOATS:
            x = values(dtype, (3, 4), False)
            x[rng.random((3, 4)) < 0.5] = np.nan
            x[1] = np.nan
            for initial in (np.nan, 1.5, -np.inf):
                w.case(name, getattr(np, name), [x], {"axis": pick([0, 1, None]), "initial": initial})
    for kwargs in ({"fweights": [1, 1, 0, 2]}, {"fweights": np.ones(4)}, {"fweights": np.full(4, 0.5)},
                   {"aweights": np.zeros(4)}, {"aweights": rng.random(4), "fweights": [0, 0, 0, 0]},
                   {"fweights": [1, -1, 1, 1]}, {"aweights": -rng.random(4)}, {"dtype": np.dtype("int32")}):
        w.case("cov", refusing(np.cov), [values("float64", (3, 4), False)], kwargs, rtol=1e-9, atol=1e-9)
    for shape in ((2, 0), (0, 3)):
        w.case("cov", refusing(np.cov), [np.zeros(shape)], {"rowvar": False, "aweights": np.zeros(shape[0])})
    for method in ("weibull", "interpolated_inverted_cdf", "linear", "hazen"):
        for name in ("quantile", "nanquantile") if NEW else ():
            w.case(name, getattr(np, name), [integers(pick(INTEGERS), (5,)), np.array([0, 1])], {"method": method},
                   rtol=1e-12)
    if NEW:
        w.case("quantile", np.quantile, [values("float64", (4,), False), 0.5],
               {"method": "inverted_cdf", "weights": np.zeros(4)})


def counts(w):
    x = values("float64", (9,), False)
    for bins in ([], [1], [2, 1, 0], True, np.zeros(0)):
        for weights in (None, np.ones(9), np.ones(9) + 1j, np.ones(3)):
            w.case("histogram", np.histogram, [x], {"bins": bins, "weights": weights})
            w.case("histogram_bin_edges", np.histogram_bin_edges, [x], {"bins": bins, "weights": weights})
    for dtype in [*INTEGERS, *FLOATS]:
        bins = np.unique(values(dtype, (6,), False))
        if dtype in FLOATS and chance(0.7):
            bins = np.append(bins, np.asarray(np.nan, dtype))
        at = values(pick([*INTEGERS, *FLOATS]), (5,), False)
        at = np.where(rng.random(5) < 0.3, np.nan, at) if at.dtype.kind == "f" else at
        for right in (False, True):
            w.case("digitize", np.digitize, [at, bins], {"right": right})
            w.case("digitize", np.digitize, [at, bins[~np.isnan(bins)][::-1].copy()], {"right": right})
    x = values("float64", (6,), False)
    x[rng.random(6) < 0.5] = np.nan
    for axis in (0, -1) if np.lib.NumpyVersion(np.__version__) >= "2.4.0" else ():
        w.case("unique", np.unique, [x], {"axis": axis, "return_counts": True})
    for number in (2**64, 2**63, -2**63, 300):
        for name in ("less", "equal", "greater_equal") if NEW else ():
            w.case(name, getattr(np, name), [values(pick(INTEGERS), (4,)), number])


def folds(w):
    for name in ("bitwise_xor", "bitwise_and", "bitwise_or", "logical_xor", "add", "multiply", "gcd", "maximum"):
        ufunc = getattr(np, name)
        for dtype in ("int8", "uint8", "int32", "uint64"):
            x = integers(dtype, (3, 2, 4), 0, 6)
            for kwargs in ({}, {"where": values("bool", x.shape)}):
                w.case(name + ".reduce", ufunc.reduce, [x], {"axis": pick([(0, 1), (0, 2), (2, 1), None]), "initial": 5,
                                                             "keepdims": bool(chance(0.5)), **kwargs})
        w.case(name + ".reduce", ufunc.reduce, [np.zeros((2, 0), "int32")], {"axis": pick([0, 1]), "initial": None})


def write(w):
    for part in (masks, pads, statistics, counts, folds):
        part(w)
