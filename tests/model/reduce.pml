/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repair of a reduce, for Spin: four positions in a chain (0 -> 1 -> 2 -> 3, the root), two chunks,
 * one source each and one in reserve. Up to DEATHS nodes of positions 0 to 2 lose everything at any
 * moment. Messages are lost or overtake each other: the coordinator's state is read, and repeated,
 * at any time instead of being queued; what it said before may arrive later (told).
 *
 * Claim: whatever generation of whatever position is read, all its chunks are of one set of sources,
 * that which the coordinator has bound to the generation; and the result is complete in the end.
 *
 *	spin -search -DDEATHS=2 reduce.pml
 *
 * With -DBROKEN ancestors keep their generation when a child is replaced: the claim must fail then.
 */
#ifndef DEATHS
#define DEATHS 2
#endif
#define N      4
#define CHUNKS 2
#define GENS   4 /* more than can be made with so many deaths */

/* The coordinator: the source at each position, its generation, and the set bound to it. A set is a
 * bit per source; sources N and N + 1 are in reserve. */
byte source[N], gen[N];
byte bound[N * GENS]; /* set of position p's generation g: p * GENS + g */
byte spare = N;
bool delivered[N];
byte deaths;

/* The participants: the generation that each builds, with which generation of the child, and the set
 * in each chunk; 0: not there. alive counts lives, so that an old COMBINE does not revive it. */
byte have[N], child[N], chunk[N * CHUNKS];
bool dead[N];
byte said[N], told_gen[N], told_child[N]; /* a COMBINE of earlier, still on its way */
bool done;

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

/* A COMBINE with generation g and the child's generation k reaches position p. */
inline combine(p, g, k)
{
	if
	:: !dead[p] && g > have[p] ->
		have[p] = g;
		child[p] = k;
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
		:: p == 0 -> chunk[c] = 1 << source[0]
		:: p > 0 && !dead[p - 1] && have[p - 1] == child[p] && chunk[(p - 1) * CHUNKS + c] != 0 ->
			chunk[p * CHUNKS + c] = chunk[(p - 1) * CHUNKS + c] | (1 << source[p])
		:: else
		fi
	:: else
	fi
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
	:: atomic { !done -> select(p : 0 .. N - 1); q = (p > 0 -> gen[p - 1] : 0);
		combine(p, gen[p], q); p = 0; q = 0; c = 0 }
	:: atomic { !done -> select(p : 0 .. N - 1); said[p] = 1; told_gen[p] = gen[p];
		told_child[p] = (p > 0 -> gen[p - 1] : 0); p = 0 }
	:: atomic { !done -> select(p : 0 .. N - 1);
		if
		:: said[p] -> combine(p, told_gen[p], told_child[p]); said[p] = 0
		:: else
		fi; p = 0 }
	/* a chunk is added somewhere */
	:: atomic { !done -> select(p : 0 .. N - 1); select(c : 0 .. CHUNKS - 1); add(p, c);
		assert(IN_ORDER(p)); p = 0; c = 0 }
	/* PART: the parent has taken all of it */
	:: atomic { !done -> select(p : 0 .. N - 2);
		if
		:: have[p + 1] == gen[p + 1] && !dead[p + 1] && chunk[(p + 1) * CHUNKS] != 0 &&
		   chunk[(p + 1) * CHUNKS + 1] != 0 -> delivered[p] = true
		:: else
		fi; p = 0 }
	/* a node dies; what its parent has not taken is built anew, and all above it */
	:: atomic { !done && deaths < DEATHS -> select(p : 0 .. N - 2);
		if
		:: !dead[p] ->
			deaths++;
			have[p] = 0;
			chunk[p * CHUNKS] = 0;
			chunk[p * CHUNKS + 1] = 0;
			dead[p] = true
		:: else
		fi; p = 0 }
	:: atomic { !done -> select(p : 0 .. N - 2);
		if
		:: dead[p] && !delivered[p] ->
			source[p] = spare; /* another node takes the position */
			spare++;
			dead[p] = false;
			said[p] = 0;
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
	/* DONE of the root */
	:: atomic { !done && have[N - 1] == gen[N - 1] && chunk[(N - 1) * CHUNKS] != 0 &&
		chunk[(N - 1) * CHUNKS + 1] != 0 ->
		assert(chunk[(N - 1) * CHUNKS] == bound[(N - 1) * GENS + gen[N - 1]]);
		assert(chunk[(N - 1) * CHUNKS + 1] == bound[(N - 1) * GENS + gen[N - 1]]);
		done = true }
	:: done -> break
	od
}
