# SPDX-License-Identifier: MIT
"""Creation and rearrangement."""
import numpy as np

from casewriter import FLOATS, INTEGERS, REALS, SHAPES, array, chance, pick, rng, values

PAD_MODES = "constant edge linear_ramp maximum mean median minimum reflect symmetric wrap".split()


def axis_of(x):
    return int(rng.integers(-x.ndim, x.ndim)) if x.ndim else 0


def creation(w):
    for _ in range(25):
        dtype, shape = pick(REALS), pick(SHAPES)
        for name in ("zeros", "ones"):
            w.case(name, getattr(np, name), [shape if chance(0.5) or len(shape) != 1 else shape[0]],
                   dict(dtype=np.dtype(dtype)) if chance(0.7) else {})
        w.case("full", np.full, [shape, pick([3, 2.5, True])], dict(dtype=np.dtype(dtype)) if chance(0.5) else {})
        x = array(dtype, shape)
        for name in ("zeros_like", "ones_like"):
            w.case(name, getattr(np, name), [x], dict(dtype=np.dtype(pick(REALS))) if chance(0.5) else {})
        w.case("full_like", np.full_like, [x, 1])
        w.case("eye", np.eye, [int(rng.integers(0, 6))],
               pick([{}, dict(M=4), dict(k=1), dict(M=5, k=-2, dtype=np.dtype(dtype))]))
        w.case("identity", np.identity, [int(rng.integers(0, 6))], pick([{}, dict(dtype=np.dtype(dtype))]))
        w.case("tri", np.tri, [int(rng.integers(0, 6))],
               pick([{}, dict(M=4), dict(k=1), dict(M=5, k=-2, dtype=np.dtype(dtype))]))
        w.case("arange", np.arange, pick([[5], [2, 9], [1, 10, 3], [10, 1, -2], [0.5, 4], [0, 1, 0.1], [3, 3]]))
        w.case("arange", np.arange, [0, 7], dict(dtype=np.dtype(pick(INTEGERS + FLOATS))))
        kwargs = pick([{}, dict(num=5), dict(num=1), dict(num=0), dict(num=7, endpoint=False),
                       dict(num=4, dtype=np.dtype("int32")), dict(num=3, retstep=True)])
        w.case("linspace", np.linspace, [pick([0, -1.5, 2]), pick([1, 10, 3.25])], kwargs, rtol=1e-12, atol=1e-14)
        w.case("linspace", np.linspace, [values("float64", (3,), False), values("float64", (2, 1), False), 4],
               dict(axis=pick([0, -1, 1])), rtol=1e-12, atol=1e-13)
        w.case("logspace", np.logspace, [pick([0, -1, 0.5]), pick([1, 2.5]), int(rng.integers(0, 6))],
               pick([{}, dict(base=2.0), dict(endpoint=False)]), rtol=1e-11)
        w.case("geomspace", np.geomspace, pick([[1, 1000, 4], [2.5, 9, 6], [-1, -64, 4], [8, 0.5, 5]]),
               pick([{}, dict(endpoint=False)]), rtol=1e-11)
        grid = [array(pick(REALS), (int(rng.integers(0, 4)),)) for _ in range(int(rng.integers(1, 4)))]
        w.case("meshgrid", np.meshgrid, grid,
               pick([{}, dict(indexing="ij"), dict(sparse=True), dict(indexing="ij", sparse=True)]))
        w.case("indices", np.indices, [pick([(3,), (2, 3), (2, 0), (2, 1, 3)])])
        w.case("vander", np.vander, [array(pick(["float64", "int32", "float32"]), (4,), False)],
               pick([{}, dict(N=3), dict(increasing=True), dict(N=0)]), rtol=1e-5)


def diagonals(w):
    for dtype in REALS:
        for k in (0, 1, -1, 3, -4):
            w.case("diag", np.diag, [array(dtype, (4,)), k])
            w.case("diag", np.diag, [array(dtype, pick([(3, 5), (4, 4), (1, 3), (0, 3)])), k])
            w.case("diagflat", np.diagflat, [array(dtype, pick([(2, 2), (3,), ()])), k])
            for name in ("tril", "triu"):
                w.case(name, getattr(np, name), [array(dtype, pick([(3, 5), (4, 4), (2, 3, 4), (5, 2), (3,)])), k])
        for _ in range(4):
            x = array(dtype, pick([(3, 5), (2, 3, 4), (4, 2), (2, 1, 2, 3)]), False)
            a, b = (int(v) for v in rng.permutation(x.ndim)[:2])
            k = int(rng.integers(-2, 3))
            w.case("diagonal", np.diagonal, [x, k, a, b])
            w.case("trace", np.trace, [x], dict(offset=k, axis1=a, axis2=b), rtol=1e-2 if dtype == "float16" else 1e-5,
                   atol=1e-3)


def axes(w):
    for dtype in REALS:
        for _ in range(5):
            shape = pick(SHAPES)
            x = array(dtype, shape)
            size = x.size
            w.case("reshape", np.reshape, [x, pick([(size,), (-1,), (1, size), (size, 1, 1), -1])])
            w.case("reshape", np.reshape, [array(dtype, (2, 3, 4)), pick([(6, 4), (4, -1), (2, 2, 6), (5, 5)])],
                   dict(order=pick(["C", "F"])))
            w.case("ravel", np.ravel, [x], pick([{}, dict(order="F")]))
            w.case("transpose", np.transpose, [x], {} if chance(0.5)
                   else dict(axes=tuple(int(a) for a in rng.permutation(x.ndim))))
            w.case("expand_dims", np.expand_dims, [x, pick([0, -1, (0, 1)])])
            w.case("squeeze", np.squeeze, [array(dtype, pick([(1, 3, 1), (1,), (2, 1), ()]))])
            w.case("squeeze", np.squeeze, [array(dtype, (1, 3, 1))], dict(axis=pick([0, -1, (0, 2), 1])))
            target = (2, *shape)
            w.case("broadcast_to", np.broadcast_to, [x, target])
            for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
                w.case(name, getattr(np, name), [x])
            w.case("broadcast_arrays", np.broadcast_arrays, [array(dtype, (3, 1)), array(pick(REALS), (4,))])
            if x.ndim:
                w.case("swapaxes", np.swapaxes, [x, axis_of(x), axis_of(x)])
                w.case("moveaxis", np.moveaxis, [x, axis_of(x), axis_of(x)])
                w.case("rollaxis", np.rollaxis, [x, axis_of(x), int(rng.integers(0, x.ndim + 1))])
                w.case("flip", np.flip, [x], pick([{}, dict(axis=axis_of(x))]))
            y = array(dtype, (2, 3, 4))
            w.case("moveaxis", np.moveaxis, [y, (0, 1), pick([(-1, 0), (2, 1), (1, 0)])])
            w.case("rot90", np.rot90, [array(dtype, pick([(3, 4), (2, 3, 2)])), int(rng.integers(-4, 5))],
                   pick([{}, dict(axes=(1, 0))]))
            w.case("fliplr", np.fliplr, [y])
            w.case("flipud", np.flipud, [x])


def rearranging(w):
    for dtype in REALS:
        for _ in range(6):
            x = array(dtype, pick(SHAPES))
            w.case("roll", np.roll, [x, int(rng.integers(-7, 8))], {} if x.ndim == 0 or chance(0.5)
                   else dict(axis=axis_of(x)))
            w.case("roll", np.roll, [array(dtype, (3, 5)), (1, -2)], dict(axis=(0, 1)))
            w.case("tile", np.tile, [x, pick([2, (2,), (2, 3), (1, 2, 2), 0, (1,)])])
            w.case("repeat", np.repeat, [x, int(rng.integers(0, 4))], {} if x.ndim == 0 or chance(0.4)
                   else dict(axis=axis_of(x)))
            y = array(dtype, (3, 4))
            w.case("repeat", np.repeat, [y, rng.integers(0, 3, 4)], dict(axis=1))
            w.case("resize", np.resize, [x, pick([(3, 4), (7,), (2, 2, 2), (0,)])])
    for mode in PAD_MODES:
        for dtype in ["float64", "int32", "float32", "uint8", "int64", "bool"]:
            if dtype == "bool" and mode in ("linear_ramp", "mean", "median"):
                continue
            for _ in range(3):
                x = array(dtype, pick([(5,), (3, 4), (2, 3, 2), (4, 1)]), False)
                width = pick([1, 2, (1, 2), tuple((int(rng.integers(0, 4)), int(rng.integers(0, 4)))
                                                  for _ in range(x.ndim))])
                if mode == "reflect" and 1 in x.shape:
                    width = 1
                if mode == "wrap": # older NumPys repeat wrongly beyond the extent
                    width = tuple((int(rng.integers(0, n + 1)), int(rng.integers(0, n + 1))) for n in x.shape)
                kwargs = dict(mode=mode) if mode != "constant" or chance(0.5) else {}
                if mode == "constant" and chance(0.5):
                    kwargs["constant_values"] = pick([3, (1, 2)]) if dtype != "bool" else True
                if mode == "linear_ramp" and chance(0.5):
                    kwargs["end_values"] = pick([3, (1, 2)])
                if mode in ("maximum", "mean", "minimum", "median") and chance(0.5):
                    kwargs["stat_length"] = 2
                w.case("pad", np.pad, [x, width], kwargs, rtol=1e-5, atol=1e-6)


def joining(w):
    for dtype in REALS:
        other = pick(REALS)
        for _ in range(4):
            x, y, z = array(dtype, (2, 3)), array(other, (2, 3)), array(dtype, (1, 3))
            axis = int(rng.integers(-2, 2))
            w.case("concatenate", np.concatenate, [[x, y]], pick([{}, dict(axis=axis), dict(axis=None)]))
            w.case("concatenate", np.concatenate, [[x, z, y, np.zeros((0, 3), dtype)]])
            w.case("stack", np.stack, [[x, y]], pick([{}, dict(axis=axis), dict(axis=2)]))
            u, v = array(dtype, (4,)), array(other, (4,))
            for name in ("vstack", "hstack", "dstack", "column_stack"):
                w.case(name, getattr(np, name), [[x, y]])
                w.case(name, getattr(np, name), [[u, v]])
            w.case("append", np.append, [x, y], pick([{}, dict(axis=0), dict(axis=1)]))
            a = array(dtype, pick([(6,), (6, 4), (6, 2, 3)]))
            w.case("split", np.split, [a, pick([2, 3, 1, 4, (2, 5), [1, 1, 9], [-2]])])
            w.case("array_split", np.array_split, [a, pick([4, 5, 7, (2,)])])
            b = array(dtype, (4, 6, 2))
            w.case("split", np.split, [b, 3], dict(axis=1))
            w.case("hsplit", np.hsplit, [b, pick([2, (1, 4)])])
            w.case("vsplit", np.vsplit, [b, 2])
            w.case("dsplit", np.dsplit, [b, 2])
            w.case("delete", np.delete, [a, pick([0, -1, [1, 3], slice(1, None, 2)])], dict(axis=0))
            w.case("delete", np.delete, [x, pick([0, 4, [0, 0, 5]])])
            w.case("insert", np.insert, [a[:, 0] if a.ndim == 2 else values(dtype, (5,)), pick([0, 2, -1, 5]),
                                         values(dtype, (2,))])
            w.case("insert", np.insert, [x, pick([0, 1]), values(dtype, (3,))], dict(axis=0))
            w.case("insert", np.insert, [values(dtype, (5,)), [1, 3, 3], values(dtype, (3,))])
            w.case("trim_zeros", np.trim_zeros, [np.array([0, 0, 1, 0, 2, 0]).astype(dtype)],
                   pick([{}, dict(trim="f"), dict(trim="b")]))


def refused(w):
    x = values("float64", (3, 4))
    w.case("reshape", np.reshape, [x, (5, 5)])
    w.case("reshape", np.reshape, [x, (-1, -1)])
    w.case("transpose", np.transpose, [x], dict(axes=(0, 0)))
    w.case("transpose", np.transpose, [x], dict(axes=(0,)))
    w.case("concatenate", np.concatenate, [[x, x[:, :2]]])
    w.case("concatenate", np.concatenate, [[x, x[0]]])
    w.case("stack", np.stack, [[x, x[:2]]])
    w.case("split", np.split, [x, 2])
    w.case("broadcast_to", np.broadcast_to, [x, (3, 5)])
    w.case("swapaxes", np.swapaxes, [x, 0, 2])
    w.case("moveaxis", np.moveaxis, [x, (0, 1), (0, 0)])
    w.case("squeeze", np.squeeze, [x], dict(axis=0))
    w.case("expand_dims", np.expand_dims, [x, 4])
    w.case("rot90", np.rot90, [x[0]])
    w.case("pad", np.pad, [x, -1])
    w.case("pad", np.pad, [x, 1], dict(mode="nonsense"))
    w.case("linspace", np.linspace, [0, 1, -2])
    w.case("delete", np.delete, [x, 7], dict(axis=0))
    w.case("insert", np.insert, [x, 9, 1], dict(axis=0))


def write(w):
    for part in (creation, diagonals, axes, rearranging, joining, refused):
        part(w)
