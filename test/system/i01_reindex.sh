#!/bin/bash
# i01_reindex.sh -- an index that is lost comes back from the shards by itself, whoever dies
# meanwhile; what happens during that is right afterwards; projects that nobody knows go.
. "$(dirname "$0")/lib.sh"

ROWS=5000
ORDER=$T/order/point
mkdir "$T/order"
chmod 777 "$T/order"
export ANVIL_CRASH_FILE=$ORDER
need sqlite3
make_steps_repo "$T/src" say "echo begun; $HOLD; echo ended" >/dev/null
start_all shards=2
sign_in
for name in one two three four; do
	new_project $name "file://$T/src" >>"$T/projects"
done
mapfile -t projects <"$T/projects"
run=$(trigger "${projects[0]}")
wait_for 20 "is_status $run running"
waits=$(trigger "${projects[0]}")
let_go "$run"
has_ended "$run" passed
let_go "$waits"
has_ended "$waits" passed

index() {	# SQL: while nobody has it open
	as_account sqlite3 "$DATA/ingress.db" "$1"
}

down() {
	kill -TERM "$ANVILD"
	wait "$ANVILD" || fail "anvild did not stop in order"
	ANVILD=
}

# An old history: rows that ended long before, of a project on each shard.
fill() {	# SHARD PROJECT
	as_account sqlite3 "$DATA/project-$1.db" "
	PRAGMA foreign_keys = ON;
	BEGIN;
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $((ROWS / 2)))
	INSERT INTO project_runs (run_id, project_id, accept_seq, position, status, public_status,
	    dispatch_status, dispatch_attempts, trigger_type, triggered_by_user_id, branch, repo_url,
	    config_path, queued_at, lease_epoch, index_sync, index_rev, index_since, index_attempt)
	SELECT printf('run_$1%021d', i), '$2', i + 1000, i + 1000, 'pending', 'queued', 'blocked', 0,
	    'manual', (SELECT owner_user_id FROM project_config WHERE project_id = '$2'), 'main',
	    'file:///nowhere', '.anvil.yml', 1000 + i, 0, 'needs_create', 1, 1000, 0 FROM n;
	UPDATE project_runs SET status = 'canceled', public_status = 'canceled', position = NULL,
	    dispatch_status = 'terminal', finished_at = 2000, failure_code = 'runtime_cancelled',
	    cancel_requested_at = 2000, cancel_by = 'operator', index_rev = 2,
	    index_sync = 'needs_terminal_update' WHERE queued_at < 1000000;
	UPDATE project_runs SET index_sync = 'done', done_at = 4102444800000
	    WHERE queued_at < 1000000;
	COMMIT;"
}

down
declare -A project_of
for shard in 0 1; do
	project_of[$shard]=$(as_account sqlite3 "$DATA/project-$shard.db" \
		"SELECT project_id FROM project_config ORDER BY project_id LIMIT 1")
	fill $shard "${project_of[$shard]}"
done

# ---- what is there ---------------------------------------------------------------------

# rebuilt: waits until no rebuild is left.
rebuilt() {
	wait_for 60 "ctl call ingress index.status 2>/dev/null >$T/status.json &&
		jq -e '.running == false and .complete' $T/status.json >/dev/null"
}

# ordered to die: whoever comes to POINT for the SKIP+1-th time.
order() {	# POINT SKIP
	rm -f "$ORDER.hit"
	echo "$1 $2" >"$ORDER.new"
	chmod 666 "$ORDER.new"
	mv "$ORDER.new" "$ORDER"
}

owner=$(as_account sqlite3 "$DATA/project-0.db" "SELECT owner_user_id FROM project_config LIMIT 1")

# ---- the store is lost -----------------------------------------------------------------

killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed'
rm "$DATA"/ingress.db*
order index_rebuild_began 0
"$BUILD/anvild" -c "$CONF" >>"$LOG" 2>&1 </dev/null &
ANVILD=$!
# One death after the other, of one job.
for point in "index_rebuild_page 5" "index_page_read 5" "index_rebuild_pruned 0" \
	"index_rebuild_ended 0"; do
	wait_for 40 "[ -e $ORDER.hit ]"
	# shellcheck disable=SC2086 # a point and a number
	order $point
done
wait_for 40 "[ -e $ORDER.hit ]"
rebuilt
wait_for 30 healthy
expect "$(ctl project list --json | jq length)" 4 "projects that came back"
logged index_rebuild_started '"resumed":1' || fail "no rebuild went on after a death"
expect_exit 0 ctl reindex
expect_match "$(cat "$T/out")" \
	'^the index has 4 projects and 5[0-9]{3} runs of 2 shards; it took '
expect_in "$(cat "$T/out")" "the owners of 4 projects are not among the users"
wait_for 10 "logged project_owners_missing"

# Accounts are lost.  One that is made anew, with the same slug, gets what is named to it.
expect_in "$(ctl health)" "projects that belong to no account: 4" "health"
sign_in
expect_in "$(cat "$T/out")" "anvilctl project give" "a user made anew"
expect "$(api GET /api/private/projects | jq '.projects | length')" 0 "projects of the new account"
expect_exit 1 ctl check --json
ownerless() {	# of the last check
	jq -r '[.problems[] | select(.code == "project_without_owner").subject] | sort | join(" ")' "$T/out"
}
expect "$(ownerless)" "$(printf '%s\n' "${projects[@]}" | sort | paste -sd' ')" "check"
expect_in "$(cat "$T/out")" "$owner, which is no account: \`anvilctl project give demo/one USER\`" "check"
expect_exit 0 ctl project give demo/one demo
expect_in "$(cat "$T/out")" "demo/one belongs to demo" "give"
expect_not_in "$(cat "$T/out")" "webhooks" "give without another name"
expect_exit 0 ctl project give --all-of "$owner" demo
expect "$(grep -c belongs "$T/out")" 3 "projects that were given"
expect_exit 1 ctl project give --all-of "$owner" demo
expect_exit 2 ctl project give demo
expect_exit 1 ctl check --json	# the history made above is not whole
expect "$(ownerless)" "" "check"
expect_not_in "$(ctl health --json)" "no account" "health"
expect "$(api GET /api/private/projects | jq '.projects | length')" 4 "projects of the new account"
printf 'a long password\n' | ctl user bootstrap heir heir@example.com >/dev/null
expect_exit 0 ctl project give demo/one heir
expect_in "$(cat "$T/out")" "/api/public/hooks/PROVIDER/heir/one" "give with another name"
expect_exit 0 ctl project give heir/one demo@example.com --json
expect "$(jq -c '[.project.ownerSlug, .formerOwnerSlug]' "$T/out")" '["demo","heir"]' "give --json"
down
for shard in 0 1; do
	expect "$(index "SELECT count(*) FROM run_index WHERE run_id GLOB 'run_${shard}0*'
	    AND status = 'canceled'")" $((ROWS / 2)) "old runs of shard $shard"
done
expect "$(index "SELECT group_concat(status) FROM run_index
    WHERE run_id IN ('$run', '$waits')")" passed,passed "runs"

# ---- the store comes from a backup, and things happen meanwhile -------------------------

index "UPDATE run_index SET run_id = 'run_9000000000000000000009' WHERE run_id = '$waits';
    PRAGMA application_id = $(sed -n 's/^#define STORE_RESTORED_MARK *\([0-9a-fx]*\).*/\1/p' \
	"$ROOT/lib/store/mark.h")"
start_anvild
# While shards are read nobody hears that there is no such project; a run begins and ends.
known() {	# PROJECT
	request GET "/api/private/projects/$1" >/dev/null
	[ "$(cat "$LAST_STATUS")" != 404 ] || fail "a project was denied while the index is filled"
	[ "$(cat "$LAST_STATUS")" = 200 ]
}
wait_for 20 "known ${projects[1]}"
one=$(trigger "${projects[1]}")
wait_for 20 "is_status $one running"
let_go "$one"
has_ended "$one" passed
rebuilt
expect "$(jq -c '[.reason, .ownersMissing]' "$T/status.json")" '["restored",0]' "status"
refused 404 run_not_found GET /api/private/runs/run_9000000000000000000009 >/dev/null
expect "$(status_of "$waits")" passed "run that the copy did not have"
wait_for 20 "[ \"\$(api GET /api/private/projects/${projects[1]}/runs | field 'runs[0].status')\" = passed ]"
expect "$(api GET /api/private/projects | jq '.projects | length')" 4 "projects in the list"

# ---- by hand ---------------------------------------------------------------------------

# A project that no shard knows goes with its runs; one that is being made does not.
down
index "INSERT INTO project_index SELECT 'prj_0000000000000000000009', owner_user_id, owner_slug,
    'ghost', name, repo_url, default_branch, config_path, 1, 1, 1, 1, 1, 0, badge_public, NULL FROM project_index LIMIT 1;
    UPDATE project_index SET name = 'damaged', rev = 0 WHERE project_id = '${projects[0]}';
    DELETE FROM run_index WHERE run_id = '$run';"
start_anvild
expect_exit 0 ctl reindex --json
expect "$(jq -c '[.complete, .running, .reason, .removed]' "$T/out")" '[true,false,"asked",1]' "--json"
expect "$(api GET "/api/private/projects/${projects[0]}" | field project.name)" one "name"
expect "$(api GET "/api/private/projects" | jq -c '[.projects[].name] | sort')" \
	'["four","one","three","two"]' "names"
expect "$(api GET "/api/private/projects/${projects[0]}/runs?limit=100" |
	jq --arg run "$run" '[.runs[] | select(.id == $run)] | length')" 1 "the run that was deleted"

# ---- a shard is away -------------------------------------------------------------------

# It keeps the job from ending, and nothing else.  What it may have is not denied meanwhile.
pid=$(pid_of project/1)
kill -STOP "$pid" "$ANVILD"
edge=$(pgrep -P "$ANVILD" -f "^$BUILD/anvil-ingress")
kill -KILL "$edge"
wait_for 10 "! is_alive $edge"
index "DELETE FROM run_index; DELETE FROM project_index"
kill -CONT "$ANVILD"
wait_for 30 "[ \"\$(ctl call ingress index.status 2>/dev/null | jq .shardsRead)\" = 1 ]"
expect "$(ctl call ingress index.status | jq -c '[.running, .complete]')" "[true,false]" "status"
expect "$(api GET "/api/private/projects/${project_of[0]}" | field project.id)" "${project_of[0]}" \
	"project of the shard that is there"
refused 503 shard_unavailable GET "/api/private/projects/${project_of[1]}" >/dev/null
refused 503 shard_unavailable GET "/api/private/runs/run_1000000000000000000001" >/dev/null
refused 503 shard_unavailable POST /api/public/hooks/github/demo/nobody '{}' -H 'X-GitHub-Event: ping' \
	-H 'X-GitHub-Delivery: 1' -H "X-Hub-Signature-256: sha256=$(printf '%064d' 0)" >/dev/null
expect_exit 1 ctl project show demo/nobody
refused 503 shard_unavailable POST /api/private/projects \
	'{"projectSlug":"five","name":"five","repoUrl":"https://example.com/a","defaultBranch":"main"}' >/dev/null
kill -CONT "$pid"
rebuilt
expect "$(api GET "/api/private/projects/${project_of[1]}" | field project.id)" "${project_of[1]}" \
	"project of the shard that was away"
refused 404 project_not_found GET /api/private/projects/prj_0000000000000000000009 >/dev/null
new_project five "file://$T/src" >/dev/null

# ---- a project with an old history goes, bit by bit -------------------------------------

expect_exit 0 ctl project move "${project_of[0]}" 1
expect_exit 0 ctl project rm --yes "${project_of[0]}"
wait_for 30 "logged project_removed ${project_of[0]}"
wait_for 30 "[ \"\$(ctl call project/0 actor.inspect | jq '.state.moves | length')\" = 0 ]"
down
expect "$(as_account sqlite3 "$DATA/project-0.db" "SELECT count(*) FROM project_runs
    WHERE run_id GLOB 'run_00*'")" 0 "runs that were left behind"
expect "$(as_account sqlite3 "$DATA/project-1.db" "SELECT count(*), count(*) FILTER
    (WHERE run_id GLOB 'run_10*') FROM project_runs WHERE run_id GLOB 'run_[01]0*'")" \
	"$((ROWS / 2))|$((ROWS / 2))" "runs of those that stay"
start_anvild
stop_all
