/* test/model/shard.pml -- the shard: what it is told, its beginning and its end. */

/* The oldest exit that is not told yet. */
inline lowest(mask, ret)
{
	ret = 1;
	do
	:: ret < 7 && (mask & (1 << ret)) == 0 -> ret++
	:: else -> break
	od
}

/* = cmd/anvild/exits.c: on_answer answered_turn */
inline exit_is_told(r)
{
	rw[r].ends = rw[r].ends ^ (1 << rw[r].exit_answer);
	rw[r].exits = rw[r].exits ^ (1 << rw[r].exit_answer);
	rw[r].exit_answer = 0
}

/* = cmd/anvil-project/methods_run.c: project_runner_exited takeover_after begin_takeover
 * = cmd/anvil-project/dispatcher.c: dispatcher_release
 * = lib/ledger/dispatch.c: ledger_runner_exited dispatch_again */
inline exited_turn(r)
{
	lowest(rw[r].exits, j);
	rw[r].exit_answer = j;
	if
	:: CLAIMED(r) && rw[r].spawn == j -> takeover_begin(r, rw[r].lease)
	:: else ->
		rw[r].held = rw[r].held && MUTANT(M_HELD_FOR_EVER);
		if
		:: rw[r].st == EXECUTABLE && rw[r].spawn == j -> rw[r].queued = 0
		:: rw[r].st == EXECUTABLE && rw[r].spawn != j && rw[r].queued &&
		    rw[r].attempts == ((rw[r].attempt_of >> j) & 1) ->
			count_failure(r)
		:: else
		fi
	fi;
	if
	:: NO_CRASH && (rw[r].ends & (1 << rw[r].exit_answer)) != 0 -> exit_is_told(r)
	:: else
	fi;
	j = 0
}

/* = cmd/anvil-project/dispatcher.c: on_answer answer_turn
 * = lib/ledger/dispatch.c: ledger_dispatch_queued ledger_dispatch_failed */
inline spawned_turn(r)
{
	rw[r].in_flight = 0;
	if
	:: rw[r].spawned == SP_FAILED ->
		if
		:: rw[r].st == EXECUTABLE -> count_failure(r)
		:: else
		fi
	:: else ->
		rw[r].held = rw[r].held || rw[r].spawned == SP_LIVE;
		if
		:: rw[r].st == EXECUTABLE &&
		    !(rw[r].spawned == SP_LIVE && rw[r].spawned_live == rw[r].spawn) ->
			rw[r].queued = 1
		:: else
		fi
	fi;
	rw[r].spawned = 0;
	rw[r].spawned_live = 0
}

/* What leaves after the commit: effects, then the answer.
 * = lib/actor/turn.c: turn_commit round_leave
 * = cmd/anvil-project/methods_run.c: forget_after forget_lease */
inline leave(r, c)
{
	if
	:: conn[c].answer == IS_SETTLED || conn[c].answer == IS_RELEASED ->
		drop(r, conn[c].lease)
	:: else
	fi;
	conn[c].sent = 1;
	if
	:: CONN_DEAD(r, c) -> forget_answer(c)
	:: else
	fi;
	tidy(r, c)
}

/* Every active row has a lease again, fresh, and its process is asked about.
 * = cmd/anvil-project/shard.c: shard_begin active_turn */
inline shard_starts()
{
	shard_up = 1;
	for (i : 0 .. n - 1) {
		if
		:: CLAIMED(i) && !MUTANT(M_FORGETS_ACTIVE) ->
			grant(i, rw[i].lease, rw[i].spawn, CHANNEL_GONE)
		:: else
		fi
	}
	i = 0
}

inline shard_dies()
{
	shard_up = 0;
	linked = 0;
	accept_answer = 0;
	for (i : 0 .. n - 1) {
		rw[i].in_flight = 0;
		rw[i].held = 0;
		rw[i].spawned = 0;
		rw[i].spawned_live = 0;
		rw[i].m_lease = 0;
		rw[i].m_spawn = 0;
		rw[i].channel = 0;
		rw[i].asking = 0;
		rw[i].ask = 0;
		rw[i].ask_lease = 0;
		rw[i].ask_spawn = 0;
		rw[i].ask_answer = 0;
		rw[i].exit_answer = 0;
		takeover_end(i)
	}
	/* What was on its way to it is lost; what it had sent may arrive. */
	for (i : 0 .. n * 2 - 1) {
		conn[i].ask = 0;
		conn[i].beat = 0;
		if
		:: !conn[i].sent -> forget_answer(i)
		:: else
		fi;
		tidy(i / 2, i)
	}
	i = 0
}

/* Turns of one connection. */
inline serve_conn(r, c)
{
	if
	:: conn[c].ask == ASK_CLAIM -> claim_turn(r, c)
	:: conn[c].ask == ASK_FINALIZE -> finalize_turn(r, c)
	:: conn[c].ask == ASK_RELEASE -> release_turn(r, c)
	fi;
	conn[c].ask = 0;
	conn[c].outcome = 0;
	if
	:: NO_CRASH -> leave(r, c)
	:: else -> tidy(r, c)
	fi
}

/* A claim whose answer is out before its commit, which a crash then prevents. */
inline reply_first(r, c)
{
	if
	:: rw[r].st == EXECUTABLE ->
		rw[r].nleases++;
		conn[c].answer = IS_CLAIMED;
		conn[c].sent = 1;
		conn[c].with_lease = rw[r].nleases
	:: else
	fi;
	shard_dies()
}

#define TO_SERVE(c) (shard_up && conn[c].ask != 0 && conn[c].answer == 0)

/* The connection of the lease has ended, and all that came over it was read. */
#define CONN_OF_LEASE(r) conn[(r) * 2 + (rw[r].m_spawn & 1)]
#define CHANNEL_ENDS(r) (rw[r].channel == CHANNEL_UP && \
	(rw[r].pc == GONE || rw[r].newest != rw[r].m_spawn) && \
	(CONN_OF_LEASE(r).spawn != rw[r].m_spawn || \
	(CONN_OF_LEASE(r).ask == 0 && CONN_OF_LEASE(r).beat == 0)))
/* What comes over connection c of run r. */
#define CONN_STEPS(r, c) \
	:: d_step { TO_SERVE(c) -> serve_conn(r, c) } \
	:: d_step { TO_SERVE(c) && conn[c].ask == ASK_CLAIM && lost_commits > 0 -> \
		lost_commits--; claim_turn_lost(r, c); conn[c].ask = 0; tidy(r, c) } \
	:: d_step { TO_SERVE(c) && conn[c].ask == ASK_CLAIM && crashes_shard > 0 && \
	    MUTANT(M_REPLY_FIRST) -> \
		crashes_shard--; reply_first(r, c) } \
	:: d_step { shard_up && conn[c].answer != 0 && !conn[c].sent -> leave(r, c) } \
	:: d_step { shard_up && conn[c].beat != 0 -> heartbeat_turn(r, c); tidy(r, c) }

/* = cmd/anvil-project/main.c: on_supervisor_up on_peer_down
 * = cmd/anvil-project/shard.c: on_pump on_timer
 * = cmd/anvil-project/leases.c: on_returns leases_channel_gone */
#define SHARD_STEPS(r) \
	:: d_step { shard_up && CHANNEL_ENDS(r) -> rw[r].channel = CHANNEL_GONE } \
	:: d_step { linked && rw[r].channel == CHANNEL_GONE && !rw[r].asking && \
	    rw[r].ask == 0 -> \
		rw[r].channel = CHANNEL_ASKED; ask_super(r, STATUS) } \
	:: d_step { linked && (rw[r].ask_answer == IS_LIVE || rw[r].ask_answer == IS_GONE) -> \
		asked_turn(r) } \
	:: d_step { linked && rw[r].spawned != 0 -> spawned_turn(r) } \
	:: d_step { linked && rw[r].st == EXECUTABLE && !rw[r].queued && !rw[r].in_flight && \
	    !rw[r].held -> \
		send_spawn(r) } \
	:: d_step { linked && rw[r].exits != 0 && rw[r].exit_answer == 0 && \
	    rw[r].spawned == 0 -> \
		exited_turn(r) } \
	:: d_step { shard_up && rw[r].takeover == TK_AGAIN && \
	    (linked || !HOLDS(r, rw[r].t_lease)) -> \
		takeover_again(r) } \
	:: d_step { shard_up && rw[r].t_answer != 0 && rw[r].t_answer != TK_PARKED -> \
		takeover_goes_on(r) }
