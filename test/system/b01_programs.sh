#!/bin/bash
# b01_programs.sh -- each program alone: help, version, and what it makes of a wrong command line.
. "$(dirname "$0")/lib.sh"

version=$(cat "$ROOT/proto/VERSION")
for program in anvild anvil-ingress anvil-project anvil-run anvilctl; do
	[ -x "$BUILD/$program" ] || fail "$program is not built"
	for option in --help -h; do
		expect_exit 0 "$BUILD/$program" $option
		grep -qE "^usage: $program( |\$)" "$T/out" || fail "help of $program: $(cat "$T/out")"
		expect "$(cat "$T/err")" "" "standard error of $program $option"
	done
	for option in --version -V; do
		expect_exit 0 "$BUILD/$program" $option
		expect "$(cat "$T/out")" "$program $version" "version of $program"
	done
	usage=64
	[[ $program == anvil-* ]] || usage=2
	expect_exit $usage "$BUILD/$program" --no-such-option
	expect "$(cat "$T/out")" "" "standard output of $program --no-such-option"
	expect_match "$(cat "$T/err")" . "standard error of $program --no-such-option"
done

# The programs that the supervisor starts are not for people: without its descriptors they end.
for command in "anvil-ingress --listen-fds 1" "anvil-project 0" \
	"anvil-run run_0000000000000000000000 --project prj_0000000000000000000000 --shard 0 --spawn 00000000000000000000000000000000" \
	"anvil-run --serve run_0000000000000000000000"; do
	rc=0
	# shellcheck disable=SC2086 # words they are
	timeout 20 "$BUILD/"$command 3<&- 4<&- >"$T/out" 2>"$T/err" </dev/null || rc=$?
	[ $rc != 0 ] && [ $rc != 124 ] && [ $rc -lt 128 ] || fail "$command: exit $rc"
	expect_match "$(cat "$T/err")" . "standard error of $command"
done
for command in "anvil-project" "anvil-project x" "anvil-project 64000" "anvil-run" "anvil-run run_short --project x" \
	"anvil-ingress --listen-fds x" "anvilctl" "anvilctl nothing-of-the-kind" "anvilctl ps too many words" "anvild word"; do
	usage=64
	[[ $command == anvil-* ]] || usage=2
	# shellcheck disable=SC2086 # words they are
	expect_exit $usage "$BUILD/"$command
	expect_match "$(cat "$T/err")" . "standard error of $command"
done

# Nobody is there to answer.
mkdir "$T/empty"
expect_exit 3 "$BUILD/anvilctl" -d "$T/empty" ps
expect_exit 3 "$BUILD/anvilctl" -d "$T/not-there" health
for file in "$T"/reports/*; do
	[ ! -e "$file" ] || fail "report of a sanitizer: $(head -c 4000 "$file")"
done
