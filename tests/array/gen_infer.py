# SPDX-License-Identifier: MIT
"""The dtypes that NumPy gives elementwise functions for every pair of operands, Python numbers among them.

Writes infer.txt: a line "function operand [operand] result" each, where an operand is a dtype or one of the weak
scalars `bool`?, `int`?, `float`? and the result a dtype or "error".
"""
import os
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
if np.__version__ < "2":
    np._set_promotion_state("weak")

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
WEAK = {"bool?": True, "int?": 3, "float?": 2.5}
UNARY = """negative abs sign square exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan
sinh cosh tanh arcsinh arccosh arctanh isnan isinf isfinite signbit logical_not invert""".split()
BINARY = """add subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin arctan2 hypot
copysign logaddexp equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and
bitwise_or bitwise_xor left_shift right_shift""".split()


def result(function, *operands):
    try:
        return function(*operands).dtype.name
    except TypeError:
        return "error"


def operand(name):
    return WEAK[name] if name in WEAK else np.ones(2, name)


def main(folder):
    with open(os.path.join(folder, "infer.txt"), "w") as out:
        for name in UNARY:
            for a in DTYPES:
                print(name, a, result(getattr(np, name), operand(a)), file=out)
        for name in BINARY:
            for a in DTYPES + list(WEAK):
                for b in DTYPES + list(WEAK):
                    if a in DTYPES or b in DTYPES:
                        print(name, a, b, result(getattr(np, name), operand(a), operand(b)), file=out)


main(sys.argv[1])
