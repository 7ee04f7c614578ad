#!/bin/bash
# c09_anvilctl.sh -- anvilctl's commands while a run is active and others wait.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say "echo begun; $HOLD; echo 'has ended'" >/dev/null
make_steps_repo "$T/bad" say "exit 3" >/dev/null
start_all runs.max_concurrent=1
sign_in
project=$(new_project hello "file://$T/src")
bad=$(new_project bad "file://$T/bad")
first=$(trigger "$project")
second=$(trigger "$project")
wait_for 20 "is_status $first running"

# Each command prints something for people, and JSON for programs.
both() {	# COMMAND...
	expect_exit 0 ctl "$@"
	cp "$T/out" "$T/text"
	[ -s "$T/text" ] || fail "$*: prints nothing"
	! grep -q $'\033' "$T/text" || fail "$*: colours without a terminal"
	expect_exit 0 ctl "$@" --json
	jq -e . "$T/out" >/dev/null || fail "$* --json: $(head -c 500 "$T/out")"
}
both ps
for address in supervisor ingress project/0 project/1 "run/$first"; do
	grep -q "^$address " "$T/text" || fail "ps: no $address in $(cat "$T/text")"
	expect_match "$(pid_of "$address")" '^[0-9]+$' "pid of $address"
done
expect "$(pid_of supervisor)" "$ANVILD" "pid of the supervisor"
for actor in supervisor ingress project/0 "run/$first" "${first:0:22}"; do
	both inspect "$actor"
done
both queue
expect_in "$(cat "$T/text")" "$first" "queue"
expect_in "$(cat "$T/text")" "$second" "queue"
both queue demo/hello
both queue "$project"
both health
both history
both version
both project list
expect_in "$(cat "$T/text")" demo/hello "project list"
both project show demo/hello
both user list
expect_in "$(cat "$T/text")" demo@example.com "user list"

# call: by name, typed by the description; logs of a run, beginning of its id is enough.
expect_exit 0 ctl call project/0
expect_in "$(cat "$T/out")" project.queue "methods"
expect_exit 0 ctl call supervisor actor.info
expect "$(field address <"$T/out")" supervisor "answer of actor.info"
expect_exit 0 ctl call "run/$first" run.getDetail '{"logBytes":1000}'
expect_exit 1 ctl call supervisor no.such.method
expect_exit 1 ctl call supervisor supervisor.runStatus '{"runId":7}'
expect_match "$(cat "$T/err")" 'runId' "what is wrong"
expect_exit 1 ctl inspect run/run_0000000000000000000000
expect_exit 1 ctl logs run_0000000000000000000000
expect_exit 0 ctl logs "$first"
expect_in "$(cat "$T/out")" begun "log"
# As JSON it is an object a line, as far as it goes, and until it ends.
expect_exit 0 ctl logs "$first" --json
expect "$(jq -r 'select(.stream == "stdout") | .text' "$T/out" | head -1)" begun "log as JSON"
ctl logs "$first" -f --json >"$T/rows" 2>"$T/err" &
rows=$!
ctl logs "$first" -f >"$T/followed" 2>"$T/err" &
follower=$!
ctl run demo/bad --watch >"$T/watched" 2>&1 &
watcher=$!
wait_for 20 "grep -q begun '$T/followed'"

let_go "$first"
has_ended "$first" passed
wait_for 20 "! is_alive $follower"
wait "$follower" || fail "logs -f: $(cat "$T/err")"
wait_for 20 "! is_alive $rows"
wait "$rows" || fail "logs -f --json: $(cat "$T/err")"
expect "$(jq -rj .text "$T/rows")" "$(ctl logs "$first")" "log as JSON"
expect "$(jq -s -c '[(map(.seq) == (map(.seq) | sort)), (map(.step) | unique),
	(map(.time | test("^20[0-9-]+T[0-9:.]+Z$")) | all)]' "$T/rows")" '[true,[null,1],true]' "rows"
expect_exit 0 ctl logs "$first" --json
cmp "$T/out" "$T/rows" || fail "the log of a run that has ended is another"
expect_in "$(cat "$T/followed")" "has ended" "followed log"
wait_for 20 "is_status $second running"
let_go "$second"
has_ended "$second" passed
rc=0
wait_for 30 "! is_alive $watcher"
wait "$watcher" || rc=$?
expect $rc 1 "exit status of run --watch of a failing run: $(cat "$T/watched")"

# run: triggers; the answer names the run.
run=$(ctl run "$bad" --json | field runId)
has_failed "$run" step_failed '*exit code 3.'
expect_exit 1 ctl run demo/no-such-project
# An ended run is answered for, too.
both inspect "run/$first"
expect_exit 0 ctl logs "$first"
expect_in "$(cat "$T/out")" "has ended" "log of an ended run"

# lint: the exit status tells, the messages have places.
expect_exit 0 ctl lint "$T/src/.anvil.yml"
printf 'version: 2\nrun: {steps: []}\n' >"$T/wrong.yml"
expect_exit 1 ctl lint "$T/wrong.yml"
expect_match "$(cat "$T/out" "$T/err")" "wrong.yml:1:10: version: expected" "lint"
expect_exit 1 ctl lint "$T/not-there.yml"
cd "$T/src"
expect_exit 0 ctl lint

# A project by anvilctl; a user who is disabled; a new password.
expect_exit 0 ctl project create demo/made "file://$T/bad"
api GET /api/private/projects | jq -e '[.projects[].projectSlug] | contains(["made"])' >/dev/null ||
	fail "the project that anvilctl made is not there"
expect_exit 0 ctl project rm --yes demo/made
expect "$(cat "$T/out")" "demo/made is being removed" "rm of a project without a run"
expect_exit 2 ctl project give --all-of "" demo
expect_in "$(cat "$T/err")" "--all-of: the slug or id of an owner is needed" "give of nobody's"
expect_exit 0 ctl user disable demo
refused 403 user_disabled GET /api/private/me >/dev/null
expect_exit 0 ctl user enable demo
api GET /api/private/me >/dev/null

third=$(trigger "$project")
wait_for 20 "is_status $third running"
expect_exit 0 ctl project rm --yes demo/hello
expect "$(cat "$T/out")" "demo/hello is being removed; its active run is ended first" "rm"
wait_for 20 "! ctl project list --json | grep -q demo/hello"

# All of it killed: the sockets are still there, and nobody listens.
cut_power
[ -S "$RUNTIME/supervisor.sock" ] || fail "there is no socket left"
for command in ps "project list" health; do
	# shellcheck disable=SC2086 # two words
	expect_exit 3 ctl $command
	expect_in "$(cat "$T/err")" "anvild does not run" "$command"
	expect_in "$(cat "$T/err")" "Start it: " "$command"
done
start_anvild
stop_all

expect_exit 3 ctl ps
expect_in "$(cat "$T/err")" "anvild does not run" "a system that was stopped"
