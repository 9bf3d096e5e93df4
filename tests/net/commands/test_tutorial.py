#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""docs/user/tutorial.md does what it says: its commands run as they stand there, as a user without any privilege,
and print what stands below them.

In a block that is marked `console`, `$ ` begins a command, `> ` continues it, and all other lines are what it
prints. Times and numbers of four and more digits (but for bytes) differ from run to run: any will do.
`...` stands for anything within a line, and for any lines where it is one. Each command ends with exit
status 0.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import netlib
from netlib import ROOT, build_dir

USER = 65534
PAGE = ROOT / "docs/user/tutorial.md"
FILES = ("examples/hello", "client/cli/sarissa", "dataplane/sarissa-dataplane", "control/sarissa-control",
         "control/topology/sarissa-plan")
TIME = re.compile(r"\b\d+(\.\d+)? (ns|us|ms|s|min|h)\b")
NUMBER = re.compile(r"(?<![\w.])\d{4,}(?![\w.]| bytes)")


def commands(page):
    """(command, the lines that it is to print) of all blocks that a reader types."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, flags=re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.startswith("> ") and not found[-1][1]:
                found[-1] = (f"{found[-1][0]}\n{line[2:]}", [])
            else:
                found[-1][1].append(line)
    return found


def comparable(line):
    return " ".join(NUMBER.sub("N", TIME.sub("T", line)).split())


def agrees(expected, printed):
    patterns = [r"(.*\n)*" if line == "..." else
                r" ?.* ?".join(re.escape(comparable(part)) for part in line.split("...")) + r"\n"
                for line in expected]
    told = "".join(f"{comparable(line)}\n" for line in printed)
    return re.fullmatch("".join(patterns), told) is not None


def difference(command, expected, printed, status):
    """None, or what is wrong, for a reader of the log."""
    lines = printed.splitlines()
    if status:
        return f"$ {command}\nends with exit status {status}:\n{printed}"
    if agrees(expected, lines):
        return None
    return "\n".join([f"$ {command}", "is to print:", *expected, "and prints:", *lines])


class Home:
    """The environment of a user with a built checkout: its programs, and a runtime directory."""

    def __enter__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="st", dir="/tmp"))
        netlib.copy_build(self.dir / "build", *FILES)
        shutil.copytree(build_dir() / "client/python/sarissa", self.dir / "build/client/python/sarissa",
                        ignore=shutil.ignore_patterns("*.p"))
        (self.dir / "examples").mkdir()
        for path in (ROOT / "examples").glob("*.py"):
            shutil.copy(path, self.dir / "examples")
        for name in ("run", "tmp"):
            (self.dir / name).mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(self.dir / name, USER, USER)
        os.chmod(self.dir, 0o755)
        return self

    def __exit__(self, *_):
        self.shell("build/client/cli/sarissa local down")
        shutil.rmtree(self.dir, ignore_errors=True)

    def shell(self, script):
        """Runs it in one bash, without capabilities and without a way to get some."""
        argv = ["bash", "-c", script]
        if os.geteuid() == 0:
            argv = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                    "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", *argv]
        return subprocess.run(argv, cwd=self.dir, env={
            "PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(self.dir / "run"), "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self.dir / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"},
            timeout=netlib.TASK_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True).stdout


def wrong_in(page, home):
    """The first difference between a page and what its commands do, or None."""
    steps = commands(page)
    mark = f"end of step {os.getpid()}"
    script = "".join(f"{command}\necho; echo '{mark}' $?\n" for command, _ in steps)
    told = re.split(rf"\n?{mark} (\d+)\n", home.shell(script))
    for (command, expected), printed, status in zip(steps, told[::2], told[1::2]):
        if wrong := difference(command, expected, printed.rstrip("\n"), int(status)):
            return wrong
    return None if len(told) == 2 * len(steps) + 1 else f"it ends after {len(told) // 2} steps"


def the_tutorial_does_what_it_says():
    page = PAGE.read_text()
    assert len(commands(page)) > 30, "the page's commands are not found"
    with Home() as home:
        wrong = wrong_in(page, home)
        assert wrong is None, wrong


def other_pages_print_what_they_say():
    """Their samples are of commands that need no cluster."""
    with Home() as home:
        for page in ("topology.md",):
            text = (PAGE.parent / page).read_text()
            assert commands(text), f"{page}: its commands are not found"
            wrong = wrong_in(text, home)
            assert wrong is None, f"{page}: {wrong}"


def a_page_that_is_wrong_is_noticed():
    right = "```console\n$ echo 3 nodes, 12 bytes\n> echo up in 1.2 s\n3 nodes, 12 bytes\nup in 0.5 s\n```\n"
    with Home() as home:
        assert wrong_in(right, home) is None
        for before, after in (("\n3 nodes", "\n4 nodes"), ("12 bytes\nup", "13 bytes\nup"),
                              ("\nup in 0.5 s", ""), ("echo 3", "no-such-command"),
                              ("$ echo 3 nodes", "$ exit 0\n$ echo 3 nodes"),
                              ("\n3 nodes, 12 bytes", "\n...bits")):
            page = right.replace(before, after)
            assert page != right and wrong_in(page, home), f"nobody notices:\n{page}"
        for any_will_do in ("\n3 ... bytes", "\n..."):
            assert wrong_in(right.replace("\n3 nodes, 12 bytes", any_will_do), home) is None


def the_user_has_no_capability():
    with Home() as home:
        masks = re.findall(r"^Cap(?:Prm|Eff|Inh|Amb):\s*(\w+)$", home.shell("cat /proc/self/status"),
                           flags=re.M)
        assert len(masks) == 4 and not any(int(mask, 16) for mask in masks), masks
        assert home.shell("id -u").strip() != "0"


netlib.run(the_tutorial_does_what_it_says, other_pages_print_what_they_say, a_page_that_is_wrong_is_noticed,
           the_user_has_no_capability)
