/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which result a delegated reduce has, for Spin. The requester builds one generation after the other,
 * and asks the shard owner whether it may be the result (PROPOSE). A holder has all of it but the last
 * chunk; FINISH releases that chunk, and then a reader may get all of it, too. Up to DEATHS of owner,
 * requester and holders happen at any moment. The next owner learns by messages that the requester
 * coordinates a reduce (REDUCE), how it has ended (RECALL), and which complete copies exist (HAVE).
 * STALLS times the requester stands still and is taken for dead; then the owner restarts the reduce,
 * and asks the requester whether that may be the result (COMMIT). With LATE the timeout may be over.
 * Messages arrive at any time, twice, out of order, or never: a bit per generation.
 *
 * With HEIR the second owner is the requester's own node, and dies and stands still with it.
 *
 * Two assumptions on time. When a death is certain, all messages of the dead node have come, or never
 * will. And an owner knows all complete copies before a reduce of its own is complete, before it refuses
 * a result of a dead node, before it agrees to one of a node that was taken for dead, and before it calls
 * a result lost. An owner that is taken for dead and lives is left out: in a partition each side may
 * choose (docs/developer/reduce.md).
 *
 * Claims: no two results are reported or read, unless all nodes with the first have died; no node has all
 * of two; a result that the requester is told of exists, or its holder has died; and when nothing more can
 * happen the requester knows how the reduce has ended, or is dead.
 *
 *	spin -DDEATHS=2 -DSTALLS=1 -DLATE -search delegation.pml
 *
 * With -DEARLY a holder releases its last chunk before an agreement; with -DFREELY an owner agrees
 * though another generation is complete; with -DSPECULATIVE an owner that is not settled agrees though
 * the requester was taken for dead before; with -DDEAF no owner waits for announcements; with -DKEEPS
 * the requester goes on with a refused generation: the claims must fail then.
 *
 * holds: -DDEATHS=2 -DLATE
 * holds: -DDEATHS=2 -DSTALLS=1 -DLATE
 * holds: -DDEATHS=2 -DSTALLS=1 -DLATE -DHEIR
 * broken: -DDEATHS=2 -DEARLY
 * broken: -DDEATHS=1 -DSTALLS=1 -DFREELY
 * broken: -DDEATHS=1 -DSTALLS=1 -DSPECULATIVE
 * broken: -DDEATHS=1 -DSTALLS=1 -DSPECULATIVE -DHEIR
 * broken: -DDEATHS=2 -DDEAF
 * broken: -DDEATHS=1 -DSTALLS=1 -DKEEPS
 * broken: -DDEATHS=1 -DSTALLS=1 -DKEEPS -DHEIR
 */
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef STALLS
#define STALLS 0
#endif
#define GENS 4 /* as many as are made, at most */

mtype = { NONE, BUILDING, HELD, WHOLE, GONE };	    /* a generation, on its holder */
mtype = { IDLE, DELEGATED, OWN, ASKING, DECIDED, ENDED, FAILED }; /* a reduce, at an owner */
mtype = { ASK, FOLLOW, MAKE, PROPOSED, AGREED, DONE, SORRY, DEAD }; /* the requester */

#define BIT(g)	  (1 << (g))
#define IN(g, set) (((set) >> (g)) & 1)
#define LAST(set) (IN(4, set) -> 4 : (IN(3, set) -> 3 : (IN(2, set) -> 2 : IN(1, set))))

/* Generations; 0 is none. Sets have a bit for each. */
mtype st[GENS + 1] = NONE;
byte last;
byte all;     /* somebody living has all of it: the holder */
byte copied;  /* the reader */
byte dead;    /* its holder */
byte certain; /* and that is known */
byte given_up;

/* The two owners, one after the other. */
byte view;
bool down;
mtype ks[2] = IDLE;
byte kg[2], heard[2];

/* The requester; its proposal, which may be the result; it stands still. */
mtype a = ASK;
byte ag, hope;
bool still;

/* On its way. */
byte propose[2], yes[2], no[2], finish[2], commit[2], agrees[2], objects[2], forgot[2];
byte finishes; /* FINISH of the requester */
bool recall;   /* that its time is over */

byte deaths, stalls;
byte result; /* that somebody has read, or was told of */

#define LIVES	 (a != DEAD && !still)
#ifdef HEIR
#define UP(k)	 ((k) != 0 -> LIVES : !down)
#else
#define UP(k)	 ((k) != 0 || !down)
#endif
#define THERE(k) LAST(heard[k] & (all | copied))
#define NOW	 ks[view]
#define TALKS	 (LIVES && UP(view))
#ifdef SPECULATIVE
#define KNOWS(k) true
#else
#define KNOWS(k) (stalls == 0 || SETTLED(k))
#endif
#ifdef DEAF
#define SETTLED(k) true
#else
#define SETTLED(k) (((all | copied) & ~heard[k]) == 0)
#endif

inline tell(g)
{
	assert(result == 0 || result == g || !IN(result, all | copied));
	result = g
}

inline begin(g)
{
	assert(last < GENS);
	last++;
	g = last;
	st[g] = BUILDING
}

/* The owner coordinates it from now on, unless a result is complete. */
inline take_back(k)
{
	if
	:: THERE(k) != 0 -> ks[k] = IDLE
	:: else ->
		ks[k] = OWN;
		begin(kg[k])
	fi
}

inline decide(k, g)
{
	ks[k] = DECIDED;
	kg[k] = g;
	finish[k] = finish[k] | BIT(g)
}

inline agree(g)
{
	a = AGREED;
	ag = g;
	hope = 0;
	finishes = finishes | BIT(g)
}

/* A reported result exists, or did. */
inline ends_well(g)
{
	assert(IN(g, all | copied | dead));
	a = DONE;
	ag = g;
	tell(g)
}

proctype bytes(byte g)
{
end:	do
	:: atomic { st[g] == BUILDING -> st[g] = HELD }
#ifdef EARLY
	:: atomic { st[g] == HELD ->
#else
	:: atomic { st[g] == HELD && IN(g, finish[0] | finish[1] | finishes) ->
#endif
		assert((all | copied) == 0);
		st[g] = WHOLE;
		all = all | BIT(g) }
	:: atomic { (st[g] == HELD || st[g] == BUILDING) && IN(g, given_up) -> st[g] = GONE }
	:: atomic { st[g] == WHOLE && !IN(g, copied) -> copied = copied | BIT(g); tell(g) }
	:: atomic { deaths < DEATHS && st[g] != NONE && st[g] != GONE ->
		deaths++;
		st[g] = GONE;
		all = all & ~BIT(g);
		dead = dead | BIT(g) }
	:: atomic { IN(g, dead) && !IN(g, certain) -> certain = certain | BIT(g) }
	od
}

/* Messages to owner k about generation g, and from it to the requester. */
proctype news(byte k; byte g)
{
end:	do
	/* HAVE */
	:: atomic { k == view && UP(k) && IN(g, all | copied) && !IN(g, heard[k]) ->
		heard[k] = heard[k] | BIT(g);
		if
		:: (ks[k] == OWN || ks[k] == ASKING) && kg[k] != g ->
			given_up = given_up | BIT(kg[k]);
			ks[k] = IDLE
		:: else
		fi }
	/* PROPOSE */
	:: atomic { UP(k) && IN(g, propose[k]) && !IN(g, yes[k]) && kg[k] == g &&
		(ks[k] == DECIDED || ks[k] == ENDED) -> yes[k] = yes[k] | BIT(g) }
	:: atomic { UP(k) && IN(g, propose[k]) && ks[k] == DELEGATED &&
#ifndef FREELY
		(THERE(k) == 0 || THERE(k) == g) &&
#endif
		(THERE(k) == g || (!IN(g, certain) && KNOWS(k))) -> decide(k, g); yes[k] = yes[k] | BIT(g) }
	:: atomic { UP(k) && IN(g, propose[k]) && !IN(g, no[k]) && ks[k] == DELEGATED && THERE(k) != g &&
		(THERE(k) != 0 || (IN(g, certain) && SETTLED(k))) -> no[k] = no[k] | BIT(g) }
	:: atomic { UP(k) && IN(g, propose[k]) && !IN(g, no[k]) && ks[k] != IDLE && ks[k] != DELEGATED &&
#ifdef MUTE
		ks[k] != OWN && ks[k] != ASKING &&
#endif
		(kg[k] != g || ks[k] == FAILED) -> no[k] = no[k] | BIT(g) }
	/* COMMIT */
	:: atomic { LIVES && IN(g, commit[k]) && (a == DONE || a == AGREED) && ag == g && !IN(g, agrees[k]) ->
		agrees[k] = agrees[k] | BIT(g) }
	:: atomic { LIVES && IN(g, commit[k]) && (a == DONE || a == AGREED) && ag != g && !IN(g, objects[k]) ->
		objects[k] = objects[k] | BIT(g) }
	:: atomic { LIVES && IN(g, commit[k]) && a == SORRY && !IN(g, forgot[k]) ->
		forgot[k] = forgot[k] | BIT(g) }
	:: atomic { LIVES && IN(g, commit[k]) && k == view &&
		(a == ASK || a == FOLLOW || a == MAKE || a == PROPOSED) ->
		if
		:: a == MAKE || a == PROPOSED -> given_up = given_up | BIT(ag)
		:: else
		fi;
		agree(g);
		agrees[k] = agrees[k] | BIT(g) }
	od
}

proctype owner(byte k)
{
end:	do
	/* the requester is dead, or taken for dead, and its messages have come or are lost */
	:: atomic { UP(k) && ks[k] == DELEGATED && (a == DEAD || (still && k == view)) ->
		finishes = (a == DEAD -> 0 : finishes);
		take_back(k) }
	:: atomic { UP(k) && ks[k] == OWN && st[kg[k]] == HELD && SETTLED(k) ->
		ks[k] = ASKING;
		commit[k] = commit[k] | BIT(kg[k]) }
	:: atomic { UP(k) && ks[k] == OWN && st[kg[k]] == GONE -> begin(kg[k]) }
	:: atomic { UP(k) && ks[k] == ASKING &&
		(a == DEAD || still || IN(kg[k], agrees[k]) || IN(kg[k], forgot[k])) -> decide(k, kg[k]) }
	:: atomic { UP(k) && ks[k] == ASKING && IN(kg[k], objects[k]) ->
		given_up = given_up | BIT(kg[k]);
		ks[k] = IDLE }
	/* FINISH is answered, or never will be */
	:: atomic { UP(k) && ks[k] == DECIDED && (st[kg[k]] == WHOLE || THERE(k) == kg[k]) ->
		ks[k] = ENDED;
		tell(kg[k]) }
	:: atomic { UP(k) && ks[k] == DECIDED && st[kg[k]] == GONE && THERE(k) != kg[k] && SETTLED(k) ->
		ks[k] = FAILED }
	/* RECALL */
	:: atomic { UP(k) && recall && (ks[k] == DELEGATED || ks[k] == OWN || ks[k] == ASKING) ->
		given_up = given_up | (ks[k] == DELEGATED -> 0 : BIT(kg[k]));
		ks[k] = FAILED }
	:: atomic { UP(k) && k == view && LIVES && a == DONE &&
		(ks[k] == IDLE || ks[k] == DELEGATED || ks[k] == OWN || ks[k] == ASKING) ->
		given_up = given_up | (ks[k] == OWN || ks[k] == ASKING -> BIT(kg[k]) : 0);
		ks[k] = ENDED;
		kg[k] = ag }
#ifdef LATE
	:: atomic { UP(k) && ks[k] == OWN ->
		given_up = given_up | BIT(kg[k]);
		ks[k] = FAILED }
#endif
	:: atomic { k == 0 && !down && deaths < DEATHS -> deaths++; down = true }
	/* its death is certain */
	:: atomic { k == 0 && down && view == 0 ->
		finish[0] = 0;
		commit[0] = 0;
		view = 1 }
	od
}

proctype requester()
{
end:	do
	/* REDUCE */
	:: atomic { TALKS && a == ASK && NOW == IDLE && THERE(view) == 0 ->
		NOW = DELEGATED;
		begin(ag);
		a = MAKE }
	:: atomic { TALKS && a == ASK && NOW == DELEGATED -> take_back(view); a = FOLLOW }
	:: atomic { TALKS && (a == ASK || a == FOLLOW) && NOW == IDLE && THERE(view) != 0 ->
		if
		:: THERE(view) == hope -> ends_well(hope)
		:: else -> a = SORRY /* it is there, and may be another's */
		fi }
	:: atomic { TALKS && a == ASK && (NOW == OWN || NOW == ASKING || NOW == DECIDED) -> a = FOLLOW }
	/* REDUCED: nobody knows it; he is to coordinate; it has ended */
	:: atomic { TALKS && a == FOLLOW && NOW == IDLE && THERE(view) == 0 -> a = ASK }
	:: atomic { TALKS && a == FOLLOW && NOW == DELEGATED -> begin(ag); a = MAKE }
	:: atomic { TALKS && (a == ASK || a == FOLLOW || a == MAKE || a == PROPOSED) && NOW == ENDED ->
		ends_well(kg[view]) }
	:: atomic { TALKS && (a == ASK || a == FOLLOW || a == MAKE || a == PROPOSED) && NOW == FAILED ->
		given_up = given_up | (a == MAKE || a == PROPOSED -> BIT(ag) : 0);
		a = SORRY }
	/* it builds, and proposes */
	:: atomic { LIVES && a == MAKE && st[ag] == GONE -> begin(ag) }
	:: atomic { LIVES && a == MAKE && st[ag] == HELD -> a = PROPOSED; hope = ag }
	:: atomic { LIVES && a == PROPOSED && !IN(ag, propose[view]) ->
		propose[view] = propose[view] | BIT(ag) }
	:: atomic { LIVES && a == PROPOSED && IN(ag, yes[view]) -> agree(ag) }
#ifndef KEEPS
	:: atomic { LIVES && a == PROPOSED && IN(ag, no[view]) ->
		given_up = given_up | BIT(ag);
		hope = 0;
		a = ASK }
#endif
	/* it asks the next owner, or this one again, which knows nothing, or another result, or
	 * coordinates */
	:: atomic { TALKS && (a == MAKE || a == PROPOSED) && NOW == IDLE && THERE(view) == 0 -> NOW = DELEGATED }
	:: atomic { TALKS && (a == MAKE || a == PROPOSED) && (NOW == IDLE || NOW == DELEGATED) && THERE(view) != 0 ->
		if
		:: THERE(view) == hope -> ends_well(hope)
		:: else ->
			given_up = given_up | BIT(ag);
			hope = 0;
			a = ASK
		fi }
#ifndef MUTE
	:: atomic { TALKS && (a == MAKE || a == PROPOSED) && (NOW == OWN || NOW == ASKING) ->
		if
		:: a == MAKE -> given_up = given_up | BIT(ag)
		:: a == PROPOSED -> skip /* its holder waits for a FINISH, for a while */
		:: a == PROPOSED -> given_up = given_up | BIT(ag)
		fi;
		a = FOLLOW }
#endif
	/* the last chunk is gone for, or lost */
	:: atomic { TALKS && a == AGREED && NOW == ENDED && kg[view] == ag -> ends_well(ag) }
	:: atomic { TALKS && a == AGREED && NOW == FAILED -> a = SORRY }
	:: atomic { TALKS && a == AGREED && (NOW == IDLE || NOW == DELEGATED || (NOW == ENDED && kg[view] != ag)) ->
		if
		:: st[ag] == WHOLE || THERE(view) == ag -> ends_well(ag)
		:: st[ag] == GONE && THERE(view) != ag && SETTLED(view) -> a = SORRY
		fi }
#ifdef LATE
	:: atomic { LIVES && a == MAKE ->
		given_up = given_up | BIT(ag);
		recall = true;
		a = SORRY }
	:: atomic { TALKS && a == FOLLOW && hope == 0 && NOW == IDLE -> a = SORRY }
#endif
	:: atomic { stalls < STALLS && LIVES -> stalls++; still = true }
	:: atomic { still -> still = false }
	:: atomic { deaths < DEATHS && a != DEAD -> deaths++; a = DEAD }
	:: timeout -> assert(a == DONE || a == SORRY || a == DEAD); break
	od
}

init
{
	atomic {
		run requester();
		run owner(0);
		run owner(1);
		byte g;
		for (g : 1 .. GENS) {
			run bytes(g);
			run news(0, g);
			run news(1, g)
		}
	}
}
