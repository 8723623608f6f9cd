#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/architecture.md names is there: files, and words of the sources.

    names.py CHECKOUT           prints each name in backticks that is neither, and exits 1, if there is one
"""
import pathlib
import re
import sys

PAGE = "docs/architecture.md"
FOLDERS = ("src", "include", "tests", "examples", "bench", "docs", "cmake", ".ci")
ENDINGS = r"\.(c|h|cuh|def|cpp|py|md|sh|cmake|npy)$"
NAME = re.compile(r"[A-Za-z]\w{2,}")


def files_of(root):
    files = [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.is_file()]
    return files + [path for path in root.glob("*") if path.is_file()]


def check(checkout):
    """Messages for every name in the page that is not there."""
    root = pathlib.Path(checkout)
    files = files_of(root)
    paths = ["/" + path.relative_to(root).as_posix() for path in files]
    words, beginnings = set(), set()
    for path in files:
        if path.suffix != ".md" and "corpus" not in path.parts:
            words.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="ignore")))
    for word in words:
        beginnings.update(word[:end + 1] for end in range(len(word)) if word[end] == "_")
    messages, text = [], (root / PAGE).read_text(encoding="utf-8")
    for found in re.finditer(r"`([^`\n]+)`", text):
        said, where = found.group(1), f"{PAGE}:{text.count(chr(10), 0, found.start()) + 1}"
        if re.fullmatch(r"[\w./-]+" + ENDINGS, said):
            if not any(path.endswith("/" + said) for path in paths):
                messages.append(f"{where}: no file is called {said}")
        elif not re.search(r"[<*]|\.\.\.", said):
            messages += [f"{where}: {name} is no word of the sources" for name in NAME.findall(said)
                         if name not in words and name not in beginnings]
    return messages


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    missing = check(sys.argv[1])
    print("\n".join(missing) if missing else "everything named is there")
    sys.exit(bool(missing))
