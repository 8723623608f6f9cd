# SPDX-License-Identifier: MIT
"""Reductions, statistics, scans, counts."""
import numpy as np

from casewriter import FLOATS, INTEGERS, REALS, SHAPES, array, chance, integers, laid_out, pick, rng, values

NEAR = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-11}
FULL = [s for s in SHAPES if 0 not in s]


def some_axis(ndim):
    """None, one axis or several, counted from either end."""
    if ndim == 0 or chance(0.25):
        return None
    if chance(0.5):
        return int(rng.integers(-ndim, ndim))
    return tuple(int(a) - (ndim if chance(0.3) else 0) for a in rng.permutation(ndim)[:rng.integers(1, ndim + 1)])


def options(ndim, single=False):
    kwargs = {}
    axis = some_axis(ndim)
    if single and isinstance(axis, tuple):
        axis = axis[0]
    if axis is not None or chance(0.3):
        kwargs["axis"] = axis
    if chance(0.3):
        kwargs["keepdims"] = True
    return kwargs


def near(dtype):
    return dict(rtol=NEAR.get(dtype, 1e-11), atol=NEAR.get(dtype, 0))


def with_nan(dtype, shape):
    x = values(dtype, shape, False)
    return np.where(rng.random(shape) < 0.25, np.asarray(np.nan, dtype), x) if dtype in FLOATS else x


def sums(w):
    for name in ("sum", "prod", "mean", "nansum", "nanprod", "nanmean"):
        for dtype in REALS:
            for _ in range(8):
                shape = pick(SHAPES if name in ("sum", "prod", "nansum", "nanprod") else FULL)
                x = with_nan(dtype, shape) if name.startswith("nan") else array(dtype, shape, False)
                if "prod" in name and dtype not in FLOATS:
                    x = laid_out(integers(dtype, shape, -2, 3)) if dtype != "bool" else x
                w.case(name, getattr(np, name), [x], options(x.ndim), **near(dtype))
            x = array(dtype, (3, 4), False)
            if "mean" not in name:
                w.case(name, getattr(np, name), [x], dict(axis=0, dtype=np.dtype("float64")), rtol=1e-11, atol=1e-11)
    for name in ("var", "std", "nanvar", "nanstd"):
        for dtype in REALS:
            for _ in range(6):
                shape = pick(FULL)
                x = with_nan(dtype, shape) if name.startswith("nan") else array(dtype, shape, False)
                kwargs = options(x.ndim)
                if chance(0.4):
                    kwargs["ddof"] = 1
                w.case(name, getattr(np, name), [x], kwargs, rtol=2 * NEAR.get(dtype, 1e-11),
                       atol=4 * NEAR.get(dtype, 1e-11))
    for _ in range(40):
        x = array(pick(REALS), pick([(3, 4), (2, 3, 4)]), False)
        mask = values("bool", x.shape)
        axis = pick([None, 0, -1])
        exact = dict(rtol=2e-3, atol=1e-2) if x.dtype == np.float16 else dict(rtol=1e-5, atol=1e-5)
        w.case("sum", np.sum, [x], dict(axis=axis, where=mask, initial=2), **exact)
        w.case("prod", np.prod, [np.sign(x) if x.dtype != bool else x], dict(axis=axis, where=mask), **exact)
        w.case("max", np.max, [x], dict(axis=axis, where=mask, initial=1))
        w.case("min", np.min, [x], dict(axis=axis, initial=0))
        w.case("any", np.any, [x], dict(axis=axis, where=mask))
        w.case("all", np.all, [x], dict(axis=axis, where=mask))
        w.case("sum", np.sum, [x.astype("float64")], dict(axis=0, out=np.zeros(x.shape[1:])), **exact)
        w.case("sum", np.sum, [x], dict(axis=()), **exact)
        w.case("mean", np.mean, [x], dict(axis=()), **exact)
        mask[...] |= np.arange(x.shape[-1]) == 0
        w.case("mean", np.mean, [x.astype("float64")], dict(axis=-1, where=mask), **exact)


def extremes(w):
    for name in ("max", "min", "amax", "amin", "any", "all", "argmax", "argmin", "ptp", "nanmax", "nanmin"):
        for dtype in REALS:
            if (name == "ptp" or name.startswith("nan")) and dtype == "bool":
                continue
            for _ in range(7):
                shape = pick(SHAPES)
                x = with_nan(dtype, shape) if name.startswith("nan") else array(dtype, shape, name != "ptp")
                w.case(name, getattr(np, name), [x], options(x.ndim, single=name.startswith("arg")))
    for name in ("nanargmax", "nanargmin"):
        for dtype in FLOATS:
            for _ in range(8):
                x = with_nan(dtype, pick([(5,), (3, 5), (2, 3, 4)]))
                w.case(name, getattr(np, name), [x], options(x.ndim, single=True))
    for dtype in REALS:
        for _ in range(4):
            x = array(dtype, pick(SHAPES))
            w.case("count_nonzero", np.count_nonzero, [x], dict(axis=pick([None, 0])) if x.ndim else {})


METHODS = """linear lower higher midpoint nearest inverted_cdf averaged_inverted_cdf closest_observation
    interpolated_inverted_cdf hazen weibull median_unbiased normal_unbiased""".split()


def order_statistics(w):
    for name in ("median", "nanmedian"):
        for dtype in [*INTEGERS, *FLOATS]:
            for _ in range(6):
                shape = pick(FULL)
                x = with_nan(dtype, shape) if chance(0.5) else array(dtype, shape, False)
                w.case(name, getattr(np, name), [x], options(x.ndim), **near(dtype))
    for name in ("quantile", "percentile", "nanquantile", "nanpercentile"):
        unit = 1 if "quantile" in name else 100
        for method in METHODS:
            for dtype in ("float64", "int32", "float64"):
                for _ in range(3):
                    x = array(dtype, pick(FULL), False)
                    q = pick([0.5 * unit, 0.0, np.round(rng.random(3), 2) * unit,
                              np.array([[0.1, 1], [0.35, 0]]) * unit])
                    kwargs = options(x.ndim)
                    if method != "linear" or chance(0.5):
                        kwargs["method"] = method
                    if name.startswith("nan"):
                        x = with_nan(dtype, x.shape)
                        q = q if np.ndim(q) < 2 else 0.35 * unit # NumPy's order of axes is another one then
                    w.case(name, getattr(np, name), [x, q], kwargs, rtol=1e-11, atol=1e-11)
    for _ in range(40):
        x = array(pick(["float64", "int32", "float32"]), pick([(4,), (3, 5), (2, 3, 4)]), False)
        kwargs = dict(axis=int(rng.integers(0, x.ndim))) if chance(0.7) else {}
        if kwargs and chance(0.6):
            kwargs["weights"] = rng.random(x.shape[kwargs["axis"]] if chance(0.5) else x.shape) + 0.1
        if chance(0.3):
            kwargs["returned"] = True
        w.case("average", np.average, [x], kwargs, rtol=1e-5, atol=1e-6)


def scans(w):
    for name in ("cumsum", "cumprod", "nancumsum", "nancumprod"):
        for dtype in REALS:
            for _ in range(6):
                shape = pick(SHAPES)
                x = with_nan(dtype, shape) if name.startswith("nan") else array(dtype, shape, False)
                if "prod" in name and dtype in FLOATS:
                    x = x / 3
                axis = pick([None, *range(-x.ndim, x.ndim)])
                w.case(name, getattr(np, name), [x], dict(axis=axis) if chance(0.8) else {}, **near(dtype))
    for dtype in REALS:
        for _ in range(8):
            x = array(dtype, pick([(5,), (3, 5), (2, 3, 4), (1,), (0,)]), False)
            w.case("diff", np.diff, [x], dict(n=int(rng.integers(0, 3)), axis=int(rng.integers(-x.ndim, x.ndim))),
                   rtol=1e-6, atol=1e-6)
        if dtype != "bool":
            x = array(dtype, (4, 3), False)
            w.case("diff", np.diff, [x], dict(prepend=x[:1], axis=0), rtol=1e-6)
            w.case("ediff1d", np.ediff1d, [array(dtype, pick(SHAPES), False)])
            w.case("ediff1d", np.ediff1d, [array(dtype, (5,), False)],
                   dict(to_begin=np.array([1, 2], dtype), to_end=np.array([3], dtype)))
    for _ in range(30):
        x = array(pick(["float64", "float32", "int32"]), pick([(5,), (4, 5), (3, 4, 3)]), False)
        kwargs = dict(edge_order=int(rng.integers(1, 3)))
        if chance(0.6):
            kwargs["axis"] = int(rng.integers(-x.ndim, x.ndim))
        w.case("gradient", np.gradient, [x, *pick([[], [2.0], [0.5]])], kwargs, rtol=1e-5, atol=1e-5)
        w.case("gradient", np.gradient, [values("float64", (6,), False), np.cumsum(rng.random(6) + 0.2)],
               dict(edge_order=kwargs["edge_order"]), rtol=1e-10, atol=1e-10)
        y = array(pick(["float64", "float32", "int32"]), pick([(5,), (4, 5), (1, 2)]), False)
        w.case("trapz", np.trapz if hasattr(np, "trapz") else np.trapezoid, [y],
               pick([{}, dict(dx=0.5), dict(axis=0), dict(x=np.cumsum(rng.random(y.shape[-1])))]), rtol=1e-5, atol=1e-5)
        xp = np.sort(rng.random(int(rng.integers(1, 7)))) * 10
        w.case("interp", np.interp, [rng.random(pick([(), (5,), (2, 3)])) * 14 - 2, xp, rng.random(len(xp))],
               pick([{}, dict(left=-1.0), dict(right=9.5, left=0.5)]), rtol=1e-11, atol=1e-12)


def counts(w):
    for _ in range(60):
        x = rng.integers(0, 9, pick([(0,), (1,), (30,), (7,)])).astype(pick(["int64", "uint8", "int32"]))
        w.case("bincount", np.bincount, [x], pick([{}, dict(minlength=12), dict(weights=rng.random(x.shape))]),
               rtol=1e-12)
        y = array(pick(["float64", "float32", "int32", "uint8"]), pick([(50,), (6, 7), (1,)]), False)
        kwargs = pick([{}, dict(bins=5), dict(bins=7, range=(0, 4)), dict(bins=np.array([-2.0, 0, 0.5, 3])),
                       dict(density=True), dict(bins=4, weights=np.round(rng.random(y.shape), 3))])
        w.case("histogram", np.histogram, [y], kwargs, rtol=1e-5, atol=1e-6)
        w.case("histogram_bin_edges", np.histogram_bin_edges, [y], pick([{}, dict(bins=3), dict(bins=6, range=(0, 5))]),
               rtol=1e-5, atol=1e-6)
    for _ in range(30):
        x = array(pick(["float64", "float32", "int32"]), pick([(3, 6), (1, 5), (4, 4)]), False)
        w.case("cov", np.cov, [x], pick([{}, dict(ddof=0), dict(bias=True), dict(rowvar=False)]), rtol=1e-5, atol=1e-5)
        w.case("corrcoef", np.corrcoef, [values("float64", (3, 6), False)], pick([{}, dict(rowvar=False)]), rtol=1e-9,
               atol=1e-9)
        a, b = (array(pick(["float64", "int32"]), (int(rng.integers(1, 9)),), False) for _ in range(2))
        for name in ("convolve", "correlate"):
            w.case(name, getattr(np, name), [a, b],
                   pick([{}, dict(mode="same"), dict(mode="valid"), dict(mode="full")]), rtol=1e-9, atol=1e-9)


def outs(w):
    """Results into arrays that exist."""
    for _ in range(12):
        x = values("float64", (3, 4), False)
        for name in ("sum", "max", "mean", "var", "median", "ptp", "nansum", "nanmax", "cumsum", "prod", "nanmean"):
            shape = (3, 4) if name == "cumsum" else (3,)
            w.case(name, getattr(np, name), [x], dict(axis=1, out=np.zeros(shape)), rtol=1e-12, atol=1e-12)
        w.case("argmax", np.argmax, [x], dict(axis=0, out=np.zeros(4, "int64")))
        w.case("any", np.any, [x > 2], dict(axis=0, out=np.zeros(4, bool)))
        w.case("quantile", np.quantile, [x, 0.25], dict(axis=0, out=np.zeros(4)), rtol=1e-12)
        w.case("sum", np.sum, [x], dict(axis=1, out=np.zeros(3, pick(["int64", "float32"]))), rtol=1e-5)


def refused(w):
    x = values("float64", (3, 4), False)
    for name in ("sum", "max", "argmax", "mean", "cumsum", "median", "sort"):
        w.case(name, getattr(np, name), [x], dict(axis=2))
        w.case(name, getattr(np, name), [x], dict(axis=-3))
    w.case("sum", np.sum, [x], dict(axis=(0, 0)))
    for name in ("max", "min", "argmax", "argmin"):
        w.case(name, getattr(np, name), [np.zeros((0,))])
        w.case(name, getattr(np, name), [np.zeros((2, 0))], dict(axis=1))
        w.case(name, getattr(np, name), [np.zeros((2, 0))], dict(axis=0))
    w.case("quantile", np.quantile, [x, 1.5])
    w.case("bincount", np.bincount, [np.array([-1, 2])])
    w.case("histogram", np.histogram, [x], dict(bins=0))
    w.case("average", np.average, [x], dict(weights=np.ones(5)))
    w.case("diff", np.diff, [x], dict(n=-1))


def write(w):
    for part in (sums, extremes, order_statistics, scans, counts, outs, refused):
        part(w)
