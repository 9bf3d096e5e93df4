# SPDX-License-Identifier: BSD-3-Clause
"""README's program in Python works after README's own steps."""

import os
import re
import shutil
import subprocess
import tempfile

from conftest import ROOT


def block(language, first):
    """The block of README that begins with these words."""
    return next(text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
                if kind == language and text.startswith(first))


def test_the_program_works_after_the_steps(tmp_path):
    run = tempfile.mkdtemp(prefix="readme-", dir="/tmp")  # the paths of sockets are short
    (tmp_path / "program.py").write_text(block("python", "import numpy") + "    assert set(total) == {2}\n")
    steps = block("", "export PATH").replace("/tmp/", f"{tmp_path}/").replace("$PWD/build", os.environ["SARISSA_BUILD"])
    steps = re.sub(r"^sarissa local down$", "", steps, flags=re.M)
    script = f"""set -e
{steps}
eval "$(sarissa local env 2)"
cd {tmp_path} && python3 program.py
"""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SARISSA_SOCKET")}
    environment |= {"XDG_RUNTIME_DIR": run, "PATH": f"/usr/bin:{os.environ['PATH']}"}
    try:
        done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    finally:
        subprocess.run([f"{os.environ['SARISSA_BUILD']}/client/cli/sarissa", "local", "down"], env=environment,
                       capture_output=True)
        shutil.rmtree(run)
