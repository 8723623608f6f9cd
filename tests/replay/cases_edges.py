# SPDX-License-Identifier: MIT
"""Where calls end: casts beyond a dtype's range, arrays for results that do not fit, rules of casting, wrong words, nothing."""
import platform

import numpy as np

from casewriter import FLOATS, INTEGERS


def casts(w):
    """What C leaves open, as x86-64 has it. NumPy's vectors differ from its single elements in uint32 beyond int32."""
    beyond = [-0.5, -1.5, -200.7, 300.0, -40000.2, 70000.0, 2e9, -2e9, 3e9, 5e9, -5e9, 2.0**40 + 3, 1e19, -1e19, 1e30, np.inf, -np.inf, np.nan]
    for dtype in FLOATS if platform.machine() == "x86_64" else []:
        for to in INTEGERS:
            known = [v for v in beyond if to != "uint32" or -(2.0**31) <= v < 2.0**32]
            x = np.array(known).astype(dtype)
            w.case("astype", lambda v, d: v.astype(d), [x if to != "uint32" else x[np.isfinite(x)], np.dtype(to)])


def write(w):
    for part in (casts,):
        part(w)
