# SPDX-License-Identifier: BSD-3-Clause
"""The package installs from a checkout without a network, by pip and by meson, and works from there."""

import subprocess
import sys

import pytest
from conftest import BUILD, ROOT

PROGRAM = """
import os, sarissa
assert sarissa.__file__.startswith(os.environ["PYTHONPATH"]), sarissa.__file__
with sarissa.open() as node:
    node.put("installed", b"x")
    assert node.get("installed") == b"x"
    node.delete("installed")
"""


def run(*argv, **options):
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def with_pip(folder):
    """As docs/user/python.md says it, in a virtual environment that sees Debian's packages."""
    run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", folder / "venv")
    run(folder / "venv/bin/python", "-m", "pip", "install", "--no-build-isolation", "--no-index", "--no-deps", ROOT)
    (ROOT / ".mesonpy-native-file.ini").unlink(missing_ok=True)
    return next(folder.glob("venv/lib/*/site-packages/sarissa/__init__.py")).parents[1]


def with_meson(folder):
    run("/usr/bin/meson", "install", "-C", BUILD, "--no-rebuild", "--tags", "python-runtime", "--destdir", folder)
    return next(folder.glob("**/sarissa/__init__.py")).parents[1]


@pytest.mark.parametrize("install", [with_pip, with_meson])
def test_what_is_installed_works(local, tmp_path, install):
    folder = install(tmp_path)
    assert (folder / "sarissa/py.typed").exists() and (folder / "sarissa/_sarissa.pyi").exists()
    run(sys.executable, "-c", PROGRAM, cwd=tmp_path,
        env={"PYTHONPATH": str(folder), "SARISSA_SOCKET": local.socket[0]})
