#!/bin/bash
# p03_project_pages.sh -- projects, queue, history and webhooks in the web interface, in Chromium.
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/system/clients/clients.sh
. "$HERE/clients/clients.sh"

need chromium
need_clients
make_empty_repo "$T/src"
write_steps "$T/src"
commit_all "$T/src" "No steps" >/dev/null
make_steps_repo "$T/hold" wait "$HOLD_LONG" >/dev/null
git_in "$T/hold" branch other
start_all
at_once
sign_in
many=$(new_project many "file://$T/src")
hold=$(new_project hold "file://$T/hold")
for _ in $(seq 25); do
	run=$(trigger "$many")
	wait_for 30 "is_over $run"
done
killed_some=yes
allowed_errors='webhook_delivery_refused|request_failed'
client pages_project.mjs MANY="$many" HOLD="$hold" \
	CHROMIUM="$(command -v chromium)" >"$T/client.out" 2>&1 ||
	fail "pages_project.mjs: $(tail -n 80 "$T/client.out")"
wait_for 30 "! pgrep -f $T/client-home >$T/out"
stop_all
