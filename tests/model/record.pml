/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of one id, for Spin: decisions that the owner of a view notes at the second of that view, and
 * how the record passes from view to view (docs/developer/protocol-views.md). Views come from the leader of
 * the keepers (view.pml): each names any members, an owner and a second of them. Nodes learn of a view late,
 * skip it, or never learn of it. A death is a node that takes no more steps. LOSSES times a node
 * loses its memory; it acts again in views that were made after that.
 *
 * A record is a set of bits: whether it contains all decisions that were acknowledged, and which of the NOTEs
 * under way. So there may be any number of decisions. An owner without a second asks the leader whether its
 * view is the newest. A second that has copied the record from an owner that decides has a claim to it, whether the
 * leader knows of that or not. Where no member has the record, the owner rebuilds it (amnesia), and an era begins.
 *
 * With -DLEASES a node stops when its lease of an older view has run out; a view without it waits for that, and so
 * does the level of an owner. Without, clocks may stand still, and leases last for ever.
 *
 * Claims: of two acknowledged decisions of one era one contains the other. An owner of the newest view that
 * answers a read, or refuses, has all that was acknowledged, and what it did not have is never there later; with
 * -DLEASES any owner. Once an era is answered in, an owner alone acknowledges nothing in an earlier one; with
 * -DLEASES nobody does. A record is rebuilt only where no member has it. With -DREST: when nothing more can
 * happen, the owner of the newest view decides, and its second has the record.
 *
 * With -DNOTE_ANY a second takes a NOTE of an older view; with -DFILL_LATE a node answers with its record that
 * has not learnt of the view; with -DUNORDERED a copy arrives after a NOTE that was sent later; with
 * -DDECIDE_EARLY an owner decides before its level is written; with -DHALF a second that only takes NOTEs has
 * the record; with -DREAD_PENDING an owner shows what is not noted; with -DSECOND_KEEPS a second that had the
 * record keeps it as it is; with -DFORGOT a node that lost its memory acts as before; with -DALONE_UNASKED an
 * owner without a second does not ask; with -DREBUILD_EARLY an owner does not wait for all members before it
 * rebuilds; with -DNO_REBUILD it never does; with -DLEVEL_EARLY a level does not wait for leases of older views: the
 * claims must fail then.
 *
 * With -DFEW a view is one of five. Searched by hand: -DVIEWS=3 -DFEW -DLEASES, 7 million states, 1 GB.
 *
 * holds: -DVIEWS=2 -DREST
 * holds: -DVIEWS=3 -DFEW
 * holds: -DVIEWS=2 -DFEW -DLOSSES=1
 * holds: -DVIEWS=2 -DFEW -DLOSSES=1 -DLEASES
 * holds: -DVIEWS=2 -DREST -DLEASES
 * broken: -DVIEWS=1 -DNOTE_ANY
 * broken: -DVIEWS=1 -DFILL_LATE
 * broken: -DVIEWS=2 -DUNORDERED
 * broken: -DVIEWS=2 -DDECIDE_EARLY
 * broken: -DVIEWS=2 -DHALF
 * broken: -DVIEWS=2 -DSECOND_KEEPS
 * broken: -DVIEWS=1 -DREAD_PENDING
 * broken: -DVIEWS=1 -DLOSSES=1 -DFORGOT
 * broken: -DVIEWS=2 -DALONE_UNASKED
 * broken: -DVIEWS=2 -DREBUILD_EARLY
 * broken: -DVIEWS=1 -DLEASES -DLEVEL_EARLY
 * broken: -DVIEWS=1 -DREST -DNO_REBUILD
 */
#ifndef VIEWS
#define VIEWS 2
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#define NODES 3
#define NONE  3

#define BIT(n)	   (1 << (n))
#define IN(n, set) (((set) >> (n)) & 1)

/* A record: whether it has all that was acknowledged, and which NOTEs that are under way it has. */
#define ALL_ACKED   1
#define HAS_NOTE(n) (2 << (n))

/* the views so far; what is written of one does not change, but for its level, which rises while it is the last */
byte view;
byte owner[VIEWS + 1], second[VIEWS + 1], members[VIEWS + 1];
byte level[VIEWS + 1];
byte whole[VIEWS + 1]; /* the nodes that have the record in the newest view before with a level */
byte whole_view[VIEWS + 1]; /* that view */
bool same[VIEWS + 1];  /* the pair of the view before, which had level 2 */
byte era[VIEWS + 1];   /* the last view, up to this one, that began with amnesia */

/* nodes */
byte knows[3];	 /* the newest view that it has learnt of */
byte need[3];	 /* it acts from this view on; a later one than that in which it lost its memory */
byte record[3];
byte claims[3];	 /* the view, + 1, in which it was filled as second */
bool holds[3];	 /* it has the record in the view that it knows */
bool decides[3]; /* owner: it knows that its level is written */
#ifdef LEASES
bool lapsed[3]; /* its lease has run out, and the leader knows; until it learns of the newest view */
#endif
byte losses;

/* messages: the NOTE of each owner, and what is copied to each node */
byte note_view[3], note_record[3]; /* view + 1, 0: none */
byte fill_view[3], fill_record[3];

bool denied[3]; /* an owner has answered that there is no such decision as that of the NOTE */
byte acked_era, acked_record; /* what was acknowledged last */
bool quiet; /* no more decisions, so that a run can end */
byte i, m, u;

/* The decision of the NOTE of n is acknowledged: what does not have it does not have all. */
#define TURN(r, n) r = ((r & HAS_NOTE(n) -> r | ALL_ACKED : r & ~ALL_ACKED) & ~HAS_NOTE(n))
#define EACH(n)                                                                                                 \
	i = 0;                                                                                                  \
	do                                                                                                      \
	:: i < NODES -> TURN(record[i], n); TURN(note_record[i], n); TURN(fill_record[i], n); i++               \
	:: else -> break                                                                                        \
	od;                                                                                                     \
	i = 0

/* After amnesia nothing is acknowledged yet. */
#define BEGIN_ERA(v)                                                                                            \
	i = 0;                                                                                                  \
	do                                                                                                      \
	:: i < NODES && era[v] > acked_era ->                                                                   \
		record[i] = record[i] | ALL_ACKED;                                                              \
		note_record[i] = note_record[i] | ALL_ACKED;                                                    \
		fill_record[i] = fill_record[i] | ALL_ACKED;                                                    \
		i++                                                                                             \
	:: else -> break                                                                                        \
	od;                                                                                                     \
	i = 0;                                                                                                  \
	acked_era = era[v]

/* Nobody speaks of the NOTE of n any more. */
#define FORGET(n)                                                                                               \
	i = 0;                                                                                                  \
	do                                                                                                      \
	:: i < NODES ->                                                                                         \
		record[i] = record[i] & ~HAS_NOTE(n);                                                           \
		note_record[i] = note_record[i] & ~HAS_NOTE(n);                                                 \
		fill_record[i] = fill_record[i] & ~HAS_NOTE(n);                                                 \
		i++                                                                                             \
	:: else -> break                                                                                        \
	od;                                                                                                     \
	i = 0;                                                                                                  \
	acked_record = acked_record & ~HAS_NOTE(n);                                                             \
	note_view[n] = 0;                                                                                       \
	note_record[n] = 0;                                                                                     \
	denied[n] = false

/* Decision of n, with that record, in that view. After amnesia a pair of an older view may still answer, if
 * both their clocks stood still. */
#define ACKNOWLEDGE(n, r, v, strict)                                                                            \
	if                                                                                                      \
	:: era[v] < acked_era -> assert(!(strict))                                                              \
	:: era[v] == acked_era && (acked_record & HAS_NOTE(n)) && !(r & ALL_ACKED) -> skip                      \
	:: else ->                                                                                              \
		BEGIN_ERA(v);                                                                                   \
		assert((r & ALL_ACKED) && !denied[n]);                                                          \
		acked_record = r;                                                                               \
		EACH(n)                                                                                         \
	fi

#ifdef LEASES
#define STRICT true
#define ACTS(n) (knows[n] >= need[n] && !lapsed[n])
#define READS(n) true
#define RENEWED(n) (knows[n] == view || lapsed[n])
#define LAPSE(n, is) lapsed[n] = is;
#else
#define STRICT false
#define ACTS(n) (knows[n] >= need[n])
#define READS(n) (knows[n] == view)
#define RENEWED(n) true
#define LAPSE(n, is)
#endif
#ifdef LEVEL_EARLY
#define NO_OLD_LEASE true
#else
#define NO_OLD_LEASE (RENEWED(0) && RENEWED(1) && RENEWED(2))
#endif
#ifdef FORGOT
#define KEPT(n, u) true
#else
#define KEPT(n, u) (need[n] <= (u))
#endif
#ifdef FILL_LATE
#define READY(n, v) true
#else
#define READY(n, v) (knows[n] == (v))
#endif
#define HAVING(v) (BIT(owner[v]) | (level[v] == 2 -> BIT(second[v]) : 0))
#ifdef ALONE_UNASKED
#define ASKED(n) true
#else
#define ASKED(n) (knows[n] == view)
#endif
#ifdef SECOND_KEEPS
#define GOES_ON(v) true
#else
#define GOES_ON(v) same[v]
#endif
#ifdef REBUILD_EARLY
#define ANNOUNCED(n, v) true
#else
#define ANNOUNCED(n, v) (knows[n] >= (v) || !IN(n, members[v]))
#endif
#ifdef HALF
#define CLAIM(n, u) true
#else
#define CLAIM(n, u) (claims[n] == (u) + 1)
#endif
#ifdef NO_REBUILD
#define REBUILDS(v) false
#else
#define REBUILDS(v)                                                                                             \
	(ANNOUNCED(0, v) && ANNOUNCED(1, v) && ANNOUNCED(2, v) && !SOURCE(0, v) && !SOURCE(1, v) &&             \
	 !SOURCE(2, v))
#endif
#ifdef NOTE_ANY
#define FENCED(n, v) (knows[n] >= (v))
#else
#define FENCED(n, v) (knows[n] == (v))
#endif
#ifdef UNORDERED
#define IN_ORDER(n, v) true
#else
#define IN_ORDER(n, v) (fill_view[n] != (v) + 1)
#endif

/* Node n, a member of view v, has the record of the newest view with a level before v. */
#define SOURCE(n, v)                                                                                            \
	(IN(n, members[v]) && KEPT(n, whole_view[v]) &&                                                         \
	 (IN(n, whole[v]) || n == second[whole_view[v]] && CLAIM(n, whole_view[v])))

#define LEARN(v)                                                                                                \
	:: d_step { (v) <= view && knows[n] < (v) ->                                                            \
		fill_view[n] = 0;                                                                               \
		fill_record[n] = 0;                                                                             \
		knows[n] = (v);                                                                                 \
		LAPSE(n, (v) < view)                                                                            \
		holds[n] = (n == owner[v] || n == second[v] && GOES_ON(v)) && SOURCE(n, v) &&                   \
			   knows[n] >= need[n];                                                                 \
		claims[n] = (holds[n] && n == second[v] && same[v] -> (v) + 1 : claims[n]);                     \
		decides[n] = holds[n] && n == owner[v] && same[v] }

/* Node s answers node n, which is owner or second of the view that n knows. */
#define ANSWER(s)                                                                                               \
	:: d_step { s != n && !holds[n] && ACTS(n) && fill_view[n] != knows[n] + 1 &&                           \
		    (n == owner[knows[n]] && SOURCE(s, knows[n]) && READY(s, knows[n]) ||                       \
		     n == second[knows[n]] && s == owner[knows[n]] && knows[s] == knows[n] && holds[s] &&       \
		     ACTS(s)) ->                                                                                \
		fill_view[n] = knows[n] + 1;                                                                    \
		fill_record[n] = record[s] }

#define TAKE(s)                                                                                                 \
	:: d_step { note_view[s] != 0 && n == second[note_view[s] - 1] && ACTS(n) &&                            \
		    FENCED(n, note_view[s] - 1) && IN_ORDER(n, note_view[s] - 1) ->                             \
		record[n] = note_record[s];                                                                     \
		ACKNOWLEDGE(s, note_record[s], note_view[s] - 1, STRICT);                                       \
		FORGET(s) }

#define UNSEEN(s) (note_view[s] != 0 && !denied[s] && !(record[n] & HAS_NOTE(s)))
#define LOOK(s)                                                                                                 \
	assert(!denied[s] || !(record[n] & HAS_NOTE(s)));                                                       \
	denied[s] = denied[s] || UNSEEN(s)

#define NEWS(s) (UNSEEN(s) || denied[s] && (record[n] & HAS_NOTE(s)))
#define SHOWS (NEWS(0) || NEWS(1) || NEWS(2) || era[knows[n]] != acked_era || !(record[n] & ALL_ACKED))

#define WRITE(l)                                                                                                \
	level[view] = l;                                                                                        \
	decides[owner[view]] = true

proctype node(byte n)
{
end:	do
	LEARN(1)
#if VIEWS > 1
	LEARN(2)
#endif
#if VIEWS > 2
	LEARN(3)
#endif
	ANSWER(0)
	ANSWER(1)
	ANSWER(2)
	:: d_step { fill_view[n] != 0 && ACTS(n) ->
		record[n] = fill_record[n];
		holds[n] = true;
		fill_view[n] = 0;
		fill_record[n] = 0 }
	/* amnesia: from what all announce */
	:: d_step { n == owner[knows[n]] && knows[n] > 0 && !holds[n] && ACTS(n) && REBUILDS(knows[n]) ->
		era[knows[n]] = knows[n];
		record[n] = ALL_ACKED;
		holds[n] = true;
		fill_view[n] = 0;
		fill_record[n] = 0 }
	/* its level is written, which the leader does in the last view only */
	:: d_step { n == owner[knows[n]] && knows[n] == view && holds[n] && level[view] == 0 && ACTS(n) &&
		    NO_OLD_LEASE ->
		assert(era[view] != view || !SOURCE(0, view) && !SOURCE(1, view) && !SOURCE(2, view));
		WRITE(1) }
	/* the owner tells the second, which has copied all, that its level is written; level 2 follows */
	:: d_step { n == second[knows[n]] && holds[n] && ACTS(n) && claims[n] != knows[n] + 1 &&
		    knows[owner[knows[n]]] == knows[n] && decides[owner[knows[n]]] -> claims[n] = knows[n] + 1 }
	:: d_step { n == second[knows[n]] && knows[n] == view && claims[n] == view + 1 && level[view] == 1 &&
		    ACTS(n) && knows[owner[view]] == view && holds[owner[view]] -> level[view] = 2 }
#ifdef READ_PENDING
	:: d_step { note_view[n] == knows[n] + 1 && n == owner[knows[n]] && decides[n] && ACTS(n) ->
		ACKNOWLEDGE(n, record[n], knows[n], false);
		FORGET(n) }
#endif
#ifdef DECIDE_EARLY
	:: n == owner[knows[n]] && holds[n] && !decides[n] -> decides[n] = true
#endif
	/* an owner answers, and decides nothing: a read, a refusal */
	:: d_step { !quiet && n == owner[knows[n]] && READS(n) && decides[n] && ACTS(n) && SHOWS ->
		if
		:: era[knows[n]] < acked_era -> assert(!STRICT)
		:: else ->
			BEGIN_ERA(knows[n]);
			assert(record[n] & ALL_ACKED);
			LOOK(0);
			LOOK(1);
			LOOK(2)
		fi }
#ifdef LEASES
	:: d_step { knows[n] < view && !lapsed[n] -> lapsed[n] = true }
#endif
	/* the owner decides; another NOTE of it would come after this one */
	:: d_step { !quiet && n == owner[knows[n]] && decides[n] && note_view[n] == 0 && ACTS(n) &&
		    second[knows[n]] != NONE ->
		record[n] = record[n] | HAS_NOTE(n);
		note_view[n] = knows[n] + 1;
		note_record[n] = record[n] }
	:: d_step { !quiet && n == owner[knows[n]] && decides[n] && note_view[n] == 0 && ACTS(n) &&
		    second[knows[n]] == NONE && ASKED(n) ->
		record[n] = record[n] | HAS_NOTE(n);
		ACKNOWLEDGE(n, record[n], knows[n], true);
		FORGET(n) }
	TAKE(0)
	TAKE(1)
	TAKE(2)
	/* lost, or refused */
	:: d_step { note_view[n] != 0 -> FORGET(n) }
	:: d_step { losses < LOSSES ->
		losses++;
		record[n] = record[n] & ~ALL_ACKED & ~HAS_NOTE(0) & ~HAS_NOTE(1) & ~HAS_NOTE(2);
#ifndef FORGOT
		need[n] = view + 1;
		claims[n] = 0;
		holds[n] = false;
		decides[n] = false;
#endif
		fill_view[n] = 0;
		fill_record[n] = 0 }
	od
}

/* A view of these: any members, in any order. */
#define MAKE(ow, se, third)                                                                                     \
	:: d_step { view < VIEWS && !quiet ->                                                                   \
		m = BIT(ow) | (se != NONE -> BIT(se) : 0) | third;                                              \
		u = view;                                                                                       \
		do                                                                                              \
		:: level[u] == 0 -> u--                                                                         \
		:: else -> break                                                                                \
		od;                                                                                             \
		members[view + 1] = m;                                                                          \
		owner[view + 1] = ow;                                                                           \
		second[view + 1] = se;                                                                          \
		same[view + 1] = level[view] == 2 && owner[view] == ow && second[view] == se &&                 \
				 KEPT(ow, view) && KEPT(se, view);                                              \
		level[view + 1] = (same[view + 1] -> 2 : 0);                                                    \
		whole_view[view + 1] = u;                                                                       \
		i = 0;                                                                                          \
		do                                                                                              \
		:: i < NODES ->                                                                                 \
			if                                                                                      \
			:: IN(i, m) && IN(i, HAVING(u)) && KEPT(i, u) ->                                        \
				whole[view + 1] = whole[view + 1] | BIT(i)                                      \
			:: else                                                                                 \
			fi;                                                                                     \
			if                                                                                      \
			:: IN(i, m)                                                                             \
			:: else -> skip; LAPSE(i, true)                                                         \
			fi;                                                                                     \
			i++                                                                                     \
		:: else -> break                                                                                \
		od;                                                                                             \
		i = 0;                                                                                          \
		era[view + 1] = era[u];                                   \
		u = 0; m = 0;                                                                                   \
		view++ }
proctype leader()
{
end:	do
	MAKE(0, 1, 4)
	MAKE(1, 2, 1)
	MAKE(2, 0, 2)
	MAKE(2, NONE, 0)
	MAKE(0, 2, 0)
#ifndef FEW
	MAKE(0, 1, 0)
	MAKE(0, 2, 2)
	MAKE(0, NONE, 0)
	MAKE(1, 0, 0)
	MAKE(1, 0, 4)
	MAKE(1, 2, 0)
	MAKE(1, NONE, 0)
	MAKE(2, 0, 0)
	MAKE(2, 1, 0)
	MAKE(2, 1, 1)
#endif
#ifdef REST
	:: view == VIEWS && !quiet -> quiet = true
#endif
	od
}

#ifdef REST
/* Nothing more can happen: the owner of the last view decides, and its second has the record. */
proctype rest()
{
end:	timeout ->
	assert(!quiet || losses > 0 ||
	       decides[owner[view]] && (second[view] == NONE || level[view] == 2))
}
#endif

init
{
	atomic {
		owner[0] = 0;
		second[0] = 1;
		members[0] = 7;
		level[0] = 2;
		holds[0] = true;
		holds[1] = true;
		claims[1] = 1;
		decides[0] = true;
		record[0] = ALL_ACKED;
		record[1] = ALL_ACKED;
		run node(0);
		run node(1);
		run node(2);
#ifdef REST
		run rest();
#endif
		run leader()
	}
}
