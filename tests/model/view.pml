/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views and leases, for Spin (docs/developer/protocol-views.md). The keepers agree on the newest view: a
 * register that is replaced (Paxos; D. Rystsov, CASPaxos, 2018). Each ballot belongs to one keeper. It asks for
 * promises, takes the accepted value of the highest ballot, has it accepted once more, and leads: then
 * it makes one view after the other. A view is in force when a majority has accepted it. A view that names other
 * keepers needs a majority of the old ones and of the new ones. A leader needs promises of a majority of the keepers
 * that it knew, and of those of the value that it took. Any message may be lost or late; a death is a
 * keeper that takes no more steps.
 *
 * X is a member. It asks a leader for a lease that ends LEASE after the question. The leader grants when a
 * majority has answered a heartbeat since. It waits LEASE after the majority of its promises, and after each grant,
 * before it proposes a view without X. Time is counted down; all clocks run alike.
 *
 * Claims: no two views with one number are in force; X has no lease of a view while a later view without X is
 * in force.
 *
 * With -DFIRST_VALUE a leader takes the value of the first promise; with -DHALF_NEW other keepers need a
 * majority of the new ones only; with -DKNOWN_ONLY a leader does not ask the keepers that a promise names; with
 * -DVOTES_ON a keeper that lost its memory votes as before; with -DGRANT_ALONE a leader grants without heartbeats;
 * with -DBEFORE_ASK with heartbeats of before the question; with -DNO_WAIT a new leader does not wait: the claims
 * must fail then.
 *
 * Keepers 0, 1 and 2 found the cluster; then 3 replaces 2. With -DGROW 0 founds, then 1 and 2 join; with -DSHRINK
 * only 0 remains. With -DFIXED the keepers stay, with -DNO_LEASES nobody asks for a lease.
 *
 * holds: -DVIEWS=1
 * holds: -DVIEWS=2 -DFIXED
 * holds: -DVIEWS=1 -DFIXED -DLEASE=2
 * holds: -DVIEWS=2 -DNO_LEASES
 * holds: -DVIEWS=1 -DGROW
 * holds: -DVIEWS=2 -DNO_LEASES -DGROW
 * holds: -DVIEWS=2 -DNO_LEASES -DSHRINK
 * holds: -DVIEWS=1 -DNO_LEASES -DFIXED -DBALLOTS=3
 * broken: -DVIEWS=1 -DNO_LEASES -DFIRST_VALUE
 * broken: -DVIEWS=1 -DNO_LEASES -DHALF_NEW
 * broken: -DVIEWS=2 -DNO_LEASES -DKNOWN_ONLY
 * broken: -DVIEWS=1 -DNO_LEASES -DVOTES_ON
 * broken: -DVIEWS=1 -DGRANT_ALONE
 * broken: -DVIEWS=1 -DBEFORE_ASK
 * broken: -DVIEWS=1 -DNO_WAIT
 */
#ifndef BALLOTS
#define BALLOTS 2
#endif
#ifndef VIEWS
#define VIEWS 2
#endif
#ifndef LEASE
#define LEASE 1
#endif
#define KEEPERS 4
#define NONE	255

#define BIT(n)	   (1 << (n))
#define IN(n, set) (((set) >> (n)) & 1)

/* A value: number of the view * 32 + the ballot that made it * 8 + member X is in it * 4 + its keepers * 2 +
 * the keepers of the view before. */
#define VALUE(num, by, x, now, before) ((num)*32 + (by)*8 + (x)*4 + (now)*2 + (before))
#define NUMBER(v)		   ((v) >> 5)
#define WITH_X(v)		   (((v) >> 2) & 1)
#define SET(v)			   (((v) >> 1) & 1)
#define SET_BEFORE(v)		   ((v)&1)

/* The keepers of the founding, and those of a later view. */
#ifdef GROW
#define FIRST 1
#define THEN  7
#else
#ifdef SHRINK
#define FIRST 7
#define THEN  1
#else
#define FIRST 7
#define THEN  11
#endif
#endif
#define KEEPING(c)	  (c == 0 -> FIRST : THEN)
#define ONES(mask)	  (IN(0, mask) + IN(1, mask) + IN(2, mask) + IN(3, mask))
#define MAJORITY(mask, c) (2 * ONES(mask & KEEPING(c)) > ONES(KEEPING(c)))
#ifdef HALF_NEW
#define BOTH(mask, v) MAJORITY(mask, SET(v))
#else
#define BOTH(mask, v) (MAJORITY(mask, SET(v)) && MAJORITY(mask, SET_BEFORE(v)))
#endif

/* keepers */
byte promised[KEEPERS];
byte accepted[KEEPERS]; /* the ballot; 0: of the founding */
byte value[KEEPERS];	/* NONE: nothing yet */

/* ballots, from 1; each belongs to one keeper, which asks for promises and then leads */
mtype = { UNUSED, PREPARES, LEADS };
mtype state[BALLOTS + 1];
byte heard[BALLOTS + 1];	  /* promises, then ACCEPTED of its value */
byte best_ballot[BALLOTS + 1];	  /* of the promises so far */
byte proposed[BALLOTS + 1];	  /* the value */
byte begun[BALLOTS + 1];	  /* the keepers that it knew at first */
bool agreed[BALLOTS + 1];	  /* a majority has its value */
byte wait[BALLOTS + 1];		  /* time until it may leave a member out */
byte asked[BALLOTS + 1];	  /* time that an ASK of X would still give */
byte confirmed[BALLOTS + 1];	  /* heartbeats that were answered since */

/* X, a member, and what is in force */
byte lease, lease_view;
byte in_force[VIEWS + 1];
byte without; /* the last view in force without X */
bool changed; /* a view with the other keepers is in force */
bool lost;

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define LESS(t) t = (t > 0 -> t - 1 : 0)

#ifdef FIRST_VALUE
#define NEWER(k) (proposed[b] == NONE)
#else
#define NEWER(k)                                                                                               \
	(proposed[b] == NONE || accepted[k] > best_ballot[b] ||                                                \
	 accepted[k] == best_ballot[b] && value[k] > proposed[b])
#endif
#ifdef KNOWN_ONLY
#define KNOWN(mask, v) true
#else
#define KNOWN(mask, v) MAJORITY(mask, SET(v))
#endif

#ifdef FIXED
#define CHANGES false
#else
#define CHANGES true
#endif
#ifdef NO_LEASES
#define ASKS false
#else
#define ASKS true
#endif
#if defined(NO_WAIT) || defined(NO_LEASES)
#define PATIENCE 0
#else
#define PATIENCE LEASE
#endif

#define PROMISE(k)                                                                                              \
	:: d_step { state[b] == PREPARES && promised[k] < b ->                                                  \
		promised[k] = b;                                                                                \
		heard[b] = heard[b] | BIT(k);                                                                   \
		if                                                                                              \
		:: value[k] != NONE && NEWER(k) ->                                                              \
			best_ballot[b] = accepted[k];                                                           \
			proposed[b] = value[k]                                                                  \
		:: else                                                                                         \
		fi }

#define ACCEPT(k)                                                                                               \
	:: d_step { state[b] == LEADS && promised[k] <= b && !IN(k, heard[b]) ->                                \
		promised[k] = b;                                                                                \
		accepted[k] = b;                                                                                \
		value[k] = proposed[b];                                                                         \
		heard[b] = heard[b] | BIT(k) }

#ifdef BEFORE_ASK
#define WANTED true
#else
#define WANTED (asked[b] > 0)
#endif
#define CONFIRM(k)                                                                                              \
	:: d_step { state[b] == LEADS && WANTED && promised[k] == b && IN(k, heard[b]) && !IN(k, confirmed[b]) -> \
		confirmed[b] = confirmed[b] | BIT(k) }
#ifdef GRANT_ALONE
#define CONFIRMED true
#else
#define CONFIRMED MAJORITY(confirmed[b], SET(proposed[b]))
#endif

#define PROPOSE(v)                                                                                              \
	proposed[b] = v;                                                                                        \
	heard[b] = 0;                                                                                           \
	confirmed[b] = 0;                                                                                       \
	agreed[b] = false

proctype ballot(byte b)
{
end:	do
	:: d_step { state[b] == UNUSED -> state[b] = PREPARES }
	:: d_step { state[b] == UNUSED && changed -> state[b] = PREPARES; begun[b] = 1 }
	PROMISE(0)
	PROMISE(1)
	PROMISE(2)
	PROMISE(3)
	:: d_step { state[b] == PREPARES && proposed[b] != NONE && MAJORITY(heard[b], begun[b]) &&
		    KNOWN(heard[b], proposed[b]) ->
		state[b] = LEADS;
		best_ballot[b] = 0;
		begun[b] = 0;
		heard[b] = 0;
		wait[b] = PATIENCE }
	ACCEPT(0)
	ACCEPT(1)
	ACCEPT(2)
	ACCEPT(3)
	/* the value is agreed: the view is in force */
	:: d_step { state[b] == LEADS && !agreed[b] && BOTH(heard[b], proposed[b]) ->
		agreed[b] = true;
		assert(in_force[NUMBER(proposed[b])] == NONE || in_force[NUMBER(proposed[b])] == proposed[b]);
		in_force[NUMBER(proposed[b])] = proposed[b];
		changed = changed || SET(proposed[b]) == 1;
		without = (WITH_X(proposed[b]) -> without : MAX(without, NUMBER(proposed[b])));
		assert(lease == 0 || lease_view >= without) }
	/* the next view: X is left out, or let in, or the keepers change */
	:: d_step { state[b] == LEADS && agreed[b] && NUMBER(proposed[b]) < VIEWS && WITH_X(proposed[b]) &&
		    wait[b] == 0 ->
		PROPOSE(VALUE(NUMBER(proposed[b]) + 1, b, 0, SET(proposed[b]), SET(proposed[b]))) }
	:: d_step { state[b] == LEADS && agreed[b] && NUMBER(proposed[b]) < VIEWS && !WITH_X(proposed[b]) ->
		PROPOSE(VALUE(NUMBER(proposed[b]) + 1, b, 1, SET(proposed[b]), SET(proposed[b]))) }
	:: d_step { state[b] == LEADS && agreed[b] && NUMBER(proposed[b]) < VIEWS && SET(proposed[b]) == 0 && CHANGES ->
		PROPOSE(VALUE(NUMBER(proposed[b]) + 1, b, WITH_X(proposed[b]), 1, 0)) }
	/* X asks this leader; heartbeats; it grants */
	:: d_step { state[b] == LEADS && ASKS && asked[b] < LEASE ->
		asked[b] = LEASE;
#ifndef BEFORE_ASK
		confirmed[b] = 0
#endif
		}
	CONFIRM(0)
	CONFIRM(1)
	CONFIRM(2)
	CONFIRM(3)
	:: d_step { state[b] == LEADS && agreed[b] && WITH_X(proposed[b]) && asked[b] > 0 && CONFIRMED ->
		if
		:: NUMBER(proposed[b]) > lease_view || lease == 0 -> lease = asked[b]; lease_view = NUMBER(proposed[b])
		:: NUMBER(proposed[b]) == lease_view && lease > 0 -> lease = MAX(lease, asked[b])
		:: else
		fi;
		wait[b] = LEASE;
		asked[b] = 0;
		confirmed[b] = 0;
		assert(lease_view >= without) }
	od
}

#define RUNS(b) (wait[b] > 0 || asked[b] > 0)

proctype others()
{
	byte i;
end:	do
	:: d_step { lease > 0 || RUNS(1) || RUNS(2) || RUNS(BALLOTS) ->
		LESS(lease);
		i = 1;
		do
		:: i <= BALLOTS -> LESS(wait[i]); LESS(asked[i]); i++
		:: else -> break
		od;
		i = 0 }
#ifdef VOTES_ON
	:: d_step { !lost -> lost = true; promised[0] = 0; accepted[0] = 0; value[0] = NONE }
#endif
	od
}

init
{
	byte i;
	atomic {
		do
		:: i < KEEPERS -> value[i] = (IN(i, FIRST) -> VALUE(0, 0, 1, 0, 0) : NONE); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i <= BALLOTS -> state[i] = UNUSED; proposed[i] = NONE; i++
		:: else -> break
		od;
		i = 0;
		do
		:: i <= VIEWS -> in_force[i] = NONE; i++
		:: else -> break
		od;
		i = 0;
		in_force[0] = VALUE(0, 0, 1, 0, 0);
		i = 1;
		do
		:: i <= BALLOTS -> run ballot(i); i++
		:: else -> break
		od;
		i = 0;
		run others()
	}
}
