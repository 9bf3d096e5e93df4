#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The line at the head of each C example compiles it, for an ordinary user: with an installation, and with a build
folder as hello.c says. What it makes starts; hello talks to a node.

usage: pkg_config.py BUILD
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.c"))
USER = 65534


def line_of(example):
    found = re.search(rf"^ \*\s+(cc {example.name} .*)$", example.read_text(), flags=re.M)
    assert found, f"{example.name} names no line that compiles it"
    return found.group(1)


def as_user(line, folder, own, **env):
    """In a folder with the examples. own: as the user that runs this, since a checkout may be closed to others."""
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 and not own else []
    done = subprocess.run([*user, "sh", "-c", line], cwd=folder, env={"PATH": os.environ["PATH"], **env},
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def compiled(examples, folder, library, own=False, **env):
    for example in examples:
        status, said = as_user(line_of(example), folder, own, **env)
        assert status == 0, f"{line_of(example)}: {said}"
        argv = {"hello": "", "loop": "", "watch": "p 1", "stream": "read x", "allreduce": "r 0 1"}[example.stem]
        status, said = as_user(f"./{example.stem} {argv}", folder, own, LD_LIBRARY_PATH=str(library),
                               SARISSA_SOCKET="/nonexistent/x")
        assert status == 1 and "no node answers at /nonexistent/x" in said, f"{example.stem}: {status}: {said}"


def run_on_a_node(build, folder, library, top):
    sarissa = [build / "client/cli/sarissa", "local", "--name", f"pc-{os.getpid()}"]
    env = {**os.environ, "XDG_RUNTIME_DIR": str(top)}
    subprocess.run([*sarissa, "up", "1"], check=True, env=env, stdout=subprocess.DEVNULL)
    try:
        said = subprocess.run([*sarissa, "exec", "0", "--", folder / "hello"], env={**env, "LD_LIBRARY_PATH": str(library)},
                              capture_output=True, text=True)
    finally:
        subprocess.run([*sarissa, "down"], check=True, env=env, stdout=subprocess.DEVNULL)
    assert said.stdout == "Hello from the store\n", f"hello: {said.returncode}: {said.stdout}{said.stderr}"


def main():
    build = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="sarissa-pc") as top:
        os.chmod(top, 0o755)
        root, folder = Path(top) / "root", Path(top) / "user"
        folder.mkdir()
        for example in EXAMPLES:
            shutil.copy(example, folder)
        if os.geteuid() == 0:
            os.chown(folder, USER, USER)
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--tags", "devel,runtime", "--destdir", root],
                       check=True, stdout=subprocess.DEVNULL)
        pc = next(root.glob("**/pkgconfig/sarissa.pc"))
        library = next(root.glob("**/libsarissa.so")).parent
        compiled(EXAMPLES, folder, library, PKG_CONFIG_PATH=str(pc.parent), PKG_CONFIG_SYSROOT_DIR=str(root))
        run_on_a_node(build, folder, library, top)
        compiled([ROOT / "examples/hello.c"], folder, build / "client", own=True,
                 PKG_CONFIG_PATH=str(build / "meson-uninstalled"))
    print(f"the lines of {len(EXAMPLES)} examples compile them")


main()
