#!/bin/bash
# l32_browser.sh -- Chromium before the live log, behind the proxy of the README.
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/system/clients/clients.sh
. "$HERE/clients/clients.sh"

need chromium
need_clients
# Both steps end when they are told; the second prints meanwhile.
make_steps_repo "$T/src" \
	first "echo 'first: begun'; $HOLD_LONG" \
	second 'for i in $(seq 3000); do
	echo "second: line $i"
	[ ! -e "$HOME/enough" ] || break
	sleep 0.02
done' >/dev/null
proxy_start
sign_in
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed'
client browser.mjs PROJECT="$(new_project hello "file://$T/src")" \
	CHROMIUM="$(command -v chromium)" || fail "browser.mjs"
# Its processes may take a moment longer than their parent.
wait_for 30 "! pgrep -f $T/client-home >$T/out"
stop_all
