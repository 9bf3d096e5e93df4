/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two reduces into one target, for Spin: the first has a result, which was reported, on one node
 * only. That node is cut off and comes back (CUTS times); while no node reaches it, a second reduce may
 * begin. Messages come at any time, or late: a node acts on a message when it is reached.
 *
 * Claims: the superseded result stays until the second requester has agreed to another, and from then on
 * the newer one stays.
 *
 *	spin -DCUTS=2 -search target.pml
 *
 * With -DEAGER the superseded result is removed when the second reduce begins; with -DTAKES its node
 * removes it to build the newer one; with -DSPECULATIVE the second reduce ends when the superseded result
 * is back though its requester may agree at that moment: the claims must fail then.
 *
 * holds: -DCUTS=3
 * broken: -DCUTS=1 -DEAGER
 * broken: -DCUTS=1 -DTAKES
 * broken: -DCUTS=1 -DSPECULATIVE
 */
#ifndef CUTS
#define CUTS 2
#endif

mtype = { NONE, RUNNING, COMMITTING, COMMITTED, ENDED };

/* The coordinator, and its directory. */
mtype second = NONE;
bool known = true; /* the older one, on a node that can be reached or could when it was told of */
bool asked;	   /* COMMIT is on its way */
byte cuts;
bool reached = true;

/* What nodes have, and were told. */
bool superseded = true, newer;
bool remove, release;

/* The second requester. */
bool agreed;

#ifdef SPECULATIVE
#define MAY_END (second == RUNNING || second == COMMITTING)
#else
#define MAY_END (second == RUNNING)
#endif

active proctype network()
{
	do
	:: atomic { reached && cuts < CUTS -> cuts++; reached = false }
	:: !reached -> reached = true
	od
}

active proctype coordinator()
{
	do
	:: atomic {
		!reached && (second == NONE || second == ENDED) && !newer ->
		known = false;
		second = RUNNING;
		asked = false;
		release = false;
#ifdef EAGER
		remove = true
#endif
	   }
	:: atomic { second == RUNNING -> newer = true; second = COMMITTING } /* DONE is heard */
	:: atomic { second == COMMITTING -> asked = true }
	:: atomic { second == COMMITTING && agreed -> second = COMMITTED }
	/* HAVE, repeated until it is answered */
	:: atomic { reached && superseded && !known && (second == NONE || second == ENDED) -> known = true }
	:: atomic {
		reached && superseded && !known && MAY_END ->
		second = ENDED;
		release = true;
		known = true
	   }
	:: atomic { reached && superseded && !known && second == COMMITTED -> remove = true }
	od
}

active proctype nodes()
{
	do
	:: atomic { reached && remove -> superseded = false; remove = false }
	:: atomic { release -> newer = false; release = false }
#ifdef TAKES
	:: atomic { reached && second == RUNNING && superseded -> superseded = false }
#endif
	:: atomic { asked && !agreed -> agreed = true } /* COMMIT: and FINISH leaves */
	:: assert(superseded || agreed)
	:: assert(newer || !agreed)
	od
}
