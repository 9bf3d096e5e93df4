# SPDX-License-Identifier: BSD-3-Clause
"""docs/user/ray.md and the examples of Ray say what runs: each is a program of its own here."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SMALL = "ray.init(num_cpus=4, object_store_memory=80 << 20, include_dashboard=False, log_to_driver=False, _temp_dir={!r})"


def run(text, tmp_path, temp, *argv):
    """As a script, in a small Ray of its own."""
    assert text.count("\nray.init()") + text.count("    ray.init()") == 1
    path = tmp_path / "program.py"
    path.write_text(re.sub(r"(?<![.\w])ray\.init\(\)", SMALL.format(temp), text))
    done = subprocess.run([sys.executable, "-B", str(path), *argv], capture_output=True, text=True, timeout=200,
                          env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_five_minutes(tmp_path, temp):
    page = (ROOT / "docs/user/ray.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page.partition("\n## Calls")[0], re.S)
    ends = ("\nprint(mean[0], round(norm))\n", )
    out = run("\n".join([*blocks, *ends]), tmp_path, temp)
    first, second = out.strip().splitlines()
    numbers = [float(one) for one in first.strip("[]").split()]
    assert len(set(numbers)) == 1 and numbers[0] in {6.0, 7.0, 8.0, 9.0}  # of three of 1, 2, 3 and 4
    assert second == "2.0 1000"


@pytest.mark.parametrize("name, argv, last", [
    ("ray_broadcast.py", ["3"], r"the mean of 3 answers is 2.0\nthe first answer makes 1 of 3; 2 are not in it\n$"),
    ("ray_sgd.py", ["3", "31"], r"step 0: error 0\.4\d+\n(.*\n)*step 30: error 0\.0\d+\n$")])
def test_examples(name, argv, last, tmp_path, temp):
    out = run((ROOT / "examples" / name).read_text(), tmp_path, temp, *argv)
    assert re.match(last, out), out
