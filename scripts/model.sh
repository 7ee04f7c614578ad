#!/bin/bash
# model.sh [--names|--teeth|--replay NAME]: checks test/model with spin, within bounds.
#
# Without an option, every configuration of the table below: all interleavings of its faults.
# --names   only looks whether the functions that the model stands for still exist
# --teeth   breaks the protocol on purpose in each way that state.pml lists; spin has to object
# --replay  runs a configuration or mutant and prints the steps to what was found
set -euo pipefail
cd "$(dirname "$0")/.."

model=test/model/protocol.pml
dir=build/model
memory_mb=3500
seconds=170	# for one configuration

# NAME BOUNDS, by what fails.  ANY_ORDER also tries every order of what is independent.
configurations() {
	cat <<-END
	calm RUNS=3 ANY_ORDER=1
	queue RUNS=3 CANCELS=2 EARLY=1
	shard CRASHES_SHARD=2 EARLY=1
	shard-any-order CRASHES_SHARD=1 ANY_ORDER=1
	supervisor CRASHES_SUPER=2 CRASHES_SHARD=1
	supervisor-any-order CRASHES_SUPER=1 ANY_ORDER=1
	runs KILLS=2 STOPS=1
	runs-any-order KILLS=1 ANY_ORDER=1
	runs-and-shard KILLS=1 CRASHES_SHARD=1
	runs-and-supervisor KILLS=1 CRASHES_SUPER=1
	silence STOPS=2 CRASHES_SHARD=1
	cancel CANCELS=1 KILLS=1 CRASHES_SHARD=1
	cancel-and-supervisor CANCELS=1 CRASHES_SUPER=1
	release RELEASES=1 KILLS=1 CANCELS=1
	release-and-shard RELEASES=1 CRASHES_SHARD=1
	release-and-supervisor RELEASES=1 CRASHES_SUPER=1
	release-and-silence RELEASES=1 STOPS=1
	spawn FAILURES=2 GIVE_UPS=1 KILLS=1
	links ERRORS=2 KILLS=1
	disk LOST_COMMITS=2 KILLS=1
	END
}

# NAME BOUNDS of what is wrong; the names are those of state.pml without M_.
mutants() {
	cat <<-END
	UNFENCED EARLY=1
	CLAIM_BY_ANY KILLS=1 ERRORS=1
	TAKEOVER_UNGUARDED KILLS=1
	LOST_IS_CURRENT KILLS=1
	FINALIZE_UNGUARDED KILLS=1
	REPLY_FIRST CRASHES_SHARD=1
	FORGETS_ACTIVE KILLS=1 CRASHES_SHARD=1
	NO_ASK_AGAIN CRASHES_SUPER=1
	HELD_FOR_EVER RELEASES=1
	FORGOTTEN_EARLY EARLY=1
	SERVE_BESIDE KILLS=1 ERRORS=1
	FORK_BESIDE ERRORS=1
	NO_ADOPTION CRASHES_SUPER=1
	CANCEL_AT_ONCE CANCELS=1
	RELEASE_STARTED RELEASES=1
	STORE_UNREAD KILLS=1
	ASKED_ONCE RUNS=1 LOST_COMMITS=1 EARLY=1
	UNCLAIMED_LEFT STOPS=1
	END
}

# ---- the functions that it stands for ----

names() {
	local file functions function bad=0 n=0

	while IFS=: read -r file functions; do
		for function in $functions; do
			n=$((n + 1))
			grep -qs "^$function(" "$file" && continue
			echo "test/model: there is no $function() in $file any more"
			bad=1
		done
	done < <(sed -n 's/^[ \t]*\(\/\*\|\*\) = \([a-z].*\)$/\2/; s/ *\*\/$//; /^[a-z].*\.c: /p' \
		test/model/*.pml)
	[ $n -ge 100 ] || { echo "test/model: only $n functions named; the pattern is wrong" && bad=1; }
	return $bad
}

# ---- the checker ----

build() {
	local stamp=$dir/stamp

	mkdir -p $dir
	if [ -x $dir/pan ] && [ "$(cat test/model/*.pml scripts/model.sh | cksum)" = \
		"$(cat $stamp 2>/dev/null)" ]; then
		return
	fi
	(cd $dir && spin -a -DENDS "../../$model" >spin.log) || { cat $dir/spin.log && return 1; }
	gcc -O2 -w -DNOREDUCE -DNOFAIR -DVECTORSZ=512 -DMEMLIM=$memory_mb -o $dir/pan $dir/pan.c
	cat test/model/*.pml scripts/model.sh | cksum >$stamp
}

# pan BOUND...: runs it; what it says is in $dir/log.
pan() {
	rm -f $dir/*.trail
	(cd $dir && timeout $seconds env "$@" ./pan -a -n -m100000 -w22) >$dir/log 2>&1 || true
}

# What it found, in a word or two; nothing when all is well.
found() {
	local what

	what=$(sed -n 's/^pan:1: //p' $dir/log)
	if [ -n "$what" ]; then
		echo "$what" | sed 's/ (at depth [0-9]*)$//; s/assertion violated/assertion/;
			s/acceptance cycle/a run never ends/'
	elif ! grep -q 'errors: 0$' $dir/log || grep -q 'max search depth too small' $dir/log ||
		! grep -q 'states, stored' $dir/log || grep -q '^Interrupted\|out of memory' $dir/log; then
		echo "not finished"
	fi
}

figures() {
	local states depth elapsed

	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' $dir/log)
	depth=$(sed -n 's/.*depth reached \([0-9]*\).*/\1/p' $dir/log)
	elapsed=$(sed -n 's/^pan: elapsed time \([0-9.]*\) seconds/\1/p' $dir/log)
	printf '%10s states  depth %4s  %6ss' "${states:-?}" "${depth:-?}" "${elapsed:-0}"
}

properties="single terminal fenced cancel stale kept clean ends"

check_all() {
	local name bounds what bad=0

	while read -r name bounds; do
		# shellcheck disable=SC2086 # the bounds are words
		pan $bounds
		what=$(found)
		[ -z "$what" ] || bad=1
		printf '%-23s %s  %s  %s\n' "$name" "$(figures)" "$properties" "${what:-ok}"
	done < <(configurations)
	[ $bad = 0 ] || echo "model.sh: scripts/model.sh --replay NAME shows how it comes to that" >&2
	return $bad
}

# The number behind the name in state.pml.
number() {
	sed -n "s/^#define $1 \([0-9]*\).*/\1/p" test/model/state.pml
}

# expect_found VARIABLE PREFIX, rows on standard input.
expect_found() {
	local name bounds what bad=0

	while read -r name bounds; do
		# shellcheck disable=SC2086 # the bounds are words
		pan "$1=$(number "$2$name")" $bounds
		what=$(found)
		case $what in
		"" | "not finished") what="NOT found" && bad=1 ;;
		*) what="found: $what" ;;
		esac
		printf '%-20s %s  %.90s\n' "$name" "$(figures)" "$what"
	done
	return $bad
}

# ---- a replay ----

row_of() {
	configurations | sed -n "s/^$1 //p"
	mutants | sed -n "s/^$1 /MUTANT_IS=$(number "M_$1") /p"
}

# The steps, by the names of the inlines that each one goes through.
steps() {
	awk '
	function name_at(file, line, text, at, name) {
		file = "test/model/" file
		while ((getline text <file) > 0) {
			at++
			if (match(text, /^inline [a-z_]+/))
				name = substr(text, 8, RLENGTH - 7)
			if (at >= line)
				break
		}
		close(file)
		return name
	}
	/CYCLE/ { print "--- from here on for ever" }
	/assert/ && /Error|violated/ { print; next }
	/^ *[0-9]+:\tproc/ && !/:init:/ {
		if (!match($0, /[a-z]+\.pml:[0-9]+/))
			next
		split(substr($0, RSTART, RLENGTH), place, ":")
		if ($1 != step) {
			if (line != "")
				print line
			step = $1
			text = $0
			sub(/.*\(state [0-9]*\)\t/, "", text)
			line = step " " text
		} else if (/sub-sequence/) {
			line = line " > " name_at(place[1], place[2] + 0)
		}
	}
	END { print line }'
}

replay() {
	local bounds flags="-DREPLAY -DENDS" variable

	bounds=$(row_of "$1")
	[ -n "$bounds" ] || { echo "model.sh: nothing is called $1" >&2 && return 2; }
	# shellcheck disable=SC2086 # the bounds are words
	pan $bounds
	[ -e $dir/protocol.pml.trail ] || { echo "$1: $(found)" && return; }
	for variable in CRASHES_SHARD CRASHES_SUPER KILLS STOPS CANCELS RELEASES FAILURES ERRORS \
		LOST_COMMITS GIVE_UPS EARLY MUTANT_IS ANY_ORDER RUNS; do
		flags+=" -D$variable=$(echo " $bounds" | sed -n "s/.* $variable=\([0-9]*\).*/\1/p" |
			grep . || { [ $variable = RUNS ] && echo 2 || echo 0; })"
	done
	# shellcheck disable=SC2086 # the flags are words
	(cd $dir && spin -k protocol.pml.trail -t -p $flags ../../$model || true) | steps
	found
}

case ${1-} in
"") ;;
--names) names && exit ;;
--teeth | --replay) ;;
-h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0" && exit ;;
*) echo "usage: model.sh [--names|--teeth|--replay NAME]" >&2 && exit 2 ;;
esac

names
build
case ${1-} in
"") check_all ;;
--teeth) mutants | expect_found MUTANT_IS M_ ;;
--replay) replay "${2?of what?}" ;;
esac
