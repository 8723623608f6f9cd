# SPDX-License-Identifier: MIT
"""numpy.linalg: batches, all modes, matrices for which there is no result. Vectors have LAPACK's signs, as NumPy's."""
import numpy as np

from casewriter import chance, laid_out, pick, rng

DTYPES = ["float32", "float64", "complex64", "complex128", "int32"]
BATCHES = [(), (), (1,), (3,), (2, 3), (0,)]
linalg = np.linalg


def has_result(f, *args):
    try:
        f(*args)
        return True
    except ValueError:
        return False


# Newer versions of NumPy know the norm and the rank of nothing.
KNOWS_EMPTY = has_result(linalg.norm, np.zeros(0), np.inf) and has_result(linalg.matrix_rank, np.zeros((0, 3)))


def tolerance(*arrays):
    single = any(a.dtype.name in ("float32", "complex64") for a in arrays)
    return {"rtol": 2e-3 if single else 1e-7, "atol": 2e-4 if single else 1e-9}


def matrix(dtype, *shape):
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    if dtype.startswith("int"):
        return laid_out(rng.integers(-5, 6, shape).astype(dtype))
    return laid_out(x.astype(dtype))


def square(dtype, batch, n):
    """Well conditioned: of one that is not, the result is as its rounding happens to be."""
    while True:
        a = matrix(dtype, *batch, n, n)
        a = laid_out((a + (4 + n) * np.eye(n)).astype(a.dtype))
        if np.all(linalg.cond(a) < 1000):
            return a


def positive(dtype, batch, n):
    a = matrix(dtype, *batch, n, n)
    return laid_out((a @ a.swapaxes(-1, -2).conj() + n * np.eye(n)).astype(a.dtype))


def hermitian(dtype, batch, n):
    a = matrix(dtype, *batch, n, n)
    return laid_out(((a + a.swapaxes(-1, -2).conj()) + np.diag(np.arange(n) * 3.0)).astype(a.dtype))


def cond(a, order):
    """Real, which older versions of NumPy forget where they go by an inverse."""
    return np.asarray(linalg.cond(a, order)).real


def write(w):
    for dtype in DTYPES:
        for batch in BATCHES:
            for n in [1, 2, 3, 5, 8]:
                a = square(dtype, batch, n)
                t = tolerance(a)
                for name in ["inv", "det", "slogdet"]:
                    w.case("linalg." + name, getattr(linalg, name), [a], **t)
                w.case("linalg.solve", linalg.solve, [a, matrix(dtype, *batch, n, 3)], **t)
                if batch == ():
                    w.case("linalg.solve", linalg.solve, [a, matrix("float64", n)], **t)
                    w.case("linalg.solve", linalg.solve, [a, matrix(dtype, 2, n, 2)], **t)
                w.case("linalg.matrix_power", linalg.matrix_power, [a, pick([0, 1, 2, 3, 4, 5])], **t)
                if not dtype.startswith("int"):
                    w.case("linalg.matrix_power", linalg.matrix_power, [a, pick([-1, -2, -3])], **t)
                p = positive(dtype, batch, n)
                w.case("linalg.cholesky", linalg.cholesky, [p], **tolerance(p))
                h = hermitian(dtype, batch, n)
                for uplo in ["L", "U"]:
                    w.case("linalg.eigvalsh", linalg.eigvalsh, [h], {"UPLO": uplo}, **tolerance(h))
                    w.case("linalg.eigh", linalg.eigh, [h, uplo], **tolerance(h))
                g = matrix(dtype, *batch, n, n)
                if not dtype.startswith("int"):
                    w.case("linalg.eig", linalg.eig, [g], **tolerance(g))
                    w.case("linalg.eigvals", linalg.eigvals, [g], **tolerance(g))
                w.case("linalg.eigvals", linalg.eigvals, [h.real.copy()], **tolerance(h))
                w.case("linalg.cond", linalg.cond, [a], **t)
                for order in [None, 1, -1, 2, -2, np.inf, -np.inf, "fro"]:
                    w.case("linalg.cond", cond, [a, order], **t)
        for batch in BATCHES:
            for m, n in [(1, 1), (1, 4), (4, 1), (3, 5), (5, 3), (4, 4)]:
                a = matrix(dtype, *batch, m, n)
                t = tolerance(a)
                for mode in ["reduced", "complete", "r", "raw"]:
                    w.case("linalg.qr", linalg.qr, [a], {"mode": mode}, **t)
                if not dtype.startswith("int"):
                    for full in [True, False]:
                        w.case("linalg.svd", linalg.svd, [a], {"full_matrices": full}, **t)
                w.case("linalg.svd", linalg.svd, [a], {"compute_uv": False}, **t)
                if not dtype.startswith("int"):
                    w.case("linalg.pinv", linalg.pinv, [a], **t)
                w.case("linalg.matrix_rank", linalg.matrix_rank, [a])
        if KNOWS_EMPTY:
            for shape in [(0, 3), (3, 0), (2, 0, 3), (0, 0)]:
                w.case("linalg.matrix_rank", linalg.matrix_rank, [matrix(dtype, *shape)])
        for m, n in [(4, 4), (6, 3), (3, 6), (5, 1), (1, 5)]:
            a = matrix(dtype, m, n)
            if dtype.startswith("int"):
                a = a + 7 * np.eye(m, n, dtype=a.dtype)
            t = tolerance(a)
            w.case("linalg.lstsq", linalg.lstsq, [a, matrix(dtype, m)], {"rcond": None}, **t)
            w.case("linalg.lstsq", linalg.lstsq, [a, matrix(dtype, m, 2)], {"rcond": None}, **t)
        low = matrix(dtype, 5, 1) @ matrix(dtype, 1, 4)
        w.case("linalg.matrix_rank", linalg.matrix_rank, [low])
        if not dtype.startswith("int"):
            w.case("linalg.matrix_rank", linalg.matrix_rank, [low], {"tol": 0.5})
        w.case("linalg.matrix_rank", linalg.matrix_rank, [matrix(dtype, 4)])
        for shape in [(), (1,), (6,), (3, 4), (2, 3, 4), (0,), (2, 0), (4, 1)]:
            x = matrix(dtype, *shape)
            t = tolerance(x)
            for keepdims in [False, True]:
                w.case("linalg.norm", linalg.norm, [x], {"keepdims": keepdims}, **t)
                for order in [None, 0, 1, 2, 3, 0.5, -1, -2, np.inf, -np.inf, "fro", "nuc"]:
                    if x.size == 0 and order in [1, 2, np.inf] and not KNOWS_EMPTY:
                        continue
                    w.case("linalg.norm", linalg.norm, [x, order], {"keepdims": keepdims}, **t)
                    for axis in range(-len(shape), len(shape)):
                        if chance(0.5):
                            w.case("linalg.norm", linalg.norm, [x, order, axis, keepdims], **t)
                    if len(shape) > 1:
                        axes = [int(a) for a in rng.permutation(len(shape))[:2]]
                        w.case("linalg.norm", linalg.norm, [x, order, tuple(axes), keepdims], **t)
        for sizes in [(2, 3, 4), (5, 1, 6, 2), (3, 7, 2, 5, 4)]:
            parts = [matrix(dtype, a, b) for a, b in zip(sizes, sizes[1:])]
            w.case("linalg.multi_dot", linalg.multi_dot, [parts], **tolerance(parts[0]))
            w.case("linalg.multi_dot", linalg.multi_dot, [[parts[0][0], *parts[1:-1], parts[-1][:, 0]] if len(parts) > 2
                                                          else parts],
                   **tolerance(parts[0]))
            whole = linalg.multi_dot(parts)
            for out in [np.zeros(whole.shape, whole.dtype), np.zeros(whole.shape, np.complex128),
                        np.zeros(whole.shape[::-1], whole.dtype)]:
                w.case("linalg.multi_dot", linalg.multi_dot, [parts], {"out": out}, **tolerance(parts[0]))
    for name in ["inv", "det", "solve", "cholesky", "eigh", "eigvals", "slogdet"]:
        second = [np.ones(2)] if name == "solve" else []
        for bad in [np.ones((2, 3)), np.ones(3), np.float64(2), np.ones((2, 2), np.float16)]:
            w.case("linalg." + name, getattr(linalg, name), [np.asarray(bad), *second])
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    for name in ["inv", "det", "slogdet", "cond"]:
        w.case("linalg." + name, getattr(linalg, name), [np.zeros((2, 2))])
    w.case("linalg.solve", linalg.solve, [np.zeros((2, 2)), np.ones(2)])
    w.case("linalg.cond", linalg.cond, [np.zeros((2, 2)), 1])
    w.case("linalg.cholesky", linalg.cholesky, [-np.eye(3)])
    w.case("linalg.eig", linalg.eig, [np.array([[1.0, np.nan], [0, 1]])])
    w.case("linalg.matrix_rank", linalg.matrix_rank, [singular])
    w.case("linalg.pinv", linalg.pinv, [singular], rtol=1e-9)
    w.case("linalg.matrix_power", linalg.matrix_power, [np.ones((2, 3)), 2])
    w.case("linalg.multi_dot", linalg.multi_dot, [[np.ones((2, 3)), np.ones((2, 3))]])
    for name in ["inv", "det", "eigvalsh", "slogdet", "cholesky"]:
        w.case("linalg." + name, getattr(linalg, name), [np.zeros((0, 0))])
    for dtype, shape in [("float64", (150, 150)), ("complex64", (140, 130)), ("float32", (2, 130, 160))]:
        a = matrix(dtype, *shape)
        t = tolerance(a)
        w.case("linalg.svd", linalg.svd, [a], {"compute_uv": False}, **t)
        w.case("linalg.matrix_rank", linalg.matrix_rank, [a])
        w.case("linalg.pinv", linalg.pinv, [a], **tolerance(a))
        w.case("linalg.norm", linalg.norm, [a, "nuc", (-2, -1)], **t)
        if len(shape) == 2:
            w.case("linalg.lstsq", linalg.lstsq, [a, matrix(dtype, shape[0], 2)], {"rcond": None}, **t)
            h = a[:130, :130] + a[:130, :130].T.conj()
            w.case("linalg.eigvalsh", linalg.eigvalsh, [h], **t)
            w.case("linalg.cond", cond, [a, 2], **t)
