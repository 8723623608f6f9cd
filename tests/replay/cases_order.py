# SPDX-License-Identifier: MIT
"""Sorting, searching, sets, products."""
import numpy as np

from casewriter import FLOATS, INTEGERS, REALS, SHAPES, array, chance, integers, pick, rng, values

SORTABLE = [s for s in SHAPES if s]
NEAR = {"float16": 3e-2, "float32": 2e-5, "float64": 1e-11}


def sorting(w):
    for dtype in REALS:
        for _ in range(12):
            x = array(dtype, pick(SORTABLE + [(200,), (3, 70)]))
            kwargs = pick([{}, dict(axis=int(rng.integers(-x.ndim, x.ndim))), dict(axis=None)])
            w.case("sort", np.sort, [x], kwargs)
            w.case("argsort", np.argsort, [x], dict(kwargs, kind="stable"))
            y = array(dtype, pick([(9,), (3, 5)]), False)
            k = int(rng.integers(0, y.shape[-1]))
            # whatever the order of a partition is, the k-th element is fixed
            w.case("getitem", lambda v, *i: v[i], [np.sort(y), Ellipsis, k])
            s = np.sort(values(dtype, (int(rng.integers(0, 9)),), False))
            for side in ("left", "right"):
                w.case("searchsorted", np.searchsorted, [s, array(dtype, pick(SHAPES), False)],
                       dict(side=side) if side == "right" else {})
            bins = np.unique(values(dtype, (5,), False)) if dtype != "bool" else np.array([False, True])
            w.case("digitize", np.digitize, [array(dtype, pick(SHAPES), False), bins if chance(0.7) or dtype == "bool"
                                             else bins[::-1].copy()],
                   pick([{}, dict(right=True)]))
    for _ in range(20):
        keys = [rng.integers(0, 3, (8,)), rng.integers(0, 3, (8,)).astype("float64")]
        w.case("lexsort", np.lexsort, [keys])


def sets(w):
    for dtype in REALS:
        for _ in range(8):
            x = array(dtype, pick(SHAPES), chance(0.4))
            w.case("unique", np.unique, [x])
            y = values(dtype, pick([(9,), (30,), (0,)]), False)
            y = y if dtype not in FLOATS else np.round(y)
            w.case("unique", np.unique, [y],
                   pick([dict(return_index=True), dict(return_inverse=True), dict(return_counts=True),
                                                   dict(return_index=True, return_inverse=True, return_counts=True)]))
            a, b = values(dtype, (8,), False), values(dtype, (6,), False)
            a = np.round(a) if dtype in FLOATS else a
            b = np.round(b) if dtype in FLOATS else b
            w.case("isin", np.isin, [a.reshape(2, 4), b], pick([{}, dict(invert=True)]))
            for name in ("intersect1d", "union1d", "setdiff1d", "setxor1d"):
                w.case(name, getattr(np, name), [a, b])


def small(dtype, shape):
    return integers(dtype, shape, -4, 5) if dtype in INTEGERS else values(dtype, shape, False)


def products(w):
    for dtype in REALS:
        near = dict(rtol=NEAR.get(dtype, 0), atol=10 * NEAR.get(dtype, 0))
        other = dtype if chance(0.7) else "float64"
        for _ in range(5):
            for a, b in [((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((2, 3, 4), (4, 2)),
                         ((2, 1, 3, 4), (5, 4, 2)), ((3, 0), (0, 2)), ((0, 3), (3, 2))]:
                if chance(0.4):
                    w.case("matmul", np.matmul, [small(dtype, a), small(dtype, b)], **near)
            for a, b in [((3, 4), (4, 5)), ((), (3,)), ((2, 3, 4), (4,)), ((2, 3), (2, 3, 4)), ((4,), (4,))]:
                w.case("dot", np.dot, [small(dtype, a), small(dtype, b)], **near)
            w.case("inner", np.inner, [small(dtype, (2, 4)), small(dtype, (3, 4))], **near)
            w.case("vdot", np.vdot, [small(dtype, (2, 3)), small(dtype, (2, 3))], **near)
            w.case("outer", np.outer, [small(dtype, (3,)), small(dtype, (2, 2))], **near)
            w.case("kron", np.kron, [small(dtype, pick([(2, 3), (3,), (2, 1, 2)])), small(dtype, pick([(2, 2), (2,)]))],
                   **near)
            w.case("tensordot", np.tensordot, [small(dtype, (2, 3, 4)), small(dtype, (3, 4, 2))],
                   dict(axes=pick([((1, 2), (0, 1)), ((0,), (2,)), ((2, 1), (1, 0))])), **near)
            w.case("tensordot", np.tensordot, [small(dtype, (2, 3)), small(dtype, (3, 4))], dict(axes=pick([0, 1])),
                   **near)
            if dtype != "bool":
                w.case("cross", np.cross, [small(dtype, pick([(3,), (2, 3)])), small(dtype, pick([(3,), (2, 3)]))],
                       **near)
            for text, shapes in [("ij,jk->ik", [(2, 3), (3, 4)]), ("ij->ji", [(2, 3)]), ("ii->i", [(3, 3)]),
                                 ("ii", [(3, 3)]),
                                 ("ij,ij->", [(2, 3), (2, 3)]), ("i,j->ij", [(2,), (3,)]), ("bij,bjk->bik",
                                                                                            [(2, 2, 3), (2, 3, 2)]),
                                 ("...ij,...jk->...ik", [(2, 2, 3), (3, 2)]), ("ij,jk,kl->il",
                                                                               [(2, 3), (3, 2), (2, 4)]),
                                 ("ijk->", [(2, 3, 2)]), ("ij,kj->ik", [(2, 3), (4, 3)]), ("a,ab,abc->abc",
                                                                                           [(2,), (2, 3), (2, 3, 2)]),
                                 ("ij,j", [(2, 3), (3,)]), ("ijij->ij", [(2, 3, 2, 3)]), ("i...->...", [(3, 2)])]:
                if chance(0.5):
                    w.case("einsum", np.einsum, [text, *(small(dtype, s) for s in shapes)], **near)
    x = values("float64", (3, 4), False)
    w.case("matmul", np.matmul, [x, x])
    w.case("matmul", np.matmul, [x, 2.0])
    w.case("dot", np.dot, [x, x])
    w.case("inner", np.inner, [x, x[:, :3]])
    w.case("einsum", np.einsum, ["ij,jk", x])
    w.case("einsum", np.einsum, ["ij,jk->ik", x, x])
    w.case("einsum", np.einsum, ["ij->iq", x])
    w.case("tensordot", np.tensordot, [x, x], dict(axes=1))
    w.case("cross", np.cross, [x, x])


def write(w):
    sorting(w)
    sets(w)
    products(w)
