#!/bin/bash
# l42_cancel_anywhere.sh -- a cancel at any moment of a run: before, in and between its steps, and
# too late.  The state comes from the intent, the log says it once, and nothing begins after it.
. "$(dirname "$0")/lib.sh"

steps=()
for i in 1 2 3 4 5 6 7 8; do
	steps+=("s$i" "echo $i")
done
make_steps_repo "$T/quick" "${steps[@]}" >/dev/null
# Ends well when it is told to end.
make_steps_repo "$T/kind" kind 'trap "echo told; exit 0" TERM; echo begun; sleep 1000 & wait' \
	never 'echo never' >/dev/null
start_all
sign_in
quick=$(new_project quick "file://$T/quick")
kind=$(new_project kind "file://$T/kind")
canceled=0

cancel() {
	api POST "/api/private/runs/$1/cancel" | field run.status
}

# is_consistent RUN: it was canceled, or had passed when the cancel came.
is_consistent() {
	local text said
	wait_for 40 "is_over $1"
	DETAIL=$(detail_of "$1")
	text=$(log_of "$1")
	said=$(grep -c '^Cancellation requested. Sending SIGTERM.$' <<<"$text") || true
	if [ "$(field run.status <<<"$DETAIL")" = passed ]; then
		expect "$said" 0 "a late cancel in the log"
		expect "$(jq '[.steps[].exitCode] | add' <<<"$DETAIL")" 0 "steps of a run that passed"
		return
	fi
	canceled=$((canceled + 1))
	expect "$(jq -c '[.run.status, .run.exitCode, .failureCode, .errorMessage, .currentStep]' <<<"$DETAIL")" \
		'["canceled",null,"runtime_cancelled",null,null]' "a canceled run"
	# After its last step has passed there is no log any more to write it to.
	[ "$said" = 1 ] || jq -e '[.steps[].status] | all(. == "passed")' <<<"$DETAIL" >/dev/null ||
		fail "the log says $said times that it was canceled: $text"
	# Steps that passed, at most one that was ended, and those that never began.
	expect_match "$(jq -r '[.steps[] | .status[0:1]] | add // ""' <<<"$DETAIL")" '^p*f?q*$' "steps"
	expect "$(sed '1,/^Cancellation requested/d' <<<"$text" | grep -c '^Step ' || true)" 0 \
		"steps that were begun after the cancel"
}

# As soon as the log has come to each of its steps.
for i in 1 2 3 4 5 6 7 8; do
	run=$(trigger "$quick")
	wait_for 20 "log_of $run | grep -q '^Step $i/' || is_over $run"
	expect_match "$(cancel "$run")" '^(cancel_requested|canceling|canceled|passed)$' "answer"
	is_consistent "$run"
done
# At once, as often as anybody likes.
for i in 1 2 3 4; do
	run=$(trigger "$quick")
	for _ in $(seq "$i"); do
		cancel "$run" >/dev/null
	done
	is_consistent "$run"
done
[ $canceled -ge 4 ] || fail "only $canceled runs were canceled"

# Too late.
run=$(trigger "$quick")
has_ended "$run" passed
before=$(detail_of "$run")
expect "$(cancel "$run")" passed "a cancel that is too late"
expect "$(detail_of "$run")" "$before" "the run afterwards"

# An exit status of 0 does not make it pass.
run=$(trigger "$kind")
wait_for 20 "log_of $run | grep -q begun"
cancel "$run" >/dev/null
is_consistent "$run"
has_ended "$run" canceled
expect "$(jq -c '[.steps[] | [.status, .exitCode]]' <<<"$DETAIL")" '[["failed",0],["queued",null]]' "its steps"
expect_in "$(log_of "$run")" $'begun\nCancellation requested. Sending SIGTERM.\ntold' "its last lines"
stop_all
