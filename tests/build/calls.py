#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls between rooms only point down, too: checks what each object of a build asks of others by src/rooms.txt.

    calls.py CHECKOUT BUILD [NM]    prints each offending symbol and exits 1, if there is one

A header can declare what a room above defines; includes alone do not show that.
"""
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import layering  # noqa: E402: behind the line before, which keeps it from writing into the sources

# Objects that ask a room above for the symbols given, each with its reason.
BOUND = {
    # The backends that come with the library: a list that the linker binds to whoever opens devices.
    "device/registry.c": {"tn__builtin_backends", "tn__builtin_backend_count", "tn__plugin_load"},
    "backends/builtin.c": {"tn__backend_cpu", "tn__backend_null", "tn__backend_virtual"},
    "backends/plugin.c": {"tn__plugin_cuda"},  # in programs that are linked with it: tests
}


def objects_of(checkout, build):
    """Each object of the library's rooms and of the plug-ins', by its source's path below src/."""
    found = {}
    for path in sorted(pathlib.Path(build).glob("CMakeFiles/*.dir/src/**/*.o")):
        source = path.as_posix().split(".dir/src/", 1)[1].removesuffix(".o")
        if (pathlib.Path(checkout) / "src" / source).exists():
            found[source] = path
    return found


def calls(checkout, build, nm="nm"):
    """Triples of a source, a name that it asks for, and the source that defines it."""
    objects = objects_of(checkout, build)
    source_of = {str(path): source for source, path in objects.items()}
    out = subprocess.run([nm, "-A", "-g", "-P", *source_of], check=True, capture_output=True, text=True).stdout \
        if objects else ""
    home, asked = {}, []
    for line in out.splitlines():
        path, name, kind = line.split()[:3]
        source = source_of[path.rstrip(":")]
        if kind in "Uvw":
            asked.append((source, name))
        else:
            home[name] = source
    return [(source, name, home[name]) for source, name in asked if name in home]


def main(checkout, build, nm="nm"):
    found = calls(checkout, build, nm)
    if not found:
        print(f"no objects in {build}", file=sys.stderr)
        return 2
    offending = []
    for source, name, other in found:
        room, target = layering.room_of(source), layering.room_of(other)
        if target not in layering.closure(room) and name not in BOUND.get(source, ()):
            offending.append(f"src/{source}: {name} is defined above it, in src/{other}")
    print("\n".join(offending) if offending else f"all {len(found)} calls point down")
    return bool(offending)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
