#!/bin/bash
# f05_disk_full.sh -- a full disk below data_dir: refused, nothing lost, well again when there is room.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" = 0 ] || skip "only root can mount a small file system"
mkdir "$T/small"
mount -t tmpfs -o size=48m,mode=755 none "$T/small" 2>/dev/null || skip "mounting is not allowed here"
undo() {
	umount -l "$T/small"
}
make_steps_repo "$T/src" say 'echo hello' >/dev/null
start_all data_dir="$T/small/data"
DATA=$T/small/data
sign_in
project=$(new_project hello "file://$T/src")
run=$(trigger "$project")
has_ended "$run" passed
allowed_errors='.*'

fill() {
	cat /dev/zero >"$T/small/ballast" 2>/dev/null || true
}
fill
# What can be read is read; what cannot be stored is refused or stays without effect.
is_status "$run" passed
expect "$(api GET /api/private/me | field user.slug)" demo "session"
accepted=()
refusals=0
for _ in $(seq 40); do
	answer=$(request POST "/api/private/projects/$project/runs" '{}')
	case $(cat "$LAST_STATUS") in
	202) accepted+=("$(field runId <<<"$answer")") ;;
	503)
		expect "$(field error.code <<<"$answer")" storage_unavailable "code"
		refusals=$((refusals + 1))
		[ $refusals -lt 3 ] || break
		;;
	409) break ;;	# the log of the store had room of its own
	*) fail "trigger: $(cat "$LAST_STATUS") $answer" ;;
	esac
	fill
done
if [ $refusals -gt 0 ]; then
	wait_for 10 "! ctl health >'$T/out' && grep -q 'cannot write' '$T/out'"
	expect_exit 1 ctl health
	expect_match "$(cat "$T/out")" "reason: storage_unavailable" "health of a full disk"
	expect_match "$(cat "$T/out")" "note: .* cannot write: $DATA/.*: no space left" "health"
fi
for actor in supervisor ingress project/0 project/1; do
	expect_match "$(pid_of $actor)" '^[0-9]+$' "pid of $actor on a full disk"
done

rm "$T/small/ballast"
for run in "${accepted[@]}"; do
	wait_for 55 "is_over $run"
	case $(detail_of "$run" | field run.failureCode) in
	null | disk_full | runner_lost | dispatch_failed | checkout_failed) ;;
	*) fail "run accepted on the full disk: $(detail_of "$run" | jq -c 'del(.recentLogs)')" ;;
	esac
done
has_ended "$(trigger "$project")" passed
wait_for 10 healthy

# Nor does a start give up on it: it waits for the room.
stop_all
fill
"$BUILD/anvild" -c "$CONF" >>"$LOG" 2>&1 </dev/null &
ANVILD=$!
wait_for 20 "grep -a '\"event\":\"disk_full\"' '$LOG' | grep -q 'starts by itself then' || ! is_alive $ANVILD"
is_alive "$ANVILD" || fail "anvild ended on a full disk: $(tail -n 3 "$LOG")"
rm "$T/small/ballast"
wait_for 30 healthy
has_ended "$(trigger "$project")" passed
stop_all
