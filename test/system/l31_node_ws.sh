#!/bin/bash
# l31_node_ws.sh -- Node's ws before the live log, behind the proxy of the README.
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/system/clients/clients.sh
. "$HERE/clients/clients.sh"

need_clients
make_steps_repo "$T/src" \
	first "echo 'first: all' >&2; echo 'first: begun'; $HOLD_LONG" \
	second 'for i in $(seq 50); do echo "second: line $i"; sleep 0.005; done' >/dev/null
proxy_start
sign_in
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed'
client node_ws.mjs PROJECT="$(new_project hello "file://$T/src")" || fail "node_ws.mjs"
stop_all
