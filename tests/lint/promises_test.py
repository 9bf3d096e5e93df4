#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""promises.py finds what lacks code or test, and what names nothing."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from promises import complaints, ids_of  # noqa: E402

PAGE = "| G1.1 | A promise. |\n- **G2.1** Another.\n**G2.2** A third. It is not G9.9.\n"
RULES = "## 2 Packets\n### 2.1 Integrity\n### 4.2 to 4.4 Cases\n## 1 Overview\n"

ids = ids_of(PAGE, RULES)
assert ids == {"G1.1", "G2.1", "G2.2", "P2", "P2.1", "P4.2", "P4.3", "P4.4"}, ids
whole = {(one, name) for one in ids for name in ("control/a.c", "tests/unit/a.c")}
assert not list(complaints(ids, whole))
assert list(complaints(ids, whole - {("P2", "control/a.c")})) == ["P2: no code says [P2]"]
assert list(complaints(ids, whole - {("G2.1", "tests/unit/a.c")})) == ["G2.1: no test says [G2.1]"]
assert len(list(complaints(ids, whole | {("P9", "client/b.c")}))) == 1
