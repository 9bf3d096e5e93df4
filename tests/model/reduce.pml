/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repair and commit of a reduce, for Spin: N positions in a chain (0 -> 1 -> ..., the last is the
 * root), two chunks, one source each, others in reserve. Up to DEATHS nodes lose everything at any
 * moment, the root's as well. Messages are lost or overtake each other: the coordinator's state is
 * read, and repeated, at any time instead of being queued; an earlier state may arrive later (acked).
 * Up to MOVES times the requester takes the coordinator for dead and, if it has agreed to nothing, asks
 * the next one (RESTART), which starts from zero, with other sources, while the coordinator before may
 * live and go on. Readers follow the root and restart with it.
 *
 * COMMIT has no deadline: it is answered, now or late, or the requester is dead or has forgotten (GOES
 * times), and then the coordinator decides. A coordinator that was taken for dead and has another view of
 * the members is left out: in a partition each side may choose (docs/developer/reduce.md).
 *
 * Claims: all chunks of a generation that is read are of one set of sources, the set that the coordinator
 * has bound to the generation; one generation of the root is released, the one that was agreed to or,
 * without the requester, decided on; all readers of the root's whole object have read its set.
 *
 *	spin -DDEATHS=1 -DMOVES=1 -DGOES=1 -search reduce.pml
 *
 * With -DBROKEN ancestors keep their generation when a child is replaced; with -DNOHOLD the root does not
 * withhold its last chunk; with -DALONE a coordinator releases it without asking; with -DLATE it decides
 * when no answer comes; with -DANYWAY the next coordinator is asked though a result was agreed to, and
 * the requester goes: the claims must fail then.
 *
 * holds: -DDEATHS=1
 * holds: -DN=2 -DDEATHS=1 -DMOVES=1 -DGOES=1
 * broken: -DN=3 -DDEATHS=1 -DBROKEN
 * broken: -DN=2 -DDEATHS=1 -DNOHOLD
 * broken: -DN=2 -DDEATHS=0 -DMOVES=1 -DALONE
 * broken: -DN=2 -DDEATHS=0 -DMOVES=1 -DLATE
 * broken: -DN=2 -DDEATHS=0 -DMOVES=1 -DGOES=1 -DANYWAY
 */
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef MOVES
#define MOVES 0
#endif
#ifndef GOES
#define GOES 0
#endif
#ifndef N
#define N 4
#endif
#ifdef ANYWAY
#define NOTHING_AGREED true
#else
#define NOTHING_AGREED (agreed == 0)
#endif
#define CHUNKS 2
#define GENS   4 /* more than can be made with so many deaths */

/* The coordinator: the source at each position, its generation, and the set bound to it. A set is a
 * bit per source; sources N and N + 1 are in reserve. */
byte source[N], gen[N];
byte bound[N * GENS]; /* set of position p's generation g: p * GENS + g */
byte spare = N;
bool delivered[N];
byte deaths, moves, goes;
byte old;	    /* the root's generation of the coordinator before; 0: there was none */
byte asks, asks_old; /* COMMIT: with this generation nothing is repaired any more */

/* The participants: the generation that each builds, from which generation of the child and which
 * source, and the set
 * in each chunk; 0: not there. alive counts lives, so that an old COMBINE does not revive it. */
byte have[N], child[N], own[N], chunk[N * CHUNKS];
bool dead[N];
byte said[N], told_gen[N], told_child[N], told_own[N]; /* a COMBINE of earlier, still on its way */
byte done;	/* DONE of the root: the generation; may be heard later */
byte final;	/* FINISH has come for this one */

/* The requester: the generation that it has agreed to; gone: it is dead, or has forgotten; again: a
 * REDUCE to the next coordinator is under way, and the one before gets no agreement any more. */
byte agreed;
bool gone, again, dropped;

/* One reader after the other: the root's generation, the sets in its chunks; what was read to the end
 * so far. */
byte reads, got[CHUNKS], seen;

inline bind(p)
{
	bound[p * GENS + gen[p]] = 1 << source[p];
	if
	:: p > 0 ->
		bound[p * GENS + gen[p]] =
			bound[p * GENS + gen[p]] | bound[(p - 1) * GENS + gen[p - 1]]
	:: else
	fi
}

/* The set that chunk c of position p must have. */
#define IN_ORDER(p) (chunk[(p) * CHUNKS] == 0 || chunk[(p) * CHUNKS] == bound[(p) * GENS + have[p]]) && \
		    (chunk[(p) * CHUNKS + 1] == 0 || chunk[(p) * CHUNKS + 1] == bound[(p) * GENS + have[p]])

/* Another node takes a position, with another source. */
inline renew(p)
{
	source[p] = spare;
	spare++;
	dead[p] = false;
	said[p] = 0
}

/* A COMBINE with generation g, the child's generation k and source s reaches position p. */
inline combine(p, g, k, s)
{
	if
	:: !dead[p] && g > have[p] ->
		have[p] = g;
		child[p] = k;
		own[p] = s;
		chunk[p * CHUNKS] = 0;
		chunk[p * CHUNKS + 1] = 0
	:: else
	fi
}

/* Chunk c of position p, when the child's, of the generation that p was told of, is there. */
inline add(p, c)
{
	if
	:: !dead[p] && have[p] > 0 && chunk[p * CHUNKS + c] == 0 ->
		if
		:: p == 0 -> chunk[c] = 1 << own[0]
		:: p > 0 && !dead[p - 1] && have[p - 1] == child[p] && chunk[(p - 1) * CHUNKS + c] != 0 ->
			chunk[p * CHUNKS + c] = chunk[(p - 1) * CHUNKS + c] | (1 << own[p])
		:: else
		fi
	:: else
	fi
}

/* The root may let its last chunk go. */
inline finish(g)
{
	assert(final == 0 || final == g);
	final = g
}

active proctype world()
{
	byte p, c, q;

	atomic {
		for (p : 0 .. N - 1) {
			source[p] = p;
			gen[p] = 1;
			bind(p)
		}
		p = 0
	}
end:	do
	/* the coordinator tells, now or late */
	:: atomic { select(p : 0 .. N - 1); q = (p > 0 -> gen[p - 1] : 0);
		combine(p, gen[p], q, source[p]); p = 0; q = 0; c = 0 }
	:: atomic { select(p : 0 .. N - 1); said[p] = 1; told_gen[p] = gen[p];
		told_child[p] = (p > 0 -> gen[p - 1] : 0); told_own[p] = source[p]; p = 0 }
	:: atomic { select(p : 0 .. N - 1);
		if
		:: said[p] -> combine(p, told_gen[p], told_child[p], told_own[p]); said[p] = 0
		:: else
		fi; p = 0 }
	/* a chunk is added somewhere */
	:: atomic { select(p : 0 .. N - 1); select(c : 0 .. CHUNKS - 1); add(p, c);
		assert(IN_ORDER(p)); p = 0; c = 0 }
	/* PART: the parent has taken all of it */
	:: atomic { select(p : 0 .. N - 2);
		if
		:: have[p + 1] == gen[p + 1] && !dead[p + 1] && chunk[(p + 1) * CHUNKS] != 0 &&
		   chunk[(p + 1) * CHUNKS + 1] != 0 -> delivered[p] = true
		:: else
		fi; p = 0 }
	/* a node dies; what its parent does not have is built again, and all above it */
	:: atomic { deaths < DEATHS -> select(p : 0 .. N - 1);
		if
		:: !dead[p] ->
			deaths++;
			have[p] = 0;
			chunk[p * CHUNKS] = 0;
			chunk[p * CHUNKS + 1] = 0;
			dead[p] = true
		:: else
		fi; p = 0 }
	:: atomic { asks == 0 -> select(p : 0 .. N - 1);
		if
		:: dead[p] && (p == N - 1 || !delivered[p]) ->
			renew(p);
			gen[p]++;
			bind(p);
#ifndef BROKEN
			for (q : p + 1 .. N - 1) {
				gen[q]++;
				delivered[q - 1] = false;
				bind(q)
			}
			/* what was delivered is wanted again: a dead one below is seen then */
			for (q : 0 .. p - 1) {
				delivered[q] = false
			}
#endif
		:: else
		fi; p = 0; q = 0 }
	/* another node coordinates; the root's node may be another one as well, or the same */
	:: atomic { moves < MOVES && !gone && NOTHING_AGREED -> moves++; again = true }
	:: atomic { again ->
		again = false;
		old = gen[N - 1];
		asks_old = asks;
		asks = 0;
		renew(0);
		for (q : 0 .. N - 1) {
			gen[q]++;
			delivered[q] = false;
			bind(q)
		}
		q = 0 }
	/* DONE of the root leaves, and is heard */
	:: atomic { !dead[N - 1] && have[N - 1] != 0 && chunk[(N - 1) * CHUNKS] != 0 &&
		chunk[(N - 1) * CHUNKS + 1] != 0 ->
		assert(chunk[(N - 1) * CHUNKS] == bound[(N - 1) * GENS + have[N - 1]]);
		assert(chunk[(N - 1) * CHUNKS + 1] == bound[(N - 1) * GENS + have[N - 1]]);
		done = have[N - 1] }
	:: atomic { done != 0 && asks == 0 && done == gen[N - 1] -> asks = done }
	:: atomic { done != 0 && old != 0 && asks_old == 0 && done == old -> asks_old = done }
	/* COMMIT comes; the first is agreed to, and FINISH leaves */
#ifdef ALONE
	:: atomic { asks != 0 -> finish(asks) }
	:: atomic { asks_old != 0 -> finish(asks_old) }
#endif
#ifdef LATE
	:: atomic { asks != 0 -> finish(asks) }
#endif
	:: atomic { agreed == 0 && asks != 0 && !again && !gone -> agreed = asks }
	/* the one before is back, and is agreed with; the next one drops its reduce */
	:: atomic { agreed == 0 && asks_old != 0 && !gone -> agreed = asks_old; dropped = true }
	:: atomic { agreed != 0 -> finish(agreed) }
	/* it goes, and COMMIT is not answered any more: who coordinates decides, if another was asked
	 * for then that one */
	:: atomic { goes < GOES -> goes++; gone = true }
	:: atomic { gone && asks != 0 && !again && !dropped -> finish(asks) }
	/* a reader follows the root */
	:: atomic { !dead[N - 1] && have[N - 1] != reads ->
		reads = have[N - 1];
		got[0] = 0;
		got[1] = 0 }
	:: atomic { !dead[N - 1] && reads != 0 && have[N - 1] == reads -> select(c : 0 .. CHUNKS - 1);
		if
#ifdef NOHOLD
		:: chunk[(N - 1) * CHUNKS + c] != 0 -> got[c] = chunk[(N - 1) * CHUNKS + c]
#else
		:: chunk[(N - 1) * CHUNKS + c] != 0 && (c < CHUNKS - 1 || final == reads) ->
			got[c] = chunk[(N - 1) * CHUNKS + c]
#endif
		:: else
		fi; c = 0 }
	:: atomic { got[0] != 0 && got[1] != 0 ->
		assert(got[0] == got[1]);
		assert(seen == 0 || seen == got[0]);
		seen = got[0];
		got[0] = 0;
		got[1] = 0;
		reads = 0 }
	/* what is reported */
	:: atomic { agreed != 0 ->
		assert(final == 0 || final == agreed) }
	:: atomic { final != 0 ->
		assert(seen == 0 || seen == bound[(N - 1) * GENS + final]) }
	od
}
