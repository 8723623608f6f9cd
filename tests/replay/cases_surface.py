# SPDX-License-Identifier: MIT
"""What people write beside the plain call: results into arrays, rules of casting, numbers for arrays, methods' names,
wrong options."""
import numpy as np

from casewriter import COMPLEXES, FLOATS, INTEGERS, NEW, REALS, array, chance, integers, pick, rng, values

DTYPES = REALS + COMPLEXES


def into(w):
    """out, dtype and casting of joins, products and choices."""
    for dtype in DTYPES:
        a, b = values(dtype, (2, 3), False), values(pick(DTYPES), (2, 3), False)
        kwargs = pick([{"dtype": np.dtype(pick(FLOATS + COMPLEXES))}, {"out": np.zeros((4, 3), pick(DTYPES))},
                       {"axis": None}])
        w.case("concatenate", np.concatenate, [[a, b]], kwargs)
        kwargs = pick([{"axis": 1}, {"out": np.zeros((2, 2, 3), pick(DTYPES))},
                       {"dtype": np.dtype("complex128"), "casting": "safe"}])
        w.case("stack", np.stack, [[a, b]], kwargs)
        for name in ("vstack", "hstack"):
            w.case(name, getattr(np, name), [[a, b]], {"dtype": np.dtype(pick(FLOATS + COMPLEXES))})
        half = "float16" in (a.dtype, b.dtype)
        near = dict(rtol=1e-2 if half else 1e-4, atol=1e-1 if half else 1e-4)
        c = np.ascontiguousarray(b.T)
        kwargs = pick([{"out": np.zeros((2, 2), pick(DTYPES))}, {"dtype": np.dtype(pick(FLOATS[1:] + COMPLEXES))}])
        w.case("matmul", np.matmul, [a, c], kwargs, **near)
        w.case("dot", np.dot, [a, c], {"out": np.zeros((2, 2), np.result_type(a, b))}, **near)
        w.case("outer", np.outer, [a, b], {"out": np.zeros((6, 6), np.result_type(a, b))}, **near)
        for text in ("ij,jk", "ij,jk->", "ij,jk->ki"):
            result = np.einsum(text, a, c)
            kwargs = pick([{}, {"out": np.zeros(result.shape, pick(DTYPES))},
                           {"dtype": np.dtype(pick(FLOATS[1:] + COMPLEXES))},
                           {"optimize": "bool" not in (a.dtype, b.dtype)}])
            w.case("einsum", np.einsum, [text, a, c], kwargs, **near)
        w.case("trace", np.trace, [a], {"out": np.zeros((), np.trace(a).dtype)}, **near)
        places = [values(dtype, (3,), False) for _ in range(3)]
        w.case("choose", np.choose, [rng.integers(0, 3, 3), places], {"out": np.zeros(3, dtype)})
        w.case("compress", np.compress, [[True, False], a], {"axis": 0, "out": np.zeros((1, 3), dtype)})
        w.case("take", np.take, [a, [0, 2]], {"axis": 1, "out": np.zeros((2, 2), dtype)})
        w.case("round", np.round, [a], {"decimals": 1, "out": np.zeros((2, 3), dtype)}, rtol=1e-2, atol=1e-2)
    for _ in range(20):
        a = values("float64", (3, 4), False)
        kwargs = pick([{"out": np.zeros((3, 4))}, {"where": values("bool", (3, 4)), "out": np.zeros((3, 4))},
                       {"dtype": np.dtype("float32")}])
        w.case("clip", np.clip, [a, -1, 1], kwargs, rtol=1e-6)
        for op in ("add", "maximum", "subtract", "multiply", "hypot"):
            ufunc = getattr(np, op)
            w.case(f"{op}.outer", ufunc.outer, [a[0], a[1]],
                   pick([{"out": np.zeros((4, 4))}, {"dtype": np.dtype("float32")}]), rtol=1e-5, atol=1e-6)
            w.case(f"{op}.reduceat", ufunc.reduceat, [a, [0, 2]], {"axis": 1, "out": np.zeros((3, 2))}, rtol=1e-10,
                   atol=1e-10)
            w.case(f"{op}.reduce", ufunc.reduce, [a],
                   {"axis": pick([0, 1]), "out": np.zeros(pick([(4,), (3,), (3, 4)]))}, rtol=1e-10, atol=1e-10)


def rules(w):
    """casting by every rule, of functions that compute in another dtype too."""
    for op in ("add", "equal", "less", "arctan2", "divide", "hypot", "logical_and", "power", "floor_divide"):
        for _ in range(25):
            a = np.abs(array(pick(REALS), (3,), False))
            b = np.abs(values(pick(REALS), (3,), False))
            if {a.dtype.kind, b.dtype.kind} == {"i", "u"}:
                b = b.astype(a.dtype)  # of those NumPy 2 compares all as they are
            w.case(op, getattr(np, op), [a, b], {"casting": pick(["no", "equiv", "safe", "same_kind"])}, rtol=2e-3,
                   atol=1e-3)
            w.case(op, getattr(np, op), [a, pick([2, 1.5])], {"casting": pick(["safe", "same_kind"])}, rtol=2e-3,
                   atol=1e-3)
    for op in ("sqrt", "tanh", "isfinite", "absolute", "logical_not", "deg2rad"):
        for _ in range(12):
            x = np.abs(array(pick(REALS), (3,), False))
            w.case(op, getattr(np, op), [x], {"casting": pick(["no", "equiv", "safe", "same_kind"])}, rtol=2e-3)
    for op in ("equal", "not_equal", "less", "greater_equal"):
        for method in ("reduce", "accumulate"):
            w.case(f"{op}.{method}", getattr(getattr(np, op), method), [values("bool", (3, 4))], {"axis": 1})
        w.case(f"{op}.reduce", getattr(np, op).reduce, [values("float64", (3, 4))])
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
        if NEW:
            for number in (2**40, -2**40, 2**63, 300):
                w.case("less", np.less, [values(dtype, (3,)), number])
    for op in ("negative", "absolute", "square"):
        def at(a, i, op=op):
            getattr(np, op).at(a, i)
            return a
        w.case(f"{op}.at", at, [values("float64", (5,), False), np.array([0, 2, 2])], mutable=True)
    x = values("float64", (3,))
    for op in ("add", "exp"):
        w.case(op, getattr(np, op), [x, x, x, x])
        w.case(op, getattr(np, op), [x, x], {"axis": 0})


def fractions(w):
    """Means and variances of integer dtypes, fractions of a degree of freedom, weights, axes of numbers."""
    for dtype in REALS:
        x = integers(dtype, (3, 4)) if dtype in INTEGERS else values(dtype, (3, 4), False)
        near = dict(rtol=5e-3, atol=5e-3) if dtype == "float16" else dict(rtol=1e-5, atol=1e-5)
        for op in ("var", "std", "nanvar"):
            w.case(op, getattr(np, op), [x], {"ddof": pick([0.5, 1.5]), "axis": pick([None, 0, 1])}, **near)
        if x.dtype.kind in "iu":
            w.case("mean", np.mean, [np.abs(x)], {"dtype": np.dtype(pick(["int32", "int64"])), "axis": 0})
            w.case("var", np.var, [np.abs(x)], {"dtype": np.dtype("int64"), "axis": 1})
        for op in ("sum", "prod", "max", "min", "any", "all"):
            w.case(op, getattr(np, op), [values(dtype, (), False)], {"axis": pick([0, -1, 1])}, **near)
            w.case(op, getattr(np, op), [pick([2, 2.5, True])], {"axis": 0})
        w.case("argmax", np.argmax, [x], {"axis": 0, "out": np.zeros(4, pick(["int64", "int32", "float64"]))})
        w.case("sum", np.sum, [x], {"initial": pick([2, 1 + 1j, float("inf")])}, **near)
        if NEW:
            weights = rng.random(4) + 0.1
            if dtype not in ("bool", "float16"):
                for q in (0.5, [0.1, 0.9, 1.0, 0.0]):
                    w.case("quantile", np.quantile, [x, q], {"weights": weights, "axis": 1, "method": "inverted_cdf"})
            w.case("percentile", np.percentile, [values("float64", (6,)), 30],
                   {"weights": rng.random(6), "method": pick(["inverted_cdf", "linear"])})


def complex_order(w):
    for dtype in COMPLEXES * 8:
        s = np.sort(integers("int64", (6,), -3, 4) + 1j * integers("int64", (6,), -2, 3)).astype(dtype)
        v = (integers("int64", (2, 4), -3, 4) + 1j * integers("int64", (2, 4), -2, 3)).astype(dtype)
        w.case("searchsorted", np.searchsorted, [s, pick([v, 1, 2.5, s[:0], s])], {"side": pick(["left", "right"])})
        x = array(dtype, pick([(6,), (3, 4), (0,)]), False)
        for op in ("maximum", "minimum"):
            w.case(f"{op}.accumulate", getattr(np, op).accumulate, [x], {"axis": -1})


def names(w):
    """Methods, questions about dtypes, tuples as indices."""
    for dtype in DTYPES:
        x = values(dtype, (2, 3), False)
        w.case("ndarray.reshape", lambda a, *s: a.reshape(*s), [x, 3, -1])
        w.case("ndarray.transpose", lambda a, *s: a.transpose(*s), [x, *pick([[], [1, 0], [(1, 0)]])])
        w.case("ndarray.sum", lambda a, **k: a.sum(**k), [x], {"axis": 0}, rtol=1e-2, atol=1e-2)
        w.case("T", lambda a: a.T, [x])
        w.case("fill", lambda a, v: (a.fill(v), a)[1], [x, 1], mutable=True)
        w.case("item", lambda a, *i: np.asarray(a.item(*i)), [x, *pick([[1], [1, 2], []])])
        w.case("copy", np.copy, [x], {"order": "F"})
        w.case("asarray", np.asarray, [x], {"dtype": np.dtype("complex128")})
        w.case("isscalar", np.isscalar, [pick([x, 1, 2.5, [1]])])
        other = np.dtype(pick(DTYPES))
        w.case("can_cast", np.can_cast, [np.dtype(dtype), other, pick(["no", "equiv", "safe", "same_kind", "unsafe"])])
        for op, types in (("promote_types", [np.dtype(dtype), other]),
                          ("result_type", [x, values(other.name, (2,), False)])):
            w.case(op, lambda *a, op=op: np.zeros(0, getattr(np, op)(*a)), types)
        w.case("getitem", lambda a, i: a[tuple(i)], [x, [np.array([1, 0]), slice(None)]])
        w.case("getitem", lambda a, i: a[tuple(i)], [x, [values("bool", (2, 3))]])
        w.case("setitem", lambda a, i, v: (a.__setitem__(i, v), a)[1], [x, 0, pick([[1], [[1]], [1, 0, 1], 1])],
               mutable=True)
    for op, args, kwargs in (("zeros", [3], {"order": "Z"}), ("ravel", [np.ones(2)], {"order": "z"}),
                             ("trim_zeros", [np.ones(2)], {"trim": "x" if NEW else "fb"}),
                             ("indices", [3], {}), ("tri", [-1], {}), ("vander", [np.ones(2)], {"N": -1}),
                             ("correlate", [2.0, np.ones(2)], {}),
                             ("pad", [np.ones(2), 1], {"mode": "edge", "end_values": 1}),
                             ("bitwise_count" if NEW else "invert", [np.ones(2, "complex64")], {}),
                             ("histogram", [np.ones(4)], {"weights": np.ones((2, 2))}), ("linspace", [1, np.float32(9)
                             if NEW else 9.5], {}), ("arange", [], {})):
        w.case(op, getattr(np, op), args, kwargs)
    for x in ([2**63], [2**63, 1], [-1, 2**63], [[True], [2]], [1, 1j]):
        w.case("array", np.array, [x])


def bits_of_16(w):
    """Neighbours and distances of all kinds of float16, to the bit."""
    for _ in range(6):
        a, b = (rng.integers(0, 2**16, 300).astype("uint16").view("float16") for _ in range(2))
        a[:10], a[10:20], a[20:40] = b[:10], 0, 2.0 ** rng.integers(-24, 15, 20)
        w.case("nextafter", np.nextafter, [a, b], rtol=0)
        w.case("spacing", np.spacing, [a], rtol=0)
    for order in "CFAK":
        x = np.asfortranarray(values("int32", (3, 4)))
        w.case("ravel", np.ravel, [x], {"order": order})
        w.case("flatten", lambda a, o: a.flatten(o), [x, order])
        if order != "K":
            w.case("reshape", np.reshape, [x, (2, 6)], {"order": order})
        w.case("isfortran", np.isfortran, [pick([x, values("int32", (3, 4))])])


def write(w):
    bits_of_16(w)
    for part in (into, rules, fractions, complex_order, names):
        part(w)
    for text in ("ij,jk->ik", "ij->", "ij,ij->i"):
        for _ in range(6):
            a = [values(pick(["bool", "uint8", "int16", "float32"]), (3, 3), False) for _ in range(text.count(",") + 1)]
            w.case("einsum", np.einsum, [text, *a], {} if chance(0.7) else {"dtype": np.dtype("float64")}, rtol=1e-4,
                   atol=1e-4)
