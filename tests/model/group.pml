/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of a group (control/core/group): two members with two clocks each, a policy that changes
 * from bsp to asp at any moment, and two owners, of which the second may begin while the first still
 * runs, as across a partition. A decision is an object that only one can create; the reduce of a round
 * makes its result from the decision. The owner that comes later reads all decisions; members announce
 * contributions that have had no round to it, and their first owner's knowledge is lost.
 *
 * What must hold: a contribution is in one published result at most; a published result never changes;
 * a round has the quorum of the version that opened it, which its decision names.
 *
 * A bit of a mask is a contribution: member * 2 + clock.
 *
 * holds: -DTWO
 * holds: -DONE
 * broken: -DTWO -DNO_FENCE
 * broken: -DTWO -DNO_ADOPT
 * broken: -DTWO -DFORGETS
 * broken: -DONE -DSWAPS_OPEN
 */
#define ROUNDS 4
#define BSP 1
#define ASP 2
#define BOTH(m) (((m) & 5) == 5 || ((m) & 10) == 10)

byte policy = BSP;    /* the newest policy object */
byte put = 0;	      /* contributions that are there */
byte decision[ROUNDS];	/* 0: not decided */
byte version[ROUNDS];	/* that opened the round, as the decision says */
byte result[ROUNDS];	/* 0: not published */
byte counted = 0;	/* in published results */

active proctype members()
{
	do
	:: put != 15 ->
		if
		:: !(put & 1) -> put = put | 1
		:: (put & 1) && !(put & 2) -> put = put | 2
		:: !(put & 4) -> put = put | 4
		:: (put & 4) && !(put & 8) -> put = put | 8
		fi
	:: put == 15 -> break
	od
}

active proctype swap()
{
	if
	:: policy = ASP
	:: skip
	fi
}

inline publish(n, mask)
{
	atomic {
		if
		:: result[n] == 0 ->
			assert((counted & mask) == 0);
			counted = counted | mask;
			result[n] = mask
		:: else -> assert(result[n] == mask)
		fi
	}
}

/* What the owner may put into the round that it has open, by the version that opened it. */
inline choose(mine, ver, mask)
{
	if
	:: (mine & 1) && (mine & 4) -> mask = 5
	:: (mine & 2) && (mine & 8) -> mask = 10
	:: ver == ASP && (mine & 1) -> mask = 1
	:: ver == ASP && (mine & 2) -> mask = 2
	:: ver == ASP && (mine & 4) -> mask = 4
	:: ver == ASP && (mine & 8) -> mask = 8
	:: else -> mask = 0
	fi
}

proctype owner()
{
	byte n = 0, mine, done = 0, mask, opened, judged;
	bool first;

	/* reads the decisions that it finds */
	atomic {
		do
		:: n < ROUNDS && decision[n] != 0 ->
#ifndef FORGETS
			done = done | decision[n];
#endif
			n++
		:: else -> break
		od
	}
	if
	:: n > 0 -> n-- ; mask = decision[n]; publish(n, mask); n++
	:: else -> skip
	fi
	do
	:: n < ROUNDS ->
		opened = policy;
		do
		:: judged = opened;
#ifdef SWAPS_OPEN
			judged = policy;
#endif
			mine = put & (15 - done);
			choose(mine, judged, mask);
			if
			:: mask != 0 -> break
			:: mask == 0 && (put != 15 || (mine != 0 && opened == BSP)) ->
				if
				:: put == 15 -> goto ended /* nobody else comes */
				:: put != 15 -> skip
				fi
			:: mask == 0 && mine == 0 && put == 15 -> goto ended
			:: else -> goto ended
			fi
		od;
		/* the point of decision */
		atomic {
			first = (decision[n] == 0);
#ifdef NO_FENCE
			first = true;
#endif
			if
			:: first -> decision[n] = mask; version[n] = opened
			:: else ->
#ifndef NO_ADOPT
				mask = decision[n]
#else
				skip
#endif
			fi;
			assert(version[n] != BSP || BOTH(decision[n]))
		}
		done = done | mask;
		publish(n, mask);
		n++
	:: n == ROUNDS -> break
	od;
ended:
	skip
}

init {
	atomic {
		run owner();
#ifdef TWO
		run owner()
#endif
	}
}
