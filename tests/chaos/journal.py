# SPDX-License-Identifier: BSD-3-Clause
"""What a driver did, line by line, in a file of its own: for the other drivers (which objects are
there), for the one who watches (which call runs since when), and for the end (what must be there).

Lines are TIME WORD REST; TIME is the machine's monotonic clock, the same for all processes.

  call LIMIT OP NAME   a call begins that must have ended LIMIT seconds later
  done TOOK RESULT     it has ended: ok, or the name of an error
  try NAME BEGUN       NAME may exist from now on;    put NAME BEGUN     it does
  gone NAME            it is about to be deleted;     deleted NAME       it has been
  slow NAME            it is being written, piece by piece
  wrong TEXT           what must not be
"""

import time
from collections import namedtuple

TAIL_BYTES = 16384

Line = namedtuple("Line", "at word rest")


class Writer:
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)

    def line(self, word, *rest):
        text = " ".join(map(str, rest)).replace("\n", "; ")
        self.file.write(f"{time.monotonic():.6f} {word} {text}\n")


def parse(text):
    for row in text.splitlines():
        at, _, rest = row.partition(" ")
        word, _, rest = rest.partition(" ")
        if word:
            yield Line(float(at), word, rest)


def read(path):
    """All whole lines: a writer that was killed may have left half a one."""
    text = path.read_text() if path.exists() else ""
    return list(parse(text[:text.rfind("\n") + 1]))


def recent(path):
    """The lines at the end."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            at = max(0, size - TAIL_BYTES)
            file.seek(at)
            text = file.read().decode()
    except FileNotFoundError:
        return []
    first = text.find("\n") + 1 if at else 0
    return list(parse(text[first:text.rfind("\n") + 1]))


def living(lines):
    """Names of objects that exist, as far as these lines tell; in order."""
    names = {}
    for line in lines:
        name = line.rest.split(" ")[0]
        if line.word == "put":
            names[name] = line.at
        elif line.word == "gone":
            names.pop(name, None)
    return list(names)
