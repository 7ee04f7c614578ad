#!/bin/bash
# f07_abandon.sh -- anvilctl abandon sends SIGKILL first, and says what there is to give up.
. "$(dirname "$0")/lib.sh"
make_steps_repo "$T/src" wait "echo begun; $HOLD" >/dev/null
start_all runs.max_concurrent=1
sign_in
project=$(new_project hello "file://$T/src")
run=$(trigger "$project")
next=$(trigger "$project")
wait_for 30 "is_status $run running"

# One that ends by it is not given up.
expect "$(ctl abandon "$run" --json | jq -r .outcome)" killed "outcome"
has_failed "$run" runner_lost '*signal 9 (SIGKILL)*'
wait_for 30 "is_status $next running"
let_go "$next"
wait_for 30 "is_over $next"

# Nobody executes it any more.
expect_exit 1 ctl abandon "$next"
expect_in "$(cat "$T/out" "$T/err" 2>/dev/null)" "no process executes $next" "abandon"
expect_exit 2 ctl abandon
killed_some=yes
allowed_errors='actor_exited'
stop_all
