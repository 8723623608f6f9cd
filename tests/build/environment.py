#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""environment.py CHECKOUT: the environment variables that src/ reads are those of README.md's table and of the man
page."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
read = {}  # name: a file that reads it
for path in sorted(root.glob("src/**/*.c")):
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r'getenv\("(\w+)"\)', text) + re.findall(r'"(TANSO_[A-Z_]+)"', text):
        read.setdefault(name, path.relative_to(root))
readme = (root / "README.md").read_text(encoding="utf-8")
section = readme.split("## Environment variables", 1)[1].split("\n## ", 1)[0]
table = set(re.findall(r"\b[A-Z][A-Z_]{3,}\b", section))
manual = set(re.findall(r"\b[A-Z][A-Z_]{3,}\b",
                        (root / "docs/man/tanso.1").read_text(encoding="utf-8").split(".Sh ENVIRONMENT", 1)[1]))
# What other parts of the checkout read, or other programs.
scripts = "".join(p.read_text(encoding="utf-8") for p in [root / "quickstart", *root.glob("src/**/*.c"),
                                                          *root.glob("src/**/*.h")])
problems = [f"{name}, read by {where}, is not in README.md's table of environment variables" for name,
            where in read.items() if name not in table]
problems += [f"{name}, read by {where}, is not in docs/man/tanso.1" for name, where in read.items()
             if name not in manual]
problems += [f"{name}, in README.md's table, is read by nothing" for name in table if name.startswith("TANSO_")
             and name not in scripts]
print("\n".join(problems) or f"{len(read)} variables")
sys.exit(1 if problems or len(read) < 10 else 0)
