#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""`sarissa help TOPIC` shows the help of each command and the page of each function and daemon, with man(1) and without
it, from the source tree and from an installation. Help, completion and sarissa(1) name the same commands and options.

usage: help.py BUILD/client/cli/sarissa
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs/man"
CLI = Path(sys.argv[1]).resolve()
FUNCTIONS = re.findall(r"^\t(sar_\w+);", (ROOT / "client/libsarissa.map").read_text(), flags=re.M)
NAMES = sorted(page.name for page in PAGES.iterdir())
MAN = """#!/bin/sh
echo "man $*"
exit $STATUS
"""
MANDOC = shutil.which("mandoc")


def run(*argv, program=CLI, path="", status=0):
    env = {"PATH": path, "LD_LIBRARY_PATH": str(CLI.parent.parent), "STATUS": str(status),
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")}
    return subprocess.run([program, *argv], env=env, capture_output=True, text=True, timeout=60)


def shown(*argv, **how):
    done = run(*argv, **how)
    assert done.returncode == 0 and not done.stderr, f"{argv}: {done}"
    return re.sub(".\x08", "", done.stdout)  # bold is a letter over itself


def commands():
    """As --help lists them."""
    found = re.findall(r"^  ([a-z]+) +\S", shown("--help"), flags=re.M)
    assert len(found) >= 10 and "put" in found and "help" in found, found
    return found


def offered(*words):
    return {line[1:] for line in shown("complete", *words).splitlines() if line.startswith("w")}


def manual_of(page, command):
    """The items of a command: from its first to the next one's."""
    items = re.split(r"^\.It Cm (?=[a-z])", page, flags=re.M)
    return "".join(item for item in items if re.match(rf"{command}\b", item))


def help_completion_and_manual_are_one():
    page = (PAGES / "sarissa.1").read_text()
    synopsis = page.split(".Sh SYNOPSIS")[1].split(".Sh DESCRIPTION")[0]
    names = commands()
    assert offered("") == set(names), offered("")
    assert sorted(re.findall(r"^\.Nm\n\.Cm ([a-z]+)", synopsis, flags=re.M)) == sorted(names)
    common = {"--json", "--socket", "--help", "--version"}
    for name in names:
        options = offered(name, "-")
        said = set(re.findall(r"^  (--[a-z-]+)", shown(name, "--help"), flags=re.M))
        assert options - {"--help", "--version"} == said, f"{name}: {options ^ said}"
        text = manual_of(page, name)
        assert text, f"sarissa.1: no item for {name}"
        if name == "local":  # the options of its verbs are named in front of them
            text = page.split("A cluster on this machine")[1]
        missing = [o for o in options - common if f"Fl {o[1:]}" not in text]
        assert not missing, f"sarissa.1: {name}: {missing}"
    for name in ("local", "group", "policy"):
        verbs = set(re.findall(rf"^\.It Cm {name} ([a-z]+)", page, flags=re.M))
        assert offered(name, "") == verbs, f"{name}: {verbs ^ offered(name, '')}"
    pages = {name.removesuffix(".8") for name in NAMES} - {"sarissa.1"}
    assert {re.sub(r"^(sar_.*)\.3$", r"\1", name) for name in pages} == offered("help", "") - set(names)


def what_is_mistyped_is_named():
    for word, meant in (("statsu", "status"), ("grop", "group"), ("lss", "ls"), ("redcue", "reduce"), ("HELP", None),
                        ("x", None), ("", None), ("a" * 5000, None)):
        said = wrong(word)
        assert f"did you mean {meant}:" in said if meant else "did you mean" not in said, said


def topics_find_their_pages(man):
    for name in commands():
        assert shown("help", name, path=man) == shown(name, "--help"), name
    for name in FUNCTIONS:
        page = Path(shown("help", name, path=man).split()[-1])
        assert re.search(rf"^\.Nm {name}\b", page.read_text(), flags=re.M), f"{name}: {page}"
    for name in NAMES:
        title, section = name.rsplit(".", 1)
        for topic in (name, f"{title}({section})"):
            assert shown("help", topic, path=man).endswith(f"/{name}\n"), topic
    for daemon in ("sarissa-control", "sarissa-dataplane"):
        assert shown("help", daemon, path=man).endswith(f"/{daemon}.8\n"), daemon


def without_man_a_page_is_plain_text(mandoc):
    text = shown("help", "sarissa", path=mandoc)
    for option in re.findall(r"Fl -([a-z]+)", (PAGES / "sarissa.1").read_text()):
        assert f"--{option}" in text, option


def a_man_that_fails_is_no_end(man, mandoc):
    text = shown("help", "sarissa", path=f"{man}:{mandoc}", status=3)
    assert text.startswith("man -l ") and "SYNOPSIS" in text, text[:200]


def without_either_the_page_is_named():
    done = run("help", "sarissa", path="/nowhere")
    assert done.returncode == 4 and not done.stdout and done.stderr.count("\n") == 1, done
    assert "docs/man/sarissa.1: install mandoc" in done.stderr, done


def an_installation_is_enough(man, folder):
    program = folder / "bin/sarissa"
    for path in (program.parent, folder / "share/man/man1", folder / "share/man/man3"):
        path.mkdir(parents=True)
    shutil.copy(CLI, program)
    shutil.copy(PAGES / "sarissa.1", folder / "share/man/man1")
    shutil.copy(PAGES / "sar_get.3", folder / "share/man/man3")
    (folder / "share/man/man3/sar_wait.3").symlink_to("sar_get.3")
    for topic, page in (("sarissa", "man1/sarissa.1"), ("sar_get", "man3/sar_get.3"), ("sar_wait", "man3/sar_wait.3")):
        assert shown("help", topic, program=program, path=man).endswith(f"/share/man/{page}\n"), topic
    wrong("help", "sar_put", program=program)
    # each function has a link there
    text = (ROOT / "client/meson.build").read_text()
    for name in FUNCTIONS:
        assert f"'{name}'" in text or f"'{name}.3'" in text, f"client/meson.build installs no page of {name}"


def wrong(*argv, **how):
    done = run(*argv, **how)
    assert done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1, f"{argv}: {done}"
    assert done.stderr.startswith("sarissa: "), done
    return done.stderr


def what_is_no_topic_is_told(man):
    for topic in ("nothing", "sar_nothing", "", "../docs/man/sarissa", "/etc/passwd", "sarissa.2", "sarissa(3",
                  "sarissa.33", "x" * 5000, "*", "-"):
        assert topic[:20] in wrong("help", topic, path=man), topic
    assert "\x1b" not in wrong("help", "\x1b[31m", path=man)
    wrong("help", "put", "get", path=man)
    assert shown("help") == shown("--help")


def main():
    with tempfile.TemporaryDirectory(prefix="sarissa-help-") as folder:
        man = Path(folder) / "man"
        man.write_text(MAN)
        man.chmod(0o755)
        mandoc = Path(folder) / "only_mandoc"
        mandoc.mkdir()
        (mandoc / "mandoc").symlink_to(MANDOC)
        topics_find_their_pages(folder)
        without_man_a_page_is_plain_text(mandoc)
        a_man_that_fails_is_no_end(folder, mandoc)
        without_either_the_page_is_named()
        an_installation_is_enough(folder, Path(folder) / "prefix")
        what_is_no_topic_is_told(folder)
        help_completion_and_manual_are_one()
        what_is_mistyped_is_named()
    print(f"{len(FUNCTIONS)} functions, {len(NAMES)} pages")


main()
