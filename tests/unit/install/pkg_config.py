#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The line that examples/hello.c names compiles it, for an ordinary user: with an installation, and with a build
folder as the page says. What it makes starts.

usage: pkg_config.py BUILD
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
USER = 65534


def line_of_hello():
    found = re.search(r"^ \*\s+(cc hello\.c .*)$", (ROOT / "examples/hello.c").read_text(), flags=re.M)
    assert found, "examples/hello.c names no line that compiles it"
    return found.group(1)


def as_user(line, folder, own, **env):
    """In a folder with hello.c. own: as the user that runs this, since a checkout may be closed to others."""
    user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 and not own else []
    done = subprocess.run([*user, "sh", "-c", line], cwd=folder, env={"PATH": os.environ["PATH"], **env},
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def compiled(folder, library, own=False, **env):
    status, said = as_user(line_of_hello(), folder, own, **env)
    assert status == 0, f"{line_of_hello()}: {said}"
    status, said = as_user("./hello", folder, own, LD_LIBRARY_PATH=str(library), SARISSA_SOCKET="/nonexistent/x")
    assert status == 1 and "no node answers at /nonexistent/x" in said, f"./hello: {status}: {said}"


def main():
    build = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="sarissa-pc") as top:
        os.chmod(top, 0o755)
        root, folder = Path(top) / "root", Path(top) / "user"
        folder.mkdir()
        (folder / "hello.c").write_text((ROOT / "examples/hello.c").read_text())
        if os.geteuid() == 0:
            os.chown(folder, USER, USER)
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--tags", "devel,runtime", "--destdir", root],
                       check=True, stdout=subprocess.DEVNULL)
        pc = next(root.glob("**/pkgconfig/sarissa.pc"))
        library = next(root.glob("**/libsarissa.so")).parent
        compiled(folder, library, PKG_CONFIG_PATH=str(pc.parent), PKG_CONFIG_SYSROOT_DIR=str(root))
        compiled(folder, build / "client", own=True, PKG_CONFIG_PATH=str(build / "meson-uninstalled"))
    print("the line of examples/hello.c compiles it")


main()
