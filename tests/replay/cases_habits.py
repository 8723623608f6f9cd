# SPDX-License-Identifier: MIT
"""Calls as NumPy's users and its manual write them: orders that ties leave open, lists where arrays are expected,
infinities between."""
import numpy as np

from casewriter import NEW, chance, pick, rng, values


def orders(w):
    """Sorting that need not be stable, with many ties, and partitions: NumPy's orders among equals are its own."""
    for size in (1, 7, 40, 200):
        for dtype in ("int8", "int64", "uint16", "float32", "float64", "bool"):
            x = np.asarray(rng.integers(0, 5, (size,))).astype(dtype)
            y = np.asarray(rng.integers(0, 5, (3, size))).astype(dtype)
            w.case("argsort", np.argsort, [x])
            w.case("argsort", np.argsort, [y],
                   {"axis": pick([0, 1, -1]), "kind": pick(["quicksort", "heapsort", "stable", "mergesort"])})
            w.case("argsort", np.argsort, [y], {"axis": None})
            for op in ("partition", "argpartition"):
                k = int(rng.integers(0, size))
                w.case(op, getattr(np, op), [x, k])
                w.case(op, getattr(np, op), [y, [k, int(rng.integers(-size, size))]], {"axis": 1})
                w.case(op, getattr(np, op), [y, pick([0, 1, 2, -1])], {"axis": 0})
    x = np.array([3.0, np.nan, -1, np.nan, 2])
    w.case("argsort", np.argsort, [x])
    w.case("partition", np.partition, [x, 2])
    w.case("partition", np.partition, [x, 2], {"kind": "nonsense"})
    w.case("searchsorted", np.searchsorted, [x, 1], {"sorter": [0, 1]})


def places(w):
    m = np.array([[1, 1], [2, 2], [3, 3]])
    w.case("insert", np.insert, [m, [1], [[1], [2], [3]]], {"axis": 1})
    w.case("insert", np.insert, [m, 1, [1, 2, 3]], {"axis": 1})
    w.case("insert", np.insert, [m, [1], [7, 8]], {"axis": 0})
    w.case("insert", np.insert, [m, slice(2, 4), [5, 6]])
    if NEW:
        w.case("insert", np.insert, [[1, 2, 3], np.ones(4, bool), 9])
    w.case("insert", np.insert, [[1, 2, 3], np.zeros(0), []])
    w.case("delete", np.delete, [[1, 2, 3], np.zeros(0)])
    w.case("delete", np.delete, [m, [], 0])
    w.case("digitize", np.digitize, [[1, 2], [1.0, 2j]])
    w.case("ravel_multi_index", np.ravel_multi_index, [[0.1, 0.0], (2, 2)])
    w.case("unravel_index", np.unravel_index, [[0], ()])
    w.case("reshape", np.reshape, [m, [np.bool_(True), -1]])
    w.case("size", np.size, [m], {"axis": 1})
    w.case("gradient", np.gradient, [np.ones((5, 5)), np.arange(5.0)], {"axis": (0, 1)})
    w.case("piecewise", np.piecewise, [3, [True, False], [4, 2]])
    w.case("piecewise", np.piecewise, [3, [False, False], [4, 2, 1]])
    w.case("broadcast_to", np.broadcast_to, [np.arange(3), (2, 3)], {"subok": True})
    w.case("choose", np.choose, [[2, 0], [np.arange(2)] * 3])
    w.case("select", np.select, [[np.array([k == 7]) for k in range(100)], [np.array([k]) for k in range(100)]])
    w.case("array", np.array, [[1]], {"ndmin": 65})
    w.case("array", np.array, [[2**64 - 1]], {"dtype": np.dtype("uint64")})
    w.case("arange", np.arange, [10], {"dtype": "p"})
    for ends in ((2**60, 2**60 + 3), (17 * 10**17 + 1, 17 * 10**17 + 901, 100), (-(2**60), -(2**60) - 5, -2),
                 (2**62, 2**62), (5 - 2**63, -(2**63), -2)):
        w.case("arange", np.arange, ends)


def windows(w):
    view = np.lib.stride_tricks.sliding_window_view
    for dtype in ("int32", "float64", "bool", "complex64"):
        x, y = values(dtype, (7,)), values(dtype, (4, 5))
        w.case("lib.stride_tricks.sliding_window_view", view, [x, pick([1, 3, 7, (2,)])])
        w.case("lib.stride_tricks.sliding_window_view", view, [y, (2, 3)])
        w.case("lib.stride_tricks.sliding_window_view", view, [y, pick([2, 4])], {"axis": pick([0, 1, -1])})
        w.case("lib.stride_tricks.sliding_window_view", view, [y, (2, 2)], {"axis": (1, 1)})
        w.case("lib.stride_tricks.sliding_window_view", view, [x, 8])
        w.case("lib.stride_tricks.sliding_window_view", view, [y, 2])
        if NEW:
            for op, shapes in (("matvec", ((4, 5), (5,))), ("matvec", ((3, 4, 5), (3, 5))), ("vecmat", ((4,), (4, 5))),
                               ("matvec", ((4, 5), (4,))),
                               ("vecmat", ((2, 1, 4), (3, 4, 2))), ("matvec", ((5,), (5,)))):
                w.case(op, getattr(np, op), [values(dtype, s, False) for s in shapes], rtol=1e-5, atol=1e-5)
            w.case("matrix_transpose", np.matrix_transpose, [pick([x, y])])
    w.case("mgrid", lambda *s: np.mgrid[s], [slice(0, 3), slice(1, 7, 2)])
    w.case("mgrid", lambda s: np.mgrid[s], [slice(None, 5)])
    w.case("ogrid", lambda *s: np.ogrid[s], [slice(0, 3), slice(1, 7, 2), slice(4)])
    w.case("ndim", np.ndim, [[[1, 2]]])


def numbers(w):
    """Interpolation between infinities and NaN, part by part for complex values."""
    ends = [0.0, 1.0, 10.0, np.inf, -np.inf, np.nan]
    for _ in range(60):
        xp, fp = np.array([pick(ends[:5]) for _ in range(2)]), np.array([pick(ends) for _ in range(2)])
        if xp[0] < xp[1]:
            w.case("interp", np.interp, [pick([0.5, [0.0, 0.5, 2.0]]), xp, fp if chance(0.5) else fp + 1j * fp[::-1]])
    f = np.linspace(0, 1, 5) + 1j
    w.case("interp", np.interp, [[-1.0, 0.3, 2.0], np.linspace(0, 1, 5), f], {"left": 2 + 3j, "right": 1j})
    w.case("interp", np.interp, [[-1.0, 0.3, 2.0], np.linspace(0, 1, 5), f], {"left": -1.0})
    x = np.array([np.inf, -np.inf, np.nan, -1.5])
    z = np.array([np.inf, 1 + 2j, -np.inf, complex(0, np.inf), 3j])
    w.case("power", np.power, [z, 1])
    w.case("power", np.power, [z, 3], rtol=1e-12)
    if NEW:
        w.case("sign", np.sign, [z], rtol=1e-12)
        w.case("isclose", np.isclose, [x, x + 1e-3], {"rtol": [1e-1, 1, 1, 1e-9], "atol": 0.0})
    w.case("geomspace", np.geomspace, [-1, 1], {"num": 5, "dtype": np.dtype("complex128")}, rtol=1e-12, atol=1e-12)
    w.case("nan_to_num", np.nan_to_num, [x], {"nan": np.arange(4.0), "posinf": np.full(4, 7.0)})
    for op in ("frexp", "modf"):
        w.case(op, getattr(np, op), [np.array([1.5, -7.25])], {"out": (np.zeros(2), None)})
    w.case("divmod", np.divmod, [np.array([7, -7]), 3], {"out": (np.zeros(2, "int64"), np.zeros(2))})
    w.case("divmod", np.divmod, [np.array([7, -7]), 3], {"out": (np.zeros(2, "int64"), np.ones(2)),
                                                         "where": np.array([True, False])})
    for rule in ("no", "safe", "same_kind", "unsafe"):
        for to in ("int32", "float32", "float64", "complex64"):
            w.case("astype", lambda v, d, casting: v.astype(d, casting=casting),
                   [values("float32", (3,), False), np.dtype(to)], {"casting": rule})
    w.case("corrcoef", np.corrcoef, [rng.standard_normal((2, 6))], {"dtype": np.dtype("float32")}, rtol=1e-4, atol=1e-5)
    w.case("cov", np.cov, [rng.standard_normal((2, 3))], {"fweights": np.array([1.5, 2.0, 1.0])})


def matrices(w):
    w.case("linalg.lstsq", np.linalg.lstsq, [rng.standard_normal((4, 2)), np.zeros((4, 0))], {"rcond": None}, rtol=1e-9,
           atol=1e-12)
    w.case("linalg.svd", np.linalg.svd, [np.diag([2.0, -1.0])], {"hermitian": True}, rtol=1e-12, atol=1e-12)
    flat = rng.standard_normal((5, 2)) @ rng.standard_normal((2, 4))  # vectors of 0 and of equal values are anybody's
    for x in (flat, flat.astype("float32"), np.ones((4, 4)), np.eye(3), flat @ flat.T,
              np.kron(np.eye(2), [[2.0, 1], [1, 2]]), 1j * np.eye(3)):
        for full in (True, False):
            w.case("linalg.svd", np.linalg.svd, [x], {"full_matrices": full}, rtol=1e-4, atol=1e-4)
        w.case("linalg.qr", np.linalg.qr, [x], rtol=1e-4, atol=1e-4)
        if x.shape[0] == x.shape[1]:
            w.case("linalg.eigh", np.linalg.eigh, [x], {"UPLO": pick(["L", "U"])}, rtol=1e-4, atol=1e-4)
    for x in (np.eye(3), np.kron(np.eye(2), [[2.0, 1], [1, 2]]),
              np.diag([1.0, 2, 2])):  # whose eigenvalues no rounding makes complex
        w.case("linalg.eig", np.linalg.eig, [x], rtol=1e-9, atol=1e-9)
    a = rng.standard_normal((2, 4, 3))
    if NEW:
        w.case("linalg.matrix_rank", np.linalg.matrix_rank, [a], {"rtol": np.array([1e-3, 0.9])})
        w.case("linalg.matrix_rank", np.linalg.matrix_rank, [a[0]], {"tol": 0.1, "rtol": 0.1})
        w.case("linalg.pinv", np.linalg.pinv, [a[0]], {"rcond": 0.1, "rtol": 0.1})
        for axis in ((0, 1), (1, 0), (2, 0), 1):
            many = [axis] if isinstance(axis, int) else axis
            w.case("average", np.average, [a], {"axis": axis, "weights": rng.uniform(1, 2, [a.shape[d] for d in many])},
                   rtol=1e-12)
        w.case("trim_zeros", np.trim_zeros, [np.pad(np.ones((2, 3)), 2)], {"axis": pick([0, -1])})
        w.case("trim_zeros", np.trim_zeros, [np.pad(np.ones((2, 3)), 2), "f"], {"axis": (0, 1)})
        w.case("logspace", np.logspace, [1, 3], {"num": 5, "base": np.array([2.0, 3.0])}, rtol=1e-12)
        w.case("vecdot", np.vecdot, [a, a], {"axis": 1}, rtol=1e-12)
    for dtype in ("float64", "int32", "complex128"):  # windows that would not fit if they were stored
        parts = values(dtype, (3000,), False), values(dtype, (700,), False)
        w.case("convolve", np.convolve, parts, {"mode": pick(["full", "same", "valid"])}, rtol=1e-10, atol=1e-9)
        w.case("correlate", np.correlate, parts, {"mode": pick(["full", "same"])}, rtol=1e-10, atol=1e-9)
    for mode in (0, 1, 2):
        w.case("convolve", np.convolve, [np.arange(5.0), np.ones(3)], {"mode": ("valid", "same", "full")[mode]})


def write(w):
    for part in (orders, places, windows, numbers, matrices):
        part(w)
