#!/bin/bash
# r01_ends_too_early.sh -- processes that end before they have done anything: a checkout, which
# must not take its run along; a run before its store, which has nothing to serve.
ORIGINAL=${ANVIL_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build/asan}
ANVIL_BUILD=$(mktemp -d)
chmod 755 "$ANVIL_BUILD"
for program in anvild anvilctl anvil-ingress anvil-project anvil-run anvil-init; do
	cp "$ORIGINAL/$program" "$ANVIL_BUILD"
done
# It works unless the file beside it forbids it.
cat >"$ANVIL_BUILD/anvil-checkout" <<EOF
#!/bin/sh
[ -e "$ANVIL_BUILD/none-today" ] || exec "$ORIGINAL/anvil-checkout" "\$@"
echo "no checkout today" >&2
exit 1
EOF
chmod 755 "$ANVIL_BUILD/anvil-checkout"
export ANVIL_BUILD
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" never 'echo never' >/dev/null
make_steps_repo "$T/other" wait "echo begun; $HOLD" >/dev/null
start_all runs.max_concurrent=1
sign_in
project=$(new_project hello "file://$T/src")
other=$(new_project other "file://$T/other")

# Gone before the run has its lease: it is forked while its shard does not answer.
holder=$(trigger "$other")
wait_for 20 "is_status $holder running"
run=$(trigger "$project")
: >"$ANVIL_BUILD/none-today"
wait_for 20 "ctl call supervisor supervisor.listRuns --json | jq -e '.queue != []' >/dev/null"
shard=$(ctl call ingress ingress.resolve '{"name":"demo/hello"}' --json | jq -r .shard)
shard=$(pid_of "project/$shard")
kill -STOP "$shard"
let_go "$holder"
wait_for 20 "logged checkout_failed $run"
kill -CONT "$shard"
has_failed "$run" checkout_failed '*its process ended unexpectedly (exit status 1)*'

# Gone at any other time before its request is read.
for _ in 1 2 3; do
	run=$(trigger "$project")
	has_failed "$run" checkout_failed '*its process ended unexpectedly (exit status 1)*'
done

# Only the folder was made: there is no store that anybody could wait for.
storeless=${run%?????}00000
mkdir "$DATA/runs/$storeless"
chown --reference="$DATA" "$DATA/runs/$storeless"
expect_in "$(ctl call supervisor supervisor.serveRun "{\"runId\":\"$storeless\"}" --json)" absent "serveRun"
stop_all
rm -rf "$ANVIL_BUILD"
