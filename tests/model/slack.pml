/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slack and changes of policy in a group (control/core/group/roster.c, rounds.c): two members, rounds
 * that close as the policy says that opened them, changes of policy at any moment between asp, ssp 1,
 * bsp and k-of-n 2. Runs of this model are replayed against the code (tests/unit/group/replay.c),
 * which must let pass and refuse the same (-DTRACE).
 *
 * What must hold: under a slack S no contribution is staler than S, for clocks from which S holds, in
 * rounds that opened under it; a looser limit holds at once; a round closes by the policy that opened
 * it; no member waits for ever (Spin's invalid end states).
 *
 * EAGER: members push without pulling first, as fast as they may. Else each pulls after each push.
 *
 * holds: -DEAGER -DCLOCKS=3
 * holds: -DCLOCKS=3
 * broken: -DEAGER -DCLOCKS=3 -DLATE_TIGHT
 * broken: -DEAGER -DCLOCKS=3 -DNO_MARK
 * broken: -DEAGER -DCLOCKS=3 -DSLACK_TWO
 * broken: -DEAGER -DCLOCKS=3 -DSWAPS_OPEN
 * broken: -DCLOCKS=3 -DNO_GRACE
 */
#ifndef CLOCKS
#define CLOCKS 6
#endif
#ifndef SWAPS
#define SWAPS 2
#endif
#define ANY 99
#define ASP 0
#define SSP 1
#define BSP 2
#define K2 3
#define SLACK(p) (p == SSP -> 1 : (p == BSP -> 0 : ANY))
#define QUORUM(p) (p == BSP || p == K2)
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define LEAST (clk[0] < clk[1] -> clk[0] : clk[1])

byte clk[2], need[2];
bool pulled[2];
byte policy, version = 1, before = ANY, from = 0, pushed = 0, top = 0;
bool tracked = false;
byte mark[CLOCKS + 2];	      /* round in which all had reached that clock */
byte open = 1, open_policy, open_version = 1, open_top = 0, open_low = 0;
bool in_open[2];
byte staler[CLOCKS + 2];      /* contributions of that clock in the open round */
bool closing = false;
byte published = 0, swaps = 0;
byte allowed[CLOCKS + 2];     /* staleness behind that clock, by the rule */
hidden byte judged, i, v, was; /* of one atomic step */
hidden byte yes;

#define COUNT (in_open[0] || in_open[1])
/* The open round is as its policy wants it, and closes once the one before has ended. */
#define MET (open_policy == BSP -> LEAST >= open_low : (in_open[0] && in_open[1]))
#define UNBOUND(n) (n >= open && QUORUM(open_policy) && !(COUNT && MET))

/* How far a member may be ahead before it pushes for clock c. */
#ifdef SLACK_TWO
#define NOW (policy == SSP -> 2 : SLACK(policy))
#else
#define NOW SLACK(policy)
#endif
#define RULE(c) ((c) < from && before > NOW -> before : NOW)
#ifdef NO_GRACE
#define OWES(m) false
#else
#define OWES(m) (open_version != version && COUNT && !in_open[m] && QUORUM(open_policy))
#endif
#define LIMIT_FOR(m, c) (OWES(m) -> MAX(RULE(c), SLACK(open_policy)) : RULE(c))
#ifdef LATE_TIGHT
#define LIMIT(m) LIMIT_FOR(m, clk[m])
#else
#define LIMIT(m) LIMIT_FOR(m, clk[m] + 1)
#endif

/* Whether it may push, or end its pull: all have been there, in rounds below n. */
#ifdef NO_MARK
#define CLOSED(c, n) true
#else
#define CLOSED(c, n) (mark[c] < n || UNBOUND(mark[c]))
#endif
#define GATE(m, n) (LIMIT(m) == ANY || clk[m] <= LIMIT(m) || \
		    (LEAST >= clk[m] - LIMIT(m) && CLOSED(clk[m] - LIMIT(m), n)))

/* A pull waits for the round of its last contribution, unless others have to close that. */
#ifdef NO_GRACE
#define NEEDS(m) (QUORUM(policy) || !UNBOUND(need[m]))
#else
#define NEEDS(m) ((QUORUM(policy) && open_version == version) || !UNBOUND(need[m]))
#endif
#define READY(m) (GATE(m, published + 1) && (need[m] <= published || !NEEDS(m)))

inline bind()
{
	yes = (SLACK(policy) != ANY || open_policy == BSP);
	if
	:: yes && !tracked ->
		for (i : 0 .. CLOCKS + 1) { mark[i] = (COUNT -> open : open - 1) }
	:: else
	fi;
	tracked = yes
}

inline move(m, to, round)
{
	was = LEAST;
	clk[m] = to;
	pushed = MAX(pushed, to);
	for (i : 0 .. CLOCKS + 1) {
		if
		:: tracked && i > was && i <= LEAST -> mark[i] = round
		:: else
		fi
	}
}

inline open_reset(n)
{
	open = n;
	open_policy = policy;
	open_version = version;
	open_top = 0;
	open_low = 0;
	in_open[0] = false;
	in_open[1] = false;
	for (i : 0 .. CLOCKS + 1) { staler[i] = 0 }
}

/* The open round closes as soon as it may. */
inline turn()
{
	judged = open_policy;
#ifdef SWAPS_OPEN
	judged = policy;
#endif
	if
	:: !closing && COUNT && (judged == ASP || judged == SSP || (judged == BSP && LEAST >= open_low) ||
				 (judged == K2 && in_open[0] && in_open[1])) ->
		assert(open_policy != K2 || (in_open[0] && in_open[1]));
		assert(open_policy != BSP || LEAST >= open_low);
		top = MAX(top, open_top);
		for (i : 1 .. CLOCKS) {
			assert(staler[i] == 0 || open_version != version || allowed[top] == ANY ||
			       top - i <= allowed[top]);
			/* who has pushed for a round of an earlier policy did so under that */
			if
			:: open_version != version && i <= pushed ->
				allowed[i] = MAX(allowed[i], SLACK(open_policy))
			:: else
			fi
		}
		closing = true;
		open_reset(open + 1);
		bind()
	:: else
	fi
}

inline tell()
{
	printf("is open %d published %d clocks %d %d version %d\n", open, published, clk[0], clk[1], version)
}

inline begin(p)
{
	policy = p;
	open_policy = p;
	for (i : 0 .. CLOCKS + 1) { allowed[i] = SLACK(p) }
	bind()
}

proctype member(byte m)
{
	do
	:: atomic { clk[m] < CLOCKS && pulled[m] && GATE(m, open) ->
		printf("push %d %d 0\n", m, clk[m] + 1);
		v = clk[m] + 1;
		in_open[m] = true;
		staler[v] = 1;
		open_top = MAX(open_top, v);
		open_low = (open_low == 0 || v < open_low -> v : open_low);
		need[m] = open;
#ifndef EAGER
		pulled[m] = false;
#endif
		move(m, v, open);
		turn();
		tell()
	   }
#ifdef TRACE
	:: atomic { clk[m] < CLOCKS && pulled[m] && !GATE(m, open) ->
		printf("push %d %d 1\n", m, clk[m] + 1)
	   }
#endif
	:: atomic { !pulled[m] && READY(m) ->
		printf("pull %d\n", m);
		pulled[m] = true;
		if
		:: policy == K2 && clk[m] < top -> v = top; move(m, v, open - 1)
		:: else
		fi;
		turn();
		tell()
	   }
	:: clk[m] == CLOCKS && pulled[m] -> break
	:: !pulled[m] && clk[1 - m] == CLOCKS && pulled[1 - m] -> break /* the other one has left */
	od
}

proctype owner()
{
	byte p;

end:	do
	:: atomic { closing ->
		printf("end\n");
		closing = false;
		published = open - 1;
		turn();
		tell()
	   }
	:: atomic { !closing && swaps < SWAPS ->
		select (p : ASP .. K2);
		printf("swap %d\n", p);
		swaps++;
		before = (pushed < from && before > SLACK(policy) -> before : SLACK(policy));
		from = pushed + 1;
		for (i : 0 .. CLOCKS + 1) {
			allowed[i] = (i >= from -> SLACK(p) : MAX(allowed[i], SLACK(p)))
		}
		policy = p;
		version++;
		bind();
		if
		:: !COUNT -> open_reset(open)
		:: else
		fi;
		turn();
		tell()
	   }
	od
}

init
{
	byte p;

	atomic {
		pulled[0] = true;
		pulled[1] = true;
		select (p : ASP .. K2);
		printf("begin %d\n", p);
		begin(p);
		run member(0);
		run member(1);
		run owner()
	}
}
