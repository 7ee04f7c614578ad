#!/bin/bash
# soak.sh BUILDDIR [SECONDS [SEED [PACE]]]: anvil under load for so long while its processes are
# killed and stopped, its disk fills up and its clock jumps, by a plan that comes from SEED; then
# everything that it acknowledged is compared with what there is.
#
# PACE is milliseconds between two manual runs; deliveries, cancels and changes follow it.  The
# exit status is 1 when something was lost: then the scratch directory stays, with the log, the
# stores and the plan.  As root the disk is a real one that fills up (a small tmpfs), and the
# network is one without a way out; otherwise the faults in the stores have to do.
#
# $ANVIL_BUILD: where the programs are, when not in BUILDDIR.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" = 0 ] && [ -z "${SOAK_ALONE-}" ] && unshare -n true 2>/dev/null; then
	SOAK_ALONE=yes exec unshare -n bash "$0" "$@"
fi
[ -z "${SOAK_ALONE-}" ] || ip link set lo up

driver=$PWD/$1/test/soak/soak
export ANVIL_BUILD=${ANVIL_BUILD:-$PWD/$1}
seconds=${2:-3600}
seed=${3:-1}
pace=${4:-600}

# shellcheck source=test/system/lib.sh
. test/system/lib.sh
[ -x "$driver" ] || fail "$driver is not built"
sandbox_works || skip "bwrap cannot make a sandbox here"

place=$(mktemp -d "${SOAK_DIR:-${TMPDIR:-/tmp}}/anvil-soak.XXXXXX")
chmod 755 "$place"
DATA=$place/data
LOG=$place/anvild.log
disk=
if [ "$(id -u)" = 0 ]; then
	mkdir "$place/disk"
	if mount -t tmpfs -o "size=${SOAK_DISK:-$((96 + seconds / 5))m},mode=755" none "$place/disk" 2>/dev/null; then
		disk=$place/disk
		DATA=$disk/data
	fi
fi
undo() {
	if [ -n "$disk" ]; then
		[ ! -e "$place/lost" ] || cp -a "$DATA" "$place/data"
		umount -l "$disk"
	fi
	[ -e "$place/lost" ] || rm -rf "$place"
}

# What a run does: says that it has begun, where nothing can be lost, and 20 lines; goes on for a
# while; 20 lines more, and that it has ended.  The shell counts by itself: a `seq` that is killed
# would leave a loop without turns, and a step that has passed all the same.
steps() {	# BRANCH TICKS [MORE]
	# shellcheck disable=SC2016 # the step expands it
	local say='say() { echo "$ANVIL_PROJECT $ANVIL_RUN_ID $1" >/dev/udp/127.0.0.1/'$beacons' || true; }
'
	git_in "$T/src" switch -q -C "$1"
	# shellcheck disable=SC2016
	write_steps "$T/src" \
		begin "$say"'say begin; for i in {1..20}; do echo "line $i of $ANVIL_RUN_ID"; done' \
		work "$say"'for i in {1..'"$2"'}; do say tick; sleep 0.05; done; '"${3-}" \
		end "$say"'for i in {21..40}; do echo "line $i of $ANVIL_RUN_ID"; done; say end'
	commit_all "$T/src" "Steps of $1"
}

free_port
beacons=$FREE_PORT
make_empty_repo "$T/src"
commit_all "$T/src" "Begin" >/dev/null
steps long 50 >/dev/null
steps fail 2 'exit 3' >/dev/null
steps loud 4 'for i in {1..2000}; do echo "and this is number $i of many"; done' >/dev/null
commit=$(steps main 3)
cp -r "$T/src" "$place/src"

# A server of git, so that the forges' projects have repositories.
if command -v nginx fcgiwrap openssl >/dev/null; then
	https_server
	serve_repo "$T/src" repo
	git=https://localhost:$HTTPS_PORT
	configure repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
fi
unset "conf[user]"	# all of it runs as that user, so that anvil takes the soak's calls
configure data_dir="$DATA" runtime_dir="$place/run" keys_file="$place/keys.json" \
	runs.max_concurrent=4 limits.public_per_minute_per_address=0
[ -z "$ACCOUNT" ] || chown "$ACCOUNT" "$place" ${disk:+"$disk"}
mkdir "$place/bin"
cp "$ANVIL_BUILD"/anvil* "$driver" "$place/bin"

rc=0
as_account "$place/bin/soak" --seed "$seed" --seconds "$seconds" --pace "$pace" --dir "$place" --conf "$CONF" \
	--data "$DATA" --runtime "$place/run" --programs "$place/bin" --local "$place/src" \
	--commit "$commit" --port "$PORT" --beacons "$beacons" ${git:+--git "$git"} \
	${disk:+--disk "$disk"} || rc=$?
for file in $(sanitizer_reports); do
	cp "$file" "$place"
	rc=1
	echo "LOSS report of a sanitizer: $file"
done
if [ $rc != 0 ]; then
	touch "$place/lost"
	cp "$CONF" "$place"
	echo "soak failed ($rc); what there is: $place; the same again: scripts/soak.sh $1 $seconds $seed $pace"
fi
exit $rc
