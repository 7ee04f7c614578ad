#!/bin/bash
# l40_step_fills_disk.sh -- a step that fills the disk fails its own run as disk_full; the run
# beside it goes on, and so does anvil; the next run finds room.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip "only root can mount a small file system"
mkdir "$T/small"
mount -t tmpfs -o size=96m,mode=755 none "$T/small" 2>/dev/null || skip "mounting is not allowed here"
undo() {
	umount -l "$T/small"
}

# The neighbour writes all the while, and so feels the full disk as soon as the other.
# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/neighbour" \
	tick 'i=0; until [ -e "$HOME/go" ]; do i=$((i + 1)); echo "tick $i"; sleep 0.2; done; echo "ticks: $i"' >/dev/null
# shellcheck disable=SC2016
make_steps_repo "$T/hog" \
	fill 'echo begun; cat /dev/zero >big || echo "no more room"
until [ -e "$HOME/go" ]; do echo "goes on"; sleep 0.2; done' \
	never 'echo never' >/dev/null
start_all data_dir="$T/small/data"
DATA=$T/small/data
sign_in
neighbour=$(new_project neighbour "file://$T/neighbour")
hog=$(new_project hog "file://$T/hog")
# shellcheck disable=SC2034 # lib.sh reads it
allowed_errors='store_.*|request_failed|index_sync_failed'

beside=$(trigger "$neighbour")
wait_for 20 "log_of $beside | grep -q 'tick 3'"
run=$(trigger "$hog")
wait_for 60 "logged store_full $run && logged store_full $beside"
for actor in supervisor ingress project/0 project/1; do
	expect_match "$(pid_of $actor)" '^[0-9]+$' "pid of $actor on a full disk"
done
expect "$(status_of "$beside")" running "status of the neighbour on a full disk"

wait_for 60 "is_over $run"
has_failed "$run" disk_full "The server's disk is full."
expect "$(jq -c '[.run.exitCode, (.steps | map(.status))]' <<<"$DETAIL")" '[1,["failed","queued"]]' \
	"the run that has filled the disk"
wait_for 20 "[ ! -e $DATA/runs/$run/ws ]"
wait_for 20 "logged store_writable $beside"
expect "$(status_of "$beside")" running "status of the neighbour afterwards"
let_go "$beside"
has_ended "$beside" passed

# Not one of its lines is missing.
text=$(log_of "$beside")
ticks=$(sed -n 's/^ticks: //p' <<<"$text")
expect "$(grep '^tick ' <<<"$text" | tr '\n' ' ')" "$(seq -f 'tick %.0f' -s ' ' "$ticks") " "its lines"

run=$(trigger "$neighbour")
wait_for 20 "is_status $run running"
let_go "$run"
has_ended "$run" passed
stop_all
