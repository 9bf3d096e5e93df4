# SPDX-License-Identifier: BSD-3-Clause
"""The cases that a run of the tests skipped: found in what the tests print, held against tests/skips.

A case is skipped when it is skipped in every build that runs it. A test that is skipped as a whole
counts as one case, unless it names its cases.
"""

import re
from fnmatch import fnmatchcase

from lib.shell import ROOT, Failure

LIST = ROOT / "tests/skips"
CMOCKA = re.compile(r"^\[  SKIPPED \] (\w+)$", re.M)
PASSED = re.compile(r"^(?:\[       OK \] |ok   )(\w[\w ]*?)(?: \(.*)?$", re.M)
REASON = re.compile(r"^skip (\w[\w ]*): (.*)$", re.M)
WHOLE = re.compile(r"^skip: (.*)$", re.M)
SILENT = "it does not say why"


def cases(text):
    """Case and reason of each skipped case in the output of a test. C tests print names as cmocka does,
    and a line `skip NAME: REASON` before; the others print that line alone."""
    reasons = dict(REASON.findall(text))
    return {name: reasons.get(name, SILENT) for name in [*CMOCKA.findall(text), *reasons]}


class Skips:
    """Keyed by test and case: what one build skips another one may run."""

    def __init__(self):
        self.skipped, self.passed = {}, set()

    def add(self, suite, name, result, text):
        """What one test printed in one build."""
        found = cases(text)
        if result == "SKIP" and not found:
            lines = WHOLE.findall(text) or text.strip().splitlines()
            found = {"": lines[-1].strip() if lines else SILENT}
        for case, reason in found.items():
            self.skipped[name, case] = suite, reason
        self.passed |= {(name, case) for case in PASSED.findall(text)}
        if result == "OK":
            self.passed.add((name, ""))

    def names(self):
        """suite/test/case, and the reason."""
        return {"/".join(filter(None, (suite, *key))): reason
                for key, (suite, reason) in self.skipped.items() if key not in self.passed}


def allowed(path=LIST):
    """The patterns of the list: PATTERN: REASON a line; # begins a comment."""
    patterns = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, colon, reason = line.partition(": ")
        if not colon or not reason.strip():
            raise Failure(f"{path}:{number}: give a pattern, a colon and the reason")
        patterns.append(pattern)
    return patterns


def unlisted(names, patterns):
    return [name for name in names if not any(fnmatchcase(name, pattern) for pattern in patterns)]
