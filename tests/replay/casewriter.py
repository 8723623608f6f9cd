# SPDX-License-Identifier: MIT
"""Writing cases for tests/conformance/replay: cases.jsonl and the .npy files that it names.

NumPy's promotion is that of NEP 50, by this NumPy's own means where it is older than 2.0. Inputs are random, of a seed
that is printed; TANSO_TEST_SEED repeats it.
"""
import hashlib
import json
import os
import time
import warnings

import numpy as np

warnings.simplefilter("ignore")
np.seterr(all="ignore")
if hasattr(np, "_set_promotion_state"):
    np._set_promotion_state("weak")

legacy = False  # write NumPy 1's own answers too

NEW = np.lib.NumpyVersion(np.__version__) >= "2.2.0"

SEED = int(os.environ.get("TANSO_TEST_SEED") or time.time_ns() % 2**32)
rng = np.random.default_rng(SEED)

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 float32 float64".split()
COMPLEXES = ["complex64", "complex128"]
REALS = ["bool", *INTEGERS, *FLOATS]
SHAPES = [(), (1,), (7,), (33,), (3, 5), (1, 9), (2, 3, 4), (5, 1, 3), (0,), (2, 0), (2, 1, 2, 3), (4, 4)]
TOLERANCE = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13, "complex64": 4e-6, "complex128": 1e-13}


def pick(options):
    return options[rng.integers(len(options))]


def chance(p):
    return rng.random() < p


def integers(dtype, shape, low=-9, high=10):
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, low), min(info.max, high), shape).astype(dtype)


def values(dtype, shape, specials=True):
    """Elements of a dtype: near zero mostly, with the dtype's extreme values in some arrays."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        if specials and chance(0.3):
            return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
        return integers(dtype, shape)
    if dtype in COMPLEXES:
        part = "float32" if dtype == "complex64" else "float64"
        return (values(part, shape, specials) + 1j * values(part, shape, False)).astype(dtype)
    x = rng.standard_normal(shape) * 3
    if specials and chance(0.3):
        x = np.where(rng.random(shape) < 0.3, rng.choice([0.0, -0.0, 1, -1, 0.5, 2.5, np.nan, np.inf, -np.inf], shape),
                     x)
    return np.asarray(x).astype(dtype)


def laid_out(x):
    """x as it is, in Fortran order, or with other strides: the values are the same."""
    x = np.asarray(x)
    kind = rng.integers(5)
    if kind == 0 and x.ndim > 1:
        return np.asfortranarray(x)
    return x


def array(dtype, shape, specials=True):
    return laid_out(values(dtype, shape, specials))


def answered_anew(op, args, kwargs):
    """Whether NumPy 2 answers otherwise than the older one that is running: then its answer is no case."""
    if NEW or not args or legacy:
        return False
    x = np.asarray(args[0]) if isinstance(args[0], (np.ndarray, np.generic, int, float)) else np.zeros(0)
    if op in ("floor", "ceil", "trunc", "fix"):
        return x.dtype.kind in "biu"  # which keep their dtype
    if op in ("cov", "corrcoef"):
        return x.ndim == 2 and len(x) == 1  # one row of several variables
    if op == "select":
        return any(isinstance(c, (int, float)) for c in args[1])  # numbers adapt to arrays
    if op.endswith(("quantile", "percentile")):
        return kwargs.get("method") == "closest_observation"  # its ties
    if op == "unique":
        return bool(kwargs.get("return_inverse")) and (x.ndim != 1 or "axis" in kwargs)  # its shape
    if op == "histogram":
        return kwargs.get("bins") == "auto" or (isinstance(kwargs.get("bins"), str)
                                                and x.dtype.kind in "biu")  # at least 1 wide
    return op == "trim_zeros" and x.ndim != 1


class Writer:
    def __init__(self, folder, share=1):
        self.folder = folder
        self.share = share
        self.asked = 0
        os.makedirs(folder, exist_ok=True)
        self.file = open(os.path.join(folder, "cases.jsonl"), "w")
        self.names = {}
        self.count = 0
        self.per_op = {}

    def npy(self, x):
        key = (x.dtype.str, x.shape, x.flags.f_contiguous and not x.flags.c_contiguous,
               hashlib.blake2b(x.tobytes("A"), digest_size=16).digest())
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = f"{len(self.names):05d}.npy"
            np.save(os.path.join(self.folder, name), x)
        return {"npy": name}

    def encode(self, v):
        if isinstance(v, np.ndarray):
            return self.npy(v)
        if isinstance(v, np.generic):
            return self.npy(np.asarray(v))
        if isinstance(v, (bool, int)):
            return {"scalar": v}
        if isinstance(v, float):
            return {"scalar": v if np.isfinite(v) else "nan" if v != v else "inf" if v > 0 else "-inf"}
        if isinstance(v, complex):
            return {"complex": [v.real, v.imag]}
        if v is None:
            return {"none": True}
        if v is Ellipsis:
            return {"ellipsis": True}
        if isinstance(v, slice):
            return {"slice": [v.start, v.stop, v.step]}
        if isinstance(v, str):
            return {"str": v}
        if isinstance(v, np.dtype) or (isinstance(v, type) and issubclass(v, np.generic)):
            return {"dtype": np.dtype(v).name}
        if isinstance(v, (list, tuple)):
            return {"list": [self.encode(x) for x in v]}
        raise TypeError(f"no form for {type(v)}")

    def plain(self, v):
        """A keyword's value: plain JSON where that can say it."""
        if v is None or isinstance(v, (bool, int, str)) or (isinstance(v, float) and np.isfinite(v)):
            return v
        if isinstance(v, (list, tuple)) and all(isinstance(x, int) for x in v):
            return list(v)
        return self.encode(v)

    def case(self, op, function, args, kwargs=None, rtol=None, atol=0.0, mutable=False):
        """The call function(*args, **kwargs), as `op`. mutable: it may write to its arguments."""
        kwargs = kwargs or {}
        if answered_anew(op, args, kwargs):
            return
        self.asked += 1
        if self.asked % self.share:
            return
        line = {"id": f"{op}-{self.per_op.get(op, 0)}", "op": op, "args": [self.encode(a) for a in args],
                "kwargs": {k: self.plain(v) for k, v in kwargs.items()}}
        try:
            given = [a.copy() if mutable and isinstance(a, np.ndarray) else a for a in args]
            given_kwargs = {k: a.copy() if isinstance(a, np.ndarray) and k == "out" else a for k, a in kwargs.items()}
            result = function(*given, **given_kwargs)
        except (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, np.linalg.LinAlgError):
            line["raises"] = True
        else:
            several = isinstance(result, (tuple, list))
            results = [np.asarray(r) for r in (result if several else [result])]
            if rtol is None:
                rtol = max([TOLERANCE.get(r.dtype.name, 0) for r in results], default=0)
            line.update(out=[self.npy(r) for r in results], rtol=float(rtol), atol=float(atol), raises=False)
        self.file.write(json.dumps(line) + "\n")
        self.count += 1
        self.per_op[op] = self.per_op.get(op, 0) + 1

    def close(self):
        self.file.close()
