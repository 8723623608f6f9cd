#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""gen_dtype.py FOLDER: NumPy's promotion of all pairs of dtypes, and of dtypes with Python scalars (NEP 50)."""
import sys

import numpy as np

NAMES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64").split()
WEAK = {"bool": True, "int": 1, "float": 1.0}

with open(f"{sys.argv[1]}/dtype_promotion.txt", "w", encoding="utf-8") as out:
    for a in NAMES:
        for b in NAMES:
            print("pair", a, b, np.result_type(np.dtype(a), np.dtype(b)).name, file=out)
    for a in NAMES:
        print("float", a, a, np.sqrt(np.ones(1, a)).dtype.name, file=out)
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        if not hasattr(np, "_set_promotion_state"):
            sys.exit(0)  # older than NEP 50
        np._set_promotion_state("weak")
    for a in NAMES:
        for kind, value in WEAK.items():
            print("weak", a, kind, np.add(np.ones(1, a), value).dtype.name, file=out)
