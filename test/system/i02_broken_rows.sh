#!/bin/bash
# i02_broken_rows.sh -- rows that a damaged store holds keep no others waiting: not in the queue,
# not on their way to the index, not in lists; deadlines that passed meanwhile come once.
. "$(dirname "$0")/lib.sh"

need sqlite3
make_steps_repo "$T/src" say "echo done" >/dev/null
start_all shards=1 runs.max_concurrent=1
sign_in
for name in one two three; do
	new_project $name "file://$T/src" >>"$T/projects"
done
mapfile -t projects <"$T/projects"
ctl drain >/dev/null
for project in "${projects[@]}"; do
	trigger "$project" >>"$T/runs"
	trigger "$project" >>"$T/runs"
done
mapfile -t runs <"$T/runs"

down() {
	kill -TERM "$ANVILD"
	wait "$ANVILD" || fail "anvild did not stop in order"
	ANVILD=
}

# Past the rules of the schema, as a bad disk would.
ledger() {	# SQL
	as_account sqlite3 "$DATA/project-0.db" "PRAGMA ignore_check_constraints = ON; $1"
}

# The head of the first project has a word that nobody knows, the waiting one of the second a
# branch that no answer may hold, and the third has no name.  What should have been tried again
# is long overdue, or so far ahead that the clock must have been set back.
down
trigger_sql=$(ledger "SELECT sql FROM sqlite_master WHERE name = 'project_runs_constant'")
ledger "DROP TRIGGER project_runs_constant;
	UPDATE project_runs SET public_status = 'lurking' WHERE run_id = '${runs[0]}';
	UPDATE project_runs SET branch = printf('%.*c', 300, 'x') WHERE run_id = '${runs[3]}';
	UPDATE project_config SET name = '' WHERE project_id = '${projects[2]}';
	UPDATE project_state SET index_sync = 'needs_update';
	UPDATE project_runs SET index_rev = 5, index_since = index_since - 1,
	    index_sync = 'needs_update', index_retry_at = 1 WHERE run_id IN ('${runs[0]}', '${runs[3]}');
	UPDATE project_runs SET index_rev = 5, index_sync = 'needs_update',
	    index_retry_at = 4102444800000, index_attempt = 4 WHERE run_id = '${runs[1]}';
	UPDATE project_runs SET index_rev = 5, index_sync = 'needs_update', index_retry_at = 1
	    WHERE run_id IN ('${runs[4]}', '${runs[5]}');
	UPDATE project_runs SET dispatch_status = 'pending', dispatch_attempts = 2,
	    dispatch_retry_at = 1 WHERE run_id = '${runs[2]}';
	UPDATE project_runs SET dispatch_status = 'pending', dispatch_attempts = 2,
	    dispatch_retry_at = 4102444800000 WHERE run_id = '${runs[4]}';
	$trigger_sql;"
allowed_errors='row_broken|invariant_broken'
"$BUILD/anvild" -c "$CONF" >>"$LOG" 2>&1 </dev/null &
ANVILD=$!
wait_for 30 "ctl resume >/dev/null 2>&1"
wait_for 30 healthy

# The others run to their end and are known to the index.
wait_for 30 "logged run_claimed ${runs[2]}"
has_ended "${runs[2]}" passed
wait_for 20 "logged row_broken ${runs[0]}"
wait_for 20 "logged row_broken ${runs[3]}"
wait_for 20 "logged row_broken ${projects[2]}"
expect "$(grep -c "\"event\":\"row_broken\".*\"${runs[3]}\"" "$LOG")" 1 "lines about one row"

in_list() {	# PROJECT RUN STATUS
	[ "$(api GET "/api/private/projects/$1/runs" |
		jq -r --arg run "$2" '.runs[] | select(.id == $run) | .status')" = "$3" ]
}
wait_for 20 "in_list ${projects[1]} ${runs[2]} passed"

# What can be told of the queue is.
ctl queue --json >"$T/queue"
expect "$(jq -c '[.[].projectSlug]' "$T/queue")" '["one","two"]' "projects in the queue"
expect_in "$(cat "$T/queue")" "${runs[1]}" "queue"
expect_not_in "$(cat "$T/queue")" "${runs[0]}" "queue"
expect "$(api GET "/api/private/projects/${projects[1]}" | field project.name)" two "detail"

# All pages are told but for the broken rows, and what they belong to stays in the index.
expect_exit 0 ctl reindex --json
expect "$(jq -c '[.complete, .projects, .removed]' "$T/out")" '[true,2,0]' "reindex"
expect "$(api GET /api/private/projects | jq '.projects | length')" 3 "projects in the list"

# Nothing waits longer than the longest delay of its kind.  Mended, they go on.
down
now=$(date +%s%3N)
for column in dispatch:121000 index:301000; do
	at=$(ledger "SELECT coalesce(max(${column%:*}_retry_at), 0) FROM project_runs")
	[ "$at" -lt $((now + ${column#*:})) ] || fail "${column%:*}_retry_at is $((at - now)) ms ahead"
done
ledger "UPDATE project_config SET name = 'three' WHERE project_id = '${projects[2]}';
	DROP TRIGGER project_runs_constant;
	UPDATE project_runs SET branch = 'main' WHERE run_id = '${runs[3]}';
	$trigger_sql;
	UPDATE project_runs SET public_status = 'queued' WHERE run_id = '${runs[0]}';
	UPDATE project_runs SET index_retry_at = NULL, dispatch_retry_at = NULL;"
start_anvild
for run in "${runs[@]}"; do
	has_ended "$run" passed
done
for i in 0 1 2 3 4 5; do
	wait_for 20 "in_list ${projects[i / 2]} ${runs[i]} passed"
done
stop_all
