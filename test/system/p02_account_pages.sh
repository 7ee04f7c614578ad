#!/bin/bash
# p02_account_pages.sh -- signing in, invites and sessions in the web interface, in Chromium.
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/system/clients/clients.sh
. "$HERE/clients/clients.sh"

need chromium
need_clients
make_steps_repo "$T/src" only 'echo hello' >/dev/null
start_all
at_once
sign_in
project=$(new_project hello "file://$T/src")
run=$(trigger "$project")
wait_for 30 "is_over $run"
client pages_account.mjs PROJECT="$project" RUN="$run" EMAIL=demo@example.com \
	PASSWORD='a long password' CHROMIUM="$(command -v chromium)" >"$T/client.out" 2>&1 ||
	fail "pages_account.mjs: $(tail -n 60 "$T/client.out")"
wait_for 30 "! pgrep -f $T/client-home >$T/out"
stop_all
