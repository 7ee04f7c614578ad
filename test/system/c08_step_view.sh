#!/bin/bash
# c08_step_view.sh -- what a step sees: itself, its files, its environment, and nothing of anvil.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/src" \
	'see "it"' 'echo "uid=$(id -u)"
echo "dir=$PWD"
echo "init=$(tr "\0" " " </proc/1/cmdline)"
echo "processes=$(ls -d /proc/[0-9]* | wc -l)"
ls /proc/$$/fd >"$TMPDIR/fds"; echo "fds=$(xargs <"$TMPDIR/fds")"
for fd in 0 1 2; do echo "fd$fd=$(readlink /proc/$$/fd/$fd)"; done
echo "umask=$(umask)"
echo "session=$(ps -o sid= -p $$ | tr -d " ")=$$"
grep -E "^(NoNewPrivs|CapEff|CapBnd|SigBlk|SigIgn|SigCgt)" /proc/self/status
echo "core=$(ulimit -c)"
echo "oom=$(cat /proc/$$/oom_score_adj)"
env -0 | sort -z | tr "\0" "\n" | sed "s/^/env /"
echo "hidden=$(ls -d "'"$DATA"'" "'"$RUNTIME"'" "'"$CONF"'" "'"$T"'"/keys.json /etc/anvil /root /home/* 2>/dev/null | tr "\n" " ")"
touch /usr/x 2>/dev/null || echo "system is read-only"
touch here "$HOME/there" "$TMPDIR/everywhere" /tmp/tmp
ls -A /
tty || true
cat; export LOST=1; cd /; sleep 60 &' \
	again 'test -e here -a -e "$HOME/there" -a -e "$TMPDIR/everywhere" -a -e /tmp/tmp
echo "lost=${LOST-}"; echo "dir again=$PWD"; ! pgrep sleep; git status --short; git log --oneline -1' \
	pipefail 'echo ok; false | true' >/dev/null
start_all
sign_in
project=$(new_project view "file://$T/src")
run=$(trigger "$project")
has_failed "$run" step_failed 'Step "pipefail" failed with exit code 1.'
text=$(log_of "$run")
seen() {
	sed -n "s/^$1=//p" <<<"$text"
}

[ "$(seen uid)" != 0 ] || fail "a step runs as root"
expect "$(seen dir)" /workspace "directory"
expect "$(seen 'dir again')" /workspace "directory of the second step"
expect "$(seen lost)" "" "a variable of the step before"
expect_match "$(seen processes)" '^[2-9]$' "number of processes"
expect "$(seen fds)" "0 1 2" "descriptors"
expect "$(seen fd0)" /dev/null "standard input"
expect_match "$(seen fd1)" '^pipe:' "standard output"
expect "$(seen umask)" 0022 umask
expect "$(seen session | cut -d= -f1)" "$(seen session | cut -d= -f2)" "session of its own"
expect "$(seen core)" 0 "core limit"
expect "$(seen oom)" 500 oom_score_adj
expect "$(seen hidden)" "/home/anvil " "directories"
expect_in "$text" "system is read-only"
expect_in "$text" "not a tty"
status_line() {
	sed -n "s/^$1:[[:space:]]*//p" <<<"$text"
}
expect "$(status_line NoNewPrivs)" 1 NoNewPrivs
expect "$(status_line CapEff)" 0000000000000000 CapEff
expect "$(status_line SigBlk)" 0000000000000000 SigBlk
expect "$(status_line SigIgn)" 0000000000000000 SigIgn

commit=$(git_in "$T/src" rev-parse HEAD)
want=$(LC_ALL=C sort <<END
ANVIL=true
ANVIL_BRANCH=main
ANVIL_COMMIT_SHA=$commit
ANVIL_PROJECT=demo/view
ANVIL_PROJECT_ID=$project
ANVIL_RUN_ID=$run
ANVIL_STEP_NAME=see "it"
ANVIL_STEP_POSITION=1
ANVIL_TRIGGER=manual
CI=true
HOME=/home/anvil
LANG=C.UTF-8
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
TMPDIR=/tmp
USER=anvil
END
)
# What the shell itself adds is no part of what it was given.
got=$(sed -n 's/^env //p' <<<"$text" | grep -vE '^(PWD|SHLVL|_|OLDPWD)=' | LC_ALL=C sort)
expect "$got" "$want" "environment"
stop_all
