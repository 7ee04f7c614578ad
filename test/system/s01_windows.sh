#!/bin/bash
# s01_windows.sh -- each store in turn cannot be written for a while: refused, nothing lost, the
# others serve, and well again by itself.
. "$(dirname "$0")/lib.sh"

export ANVIL_FAULT_FILE=$T/faults
fault() {	# LINE...: what fails from now on
	printf '%s\n' "$@" >"$T/faults.new"
	mv "$T/faults.new" "$T/faults"
}

make_steps_repo "$T/src" say 'echo hello' >/dev/null
# More than the rows of a log hold, in parts.
# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/long" print 'for part in 1 2 3; do
	seq -f "part $part line %.0f" 60000
	for i in $(seq 600); do [ ! -e "$HOME/go$part" ] || break; sleep 0.05; done
done' >/dev/null
start_all
sign_in
allowed_errors='.*'

declare -A on=()	# shard -> project
for slug in one two; do
	project=$(new_project $slug "file://$T/src")
	on[$(grep -a "project_confirmed.*$project" "$LOG" | jq .shard)]=$project
done
has_ended "$(trigger "${on[0]}")" passed
fault "project-0 full"
request POST "/api/private/projects/${on[0]}/runs" '{}' >/dev/null
[ "$(cat "$LAST_STATUS")" = 503 ] || skip "this build has no faults"

accepted=()
attempt() {	# PROJECT: a run is accepted, or whoever asks is told to come again
	local answer
	answer=$(request POST "/api/private/projects/$1/runs" '{}')
	case $(cat "$LAST_STATUS") in
	202) accepted+=("$(field runId <<<"$answer")") ;;
	503) expect_match "$(field error.code <<<"$answer")" '^(storage|shard)_unavailable$' "code" ;;
	*) fail "trigger: $(cat "$LAST_STATUS") $answer" ;;
	esac
}

healthz() {
	curl -sS -m 5 "http://127.0.0.1:$PORT/healthz"
}

tells_full() {	# ACTOR FILE: health names who cannot write, what, and what helps
	wait_for 10 "healthz | jq -e '.reasons | index(\"storage_unavailable\")' >/dev/null"
	wait_for 10 "! ctl health >'$T/out' && grep -q 'note: $1 cannot write' '$T/out'"
	expect_exit 1 ctl health
	expect_match "$(cat "$T/out")" "reason: storage_unavailable" "health"
	expect_match "$(cat "$T/out")" \
		"note: $1 cannot write: .*/$2: no space left on its disk; make room" "health"
	expect_exit 1 ctl health --json
	expect "$(jq -c .reasons "$T/out")" '["storage_unavailable"]' "health --json"
}

# What was accepted meanwhile ends as if nothing had been.
all_well() {
	local run shard
	fault ""
	wait_for 30 healthy
	# Now, and not at the next re-check, which comes every 30 s.
	for shard in 0 1; do
		ctl call project/$shard project.kick '{"projectId":null}' >/dev/null
	done
	for run in "${accepted[@]}"; do
		has_ended "$run" passed
	done
	accepted=()
	has_ended "$(trigger "${on[0]}")" passed
}

for what in full sync readonly; do
	fault "project-0 $what"
	for _ in 1 2 3; do
		attempt "${on[0]}"
	done
	expect "${#accepted[@]}" 0 "runs accepted by a shard that cannot write ($what)"
	[ "$what" != full ] || tells_full project/0 project-0.db
	has_ended "$(trigger "${on[1]}")" passed
	expect "$(api GET "/api/private/me" | field user.slug)" demo "index meanwhile"
	all_well
done

for what in full io; do
	fault "ingress $what"
	for slug in x y; do
		refused 503 storage_unavailable POST /api/private/projects \
			"{\"projectSlug\":\"$slug\",\"name\":\"x\",\"repoUrl\":\"file://$T/src\",\"defaultBranch\":\"main\"}" >/dev/null
	done
	attempt "${on[0]}"
	attempt "${on[1]}"
	[ "$what" != full ] || tells_full ingress ingress.db
	ctl queue >"$T/out" || fail "the shards do not say what they do: $(cat "$T/out")"
	all_well
done

# The supervisor cannot record a process: none is made, and nobody is to blame.
for what in full io; do
	fault "supervisor $what"
	attempt "${on[0]}"
	attempt "${on[1]}"
	expect "${#accepted[@]}" 2 "runs accepted meanwhile"
	is_status "${accepted[0]}" queued
	wait_for 10 "healthz | jq -e '.reasons | index(\"storage_unavailable\")' >/dev/null"
	[ "$what" != full ] || tells_full supervisor supervisor.db
	all_well
done
expect "$(grep -ac '"event":"run_dispatch_failed"' "$LOG")" 0 "dispatch failures"

# A run's log: what was seen stays, what could not be stored waits, and other runs go on.
run=$(trigger "$(new_project long "file://$T/long")")
for part in 1 2 3; do
	seq -f "part $part line %.0f" 60000
done >"$T/want"
parts() {
	log_of "$run" | grep -a '^part'
}
has_part() {
	parts >"$T/parts" && [ "$(tail -n 1 "$T/parts")" = "part $1 line 60000" ]
}
nwaits=0
waits() {	# PART RULE: it is let go on with the next part, and cannot store what comes
	fault "$2"
	touch "$DATA/runs/$run/home/go$1"
	nwaits=$((nwaits + 1))
	wait_for 20 "[ \"\$(grep -ac '\"event\":\"store_full\".*$run' '$LOG')\" = $nwaits ]"
	[ "$1" != 1 ] || has_ended "$(trigger "${on[0]}")" passed
	is_status "$run" running || fail "a run with a log that is not stored: $(status_of "$run")"
	head -n $(($1 * 60000)) "$T/want" >"$T/seen"
	parts >"$T/parts"
	cmp -n "$(stat -c %s "$T/seen")" "$T/parts" "$T/seen" || fail "what was seen has changed ($2)"
	fault '*/log.zst short'
}
fault '*/log.zst short'
wait_for 20 "has_part 1"
waits 1 "$run/log.zst full"
wait_for 20 "has_part 2"
waits 2 "$run* write"
wait_for 20 "has_part 3"
# The end is not told before the log is on disk.
waits 3 "$run/log.zst sync"
has_ended "$run" passed
parts >"$T/parts"
cmp "$T/parts" "$T/want" || fail "the log is not what was printed"

stop_all
