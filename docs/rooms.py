#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws who includes and who calls whom, as sources and objects have it: the pictures of docs/architecture.md.

    rooms.py CHECKOUT BUILD     writes them anew between their marks

An arrow is left out where others lead to the same room, so that what is left can be looked at. The tests build.layering
and build.calls check that no arrow points up, by src/rooms.txt.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "build"))
sys.dont_write_bytecode = True
import calls  # noqa: E402: found by the line before
import layering  # noqa: E402

MARKS = "<!-- drawn by rooms.py -->\n", "<!-- end of what rooms.py draws -->\n"


def arrows_of(src, build):
    """For each room, those that its files include or call, but for what the linker binds."""
    arrows = {room: set() for room in layering.ROOMS}
    for file in sorted(path for path in src.rglob("*") if path.suffix in {".c", ".h"}):
        room = layering.room_of(file.relative_to(src).as_posix())
        for line in file.read_text(encoding="utf-8").splitlines():
            found = layering.INCLUDE.match(line)
            target = layering.target_room(found.group(1)) if found else None
            if target and target != room:
                arrows[room].add(target)
    for source, name, other in calls.calls(src.parent, build):
        room, target = layering.room_of(source), layering.room_of(other)
        if room != target and name not in calls.BOUND.get(source, ()):
            arrows[room].add(target)
    return arrows


def joined(arrows, name_of):
    """The same between groups of rooms, None being no group."""
    groups = {}
    for room, targets in arrows.items():
        if name_of(room):
            names = {name_of(target) for target in targets}
            groups.setdefault(name_of(room), set()).update(names - {name_of(room), None})
    return groups


def reached(arrows, start, besides):
    """What is reached from a room without the arrow from there to one other."""
    seen, waiting = set(), [target for target in arrows[start] if target != besides]
    while waiting:
        room = waiting.pop()
        if room not in seen:
            seen.add(room)
            waiting += arrows[room]
    return seen


def drawing(arrows):
    """As Mermaid has it, from the top down."""
    lines = ["```mermaid", "flowchart TD"]
    for room in reversed(arrows):
        lines.append(f'    {room.replace("/", "_")}["{room}"]')
    for room in reversed(arrows):
        for target in sorted(arrows[room]):
            if target not in reached(arrows, room, target):
                lines.append(f'    {room.replace("/", "_")} --> {target.replace("/", "_")}')
    return "\n".join(lines + ["```", ""])


def pictures(src, build):
    arrows = arrows_of(src, build)
    yield "The houses:\n\n", drawing(joined(arrows, layering.house))
    for house in ("compile", "backends"):
        own = {room: room for room in arrows if layering.house(room) == house}
        yield f"Within `{house}/`:\n\n", drawing(joined(arrows, own.get))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    checkout = pathlib.Path(sys.argv[1])
    page = checkout / "docs" / "architecture.md"
    text = page.read_text(encoding="utf-8")
    head, rest = text.split(MARKS[0])
    drawn = "\n".join(title + picture for title, picture in pictures(checkout / "src", sys.argv[2]))
    page.write_text(head + MARKS[0] + drawn + MARKS[1] + rest.split(MARKS[1])[1], encoding="utf-8")
