/* test/model/leases.pml -- leases in a shard's memory, and what it asks the supervisor about. */

/* = cmd/anvil-project/leases.c: leases_grant */
inline grant(r, id, by_whom, state)
{
	rw[r].asking = rw[r].asking && (rw[r].m_lease == id || MUTANT(M_ASKED_ONCE));
	rw[r].m_lease = id;
	rw[r].m_spawn = by_whom;
	rw[r].channel = state
}

/* = cmd/anvil-project/leases.c: leases_drop */
inline drop(r, id)
{
	if
	:: rw[r].m_lease == id ->
		rw[r].m_lease = 0;
		rw[r].m_spawn = 0;
		rw[r].channel = 0;
		rw[r].asking = 0
	:: else
	fi
}

/* = cmd/anvil-project/leases.c: ask ask_new */
inline ask_super(r, what)
{
	if
	:: rw[r].m_lease != 0 && !rw[r].asking && rw[r].ask == 0 ->
		rw[r].asking = 1;
		rw[r].ask = what;
		rw[r].ask_lease = rw[r].m_lease;
		rw[r].ask_spawn = rw[r].m_spawn;
		rw[r].ask_answer = 0
	:: else
	fi
}

/* = cmd/anvil-project/takeover.c: takeover_begin */
inline takeover_begin(r, id)
{
	if
	:: rw[r].takeover == 0 ->
		rw[r].takeover = TK_AGAIN;
		rw[r].t_lease = id;
		rw[r].t_failed = 0;
		rw[r].t_answer = 0
	:: else
	fi
}

inline takeover_end(r)
{
	rw[r].takeover = 0;
	rw[r].t_lease = 0;
	rw[r].t_spawn = 0;
	rw[r].t_failed = 0;
	rw[r].t_answer = 0
}

/* = cmd/anvil-project/dispatcher.c: dispatcher_pump send_spawn */
inline send_spawn(r)
{
	rw[r].in_flight = 1;
	rw[r].wants = 1;
	rw[r].wants_attempt = rw[r].attempts
}

/* = cmd/anvil-project/leases.c: on_status on_killed ask_lease is_gone ask_later */
inline asked_turn(r)
{
	if
	:: rw[r].m_lease == rw[r].ask_lease ->
		rw[r].asking = 0;
		if
		:: rw[r].ask_answer == IS_GONE -> takeover_begin(r, rw[r].m_lease)
		:: else
		fi
	:: else		/* it was about an earlier one */
	fi;
	rw[r].ask = 0;
	rw[r].ask_lease = 0;
	rw[r].ask_spawn = 0;
	rw[r].ask_answer = 0
}

/* The call fails: the link, or its deadline. */
inline ask_fails(r)
{
	if
	:: rw[r].m_lease == rw[r].ask_lease && rw[r].channel == CHANNEL_ASKED ->
		rw[r].channel = CHANNEL_GONE
	:: else
	fi;
	rw[r].ask_answer = 0;
	asked_turn(r)
}

/* = cmd/anvil-project/shard.c: shard_recheck active_turn repair_turn
 * = cmd/anvil-project/dispatcher.c: dispatcher_ask_again ask_page
 * = cmd/anvil-project/leases.c: leases_ask_all */
inline recheck()
{
	for (j : 0 .. n - 1) {
		rw[j].held = rw[j].held && MUTANT(M_HELD_FOR_EVER);
		if
		:: rw[j].st == EXECUTABLE && rw[j].queued && !rw[j].in_flight &&
		    !MUTANT(M_NO_ASK_AGAIN) ->
			send_spawn(j)
		:: else
		fi;
		if
		:: CLAIMED(j) && rw[j].m_lease == 0 && !MUTANT(M_FORGETS_ACTIVE) ->
			grant(j, rw[j].lease, rw[j].spawn, CHANNEL_GONE)
		:: else
		fi;
		ask_super(j, STATUS)
	}
	j = 0
}
