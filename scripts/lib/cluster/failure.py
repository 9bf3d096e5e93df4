# SPDX-License-Identifier: BSD-3-Clause
"""The lines of a failed test's output that say why it failed, for scripts/test."""

import re

WHY = re.compile(r"FAIL|ERROR|Error\b|error:|\b[Aa]ssert|Sanitizer|^E  |\[   LINE|TIMEOUT|Killed|panic|core dumped")
FINE = re.compile(r"^(\[ RUN|\[       OK|\[  PASSED|ok |\d+ (passed|FAILED TEST))")
END = 60        # lines at the end, which are told whatever they are
AROUND = 3      # lines before and after one that says why
ABOVE_MAX = 120  # lines told above the end: a test may print an error a thousand times
SUMMARY = 12
WIDTH_MAX = 400


def says_why(line):
    return bool(WHY.search(line)) and not FINE.match(line)


def lines(text):
    """Those that say why and what is around them, then the last ones; a line of dots where some are left out."""
    all_lines = [line[:WIDTH_MAX] for line in text.strip().splitlines()]
    end = max(0, len(all_lines) - END)
    near = sorted({k for i in range(end) if says_why(all_lines[i])
                   for k in range(max(0, i - AROUND), min(end, i + AROUND + 1))})
    told, last = [], -1
    for i in [*near[:ABOVE_MAX], *range(end, len(all_lines))]:
        if i != last + 1:
            told.append("...")
        told.append(all_lines[i])
        last = i
    return told


def summary(text):
    """The first of those that say why, or the last line."""
    all_lines = [line.strip()[:WIDTH_MAX] for line in text.strip().splitlines()]
    return list(dict.fromkeys(filter(says_why, all_lines)))[:SUMMARY] or all_lines[-1:]
