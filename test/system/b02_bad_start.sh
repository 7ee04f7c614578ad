#!/bin/bash
# b02_bad_start.sh -- what keeps a supervisor from starting: said once, nothing touched.
. "$(dirname "$0")/lib.sh"

# refuses PATTERN [OPTION...]: exit status 1, and why on standard error.
refuses() {
	local pattern=$1
	shift
	expect_exit 1 timeout 20 "$BUILD/anvild" -c "$CONF" "$@"
	expect_match "$(cat "$T/err")" "$pattern" "reason"
}

# -t prints the configuration in force, and what it prints is a configuration.
configure metrics.token=very-secret-word
expect_exit 0 "$BUILD/anvild" -c "$CONF" -t
expect_not_in "$(cat "$T/out")" very-secret-word "effective configuration"
cp "$T/out" "$T/printed.yml"
expect_exit 0 "$BUILD/anvild" -c "$T/printed.yml" -t
[ ! -e "$DATA" ] && [ ! -e "$RUNTIME" ] || fail "-t made directories"

# One line for each mistake, with its place.
conf[shards]=0
conf[runs.sandbox]=chroot
conf[runs.keep_dais]=3
configure
refuses "$CONF:[0-9]+:[0-9]+: shards: "
for what in runs.sandbox runs.keep_dais; do
	expect_match "$(cat "$T/err")" "$CONF:[0-9]+:[0-9]+: $what: " "$what"
done
refuses "runs.sandbox" -t
unset 'conf[runs.keep_dais]'
configure shards=2 runs.sandbox=bwrap
expect_exit 1 "$BUILD/anvild" -c "$T/not-there.yml"
expect_in "$(cat "$T/err")" "$T/not-there.yml" reason
printf 'version: 1\n\tx: y\n' >"$T/broken.yml"
expect_exit 1 "$BUILD/anvild" -c "$T/broken.yml"
expect_match "$(cat "$T/err")" "$T/broken.yml:2:" reason

if [ -n "$ACCOUNT" ]; then
	configure user=no-such-account
	refuses "no-such-account"
	configure user=root
	refuses "root"
	configure user='""'
	refuses "user"
	configure user="$ACCOUNT"
fi

# A port that somebody uses.
if command -v nginx >/dev/null; then
	https_server
	configure listen="[127.0.0.1:$HTTPS_PORT]"
	refuses "127.0.0.1:$HTTPS_PORT.*in use"
	configure listen="[127.0.0.1:$PORT]"
fi

# Keys that are none, and keys that others can read.
rm -rf "$DATA" "$RUNTIME"
as_account_owns() {
	[ -z "$ACCOUNT" ] || chown "$ACCOUNT" "$1"
}
rm -f "$T/keys.json"
echo 'no json' >"$T/keys.json"
chmod 600 "$T/keys.json"
as_account_owns "$T/keys.json"
refuses "$T/keys.json"
rm "$T/keys.json"
echo '{"current":1,"keys":{"1":"short"}}' >"$T/keys.json"
chmod 600 "$T/keys.json"
as_account_owns "$T/keys.json"
refuses "$T/keys.json"
rm "$T/keys.json"
start_all
stop_all
[ "$(stat -c %a "$T/keys.json")" = 600 ] || fail "keys.json has mode $(stat -c %a "$T/keys.json")"
chmod 644 "$T/keys.json"
refuses "$T/keys.json.*(0600|mode)"
chmod 600 "$T/keys.json"

# Directories that others may enter.
chmod 755 "$DATA"
refuses "$DATA.*0700"
chmod 700 "$DATA"

# A second supervisor at the same place is told who the first is.
start_all
refuses "pid $ANVILD"
healthy || fail "the first one is not well any more"
stop_all

# A store from a newer version: the program says so and leaves it alone.
newer_store() {	# FILE: sets user_version in the header of a store
	printf '\0\0\3\347' | dd of="$1" bs=1 seek=60 conv=notrunc status=none
}
cp "$DATA/supervisor.db" "$T/kept.db"
newer_store "$DATA/supervisor.db"
sum=$(sha256sum <"$DATA/supervisor.db")
refuses "newer|999"
expect "$(sha256sum <"$DATA/supervisor.db")" "$sum" "store from a newer version"
expect_exit 1 "$BUILD/anvild" -c "$CONF" --check
cp "$T/kept.db" "$DATA/supervisor.db"
as_account_owns "$DATA/supervisor.db"
start_all
stop_all

# That of a shard stops the start, too: its projects must not look lost.
newer_store "$DATA/project-1.db"
sum=$(sha256sum <"$DATA/project-1.db")
refuses "newer"
expect "$(sha256sum <"$DATA/project-1.db")" "$sum" "store from a newer version"
