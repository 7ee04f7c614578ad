#!/bin/bash
# p01_modules.sh -- the modules of the web interface that need no browser.
. "$(dirname "$0")/lib.sh"
need node
[ "$(node -p 'parseInt(process.versions.node)')" -ge 18 ] || skip "node is older than 18"
node --test "$ROOT/test/ui/" >"$T/out" 2>&1 || fail "$(grep -v '^#' "$T/out" | tail -n 60)"
