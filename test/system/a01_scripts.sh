#!/bin/bash
# a01_scripts.sh -- the scripts that everything else stands on do what they say.
. "$(dirname "$0")/lib.sh"
cd "$ROOT"

# setup.sh: names packages, changes nothing when asked not to, refuses what it does not know.
expect_exit 0 scripts/setup.sh --list build
grep -qx libsqlite3-dev "$T/out" || fail "no libsqlite3-dev in the list of build"
expect_exit 0 scripts/setup.sh --list build test lint bench
expect "$(sort -u "$T/out")" "$(cat "$T/out")" "packages, sorted and once each"
for package in bubblewrap nginx-light fcgiwrap jq shellcheck; do
	grep -qx "$package" "$T/out" || fail "no $package in the list"
done
expect_exit 0 scripts/setup.sh --help
expect_exit 2 scripts/setup.sh
expect_exit 2 scripts/setup.sh --list nothing-of-the-kind

# A machine on which nothing is installed: --check says so and what to do, and installs nothing.
mkdir "$T/bin"
printf '#!/bin/sh\nexit 1\n' >"$T/bin/dpkg-query"
printf '#!/bin/sh\necho "$0 $*" >>"%s/called"\nexit 1\n' "$T" >"$T/bin/apt-get"
cp "$T/bin/apt-get" "$T/bin/sudo"
chmod 755 "$T"/bin/*
expect_exit 1 env PATH="$T/bin:$PATH" scripts/setup.sh --check build
expect_in "$(cat "$T/err")" "libgit2-dev" "packages that are missing"
expect_in "$(cat "$T/err")" "scripts/setup.sh build" "the way out"
[ ! -e "$T/called" ] || fail "--check called: $(cat "$T/called")"

# embed-schema.sh: numbers without a gap, in order; text as it was.
mkdir "$T/schema"
printf 'CREATE TABLE a (b TEXT) STRICT; -- "quoted" \\ back\n' >"$T/schema/0001_first.sql"
echo 'CREATE TABLE c (d TEXT) STRICT;' >"$T/schema/0002_second.sql"
expect_exit 0 sh scripts/embed-schema.sh thing "$T/schema/0001_first.sql" "$T/schema/0002_second.sql"
expect_in "$(cat "$T/out")" 'schema_thing_count = 2' "count"
expect_in "$(cat "$T/out")" '\"quoted\" \\ back' "text in quotes"
mv "$T/schema/0002_second.sql" "$T/schema/0003_third.sql"
expect_exit 1 sh scripts/embed-schema.sh thing "$T/schema/0001_first.sql" "$T/schema/0003_third.sql"
expect_in "$(cat "$T/err")" "0002" "what is missing"
expect_exit 1 sh scripts/embed-schema.sh thing "$T/schema/0003_third.sql" "$T/schema/0001_first.sql"

# run-tests.sh: counts, the time limit, and the exit status.
list() {
	printf 'one\tgood\t20\ttrue\none\tmissing\t20\texit 77\n'
	[ -z "${1-}" ] || printf 'one\tbad\t20\techo why it failed; false\none\tslow\t1\tsleep 60\n'
}
list >"$T/list"
expect_exit 0 bash -c "scripts/run-tests.sh '$T/log' 2 <'$T/list'"
expect "$(tail -n 1 "$T/out")" "1 passed, 0 failed, 1 skipped" "closing line"
list all >"$T/list"
expect_exit 1 bash -c "scripts/run-tests.sh '$T/log' 2 <'$T/list'"
expect "$(tail -n 1 "$T/out")" "1 passed, 2 failed, 1 skipped" "closing line"
expect_in "$(cat "$T/out")" "why it failed" "end of the log of a failed test"
expect_exit 1 bash -c "scripts/run-tests.sh '$T/log' </dev/null"

# check-layers.sh, when it is there, holds of the tree as it is.
expect_exit 0 scripts/check-layers.sh
