# SPDX-License-Identifier: MIT
"""Indexing, taking, putting, choosing."""
import numpy as np

from casewriter import FLOATS, REALS, SHAPES, array, chance, pick, rng, values


def get(x, *keys):
    return x[tuple(keys)] if len(keys) != 1 else x[keys[0]]


def set_(x, *rest):
    *keys, value = rest
    x[tuple(keys) if len(keys) != 1 else keys[0]] = value
    return x


def some_slice(n):
    end = lambda: pick([None, int(rng.integers(-n - 2, n + 3))])  # noqa: E731
    return slice(end(), end(), pick([None, None, 1, 2, -1, -2, 3]))


def basic_keys(x):
    keys, left = [], x.ndim
    dots = chance(0.3)
    for n in x.shape[:rng.integers(0, x.ndim + 1)]:
        if chance(0.15):
            keys.append(None)
        keys.append(int(rng.integers(-n, n)) if n and chance(0.4) else some_slice(n))
    if dots:
        keys.insert(int(rng.integers(0, len(keys) + 1)) if not keys else len(keys), Ellipsis)
        if chance(0.5) and left > len([k for k in keys if k is not None and k is not Ellipsis]):
            n = x.shape[-1]
            keys.append(some_slice(n))
    return keys


def positions(n, shape):
    return rng.integers(-n, n, shape).astype(pick(["int64", "int32", "uint8"]) if n < 100
                                             else "int64") if chance(0.5) else rng.integers(0, n, shape)


def fancy_keys(x):
    """Integer arrays that broadcast, mixed with slices, numbers and new axes."""
    shape = pick([(2,), (3,), (2, 2), (1,), (0,)])
    keys, arrays = [], 0
    for n in x.shape:
        kind = rng.random()
        if kind < 0.5 or (arrays == 0 and len(keys) == x.ndim - 1):
            keys.append(rng.integers(-n, n, shape if chance(0.7) else shape[-1:]))
            arrays += 1
        elif kind < 0.8:
            keys.append(some_slice(n))
        elif kind < 0.9:
            keys.append(int(rng.integers(-n, n)))
        else:
            keys += [None, some_slice(n)]
    return keys


def reading(w):
    for dtype in REALS:
        for _ in range(25):
            x = array(dtype, pick(SHAPES))
            w.case("getitem", get, [x, *basic_keys(x)])
        for _ in range(20):
            x = array(dtype, pick([(7,), (3, 5), (2, 3, 4), (2, 1, 2, 3)]))
            w.case("getitem", get, [x, *fancy_keys(x)])
            w.case("getitem", get, [x, values("bool", x.shape)])
            w.case("getitem", get, [x, values("bool", x.shape[:1]), *pick([[], [Ellipsis], [Ellipsis, None]])])
            if x.ndim > 1:
                w.case("getitem", get, [x, slice(None), values("bool", x.shape[1:2])])
            n = x.shape[0]
            w.case("getitem", get, [x, [int(i) for i in rng.integers(-n, n, 3)]])
            w.case("getitem", get, [x, Ellipsis, rng.integers(0, x.shape[-1], (2, 2))])
        w.case("getitem", get, [x, *pick([[True], [False], [True, 0], [Ellipsis, False], [0, True]])])
        w.case("setitem", set_, [array(dtype, (2, 3)), *pick([[True], [False], [0, True]]), 1], mutable=True)


def writing(w):
    for dtype in REALS:
        for _ in range(20):
            x = array(dtype, pick(SHAPES))
            keys = basic_keys(x)
            part = get(x, *keys)
            value = values(dtype, part.shape,
                           False) if chance(0.5) else pick([1, values(dtype, part.shape[-1:], False)])
            w.case("setitem", set_, [x, *keys, value], mutable=True)
        for _ in range(12):
            x = array(dtype, pick([(7,), (3, 5), (2, 3, 4), (2, 1, 2, 3)]))
            keys = fancy_keys(x)
            # positions that repeat: NumPy leaves open which value stands, so the values are equal
            w.case("setitem", set_, [x, *keys, 1], mutable=True)
            order = rng.permutation(x.shape[0])[:2]
            w.case("setitem", set_, [x, order, values(dtype, (2, *x.shape[1:]), False)], mutable=True)
            mask = values("bool", x.shape)
            w.case("setitem", set_, [x, mask, values(dtype, (int(mask.sum()),), False)], mutable=True)
            w.case("setitem", set_, [x, mask, 0], mutable=True)
            if x.ndim > 1:
                w.case("setitem", set_, [x, slice(None), order % x.shape[1] if x.shape[1] > 1 else [0], 1],
                       mutable=True)
    for dtype in REALS[1:]:
        for _ in range(10):
            x = array(dtype, pick([(7,), (3, 5), (2, 3, 4)]), False)

            def add_at(a, i, v):
                np.add.at(a, i, v)
                return a
            n = x.shape[0]
            i = rng.integers(-n, n, pick([(5,), (2, 3), (0,)]))
            w.case("add.at", add_at, [x, i, values(dtype, (*i.shape, *x.shape[1:]), False)], mutable=True,
                   rtol=1e-2 if dtype == "float16" else 1e-5, atol=1e-2 if dtype == "float16" else 1e-5)
            w.case("add.at", add_at, [x, i, 1], mutable=True, rtol=1e-2 if dtype == "float16" else 1e-5)


def taking(w):
    for dtype in REALS:
        for _ in range(8):
            x = array(dtype, pick([(7,), (3, 5), (2, 3, 4)]))
            axis = int(rng.integers(-x.ndim, x.ndim))
            i = rng.integers(-x.shape[axis], x.shape[axis], pick([(), (3,), (2, 2), (0,)]))
            w.case("take", np.take, [x, i], dict(axis=axis))
            w.case("take", np.take, [x, rng.integers(-x.size, x.size, (4,))])
            w.case("take", np.take, [x, rng.integers(-20, 20, (4,))], dict(axis=axis, mode=pick(["wrap", "clip"])))
            w.case("take_along_axis", np.take_along_axis, [x, np.argsort(x, axis=axis), axis])

            def put(a, i, v, **kw):
                np.put(a, i, v, **kw)
                return a
            w.case("put", put, [x, rng.permutation(x.size)[:3], values(dtype, (2,), False)], mutable=True)
            w.case("put", put, [x, np.array([50, -1, 2]), 1], dict(mode="clip"), mutable=True)

            def put_along(a, i, v, axis):
                np.put_along_axis(a, i, v, axis)
                return a
            w.case("put_along_axis", put_along, [x, np.argmax(x, axis=axis, keepdims=True), 1, axis], mutable=True)

            def fill(a, v, **kw):
                np.fill_diagonal(a, v, **kw)
                return a
            w.case("fill_diagonal", fill, [array(dtype, pick([(3, 3), (5, 3), (3, 5), (3, 3, 3)])), 1],
                   pick([{}, dict(wrap=True)]), mutable=True)

            def place(a, m, v):
                np.place(a, m, v)
                return a

            def putmask(a, m, v):
                np.putmask(a, m, v)
                return a
            w.case("place", place, [x, values("bool", x.shape), values(dtype, (3,), False)], mutable=True)
            w.case("putmask", putmask, [x, values("bool", x.shape), values(dtype, (3,), False)], mutable=True)
            w.case("compress", np.compress, [values("bool", (x.shape[axis],)), x], dict(axis=axis))
            w.case("extract", np.extract, [values("bool", x.shape), x])
            w.case("nonzero", np.nonzero, [x])
            w.case("flatnonzero", np.flatnonzero, [array(dtype, pick(SHAPES))])
            w.case("argwhere", np.argwhere, [x])
            w.case("where", np.where, [x])


def choosing(w):
    for _ in range(60):
        dtype = pick(REALS)
        which = rng.integers(0, 3, pick([(4,), (3, 4), ()]))
        w.case("choose", np.choose, [which, [array(dtype, (4,)), array(dtype, (1,)), array(dtype, ())]])
        w.case("choose", np.choose, [which - 1, [array(dtype, (4,)), array(dtype, (1,))]],
               dict(mode=pick(["wrap", "clip"])))
        x = array(dtype, (3, 4))
        w.case("select", np.select, [[values("bool", (3, 4)), values("bool", (4,))], [x, array(dtype, (4,))]],
               dict(default=np.dtype(dtype).type(1)))
        shape = pick([(3, 4), (2, 3, 4), (7,)])
        flat = rng.integers(0, int(np.prod(shape)), pick([(5,), (2, 2), ()]))
        w.case("unravel_index", np.unravel_index, [flat, shape])
        w.case("ravel_multi_index", np.ravel_multi_index, [tuple(np.asarray(a) for a in np.unravel_index(flat, shape)),
                                                           shape])
        n, k = int(rng.integers(0, 5)), int(rng.integers(-2, 3))
        for name in ("tril_indices", "triu_indices"):
            w.case(name, getattr(np, name), [n], pick([{}, dict(k=k), dict(k=k, m=3)]))
        w.case("diag_indices", np.diag_indices, [n], pick([{}, dict(ndim=3)]))


def refused(w):
    x = values("float64", (3, 4))
    for keys in ([3], [-4], [0, 4], [0, 0, 0], [np.array([0, 3])], [np.array([0, 1]), np.array([0, 1, 2])],
                 [np.array([0.5])],
                 [Ellipsis, Ellipsis], [np.ones((2, 4), bool)], [np.array([0, 1]), np.array([1, 4])], [slice(None),
                 np.array([-5])]):
        w.case("getitem", get, [x, *keys])
        w.case("setitem", set_, [x, *keys, 1.0], mutable=True)
    w.case("setitem", set_, [x, 0, np.ones(3)], mutable=True)
    w.case("setitem", set_, [x, slice(0, 2), np.ones((3, 4))], mutable=True)
    w.case("take", np.take, [x, np.array([3])], dict(axis=0))
    w.case("take", np.take, [x, np.array([0])], dict(axis=2))
    w.case("take", np.take, [x, np.array([0.0])], dict(axis=0))
    w.case("choose", np.choose, [np.array([0, 2]), [x[0], x[1]]])
    w.case("unravel_index", np.unravel_index, [np.array([12]), (3, 4)])


def write(w):
    for part in (reading, writing, taking, choosing, refused):
        part(w)
