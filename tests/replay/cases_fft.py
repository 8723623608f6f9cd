# SPDX-License-Identifier: MIT
"""Fourier transforms."""
import numpy as np

from casewriter import chance, laid_out, pick, rng

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 20, 27, 30, 31, 32, 45, 61, 64, 67, 97, 100, 101, 128, 210,
           360, 509]
NORMS = [None, "backward", "ortho", "forward"]
REAL = ["rfft", "ihfft", "rfft2", "rfftn"]
LOW = {"float16": 2, "float32": 2, "complex64": 2}
SINGLE = ("float16", "float32", "complex64")
# Before version 2, NumPy computed all transforms in double precision.
FOLLOWS = int(np.__version__.split(".")[0]) >= 2


def signal(dtype, shape):
    if dtype.startswith("complex"):
        return laid_out((rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype))
    if dtype.startswith("float"):
        return laid_out(rng.standard_normal(shape).astype(dtype))
    return laid_out(rng.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype))


def narrowed(name, single):
    f = getattr(np.fft, name)
    if FOLLOWS or not single:
        return f

    def call(*args, **kwargs):
        y = f(*args, **kwargs)
        half = args[0].dtype == np.float16 and name in ("irfft", "hfft")
        return y.astype(np.complex64 if np.iscomplexobj(y) else np.float16 if half else np.float32)
    return call


def case(w, name, x, args, kwargs):
    single = x.dtype.name in SINGLE
    # from version 2 on, NumPy's factors for float16 are float16, too
    tolerance = 2e-3 if x.dtype == np.float16 else 2e-5 if single else 1e-11
    w.case("fft." + name, narrowed(name, single), [x, *args], kwargs, rtol=tolerance,
           atol=tolerance * max(1, x.size) ** 0.5)


def write(w):
    for name in ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]:
        dtypes = ["bool", "int16", "int64", "float16", "float32", "float64"] + (["complex64", "complex128"]
                                                                                if name not in REAL else [])
        for n in LENGTHS:
            for dtype in (["float32", "float64"] if name in REAL else ["complex64", "complex128", "float64"]):
                if n == 1 and name in ("irfft", "hfft"):
                    continue
                case(w, name, signal(dtype, (n,)), [], {})
        for _ in range(80):
            shape = tuple(int(x) for x in rng.integers(2, 9, rng.integers(1, 4)))
            kwargs = {"norm": pick(NORMS)}
            if chance(0.6):
                kwargs["n"] = int(rng.integers(1, 14))
            if chance(0.6):
                kwargs["axis"] = int(rng.integers(-len(shape), len(shape)))
            case(w, name, signal(pick(dtypes), shape), [], kwargs)
        x = signal("float64", (4,))
        w.case("fft." + name, getattr(np.fft, name), [x], {"n": 0})
        w.case("fft." + name, getattr(np.fft, name), [x], {"axis": 2})
        w.case("fft." + name, getattr(np.fft, name), [x], {"norm": "other"})
        w.case("fft." + name, getattr(np.fft, name), [signal("float64", (0,))])
    for name in ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]:
        dtypes = ["int64", "float32", "float64"] + (["complex64", "complex128"] if name not in REAL else [])
        for _ in range(60):
            ndim = int(rng.integers(2, 5))
            shape = tuple(int(x) for x in rng.integers(2, 7, ndim))
            kwargs = {"norm": pick(NORMS)}
            if chance(0.5):
                count = 2 if name.endswith("2") else int(rng.integers(1, ndim + 1))
                kwargs["axes"] = [int(a) for a in rng.permutation(ndim)[:count]]
                if chance(0.5):
                    kwargs["s"] = [int(n) for n in rng.integers(1, 8, count)]
            case(w, name, signal(pick(dtypes), shape), [], kwargs)
    for n in LENGTHS:
        for name in ["fftfreq", "rfftfreq"]:
            w.case("fft." + name, getattr(np.fft, name), [n])
            w.case("fft." + name, getattr(np.fft, name), [n, 0.25])
    for name in ["fftshift", "ifftshift"]:
        for shape in [(1,), (2,), (7,), (8,), (3, 4), (2, 5, 3), (0,)]:
            for dtype in ["float64", "complex64", "int32", "bool"]:
                x = signal(dtype, shape)
                w.case("fft." + name, getattr(np.fft, name), [x])
                w.case("fft." + name, getattr(np.fft, name), [x], {"axes": []})
                w.case("fft." + name, getattr(np.fft, name), [x], {"axes": int(rng.integers(-len(shape), len(shape)))})
