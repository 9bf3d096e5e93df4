#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Refuses private words for what the field has a term for: in names of files and code, counters, comments,
messages to people and pages. words.txt has the words, what to say instead, and the uses that are allowed.

usage: words.py [FILE...]     without files, all that git tracks
"""

import bisect
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from tree import ROOT, tracked_files  # noqa: E402

LIST = Path(__file__).with_name("words.txt")
SKIPPED = re.compile(r"^tests/lint/words(_test)?\.|^docs/study/(plots/|results)|\.(svg|jsonl|png)$")
C_LIKE = re.compile(r"\.(c|h|cc|proto|pml)$")
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
NAME = re.compile(r"[A-Za-z_]\w*")
# what stands between two _, or between a _ and the end of a name
PART = r"(?<![A-Za-z0-9])(?:{})(?![A-Za-z0-9])"


class Rule:
    """One line of words.txt: KIND WORDS WHERE TEXT, set apart by tabs."""

    def __init__(self, kind, words, where, text):
        self.kind, self.words, self.text = kind, words, text
        self.where = None if where == "-" else re.compile(where)
        self.pattern = {"name": re.compile(PART.format(words), re.I),
                        "word": re.compile(rf"\b(?:{words})\b", re.I),
                        "allow": re.compile(rf"\b(?:{words})\b")}[kind]

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


class Rules:
    """The rules of words.txt; those for one path are put together into one expression of each kind."""

    def __init__(self, text):
        self.all = read_rules(text)
        self.together = {}

    def of(self, path, kind):
        return [rule for rule in self.all if rule.kind == kind and rule.applies(path)]

    def found(self, path, kind, text):
        """The lines of the text, from 0, with something that a rule of the kind may refuse."""
        words = tuple(rule.words for rule in self.of(path, kind))
        if not words:
            return []
        key = kind, words
        if key not in self.together:
            form = PART if kind == "name" else r"\b(?:{})\b"
            self.together[key] = re.compile(form.format("|".join(words)), re.I)
        starts = [0] + [m.end() for m in re.finditer("\n", text)]
        return sorted({bisect.bisect_right(starts, m.start()) - 1
                       for m in self.together[key].finditer(text)})


def code_of(path, text):
    """The text without comments and strings, each character in its place."""
    if not C_LIKE.search(path):
        return ""
    return NOT_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def check_names(path, text, rules):
    """Of files in C all names of the code; of others, and of comments and strings, those with a _ in them."""
    lines = rules.found(path, "name", text)
    stem = re.sub(r"\W", "_", Path(path).stem)
    named = [(-1, stem)]
    if lines:
        code, all_lines = code_of(path, text).split("\n"), text.split("\n")
        for number in lines:
            seen = {name for name in NAME.findall(all_lines[number]) if "_" in name}
            seen |= set(NAME.findall(code[number]) if number < len(code) else ())
            named += [(number, name) for name in sorted(seen)]
    refused, allowed = rules.of(path, "name"), rules.of(path, "allow")
    for number, name in named:
        if any(rule.pattern.fullmatch(name) for rule in allowed):
            continue
        for rule in refused:
            if rule.pattern.search(name):
                yield number + 1, f"{name}: say {rule.text}"


def check_words(path, text, rules):
    found = rules.found(path, "word", text)
    if not found:
        return
    refused, allowed, lines = rules.of(path, "word"), rules.of(path, "allow"), text.split("\n")
    for number in found:
        line = lines[number]
        for rule in allowed:
            line = rule.pattern.sub("", line)
        for rule in refused:
            word = rule.pattern.search(line)
            if word:
                yield number + 1, f"{word.group(0)}: say {rule.text}"


def check(path, text, rules):
    """(line, what is wrong) of one file; line 0 is its name."""
    yield from check_names(path, text, rules)
    yield from check_words(path, text, rules)


def main():
    rules = Rules(LIST.read_text())
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
