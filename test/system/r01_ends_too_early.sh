#!/bin/bash
# r01_ends_too_early.sh -- processes that end before they have done anything: a checkout, which
# must not take its run along; a run before its store, which has nothing to serve.
ORIGINAL=${ANVIL_BUILD:-$(cd "$(dirname "$0")/../.." && pwd)/build/asan}
ANVIL_BUILD=$(mktemp -d)
chmod 755 "$ANVIL_BUILD"
for program in anvild anvilctl anvil-ingress anvil-project anvil-run anvil-init; do
	cp "$ORIGINAL/$program" "$ANVIL_BUILD"
done
cat >"$ANVIL_BUILD/anvil-checkout" <<'EOF'
#!/bin/sh
echo "no checkout today" >&2
exit 1
EOF
chmod 755 "$ANVIL_BUILD/anvil-checkout"
export ANVIL_BUILD
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" never 'echo never' >/dev/null
start_all
sign_in
project=$(new_project hello "file://$T/src")
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
