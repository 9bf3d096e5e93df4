#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What scripts/mutate changes, and that its copy is as the source is."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))
from lib.test import mutate  # noqa: E402

SOURCE = """#define LIMIT (1 + 2)
static bool f(struct s *s, int a)
{
	int b = a + 1; /* not a < b, and true */
	assert(a > 0);

	if (a <= b && !s->on) {
		s->on = true;
		g(s);
		return;
	}
	h(a + 1); /* MUTANT-OK: only speed */
	return a == 12;
}
"""
CHANGED = {
    "int b = a - 1; /* not a < b, and true */", "int b = a + 2; /* not a < b, and true */",
    "if (a < b && !s->on) {", "if (a <= b || !s->on) {", "if (a <= b && s->on) {",
    "s->on = false;", "without s->on = true;", "without g(s);", "without return;",
    "return a != 12;", "return a == 13;"}


def what_is_changed():
    told = [mutate.changed(SOURCE, *place) for place in mutate.places(SOURCE)]
    assert {line for _, line in told} == CHANGED, {line for _, line in told} ^ CHANGED
    for text, _ in told:
        was, now = SOURCE.split("\n"), text.split("\n")
        assert len(now) == len(was) and sum(a != b for a, b in zip(was, now)) == 1, text


def the_copy_is_as_the_source(source, target):
    name, gone = "control/core/a.c", target / "control/core/gone.c"
    for path in (source / name, gone):
        path.parent.mkdir(parents=True)
        path.write_text("int a;\n")
    mutate.copy(source, [name], target)
    assert (target / name).read_text() == "int a;\n" and not gone.exists()
    os.utime(target / name, (1, 1))
    mutate.copy(source, [name], target)
    assert (target / name).stat().st_mtime == 1, "what is the same is not built again"
    (target / name).write_text("int b;\n")  # by a run that was killed
    os.utime(target / name, (1, 1))
    mutate.copy(source, [name], target)
    assert (target / name).read_text() == "int a;\n" and (target / name).stat().st_mtime > 1


def a_change_is_taken_back(folder):
    """Whatever becomes of it; the first test that fails is named."""
    (folder / "a.c").write_text("\tg(1);\n")
    kept, mutate.builds = mutate.builds, lambda build, tests: (folder / "a.c").read_text() == "\t;\n"
    good, skipped, bad = ([name, ["sh", "-c", f"exit {status}"], []]
                          for name, status in (("good", 0), ("skipped", 77), ("bad", 1)))
    endless = ["endless", ["sh", "-c", "while :; do :; done"], []]
    asleep = ["asleep", ["sleep", "60"], []]
    mutate.LIMIT_S = mutate.WALL_S = 1
    call, number = mutate.places("\tg(1);\n")
    for place, tests, told in ((call, [good, skipped, bad], ("noticed", "without g(1);", "bad")),
                               (call, [good, skipped], ("NOT NOTICED", "without g(1);", None)),
                               (call, [endless], ("noticed", "without g(1);", "endless")),
                               (call, [asleep], ("noticed", "without g(1);", "asleep")),
                               (number, [bad], ("not built", "g(2);", None))):
        assert mutate.try_one(folder, "a.c", place, tests) == told, told
        assert (folder / "a.c").read_text() == "\tg(1);\n"
    mutate.builds = lambda build, tests: 1 / 0
    try:
        mutate.try_one(folder, "a.c", call, [])
    except ZeroDivisionError:
        assert (folder / "a.c").read_text() == "\tg(1);\n"
    else:
        raise AssertionError("a fault of ours is no verdict")
    mutate.builds = kept
    assert mutate.fewer(["swarm", "--runs", "300", "x"]) == ["swarm", "--runs", "5", "x"]
    assert mutate.fewer(["swarm", "--runs", "2"]) == ["swarm", "--runs", "2"]


WRITES = """if True:
    import sys
    sys.dont_write_bytecode = True
    sys.path.insert(0, sys.argv.pop(1))
    from lib import shell
    from lib.test import mutate
    write = 'n=0; for d in 1 2 3 4 5 6; do mkdir $d; done; while [ $n -lt 99999 ]; do : > $((n % 6 + 1))/$n; n=$((n + 1)); done'

    def run(args, folder):
        print(folder, flush=True)
        mutate.done(["sh", "-c", f"trap '' TERM; cd {folder}; ({write}) & ({write}) & wait; sleep 30"])

    mutate.run = run
    shell.main("mutate", lambda: mutate.main("test"))"""


def who_is_told_to_end_leaves_nothing(folder):
    """Neither the copy, nor what is still writing into it; however often it is told."""
    child = subprocess.Popen([sys.executable, "-c", WRITES, Path(mutate.__file__).parents[2]], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, "TMPDIR": str(folder)})
    copy = Path(child.stdout.readline().strip())
    assert copy.parent == folder, copy
    while not list(copy.glob("6/*")):
        time.sleep(0.01)
    while child.poll() is None:
        child.send_signal(signal.SIGTERM)
        time.sleep(0.001)
    said = child.communicate(timeout=30)[1]
    assert child.returncode == 130 and not copy.exists(), said
    time.sleep(0.1)
    assert not copy.exists(), "something has made it again"


what_is_changed()
with tempfile.TemporaryDirectory(prefix="sarissa-test-") as folder:
    the_copy_is_as_the_source(Path(folder, "source"), Path(folder, "target"))
    a_change_is_taken_back(Path(folder))
    for _ in range(3):
        who_is_told_to_end_leaves_nothing(Path(folder))
