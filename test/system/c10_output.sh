#!/bin/bash
# c10_output.sh -- what a step prints arrives: bytes of all kinds, long lines, both streams.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/src" \
	bytes 'printf "unicode: ä文🔨\n"
printf "nul:\0:\n"
printf "cr:\r10%%\r100%%\n"
printf "escape:\033[31mred\033[0m\n"
printf "bad:\377\376:\n"
printf "half:\342\202"; sleep 0.1; printf "\254\n"
printf "no newline at the end"' \
	stderr 'echo "to stderr" >&2' \
	long 'head -c 1048576 /dev/zero | tr "\0" x; echo; echo "long line over"' \
	many 'for i in $(seq 20000); do echo "line $i"; done' \
	cut 'printf "cut:\342\202"' >/dev/null
start_all
sign_in
run=$(trigger "$(new_project output "file://$T/src")")
has_ended "$run" passed
log_of "$run" >"$T/text"

has() {	# BYTES as printf writes them
	# shellcheck disable=SC2059 # the format is the point
	printf "$1" >"$T/want"
	# grep -z would split at the NUL, so compare in hexadecimal.
	[[ $(head -c 4000 "$T/text" | od -An -v -tx1 | tr -d ' \n') == *"$(od -An -v -tx1 "$T/want" | tr -d ' \n')"* ]] ||
		fail "not in the log: $1"
}
has 'unicode: ä文🔨\n'
has 'nul:\0:\n'
has 'cr:\r10%%\r100%%\n'
has 'escape:\033[31mred\033[0m\n'
has 'bad:\357\277\275\357\277\275:\n'
has 'half:\342\202\254\n'
has 'to stderr\n'
grep -qa 'no newline at the end' "$T/text" || fail "the end without a newline is lost"
expect "$(grep -ac '^x\{30000\}' "$T/text")" 1 "long lines"
expect "$(grep -a '^xxxxx' "$T/text" | wc -c)" 1048577 "bytes of the long line"
expect "$(grep -a '^line ' "$T/text")" "$(seq -f 'line %.0f' 20000)" "many lines"
tail -n 3 "$T/text" | grep -qa $'cut:\xef\xbf\xbd' || fail "a cut character is not replaced"

detail=$(api GET "/api/private/runs/$run?logBytes=2097152")
expect "$(jq -r '[.recentLogs[] | select(.chunk | contains("to stderr")) | .stream][0]' <<<"$detail")" \
	stderr "stream"
expect "$(jq '[.recentLogs[].seq] | . == [range(1; length + 1)]' <<<"$detail")" true "sequence"
expect "$(jq '[.recentLogs[].chunk | utf8bytelength] | max <= 16384 and min >= 1' <<<"$detail")" true \
	"size of chunks"
expect "$(field logBytes <<<"$detail")" "$(wc -c <"$T/text")" logBytes
small=$(api GET "/api/private/runs/$run?logBytes=1000")
expect "$(jq '[.recentLogs[].chunk | utf8bytelength] | add <= 1000' <<<"$small")" true "a small tail"
refused 400 invalid_request GET "/api/private/runs/$run?logBytes=2097153" >/dev/null
stop_all
