#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""README's figures, docs/study/compare.md and docs/study/plots/ say what docs/study/results.jsonl says, and
nobody has typed one.

usage: figures.py
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
from lib.bench.tables import report  # noqa: E402

found = list(report.offences(ROOT))
print("\n".join(found) if found else "README.md, docs/study/compare.md and docs/study/plots say what was measured")
sys.exit(1 if found else 0)
