#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Refuses private words for what the field has a term for: in names of files and code, counters, comments,
messages to people and pages. words.txt has the words, what to say instead, and the uses that are allowed.

usage: words.py [FILE...]     without files, all that git tracks
"""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tree import ROOT, tracked_files  # noqa: E402

LIST = Path(__file__).with_name("words.txt")
SKIPPED = re.compile(r"^tests/lint/words(_test)?\.|^docs/(plots/|results)|\.(svg|jsonl|png)$")
C_LIKE = re.compile(r"\.(c|h|cc|proto|pml)$")
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
NAME = re.compile(r"[A-Za-z_]\w*")


class Rule:
    """One line of words.txt: KIND WORDS WHERE TEXT, set apart by tabs."""

    def __init__(self, kind, words, where, text):
        self.kind = kind
        self.where = re.compile(where) if where != "-" else None
        self.text = text
        if kind == "name":
            self.pattern = re.compile(rf"(?:^|_)(?:{words})(?=_|$)", re.I)
        elif kind == "allow":
            self.pattern = re.compile(words)
        else:
            self.pattern = re.compile(rf"\b(?:{words})\b", re.I)

    def applies(self, path):
        return self.where is None or self.where.search(path)


def read_rules(text):
    rules = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 4 or fields[0] not in ("name", "word", "allow"):
            raise ValueError(f"words.txt:{number}: not KIND, WORDS, WHERE and TEXT, set apart by tabs")
        rules.append(Rule(*fields))
    return rules


def names(path, text):
    """(line, name) of the code of a file in C; of other files and of comments, what has a _ in it."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group(0))

    code = NOT_CODE.sub(blank, text).split("\n") if C_LIKE.search(path) else None
    for number, line in enumerate(text.split("\n"), 1):
        seen = set(NAME.findall(code[number - 1])) if code else set()
        yield from ((number, name) for name in seen | {n for n in NAME.findall(line) if "_" in n})


def check(path, text, rules):
    """(line, what is wrong) of one file."""
    named = [rule for rule in rules if rule.kind == "name" and rule.applies(path)]
    words = [rule for rule in rules if rule.kind == "word" and rule.applies(path)]
    allowed = [rule for rule in rules if rule.kind == "allow" and rule.applies(path)]
    stem = re.sub(r"\W", "_", Path(path).stem)
    for number, name in [(0, stem), *names(path, text)]:
        for rule in named:
            if rule.pattern.search(name) and not any(a.pattern.fullmatch(name) for a in allowed):
                yield number, f"{name}: say {rule.text}"
    for number, line in enumerate(text.split("\n"), 1):
        for rule in words:
            found = rule.pattern.search(line)
            if found and not any(a.pattern.search(line) for a in allowed):
                yield number, f"{found.group(0)}: say {rule.text}"


def main():
    rules = read_rules(LIST.read_text())
    used = set()
    count = 0
    for path in sys.argv[1:] or tracked_files():
        if SKIPPED.search(path):
            continue
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        for number, wrong in check(path, text, rules):
            print(f"{path}:{number}: {wrong}")
            count += 1
    print(f"{count} private words: tests/lint/words.txt has those to use" if count else
          "no private word is used")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
