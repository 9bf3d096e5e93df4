# SPDX-License-Identifier: BSD-3-Clause
"""The Python package, where nodes 1 and 2 of the directory do not answer. Run by client_missing, with pytest."""

import errno
import pickle

import sarissa


def error_of(call):
    try:
        call()
    except sarissa.Error as error:
        return error
    raise AssertionError(f"{call} did not fail")


def test_partial_errors_tell_the_nodes():
    with sarissa.open() as node:
        tell(node)


def tell(node):
    node.put("x", b"xyz")
    try:
        node.ls()
        raise AssertionError("a list that is not complete was returned")
    except sarissa.PartialError as error:
        assert isinstance(error, (sarissa.Error, OSError)) and error.errno == errno.EHOSTUNREACH
        assert error.missing == [1, 2], error.missing
        assert [info.name for info in error.found] == ["x"]
    try:
        node.info("y")
        raise AssertionError("an object of which nothing is known was described")
    except sarissa.PartialError as error:
        assert error.missing == [1, 2] and not error.found
    assert node.info("x").size == 3
    again = pickle.loads(pickle.dumps(error_of(node.ls)))
    assert type(again) is sarissa.PartialError and again.missing == [1, 2]
    assert again.found[0].name == "x"
