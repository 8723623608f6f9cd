#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_tool.py REPLAY: what the tool says of cases that pass, fail, are unknown or are none, and its exit statuses."""
import json
import pathlib
import subprocess
import sys
import tempfile

ONE, TWO = {"scalar": 1}, {"scalar": 2}
MISSING = {"npy": "missing.npy"}


def matrix(*rows):
    return {"list": [{"list": [{"scalar": x} for x in row]} for row in rows]}


EYE, TURNED, WRONG = matrix([1.0, 0.0], [0.0, 1.0]), matrix([0.6, -0.8], [0.8, 0.6]), matrix([0.6, -0.8], [0.8, 0.7])


def case(op, args, out=None, **more):
    return json.dumps({"id": op, "op": op, "args": args, "kwargs": {}, "rtol": 0, "atol": 0, "raises": out is None,
                       **({} if out is None else {"out": out}), **more})


COUNTS = "{} passed, {} failed, {} unknown, {} refused"

# line, (passed, failed, unknown, refused)
LINES = [
    (case("add", [ONE, TWO], [{"scalar": 3}]), (1, 0, 0, 0)),
    (case("add", [ONE, TWO], {"scalar": 3}), (1, 0, 0, 0)),
    (case("add", [ONE, TWO], [{"scalar": 4}]), (0, 1, 0, 0)),
    (case("add", [ONE, TWO], [{"scalar": 3.0}]), (0, 1, 0, 0)),  # another kind
    (case("add", [ONE, TWO], []), (0, 1, 0, 0)),
    (case("add", [ONE, TWO]), (0, 1, 0, 0)),  # NumPy raised
    (case("add", [ONE]), (0, 0, 0, 1)),  # NumPy raised, and so does the tool
    (case("add", [ONE, TWO], kwargs={"axes": 1}), (0, 0, 0, 1)),
    (case("add", [ONE], [ONE]), (0, 1, 0, 0)),
    (case("matmul", [{"list": [ONE, TWO]}, {"list": [ONE]}]), (1, 0, 0, 0)),
    (case("no.such.function", [ONE]), (0, 0, 1, 0)),
    (case("argsort", [{"list": [ONE, ONE, TWO]}], [{"list": [ONE, {"scalar": 0}, TWO]}]), (1, 0, 0, 0)),  # a tie
    (case("argsort", [{"list": [ONE, ONE, TWO]}], [{"list": [ONE, ONE, TWO]}]), (0, 1, 0, 0)),  # no order at all
    (case("argsort", [{"list": [ONE, ONE, TWO]}], [{"list": [ONE, {"scalar": 0}, TWO]}], kwargs={"kind": "stable"}),
     (0, 1, 0, 0)),
    (case("partition", [{"list": [TWO, ONE, ONE]}, ONE], [{"list": [ONE, ONE, TWO]}]), (1, 0, 0, 0)),
    (case("partition", [{"list": [TWO, ONE, ONE]}, ONE], [{"list": [ONE, TWO, ONE]}]), (0, 1, 0, 0)),
    (case("linalg.qr", [EYE], [EYE, EYE]), (1, 0, 0, 0)),
    (case("linalg.eigh", [EYE], [{"list": [1.0, 1.0]}, TURNED], rtol=1e-9, atol=1e-9), (1, 0, 0, 0)),  # of equal values
    (case("linalg.eigh", [EYE], [{"list": [1.0, 1.0]}, WRONG], rtol=1e-9, atol=1e-9), (0, 1, 0, 0)),
    (case("getitem", [EYE, {"list": [ONE, ONE]}], [{"scalar": 1.0}]),
     (1, 0, 0, 0)),  # a tuple of numbers, written as a list
    (case("getitem", [EYE, {"list": [ONE, ONE]}], [TURNED]), (0, 1, 0, 0)),
    (case("tolist", [EYE], [[1.0, 0.0], [0.0, 1.0]]), (1, 0, 0, 0)),
    (case("tolist", [EYE], [[1.0, 0.0], [0.0, 2.0]]), (0, 1, 0, 0)),
    (case("conjugate", [{"complex": ["nan", 1]}], [{"complex": ["nan", "nan"]}]),
     (1, 0, 0, 0)),  # NaN, whatever its other part is
    (case("conjugate", [{"complex": [1, 1]}], [{"complex": ["nan", "nan"]}]), (0, 1, 0, 0)),
    (case("zeros", [ONE], [[0.0]], kwargs={"dtype": {"dtype": "<class 'numpy.float64'>"}}), (1, 0, 0, 0)),
    (case("zeros", [ONE], kwargs={"dtype": "numpy.float63"}), (0, 0, 0, 1)),
    # what is no case never passes, also where NumPy raised
    (case("add", [MISSING, ONE]), (0, 1, 0, 0)),
    (case("add", [{"array": 1}, ONE]), (0, 1, 0, 0)),
    (case("add", [{"scalar": "one"}, ONE]), (0, 1, 0, 0)),
    (case("add", [{"str": 1}, ONE]), (0, 1, 0, 0)),
    (case("add", [{}, ONE]), (0, 1, 0, 0)),
    (case("getitem", [{"list": [ONE]}, {"slice": [1]}]), (0, 1, 0, 0)),
    (case("add", [{"complex": [1]}, ONE]), (0, 1, 0, 0)),
    (case("add", "1, 2"), (0, 1, 0, 0)),
    (case("add", [ONE, TWO], [MISSING]), (0, 1, 0, 0)),
    ("no JSON", (0, 1, 0, 0)),
    ("[]", (0, 1, 0, 0)),
    ('{"id": "nothing"}', (0, 1, 0, 0)),
    ("", (0, 0, 0, 0)),
]


def run(tool, *words):
    done = subprocess.run([tool, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines()


def main(tool):
    wrong = 0

    def expect(what, got, wanted):
        nonlocal wrong
        if got != wanted:
            wrong += 1
            print(f"{what}: {got}, expected {wanted}")

    with tempfile.TemporaryDirectory() as folder:
        cases = pathlib.Path(folder) / "cases.jsonl"
        total = [0, 0, 0, 0]
        for line, counts in LINES:
            cases.write_text(line + "\n")
            status, said = run(tool, folder)
            expect(line, (status, said[-1]), (int(counts[1] > 0), COUNTS.format(*counts)))
            expect(line, sum(s.startswith("FAILED") for s in said), counts[1])
            total = [a + b for a, b in zip(total, counts)]
        cases.write_text("\n".join(line for line, _ in LINES))
        status, said = run(tool, folder)
        expect("all", (status, said[-1]), (1, COUNTS.format(*total)))
        expect("all, of one operation", run(tool, folder, "--op", "no.such.function")[1][-1],
               COUNTS.format(0, 0, 1, 0))
        expect("no device", run(tool, folder, "--device", "abacus")[0], 2)
        cases.unlink()
        expect("no file", run(tool, folder)[0], 2)
    expect("no folder", run(tool)[0], 2)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
