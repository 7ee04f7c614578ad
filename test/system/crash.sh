#!/bin/bash
# crash.sh -- the crash matrix, which x*.sh share; sourced after lib.sh.
#
# For each named point of the sources (lib/base/crash.h) a process is made to die there: the
# point is ordered, something is done that comes by it, and the system has to recover by itself.
# A supervisor that has died is started again, as systemd would.  Several points use one system.
# At the end verify() looks at everything that was acknowledged.
#
# ANVIL_SEED: which commits the processes die around; printed, so that it can be repeated.
# LONG=1: around every commit, and what takes minutes.

ANVIL_SEED=${ANVIL_SEED:-$(date +%s)}
RANDOM=$ANVIL_SEED
ORDER=$T/order/point
export ANVIL_CRASH_FILE=$ORDER
mkdir "$T/order" "$T/steps" "$T/hold" "$T/go" "$T/keys"
chmod 777 "$T/order" "$T/steps"
[ -z "$ACCOUNT" ] || chown "$ACCOUNT" "$T/keys"
: >"$T/acked"
: >"$T/removed"

# Of lib.sh.
# shellcheck disable=SC2034
killed_some=yes
allowed_errors='actor_exited|actor_failing|request_failed|index_sync_failed|lease_lost'
allowed_errors+='|settlement_conflict|store_not_terminal|sandbox_teardown_failed'

# ---- the points ----------------------------------------------------------------------

# Places where each of these actors may die.
actors_of() {
	case $1 in
	after_replies) echo supervisor ingress project ;;
	before_commit | after_commit | file_made | migrating) echo supervisor ingress project run ;;
	log_written_back) echo project run ;;	# the others' are idle for half a minute first
	log_cut) echo project ;;	# where secrets are deleted
	has_place | locked | listens) echo run serve ;;
	*) fail "crash.sh does not know whose point $1 is" ;;
	esac
}

all_points() {
	local place actor
	grep -rhoE 'CRASH_POINT\("[a-z_]+"' "$ROOT/cmd" "$ROOT/lib" --include=*.c | cut -d'"' -f2 | sort
	for place in $(grep -rhoE 'CRASH_POINT_OF\(.*"[a-z_]+"\)' "$ROOT/cmd" "$ROOT/lib" --include=*.c |
		sed -E 's/.*"([a-z_]+)"\)$/\1/' | sort -u); do
		for actor in $(actors_of "$place"); do
			echo "${actor}_$place"
		done
	done
}

# scenario_of POINT: what is done so that a process comes to it, by whom it is tested (x01, x02,
# x03: one of these tests), or why it cannot be had.  New points belong in here.
scenario_of() {
	case $1 in
	*_before_commit | *_after_commit | *_after_replies) echo "x03 trigger" ;;
	run_begun | run_has_place | run_locked | run_listens | run_claimed) echo "x01 trigger" ;;
	run_file_made | run_migrating | run_store_made | run_reserve_made) echo "x01 trigger" ;;
	run_commit_* | run_config_read | run_workspace_made | run_steps_planned) echo "x01 trigger" ;;
	run_running | run_before_step | run_step_* | run_torn_down) echo "x01 trigger" ;;
	run_log_finished | run_last_answered | run_outcome_stored) echo "x01 trigger" ;;
	run_terminal | run_settled | run_trees_removed) echo "x01 trigger" ;;
	log_frame_written | log_archive_synced) echo "x01 trigger" ;;
	run_log_written_back) echo "x01 pause" ;;
	run_cancel_seen | run_told_to_end) echo "x01 cancel" ;;
	run_stale) echo "x01 cancel_early" ;;
	run_releasing | run_release_answered) echo "x01 give_back" ;;
	run_keyless_noted) echo "x01 new_key_early" ;;
	run_lost) echo "- a run that lives is told only between its kill and its end" ;;
	run_had_ended) echo "- only a ledger from a backup sends a run that has ended" ;;
	serve_*) echo "x01 lose" ;;
	checkout_mirror_half | checkout_text_written) echo "x01 first_checkout" ;;
	checkout_mirror_away) echo "x01 other_url" ;;
	checkout_downloaded) echo "x01 push" ;;
	checkout_*) echo "x01 trigger" ;;
	child_* | supervisor_forked | supervisor_row_on_disk | supervisor_gate_open) echo "x02 trigger" ;;
	supervisor_reaped | supervisor_exit_answered) echo "x02 lose" ;;
	supervisor_sweeping | supervisor_swept) echo "x02 lose" ;;
	supervisor_remov*) echo "x02 remove" ;;
	supervisor_recovering | supervisor_recovered) echo "x02 start_again" ;;
	supervisor_file_made | ingress_file_made | project_file_made) echo "x02 begin" ;;
	supervisor_migrating | ingress_migrating | project_migrating) echo "x02 begin" ;;
	keys_first_*) echo "x02 begin" ;;
	keys_spare_saved | keys_written_over) echo "x02 new_key_in_place" ;;
	keys_settled) echo "x02 settle_key" ;;
	keys_new_* | keys_rotated | keys_handed_over | keys_taken | reseal_*) echo "x02 new_key" ;;
	accept_* | accepted_flushing) echo "x02 trigger" ;;
	delivery_recorded) echo "x02 deliver" ;;
	create_settling) echo "x02 doubt" ;;
	create_*) echo "x02 create" ;;
	give_*) echo "x02 give" ;;
	lease_holder_killed) echo "x03 freeze" ;;
	lease_holder_known) echo "x03 outlive" ;;
	takeover_killed) echo "- the store is held only where the supervisor has lost its rows" ;;
	takeover_*) echo "x03 lose" ;;
	dispatch_* | sync_runs_*) echo "x03 trigger" ;;
	sync_project_*) echo "x03 rename" ;;
	removal_*) echo "x03 remove" ;;
	cancel_pushing) echo "x03 cancel" ;;
	project_log_*) echo "x03 new_secret" ;;
	index_mends_copies | ledger_mends_row | sweep_keeps_run)
		echo "- a transaction that is not committed: as before any commit" ;;
	*) echo elsewhere ;;	# a test of its own has to order it, by its name
	esac
}

missed=		# points that nobody came by

# points_of TEST: puts those that it has to come by in $points.
points_of() {
	local point row all
	all=$(all_points)
	points=()
	for point in $all; do
		row=$(scenario_of "$point")
		# The first of these tests looks after all that the others leave out.
		[ "$1 $row" != "x01 elsewhere" ] || grep -rqF --exclude=crash.sh "$point" "$ROOT/test" ||
			missed+=" $point"
		[ "${row%% *}" != "$1" ] || points+=("$point")
	done
}

# ---- one death -----------------------------------------------------------------------

order_death() {
	rm -f "$ORDER.hit"
	echo "$POINT $SKIP" >"$ORDER.new"
	chmod 666 "$ORDER.new"
	mv "$ORDER.new" "$ORDER"
}

# ended PID: it is no more, or nobody has collected it yet.
ended() {
	local stat
	read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
	[[ $stat == *") Z "* ]]
}

# died_within SECONDS: whether the ordered death has come; who has died is in $DEAD.
died_within() {
	local end=$((SECONDS + $1 + 1)) words
	until [ -e "$ORDER.hit" ]; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.02
	done
	wait_for 10 "[ \$(wc -l <$ORDER.hit) -ge 3 ]"
	mapfile -t words <"$ORDER.hit"
	DEAD=${words[2]}
	wait_for 10 "ended $DEAD"
}

launch() {
	"$BUILD/anvild" -c "$CONF" >>"$LOG" 2>&1 </dev/null 8>&- &
	ANVILD=$!
	deaths=0
}

# All is up again; nobody helps but to start the supervisor.
revive() {
	if ended "$ANVILD"; then
		wait "$ANVILD" 2>/dev/null || true
		launch
	fi
	wait_for 30 "healthy || ended $ANVILD"
	! ended "$ANVILD" || fail "anvild did not start after $POINT: $(tail -n 3 "$LOG")"
}

end_supervisor() {
	kill -KILL "$ANVILD"
	wait "$ANVILD" 2>/dev/null || true
}

# An actor that dies often is held back: then a supervisor dies as well, and the next one knows
# nothing of that.
deaths=0
spare_patience() {
	case $POINT in
	run_* | serve_* | checkout_* | supervisor_* | keys_* | child_*) ;;
	*) deaths=$((deaths + 1)) ;;
	esac
	[ $deaths -lt 4 ] || end_supervisor
}

may() {	# FUNCTION: if there is one
	! declare -F "$1" >/dev/null || "$1"
}

# die_at POINT [SKIP [TRIES]]: whether somebody has.
die_at() {
	local row try from=$EPOCHREALTIME
	POINT=$1 SKIP=${2-0}
	row=$(scenario_of "$POINT")
	for ((try = 1; try <= ${3-3}; try++)); do
		may "before_${row#* }"
		order_death
		"do_${row#* }"
		if died_within $((try * 3)); then
			spare_patience
			revive
			may "undo_${row#* }"
			echo "$POINT $SKIP: $(((${EPOCHREALTIME/./} - ${from/./}) / 1000)) ms"
			return 0
		fi
		may "undo_${row#* }"
	done
	echo "$POINT $SKIP: nobody in $(((${EPOCHREALTIME/./} - ${from/./}) / 1000)) ms"
	rm -f "$ORDER"
	return 1
}

# ---- what the system has to do -------------------------------------------------------

# What every step runs, outside of anvil: it tells when it begins and ends, looks whether the
# one before it in the project may still be at work, and may be held.  Lines are `b` begins, `e`
# ends, `o` another run was at work, each with run, step, pid of the run's process.
cat >"$T/step" <<STEP
#!/bin/bash
file=$T/steps/\$ANVIL_PROJECT_ID
tell() { echo "\$1 \$ANVIL_RUN_ID \$2 \$PPID" >>"\$file"; }
read -r what run step pid < <(tail -n 1 "\$file" 2>/dev/null)
if [ -n "\$run" ] && [ "\$run" != "\$ANVIL_RUN_ID" ] && [ "\$what \$step" != "e 2" ] &&
	grep -qszxF "\$run" "/proc/\$pid/cmdline"; then
	tell o "\$ANVIL_STEP_POSITION:\$run"
fi
tell b "\$ANVIL_STEP_POSITION"
trap 'tell e 2; exit 143' TERM
echo "step \$ANVIL_STEP_POSITION of \$ANVIL_RUN_ID"
if [ -e "$T/hold/\$ANVIL_PROJECT_ID" ]; then
	for i in \$(seq 600); do
		[ ! -e "$T/go/\$ANVIL_RUN_ID" ] || break
		sleep 0.05
	done
fi
[ "\$ANVIL_BRANCH" != slow ] || sleep 1.3
[ "\$ANVIL_BRANCH \$ANVIL_STEP_POSITION" != "bad 2" ] || { tell e 2; exit 3; }
tell e "\$ANVIL_STEP_POSITION"
STEP
chmod 755 "$T/step"

post() {	# PATH [BODY]: prints the body and, as its last line, the status; 000: no answer
	curl -sS -m 20 -X "${METHOD-POST}" -w '\n%{http_code}' -H "Authorization: Bearer $TOKEN" \
		-H 'Content-Type: application/json' --data-binary "${2-"{}"}" \
		"http://127.0.0.1:$PORT$1" 2>/dev/null || echo 000
}

# ask PROJECT [BRANCH]: a manual run; $RUN is its id, "" when it was not acknowledged.
ask() {
	local answer body="{}"
	RUN=
	[ $# = 1 ] || body="{\"branch\":\"$2\"}"
	answer=$(post "/api/private/projects/$1/runs" "$body")
	[ "${answer##*$'\n'}" = 202 ] || return 0
	[[ $answer =~ run_[0-9A-Za-z]{22} ]] || fail "202 without a run: $answer"
	RUN=${BASH_REMATCH[0]}
	echo "$1 $RUN" >>"$T/acked"
}

# ask_surely PROJECT [BRANCH]: until it is acknowledged.
ask_surely() {
	RUN=
	wait_for 20 "ask $* && [ -n \"\$RUN\" ]"
}

has_begun() {	# PROJECT RUN: its first step
	grep -qsF "b $2 1" "$T/steps/$1"
}

# idle PROJECT: its newest run has ended.
idle() {
	METHOD=GET post "/api/private/projects/$1/runs?limit=1" "" |
		grep -qE '"status":"(passed|failed|canceled)"|"runs":\[\]'
}

# hold PROJECT: a run whose first step does not end until go_on; $RUN, and $PID its process.
hold() {
	touch "$T/hold/$1"
	ask_surely "$1"
	wait_for 20 "has_begun $1 $RUN"
	rm "$T/hold/$1"
	HELD=$RUN
	PID=$(sed -n "s/^b $RUN 1 //p" "$T/steps/$1")
}

go_on() {
	[ -z "${HELD-}" ] || touch "$T/go/$HELD"
	HELD=
}

# The projects take turns; they are on both shards.
turn=0
next_project() {
	turn=$((turn + 1))
	PROJECT=${projects[turn % ${#projects[@]}]}
}

do_trigger() {
	next_project
	if [ $((turn % 5)) = 0 ]; then
		ask "$PROJECT" bad
	else
		ask "$PROJECT"
	fi
}

do_pause() {
	next_project
	ask "$PROJECT" slow
}

before_cancel() {
	hold "$side"
}

do_cancel() {
	local answer
	answer=$(post "/api/private/runs/$RUN/cancel")
	[ "${answer##*$'\n'}" != 200 ] || echo "$RUN" >>"$T/canceled"
}

undo_cancel() {
	go_on
}

before_lose() {
	hold "$side"
}

do_lose() {
	kill -KILL "$PID"
}

undo_lose() {
	go_on
}

# hold_next: a held run, and one behind it whose store is locked, so that its process does not
# come to its claim; $RUN is the second.
hold_next() {
	local dir
	hold "$side"
	ask_surely "$side"
	dir=$DATA/runs/$RUN
	mkdir -m 700 "$dir"
	: >"$dir/lock"
	chmod 600 "$dir/lock"
	[ -z "$ACCOUNT" ] || chown -R "$ACCOUNT" "$dir"
	exec 8<"$dir/lock"
	flock 8
	go_on
	wait_for 10 "pgrep -f 'anvil-run $RUN' >/dev/null"
}

before_cancel_early() {
	hold_next
}

do_cancel_early() {
	local answer
	answer=$(post "/api/private/runs/$RUN/cancel")
	[ "${answer##*$'\n'}" = 200 ] || fail "cancel: $answer"
	echo "$RUN" >>"$T/canceled"
	exec 8<&-
}

# The checkout waits, so that the run is before its first step.
before_give_back() {
	local lock=$DATA/cache/$side.lock
	wait_for 30 "idle $side"
	exec 8<"$lock"
	flock 8
	ask_surely "$side"
	wait_for 10 "logged run_started $RUN"
}

do_give_back() {
	pkill -TERM -f "anvil-run $RUN"
}

undo_give_back() {
	exec 8<&-
}

before_new_key_early() {
	hold_next
}

do_new_key_early() {
	ctl keys rotate >/dev/null
	wait_for 4 "! ctl keys status --json | jq -e '.versions[:-1] | any(.secrets > 0)' >/dev/null"
	exec 8<&-
}

made=0
do_create() {
	local answer
	made=$((made + 1))
	answer=$(post /api/private/projects "{\"projectSlug\":\"made-$made\",\"name\":\"made\",
		\"repoUrl\":\"file://$T/src\",\"defaultBranch\":\"main\"}")
	MADE=
	[ "${answer##*$'\n'}" = 201 ] || return 0
	[[ $answer =~ prj_[0-9A-Za-z]{22} ]]
	MADE=${BASH_REMATCH[0]}
	echo "$MADE" >>"$T/created"
}

do_first_checkout() {
	do_create
	ask_surely "$MADE"
}

before_other_url() {
	local answer
	wait_for 30 "idle $side"
	made=$((made + 1))
	answer=$(METHOD=PATCH post "/api/private/projects/$side" \
		"{\"repoUrl\":\"file://$T/src$((made % 2))\"}")
	[ "${answer##*$'\n'}" = 200 ] || fail "PATCH: $answer"
}

do_other_url() {
	ask "$side"
}

do_push() {
	commit_all "$T/src" "Something new" >/dev/null
	do_trigger
}

do_rename() {
	next_project
	METHOD=PATCH post "/api/private/projects/$PROJECT" "{\"name\":\"name $((made++))\"}" >/dev/null
}

# To an heir and back; the name changes each time.
heir=demo
before_give() {
	[ -n "${given-}" ] || printf 'a long password\n' | ctl user bootstrap heir heir@example.com >/dev/null
	[ -n "${given-}" ] || do_create
	given=${given:-$MADE}
	[ $heir = demo ] && heir=heir || heir=demo
}

do_give() {
	timeout 20 "$BUILD/anvilctl" -c "$CONF" project give "$given" $heir >/dev/null 2>&1 || true
}

# Whoever has died, the order can be repeated, and then both say the same at once.
undo_give() {
	ctl project give "$given" $heir >/dev/null
	expect "$(ctl project list --json | jq -r --arg p "$given" \
		'.[].project | select(.projectId == $p).ownerSlug')" $heir "owner"
}

# With a run, a mirror, and what a fetch that was cut short leaves.
before_remove() {
	do_create
	[ -n "$MADE" ] || fail "no project was made"
	ask_surely "$MADE"
	wait_for 30 "idle $MADE"
	: >"$DATA/cache/$MADE.git.old-1"
}

# What is acknowledged of it is gone with it.
do_remove() {
	sed -i "/^$MADE$/d" "$T/created"
	sed -n "s/^$MADE //p" "$T/acked" >>"$T/removed"
	echo "$MADE" >>"$T/removed"
	sed -i "/^$MADE /d" "$T/acked"
	wait_for 20 "timeout 20 '$BUILD/anvilctl' -c '$CONF' project rm --yes $MADE >/dev/null 2>&1 || [ -e $ORDER.hit ]"
	rm -f "$T/steps/$MADE"
}

deliveries=0
do_deliver() {
	local body signature answer
	deliveries=$((deliveries + 1))
	body=$(jq -cn '{ref: "refs/heads/main", before: ("0" * 40), after: ("a" * 40), pusher: null,
		commits: [{message: "x"}], repository: {clone_url: "https://localhost:1/repo.git"}}')
	signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret" -r | cut -d' ' -f1)
	# A forge delivers again what was not answered.
	for _ in 1 2 3 4 5; do
		answer=$(curl -sS -m 20 -w '\n%{http_code}' -H 'Content-Type: application/json' \
			-H 'X-Gitea-Event: push' -H "X-Gitea-Delivery: d$deliveries" \
			-H "X-Gitea-Signature: $signature" --data-binary "$body" \
			"http://127.0.0.1:$PORT/api/public/hooks/gitea/demo/hooked" 2>/dev/null) || answer=000
		case ${answer##*$'\n'} in
		20?)
			[[ $answer =~ run_[0-9A-Za-z]{22} ]] || fail "delivery: $answer"
			echo "$hooked ${BASH_REMATCH[0]}" >>"$T/acked"
			return
			;;
		esac
		wait_for 20 "healthy || ended $ANVILD"
	done
	fail "delivery d$deliveries: $answer"
}

new_secret() {
	local answer
	answer=$(post "/api/private/projects/$hooked/webhooks/gitea/rotate-secret")
	[ "${answer##*$'\n'}" = 200 ] || return 0
	secret=$(head -n 1 <<<"$answer" | field secret)
	rm -f "$T/unsure"
}

do_new_secret() {
	touch "$T/unsure"	# unless it is answered nobody knows which secret counts
	new_secret
}

undo_new_secret() {
	[ ! -e "$T/unsure" ] || wait_for 20 "new_secret && [ ! -e $T/unsure ]"
}

do_new_key() {
	timeout 20 "$BUILD/anvilctl" -c "$CONF" keys rotate >/dev/null 2>&1 || true
}

# In a folder where anvil may make no file.
do_new_key_in_place() {
	chmod 555 "$T/keys"
	[ -z "$ACCOUNT" ] || chown root "$T/keys"
	do_new_key
}

undo_new_key_in_place() {
	[ -z "$ACCOUNT" ] || chown "$ACCOUNT" "$T/keys"
	chmod 755 "$T/keys"
}

do_start_again() {
	end_supervisor
	launch
}

# A run that goes on while a new supervisor comes.
before_outlive() {
	hold "$side"
}

do_outlive() {
	do_start_again
}

undo_outlive() {
	go_on
}

# What an unfinished rotation has left is put in its place by the next start.
do_settle_key() {
	local keys=$T/keys/keys.json
	end_supervisor
	cp -p "$keys" "$DATA/keys.next.json"
	launch
}

# A system without any store or key.
do_begin() {
	local pid pids
	if [ -n "$ANVILD" ]; then
		pids=$(descendants "$ANVILD")
		end_supervisor
		for pid in $pids; do
			kill -KILL "$pid" 2>/dev/null || true
			wait_for 10 "ended $pid"
		done
	fi
	rm -rf "$DATA" "$T/keys/keys.json"
	launch
}

# A process that is alive and says nothing: its lease runs out.
before_freeze() {
	hold "$side"
}

do_freeze() {
	kill -STOP "$PID"
	died_within 50 || true
}

undo_freeze() {
	go_on
}

# A project of which nobody has told the index that its shard has it.
before_doubt() {
	local doubt=$POINT
	POINT=create_inserted
	order_death
	do_create
	died_within 5 || fail "nobody died at $POINT"
	revive
	POINT=$doubt
}

do_doubt() {
	died_within 120 || true
}

# ---- what all of it has come to ------------------------------------------------------

# list ACTOR METHOD: all pages of it, one object a page.
list() {
	local cursor=null page
	while :; do
		page=$(ctl call "$1" "$2" "{\"cursor\":$cursor,\"limit\":500}" --json) || return 1
		printf '%s\n' "$page"
		cursor=$(jq -c .next <<<"$page")
		[ "$cursor" != null ] || break
	done
}

# Ledgers and index as they are, a run a line, in the order of acceptance.
read_truths() {
	local n
	for ((n = 0; n < ${conf[shards]-2}; n++)); do
		list "project/$n" project.listLedger || return 1
	done | jq -c '.runs[]' >"$T/ledger"
	list ingress index.list | jq -c '.runs[]' >"$T/index"
	jq -c .row "$T/ledger" | jq -cS 'del(.position)' | sort >"$T/ledger.rows"
	jq -cS 'del(.position)' "$T/index" | sort >"$T/index.rows"
}

# No project is on its way out.
all_removed() {
	local n
	for ((n = 0; n < ${conf[shards]-2}; n++)); do
		list "project/$n" project.listLedger || return 1
	done >"$T/phases" 2>/dev/null || return 1
	! jq -e '.projects[] | select(.phase == "removing")' "$T/phases" >/dev/null
}

# Every run has ended, and the index says of each what its ledger says.
has_settled() {
	read_truths 2>/dev/null || return 1
	! jq -e 'select(.indexSync != "done")' "$T/ledger" >/dev/null || return 1
	cmp -s "$T/ledger.rows" "$T/index.rows"
}

# The runs of each project began in the order in which they were accepted, each step once, and
# none while another was at work.
check_steps() {
	local file project again
	for file in "$T"/steps/*; do
		[ -e "$file" ] || continue
		project=${file##*/}
		again=$(sed -n 's/^b \([^ ]* [^ ]*\) .*/\1/p' "$file" | sort | uniq -d)
		expect "$again" "" "steps that were executed twice"
		again=$(grep '^o ' "$file" || true)
		expect "$again" "" "runs of one project at once"
		sed -n 's/^b \([^ ]*\) 1 .*/\1/p' "$file" >"$T/begun"
		jq -r --arg p "$project" 'select(.row.projectId == $p) | "\(.row.queuedAt) \(.row.runId)"' \
			"$T/ledger" | sort -n | cut -d' ' -f2 | grep -xFf "$T/begun" >"$T/accepted" || true
		cmp -s "$T/begun" "$T/accepted" ||
			fail "order of $project: $(diff "$T/accepted" "$T/begun" | head -n 20)"
	done
}

# A run that passed has executed both of its steps to their ends.
check_passed() {
	local run
	cat "$T"/steps/* >"$T/all_steps"
	for run in $(jq -r --arg boxed "${boxed-}" \
		'select(.row.status == "passed" and .row.projectId != $boxed) | .row.runId' "$T/ledger"); do
		expect "$(grep -c "^[be] $run " "$T/all_steps")" 4 "lines of the steps of $run"
	done
}

# Folders and files that are there only while something is at work.
check_files() {
	local left
	left=$(find "$DATA/runs" -mindepth 2 -maxdepth 2 \
		\( -name ws -o -name tmp -o -name home -o -name reserve \) | head -n 5)
	expect "$left" "" "left of runs"
	# But for a mirror, whose next fetch writes them again.
	left=$(find "$DATA" "$T/keys" -name '*.new' ! -path '*/cache/*' -o -name '*.old-*' -o -name '*.next.json' | head -n 5)
	expect "$left" "" "left-over files"
	left=$(find "$DATA" 2>/dev/null | grep -Ff "$T/removed" | head -n 5) || true
	expect "$left" "" "left of removed projects"
}

# Processes of runs whose groups are still there; a group is named after the process that made it.
groups_left() {
	find /sys/fs/cgroup -type d -name 'anvil-*-*-*' -printf '%f\n' 2>/dev/null | cut -d- -f2 | sort -u |
		comm -12 - <(grep -a '"event":"run_started"' "$LOG" | jq .pid | sort -u)
}

# verify: nothing that was acknowledged is missing, and all stores agree.
verify() {
	local run end
	revive
	wait_for 60 all_removed
	wait_for 90 has_settled
	end=$((SECONDS + 60))
	jq -r .row.runId "$T/ledger" | sort >"$T/known"
	expect "$(uniq -d "$T/known")" "" "runs that a ledger has twice"
	cut -d' ' -f2 "$T/acked" | sort -u >"$T/promised"
	expect "$(comm -23 "$T/promised" "$T/known")" "" "accepted runs that are lost"
	for run in $(cat "$T/canceled" 2>/dev/null); do
		expect_match "$(jq -r --arg r "$run" 'select(.row.runId == $r).row.status' "$T/ledger")" \
			'^(canceled|failed)$' "canceled run"
	done
	list ingress index.list | jq -r '.projects[] | select(.confirmed).config.projectId' |
		sort >"$T/projects"
	expect "$(sort -u "$T/created" 2>/dev/null | comm -23 - "$T/projects")" "" "projects that are lost"
	check_steps
	check_passed
	wait_for 10 '[ -z "$(groups_left)" ]'
	ctl keys status --json | jq -e '[.versions[] | select(.secrets > 0)] | length <= 1' >/dev/null ||
		fail "secrets under several keys: $(ctl keys status)"
	# What a supervisor finds left over it clears away beside its other work.
	until ctl check >"$T/check" 2>&1; do
		[ $SECONDS -lt $end ] || fail "anvilctl check: $(cat "$T/check")"
	done
}

# Whether every one of these points has had its death.
die_at_each() {	# POINT...
	local point
	for point in "$@"; do
		die_at "$point" || missed+=" $point"
	done
}

all_came_by() {
	[ -z "$missed" ] || fail "nobody came by:$missed"
}

matrix=(runs.sandbox=none runs.max_concurrent=4 "keys_file=$T/keys/keys.json"
	repositories.allow_private_hosts=true)

# A system with four projects ($projects), one for what is done beside them ($side) and one with
# a webhook ($hooked).
begin_matrix() {
	local n
	echo "ANVIL_SEED=$ANVIL_SEED"
	make_steps_repo "$T/src" one "$T/step" two "$T/step" >/dev/null
	for n in bad slow; do
		git_in "$T/src" branch "$n"
	done
	cp -r "$T/src" "$T/src0"
	cp -r "$T/src" "$T/src1"
	[ -n "$ANVILD" ] || start_all "${matrix[@]}"
	sign_in
	projects=()
	for n in 1 2 3 4; do
		projects+=("$(new_project "p$n" "file://$T/src")")
	done
	side=$(new_project side "file://$T/src0" '{"repoToken":"b7Qm2vX9cL4"}')
	hooked=$(new_project hooked https://localhost:1/repo '{"repoToken":"a4Kq9xV2mZ7"}')
	secret='correct horse battery staple'
	api PUT "/api/private/projects/$hooked/webhooks/gitea" "$(jq -cn --arg secret "$secret" \
		'{enabled: true, secret: $secret, config: {instanceUrl: "https://localhost:1"}}')" >/dev/null
}

# With a sandbox, in which steps see nothing of ours: those that leave a process behind are known
# by its argument.
die_boxed_at() {	# POINT...
	local left="^sleep 7$PORT\$"
	make_steps_repo "$T/boxed" one "setsid sleep 7$PORT & echo one" \
		two "[ \$ANVIL_BRANCH != slow ] || { setsid sleep 7$PORT & sleep 7$PORT; }" >/dev/null
	for n in bad slow; do
		git_in "$T/boxed" branch "$n"
	done
	boxed=$(new_project boxed "file://$T/boxed")
	configure runs.sandbox=bwrap
	end_supervisor
	launch
	revive
	projects=("$boxed")
	die_at_each "$@"
	# In the midst of a step.
	ask_surely "$boxed" slow
	wait_for 20 "pgrep -f '$left' >/dev/null && is_status $RUN running"
	kill -KILL "$(pid_of "run/$RUN")"
	has_ended "$RUN" failed
	wait_for 10 "! pgrep -f '$left' >/dev/null"
}

end_matrix() {
	verify
	stop_all
	check_files
}
