/* test/model/supervisor.pml -- who forks, reaps, kills and remembers. */

/* Nobody waits any more for the answer to an earlier call. */
inline super_answers(r, what)
{
	if
	:: rw[r].in_flight && linked ->
		rw[r].spawned = what;
		if
		:: what == SP_LIVE -> rw[r].spawned_live = rw[r].by_run
		:: else
		fi
	:: else
	fi
}

/* The row is on disk before the gate opens.
 * = cmd/anvild/runners.c: start_runner fork_runner
 * = cmd/anvild/process.c: process_start row_on_disk */
inline fork_runner(r, attempt)
{
	assert(rw[r].pc == GONE && !rw[r].serve);
	assert(rw[r].newest < 7);
	rw[r].newest++;
	rw[r].process = rw[r].newest;
	rw[r].by_run = rw[r].newest;
	rw[r].attempt_of = rw[r].attempt_of | (attempt << rw[r].newest);
	if
	:: MINE(r).answer == IS_SETTLED || MINE(r).answer == IS_RELEASED ->
		drop(r, MINE(r).lease)
	:: else
	fi;
	forget_answer(NEWEST_CONN(r));
	MINE(r).ask = 0;
	MINE(r).beat = 0;
	MINE(r).outcome = 0;
	MINE(r).lease = 0;
	MINE(r).spawn = rw[r].newest;
	rw[r].pc = CLAIM
}

inline wait_for_slot(r)
{
	rw[r].waits = 1;
	rw[r].waits_attempt = rw[r].wants_attempt;
	super_answers(r, SP_QUEUED)
}

/* = cmd/anvild/methods.c: supervisor_spawn_run
 * = cmd/anvild/runners.c: runners_spawn queue
 * = cmd/anvild/serves.c: serves_stop */
inline spawn_run(r)
{
	rw[r].wants = 0;
	if
	:: rw[r].by_run != 0 && !MUTANT(M_FORK_BESIDE) -> super_answers(r, SP_LIVE)
	:: rw[r].by_run == 0 && rw[r].serve -> rw[r].serve = 0; wait_for_slot(r)
	:: (rw[r].by_run == 0 || MUTANT(M_FORK_BESIDE)) && !rw[r].serve && !rw[r].waits ->
		fork_runner(r, rw[r].wants_attempt);
		super_answers(r, SP_QUEUED)
	:: rw[r].by_run == 0 && !rw[r].serve -> wait_for_slot(r)	/* none is free */
	:: rw[r].by_run == 0 && !rw[r].serve && !rw[r].waits && failures > 0 ->
		failures--;
		super_answers(r, SP_FAILED)
	fi;
	rw[r].wants_attempt = 0
}

/* From the slot queue.
 * = cmd/anvild/runners.c: runners_pump tell_failure
 * = cmd/anvild/slots.c: slots_take slots_wait */
inline pump(r)
{
	if
	:: rw[r].by_run != 0 -> skip
	:: rw[r].by_run == 0 ->
		rw[r].serve = 0;
		fork_runner(r, rw[r].waits_attempt)
	:: rw[r].by_run == 0 && failures > 0 ->
		failures--;
		assert(rw[r].newest < 7);
		rw[r].newest++;
		rw[r].attempt_of =
		    rw[r].attempt_of | (rw[r].waits_attempt << rw[r].newest);
		rw[r].exits = rw[r].exits | (1 << rw[r].newest);
		rw[r].ends = rw[r].ends | (1 << rw[r].newest)
	fi;
	rw[r].waits = 0;
	rw[r].waits_attempt = 0
}

/* On disk; a shard may have been told before that.
 * = cmd/anvild/exits.c: add_turn send_one
 * = cmd/anvild/process.c: process_forget */
inline record_end(r)
{
	rw[r].ends = rw[r].ends | (1 << rw[r].process);
	rw[r].process = 0
}

/* = cmd/anvild/runners.c: runner_on_end answer_killers
 * = cmd/anvild/process.c: on_pidfd
 * = cmd/anvild/exits.c: exits_add_take */
inline reap(r)
{
	rw[r].exits = rw[r].exits | (1 << rw[r].by_run);
	rw[r].by_run = 0;
	if
	:: crashes_super == 0 -> record_end(r)
	:: else
	fi;
	if
	:: rw[r].ask_answer == IS_PARKED -> rw[r].ask_answer = IS_GONE
	:: else
	fi;
	if
	:: rw[r].t_answer == TK_PARKED -> rw[r].t_answer = TK_GONE
	:: else
	fi
}

/* = cmd/anvild/methods.c: supervisor_run_status supervisor_kill_run
 * = cmd/anvild/runners.c: runners_find runners_kill kill_runner */
inline asked_about(r)
{
	if
	:: rw[r].by_run != rw[r].ask_spawn -> rw[r].ask_answer = IS_GONE
	:: else ->
		if
		:: rw[r].ask == STATUS -> rw[r].ask_answer = IS_LIVE
		:: else ->
			rw[r].killed = rw[r].pc != GONE;
			rw[r].ask_answer = IS_PARKED;
			if
			:: MUTANT(M_FORGOTTEN_EARLY) -> reap(r)
			:: else
			fi
		fi
	fi
}

/* = cmd/anvild/methods.c: supervisor_serve_run
 * = cmd/anvild/serves.c: serves_ask has_store start */
inline serve_run(r)
{
	if
	:: rw[r].by_run != 0 && !MUTANT(M_SERVE_BESIDE) ->
		rw[r].t_answer = TK_LIVE;
		rw[r].t_spawn = rw[r].by_run
	:: !(rw[r].by_run != 0 && !MUTANT(M_SERVE_BESIDE)) &&
	    (rw[r].store == NO_STORE || MUTANT(M_STORE_UNREAD)) ->
		rw[r].t_answer = TK_ABSENT
	:: else ->
		assert(rw[r].pc == GONE);
		rw[r].serve = 1;
		rw[r].t_answer = TK_SERVING
	fi
}

/* The same for the one that a takeover has met. */
inline takeover_kill(r)
{
	if
	:: rw[r].by_run == rw[r].t_spawn ->
		rw[r].killed = rw[r].pc != GONE;
		rw[r].t_answer = TK_PARKED
	:: else -> rw[r].t_answer = TK_GONE
	fi
}

/* The shard hears nothing more, and goes on until it is ended itself. */
inline super_dies()
{
	super_up = 0;
	linked = 0;
	for (i : 0 .. n - 1) {
		rw[i].wants = 0;
		rw[i].wants_attempt = 0;
		rw[i].in_flight = 0;
		rw[i].spawned = 0;
		rw[i].spawned_live = 0;
		rw[i].waits = 0;
		rw[i].waits_attempt = 0;
		rw[i].by_run = 0;
		rw[i].exits = 0;
		rw[i].exit_answer = 0;
		if
		:: rw[i].ask != 0 -> ask_fails(i)
		:: else
		fi;
		if
		:: rw[i].takeover == TK_SERVE || rw[i].takeover == TK_KILL ||
		    rw[i].takeover == TK_LAST ->
			rw[i].takeover = TK_AGAIN;
			rw[i].t_spawn = 0;
			rw[i].t_answer = 0
		:: else
		fi
	}
	i = 0
}

/* = cmd/anvild/recover.c: startup_recover recover_one end_process runner_is_gone
 * = cmd/anvild/runners.c: runners_adopt
 * = cmd/anvild/process.c: process_adopt
 * = cmd/anvild/exits.c: exits_load */
inline super_starts()
{
	if
	:: shard_up -> shard_dies()
	:: else
	fi;
	for (i : 0 .. n - 1) {
		rw[i].serve = 0;
		rw[i].exits = rw[i].ends;
		if
		:: rw[i].process == 0
		:: rw[i].process != 0 && rw[i].process == rw[i].newest &&
		    rw[i].pc != GONE && !MUTANT(M_NO_ADOPTION) -> rw[i].by_run = rw[i].process
		:: else -> rw[i].exits = rw[i].exits | (1 << rw[i].process)
		fi
	}
	super_up = 1
}

#define SUPERVISOR_STEPS(r) \
	:: atomic { super_up && rw[r].wants && (rw[r].by_run != 0 || rw[r].process == 0) -> \
		spawn_run(r) } \
	:: atomic { super_up && rw[r].waits && (rw[r].by_run != 0 || rw[r].process == 0) -> \
		pump(r) } \
	:: d_step { super_up && rw[r].by_run != 0 && \
	    (rw[r].pc == GONE || rw[r].newest != rw[r].by_run) -> \
		reap(r) } \
	:: d_step { super_up && rw[r].process != 0 && rw[r].by_run != rw[r].process -> \
		record_end(r) } \
	:: d_step { linked && rw[r].exit_answer != 0 && \
	    (rw[r].ends & (1 << rw[r].exit_answer)) != 0 -> \
		exit_is_told(r) } \
	:: d_step { linked && rw[r].ask != 0 && rw[r].ask_answer == 0 -> asked_about(r) } \
	:: d_step { linked && rw[r].takeover == TK_SERVE && rw[r].t_answer == 0 -> \
		serve_run(r) } \
	:: d_step { linked && rw[r].takeover == TK_LAST && rw[r].t_answer == 0 -> \
		rw[r].t_answer = (rw[r].by_run == rw[r].spawn -> TK_LIVE : TK_GONE) } \
	:: d_step { linked && rw[r].takeover == TK_KILL && rw[r].t_answer == 0 -> \
		takeover_kill(r) }
