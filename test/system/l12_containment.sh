#!/bin/bash
# l12_containment.sh -- a step looks for anvil and for its neighbours, finds nothing of them, and
# harms nobody: neither the mirror that it reads from, nor the next run.
. "$(dirname "$0")/lib.sh"

make_steps_repo "$T/neighbour" hold "echo mine >secret; echo begun; $HOLD" >/dev/null
start_all
sign_in
neighbour=$(new_project neighbour "file://$T/neighbour")
other=$(trigger "$neighbour")
wait_for 20 "log_of $other | grep -q begun"
for path in "$DATA/runs/$other/ws/secret" "$DATA/cache/$neighbour.git"; do
	[ -e "$path" ] || fail "the neighbour is not where it is looked for: $path"
done

pids=$(descendants "$ANVILD" | xargs) # of anvil, and of the neighbour's step
# shellcheck disable=SC2016 # the step expands it
make_steps_repo "$T/src" \
	look 'set +e +o pipefail
for path in "'"$T"'" "'"$DATA"'" "'"$RUNTIME"'" "'"$CONF"'" "'"$DATA/runs/$other/ws/secret"'" "'"$DATA/cache/$neighbour.git"'" "'"$DATA/supervisor.db"'" "'"$RUNTIME/supervisor.sock"'" /run/anvil /var/lib/anvil; do
	[ ! -e "$path" ] || echo "SEES $path"
done
for pid in '"$ANVILD $pids"'; do
	if kill -0 $pid 2>/dev/null && grep -q anvil- /proc/$pid/comm; then echo "SEES process $pid"; fi
done
ls /etc/anvil 2>/dev/null | sed "s/^/SEES /"
cat /proc/[0-9]*/comm | grep -xE "anvild|anvil-(run|ingress|project|checkout)" | sed "s/^/SEES /"
cat /proc/[0-9]*/environ 2>/dev/null | tr "\0" "\n" | grep ANVIL_TEST_SCRATCH | sed "s/^/SEES /"
for fd in /proc/[0-9]*/fd/*; do
	case $(readlink "$fd") in *.db* | *.sock | *anvil.yml | *keys.json | *memfd*) echo "SEES $fd" ;; esac
done
find /run /etc /opt /home /tmp /workspace -type s 2>/dev/null | sed "s/^/SEES /"
cat /proc/1/environ /proc/1/mem 2>/dev/null | head -c 1 | sed "s/^/SEES init /"
echo "has looked"' \
	harm 'set +e +o pipefail
rm -rf /mirror /etc /opt/* 2>/dev/null || true
for f in $(find /mirror/objects -type f); do
	if (echo x >>"$f") 2>/dev/null || chmod 777 "$f" 2>/dev/null; then echo "HARMS $f"; fi
done
mount -o remount,rw /mirror/objects 2>/dev/null && echo "HARMS by mount"
unshare -rm mount -o remount,rw,bind /mirror/objects 2>/dev/null && echo "HARMS by unshare"
git gc -q --prune=now 2>/dev/null || true
git -c user.name=x -c user.email=x@localhost commit -q --allow-empty -m mine && git log --oneline | wc -l
ln -s "'"$DATA/runs/$other/ws"'" out; ln -s "'"$DATA"'" data; (echo x >out/secret) 2>/dev/null && echo "HARMS the neighbour"
rm -rf .git; kill -KILL -1; exit 3' >/dev/null

project=$(new_project looks "file://$T/src")
run=$(trigger "$project")
has_failed "$run" step_failed 'Step "harm" failed with exit code 3.'
text=$(log_of "$run")
expect_in "$text" "has looked"
expect "$(grep -E '^(SEES|HARMS)' <<<"$text")" "" "what the step has found"
expect "$(cat "$DATA/runs/$other/ws/secret")" mine "the neighbour's file"
as_account git -c safe.directory='*' --git-dir "$DATA/cache/$project.git" fsck --no-dangling >"$T/out" 2>&1 ||
	fail "mirror: $(cat "$T/out")"

# The mirror serves the next run, the neighbour has not noticed.
write_steps "$T/src" quick 'git status --short; git log --oneline | wc -l; echo "all is well"'
commit_all "$T/src" "Something quick" >/dev/null
run=$(trigger "$project")
has_ended "$run" passed
expect_in "$(log_of "$run")" "all is well"
let_go "$other"
has_ended "$other" passed
stop_all
