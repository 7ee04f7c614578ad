#!/bin/bash
# p04_run_pages.sh -- the page of a run and its log viewer, in Chromium.
. "$(dirname "$0")/lib.sh"
# shellcheck source=test/system/clients/clients.sh
. "$HERE/clients/clients.sh"

need chromium
need_clients
make_steps_repo "$T/wait" first "echo 'first: begun'; $HOLD_LONG" \
	second 'for i in $(seq 200); do echo "second: line $i"; done; echo "second: over"' >/dev/null
make_steps_repo "$T/fails" bad 'exit 3' >/dev/null
make_steps_repo "$T/colours" all 'printf "\033[31mred\033[0m \033[38;2;10;20;30mdeep\033[0m \033[1;4mboth\033[0m\n"
printf "50%%\r100%%\n"
printf "日本語 🔨 é bell\a \033]0;title\a\n"
echo "<b>no markup</b>"
echo "to stderr" >&2' >/dev/null
make_steps_repo "$T/lines" many 'seq -f "line %.0f" 100000' >/dev/null
make_steps_repo "$T/much" much 'seq -f "a line with the number %.0f" 200000' >/dev/null
make_steps_repo "$T/long" long 'head -c 1048576 /dev/zero | tr "\0" x; echo' >/dev/null
start_all
at_once
sign_in
killed_some=yes
allowed_errors='actor_exited|request_failed|index_sync_failed'
client pages_run.mjs WAIT="$(new_project wait "file://$T/wait")" \
	COLOURS="$(new_project colours "file://$T/colours")" \
	LINES="$(new_project lines "file://$T/lines")" \
	MUCH="$(new_project much "file://$T/much")" \
	LONG="$(new_project long "file://$T/long")" \
	FAILS="$(new_project fails "file://$T/fails")" \
	CHROMIUM="$(command -v chromium)" >"$T/client.out" 2>&1 ||
	fail "pages_run.mjs: $(tail -n 100 "$T/client.out")"
wait_for 30 "! pgrep -f $T/client-home >$T/out"
stop_all
