#!/bin/bash
# l14_low_disk.sh -- with too little free space no run starts, anvil says why, and the run goes on
# when there is room again.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" hello 'echo "all is well"' >/dev/null

# Without room anvil is not healthy; that it answers is enough.
healthy() {
	curl -sS -m 5 "http://127.0.0.1:$PORT/healthz" 2>/dev/null | jq -e .status >/dev/null 2>&1
}

start_all runs.min_free_bytes=1000000000000000
sign_in
project=$(new_project hello "file://$T/src")
run=$(trigger "$project")
wait_for 20 "ctl why $run | grep -q low_disk"
expect "$(status_of "$run")" queued "status without room"
[ ! -e "$DATA/runs/$run" ] || fail "the run has begun"
logged disk_low || fail "the log does not say so"
expect_exit 1 ctl health
expect_in "$(cat "$T/out")" low_disk "health"
stop_all

configure runs.min_free_bytes=0
start_anvild
has_ended "$run" passed
stop_all
