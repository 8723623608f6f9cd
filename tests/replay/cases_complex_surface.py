# SPDX-License-Identifier: MIT
"""What rearranges, indexes, reduces, sorts and multiplies, of complex numbers."""
import numpy as np

import cases_index
import cases_manipulate
from casewriter import COMPLEXES, array, chance, pick, values

NEAR = dict(rtol=2e-5, atol=2e-5)


def elsewhere(w):
    """The other files' cases, with complex dtypes in the place of theirs."""
    for module, parts in ((cases_index, "reading writing taking choosing"),
                          (cases_manipulate, "diagonals axes joining")):
        reals, module.REALS = module.REALS, COMPLEXES
        for part in parts.split():
            getattr(module, part)(w)
        module.REALS = reals


def reductions(w, x):
    for name in ("sum prod mean var std cumsum cumprod diff ptp max min argmax nansum nanmean count_nonzero any "
                 "all").split():
        w.case(name, getattr(np, name), [x / 2 if "prod" in name else x], dict(axis=-1), **NEAR)
    w.case("gradient", np.gradient, [x], **NEAR)
    w.case("average", np.average, [x], dict(axis=-1, weights=np.arange(1.0, x.shape[-1] + 1)), **NEAR)
    for name in ("sort", "argsort", "unique"):
        w.case(name, getattr(np, name), [x])
    w.case("where", np.where, [values("bool", x.shape), x, array("float32", x.shape, False)])
    w.case("round", np.round, [x], dict(decimals=1), atol=1e-5)
    for name in ("isclose", "array_equal", "allclose"):
        w.case(name, getattr(np, name), [x, x + x.dtype.type(pick([0, 1e-9, 0.1]))])
    w.case("nan_to_num", np.nan_to_num, [array(x.dtype.name, x.shape)])


def products(w, y):
    other = y.T.copy()
    for text in ("ij,kj->ik", "ij,ij->i", "ij->ji"):
        w.case("einsum", np.einsum, [text, y] + ([y] if "," in text else []), **NEAR)
    w.case("tensordot", np.tensordot, [y, other], dict(axes=1), **NEAR)
    for name in ("vdot", "inner", "outer", "kron"):
        w.case(name, getattr(np, name), [y, y], **NEAR)
    w.case("dot", np.dot, [y, other], **NEAR)
    w.case("cov", np.cov, [y], **NEAR)
    w.case("cross", np.cross, [y[:2, :3].copy(), y[0, :3].copy()], **NEAR)
    w.case("convolve", np.convolve, [y.ravel(), y[0]], **NEAR)
    w.case("pad", np.pad, [y, 2], dict(mode=pick(["constant", "edge", "reflect", "wrap", "mean"])), **NEAR)
    w.case("tril", np.tril, [y])
    w.case("interp", np.interp, [np.array([0.5, 1.5, -1]), np.arange(3.0), y[0, :3].copy()], **NEAR)


def write(w):
    elsewhere(w)
    for dtype in COMPLEXES * 12:
        reductions(w, array(dtype, pick([(4,), (3, 5), (2, 3, 4)]), False))
        products(w, array(dtype, (3, 4), False))
        w.case("linspace", np.linspace, [0, 1 + 2j, 5], dict(endpoint=chance(0.5)), **NEAR)
        w.case("full", np.full, [(2, 2), 1 + 2j])
        w.case("zeros", np.zeros, [3], dict(dtype=np.dtype(dtype)))
        w.case("eye", np.eye, [3], dict(dtype=np.dtype(dtype)))
