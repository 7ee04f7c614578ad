/* test/model/turns.pml -- what runs, ingress and users ask of a shard. */

inline reply(c, what)
{
	conn[c].answer = what;
	conn[c].sent = 0
}

/* A dead process is answered too, but its answer goes nowhere.
 * = cmd/anvil-project/methods_run.c: project_claim_run
 * = lib/ledger/lease.c: ledger_claim_run claim_now stale_reason */
inline claim_turn(r, c)
{
	if
	:: CLAIMED(r) && (rw[r].spawn == conn[c].spawn || MUTANT(M_CLAIM_BY_ANY)) ->
		reply(c, IS_CLAIMED)
	:: rw[r].st == EXECUTABLE ->
		assert(rw[r].executed_by == 0);
		rw[r].st = ACTIVE;
		rw[r].queued = 0;
		assert(rw[r].nleases < 7);
		rw[r].nleases++;
		rw[r].lease = rw[r].nleases;
		rw[r].spawn = conn[c].spawn;
		reply(c, IS_CLAIMED);
		check_rows()
	:: else -> reply(c, IS_STALE)
	fi;
	if
	:: conn[c].answer == IS_CLAIMED ->
		conn[c].with_lease = rw[r].lease;
		conn[c].with_cancel = rw[r].st == CANCEL_REQUESTED;
		grant(r, rw[r].lease, rw[r].spawn, CHANNEL_UP)
	:: else
	fi
}

/* Its batch is lost: E_STORAGE, and only the memory has changed. */
inline claim_turn_lost(r, c)
{
	if
	:: rw[r].st == EXECUTABLE ->
		assert(rw[r].nleases < 7);
		rw[r].nleases++;
		grant(r, rw[r].nleases, conn[c].spawn, CHANNEL_UP)
	:: else
	fi
}

/* = cmd/anvil-project/methods_run.c: project_finalize_run
 * = lib/ledger/settle.c: ledger_finalize_run judge_repeat */
inline finalize_turn(r, c)
{
	if
	:: HOLDS(r, conn[c].lease) || (MUTANT(M_FINALIZE_UNGUARDED) && rw[r].lease == 0) ->
		assert(rw[r].spawn == conn[c].spawn);
		if
		:: conn[c].outcome == CANCELED && rw[r].st != CANCEL_REQUESTED ->
			reply(c, IS_CONFLICT);
			assert(false)	/* no store says so without a request */
		:: else ->
			end_row(r, conn[c].outcome, BY_SETTLEMENT);
			reply(c, IS_SETTLED)
		fi
	:: else ->
		if
		:: !TERMINAL(r) || rw[r].lease != conn[c].lease -> reply(c, IS_LOST)
		:: else ->
			assert(rw[r].st == conn[c].outcome);
			reply(c, IS_SETTLED)
		fi
	fi
}

/* A repeat whose first answer was lost is told `lost` released, which the run takes for the
 * answer.
 * = cmd/anvil-project/methods_run.c: project_release_run
 * = lib/ledger/lease.c: ledger_release_run lost_reason
 * = cmd/anvil-run/lease.c: on_release */
inline release_turn(r, c)
{
	if
	:: !HOLDS(r, conn[c].lease) && TERMINAL(r) -> reply(c, IS_LOST)
	:: !HOLDS(r, conn[c].lease) && !TERMINAL(r) -> reply(c, IS_RELEASED)
	:: HOLDS(r, conn[c].lease) && rw[r].st == CANCEL_REQUESTED -> reply(c, IS_REFUSED)
	:: HOLDS(r, conn[c].lease) && rw[r].st == ACTIVE && rw[r].started ->
		reply(c, IS_LOST)	/* `refused` started, which no run gets */
	:: HOLDS(r, conn[c].lease) && rw[r].st == ACTIVE && !rw[r].started ->
		assert(rw[r].spawn == conn[c].spawn);
		rw[r].st = EXECUTABLE;
		rw[r].queued = 0;
		rw[r].lease = 0;
		reply(c, IS_RELEASED);
		check_rows()
	fi
}

/* = cmd/anvil-project/methods_run.c: project_heartbeat renew
 * = lib/ledger/lease.c: ledger_heartbeat ledger_check_lease
 * = cmd/anvil-run/lease.c: judge_heartbeat */
inline heartbeat_turn(r, c)
{
	if
	:: HOLDS(r, conn[c].lease) || MUTANT(M_LOST_IS_CURRENT) ->
		assert(HOLDS(r, conn[c].lease) && rw[r].spawn == conn[c].spawn);
		rw[r].started = rw[r].started || conn[c].beat == 2;
		grant(r, rw[r].lease, rw[r].spawn, CHANNEL_UP);
		if
		:: !CONN_DEAD(r, c) && rw[r].st == CANCEL_REQUESTED -> rw[r].told_cancel = 1
		:: else
		fi
	:: else ->
		if
		:: !CONN_DEAD(r, c) ->
			assert(rw[r].pc >= SETTLE || rw[r].killed);
			rw[r].told_lost = 1
		:: else
		fi
	fi;
	conn[c].beat = 0
}

/* = cmd/anvil-project/methods_queue.c: project_accept_run
 * = lib/ledger/queue.c: ledger_accept_run run_insert */
inline accept_turn(r)
{
	found = 0;
	for (i : 0 .. n - 1) {
		found = found || IS_HEAD(i);
	}
	if
	:: rw[r].st == NONE && found -> rw[r].st = PENDING
	:: rw[r].st == NONE && !found -> rw[r].st = EXECUTABLE
	:: else			/* a repeat */
	fi;
	accept_answer = !NO_CRASH;
	naccepted = naccepted + NO_CRASH;
	check_rows()
}

/* = cmd/anvil-project/methods_queue.c: project_cancel_run
 * = lib/ledger/queue.c: ledger_cancel_run cancel_queued */
inline cancel_turn(r)
{
	rw[r].requested = 1;
	if
	:: QUEUED(r) -> end_row(r, CANCELED, BY_CANCEL)
	:: rw[r].st == ACTIVE && MUTANT(M_CANCEL_AT_ONCE) ->
		rw[r].st = CANCELED;
		promote();
		check_rows()
	:: rw[r].st == ACTIVE && !MUTANT(M_CANCEL_AT_ONCE) -> rw[r].st = CANCEL_REQUESTED
	:: else
	fi
}
