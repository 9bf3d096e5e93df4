# SPDX-License-Identifier: BSD-3-Clause
"""Which deletes may come to nothing, of all that were answered: those whose tombstones were on nodes only
that have lost their stores since (docs/user/guarantees.md, 4). Pure.

Times are seconds of one clock. A delete is (node, asked, answered): where the task was. apart: (side,
begin, end), nodes that saw each other and none of the rest. losses: (node, begin, end), one whose store
was lost at the beginning and which answered again at the end. away: (nodes, begin, end), out of the
others' reach, for whatever reason.
"""

SEEN_S = 2.0  # after which the sides of a cut have told each other what they know
PAIR_S = 1.0  # in which a death is noticed, and another node told


def may_return(delete, apart, losses, away):
    return _side_lost(delete, apart, losses) or _pair_lost(delete, losses, away)


def _side_lost(delete, apart, losses):
    """All who lived on its side of a cut were lost before that was over."""
    node, asked, answered = delete
    now = [(side, end) for side, begin, end in apart if node in side and
           begin <= answered <= end + SEEN_S]
    if not now:
        return False
    until = min(end for _, end in now) + SEEN_S
    return all(any(who == one and (asked <= begin <= until or begin <= answered <= end)
                   for who, begin, end in losses)
               for one in set.intersection(*(set(side) for side, _ in now)))


def _pair_lost(delete, losses, away):
    """Two were, one just after the other, while somebody could not be told of it."""
    _, asked, answered = delete
    since = sorted((begin, who) for who, begin, _ in losses if begin >= asked)
    pairs = [({one, other}, at) for at, one in since for then, other in since
             if one != other and 0 <= then - at <= PAIR_S]
    return any(set(nodes) - pair and begin <= answered and at <= end
               for pair, at in pairs for nodes, begin, end in away)
