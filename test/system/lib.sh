#!/bin/bash
# lib.sh -- what the system tests share; a test sources it first, as
#
#	. "$(dirname "$0")/lib.sh"
#
# It makes a scratch directory $T and removes it at the end, with every process that
# start_all, https_server or background() began.  A test that returns has passed, when its
# last call was stop_all; `fail` ends it, `skip` ends it as not possible here.
# Started as root, anvil runs as the account in $ACCOUNT, as it does in earnest.
set -euo pipefail
shopt -s inherit_errexit

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
BUILD=${ANVIL_BUILD:-$ROOT/build/asan}
TEST=$(basename "$0" .sh)
T=$(mktemp -d "${TMPDIR:-/tmp}/$TEST.XXXXXX")
chmod 755 "$T"		# the account has to get through
CONF=$T/anvil.yml
DATA=$T/data
RUNTIME=$T/run
LOG=$T/anvild.log
PORT=
ANVILD=			# pid of the supervisor, empty when there is none
TOKEN=			# of the session that api() uses
ACCOUNT=
[ "$(id -u)" != 0 ] || ACCOUNT=nobody
declare -A conf=()
declare -a helpers=()	# pids
LAST_STATUS=$T/status

# Sanitizers write to files of their own: whatever becomes of a process's standard error,
# its last words count.
mkdir "$T/reports"
chmod 1777 "$T/reports"
export ASAN_OPTIONS="${ASAN_OPTIONS-detect_leaks=1}:log_path=$T/reports/asan"
export UBSAN_OPTIONS="${UBSAN_OPTIONS-print_stacktrace=1}:log_path=$T/reports/ubsan"
export ANVIL_TEST_SCRATCH=$T	# marks the processes of this test
export LC_ALL=C.UTF-8
export PATH=$PATH:/usr/sbin	# nginx and fcgiwrap, for those who are not root
unset XDG_STATE_HOME XDG_RUNTIME_DIR NOTIFY_SOCKET LISTEN_FDS LISTEN_PID

# ---- verdicts ------------------------------------------------------------------------

fail() {
	echo "$TEST: $*" >&2
	exit 1
}

skip() {
	echo "skipped: $*"
	exit 77
}

# expect GOT WANT [WHAT]
expect() {
	[ "$1" = "$2" ] || fail "${3:-value}: got \"$1\", expected \"$2\" (line ${BASH_LINENO[0]})"
}

# expect_match TEXT REGEX [WHAT]: an extended regular expression.
expect_match() {
	[[ $1 =~ $2 ]] || fail "${3:-text}: \"$1\" does not match \"$2\" (line ${BASH_LINENO[0]})"
}

# expect_in TEXT PART [WHAT]
expect_in() {
	[[ $1 == *"$2"* ]] || fail "${3:-text}: no \"$2\" in \"$1\" (line ${BASH_LINENO[0]})"
}

# expect_not_in TEXT PART [WHAT]
expect_not_in() {
	[[ $1 != *"$2"* ]] || fail "${3:-text}: \"$2\" in \"$1\" (line ${BASH_LINENO[0]})"
}

# expect_exit WANT COMMAND...: standard output and error go to $T/out and $T/err.
expect_exit() {
	local want=$1 rc=0
	shift
	"$@" >"$T/out" 2>"$T/err" </dev/null || rc=$?
	[ $rc = "$want" ] ||
		fail "exit $rc, expected $want: $*: $(head -c 2000 "$T/out" "$T/err")"
}

# wait_for SECONDS CONDITION: the condition is a command line, tried until it holds.
wait_for() {
	local end=$((SECONDS + $1 + 1))
	until eval "$2"; do
		[ $SECONDS -lt $end ] || fail "not within $1 s: $2 (line ${BASH_LINENO[0]})"
		sleep 0.05
	done
}

need() {
	local program
	for program in "$@"; do
		command -v "$program" >/dev/null || [ -x "$BUILD/$program" ] ||
			skip "$program is not here"
	done
}

# ---- processes -----------------------------------------------------------------------

is_alive() {	# PID: and no zombie
	local state
	state=$(ps -o stat= -p "$1" 2>/dev/null) || return 1
	[ "${state:0:1}" != Z ]
}

# Prints the pids below PID, itself left out.
descendants() {
	ps -e -o pid=,ppid= | awk -v top="$1" '
	{ parent[$1] = $2 }
	END {
		for (p in parent)
			for (q = parent[p]; q in parent; q = parent[q])
				if (q == top) {
					print p
					break
				}
	}'
}

# Processes that carry this test's mark, this shell's own excepted.  Those of another user
# or that hide themselves show it to root alone.
marked() {
	local dir pid
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		[ "$pid" != $$ ] && [ "$pid" != "$BASHPID" ] || continue
		if grep -qszxF "ANVIL_TEST_SCRATCH=$T" "$dir/environ" 2>/dev/null && is_alive "$pid"; then
			echo "$pid"
		fi
	done
}

# background COMMAND...: starts a helper that ends with the test; its pid is in $HELPER.
background() {
	"$@" &
	HELPER=$!
	helpers+=("$HELPER")
}

end_helper() {	# PID
	kill "$1" 2>/dev/null || true
	wait "$1" 2>/dev/null || true
}

cleanup() {
	local rc=$? pid tries
	trap '' INT TERM
	set +e
	if [ $rc != 0 ] && [ $rc != 77 ] && [ -e "$LOG" ]; then
		echo "-- end of anvild's log"
		tail -n 25 "$LOG"
		head -c 3000 "$T"/reports/* "$DATA"/crash/* 2>/dev/null
	fi
	[ -z "$ANVILD" ] || helpers+=("$ANVILD")
	for pid in "${helpers[@]}"; do
		mapfile -t -O ${#helpers[@]} helpers < <(descendants "$pid")
	done
	for tries in 1 2 3; do
		mapfile -t -O ${#helpers[@]} helpers < <(marked)
		for pid in "${helpers[@]}"; do
			kill -KILL "$pid" 2>/dev/null
		done
		[ "$tries" = 1 ] || [ -n "$(marked)" ] || break
	done 2>/dev/null
	wait 2>/dev/null
	undo
	chmod -R u+rwX "$T" 2>/dev/null
	rm -rf "$T"
	exit $rc
}
undo() { :; }		# a test may have more to undo
trap cleanup EXIT
trap 'exit 130' INT TERM

# ---- configuration, start and stop ---------------------------------------------------

# Ports of tests that run side by side differ, since their pids do; one that somebody else
# uses is passed over.
next_port=$((10000 + $$ % 5000 * 4))
free_port() {
	while (exec 3<>"/dev/tcp/127.0.0.1/$next_port") 2>/dev/null; do
		next_port=$((next_port + 1))
	done
	FREE_PORT=$next_port
	next_port=$((next_port + 1))
}

sandbox_works() {
	as_account bwrap --unshare-all --ro-bind / / --proc /proc true 2>/dev/null
}

as_account() {	# COMMAND...: as the user that anvil runs as
	if [ -n "$ACCOUNT" ]; then
		setpriv --reuid "$ACCOUNT" --regid "$(id -g "$ACCOUNT")" --clear-groups "$@"
	else
		"$@"
	fi
}

# configure KEY=VALUE...: writes the configuration of this test; the values are YAML, the
# keys as in `runs.sandbox`.
configure() {
	local item key section
	if [ -z "$PORT" ]; then
		free_port
		PORT=$FREE_PORT
		conf=(
			[version]=1
			[data_dir]=$DATA
			[runtime_dir]=$RUNTIME
			[keys_file]=$T/keys.json
			[listen]="[127.0.0.1:$PORT]"
			[public_url]=http://127.0.0.1:$PORT
			[runs.max_concurrent]=2
			[runs.min_free_bytes]=0
			[repositories.allow_local]=true
			[limits.login_per_minute]=1000
		)
		[ -z "$ACCOUNT" ] || conf[user]=$ACCOUNT
	fi
	for item in "$@"; do
		conf[${item%%=*}]=${item#*=}
	done
	{
		for key in "${!conf[@]}"; do
			[[ $key == *.* ]] || echo "$key: ${conf[$key]}"
		done
		for section in $(printf '%s\n' "${!conf[@]}" | sed -n 's/\..*//p' | sort -u); do
			echo "$section:"
			for key in "${!conf[@]}"; do
				[[ $key != "$section".* ]] || echo "  ${key#*.}: ${conf[$key]}"
			done
		done
	} >"$CONF"
}

# healthy: whether ingress answers and every actor is up; a drain outlasts restarts.
healthy() {
	[ "$(curl -sS -m 5 "http://127.0.0.1:$PORT/healthz" 2>/dev/null |
		jq -c '.reasons - ["draining"]' 2>/dev/null)" = "[]" ]
}

# start_anvild [OPTION...]: with the configuration as it is; waits until all is up.
# shellcheck disable=SC2120 # tests give options
start_anvild() {
	"$BUILD/anvild" -c "$CONF" "$@" >>"$LOG" 2>&1 </dev/null &
	ANVILD=$!
	wait_for 30 "healthy || ! is_alive $ANVILD"
	is_alive "$ANVILD" || fail "anvild did not start: $(tail -n 3 "$LOG")"
}

# start_all [KEY=VALUE...]
start_all() {
	local program
	for program in anvild anvil-ingress anvil-project anvil-run anvil-checkout anvil-init anvilctl; do
		[ -x "$BUILD/$program" ] || fail "$BUILD/$program is not built"
	done
	need jq curl git
	configure "$@"
	if [ "${conf[runs.sandbox]-bwrap}" = bwrap ] && ! sandbox_works; then
		skip "bwrap cannot make a sandbox here"
	fi
	start_anvild
}

# stop_anvild: what `systemctl stop` does with KillMode=process; builds go on.
stop_anvild() {
	local rc=0
	kill -TERM "$ANVILD"
	wait_for 30 "! is_alive $ANVILD"
	wait "$ANVILD" || rc=$?
	expect "$rc" 0 "exit status of anvild ($ANVILD)"
	ANVILD=
}

# Errors that a test brings about on purpose; the names of their events, as for grep -E.
allowed_errors=none
# Whether some process was killed on purpose, so that there may be notes of it.
killed_some=

# stop_all: an orderly stop.  Fails on a bad exit, a process, socket or crash note that is left
# over, a report of a sanitizer, and an error in the log that the test did not allow.
stop_all() {
	local pid rc=0 children left
	children=$(descendants "$ANVILD")
	kill -TERM "$ANVILD"
	wait_for 30 "! is_alive $ANVILD"
	wait "$ANVILD" || rc=$?
	pid=$ANVILD
	ANVILD=
	expect "$rc" 0 "exit status of anvild ($pid)"
	for pid in $children; do
		wait_for 10 "! is_alive $pid"
	done
	check_leftovers
	left=$(find "$RUNTIME" -name '*.sock' 2>/dev/null)
	expect "$left" "" "sockets left over"
	check_log
}

check_leftovers() {
	local pid known=" ${helpers[*]-} "
	for pid in $(marked); do
		# Helpers and what they started go on until the test ends.
		[[ $known != *" $pid "* ]] || continue
		[[ " $(for h in "${helpers[@]}"; do descendants "$h"; done | tr '\n' ' ') " != *" $pid "* ]] || continue
		! is_alive "$pid" || fail "left over: $(ps -o pid=,args= -p "$pid")"
	done
}

# Files with what sanitizers have found.  Who is killed while he looks for leaks says that he
# could not, which is none of it.
sanitizer_reports() {
	find "$T/reports" -type f -exec grep -lvE '^==[0-9]+==Unable to get registers from thread' {} +
}

check_log() {
	local file text
	for file in $(sanitizer_reports); do
		fail "report of a sanitizer: $(head -c 4000 "$file")"
	done
	text=$(grep -aE 'AddressSanitizer|LeakSanitizer|runtime error:' "$LOG" | head -n 3) || true
	expect "$text" "" "report of a sanitizer"
	if [ -z "$killed_some" ]; then
		text=$(find "$DATA/crash" -type f -exec cat {} + 2>/dev/null | head -c 2000)
		expect "$text" "" "crash notes"
	fi
	text=$(grep -a '"level":"error"' "$LOG" | grep -avE "\"event\":\"($allowed_errors)\"" |
		head -n 5) || true
	expect "$text" "" "errors in the log"
}

# logged EVENT [TEXT]: whether anvil's log has such a line.
logged() {
	grep -a "\"event\":\"$1\"" "$LOG" | grep -qaF -- "${2-}"
}

ctl() {
	"$BUILD/anvilctl" -c "$CONF" "$@"
}

# pid_of ADDRESS: of an actor, as anvilctl has it.
pid_of() {
	ctl ps --json | jq -r --arg a "$1" '.[] | select(.address == $a) | .pid'
}

# All of it dies at once, the supervisor first: it must not live to see another's end.
cut_power() {
	local pid pids
	pids=$(descendants "$ANVILD")
	killed_some=yes
	for pid in "$ANVILD" $pids; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	wait "$ANVILD" 2>/dev/null || true
	ANVILD=
}

# ---- HTTP ----------------------------------------------------------------------------

# request METHOD PATH [BODY [CURL OPTION...]]: the body of the answer; its status is then in
# the file $LAST_STATUS.
request() {
	local method=$1 path=$2 body=${3-}
	local -a more=()
	shift $(($# < 3 ? $# : 3))
	[ -z "$TOKEN" ] || more+=(-H "Authorization: Bearer $TOKEN")
	[ -z "$body" ] || more+=(-H 'Content-Type: application/json' --data-binary "$body")
	curl -sS -m 30 -X "$method" -w '%{stderr}%{http_code}' "${more[@]}" "$@" \
		"http://127.0.0.1:$PORT$path" 2>"$LAST_STATUS" ||
		fail "$method $path: $(cat "$LAST_STATUS")"
}

# api METHOD PATH [BODY]: the body of an answer that has to be a success.
api() {
	local answer status
	answer=$(request "$@")
	status=$(cat "$LAST_STATUS")
	[[ $status == 2?? ]] || fail "$1 $2: $status $answer"
	printf '%s\n' "$answer"
}

# refused STATUS CODE METHOD PATH [BODY]: that error and no other; prints its message.
refused() {
	local status=$1 code=$2 answer
	shift 2
	answer=$(request "$@")
	expect "$(cat "$LAST_STATUS") $(jq -r .error.code <<<"$answer")" "$status $code" \
		"$1 $2 ${3-}"
	jq -r .error.message <<<"$answer"
}

field() {	# a path of jq, without its first dot
	jq -r ".$1"
}

# sign_in [SLUG]: makes a user by anvilctl and signs it in.
sign_in() {
	local slug=${1-demo}
	printf 'a long password\n' | ctl user bootstrap "$slug" "$slug@example.com" >"$T/out" 2>&1 ||
		fail "user bootstrap: $(cat "$T/out")"
	log_in "$slug"
}

log_in() {
	local answer
	answer=$(TOKEN='' api POST /api/public/auth/login \
		"{\"email\":\"$1@example.com\",\"password\":\"a long password\"}")
	TOKEN=$(field sessionId <<<"$answer")
}

# new_project SLUG URL [MEMBERS]: prints the id; MEMBERS are more of the body, as JSON object.
new_project() {
	local body
	body=$(jq -cn --arg slug "$1" --arg url "$2" --argjson more "${3-"{}"}" \
		'{projectSlug: $slug, name: $slug, repoUrl: $url, defaultBranch: "main"} + $more')
	api POST /api/private/projects "$body" | field project.id
}

# trigger PROJECT [BRANCH]: prints the id of the run.
trigger() {
	local body="{}"
	[ $# = 1 ] || body=$(jq -cn --arg branch "$2" '{branch: $branch}')
	api POST "/api/private/projects/$1/runs" "$body" | field runId
}

detail_of() {
	api GET "/api/private/runs/$1"
}

status_of() {
	detail_of "$1" | field run.status
}

log_of() {
	request GET "/api/private/runs/$1/log"
}

is_status() {	# RUN STATUS
	[ "$(status_of "$1")" = "$2" ]
}

is_over() {
	case $(status_of "$1") in
	passed | failed | canceled) return 0 ;;
	*) return 1 ;;
	esac
}

# has_ended RUN WANT: waits for the end of the run, which has to be that one; its detail is
# then in $DETAIL.
has_ended() {
	wait_for 40 "is_over $1"
	DETAIL=$(detail_of "$1")
	[ "$(field run.status <<<"$DETAIL")" = "$2" ] ||
		fail "run is not $2: $(jq -c 'del(.recentLogs)' <<<"$DETAIL") $(log_of "$1" | tail -n 20)"
}

# has_failed RUN CODE MESSAGE: a bash pattern for errorMessage.
has_failed() {
	local code also message
	has_ended "$1" failed
	{
		read -r code
		read -r also
		IFS= read -rd '' message || message=${message%$'\n'}
	} < <(jq -r '.failureCode, .run.failureCode, .errorMessage' <<<"$DETAIL")
	expect "$code" "$2" "failureCode of $message"
	expect "$also" "$2" "run.failureCode"
	# shellcheck disable=SC2053 # a pattern it is
	[[ $message == $3 ]] || fail "errorMessage is \"$message\", expected \"$3\""
}

# shellcheck source=test/system/repo.sh
. "$HERE/repo.sh"
# shellcheck source=test/system/https.sh
. "$HERE/https.sh"
