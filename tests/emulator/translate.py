# SPDX-License-Identifier: MIT
"""translate.py TEXT LIBRARY: compiles a kernel text in CUDA C++ for the processor at hand.
translate.py --header FOLDER: compiles device.h, which stands before each, once for all libraries in that folder: the
standard headers in it take longer to read than most texts.

The text goes through the preprocessor as one for sm_80; then its kernels are named to the driver, variables in shared
memory become static ones (blocks run one after another), and PTX becomes calls of device.h's functions.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = {
    "__CUDACC__": "1", "__CUDACC_RTC__": "1", "__CUDA_ARCH__": "800", "__CUDACC_VER_MAJOR__": "13",
    "__CUDACC_VER_MINOR__": "0", "__device__": "", "__host__": "", "__forceinline__": "inline", "__noinline__": "",
    "__grid_constant__": "", "__launch_bounds__(...)": "", "__maxnreg__(n)": "",
    "__align__(n)": "__attribute__((aligned(n)))", "TANSO_EMULATED": "1",
}
DYNAMIC = 227 << 10  # bytes of shared memory that a launch may ask for
FLAGS = ["-std=gnu++17", "-O1", "-march=native", "-w", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
         "-fno-math-errno", "-fno-gnu-unique", "-fvisibility=hidden", "-fPIC"]
HEADER = "emulator/device.h"
LITERAL = re.compile(r'\s*"((?:[^"\\]|\\.)*)"')
EXTERN = re.compile(r"\bextern\s+__shared__\s+(?:__attribute__\s*\(\(.*?\)\)\s+)?([\w\s]+?)\s+(\w+)\s*\[\s*\]\s*;")
ASM = re.compile(r"\basm\b\s*(?:volatile)?\s*\(")


def preprocessed(text):
    defined = [f"-D{word}={meaning}" for word, meaning in WORDS.items()]
    undefined = ["-U__x86_64__", "-U__FMA__"]
    done = subprocess.run(["g++", "-E", "-P", "-x", "c++", "-std=gnu++17", *undefined, *defined, "-"], input=text,
                          capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def matching(text, start):
    """The place behind the parenthesis that closes what begins before `start`; strings hold none that count."""
    depth, i = 1, start
    while depth:
        if text[i] == '"':
            i = LITERAL.match(text, i).end()
            continue
        depth += (text[i] in "([{") - (text[i] in ")]}")
        i += 1
    return i


def apart(text, mark):
    """The parts of a list, where marks in parentheses and strings separate nothing."""
    parts, depth, last, i = [], 0, 0, 0
    while i < len(text):
        if text[i] == '"':
            i = LITERAL.match(text, i).end()
            continue
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if text[i] == mark and depth == 0:
            parts.append(text[last:i])
            last = i + 1
        i += 1
    return parts + [text[last:]]


def called(statement):
    """A statement of PTX, ("instruction ..." : outputs : inputs : ...), as a call."""
    code, *lists = apart(statement.replace("::", " : : "), ":")
    instructions = "".join(LITERAL.findall(code)).split(";")[:-1]
    operands = [re.match(r'\s*"[^"]*"\s*\((.*)\)\s*$', operand, re.S).group(1)
                for part in lists[:2] for operand in apart(part, ",") if operand.strip()]
    names = [re.sub(r"\W+", "_", re.sub(r"^\W*(@!?\w+ )?", "", i).split(" ")[0]) for i in instructions]
    names = [name for name in names if not name.startswith(("reg", "and_", "setp_", "not_"))]
    if not names:
        return "((void)0)"
    return f"ptx_{names[0]}({', '.join(operands)})"


def translated(text):
    out, last = [], 0
    for found in ASM.finditer(text):
        if found.start() < last:
            continue
        end = matching(text, found.end())
        out += [text[last:found.start()], called(text[found.end():end - 1])]
        last = end
    text = "".join(out) + text[last:]
    dynamic = sorted(set(EXTERN.findall(text))) or [("unsigned char", "emulated_none")]
    text = re.sub(r"\bextern\s+__shared__\b", "extern", text)
    text = re.sub(r"\b__shared__\b", "static", text)
    kernels = re.findall(r"__global__\s+void\s+(\w+)\s*\(", text)
    text = re.sub(r"\b__global__\b", "", text)
    if len(dynamic) > 1:
        raise SystemExit(f"shared memory under several names: {dynamic}")
    kind, name = dynamic[0]
    end = [f"alignas(1024) {kind} {name}[{DYNAMIC} / sizeof({kind})];", f"#define emulated_dynamic {name}"]
    return "\n".join([f'#include "{HEADER}"', text, *end, *(f"EMULATED_KERNEL({k})" for k in kernels), ""])


def compile_header(folder):
    path = os.path.join(folder, f"{HEADER}.gch")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    tests = os.path.dirname(HERE)
    subprocess.run(["g++", *FLAGS, "-x", "c++-header", "-I", tests, "-o", path, f"{tests}/{HEADER}"], check=True)


def compile_text(source, library):
    with open(source) as file:
        text = translated(preprocessed(file.read()))
    written = f"{library}.{os.getpid()}"
    with open(f"{written}.cc", "w") as file:
        file.write(text)
    headers = ["-I", os.path.dirname(library), "-I", os.path.dirname(HERE)]
    failed = subprocess.run(["g++", *FLAGS, "-shared", *headers, "-o", written, f"{written}.cc"]).returncode
    if not os.environ.get("TANSO_EMULATOR_KEEP"):
        os.remove(f"{written}.cc")
    if failed:
        raise SystemExit(failed)
    os.rename(written, library)


if sys.argv[1] == "--header":
    compile_header(sys.argv[2])
else:
    compile_text(*sys.argv[1:])
