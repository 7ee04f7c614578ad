#!/bin/bash
# r02_end_unwritten.sh -- a run that ends while the supervisor's store takes no writes: its rows
# are brought up to that as soon as they can be, and not only by the next supervisor.
. "$(dirname "$0")/lib.sh"

export ANVIL_FAULT_FILE=$T/faults
make_steps_repo "$T/src" wait "$HOLD" >/dev/null
start_all
sign_in
# shellcheck disable=SC2034 # lib.sh reads it
allowed_errors='commit_failed|request_failed'
project=$(new_project hello "file://$T/src")
run=$(trigger "$project")
wait_for 20 "is_status $run running"

echo 'supervisor full' >"$T/faults.new"
mv "$T/faults.new" "$T/faults"
let_go "$run"
wait_for 30 "logged runner_end_not_recorded $run"
has_ended "$run" passed
rm "$T/faults"
# Among others, whether somebody knows when the run's folder is to go.
wait_for 30 "ctl check >$T/check.out"
stop_all
