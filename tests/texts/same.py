#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares kernel texts before and after a change, which tests/kernel_texts --keep has left in two folders.

    same.py BEFORE AFTER [NAMES]

Two texts are the same if they are so without comments and spaces, with names that are hashes (k_0123456789abcdef)
numbered in the order in which they come, and with the words of BEFORE renamed by the file NAMES, a line "old new" each.
Ends with 1, and says which are not the same, where a folder has texts that the other one lacks.
"""
import pathlib
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
HASHED = re.compile(r"\b((?:tn_)?[a-z]+)_([0-9a-f]{16})\b")
WORD = re.compile(r"[A-Za-z_]\w*")
SHOWN = 10


def reduced(text, names):
    """What of a text is compared."""
    number = {}
    text = COMMENT.sub(" ", text)
    if names:
        text = WORD.sub(lambda found: names.get(found.group(), found.group()), text)
    text = HASHED.sub(lambda found: f"{found.group(1)}_{number.setdefault(found.group(2), len(number))}", text)
    return " ".join(text.split())


def texts_of(folder, names):
    """A file's name by what its text is reduced to."""
    return {reduced(file.read_text(encoding="utf-8"), names): file.name
            for file in sorted(pathlib.Path(folder).glob("*.cu"))}


def main(before, after, names=None):
    lines = pathlib.Path(names).read_text(encoding="utf-8").splitlines() if names else []
    old, new = texts_of(before, dict(line.split() for line in lines if line.strip())), texts_of(after, None)
    lone = {before: [old[text] for text in old if text not in new],
            after: [new[text] for text in new if text not in old]}
    print(f"{len(old)} texts before, {len(new)} after; {len(lone[before])} only before, {len(lone[after])} only after")
    for folder, files in lone.items():
        for file in files[:SHOWN]:
            print(f"    {folder}/{file}")
    return any(lone.values())


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
