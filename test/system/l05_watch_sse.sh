#!/bin/bash
# l05_watch_sse.sh -- Server-Sent Events with curl: from the queue to the end of a run, again when
# it sleeps, from some line on, and what is refused.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" \
	first 'echo one; echo two >&2; printf "caf\303\251 \000 \033[1mbold\n"' \
	second "echo begun; $HOLD; echo ended" >/dev/null
start_all runs.max_concurrent=1
sign_in
project=$(new_project hello "file://$T/src")

# events RUN [QUERY [CURL OPTION...]]: the stream, to its end.
events() {
	curl -sSN -m 60 -H "Authorization: Bearer $TOKEN" "${@:3}" \
		"http://127.0.0.1:$PORT/api/private/runs/$1/events${2-}"
}

# Messages of a stream in the file $1, one in a line.
messages() {
	sed -n 's/^data: //p' "$1"
}

# joined FILE: the chunks of its lines, put together.
joined() {
	messages "$1" | jq -j 'select(.type == "log").event.chunk'
}

# in_order FILE FIRST: lines from FIRST on without a gap; each with the id of its event.
in_order() {
	expect "$(messages "$1" | jq -cs --argjson first "$2" \
		'[.[] | select(.type == "log").event.seq] as $s |
		$s == [range($first; $first + ($s | length))]')" true "order of lines in $1"
	expect "$(sed -n 's/^id: //p' "$1" | tr '\n' ' ')" \
		"$(messages "$1" | jq -r 'select(.type == "log").event.seq' | tr '\n' ' ')" "ids of $1"
}

# One who comes while the run is queued, behind another that holds the only slot.
holder=$(trigger "$project")
wait_for 20 "is_status $holder running"
run=$(trigger "$project")
events "$run" "" -D "$T/head" >"$T/queued" &
early=$!
wait_for 10 "grep -q '^event: state' $T/queued"
expect "$(messages "$T/queued" | head -n 1)" \
	'{"type":"state","run":{"status":"queued","currentStep":null,"startedAt":null,"finishedAt":null,"exitCode":null,"errorMessage":null,"failureCode":null},"steps":[]}' \
	"state of a queued run"
head=$(tr -d '\r' <"$T/head")
expect_in "$head" 'HTTP/1.1 200 OK' status
expect_in "$head" 'Content-Type: text/event-stream; charset=utf-8' head
expect_in "$head" 'X-Accel-Buffering: no' head

# And one in the middle of a run.
events "$holder" >"$T/middle" &
middle=$!
wait_for 20 "grep -qs begun $T/middle"
let_go "$holder"
wait "$middle" || fail "the stream of $holder was cut"
has_ended "$holder" passed
in_order "$T/middle" 1

wait_for 20 "grep -qs begun $T/queued"
let_go "$run"
wait "$early" || fail "the stream of $run was cut"
has_ended "$run" passed
in_order "$T/queued" 1
for file in "$T/middle" "$T/queued"; do
	expect "$(tail -n 3 "$file")" $'event: end\ndata: {"type":"end","reason":"run_finished"}' \
		"end of $file"
	expect "$(messages "$file" | jq -r 'select(.type == "state").run.status' | tail -n 1)" \
		passed "last state of $file"
done
joined "$T/queued" >"$T/joined"
log_of "$run" >"$T/stored"
cmp "$T/joined" "$T/stored" || fail "watched and stored text differ"
expect_in "$(messages "$T/queued")" 'café \u0000 \u001b[1mbold\n' "odd characters"

# All lines of a step come before the state that ends it.
expect "$(messages "$T/queued" | jq -cs '
	(map(.type == "log" and (.event.chunk | contains("bold"))) | index(true)) as $line |
	(map(.type == "state" and .steps[0].status? == "passed") | index(true)) as $state |
	$line < $state')" true "lines before the state"

# A run that sleeps is woken; from some line on; Last-Event-ID wins.
events "$run" >"$T/late"
joined "$T/late" | cmp - "$T/stored" || fail "the text of a run that slept differs"
events "$run" '?from=3' >"$T/from"
in_order "$T/from" 3
events "$run" '?from=3' -H 'Last-Event-ID: 4' >"$T/last"
in_order "$T/last" 5
events "$run" '?from=1000' >"$T/beyond"
expect "$(messages "$T/beyond" | jq -r .type | sort | uniq -c | xargs)" "1 end 2 state" "beyond the end"

refused 400 invalid_request GET "/api/private/runs/$run/events?from=0" >/dev/null
refused 400 invalid_request GET "/api/private/runs/$run/events?from=x" >/dev/null
refused 404 run_not_found GET "/api/private/runs/${run%?????}00000/events" >/dev/null
refused 405 method_not_allowed POST "/api/private/runs/$run/events" >/dev/null
expect "$(events "$run" '' -H 'Last-Event-ID: x' | field error.code)" invalid_request "Last-Event-ID"
TOKEN='' refused 401 missing_authorization GET "/api/private/runs/$run/events" >/dev/null

# Canceled in the queue, and canceled while it runs, before the eyes of a viewer.
holder=$(trigger "$project")
wait_for 20 "is_status $holder running"
run=$(trigger "$project")
events "$run" >"$T/queued" &
early=$!
events "$holder" >"$T/middle" &
middle=$!
wait_for 20 "grep -qs begun $T/middle && grep -q queued $T/queued"
expect "$(api POST "/api/private/runs/$run/cancel" | field run.status)" canceled "cancel of a queued run"
wait "$early" || fail "the stream of a canceled run was cut"
expect "$(messages "$T/queued" | jq -r '.run.status // .reason' | xargs)" \
	"queued canceled run_finished" "stream of a run that was canceled in the queue"
expect_match "$(api POST "/api/private/runs/$holder/cancel" | field run.status)" \
	'^(cancel_requested|canceling|canceled)$' cancel
wait "$middle" || fail "the stream of $holder was cut"
has_ended "$holder" canceled
expect "$(api POST "/api/private/runs/$holder/cancel" | field run.status)" canceled "another cancel"
expect_match "$(messages "$T/middle" | jq -r '.run.status // empty' | uniq | xargs)" \
	'^(starting )?running (cancel_requested )?(canceling )?canceled$' "states of a cancel"
stop_all
