#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""generate.py FOLDER [--share N] [SUBJECT...]: cases for tests/conformance/replay, computed by NumPy. Each
cases_<subject>.py beside this file writes those of its subject: write(writer). With --share one in N of them."""
import importlib
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import casewriter  # noqa: E402


def main(folder, *words):
    share = int(words[1]) if words[:1] == ("--share",) else 1
    subjects = words[2:] if words[:1] == ("--share",) else words
    writer = casewriter.Writer(folder, share)
    files = sorted(pathlib.Path(__file__).parent.glob("cases_*.py"))
    for name in (f.stem for f in files):
        if not subjects or name.removeprefix("cases_") in subjects:
            importlib.import_module(name).write(writer)
    writer.close()
    print(f"{writer.count} cases of {len(writer.per_op)} operations, {len(writer.names)} files, seed {casewriter.SEED}")


if __name__ == "__main__":
    main(*sys.argv[1:])
