# SPDX-License-Identifier: MIT
"""Cases of what functions take beside their operands: methods of ufuncs, masks, weights, rules, axes that are seldom
given."""
import numpy as np

from casewriter import FLOATS, INTEGERS, REALS, TOLERANCE, array, chance, integers, pick, rng, values

FOLDED = ("subtract maximum fmax fmin remainder hypot copysign logaddexp bitwise_and bitwise_or bitwise_xor "
          "logical_xor gcd left_shift floor_divide").split()


# arctan2 and power are not folded here: NumPy's vector code for them reads what it has just overwritten, and its result
# is wrong.


def between_steps(dtype, rule):
    """Elements whose range is no whole number of the rule's widths within 2 %: what NumPy rounds to float16 on the way
    moves the width by up to 0.3 %, and then there may be one bin more or less. Stone's rule always gives a whole
    number, to be met exactly."""
    while True:
        x = values(dtype, (40,), False)
        if dtype not in FLOATS or rule in ("stone", "no"):
            return x
        wide = x.astype("float64")
        low, extent = wide.min(), np.ptp(wide)
        widths = (len(np.histogram_bin_edges(wide, rule, (low, low + 1000 * extent))) - 1.5) / 1000
        if abs(widths - round(widths)) > 0.02 * widths:
            return x


def indexed(ufunc):
    def at(a, indices, b):
        ufunc.at(a, tuple(indices) if isinstance(indices, list) else indices, b)
        return a
    return at


def methods(w):
    for op in FOLDED:
        ufunc = getattr(np, op)
        bits = op.startswith("bitwise") or op in ("gcd", "left_shift")
        for dtype in INTEGERS if bits else INTEGERS + FLOATS[1:]:
            x = values(dtype, pick([(5,), (3, 4), (2, 3, 2)]), False)
            x = np.abs(x) % 4 if op == "left_shift" else x
            axis = int(rng.integers(x.ndim))
            w.case(f"{op}.reduce", ufunc.reduce, [x], {"axis": axis, "keepdims": bool(chance(0.5))}, atol=1e-5)
            w.case(f"{op}.accumulate", ufunc.accumulate, [x], {"axis": axis}, atol=1e-5)
            y = values(dtype, (2,), False) % 4 if bits else values(dtype, (2,), False)
            zero = TOLERANCE[ufunc(x[:1],
                                   y[:1]).dtype.name] if op == "logaddexp" else 0.0  # a small sum of larger parts
            w.case(f"{op}.outer", ufunc.outer, [x, y], atol=zero)
            w.case(f"{op}.reduceat", ufunc.reduceat, [x, np.array([0, 2, 1])], {"axis": 0}, atol=1e-5)
            if x.ndim == 1:
                places = pick([np.array([0, 0, 3]), np.array([-1, 4, 2]), [np.array([1, 1, 1])], [slice(0, 3)],
                               np.array([9])])
                w.case(f"{op}.at", indexed(ufunc), [x, places, np.abs(values(dtype, (3,), False)) % 3], mutable=True,
                       atol=1e-5)
    for op in ("add", "multiply", "maximum", "minimum"):
        for dtype in REALS[1:]:
            x = values(dtype, (3, 4), False)
            w.case(f"{op}.reduce", getattr(np, op).reduce, [x],
                   {"axis": 1, "initial": 2, "where": values("bool", (3, 4))}, atol=1e-2)


def statistics(w):
    for dtype in FLOATS[1:] + ["complex64", "complex128"]:
        x = np.where(rng.random((4, 5)) < 0.3, np.nan, values(dtype, (4, 5), False)).astype(dtype)
        mask = rng.random((4, 5)) < 0.6
        for op in ("nanmean", "nanvar", "nanstd"):
            w.case(op, getattr(np, op), [x], {"axis": pick([None, 0, 1]), "where": mask, "keepdims": bool(chance(0.5))},
                   rtol=1e-4, atol=1e-5)
        if not dtype.startswith("complex"):
            for op in ("nanmax", "nanmin"):
                w.case(op, getattr(np, op), [x], {"axis": pick([0, 1]), "where": mask, "initial": 0.5})
    for _ in range(20):
        x = values("float64", (3, 6), False)
        f, a = rng.integers(1, 4, 6), rng.random(6) + 0.1
        w.case("cov", np.cov, [x], {"fweights": f}, rtol=1e-9, atol=1e-12)
        w.case("cov", np.cov, [x], {"aweights": a, "ddof": pick([0, 1])}, rtol=1e-9, atol=1e-12)
        w.case("cov", np.cov, [x], {"fweights": f, "aweights": a}, rtol=1e-9, atol=1e-12)
        # No two points on one place of the period: which of them counts is the sort's choice, not the contract's.
        points = (rng.choice(350, 5, replace=False) + 350 * rng.integers(0, 2, 5)) / 100
        w.case("interp", np.interp, [values("float64", (9,), False), points, values("float64", (5,), False)],
               {"period": 3.5}, rtol=1e-7, atol=1e-7)
    for dtype in REALS:
        for rule in ("auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt", "no"):
            w.case("histogram", np.histogram, [between_steps(dtype, rule)], {"bins": rule}, rtol=1e-5, atol=1e-12)
        for mode in ("full", "same", "valid"):
            x, y = values("complex128", (7,), False), values(dtype, (pick([1, 3, 9]),), False)
            w.case("correlate", np.correlate, [y, x], {"mode": mode}, rtol=2e-3 if dtype == "float16" else 1e-5,
                   atol=1e-5)
            w.case("correlate", np.correlate, [x, y], {"mode": mode}, rtol=2e-3 if dtype == "float16" else 1e-5,
                   atol=1e-5)


def arrangement(w):
    for dtype in REALS:
        x = integers("int64", (5, 2), 0, 3).astype(dtype)
        for axis in (0, 1, -1):
            w.case("unique", np.unique, [x], {"axis": axis, "return_index": True, "return_counts": True})
            w.case("unique", np.unique, [x], {"axis": axis, "return_inverse": True})
        w.case("unique", np.unique, [x], {"return_inverse": True})
        y = values(dtype, (2, 3, 4))
        w.case("getitem", lambda a, *i: a[i], [y, slice(None), -1, Ellipsis, np.array([1, 0])])
        w.case("getitem", lambda a, *i: a[i], [y, 1, Ellipsis, np.array([2, 0]), slice(1, None)])
        sparse = np.zeros((5, 6), dtype)
        sparse[1:3, 2:5] = 1
        w.case("trim_zeros", np.trim_zeros, [sparse])
        if np.dtype(dtype).kind != "u":  # of which NumPy 2 refuses a weak number
            w.case("select", np.select, [[rng.random(4) < 0.5, rng.random(4) < 0.5], [values(dtype, (4,)), 1], 0])
    for mode in ("linear_ramp", "reflect", "mean"):
        w.case("pad", np.pad, [values("complex128", (3, 4), False), 2], {"mode": mode}, rtol=1e-9, atol=1e-9)
    for op in ("isin", "intersect1d", "setdiff1d", "setxor1d"):
        for _ in range(5):
            a, b = rng.integers(0, 3, 8) + 1j * rng.integers(0, 2, 8), rng.integers(0, 3, 5) + 1j * rng.integers(0, 2,
                                                                                                                 5)
            w.case(op, getattr(np, op), [a, b])
    for dims in ((3, 4), (2, 3, 4)):
        places = [rng.integers(-5, 9, 4) for _ in dims]
        w.case("ravel_multi_index", np.ravel_multi_index, [places, dims],
               {"mode": pick(["wrap", "clip"]), "order": "F"})
        w.case("unravel_index", np.unravel_index, [rng.integers(0, 12, (2, 3)), dims], {"order": "F"})
        w.case("ravel_multi_index", np.ravel_multi_index, [places, dims], {"mode": ["wrap"] * len(dims)})
    for _ in range(10):
        a, b = values("float64", (2, 3), False), values("float64", (3, 4), False)
        w.case("einsum", np.einsum, [a, [0, 1], b, [1, 2], [0, 2]], rtol=1e-9, atol=1e-9)
        solvable = np.eye(6).reshape(2, 3, 6) * 3 + values("float64", (2, 3, 6), False) * 0.1
        w.case("linalg.tensorsolve", np.linalg.tensorsolve, [solvable, values("float64", (2, 3), False)], rtol=1e-8,
               atol=1e-9)
        w.case("linalg.tensorinv", np.linalg.tensorinv, [solvable.reshape(6, 2, 3)], {"ind": 1}, rtol=1e-8, atol=1e-9)
        w.case("ix_", np.ix_, [rng.random(4) < 0.5, [1, 2]])
    for dtype in REALS:
        x = array(dtype, (3, 4))
        w.case("exp", np.exp, [x], {"dtype": np.dtype(pick(INTEGERS + FLOATS))}, rtol=2e-3)
        w.case("add", np.add, [x, x],
               {"dtype": np.dtype(pick(INTEGERS)), "casting": "unsafe"}) if dtype in INTEGERS else None


def write(w):
    methods(w)
    statistics(w)
    arrangement(w)
