#!/bin/bash
# w22_key_version.sh -- a rotation between the fork of a run and its claim: its token is sealed
# under a version that it was not given, so it gives itself back and is forked anew.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/src" say 'echo said' >/dev/null
https_server
serve_repo "$T/src" private/repo

# An anvil-run that waits as long as there is $T/hold.
mkdir "$T/bin"
cp "$BUILD/anvild" "$T/bin"
for program in "$BUILD"/anvil*; do
	[ -e "$T/bin/${program##*/}" ] || ln -s "$program" "$T/bin"
done
rm "$T/bin/anvil-run"
cat >"$T/bin/anvil-run" <<END
#!/bin/sh
case \$1 in
--*) ;;
*) while [ -e "$T/hold" ]; do sleep 0.05; done ;;
esac
exec "$BUILD/anvil-run" "\$@"
END
chmod 755 "$T/bin/anvil-run"
BUILD=$T/bin

start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
sign_in
project=$(new_project hello "https://localhost:$HTTPS_PORT/private/repo" \
	"{\"repoToken\":\"$GIT_TOKEN\"}")
state() {
	ctl keys status --json | jq -r '"\(.current):" + ([.versions[] |
		" \(if .present then "" else "!" end)\(.version)=\(.secrets)"] | join(""))'
}

touch "$T/hold"
run=$(trigger "$project")
wait_for 20 "[ -n \"\$(pid_of run/$run)\" ]"
first=$(pid_of "run/$run")
expect_exit 0 ctl keys rotate
wait_for 20 '[ "$(state)" = "2: 1=0 2=1" ]'
rm "$T/hold"
has_ended "$run" passed
logged key_version_missing "\"runId\":\"$run\"" || fail "the run did not miss the version"
logged key_version_missing '"keyVersion":2' || fail "another version was missed"
expect "$(grep -ac '"event":"key_version_missing"' "$LOG")" 1 "times that the run was given back"
expect "$(grep -a '"event":"run_claimed"' "$LOG" | grep -c "$run")" 2 "claims"
is_alive "$first" && fail "the first process of the run is still there"
expect_exit 0 ctl why "$run"
expect_in "$(cat "$T/out")" key_version "why"

# The next one is given both.
has_ended "$(trigger "$project")" passed
expect "$(grep -ac '"event":"key_version_missing"' "$LOG")" 1 "times that a run was given back"
stop_all
