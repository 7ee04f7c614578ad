#!/bin/bash
# u07_checkout_memory.sh -- a server that tells of more refs than a checkout may have memory for:
# that run alone fails, and names the limit.
. "$(dirname "$0")/lib.sh"

# Sanitizers reserve more than any limit: these two are of the release.
release=${ANVIL_RELEASE:-$ROOT/build/release}
for program in anvil-run anvil-checkout; do
	[ -x "$release/$program" ] || skip "$release/$program is not built"
done
mkdir "$T/bin"
cp "$BUILD"/anvil* "$T/bin" 2>/dev/null || true
cp "$release/anvil-run" "$T/bin"
cp "$release/anvil-checkout" "$T/bin/checkout-itself"
touch "$T/limit"
chmod 666 "$T/limit"
# What it would have, and then much less, so that the test need not be as large.
cat >"$T/bin/anvil-checkout" <<-END
	#!/bin/sh
	ulimit -d >>$T/limit
	ulimit -d 49152
	exec $T/bin/checkout-itself "\$@"
END
chmod 755 "$T/bin/anvil-checkout"
BUILD=$T/bin

make_steps_repo "$T/src" say "echo hello" >/dev/null
NGINX_MORE="location /endless/ { default_type application/x-git-upload-pack-advertisement; root $T/pages; }"
https_server
serve_repo "$T/src" small
mkdir -p "$T/pages/endless/info"
head=$(git_in "$T/src" rev-parse HEAD)
{
	printf '001e# service=git-upload-pack\n0000'
	printf '%04x%s HEAD\0agent=git/2\n' $((4 + 40 + 6 + 12)) "$head"
	# Each line has 4 + 40 + 1 + 20 + 1 bytes.
	seq -f "0042$head refs/heads/%09.0f" 500000
	printf 0000
} >"$T/pages/endless/info/refs"

start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true
sign_in
run=$(trigger "$(new_project endless "https://localhost:$HTTPS_PORT/endless")")
has_failed "$run" checkout_failed 'Checkout failed: out of memory (limit 50331648 bytes)'

# One that is as they are fits well.
has_ended "$(trigger "$(new_project small "https://localhost:$HTTPS_PORT/small")")" passed
limit=$(sort -nu "$T/limit")
[[ $limit =~ ^[0-9]+$ ]] && [ "$limit" -ge 1048576 ] || fail "the limit is \"$limit\" KiB"
stop_all
