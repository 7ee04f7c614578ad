#!/bin/bash
# u05_reload.sh -- SIGHUP: what applies at once does, under load; what cannot is named, and a file
# with a mistake changes nothing.
. "$(dirname "$0")/lib.sh"
HOLD=${HOLD/600/2400}	# a busy machine takes long to start anvild again and again

make_steps_repo "$T/src" say "echo begun; $HOLD" >/dev/null
make_steps_repo "$T/quick" say "echo quick" >/dev/null
start_all shards=1 runs.max_concurrent=1
sign_in
projects=()
for name in one two three; do
	projects+=("$(new_project "$name" "file://$T/src")")
done

reload() {
	local before
	before=$(grep -ac '"event":"config_read"' "$LOG") || true
	kill -HUP "$ANVILD"
	wait_for 20 "[ \$(grep -ac '\"event\":\"config_read\"' $LOG) -gt $before ]"
}
nrunning() {
	ctl ps --json | jq '[.[] | select(.address | startswith("run/"))] | length'
}

# More slots: those who wait are started; fewer: nobody is ended, and nobody is started.
runs=()
for project in "${projects[@]}"; do
	runs+=("$(trigger "$project")")
done
wait_for 20 "is_status ${runs[0]} running"
expect "$(nrunning)" 1 "runs with one slot"
configure runs.max_concurrent=3
reload
for run in "${runs[@]}"; do
	wait_for 20 "is_status $run running"
done
configure runs.max_concurrent=1
reload
waiting=$(trigger "${projects[0]}")
let_go "${runs[0]}"
has_ended "${runs[0]}" passed
let_go "${runs[1]}"
has_ended "${runs[1]}" passed
is_status "$waiting" queued || fail "a run was started without a slot"
let_go "${runs[2]}"
has_ended "${runs[2]}" passed
wait_for 20 "is_status $waiting running"
let_go "$waiting"
has_ended "$waiting" passed

# More shards, with requests going on: a new project gets the new one, and works.
ask_on() {
	while [ ! -e "$T/enough" ]; do
		curl -sS -m 20 -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer $TOKEN" \
			"http://127.0.0.1:$PORT/api/private/projects/${projects[0]}" || echo cut
	done
}
background ask_on >"$T/answers"
wait_for 20 "[ -s $T/answers ]"
configure shards=3 log.level=debug
reload
wait_for 20 "[ \"\$(pid_of project/2)\" -gt 0 ]"
wait_for 20 healthy
later=$(new_project later "file://$T/quick")
has_ended "$(trigger "$later")" passed
touch "$T/enough"
wait "$HELPER"
expect "$(sort -u "$T/answers")" 200 "answers while shards were added"
expect "$(ctl project list --json | jq -r '.. | objects | select(.project?.projectSlug? == "later") | .shard')" 1 \
	"shard of the new project"

# A limit, at once.
configure limits.login_per_minute=1
reload
for _ in 1 2 3; do
	status=$(TOKEN='' request POST /api/public/auth/login '{"email":"demo@example.com","password":"wrong password"}' \
		-o /dev/null && cat "$LAST_STATUS")
done
expect "$status" 429 "a login beyond the limit"

# A mistake, with its place; and what needs a restart.
configure runs.max_concurrent=none
kill -HUP "$ANVILD"
wait_for 20 "logged config_not_reloaded '$CONF:'"
configure runs.max_concurrent=2 "listen=[127.0.0.1:1]" data_dir="$T/elsewhere" shards=2
expect "$(ctl health --json | jq -r .slotsMax)" 1 "slots after a mistake"
reload
for setting in listen data_dir shards; do
	wait_for 20 "logged setting_needs_restart '\"setting\":\"$setting\"'"
done
expect "$(ctl health --json | jq -r .slotsMax)" 2 "slots"

# Fewer shards than hold projects: that is known before anybody stops it ...
configure runs.max_concurrent=2 "listen=[127.0.0.1:$PORT]" data_dir="$DATA" shards=1
expect_exit 0 as_account "$BUILD/anvild" -c "$CONF" -t
expect_in "$(cat "$T/err")" "project-1.db would be left out" "a look at the configuration"
reload
wait_for 20 "logged shard_still_needed '\"names\":\"demo/later\"'"
expect_exit 0 ctl health
expect_match "$(cat "$T/out")" "wants 1 shard, and project/1 holds projects" "health"
expect_in "$(cat "$T/out")" "anvilctl project move demo/later 0" "health"
expect_not_in "$(cat "$T/out")" "project/2" "health"
# ... and the start is refused, and says what is to be moved.
stop_anvild
configure shards=1 "listen=[127.0.0.1:$PORT]" data_dir="$DATA"
expect_exit 1 "$BUILD/anvild" -c "$CONF"
expect_in "$(cat "$T/err")" "shards: 2 or more are needed, for shard 1 holds 1 projects" "refusal"
expect_in "$(cat "$T/err")" "demo/later" "refusal"
configure shards=3
start_anvild
allowed_errors='config_not_reloaded'
stop_all
