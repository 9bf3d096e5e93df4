#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the chaos suite takes for the limit of deletes that is written down, and what for a fault."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "chaos"))
from limits import may_return  # noqa: E402

DELETE = 4, 10.0, 11.0  # on node 4


def cut(side=(4,), begin=9.0, end=15.0):
    return set(side), begin, end


def lost(node, begin, end=None):
    return node, begin, begin + 4 if end is None else end


def one_who_was_alone_is_lost():
    assert may_return(DELETE, [cut()], [lost(4, 13.0)], [])
    assert may_return(DELETE, [cut()], [lost(4, 16.0)], [])      # it had not told the others yet
    assert not may_return(DELETE, [cut()], [lost(4, 18.0)], [])  # it had
    assert not may_return(DELETE, [cut()], [lost(4, 9.2, 9.6)], [])  # before
    assert not may_return(DELETE, [cut()], [lost(3, 13.0)], [])
    assert not may_return(DELETE, [], [lost(4, 13.0)], [])
    assert not may_return(DELETE, [cut((3,))], [lost(4, 13.0)], [])
    assert not may_return(DELETE, [cut(begin=11.5)], [lost(4, 13.0)], [])
    assert not may_return(DELETE, [cut(end=8.5)], [lost(4, 13.0)], [])


def all_on_its_side_are():
    apart = [cut((2, 4)), cut((0, 1, 3))]
    assert not may_return(DELETE, apart, [lost(4, 13.0)], [])
    assert may_return(DELETE, apart, [lost(4, 13.0), lost(2, 14.9)], [])
    assert may_return(DELETE, apart, [lost(4, 13.0), lost(2, 8.0)], [])  # it was not there
    assert not may_return(DELETE, apart, [lost(4, 13.0), lost(2, 8.0, 9.0)], [])
    assert may_return(DELETE, [*apart, cut()], [lost(4, 13.0)], [])      # nor did it see that one
    assert not may_return(DELETE, [*apart, cut(end=10.0)], [lost(4, 14.0)], [])


def two_are_at_once():
    away = [({0}, 9.0, 14.0)]
    pair = [lost(1, 13.0), lost(2, 13.9)]
    assert may_return(DELETE, [], pair, away)
    assert not may_return(DELETE, [], pair, [])
    assert not may_return(DELETE, [], pair, [({1, 2}, 9.0, 14.0)])
    assert not may_return(DELETE, [], pair, [({0}, 9.0, 12.0)])
    assert not may_return(DELETE, [], pair, [({0}, 11.5, 14.0)])
    assert not may_return(DELETE, [], [lost(1, 13.0), lost(2, 14.5)], away)
    assert not may_return(DELETE, [], [lost(1, 9.9), lost(2, 10.5)], away)
    assert not may_return(DELETE, [], [lost(1, 13.0)], away)


for case in (one_who_was_alone_is_lost, all_on_its_side_are, two_are_at_once):
    case()
    print(f"ok   {case.__name__.replace('_', ' ')}")
