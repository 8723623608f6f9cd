# SPDX-License-Identifier: MIT
"""Complex numbers: elementwise functions, comparisons, reductions, products."""
import numpy as np

from casewriter import SHAPES, array, chance, laid_out, pick, rng

DTYPES = ["complex64", "complex128"]
OTHERS = ["bool", "int8", "int16", "int64", "uint8", "float16", "float32", "float64", *DTYPES]
UNARY = ("negative positive absolute square reciprocal exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin "
         "arccos arctan sinh cosh tanh arcsinh arccosh arctanh conj isnan isinf isfinite logical_not rint real imag "
         "angle iscomplex isreal").split()
REFUSED = "floor ceil trunc cbrt signbit".split()
BINARY = ("add subtract multiply divide power equal not_equal less less_equal greater greater_equal maximum minimum "
          "fmax fmin logical_and logical_or logical_xor").split()
LOOSE = {"expm1": 1e-6, "log1p": 1e-6}


def numbers(dtype, shape, specials=False):
    z = rng.standard_normal(shape) * 2 + 2j * rng.standard_normal(shape)
    if specials:
        odd = rng.choice([0, 1, -1, 1j, -1j, np.nan, np.inf, -np.inf, complex(0, np.inf), complex(np.nan, 1)], shape)
        z = np.where(rng.random(shape) < 0.3, odd, z)
    return laid_out(np.asarray(z).astype(dtype))


def other(dtype, shape):
    return numbers(dtype, shape) if dtype in DTYPES else array(dtype, shape, specials=False)


def two_shapes():
    shape = pick(SHAPES)
    return shape, tuple(n if chance(0.7) else 1 for n in shape)[rng.integers(0, len(shape) + 1):]


def write(w):
    for name in UNARY:
        exact = name in ("negative positive conj isnan isinf isfinite logical_not rint real imag iscomplex "
                         "isreal").split()
        for dtype in DTYPES:
            rtol = LOOSE.get(name, 4e-6 if dtype == "complex64" else 1e-12)
            for _ in range(8):
                w.case(name, getattr(np, name), [numbers(dtype, pick(SHAPES), exact)], rtol=rtol, atol=rtol)
    for name in REFUSED:
        for dtype in DTYPES:
            w.case(name, getattr(np, name), [numbers(dtype, (3,))])
    for name in BINARY:
        for _ in range(60):
            a, b = two_shapes()
            first, second = pick(DTYPES), pick(OTHERS)
            if name == "divide" and second not in DTYPES:
                second = "float64"
            operands = [numbers(first, a), other(second, b)]
            if chance(0.5) and name != "power":
                operands.reverse()
            single = np.result_type(*(x.dtype for x in operands)) == np.complex64
            rtol = 1e-5 if single else 1e-11
            w.case(name, getattr(np, name), operands, rtol=rtol, atol=rtol)
        for scalar in [2, 0.5, 1j, 1.5 - 2j]:
            for dtype in ["complex64", "complex128", "float32", "float64", "int32"]:
                if name in ("maximum", "minimum", "fmax", "fmin") or (name == "power" and dtype == "int32"):
                    continue
                rtol = 1e-5 if dtype in ("complex64", "float32") else 1e-11
                w.case(name, getattr(np, name), [other(dtype, (5,)), scalar], rtol=rtol, atol=rtol)
    for name in ["sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin"]:
        for dtype in DTYPES:
            for shape in [(7,), (3, 5), (2, 3, 4)]:
                for axis in [None, 0, -1]:
                    rtol = 1e-5 if dtype == "complex64" else 1e-12
                    w.case(name, getattr(np, name), [numbers(dtype, shape)], {"axis": axis}, rtol=rtol, atol=rtol)
    for _ in range(40):
        m, k, n = rng.integers(1, 6, 3)
        dtypes = [pick(DTYPES), pick(["float32", "float64", *DTYPES])]
        rtol = 1e-5 if "complex64" in dtypes or "float32" in dtypes else 1e-12
        w.case("matmul", np.matmul, [other(dtypes[0], (m, k)), other(dtypes[1], (2, k, n))], rtol=rtol, atol=rtol)
    for shape in [(4,), (2, 3)]:
        for dtype in DTYPES:
            z = numbers(dtype, shape)
            w.case("where", np.where, [rng.random(shape) < 0.5, z, numbers(dtype, shape)])
            w.case("concatenate", np.concatenate, [[z, numbers("complex128", shape)]])
            w.case("transpose", np.transpose, [z])
            w.case("getitem", lambda a, i: a[i], [z, slice(None, None, -1)])
            w.case("zeros_like", np.zeros_like, [z])
            w.case("ones_like", np.ones_like, [z])
            w.case("full_like", np.full_like, [z, 2.5])
