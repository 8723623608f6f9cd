# SPDX-License-Identifier: MIT
"""Elementwise functions, with out, where and dtype, their methods, and comparison of whole arrays."""
import numpy as np

from casewriter import FLOATS, INTEGERS, REALS, SHAPES, array, chance, laid_out, pick, rng, values

UNARY_EXACT = """negative positive sign square absolute fabs floor ceil trunc rint isnan isinf isfinite signbit
    logical_not invert sqrt reciprocal isposinf isneginf fix""".split()
# Domains on which functions are compared at random places.
UNARY_NEAR = dict(
    exp=(-8, 8), exp2=(-8, 8), expm1=(-4, 4), log=(0.01, 50), log2=(0.01, 50), log10=(0.01, 50), log1p=(-0.9, 50),
    cbrt=(-50, 50),
    sin=(-20, 20), cos=(-20, 20), tan=(-1.4, 1.4), arcsin=(-1, 1), arccos=(-1, 1), arctan=(-9, 9), sinh=(-8, 8),
    cosh=(-8, 8),
    tanh=(-5, 5), arcsinh=(-9, 9), arccosh=(1, 30), arctanh=(-0.95, 0.95), deg2rad=(-400, 400), rad2deg=(-7, 7),
    degrees=(-7, 7), radians=(-400, 400), sinc=(-4, 4))
BINARY = """add subtract multiply divide true_divide floor_divide remainder mod fmod maximum minimum fmax fmin copysign
    equal
    not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
    bitwise_xor heaviside gcd lcm""".split()
BINARY_NEAR = "arctan2 hypot logaddexp logaddexp2 float_power".split()
SCALARS = [0, 1, 2, -1, 3, 2.5, -0.5, 0.0, True, False, float("nan"), float("inf")]


def two_shapes():
    """Shapes that broadcast."""
    shape = pick(SHAPES)
    other = tuple(n if chance(0.7) else 1 for n in shape)[rng.integers(0, len(shape) + 1):]
    return (shape, other) if chance(0.5) else (other, shape)


def tolerance(dtype):
    return {"float16": 4e-3, "float32": 4e-6, "float64": 1e-12}.get(dtype, 1e-12)


def floats_like(dtype):
    """The float dtype that NumPy computes in."""
    return np.exp(np.zeros(1, dtype)).dtype.name


def uniform(dtype, shape, low, high):
    if dtype == "bool":
        return values(dtype, shape)
    x = rng.uniform(low, high, shape)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        x = np.clip(np.round(x), max(info.min, np.ceil(low)), min(info.max, np.floor(high)))
    return laid_out(np.asarray(x).astype(dtype))


def unary(w):
    for name in UNARY_EXACT:
        for dtype in REALS:
            for _ in range(3):
                x = array(dtype, pick(SHAPES))
                if name == "reciprocal" and x.dtype.kind in "iub":
                    x = np.where(x == 0, x.dtype.type(1), x) # undefined
                w.case(name, getattr(np, name), [x])
    for name, (low, high) in UNARY_NEAR.items():
        for dtype in REALS:
            if name in ("log", "log2", "log10", "arccosh", "log1p") and dtype == "bool":
                continue
            for _ in range(3):
                shape = pick(SHAPES)
                if name == "sinc" and dtype in ("float16", "float32"):
                    continue # float64 in older NumPys
                w.case(name, getattr(np, name), [uniform(dtype, shape, low, high)], rtol=tolerance(floats_like(dtype)),
                       atol=tolerance(floats_like(dtype)) / 8)
    for dtype in FLOATS:
        for _ in range(6):
            x = array(dtype, pick(SHAPES))
            w.case("frexp", np.frexp, [np.where(np.isfinite(x), x, x.dtype.type(1.5))])
            w.case("modf", np.modf, [x])
            w.case("nan_to_num", np.nan_to_num, [x])
            w.case("nan_to_num", np.nan_to_num, [x], dict(nan=1.5, posinf=7.0, neginf=-7.0))
    for dtype in INTEGERS:
        w.case("nan_to_num", np.nan_to_num, [array(dtype, pick(SHAPES))])
    for dtype in ["float32", "float64"]:
        for _ in range(6):
            w.case("spacing", np.spacing, [array(dtype, pick(SHAPES), False)])
    for dtype in REALS[1:]:
        for decimals in (0, 1, 2, -1, -2):
            w.case("round", np.round, [uniform(dtype, pick(SHAPES), 0, 120)], dict(decimals=decimals),
                   atol=tolerance(dtype))
            w.case("around", np.around, [uniform(dtype, pick(SHAPES), 0, 120), decimals], atol=tolerance(dtype))


def operands(name):
    a, b = two_shapes()
    dtype = pick(REALS)
    other = dtype if chance(0.4) else pick(REALS)
    return array(dtype, a), array(other, b)


def safe_integer_division(name, x, y):
    """Division of integers by zero is undefined in NumPy where it isn't 0; the smallest by -1 overflows."""
    if name in ("floor_divide", "remainder", "mod", "fmod", "divmod"):
        if np.asarray(y).dtype.kind in "iu":
            y = np.where(np.abs(y.astype(float)) < 1, y.dtype.type(3), y)
            x = np.where(x == x.min() if x.size else False, x.dtype.type(1),
                         x) if np.asarray(x).dtype.kind == "i" else x
    return x, y


def binary(w):
    for name in BINARY:
        function = getattr(np, name)
        for _ in range(90):
            x, y = safe_integer_division(name, *operands(name))
            w.case(name, function, [x, y])
        for _ in range(25):
            x, s = array(pick(REALS), pick(SHAPES)), pick(SCALARS)
            x, _ = safe_integer_division(name, x, x)
            if name in ("floor_divide", "remainder", "mod", "fmod", "gcd", "lcm") and (not s or s != s):
                s = 2
            if isinstance(s, int) and not isinstance(s, bool) and s < 0 and x.dtype.kind in "ub":
                s = 2
            w.case(name, function, [x, s] if chance(0.6) or name.endswith(("divide", "mod", "remainder")) else [s, x])
    for name in BINARY_NEAR:
        for _ in range(60):
            a, b = two_shapes()
            x, y = uniform(pick(REALS), a, 0.1, 6), uniform(pick(REALS), b, 0.1, 6)
            common = np.hypot(x[..., :0] if x.ndim else x, y[..., :0] if y.ndim else y).dtype.name
            w.case(name, getattr(np, name), [x, y], rtol=tolerance(common), atol=tolerance(common))
    for _ in range(60):
        a, b = two_shapes()
        x, y = uniform(pick(REALS), a, 0, 4), uniform(pick(REALS), b, 0, 4)
        w.case("power", np.power, [x, y], rtol=tolerance(floats_like(np.result_type(x, y).name)))
    for _ in range(12):
        w.case("power", np.power, [array(pick(INTEGERS), (5,), False), array(pick(INTEGERS), (5,), False) % 4 - 1])
    for _ in range(40):
        a, b = two_shapes()
        x, y = array(pick(["float32", "float64"]), a), array(pick(["float32", "float64"]), b)
        w.case("nextafter", np.nextafter, [x, y])
        w.case("ldexp", np.ldexp, [x, rng.integers(-6, 7, b).astype(pick(["int32", "int64", "int8"]))])
        x, y = safe_integer_division("divmod", *operands("divmod"))
        if x.dtype != bool or y.dtype != bool:
            w.case("divmod", np.divmod, [x, y])
        for name in ("left_shift", "right_shift"):
            dtype = pick(INTEGERS)
            w.case(name, getattr(np, name), [array(dtype, a), rng.integers(0, 7, b).astype(dtype)])


def options(w):
    for _ in range(60):
        shape = pick(SHAPES)
        x, y = array(pick(REALS[5:]), shape), array(pick(REALS[5:]), shape)
        mask = values("bool", shape)
        w.case("add", np.add, [x, y], dict(out=values(pick(REALS), shape)))
        w.case("multiply", np.multiply, [x, y], dict(dtype=np.dtype(pick(FLOATS))))
        w.case("subtract", np.subtract, [x, y], dict(out=values("float64", shape), where=mask))
        w.case("sqrt", np.sqrt, [np.abs(values("float32", shape, False))], dict(out=values("float64", shape)))
        w.case("exp", np.exp, [values("float32", shape, False)], dict(dtype=np.dtype("float64")))
        w.case("negative", np.negative, [values("int16", shape)], dict(out=values("int32", shape), where=mask))


def methods(w):
    for name in ("add", "subtract", "multiply", "maximum", "less", "bitwise_and", "hypot"):
        for _ in range(8):
            dtype = "int32" if name == "bitwise_and" else pick(["int32", "float32", "float64"])
            x, y = array(dtype, pick([(3,), (2, 3), (), (0,)]), False), array(dtype, pick([(4,), (2, 1), ()]), False)
            w.case(name + ".outer", getattr(np, name).outer, [x, y], rtol=1e-6)
    for name in ("add", "multiply", "maximum", "minimum", "logical_and", "logical_or"):
        for _ in range(20):
            x = array(pick(["int32", "uint8", "float64", "bool"]), pick([(4,), (3, 5), (2, 3, 4), (1, 1)]), False)
            axis = pick([None, 0, -1, tuple(range(x.ndim))])
            w.case(name + ".reduce", getattr(np, name).reduce, [x],
                   pick([dict(), dict(axis=axis), dict(axis=axis, keepdims=True)]),
                   rtol=1e-12)
    for name in ("add", "multiply", "maximum", "minimum"):
        for dtype in ("int32", "uint8", "float32", "float64", "bool"):
            for _ in range(4):
                x = array(dtype, pick([(4,), (3, 5), (2, 3, 4), (0, 2)]), False)
                w.case(name + ".accumulate", getattr(np, name).accumulate, [x],
                       dict(axis=int(rng.integers(-x.ndim, x.ndim))), rtol=2e-6,
                       atol=2e-6 if dtype == "float32" and name == "add" else 0) # NumPy's own: 4 terms below 10


def choosing(w):
    for _ in range(80):
        a, b = two_shapes()
        x, y = array(pick(REALS), a), array(pick(REALS), b)
        shape = np.broadcast_shapes(a, b)
        w.case("where", np.where, [values("bool", shape), x, y])
        w.case("where", np.where, [values("bool", shape), x, x.dtype.type(1)])
        z = array(pick(REALS), a, False)
        low, high = (2, 5) if z.dtype.kind in "iu" else (-1.0, 2.0) if z.dtype.kind == "f" else (False, True)
        w.case("clip", np.clip, [z, low, high])
        if z.dtype.kind != "b":
            w.case("clip", np.clip, [z, None, high])
            w.case("clip", np.clip, [z, array(z.dtype.name, b, False), None])
        w.case("astype", lambda v, d: v.astype(d),
               [array(pick(REALS), a, False), np.dtype(pick(["float64", "float32", "int64", "bool"]))])


def whole(w):
    for _ in range(60):
        a, b = two_shapes()
        dtype = pick(REALS)
        x = array(dtype, a)
        y = x + x.dtype.type(0) if chance(0.5) and x.dtype.kind == "f" else array(dtype, b)
        if y.dtype.kind == "f":
            y = (y * (1 + rng.choice([0, 1e-6, 1e-4], y.shape))).astype(dtype)
        for name in ("isclose", "allclose"):
            w.case(name, getattr(np, name), [x, y],
                   pick([dict(), dict(equal_nan=True), dict(rtol=1e-3), dict(rtol=0.0, atol=0.1)]))
        w.case("array_equal", np.array_equal, [x, pick([x, y])], pick([dict(), dict(equal_nan=x.dtype.kind == "f")]))
        w.case("array_equiv", np.array_equiv, [x, pick([x, y, x[:1] if x.ndim else x])])


def write(w):
    unary(w)
    binary(w)
    options(w)
    methods(w)
    choosing(w)
    whole(w)
