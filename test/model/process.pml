/* test/model/process.pml -- the process of a run, from its claim to its end. */

/* Nothing of a connection is left: it looks as one that never was. */
inline tidy(r, c)
{
	if
	:: CONN_DEAD(r, c) && conn[c].ask == 0 && conn[c].beat == 0 && conn[c].answer == 0 ->
		conn[c].spawn = 0;
		conn[c].lease = 0;
		conn[c].outcome = 0
	:: else
	fi
}

inline forget_answer(c)
{
	conn[c].answer = 0;
	conn[c].sent = 0;
	conn[c].with_lease = 0;
	conn[c].with_cancel = 0
}

/* What it has sent may still be read; what it was sent is gone.
 * = cmd/anvil-run/finish.c: finish_exit leave */
inline process_ends(r)
{
	rw[r].pc = GONE;
	rw[r].executes = 0;
	rw[r].killed = 0;
	rw[r].stopped = 0;
	rw[r].told_cancel = 0;
	rw[r].told_lost = 0;
	rw[r].sees_cancel = 0;
	rw[r].outcome = 0;
	if
	:: MINE(r).sent -> forget_answer(NEWEST_CONN(r))
	:: else
	fi;
	tidy(r, NEWEST_CONN(r))
}

/* = cmd/anvil-run/lease.c: lease_report send_heartbeat */
inline say(r, word)
{
	MINE(r).beat = word
}

/* = cmd/anvil-run/claim.c: on_claimed on_stale release_keyless
 * = cmd/anvil-run/life.c: life_release */
inline claim_answered(r)
{
	if
	:: MINE(r).answer == IS_STALE -> process_ends(r)
	:: else ->
		MINE(r).lease = MINE(r).with_lease;
		rw[r].sees_cancel = MINE(r).with_cancel;
		forget_answer(NEWEST_CONN(r));
		if
		:: rw[r].pc = STORE
		:: releases > 0 -> releases--; rw[r].pc = RELEASE
		fi
	fi
}

/* A store that is terminal is settled as it is.
 * = cmd/anvil-run/claim.c: begin_store has_store has_ended_before
 * = lib/record/states.c: record_claim claim_in_txn */
inline open_store(r)
{
	if
	:: rw[r].store >= PASSED ->
		rw[r].outcome = rw[r].store;
		rw[r].pc = SETTLE
	:: else ->
		assert(rw[r].store != RUNNING);		/* E_ILLEGAL */
		assert(rw[r].epoch <= MINE(r).lease);	/* E_STALE */
		rw[r].store = STARTING;
		rw[r].epoch = MINE(r).lease;
		say(r, 1);
		rw[r].pc = PREPARE
	fi
}

/* A control point: 1 in `found`, and the run goes another way.
 * = cmd/anvil-run/life.c: life_diverted life_cancel life_lose */
inline control(r)
{
	found = 0;
	if
	:: rw[r].told_lost ->
		found = 1;
		rw[r].executes = 0;
		rw[r].pc = LOSE
	:: !rw[r].told_lost && (rw[r].told_cancel || rw[r].sees_cancel) ->
		found = 1;
		rw[r].executes = 0;
		rw[r].sees_cancel = 1;
		rw[r].pc = FINISH
	:: else
	fi
}

/* = cmd/anvil-run/life.c: start
 * = cmd/anvil-run/steps.c: steps_start */
inline begin(r)
{
	control(r);
	if
	:: !found ->
		for (i : 0 .. n - 1) {
			assert(!rw[i].executes);			/* single */
			assert(i >= r || TERMINAL(i));			/* FIFO */
		}
		assert(CLAIMED(r) && rw[r].spawn == rw[r].newest);
		assert(rw[r].executed_by == 0);
		rw[r].executed_by = rw[r].newest;
		rw[r].store = RUNNING;
		rw[r].executes = 1;
		rw[r].outcome = PASSED;
		rw[r].pc = STEPS;
		say(r, 2)
	:: else
	fi
}

/* = cmd/anvil-run/steps.c: step_is_stored */
inline steps_end(r)
{
	control(r);
	if
	:: !found ->
		rw[r].executes = 0;
		rw[r].pc = FINISH
	:: else
	fi
}

/* The checkout fails.
 * = cmd/anvil-run/life.c: life_fail set_failure */
inline fail(r)
{
	control(r);
	if
	:: !found ->
		rw[r].outcome = FAILED;
		rw[r].pc = FINISH
	:: else
	fi
}

/* The sandbox is closed before anything else.
 * = cmd/anvil-run/finish.c: advance tear_down last_look store_outcome goes_to_its_end
 * = cmd/anvil-run/claim.c: claim_store_alone
 * = cmd/anvil-run/journal.c: journal_finish finish_work
 * = lib/record/states.c: record_finish */
inline store_outcome(r)
{
	assert(!rw[r].executes);
	if
	:: rw[r].told_lost -> rw[r].pc = LOSE
	:: !rw[r].told_lost && rw[r].store == NO_STORE ->
		rw[r].store = STARTING;		/* and then it ends */
		rw[r].epoch = MINE(r).lease
	:: else ->
		if
		:: rw[r].told_cancel || rw[r].sees_cancel -> rw[r].outcome = CANCELED
		:: else
		fi;
		rw[r].store = rw[r].outcome;
		rw[r].told_cancel = 0;
		rw[r].sees_cancel = 0;
		rw[r].pc = SETTLE
	fi
}

/* = cmd/anvil-run/finish.c: lose
 * = lib/record/states.c: record_lose lose_in_txn */
inline lose(r)
{
	if
	:: rw[r].store != NO_STORE && rw[r].store < PASSED && rw[r].epoch == MINE(r).lease ->
		rw[r].store = FAILED
	:: else
	fi;
	process_ends(r)
}

/* = cmd/anvil-run/finish.c: on_released on_settled */
inline answered(r)
{
	if
	:: MINE(r).answer == IS_REFUSED ->
		forget_answer(NEWEST_CONN(r));
		rw[r].sees_cancel = 1;
		rw[r].pc = FINISH
	:: rw[r].pc == RELEASE && MINE(r).answer == IS_LOST ->
		forget_answer(NEWEST_CONN(r));
		rw[r].pc = LOSE
	:: else -> process_ends(r)
	fi
}

/* A call that was not answered is made again.
 * = cmd/anvil-run/lease.c: lease_claim send_claim lease_finalize lease_release push on_up */
#define PROCESS_STEPS(r) \
	:: d_step { rw[r].killed -> process_ends(r) } \
	:: d_step { rw[r].stopped == 2 && !rw[r].killed -> rw[r].stopped = 0 } \
	:: d_step { ALIVE(r) && rw[r].pc == CLAIM && NOTHING_OUT(r) -> \
		MINE(r).ask = ASK_CLAIM } \
	:: d_step { ALIVE(r) && rw[r].pc == CLAIM && NOTHING_OUT(r) && give_ups > 0 -> \
		give_ups--; process_ends(r) } \
	:: atomic { ALIVE(r) && rw[r].pc == CLAIM && MINE(r).sent -> claim_answered(r) } \
	:: d_step { ALIVE(r) && rw[r].pc == STORE -> open_store(r) } \
	:: d_step { ALIVE(r) && rw[r].pc == PREPARE -> begin(r) } \
	:: d_step { ALIVE(r) && rw[r].pc == PREPARE && failures > 0 -> failures--; fail(r) } \
	:: d_step { ALIVE(r) && releases > 0 && (rw[r].pc == PREPARE || \
	    (rw[r].pc == STEPS && MUTANT(M_RELEASE_STARTED))) && !rw[r].told_cancel && \
	    !rw[r].sees_cancel && !rw[r].told_lost -> \
		releases--; rw[r].executes = 0; rw[r].pc = RELEASE } \
	:: d_step { ALIVE(r) && rw[r].pc == STEPS -> steps_end(r) } \
	:: d_step { ALIVE(r) && rw[r].pc == FINISH -> store_outcome(r) } \
	:: d_step { ALIVE(r) && rw[r].pc == SETTLE && NOTHING_OUT(r) -> \
		MINE(r).ask = ASK_FINALIZE; MINE(r).outcome = rw[r].outcome } \
	:: d_step { ALIVE(r) && rw[r].pc == RELEASE && NOTHING_OUT(r) -> \
		MINE(r).ask = ASK_RELEASE } \
	:: d_step { ALIVE(r) && rw[r].pc == RELEASE && rw[r].told_lost && NOTHING_OUT(r) -> \
		rw[r].pc = LOSE } \
	:: d_step { ALIVE(r) && (rw[r].pc == SETTLE || rw[r].pc == RELEASE) && \
	    MINE(r).sent -> \
		answered(r) } \
	:: d_step { ALIVE(r) && rw[r].pc == LOSE -> lose(r) }
