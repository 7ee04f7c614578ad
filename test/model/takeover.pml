/* test/model/takeover.pml -- when a runner is gone: its store's word becomes the ledger's. */

/* ${how} BY_STORE: with what the store says.
 * = cmd/anvil-project/takeover.c: conclude take_over_turn finish
 * = lib/ledger/settle.c: ledger_take_over */
inline take_over(r, how)
{
	if
	:: HOLDS(r, rw[r].t_lease) || MUTANT(M_TAKEOVER_UNGUARDED) ->
		rw[r].lease = 0;
		if
		:: how == BY_STORE ->
			assert(rw[r].store != CANCELED || rw[r].st == CANCEL_REQUESTED);
			end_row(r, rw[r].store, how)
		:: else -> end_row(r, FAILED, how)
		fi
	:: else
	fi;
	drop(r, rw[r].t_lease);
	takeover_end(r)
}

/* The supervisor has the last word, as it has the first.
 * = cmd/anvil-project/takeover.c: failed_try again */
inline failed_try(r)
{
	rw[r].t_answer = 0;
	if
	:: rw[r].t_failed < TAKEOVER_TRIES -> rw[r].t_failed++
	:: else
	fi;
	if
	:: rw[r].t_failed >= TAKEOVER_TRIES && linked -> rw[r].takeover = TK_LAST
	:: else -> rw[r].takeover = TK_AGAIN
	fi
}

/* = cmd/anvil-project/takeover.c: on_again check_turn step_serve */
inline takeover_again(r)
{
	if
	:: !HOLDS(r, rw[r].t_lease) ->
		drop(r, rw[r].t_lease);
		takeover_end(r)
	:: else -> rw[r].takeover = TK_SERVE
	fi
}

/* = cmd/anvil-project/takeover.c: on_served step_kill on_killed on_concluded on_down on_status */
inline takeover_goes_on(r)
{
	if
	:: rw[r].takeover == TK_KILL ->
		rw[r].takeover = TK_SERVE;
		rw[r].t_failed = 0;
		rw[r].t_answer = 0;
		rw[r].t_spawn = 0
	:: rw[r].takeover == TK_LAST && rw[r].t_answer == TK_LIVE ->
		rw[r].takeover = TK_KILL;
		rw[r].t_answer = 0;
		rw[r].t_spawn = rw[r].spawn
	:: rw[r].takeover == TK_LAST && rw[r].t_answer == TK_GONE -> take_over(r, BY_LEDGER)
	:: rw[r].takeover == TK_SERVE && rw[r].t_answer == TK_LIVE ->
		rw[r].takeover = TK_KILL;
		rw[r].t_answer = 0
	:: rw[r].takeover == TK_SERVE && rw[r].t_answer == TK_SERVING ->
		rw[r].takeover = TK_CONCLUDE;
		rw[r].t_answer = 0
	:: rw[r].takeover == TK_SERVE && rw[r].t_answer == TK_ABSENT ->
		take_over(r, BY_ABSENCE)
	:: rw[r].takeover == TK_CONCLUDE && rw[r].t_answer == TK_TERMINAL ->
		take_over(r, BY_STORE)
	:: else -> failed_try(r)
	fi
}

/* Way 3: it has been silent for too long.
 * = cmd/anvil-project/leases.c: leases_expire */
inline expire(r)
{
	if
	:: MUTANT(M_UNFENCED) && rw[r].takeover == 0 ->
		takeover_begin(r, rw[r].m_lease);
		take_over(r, BY_LEDGER)
	:: else -> ask_super(r, KILL)
	fi
}

/* = cmd/anvil-run/methods.c: run_conclude conclude_work
 * = lib/record/states.c: record_conclude conclude_in_txn */
inline conclude(r)
{
	if
	:: !rw[r].serve -> rw[r].t_answer = TK_FAILED
	:: else ->
		if
		:: rw[r].store < PASSED ->
			rw[r].store = FAILED;
			rw[r].epoch = rw[r].t_lease + 1
		:: else
		fi;
		rw[r].t_answer = TK_TERMINAL
	fi
}
