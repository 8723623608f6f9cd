#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arrows between rooms only point down: checks every #include in src/ against the table of rooms.

    layering.py CHECKOUT        prints each offending line and exits 1, if there is one

A public header named like a room (tanso/engine.h) belongs to it; tanso.h holds them all, and is for the
command and for users.
"""
import pathlib
import re
import sys

# What a room may include, beside itself and what those rooms may include in turn.
MAY_INCLUDE = {
    "core": [],
    "array": ["core", "device"],
    "device": ["core"],
    "compile": ["array", "device"],
    "backends": ["device"],
    "autograd": ["array"],
    "engine": ["compile", "device", "array"],
    "numpy": ["linalg"],
    "linalg": ["array", "engine"],
    "comm": ["autograd", "engine"],
    "nn": ["array", "autograd", "engine", "io"],
    "optim": ["nn", "comm"],
    "io": ["engine"],
    "data": ["engine", "nn", "io", "comm"],
    "train": ["autograd", "backends", "optim", "io", "data"],
    "cli": ["train"],
}

# Single files open to a room that may not see the rest of their room: the backends run the table of
# operations and its scalar functions themselves, and are what communicators go over.
EXCEPTIONS = {("backends", r"array/(ops\.def|scalar\w*\.h)"), ("backends", r"comm/transport\.h")}

UMBRELLA = "tanso.h"
UMBRELLA_ROOMS = {"cli"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')


def closure(room):
    """Every room that this one may include, itself among them."""
    rooms, waiting = {room}, [room]
    while waiting:
        for lower in MAY_INCLUDE[waiting.pop()]:
            if lower not in rooms:
                rooms.add(lower)
                waiting.append(lower)
    return rooms


def target_room(path):
    """The room an included path belongs to, or None for a file of no room."""
    parts = path.split("/")
    if parts[0] == "tanso" and len(parts) == 2:
        parts = [parts[1].removesuffix(".h"), ""]
    return parts[0] if len(parts) > 1 and parts[0] in MAY_INCLUDE else None


def violation(room, path):
    """Why room may not include path, or None."""
    if path == UMBRELLA and room not in UMBRELLA_ROOMS:
        return f"{UMBRELLA} is for users: include the headers of the rooms used"
    target = target_room(path)
    if target is None or target in closure(room):
        return None
    if any(room == who and re.fullmatch(what, path) for who, what in EXCEPTIONS):
        return None
    return f"{room} may include only {', '.join(sorted(closure(room) - {room})) or 'no other room'}"


def check(checkout):
    """Messages for every offending line under checkout/src."""
    messages, src = [], pathlib.Path(checkout) / "src"
    for folder in sorted(path for path in src.iterdir() if path.is_dir()):
        if folder.name not in MAY_INCLUDE:
            messages.append(f"{folder}: no such room in the table of {__file__}")
            continue
        for file in sorted(path for path in folder.rglob("*") if path.suffix in {".c", ".h", ".def"}):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                found = INCLUDE.match(line)
                why = found and violation(folder.name, found.group(1))
                if why:
                    messages.append(f"{file.relative_to(checkout)}:{number}: {line.strip()}: {why}")
    return messages


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    offending = check(sys.argv[1])
    print("\n".join(offending) if offending else "every arrow points down")
    sys.exit(bool(offending))
