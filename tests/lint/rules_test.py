#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the rules of the lint say to lines that keep them and to lines that do not."""

import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import rules  # noqa: E402


def found(rule, *lines, path="dataplane/core/some.c"):
    return [text for _, text in rule(path, list(lines))]


class Size(unittest.TestCase):
    def test_up_to_the_hint(self):
        lines = [""] * rules.FILE_LINES_HINT
        self.assertFalse(found(rules.size, *lines) + found(rules.size_hint, *lines))

    def test_between_hint_and_cap_only_hinted(self):
        for count in (rules.FILE_LINES_HINT + 1, rules.FILE_LINES_MAX):
            lines = [""] * count
            self.assertFalse(found(rules.size, *lines))
            self.assertEqual(len(found(rules.size_hint, *lines)), 1)

    def test_above_the_cap_refused(self):
        lines = [""] * (rules.FILE_LINES_MAX + 1)
        self.assertEqual(len(found(rules.size, *lines)), 1)
        self.assertFalse(found(rules.size_hint, *lines))

    def test_hints_do_not_fail(self):
        self.assertFalse(set(rules.HINTS) & set(rules.ALL))


class Tickets(unittest.TestCase):
    def test_upstream_bugs_pass(self):
        for text in ("libuv #4127", "DPDK bug 1053", "DPDK issue #1053", "gcc PR 105593",
                     "Linux's bug #7", "libuv pull request #12", "https://bugs.dpdk.org/1053"):
            self.assertFalse(found(rules.private, f"\t/* {text}: do not */"), text)

    def test_nobody_s_tickets_refused(self):
        for text in ("#123", "issue 23", "issue #23", "see #4 of libuv", "libuv #4127 and #5",
                     "our bug #9", "gray #4"):
            self.assertTrue(found(rules.private, f"\t/* {text}: do not */"), text)

    def test_private_paths_refused(self):
        self.assertTrue(found(rules.private, "\t/* libuv #1 in /home/me/libuv */"))


RPC = "control/core/cluster/rpc.c"


class Names(unittest.TestCase):
    def test_a_function_tells_its_file(self):
        for name in ("rpc_start", "cluster_start", "rpc"):
            self.assertFalse(found(rules.tells_file, f"void {name}(int a)", "{", "}", path=RPC))
        for before in ("void calls_start(int a)", "struct call *calls_start(int a,\n\t\tint b)"):
            self.assertTrue(found(rules.tells_file, *before.split("\n"), "{", "}", path=RPC))

    def test_only_what_others_call_is_looked_at(self):
        self.assertFalse(found(rules.tells_file, "static void start(void)", "{", "}", path=RPC))

    def test_pointers(self):
        for line in ("if (p == NULL)", "while (next(p) != NULL)", "return p != NULL && p->on;"):
            self.assertTrue(found(rules.pointers, line), line)
        for line in ("if (!p)", "bool there = p != NULL;", "return find(p) != NULL;", "/* p == NULL */"):
            self.assertFalse(found(rules.pointers, line), line)

    def test_nouns(self):
        self.assertTrue(found(rules.nouns, "/* The same of a file. */"))
        self.assertFalse(found(rules.nouns, "/* The rest of a file. */"))

    def test_an_include_is_for_once(self):
        self.assertTrue(found(rules.include_once, "#ifndef SARISSA_PEERS_H", path="control/core/cluster/peers.h"))
        self.assertFalse(found(rules.include_once, "#ifndef SARISSA_CONTROL_CORE_CLUSTER_PEERS_H",
                               path="control/core/cluster/peers.h"))

    def test_a_file_has_a_head(self):
        self.assertTrue(found(rules.header, "/* SPDX */", "#include <a.h>", path="control/none.c"))
        self.assertFalse(found(rules.header, "/* SPDX */", "/* What it is for. */", path="control/none.c"))


unittest.main()
