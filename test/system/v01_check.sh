#!/bin/bash
# v01_check.sh -- anvilctl check finds nothing in a busy system, names each breach that a hand has
# made, mends what is safe, and looks at the stores of a system that is down.
. "$(dirname "$0")/lib.sh"

need sqlite3
make_steps_repo "$T/one" talk 'echo hello' >/dev/null
start_all runs.max_concurrent=2 shards=2
sign_in
first=$(new_project one "file://$T/one")
second=$(new_project two "file://$T/one")
hooked=$(new_project hooked https://github.com/a/b)
api PUT "/api/private/projects/$hooked/webhooks/github" '{"enabled":true}' >/dev/null

# Nothing is amiss while runs come, go and are canceled.
declare -a runs=()
for _ in $(seq "${V01_ROUNDS:-3}"); do
	for _ in 1 2 3; do
		runs+=("$(trigger "$first")" "$(trigger "$second")")
	done
	ctl cancel "${runs[-1]}" >/dev/null
	expect_exit 0 ctl check
	expect_exit 0 ctl check --json
	expect "$(jq -c '[.ok, .problems, .leftOut]' "$T/out")" "[true,[],0]" "a busy system"
done
for run in "${runs[@]}"; do
	wait_for 60 "is_over $run"
done

# What is found between two things is given less time to come right than in earnest.
export ANVIL_CHECK_HOLD=20

codes() {	# of the last check with --json, what is mended aside
	jq -r '[.problems[] | select(.mended | not) | .code] | unique | join(" ")' "$T/out"
}

# ---- files that belong to nobody ----

nobody=run_0000000000000000000000
as_account mkdir "$DATA/runs/$nobody" "$DATA/runs/${runs[0]}/ws" \
	"$DATA/cache/prj_0000000000000000000000.git"
as_account touch "$RUNTIME/$nobody.sock" "$DATA/runs/${runs[0]}/ws/file"
expect_exit 1 ctl check --json
expect "$(codes)" "mirror_orphan run_folder_unknown socket_orphan workspace_left" "orphans"
expect "$(jq -r '.problems[] | select(.code == "workspace_left") | .subject' "$T/out")" "${runs[0]}"
[ -e "$DATA/runs/${runs[0]}/ws/file" ] || fail "check without --fix has changed something"
expect_exit 0 ctl check --fix
expect_in "$(cat "$T/out")" "mended" "orphans with --fix"
[ ! -e "$DATA/runs/${runs[0]}/ws" ] || fail "ws is still there"
[ -d "$DATA/runs/$nobody" ] || fail "a folder of a run was removed before its time"
expect_exit 0 ctl check

# A link is followed by nobody, wherever it leads.
linked=run_1111111111111111111111
as_account mkdir "$T/data/elsewhere" "$T/data/elsewhere/ws"
as_account ln -s "$DATA/elsewhere" "$DATA/runs/$linked"
expect_exit 0 ctl check --fix
expect "$(cd "$DATA/elsewhere" && find . | sort | xargs)" ". ./ws" "what a link leads to"
rm "$DATA/runs/$linked"

# ---- stores that a hand has been in ----

stop_anvild
in_store() {	# FILE SQL
	as_account sqlite3 "$DATA/$1" "PRAGMA ignore_check_constraints = ON; $2"
}
shard_of() {	# PROJECT
	local n
	for n in 0 1; do
		[ "$(in_store "project-$n.db" \
			"SELECT count(*) FROM project_config WHERE project_id = '$1'")" = 0 ] || echo $n
	done
}
ledger=project-$(shard_of "$first").db
in_store "$ledger" "DROP TRIGGER project_state_grows; DROP TRIGGER project_runs_terminal_stays;
	UPDATE project_state SET next_seq = 1 WHERE project_id = '$first';
	UPDATE project_runs SET exit_code = 3 WHERE run_id = '${runs[0]}';
	CREATE TRIGGER project_runs_terminal_stays BEFORE UPDATE ON project_runs
	WHEN OLD.status = 'passed' BEGIN SELECT RAISE(ABORT, 'stays'); END"
in_store ingress.db "DELETE FROM run_index WHERE run_id = '${runs[2]}';
	UPDATE run_index SET status = 'failed', exit_code = 1, failure_code = 'step_failed',
	    error_message = 'no' WHERE run_id = '${runs[4]}';
	UPDATE project_index SET name = 'another' WHERE project_id = '$hooked';
	INSERT INTO run_index (run_id, project_id, rev, trigger_type, triggered_by_user_id, branch,
	    status, queued_at) SELECT '$nobody', project_id, 1, trigger_type, triggered_by_user_id,
	    branch, 'queued', queued_at FROM run_index WHERE run_id = '${runs[4]}';
	INSERT INTO sessions VALUES ('$(printf '%064d' 7)', 'usr_0000000000000000000000', 1,
	    99999999999999, 1)"
as_account sqlite3 "$DATA/runs/${runs[3]}/run.db" "DROP TRIGGER log_only_grows;
	UPDATE log_state SET next_seq = next_seq + 1"

# Down: each store by its own program.
down() {
	"$BUILD/anvilctl" -c "$CONF" "$@"
}
expect_exit 1 down check --json
expect "$(codes)" "foreign_key log_seq project_next_seq run_row session_orphan" "a system that is down"
expect_in "$(cat "$T/err")" "does not run" "a system that is down"
expect_exit 1 down check --fix
expect_exit 3 "$BUILD/anvilctl" -d "$RUNTIME" check

start_anvild
expect_exit 1 ctl check --json
for code in foreign_key index_project_differs index_run_differs index_run_missing index_run_unknown log_seq \
	project_next_seq run_row session_orphan; do
	expect_in " $(codes) " " $code " "breaches"
done
# A webhook whose project is mended is never said not to be there.
while [ ! -e "$T/mended" ]; do
	curl -sS -m 20 -o /dev/null -w '%{http_code}\n' -d '{}' -H 'Content-Type: application/json' \
		-H 'X-GitHub-Event: ping' -H 'X-GitHub-Delivery: 1' -H "X-Hub-Signature-256: sha256=$(printf '%064d' 0)" \
		"http://127.0.0.1:$PORT/api/public/hooks/github/demo/hooked" >>"$T/hooked" || true
	sleep 0.05
done &
expect_exit 1 ctl check --fix --json
touch "$T/mended"
wait $!
expect "$(sort -u "$T/hooked")" 401 "answers of a webhook meanwhile"
expect "$(api GET "/api/private/projects" | jq -c '[.projects[].name] | sort')" '["hooked","one","two"]' "names"
expect "$(codes)" "log_seq" "what cannot be mended"
expect_exit 1 ctl check --json
expect "$(jq -c '[.problems[] | [.code, .place]]' "$T/out")" "[[\"log_seq\",\"run/${runs[3]}\"]]" \
	"what cannot be mended"
expect "$(status_of "$nobody")" failed "a run that no ledger knew"
expect "$(status_of "${runs[4]}")" passed "a run that the index had wrong"
for event in problem_mended orphan_swept; do
	logged "$event" >/dev/null || fail "no event $event"
done
stop_all
