#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Arrows between rooms only point down: checks every #include in src/ against the list of rooms, src/rooms.txt.

    layering.py CHECKOUT        prints each offending line and exits 1, if there is one
"""
import pathlib
import re
import sys

# Single files open to a room that may not see the rest of their room, each with its reason.
EXCEPTIONS = [
    ("backends/mpi", r"comm/transport\.h"),  # what communicators go over
    ("backends/nccl", r"comm/transport\.h"),
]

UMBRELLA = "tanso.h"
UMBRELLA_ROOMS = {"cli"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')
ROOM = re.compile(r"^([a-z/]+):(.*)$")


def read_rooms(path):
    """The list: for each room, those that it may include."""
    found = (ROOM.match(line) for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines())
    return {match.group(1): match.group(2).split() for match in found if match}


ROOMS = read_rooms(pathlib.Path(__file__).parents[2] / "src" / "rooms.txt")


def house(room):
    return room.split("/")[0]


def rooms_of(name, asking):
    """What a name in the list of `asking` stands for: from outside its house, all rooms of the house."""
    if "/" in name or house(name) == house(asking):
        return {name}
    return {room for room in ROOMS if house(room) == name}


def closure(room):
    """Every room that this one may include, itself among them."""
    rooms, waiting = {room}, [room]
    while waiting:
        asking = waiting.pop()
        for name in ROOMS[asking]:
            for lower in rooms_of(name, asking) - rooms:
                rooms.add(lower)
                waiting.append(lower)
    return rooms


def room_of(path):
    """The room a file belongs to by its path below src/, or None: the innermost folder that is one."""
    for folder in pathlib.PurePosixPath(path).parents:
        if str(folder) in ROOMS:
            return str(folder)
    return None


def target_room(path):
    """The room an included path belongs to, or None for a file of no room."""
    parts = path.split("/")
    if parts[0] == "tanso" and len(parts) == 2:
        name = parts[1].removesuffix(".h")
        return name if name in ROOMS else None
    return room_of(path)


def violation(room, path):
    """Why room may not include path, or None."""
    if path == UMBRELLA and room not in UMBRELLA_ROOMS:
        return f"{UMBRELLA} is for users: include the headers of the rooms used"
    target = target_room(path)
    if target is None or target in closure(room):
        return None
    if any(re.fullmatch(who, room) and re.fullmatch(what, path) for who, what in EXCEPTIONS):
        return None
    return f"{room} may include only {', '.join(sorted(closure(room) - {room})) or 'no other room'}"


def check(checkout):
    """Messages for every offending line under checkout/src, and folders that are no room."""
    messages, src = [], pathlib.Path(checkout) / "src"
    for file in sorted(path for path in src.rglob("*") if path.suffix in {".c", ".h", ".def"}):
        name = file.relative_to(src).as_posix()
        room = str(pathlib.PurePosixPath(name).parent)
        if room not in ROOMS:
            messages.append(f"{file}: its folder is no room of src/rooms.txt")
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            why = found and violation(room, found.group(1))
            if why:
                messages.append(f"src/{name}:{number}: {line.strip()}: {why}")
    return messages


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    offending = check(sys.argv[1])
    print("\n".join(offending) if offending else "every arrow points down")
    sys.exit(bool(offending))
