#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests of layering.py: a table without cycles, and violations found where they are put."""
import pathlib
import tempfile
import unittest

import layering


class Layering(unittest.TestCase):
    def check(self, name, line):
        with tempfile.TemporaryDirectory() as checkout:
            file = pathlib.Path(checkout, "src", name)
            file.parent.mkdir(parents=True)
            file.write_text("#include <stdio.h>\n" + line + "\n")
            return layering.check(checkout)

    def test_no_cycles(self):
        for room in layering.ROOMS:
            for other in layering.closure(room) - {room}:
                self.assertNotIn(room, layering.closure(other))

    def test_names_are_rooms(self):
        for room, lower in layering.ROOMS.items():
            for other in lower:
                self.assertIn(other, layering.ROOMS, room)

    def test_rooms_lie_beneath_what_names_them(self):
        above = list(layering.ROOMS)
        for room, lower in layering.ROOMS.items():
            for other in lower:
                self.assertTrue(above.index(other) < above.index(room), (room, other))

    def test_down_is_allowed(self):
        for name, line in [("train/a.c", '#include "core/error.h"'), ("cli/a.c", "#include <tanso.h>"),
                           ("engine/a.c", '#include "engine/b.h"'), ("backends/cpu/a.c", '#include "ops/ops.def"'),
                           ("compile/emit/gpu/a.c", '#include "compile/emit/b.h"'),
                           ("train/a.c", '#include "engine/text/b.h"'), ("engine/text/a.c", '#include "engine/b.h"'),
                           ("core/a.c", "#include <tanso/base.h>"), ("nn/a.c", '#include "tn_build_config.h"')]:
            self.assertEqual(self.check(name, line), [])

    def test_up_is_reported_with_its_line(self):
        for name, line in [("core/a.c", '#include "array/node.h"'), ("array/a.h", "  # include <tanso/nn.h>"),
                           ("backends/cpu/a.c", '#include "array/node.h"'), ("compile/a.c",
                                                                             '#include "backends/cpu.h"'),
                           ("compile/emit/a.c", '#include "compile/emit/gpu/b.h"'),
                           ("compile/fuse/a.c", '#include "compile/schedule/b.h"'),
                           ("compile/emit/c/a.c", '#include "compile/emit/gpu/b.h"'),
                           ("nn/a.c", "#include <tanso.h>"), ("train/a.c", '#include "cli/options.h"')]:
            messages = self.check(name, line)
            self.assertEqual(len(messages), 1, (name, line))
            self.assertTrue(messages[0].startswith(f"src/{name}:2: "), messages)

    def test_unknown_room_is_reported(self):
        self.assertEqual(len(self.check("attic/a.c", "")), 1)
        self.assertEqual(len(self.check("compile/attic/a.c", "")), 1)


unittest.main()
