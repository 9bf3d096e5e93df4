# SPDX-License-Identifier: BSD-3-Clause
"""What objects and errors are called: names that are refused, a class for each error code, the package's own
names."""

import errno
import pickle
import re
import subprocess
import sys

import pytest
import sarissa
from conftest import ROOT


@pytest.mark.parametrize("name", ["", b"", b"x" * 15, b"x" * 17, None, 7])
def test_names_that_are_none_are_refused(node, name):
    calls = [lambda: node.put(name, b"x"), lambda: node.get(name, timeout=0), lambda: node.create(name, 1),
             lambda: node.delete(name), lambda: node.info(name), lambda: node.expire(name, 1),
             lambda: node.reduce(name, ["a"], dtype="f4"), lambda: node.reduce("a", [name], dtype="f4"),
             lambda: node.gather([name], timeout=0), lambda: node.reader(name, timeout=0),
             lambda: node.get_tensor(name, timeout=0), lambda: node.broadcast(name, timeout=0)]
    for call in calls:
        with pytest.raises(ValueError, match="one character or more" if name == "" else "id of 16 bytes"):
            call()


def test_an_id_of_nothing_is_refused():
    for name in ("", b""):
        with pytest.raises(ValueError, match="one character or more"):
            sarissa.id_of(name)


def test_prefixes_may_be_empty_and_are_no_ids(node):
    node.put("listed", b"x")
    assert "listed" in [info.name for info in node.ls("")]
    for wrong in (b"16 bytes ........", b"", b"listed", None):
        with pytest.raises(TypeError, match="a str"):
            node.ls(wrong)
        with pytest.raises(TypeError):
            node.watch(wrong)
    node.watch("").close()
    node.delete("listed")


def documented():
    """The error codes of the headers and their man pages."""
    texts = [path.read_text() for path in [*(ROOT / "include/sarissa").glob("*.h"), *(ROOT / "docs/man").glob("*.3")]]
    return sorted({code for text in texts for code in re.findall(r"\bE[A-Z]{3,}\b", text) if hasattr(errno, code)})


@pytest.mark.parametrize("code", documented())
def test_each_documented_error_has_a_class(code):
    number = getattr(errno, code)
    made = sarissa._errors.error(number, b"words", [], None, b"", None)
    assert type(made) is not sarissa.Error, f"{code} has no class"
    assert made.errno == number and type(made).__name__ in sarissa.__all__
    assert code in type(made).__doc__ or code in "EPROTO ENOTCONN", type(made).__doc__
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made) and again.errno == number and again.strerror == "words"


def test_out_of_memory_is_a_memory_error():
    assert issubclass(sarissa.OutOfMemory, MemoryError) and issubclass(sarissa.QuotaExceeded, sarissa.StoreFull)


def test_all_names_exist_and_open_stays_pythons():
    for name in sarissa.__all__:
        assert hasattr(sarissa, name), name
    space = {}
    exec("from sarissa import *", space)
    assert "open" not in space and space["Node"] is sarissa.Node


def test_the_source_folder_says_what_to_do():
    done = subprocess.run([sys.executable, "-c", "import sarissa"], cwd=ROOT / "client/python", text=True,
                          stderr=subprocess.PIPE, env={})
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: ") and "pip install --no-build-isolation ." in last and "circular" not in last
