#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints what is large in src/ and include/: files of over 400 lines, the ten longest functions, and structures of over
15 fields.

    sizes.py CHECKOUT [COMMIT]      of the working tree, or as a commit has it

The limits are CONTRIBUTING's aim for files, and what a reader still takes in at one look. Structures that are an
interface are counted apart, as they are as wide as what they offer: options, which begin with `const char *_`, and
tables of functions, with one field at most that is none. By the house's layout: a function's body lies between braces
in the first column, and a structure between `struct ... {` and a `}` there.
"""
import pathlib
import re
import subprocess
import sys

LINES, FUNCTIONS, FIELDS = 400, 10, 15
SOURCE = re.compile(r"(src|include)/.*\.(c|h|cuh|cl|def)$")
STRUCTURE = re.compile(r"^(?:typedef )?(?:struct|union) ?(\w*) \{\n(.*?)^\} ?(\w*)", re.M | re.S)
OPENED = re.compile(r"^(?:typedef )?(?:struct|union|enum)\b|=\s*$|^#|\\$")


def sources(checkout, commit):
    """Path and text of each source."""
    def git(*words):
        return subprocess.run(["git", "-C", checkout, *words], check=True, capture_output=True, text=True).stdout
    for path in filter(SOURCE.match, git(*(["ls-tree", "-r", "--name-only", commit] if commit else
                                           ["ls-files"])).splitlines()):
        file = pathlib.Path(checkout, path)
        if commit or file.exists():
            yield path, git("show", f"{commit}:{path}") if commit else file.read_text(encoding="utf-8")


def functions(text):
    """Name and lines of each function, its first line being that of its name."""
    lines, start = text.split("\n"), 0
    for at, line in enumerate(lines):
        if line == "{":
            start = at
            while start and lines[start - 1] and not re.match(r"[/ ]\*|.*[;}]$|#", lines[start - 1]):
                start -= 1
        elif line == "}" and start and not OPENED.search(lines[start]):
            name = re.search(r"(\w+)\s*\(", re.sub(r"TN_PRINTF\([^)]*\)|__attribute__\(\(.*?\)\)", "",
                                                   " ".join(lines[start:at])))
            yield name.group(1) if name else lines[start], at - start + 1
            start = 0


def fields(body):
    """How many names are declared between the braces of a structure; an inner structure is one, a function none."""
    body = re.sub(r"/\*.*?\*/|//[^\n]*", "", body, flags=re.S)
    body = re.sub(r"^\s*#.*$", "", body, flags=re.M)
    for pair in (r"\([^()]*\)", r"\[[^][]*\]"):
        while re.search(pair, body):
            body = re.sub(pair, lambda found: "@" if found.group()[0] == "(" else "", body)
    while "{" in body:
        body, changed = re.subn(r"[^;{}]*@\s*(?:const\s*)?\{[^{}]*\}", "", body)
        if not changed:
            body = re.sub(r"\{[^{}]*\}", "", body)
    return sum(part.count(",") + 1 for part in body.split(";") if part.strip())


def is_interface(body):
    """Whether a structure is options, or a table of functions."""
    return re.match(r"\s*const char \*_;", body) or fields(body) - len(re.findall(r"\(\*\w+\)\(", body)) <= 1


def main(checkout, commit=None):
    long_files, long_functions, wide, interfaces = [], [], [], []
    for path, text in sources(checkout, commit):
        lines = text.count("\n")
        if lines > LINES:
            long_files.append((lines, path))
        if path.endswith((".c", ".h")):
            long_functions += [(count, name, path) for name, count in functions(text)]
        for found in STRUCTURE.finditer(text):
            row = (fields(found.group(2)), found.group(1) or found.group(3), path)
            if row[0] > FIELDS:
                (interfaces if is_interface(found.group(2)) else wide).append(row)
    for title, rows in ((f"Files over {LINES} lines", long_files),
                        (f"The {FUNCTIONS} longest functions", sorted(long_functions)[-FUNCTIONS:]),
                        (f"Structures over {FIELDS} fields", wide),
                        (f"Options and tables of functions over {FIELDS} fields", interfaces)):
        print(f"{title}: {len(rows)}")
        for row in sorted(rows, reverse=True):
            print("   ", *row)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
