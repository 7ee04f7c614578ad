#!/bin/bash
# k02_backup_killed.sh -- killed at each step of a backup and of a restore: a backup is whole or is
# none, the system goes on; the data is the old or the new, and the next try succeeds.
. "$(dirname "$0")/lib.sh"

ORDER=$T/order/point
mkdir "$T/order"
chmod 777 "$T/order"
export ANVIL_CRASH_FILE=$ORDER
killed_some=yes
allowed_errors='actor_exited'

order() {	# POINT [SKIP]
	rm -f "$ORDER.hit"
	echo "$*" >"$ORDER.new"
	chmod 666 "$ORDER.new"
	mv "$ORDER.new" "$ORDER"
}

# Everything that the manifest names is there and is what it says.
is_whole() {	# BACKUP
	jq -r '.files[] | .sha256 + "  " + .path' "$1/manifest.json" |
		(cd "$1" && sha256sum -c --quiet >/dev/null 2>&1)
}

make_steps_repo "$T/src" say 'for i in $(seq 300); do echo "line $i"; done' >/dev/null
make_steps_repo "$T/long" begin 'echo begun' hold "$HOLD" >/dev/null
start_all shards=1
sign_in
plain=$(new_project plain "file://$T/src")
long=$(new_project long "file://$T/long")
statuses() {	# PROJECT: of its runs, without a process that serves them
	api GET "/api/private/projects/$1/runs" | jq -r '[.runs[].status] | join(" ")'
}
first=$(trigger "$plain")
passed=$(trigger "$plain")
wait_for 40 '[ "$(statuses "$plain")" = "passed passed" ]'
active=$(trigger "$long")
queued=$(trigger "$long")
wait_for 20 "log_of $active | grep -q begun"

sed "s#^data_dir:.*#data_dir: $T/none#; s#^runtime_dir:.*#runtime_dir: $T/none#" "$CONF" \
	>"$T/other.yml"

# ---- a backup ------------------------------------------------------------------------

# Who dies is an actor (anvilctl waits for the next one), the process that copies runs, or
# anvilctl itself.
for point in copy_pages_written copy_synced "copy_pages_written 1" "copy_synced 1" \
	copier_has_store copy_log_written copier_has_run backup_run_copied \
	backup_shards_copied backup_runs_copied backup_all_copied backup_manifest_written; do
	rm -rf "$T/bk"
	# shellcheck disable=SC2086 # two words
	order $point
	rc=0
	ctl backup "$T/bk" >"$T/out" 2>"$T/err" </dev/null || rc=$?
	[ -e "$ORDER.hit" ] || fail "nobody came by $point"
	if [ -e "$T/bk/manifest.json" ]; then
		is_whole "$T/bk" || fail "$point: the backup is not whole"
		[ $rc = 0 ] || expect "$point $rc" "backup_manifest_written 137" "who said no"
	else
		[ $rc != 0 ] || fail "$point: success without a manifest"
		# Who has said so has left nothing behind; who was killed, nothing that passes.
		[ $rc = 137 ] || [ ! -e "$T/bk" ] || fail "$point: something was left behind"
		expect_exit 1 "$BUILD/anvilctl" -c "$T/other.yml" restore "$T/bk"
		[ $rc != 137 ] || expect_in "$(cat "$T/err")" "has no manifest.json" "$point"
	fi
	wait_for 30 healthy
	expect "$(statuses "$long")" "queued running" "runs after $point"
done

# A backup of another moment, while the one that waited runs.
rm -rf "$T/bk"
expect_exit 0 ctl backup "$T/bk"
expect "$(jq .leftOut "$T/bk/manifest.json")" "[]" "left out"
let_go "$active"
has_ended "$active" passed
wait_for 20 "log_of $queued | grep -q begun"
expect_exit 0 ctl backup "$T/later"
let_go "$queued"
has_ended "$queued" passed
stop_anvild

# ---- a restore -----------------------------------------------------------------------

sum_of() {
	sha256sum <"$1" | cut -d' ' -f1
}
# Which set is there: every store is of the same.
which_set() {
	local file set all=
	for file in supervisor.db ingress.db project-0.db "runs/$passed/run.db"; do
		set=none
		[ ! -e "$DATA/$file" ] || case $(sum_of "$DATA/$file") in
		"$(sum_of "$T/old/$file")") set=old ;;
		"$(sum_of "$T/bk/$file")") set=new ;;
		*) set=other ;;
		esac
		all+="$set "
	done
	tr ' ' '\n' <<<"$all" | sort -u | xargs
}
cp -a "$DATA" "$T/old"
for point in restore_staging "restore_staging 3" restore_filled restore_swapped \
	restore_renamed; do
	rm -rf "$DATA" "$DATA".*
	cp -a "$T/old" "$DATA"
	# shellcheck disable=SC2086 # two words
	order $point
	expect_exit 137 ctl restore "$T/bk"
	case $point in
	restore_swapped | restore_renamed) want=new ;;
	*) want=old ;;
	esac
	expect "$(which_set)" "$want" "the data after $point"
	[ "$want" = old ] || [ -s "$(echo "$DATA".*)/supervisor.db" ] || fail "$point: the old data has gone"
	expect_exit 0 ctl restore "$T/bk"
	expect "$(which_set)" new "the data after another restore"
	expect "$(find "$T" -maxdepth 2 -name restore.unfinished -o -maxdepth 1 -name 'data.restoring-*')" "" "leftovers of $point"
done
rm -rf "$DATA".*

# ---- a ledger that is older than the runs --------------------------------------------

# In the one the run waits, in the other it goes on: that is how a backup under load looks.
rm -rf "$T/mixed"
cp -a "$T/bk" "$T/mixed"
rm -rf "$T/mixed/runs"
cp -a "$T/later/runs" "$T/mixed/runs"
jq -n --slurpfile a "$T/bk/manifest.json" --slurpfile b "$T/later/manifest.json" \
	'$a[0] | .files = ([.files[] | select(.path | startswith("runs/") | not)] +
		[$b[0].files[] | select(.path | startswith("runs/"))])' >"$T/mixed/manifest.json"
expect_exit 0 ctl restore "$T/mixed"
# The process that was to begin it anew is killed while it forgets: a lost runner as any other.
order run_forgetting_restored 2
start_anvild
# This one has ended in its store though not in its ledger: that counts.
has_ended "$active" passed
has_failed "$queued" runner_lost '*signal 9 (SIGKILL)*'
[ -e "$ORDER.hit" ] || fail "nobody forgot anything"
has_ended "$first" passed
expect "$(log_of "$passed" | grep -c '^line ')" 300 "lines in the log of a run that had ended"
stop_anvild

# And with nobody killed it runs from its beginning.
expect_exit 0 ctl restore "$T/mixed"
start_anvild
wait_for 40 "logged restored_run_begun_anew $queued && [ -d $DATA/runs/$queued/home ]"
let_go "$queued"
has_ended "$queued" passed
expect "$(log_of "$queued" | grep -c begun)" 1 "begun so often in the log"
stop_all
