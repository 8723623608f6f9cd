#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arrays between Tanso and NumPy, PyTorch and CuPy (where they are installed): files both ways, capsules both ways, the
array interfaces.

    test_interop.py LIBTANSO.SO        exits 77 without NumPy; prints what was tried, and 1 on the first difference
"""
import gc
import os
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("NumPy is not here")
    sys.exit(77)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tanso import CUDA, Tanso  # noqa: E402

DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128").split()
SHAPES = [(), (0,), (7,), (3, 4), (2, 0, 3), (2, 3, 4, 5)]


def arrays(random):
    for dtype in DTYPES:
        for shape in SHAPES:
            x = (100 * random.standard_normal(shape)).astype(dtype if dtype != "bool" else float)
            yield np.asarray(x > 0 if dtype == "bool" else x, dtype=dtype)


def layouts(x):
    """The array in other orders in memory."""
    yield x
    yield np.asfortranarray(x)
    if x.ndim:
        yield x[::2]
        yield np.broadcast_to(x, (2,) + x.shape)


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
    assert a.tobytes() == b.tobytes(), (a, b)


def files(tanso, folder, random):
    """What NumPy wrote is read, what Tanso wrote NumPy reads."""
    path = os.path.join(folder, "x.npy")
    back = os.path.join(folder, "y.npy")
    count = 0
    for x in arrays(random):
        for y in layouts(x):
            np.save(path, y)
            tanso.save_npy(tanso.load_npy(path), back)
            same(np.load(back), y)
            tanso.save_npy(tanso.load_npy(path, mapped=True), back)
            same(np.load(back), y)
            count += 2
        if x.dtype.itemsize > 1:
            np.save(path, x.astype(x.dtype.newbyteorder(">")))
            tanso.save_npy(tanso.load_npy(path), back)
            same(np.load(back), x)
            count += 1
    named = {f"a{i}": x for i, x in enumerate(arrays(random))}
    for save in np.savez, np.savez_compressed:
        path = os.path.join(folder, "x.npz")
        save(path, **named)
        found = tanso.load_archive(path)
        back = os.path.join(folder, "y.npz")
        tanso.save_archive(found, back)
        with np.load(back) as read:
            assert set(read.files) == set(named)
            for name in named:
                same(read[name], named[name])
        count += 1
    path, back = os.path.join(folder, "x.csv"), os.path.join(folder, "y.csv")
    x = random.standard_normal((20, 3)).astype("float32")
    np.savetxt(path, x, delimiter=",", header="a,b,c")
    tanso.save_csv(tanso.load_csv(path), back)
    same(np.loadtxt(back, delimiter=",", dtype="float32"), x)
    return count + 1


def interface(tanso, folder, random):
    """numpy.asarray sees the memory itself."""
    path = os.path.join(folder, "x.npy")
    count = 0
    for x in arrays(random):
        np.save(path, x)
        y = tanso.load_npy(path)
        seen = np.asarray(y)
        same(seen, x)
        assert not seen.flags.writeable
        assert seen.size == 0 or seen.__array_interface__["data"][0] == y.interface()["data"][0]
        count += 1
    return count


def capsules(tanso, folder, random):
    """DLPack both ways with NumPy, without a copy."""
    count = 0
    for x in arrays(random):
        for y in layouts(x):
            y = y if y.flags.writeable else y.copy()  # NumPy lends no read-only memory to old capsules
            try:
                z = tanso.from_dlpack(y)
            except BufferError:  # bool, to NumPy before 1.25
                assert y.dtype == bool
                continue
            same(np.asarray(z), y)
            assert y.size == 0 or z.interface()["data"][0] == y.__array_interface__["data"][0]
            same(np.from_dlpack(z), y)
            count += 2
    x = np.arange(10.0)
    for bad in (x[::-1],):
        try:
            tanso.from_dlpack(bad)
        except RuntimeError as error:
            assert "negative stride" in str(error), error
            count += 1
        else:
            raise AssertionError("a negative stride was taken")
    same(np.from_dlpack(tanso.from_dlpack(x) + tanso.from_dlpack(x)), x + x)
    # memory lives as long as anybody needs it
    kept = np.from_dlpack(tanso.from_dlpack(np.arange(5)) + tanso.from_dlpack(np.arange(5)))
    gc.collect()
    same(kept, 2 * np.arange(5))
    return count


def torch_capsules(tanso, folder, random):
    import torch

    count = 0
    for x in arrays(random):
        if x.dtype.name in ("uint16", "uint32", "uint64"):
            continue
        y = torch.from_numpy(x.copy())
        z = tanso.from_dlpack(y)
        same(np.asarray(z), x)
        back = torch.from_dlpack(z)
        assert torch.equal(torch.nan_to_num(back), torch.nan_to_num(y))
        assert back.numel() == 0 or back.data_ptr() == y.data_ptr()
        count += 1
    y = torch.arange(6, dtype=torch.bfloat16)
    assert torch.equal(torch.from_dlpack(tanso.from_dlpack(y)), y)
    return count + 1


def cupy_capsules(tanso, folder, random):
    import cupy

    count = 0
    for x in arrays(random):
        y = cupy.asarray(x)
        z = tanso.from_dlpack(y)
        cupy.cuda.Device().synchronize()
        same(cupy.asnumpy(cupy.from_dlpack(z)), x)
        if x.size:  # CuPy does not take the null pointer that the interface asks for where there are no elements
            same(cupy.asnumpy(cupy.asarray(z)), x)  # by __cuda_array_interface__
        assert x.size == 0 or z.interface()["data"][0] == y.data.ptr
        count += 2
    z = tanso.from_dlpack(np.arange(8.0)).to(CUDA)
    same(cupy.asnumpy(cupy.asarray(z)), np.arange(8.0))
    return count + 1


def main():
    tanso = Tanso(sys.argv[1])
    seed = int(os.environ.get("TANSO_TEST_SEED", int.from_bytes(os.urandom(4), "little")))
    print(f"TANSO_TEST_SEED={seed}, NumPy {np.__version__}")
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        for test, module in ((files, "numpy"), (interface, "numpy"), (capsules, "numpy"), (torch_capsules, "torch"),
                             (cupy_capsules, "cupy")):
            try:
                __import__(module)
            except ImportError:
                print(f"{test.__name__}: skipped, {module} is not here")
                continue
            print(f"{test.__name__}: {test(tanso, folder, random)} exchanges")
    gc.collect()
    assert tanso.live_arrays() == 0, f"{tanso.live_arrays()} arrays are left"


main()
