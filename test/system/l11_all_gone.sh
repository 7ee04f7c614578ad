#!/bin/bash
# l11_all_gone.sh -- whatever a step has started is gone when it ends, is named in the log, and
# holds neither the next step nor the end of the run up; in both sandboxes.
. "$(dirname "$0")/lib.sh"

mark=27$$	# seconds of sleep, and so the name of our processes

# Each of them is what it is to be before the step ends.
# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/src" \
	leave 'sleep '$mark' &
setsid sleep '$mark' &
(setsid sh -c "(echo >orphan; exec sleep '$mark') &" &)
setsid sh -c "trap \"\" HUP INT QUIT TERM; echo >deaf; while :; do sleep '$mark'; done" &
setsid sh -c "kill -STOP \$\$; sleep '$mark'" &
stopped=$!
setsid bash -c "while :; do sleep '$mark' & sleep 0.05; done" &
until [ -e deaf ] && [ -e orphan ] && grep -q "State:.T" /proc/$stopped/status; do sleep 0.05; done
echo "left them"' \
	look 'pgrep -fc "^sleep '$mark'" || echo "none of them"' >/dev/null
make_steps_repo "$T/held" hold "trap '' TERM; setsid sleep $mark & echo begun
while :; do sleep $mark || true; done" >/dev/null

nobody_left() {
	[ -z "$(pgrep -f "^sleep $mark")" ]
}

look() {
	local run text
	run=$(trigger "$project")
	has_ended "$run" passed
	text=$(log_of "$run")
	expect_in "$text" "left them"
	expect_in "$text" "none of them"
	expect_match "$text" 'Killed [0-9]+ processes left by step "leave": [a-z]+ \([0-9]+\), '
	expect_in "$(grep '^Killed' <<<"$text")" "sleep ("
	nobody_left || fail "$1: $(pgrep -af "$mark")"
	logged step_leftovers_killed "$run" || fail "no event of the leftovers"

	# Lost with all of its life before it, and the next one of the project starts.
	run=$(trigger "$held")
	wait_for 20 "log_of $run | grep -q begun"
	kill -KILL "$(pid_of "run/$run")"
	has_failed "$run" runner_lost '*SIGKILL*'
	wait_for 10 nobody_left
}

start_all
sign_in
project=$(new_project leaves "file://$T/src")
held=$(new_project held "file://$T/held")
# shellcheck disable=SC2034 # lib.sh reads it
killed_some=yes
look bwrap
stop_all
configure runs.sandbox=none
start_anvild
look none
stop_all
