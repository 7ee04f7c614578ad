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
	ctl queue >"$T/out" || fail "the shards do not say what they do: $(cat "$T/out")"
	all_well
done

healthz() {
	curl -sS -m 5 "http://127.0.0.1:$PORT/healthz"
}

# The supervisor cannot record a process: none is made, and nobody is to blame.
for what in full io; do
	fault "supervisor $what"
	attempt "${on[0]}"
	attempt "${on[1]}"
	expect "${#accepted[@]}" 2 "runs accepted meanwhile"
	is_status "${accepted[0]}" queued
	wait_for 10 "healthz | jq -e '.reasons | index(\"storage_unavailable\")' >/dev/null"
	all_well
done
expect "$(grep -ac '"event":"run_dispatch_failed"' "$LOG")" 0 "dispatch failures"

stop_all
