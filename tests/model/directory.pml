/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One id in the directory, for Spin: who may make an object of it, when a deleted one stays deleted, and
 * that its last copy stays. Two nodes can hold it; two others own its shard, the second once the first is
 * dead. Up to DEATHS of nodes and of the first owner happen at any moment, and are known (certain) at any
 * later one. FLAPS times a node cannot be reached for a while, as when one of its processes is started
 * again; then it announces what it holds, which it does for a new owner, too. Announcements come at any
 * time. An owner has settled when each node has announced all (ANNOUNCED), or is certainly dead.
 *
 * A create is granted by a settled owner that knows of no copy on a node that is not certainly dead; it
 * answers "try again" while that node cannot be reached. A delete is answered when the next owner has the
 * tombstone, too. A copy that is not the pinned one leaves only when the pinned one has just answered: the
 * way of that answer is the window in which the pinned one may die, and is no step here. Owners that are
 * taken for dead and live are left out, but for this: with -DALONE the first owner is not
 * dead but cut off from all. It comes back once, with what it knew, starts as unsettled, and has the
 * tombstones of the second one.
 *
 * Claims: no object that is complete on a living node is replaced; what was deleted is not given any more;
 * no copy leaves that is the last one; and when nothing more can happen the owner has settled, knows of all
 * that there is, and has answered each delete but one that it took along.
 *
 * With -DCREATE_BY_CONNECTION a node that cannot be reached has nothing; with -DSETTLE_BY_TIME an owner
 * settles at any moment; with -DONE_TOMBSTONE only the owner has it; with -DREPLICA_STALE a copy leaves while
 * the pinned one's node is not known to be dead; with -DNO_ACKED a node that has nothing says nothing; with
 * -DNO_REPEAT a node that comes back does not announce; with -DALONE -DBACK_SETTLED the first owner goes on
 * as if it were settled: the claims must fail then.
 *
 * The shortest counter-examples of the first two (-DBFS, then spin -t -p) are, step for step, tests of the
 * control core: a node puts, loses its link, another node creates (a_link_loss_frees_no_id in
 * tests/unit/directory/matching.c); a node puts, the first owner dies, another node creates before the holder has
 * told the second owner (a_holder_that_has_not_told_is_waited_for in tests/unit/cluster/settle.c).
 *
 *	spin -DDEATHS=2 -DFLAPS=2 -search directory.pml
 *
 * holds: -DDEATHS=0 -DFLAPS=3
 * holds: -DDEATHS=2 -DFLAPS=2
 * holds: -DDEATHS=3 -DFLAPS=2
 * holds: -DDEATHS=1 -DFLAPS=1 -DALONE
 * broken: -DDEATHS=0 -DFLAPS=1 -DCREATE_BY_CONNECTION
 * broken: -DDEATHS=1 -DFLAPS=0 -DSETTLE_BY_TIME
 * broken: -DDEATHS=1 -DFLAPS=1 -DONE_TOMBSTONE
 * broken: -DDEATHS=1 -DFLAPS=0 -DREPLICA_STALE
 * broken: -DDEATHS=1 -DFLAPS=0 -DNO_ACKED
 * broken: -DDEATHS=0 -DFLAPS=1 -DNO_REPEAT
 * broken: -DDEATHS=1 -DFLAPS=0 -DALONE -DBACK_SETTLED
 */
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef FLAPS
#define FLAPS 1
#endif
#define GENS	3 /* objects that are made of the id, at most */
#define FETCHES 2
#define DELETES 2

#define BIT(n)	   (1 << (n))
#define IN(n, set) (((set) >> (n)) & 1)
#define OTHER(n)   (1 - (n))
#define BOTH	   3

/* Nodes; sets have a bit for each. */
byte has[2];  /* the generation of its copy; 0: none */
byte pinned;
byte linked = BOTH;
byte dead, certain;
byte unacked;  /* it has something to announce to the owner of now */

/* Owners. */
byte view;
bool down;
byte knows[4];	/* of owner k and node n, at 2 * k + n: the generation that it has */
byte acked[2];	/* sets */
byte tomb[2];	/* generations up to here are deleted */
bool replicating;	/* a tombstone is on its way to the second owner */

byte last;	/* generation */
byte deleted;	/* up to here somebody has begun to delete */
byte gone;	/* and was told that it is done */
byte deaths, flaps, fetches, deletes;
bool back;	/* the first owner has come back */

#define LIVES(n)    (!IN(n, dead))
#define REACHED(n)  (LIVES(n) && IN(n, linked) && UP)
#define UP	    (view == 1 || !down)
#define KNOWN(n)    knows[2 * view + (n)]
#ifdef SETTLE_BY_TIME
#define SETTLED	    true
#else
#define SETTLED	    ((acked[view] | certain) == BOTH)
#endif
#ifdef CREATE_BY_CONNECTION
#define TAKEN(n)    (KNOWN(n) != 0 && IN(n, linked))
#else
#define TAKEN(n)    (KNOWN(n) != 0)
#endif
#ifdef REPLICA_STALE
#define PINNED(n)  (!IN(OTHER(n), certain))
#else
#define PINNED(n)  (REACHED(OTHER(n)) && IN(OTHER(n), pinned) && has[OTHER(n)] == has[n])
#endif
/* It is complete there, and nobody has begun to delete it. */
#define STANDS(n)   (LIVES(n) && has[n] > deleted)
#define GIVEN(n)    (REACHED(n) && has[n] != 0 && KNOWN(n) == has[n])

inline drop(n)
{
	has[n] = 0;
	pinned = pinned & ~BIT(n)
}

inline deleted_up_to(g)
{
	tomb[view] = (tomb[view] < g -> g : tomb[view])
}

inline forget_deleted()
{
	KNOWN(0) = (KNOWN(0) <= tomb[view] -> 0 : KNOWN(0));
	KNOWN(1) = (KNOWN(1) <= tomb[view] -> 0 : KNOWN(1))
}

proctype node(byte n)
{
end:	do
	/* HAVE, and ANNOUNCED */
	:: atomic { REACHED(n) && IN(n, unacked) ->
		if
		:: has[n] != 0 && (tomb[view] >= has[n] || KNOWN(OTHER(n)) > has[n]) -> drop(n)
		:: else
		fi;
		KNOWN(n) = has[n];
		if
		:: has[n] != 0 && KNOWN(OTHER(n)) != 0 && KNOWN(OTHER(n)) < has[n] -> /* that was put again */
			deleted_up_to(KNOWN(OTHER(n)));
			KNOWN(OTHER(n)) = 0;
			unacked = unacked | BIT(OTHER(n))
		:: else
		fi;
		unacked = unacked & ~BIT(n);
#ifdef NO_ACKED
		acked[view] = acked[view] | (has[n] != 0 -> BIT(n) : 0) }
#else
		acked[view] = acked[view] | BIT(n) }
#endif
	/* a client there puts one */
	:: atomic { REACHED(n) && last < GENS && SETTLED && !TAKEN(0) && !TAKEN(1) ->
		assert(!STANDS(0) && !STANDS(1));
		deleted_up_to(last);
		KNOWN(OTHER(n)) = 0;
		last++;
		has[n] = last;
		pinned = pinned | BIT(n);
		KNOWN(n) = last }
	/* a reader there gets it, and has a copy then that may leave again */
	:: atomic { REACHED(n) && GIVEN(OTHER(n)) && has[n] == 0 && fetches < FETCHES ->
		fetches++;
		has[n] = has[OTHER(n)];
		KNOWN(n) = has[n] }
	:: atomic { LIVES(n) && has[n] != 0 && !IN(n, pinned) && PINNED(n) ->
		assert(STANDS(OTHER(n)) && has[OTHER(n)] == has[n] || has[n] <= deleted);
		drop(n);
		if
		:: REACHED(n) -> KNOWN(n) = 0
		:: else -> unacked = unacked | BIT(n)
		fi }
	/* the owner appoints another one when the pinned copy is lost */
	:: atomic { GIVEN(n) && !IN(n, pinned) && IN(OTHER(n), certain) -> pinned = pinned | BIT(n) }
	:: atomic { LIVES(n) && IN(n, linked) && flaps < FLAPS ->
		flaps++;
#ifndef NO_REPEAT
		unacked = unacked | BIT(n);
#endif
		linked = linked & ~BIT(n) }
	:: atomic { LIVES(n) && !IN(n, linked) -> linked = linked | BIT(n) }
	:: atomic { LIVES(n) && deaths < DEATHS ->
		deaths++;
		dead = dead | BIT(n);
		drop(n);
		unacked = unacked & ~BIT(n) }
	:: atomic { IN(n, dead) && !IN(n, certain) ->
		certain = certain | BIT(n);
		knows[n] = 0;
		knows[2 + n] = 0 }
	/* what was deleted is given all the same */
	:: atomic { GIVEN(n) && has[n] <= gone -> assert(false) }
	od
}

proctype owner()
{
end:	do
	/* DELETE: reachable holders drop it at once */
	:: atomic { UP && SETTLED && deletes < DELETES && !replicating && (KNOWN(0) != 0 || KNOWN(1) != 0) ->
		deletes++;
		deleted = (KNOWN(0) > KNOWN(1) -> KNOWN(0) : KNOWN(1));
		deleted_up_to(deleted);
		if
		:: REACHED(0) && has[0] <= deleted -> drop(0)
		:: else
		fi;
		if
		:: REACHED(1) && has[1] <= deleted -> drop(1)
		:: else
		fi;
		KNOWN(0) = 0;
		KNOWN(1) = 0;
#ifdef ONE_TOMBSTONE
		gone = deleted }
#else
		if
		:: view == 0 -> replicating = true
		:: else -> gone = deleted /* the first one is dead */
		fi }
#endif
	:: atomic { replicating && !down ->
		replicating = false;
		tomb[1] = deleted;
		gone = deleted }
	:: atomic { view == 0 && !down && deaths < DEATHS ->
		deaths++;
		down = true;
		replicating = false }
	:: atomic { view == 0 && down ->
		view = 1;
		acked[1] = 0;
		forget_deleted();
		unacked = BOTH & ~dead }
#ifdef ALONE
	:: atomic { view == 1 && !back && !replicating ->
		back = true;
		down = false;
		view = 0;
#ifndef BACK_SETTLED
		acked[0] = 0;
#endif
		tomb[0] = (tomb[0] < tomb[1] -> tomb[1] : tomb[0]);
		forget_deleted();
		unacked = BOTH & ~dead }
#endif
	:: timeout ->
		assert((acked[view] | certain) == BOTH);
		assert(!LIVES(0) || KNOWN(0) == has[0]);
		assert(!LIVES(1) || KNOWN(1) == has[1]);
		assert(gone == deleted || down || back);
		break
	od
}

init
{
	atomic {
		acked[0] = BOTH;
		run node(0);
		run node(1);
		run owner()
	}
}
