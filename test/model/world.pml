/* test/model/world.pml -- faults, and the steps that there are. */

#define ANY_FAULT (crashes_shard || crashes_super || kills || stops || cancels || releases || \
	failures || errors || lost_commits || give_ups || early)

inline no_more_faults()
{
	crashes_shard = 0;
	crashes_super = 0;
	kills = 0;
	stops = 0;
	cancels = 0;
	releases = 0;
	failures = 0;
	errors = 0;
	lost_commits = 0;
	give_ups = 0;
	early = 0
}

/* The connection of a run ends, and both sides live. */
inline cut_run(r)
{
	MINE(r).ask = 0;
	MINE(r).beat = 0;
	if
	:: MINE(r).sent -> forget_answer(NEWEST_CONN(r))
	:: else
	fi;
	if
	:: rw[r].channel == CHANNEL_UP && rw[r].m_spawn == rw[r].newest ->
		rw[r].channel = CHANNEL_GONE
	:: else
	fi
}

/* A call to the supervisor is not answered in time; what it asked may still be done. */
inline late_call(r)
{
	if
	:: rw[r].in_flight && rw[r].spawned == 0 -> rw[r].in_flight = 0
	:: rw[r].ask != 0 -> ask_fails(r)
	:: rw[r].takeover == TK_SERVE -> failed_try(r)
	:: rw[r].takeover == TK_KILL || rw[r].takeover == TK_LAST ->
		rw[r].takeover = TK_AGAIN;
		rw[r].t_spawn = 0;
		rw[r].t_answer = 0
	:: rw[r].takeover == TK_CONCLUDE -> failed_try(r)
	:: rw[r].serve -> rw[r].serve = 0
	fi
}

#define FAULT_STEPS(r) \
	:: d_step { kills > 0 && rw[r].pc != GONE && !rw[r].killed -> \
		kills--; rw[r].killed = 1 } \
	:: d_step { stops > 0 && ALIVE(r) -> stops--; rw[r].stopped = 2 } \
	:: d_step { stops > 0 && ALIVE(r) -> \
		stops--; rw[r].stopped = 1 } \
	:: d_step { cancels > 0 && shard_up && rw[r].st != NONE && !TERMINAL(r) && \
	    !rw[r].requested -> \
		cancels--; cancel_turn(r) } \
	:: d_step { errors > 0 && shard_up && rw[r].pc != GONE -> errors--; cut_run(r) } \
	:: atomic { errors > 0 && shard_up && (rw[r].in_flight && rw[r].spawned == 0 || \
	    rw[r].ask != 0 || rw[r].takeover > TK_AGAIN || rw[r].serve) -> \
		errors--; late_call(r) } \
	:: d_step { early > 0 && linked && rw[r].m_lease != 0 -> early--; expire(r) } \
	:: d_step { early > 0 && ALIVE(r) && rw[r].pc >= STORE && MINE(r).beat == 0 -> \
		early--; say(r, (rw[r].pc == STEPS -> 2 : 1)) } \
	/* A child behind its gate ends with the supervisor. */ \
	:: d_step { crashes_super > 0 && super_up && rw[r].pc == CLAIM && NOTHING_OUT(r) -> \
		crashes_super--; super_dies(); process_ends(r) }

/* What is left of a run that has ended (a process on its way out, late messages, an exit to be
 * told) concerns its own row alone, and no step of another run reads that.  So it goes first, but
 * for crashes: the checker need not try every order of what is independent.  And when nothing
 * is left, all such runs look the same. */
#define IS_OVER(r) (TERMINAL(r) && rw[r].newest != 0 && rw[r].pc == GONE && rw[r].by_run == 0 && \
	rw[r].process == 0 && rw[r].ends == 0 && rw[r].exits == 0 && rw[r].exit_answer == 0 && \
	rw[r].takeover == 0 && rw[r].m_lease == 0 && rw[r].ask == 0 && !rw[r].in_flight && \
	rw[r].spawned == 0 && !rw[r].wants && !rw[r].waits && \
	conn[(r) * 2].spawn == 0 && conn[(r) * 2 + 1].spawn == 0)

#define IS_LEAVING(r) (TERMINAL(r) && rw[r].newest != 0 && rw[r].stopped != 1 && linked)
#define MUST_WAIT (!any_order && (_pid > 1 && IS_LEAVING(0) || _pid > 2 && IS_LEAVING(1)))

inline forget_run(r)
{
	rw[r].st = PASSED;
	rw[r].attempts = 0;
	rw[r].lease = 0;
	rw[r].spawn = 0;
	rw[r].requested = 0;
	rw[r].started = 0;
	rw[r].store = PASSED;
	rw[r].epoch = 0;
	rw[r].attempt_of = 0;
	rw[r].newest = 0;
	rw[r].held = 0;
	rw[r].serve = 0;
	rw[r].nleases = 0;
	rw[r].by = 0;
	rw[r].executed_by = 0
}

/* All that concerns one run, whoever does it.  Each option is one turn of an actor, so that one
 * process of the checker is enough for all of them: that keeps its states small. */
proctype Life(byte r) provided (!(MUST_WAIT))
{
end:
	do
	PROCESS_STEPS(r)
	CONN_STEPS(r, r * 2)
	CONN_STEPS(r, r * 2 + 1)
	SHARD_STEPS(r)
	/* The serving process.
	 * = cmd/anvil-run/serve.c: serve_begin */
	:: d_step { rw[r].takeover == TK_CONCLUDE && rw[r].t_answer == 0 -> conclude(r) }
	SUPERVISOR_STEPS(r)
	FAULT_STEPS(r)
	:: d_step { IS_OVER(r) -> forget_run(r) }
	od
}

/* What concerns all of them. */
proctype Actors()
{
end:
	do
	:: d_step { crashes_shard > 0 && shard_up && super_up -> crashes_shard--; shard_dies() }
	:: d_step { super_up && !shard_up -> shard_starts() }
	:: d_step { crashes_super > 0 && super_up -> crashes_super--; super_dies() }
	:: d_step { !super_up -> super_starts() }
	:: d_step { shard_up && super_up && !linked -> linked = 1; recheck() }
	:: d_step { early > 0 && linked -> early--; recheck() }
	:: d_step { naccepted < n && shard_up && !accept_answer -> accept_turn(naccepted) }
	:: d_step { accept_answer -> accept_answer = 0; naccepted++ }
	/* No fault need come. */
	:: d_step { ANY_FAULT -> no_more_faults() }
	od
}

/* It lives, was met at one re-check after another, and the run has no lease to run out.
 * = cmd/anvil-project/dispatcher.c: answer_live meet kill_hung */
inline end_unclaimed(r)
{
	if
	:: rw[r].st == EXECUTABLE && rw[r].by_run == rw[r].newest &&
	    !MUTANT(M_UNCLAIMED_LEFT) ->
		rw[r].killed = 1
	:: else
	fi
}

/* Nothing else can happen: time passes. */
proctype Time()
{
end:
	do
	:: atomic { timeout && !REST -> d_step {
		for (i : 0 .. n - 1) {
			if
			:: rw[i].m_lease != 0 && rw[i].stopped == 1 -> expire(i)
			:: rw[i].m_lease == 0 && rw[i].stopped == 1 -> end_unclaimed(i)
			:: else
			fi
		}
		i = 0;
		recheck() } }
	od
}

#ifndef REPLAY
c_code {
	static int
	bound(const char *name, int otherwise)
	{
		const char *text = getenv(name);

		return text != NULL ? atoi(text) : otherwise;
	}
}
#endif

init
{
#ifdef REPLAY
	skip;	/* a step, as there */
#else
	c_code {
		n = bound("RUNS", 2);
		mutant = bound("MUTANT_IS", 0);
		any_order = bound("ANY_ORDER", 0);
		now.crashes_shard = bound("CRASHES_SHARD", 0);
		now.crashes_super = bound("CRASHES_SUPER", 0);
		now.kills = bound("KILLS", 0);
		now.stops = bound("STOPS", 0);
		now.cancels = bound("CANCELS", 0);
		now.releases = bound("RELEASES", 0);
		now.failures = bound("FAILURES", 0);
		now.errors = bound("ERRORS", 0);
		now.lost_commits = bound("LOST_COMMITS", 0);
		now.give_ups = bound("GIVE_UPS", 0);
		now.early = bound("EARLY", 0);
	};
#endif
	atomic {
		for (i : 0 .. n - 1) {
			run Life(i)
		}
		run Actors();
		run Time()
	}
}
