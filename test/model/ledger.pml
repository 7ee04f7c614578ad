/* test/model/ledger.pml -- the shard's rows: each turn here is one transaction. */

/* Holds after every turn that writes. */
inline check_rows()
{
	j = 0;
	found = 0;
	for (i : 0 .. n - 1) {
		if
		:: IS_HEAD(i) -> j++
		:: else
		fi;
		found = found || rw[i].st == PENDING;
		assert(!rw[i].executes || (CLAIMED(i) && rw[i].spawn == rw[i].newest));
		assert(i >= naccepted || rw[i].st != NONE);
	}
	assert(j <= 1);
	assert(j == 1 || !found);
	j = 0
}

/* = lib/ledger/queue.c: ledger_promote */
inline promote()
{
	found = 0;
	for (i : 0 .. n - 1) {
		found = found || IS_HEAD(i);
	}
	for (i : 0 .. n - 1) {
		if
		:: !found && rw[i].st == PENDING ->
			found = 1;
			rw[i].st = EXECUTABLE;
			rw[i].queued = 0;
			for (j : 0 .. n - 1) {
				assert(i == j || !MAY_EXECUTE(j))	/* fenced */
			}
			j = 0
		:: else
		fi
	}
	i = 0
}

/* = lib/ledger/settle.c: end_run
 * = lib/ledger/run.c: ledger_end_row */
inline end_row(r, state, how)
{
	assert(!TERMINAL(r));
	assert(state != CANCELED || rw[r].requested);
	assert(how == BY_CANCEL || how == BY_DISPATCH || CLAIMED(r));
	assert((how != BY_CANCEL && how != BY_DISPATCH) || rw[r].executed_by == 0);
	assert((how != BY_SETTLEMENT && how != BY_STORE) || rw[r].store == state);
	assert(how != BY_ABSENCE || rw[r].store == NO_STORE);
	rw[r].st = state;
	rw[r].by = how;
	rw[r].queued = 0;
	promote();
	check_rows()
}

/* = lib/ledger/dispatch.c: count_failure last_failure */
inline count_failure(r)
{
	rw[r].attempts++;
	rw[r].queued = 0;
	if
	:: rw[r].attempts >= DISPATCH_TRIES -> end_row(r, FAILED, BY_DISPATCH)
	:: else
	fi
}
