#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What words.py says to names and lines that keep words.txt and to those that do not."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import words  # noqa: E402

RULES = words.Rules(words.LIST.read_text())


def wrong(text, path="control/core/store/some.c"):
    return [(number, said.split(":")[0]) for number, said in words.check(path, text, RULES)]


class Names(unittest.TestCase):
    def test_part_of_a_name_refused(self):
        for name in ("graves_keep", "entry_bury", "GUARD_NONE", "is_orphan", "shard_reshard", "peer_strand_find"):
            self.assertEqual(wrong(f"\tx = {name}(c);\n"), [(1, name)])

    def test_part_of_a_word_passes(self):
        self.assertFalse(wrong("x = paragraves + safeguard_count + unguarded + excellent;\n"))

    def test_whole_name_refused_in_code_only(self):
        self.assertEqual(wrong("int again;\n"), [(1, "again")])
        self.assertFalse(wrong("/* sent again */\nf(\"again\");\n"))

    def test_name_in_a_comment_refused(self):
        self.assertEqual(wrong("int x; /* see told_count */\n"), [(1, "told_count")])

    def test_each_line_has_its_number(self):
        self.assertEqual(wrong("int x;\n\nint life;\nint y;\n"), [(3, "life")])

    def test_name_of_a_file_refused(self):
        self.assertEqual(wrong("", "control/core/store/graves.c"), [(0, "graves")])
        self.assertFalse(wrong("", "control/core/store/tombstones.c"))

    def test_where_it_has_another_sense_passes(self):
        self.assertFalse(wrong("int again;\n", "tests/unit/some.c"))
        self.assertFalse(wrong("enum { TREE_GUARD_BYTES = 64 };\n"))
        self.assertFalse(wrong("op = SAR_REDUCE_SPREAD;\n", "client/reduce.c"))


class Text(unittest.TestCase):
    def test_words_refused_in_comments_messages_and_pages(self):
        for path, line in (("control/core/store/some.c", "/* the keeper of the shard */"),
                           ("control/core/store/some.c", 'log("no guard is left");'),
                           ("scripts/cluster", "# the asker waits"),
                           ("docs/overview.md", "Whoever reads it"),
                           ("docs/overview.md", "an object created apart from the store")):
            self.assertEqual(len(wrong(line, path)), 1, line)

    def test_ordinary_uses_pass(self):
        for line in ("take the lock, then look again", "a given size", "an older kernel", "it is told so",
                     "stray memory", "hold the lock", "links between the nodes"):
            self.assertFalse(wrong(f"/* {line} */\n"), line)

    def test_what_is_allowed_excuses_nothing_else_on_the_line(self):
        self.assertEqual(wrong("/* stray memory of the keeper */\n"), [(1, "keeper")])


class List(unittest.TestCase):
    def test_a_line_with_spaces_for_tabs_is_said(self):
        with self.assertRaises(ValueError):
            words.read_rules("name x - y\n")


if __name__ == "__main__":
    unittest.main()
