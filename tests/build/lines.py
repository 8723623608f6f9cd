#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lines of sources fit into 120 columns, have no tabs and nothing behind their last character; so do pages' sentences.

    lines.py CHECKOUT           prints each offending line and exits 1, if there is one
"""
import pathlib
import sys

FOLDERS = ("src", "include", "tests", "examples", "bench", "docs", "cmake", ".ci")
SUFFIXES = {".c", ".h", ".cuh", ".def", ".cpp", ".py", ".sh", ".cmake"}
COLUMNS = 120


def is_source(path):
    """A file in one of the languages that the house is written in: by its ending, or as a script by its first line."""
    if path.suffix in SUFFIXES or path.name == "CMakeLists.txt":
        return True
    if path.suffix or "corpus" in path.parts or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def faults(line):
    if len(line) > COLUMNS:
        yield f"{len(line)} columns, {COLUMNS} at most"
    if "\t" in line:
        yield "a tab"
    if line != line.rstrip():
        yield "white space at the end"


def sentences(page):
    """The lines of a page in Markdown, with their numbers, but for tables, programs and what they print."""
    program = False
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        program ^= line.lstrip().startswith("```")
        if not program and not line.startswith("|"):
            yield number, line


def check(checkout):
    """Messages for every offending line of the checkout's sources."""
    root = pathlib.Path(checkout)
    files = [path for folder in FOLDERS for path in (root / folder).rglob("*")] + list(root.glob("*"))
    messages = [f"{page.relative_to(root)}:{number}: {len(line)} columns, {COLUMNS} at most"
                for page in [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("bench/*.md")]
                for number, line in sentences(page) if len(line) > COLUMNS]
    for file in sorted(path for path in files if is_source(path)):
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
            messages += [f"{file.relative_to(root)}:{number}: {why}" for why in faults(line)]
    return messages


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    offending = check(sys.argv[1])
    print("\n".join(offending) if offending else "every line fits")
    sys.exit(bool(offending))
