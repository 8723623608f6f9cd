#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Files that NumPy wrote, for the readers: FOLDER/io/NAME.npy, each with its elements in C order and native byte order
as NAME.raw; two .npz of the same arrays; and list.txt with a line "NAME DTYPE EXTENTS..." an array."""
import io
import pathlib
import sys
import warnings
import zipfile

import numpy as np

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
SHAPES = [(), (1,), (7,), (0,), (2, 3), (3, 0, 2), (2, 1, 3, 2), (1, 2, 1, 2, 1, 2, 1, 2)]


def arrays():
    random = np.random.default_rng(20260101)
    for dtype in DTYPES:
        for i, shape in enumerate(SHAPES):
            values = random.standard_normal(shape) * 100
            array = np.asarray(values > 0 if dtype == "bool" else abs(values) if dtype[0] == "u"
                               else values).astype(dtype)
            yield f"{dtype}_{i}", array, array
            yield f"{dtype}_{i}_fortran", array, np.array(array, order="F")
            yield f"{dtype}_{i}_swapped", array, array.astype(array.dtype.newbyteorder("S"))


def stored_bytes(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    lines, all_arrays = [], {}
    for i, (name, plain, stored) in enumerate(arrays()):
        version = [(1, 0), (2, 0), (3, 0)][i % 3]
        with open(folder / f"{name}.npy", "wb") as file:
            np.lib.format.write_array(file, stored, version=version)
        (folder / f"{name}.raw").write_bytes(plain.tobytes())
        lines.append(" ".join([name, plain.dtype.name, *map(str, plain.shape)]))
        all_arrays[name] = stored
    np.savez(folder / "stored.npz", **all_arrays)
    np.savez_compressed(folder / "deflated.npz", **all_arrays)
    np.savez(folder / "empty.npz")
    lie = stored_bytes(np.zeros(3, np.uint8)).replace(b"(3,), }" + 11 * b" ", b"(1099511627776,) }")
    with zipfile.ZipFile(folder / "lie.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("x.npy", lie)
    with zipfile.ZipFile(folder / "twice.npz", "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            file.writestr("x.npy", stored_bytes(np.zeros(3)))
    with zipfile.ZipFile(folder / "other.npz", "w") as file:
        file.writestr("readme.txt", "hello")
    (folder / "list.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) / "io")
