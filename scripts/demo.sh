#!/bin/bash
# demo.sh: a whole anvil in a scratch directory, and one push from its delivery to the end of
# its run.
#
# The forge is played by nginx with git-http-backend, and by curl, which delivers the push as
# Gitea would.
# On a terminal it stays up until Ctrl-C; without one, or with DEMO_EXIT=1, it stops everything
# and exits 0 if and only if the run passed.  Nothing is left behind either way.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${ANVIL_BUILD:-build/release}
PATH=$PATH:/usr/sbin	# nginx and fcgiwrap, for those who are not root
email=demo@example.org
stay=
[ -t 0 ] && [ -t 1 ] && [ "${DEMO_EXIT:-}" != 1 ] && stay=yes

bold='' dim='' red='' off=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ] && [ "${TERM:-dumb}" != dumb ]; then
	bold=$'\033[1m' dim=$'\033[2m' red=$'\033[31m' off=$'\033[0m'
fi

say() { printf '\n%s%s%s\n' "$bold" "$*" "$off"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$off"; }
die() {
	printf '%sdemo.sh: %s%s\n' "$red" "$*" "$off" >&2
	[ -z "$log" ] || [ ! -s "$log" ] || { echo "The last lines of anvild:" && tail -n 5 "$log"; } >&2
	exit 1
}

# ---- the end, however it comes ----

dir='' pid='' log=''
forge=()	# pids of what plays the forge
gone() { ! kill -0 "$pid" 2>/dev/null; }
wait_until() {	# SECONDS COMMAND...: polls, since bash cannot wait for everything
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}
stop() {
	trap '' INT TERM
	if [ -n "$pid" ] && ! gone; then
		kill -TERM "$pid" 2>/dev/null || true
		wait_until 20 gone || kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	fi
	[ ${#forge[@]} = 0 ] || kill "${forge[@]}" 2>/dev/null || true
	[ -z "$dir" ] || rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM HUP

# ---- a place, and an unprivileged user when this is root ----

for program in anvild anvilctl anvil-ingress anvil-project anvil-run; do
	[ -x "$build/$program" ] || die "$build/$program is not built; run: make"
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/anvil-demo.XXXXXX")
dir=$(realpath "$dir")
log=$dir/anvild.log
bin=$(realpath "$build")
user=
if [ "$(id -u)" = 0 ]; then
	# Builds never run as root, and that user may not reach the programs where they are.
	user=${SUDO_USER:-nobody}
	[ "$user" != root ] || user=nobody
	mkdir "$dir/bin"
	find "$build" -maxdepth 1 -type f -name 'anvil*' -perm -u+x -exec cp -t "$dir/bin" {} +
	bin=$dir/bin
fi

is_free() { ! (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

make_repository() {
	local repo=$dir/git/hello
	mkdir -p "$repo"
	cat >"$repo/picture.c" <<-'C'
		#include <complex.h>
		#include <stdio.h>
		#include <time.h>

		int
		main(int argc, char *argv[])
		{
			struct timespec pause = { .tv_nsec = argc > 1 ? 120000000 : 0 };

			(void)argv;
			for (double y = -1.2; y <= 1.2; y += 0.12) {
				for (double x = -2.1; x <= 0.7; x += 0.045) {
					double complex z = 0;
					int n = 0;

					while (n < 60 && creal(z) * creal(z) + cimag(z) * cimag(z) < 4) {
						z = z * z + x + y * I;
						n++;
					}
					putchar(" .:-=+*#%@@"[n / 6]);
				}
				putchar('\n');
				fflush(stdout);
				nanosleep(&pause, NULL);
			}
			return 0;
		}
	C
	cat >"$repo/.anvil.yml" <<-'YML'
		version: 1
		run:
		  timeoutSeconds: 60
		  steps:
		    - name: compile
		      run: cc -std=gnu17 -Wall -Wextra -Werror -O2 -o picture picture.c -lm
		    - name: test
		      run: |
		        ./picture | wc -lc
		        test "$(./picture | wc -l)" -ge 20
		    - name: paint
		      run: ./picture slowly
		    - name: where am I
		      run: |
		        echo "user $(id -u), commit ${ANVIL_COMMIT_SHA:0:12} of $ANVIL_PROJECT"
		        echo "processes that a step can see: $(ls -d /proc/[0-9]* | wc -l)"
	YML
	git -C "$repo" init -q -b main
	git -C "$repo" add -A
	git -C "$repo" -c user.name=demo -c user.email=$email -c commit.gpgsign=false \
		commit -q -m "Paint a picture"
}

# The forge's side of it: the repository at $forge_url/hello, for everyone who can reach the
# loopback address.
start_forge() {
	local port as=()
	for port in $(shuf -i 20000-32000 -n 5); do
		is_free "$port" && break
	done
	forge_url=http://127.0.0.1:$port
	mkdir "$dir/forge"
	cat >"$dir/forge/nginx.conf" <<-CONF
		daemon off;
		worker_processes 1;
		pid $dir/forge/nginx.pid;
		error_log $dir/forge/error.log;
		events { worker_connections 64; }
		http {
			access_log off;
			client_body_temp_path $dir/forge/body;
			fastcgi_temp_path $dir/forge/fastcgi;
			proxy_temp_path $dir/forge/proxy;
			uwsgi_temp_path $dir/forge/uwsgi;
			scgi_temp_path $dir/forge/scgi;
			server {
				listen 127.0.0.1:$port;
				location / {
					fastcgi_pass unix:$dir/forge/git.sock;
					fastcgi_param SCRIPT_FILENAME $(git --exec-path)/git-http-backend;
					fastcgi_param GIT_PROJECT_ROOT $dir/git;
					fastcgi_param GIT_HTTP_EXPORT_ALL 1;
					fastcgi_param PATH_INFO \$uri;
					fastcgi_param QUERY_STRING \$query_string;
					fastcgi_param REQUEST_METHOD \$request_method;
					fastcgi_param CONTENT_TYPE \$content_type;
					fastcgi_param CONTENT_LENGTH \$content_length;
					fastcgi_param HTTP_GIT_PROTOCOL \$http_git_protocol;
				}
			}
		}
	CONF
	if [ -n "$user" ]; then
		chown -R "$user:" "$dir"
		as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups)
	fi
	"${as[@]}" fcgiwrap -s "unix:$dir/forge/git.sock" >"$dir/forge/log" 2>&1 </dev/null &
	forge+=($!)
	"${as[@]}" nginx -p "$dir/forge" -c "$dir/forge/nginx.conf" -e "$dir/forge/error.log" \
		>>"$dir/forge/log" 2>&1 </dev/null &
	forge+=($!)
	wait_until 10 forge_answers || die "nginx does not answer at $forge_url: $(cat "$dir/forge/log")"
}
forge_answers() {
	[[ $(curl -s --max-time 2 "$forge_url/hello/info/refs?service=git-upload-pack" | tr -d '\0') == *refs/heads/main* ]]
}

write_config() {	# PORT
	cat >"$dir/anvil.yml" <<-YML
		version: 1
		${user:+user: "$user"}
		data_dir: "$dir/data"
		runtime_dir: "$dir/run"
		keys_file: "$dir/keys.json"
		listen: ["127.0.0.1:$1"]
		public_url: http://127.0.0.1:$1
		repositories: {allow_http: true, allow_private_hosts: true}
		runs: {min_free_bytes: 67108864}
	YML
}

# ---- start ----

is_ready() {
	gone || [[ $(curl -s --max-time 2 "$url/healthz") == *'"status":"ok"'* ]]
}

# The first port that is free; taken in the meantime, the next one is tried.
start() {
	local port
	for port in 8470 $(shuf -i 20000-32000 -n 5); do
		is_free "$port" || continue
		url=http://127.0.0.1:$port
		write_config "$port"
		[ -z "$user" ] || chown -R "$user:" "$dir"
		setsid "$bin/anvild" -c "$dir/anvil.yml" --stop-runs >"$log" 2>&1 </dev/null &
		pid=$!
		wait_until 20 is_ready || die "not healthy after 20 s: $(curl -s "$url/healthz")"
		gone || return 0
		grep -qi 'in use' "$log" || break
	done
	die "anvild did not start"
}

ctl() { "$bin/anvilctl" -d "$dir/run" "$@"; }

# ---- the API, by curl ----

session=
api() {	# PATH [BODY [METHOD]]: shows the command, leaves the answer in $answer
	local auth=() shown=$url$1
	if [ -n "$session" ]; then
		auth=(-H "Authorization: Bearer $session")
		shown="-H \"Authorization: Bearer \$SESSION\" $shown"
	fi
	if [ $# -ge 2 ]; then
		auth+=(--json "$2" ${3:+-X "$3"})
		shown="${3:+-X $3 }$shown --json '${2//$password/\$PASSWORD}'"
	fi
	show "curl $shown"
	answer=$(curl -s -S "${auth[@]}" "$url$1") || die "no answer from $url$1"
	case $answer in
	*'"error":{'*) die "$url$1 answered: $answer" ;;
	esac
}
field() {	# NAME: the first string of that name in $answer
	sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" <<<"${answer//,/,$'\n'}" | head -n 1
}

# deliver BODY: a delivery of a push, signed as Gitea signs it.
deliver() {
	local to=$url/api/public/hooks/gitea/demo/hello signature id
	signature=$(printf %s "$1" | openssl dgst -sha256 -hmac "$secret" | sed 's/.* //')
	id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	show "curl $to -H 'X-Gitea-Event: push' -H 'X-Gitea-Signature: ${signature:0:12}...' ... --json '$1'"
	answer=$(curl -s -S -H "X-Gitea-Event: push" -H "X-Gitea-Delivery: $id" \
		-H "X-Gitea-Signature: $signature" --json "$1" "$to") || die "no answer from $to"
	case $answer in
	*'"outcome":"accepted"'*) ;;
	*) die "$to answered: $answer" ;;
	esac
}

is_painting() {
	answer=$(curl -s -H "Authorization: Bearer $session" "$url/api/private/runs/$run")
	case $answer in
	*'"currentStep":3'* | *'"status":"failed"'* | *'"status":"passed"'*) return 0 ;;
	esac
	return 1
}

show_tree() {
	ps -eo pid=,ppid=,args= --sort=pid | awk -v root="$pid" -v bin="$bin/" -v wide=100 '
	function walk(pid, lead, last, n, i, list, text) {
		text = lead (pid == root ? "" : last ? "`-- " : "|-- ") args[pid]
		print "  " substr(text, 1, wide)
		n = split(kids[pid], list, " ")
		for (i = 1; i <= n; i++)
			walk(list[i], pid == root ? "" : lead (last ? "    " : "|   "), i == n)
	}
	{
		pid = $1
		kids[$2] = kids[$2] " " pid
		sub(/^ *[0-9]+ +[0-9]+ +/, "")
		while (at = index($0, bin))
			$0 = substr($0, 1, at - 1) substr($0, at + length(bin))
		args[pid] = $0
	}
	END { walk(root, "", 1) }'
}

# ---- the show ----

make_repository
start_forge
start
say "anvil is up at $url"
ctl ps

say "An account"
password=$(head -c 12 /dev/urandom | base64 | tr '+/' 'xy')
show "anvilctl user bootstrap demo $email"
ctl user bootstrap demo $email <<<"$password"

say "A session, a project, a webhook"
api /api/public/auth/login "{\"email\":\"$email\",\"password\":\"$password\"}"
session=$(field sessionId)
api /api/private/projects \
	"{\"projectSlug\":\"hello\",\"name\":\"Hello\",\"repoUrl\":\"$forge_url/hello\",\"defaultBranch\":\"main\"}"
project=$(field id)
api "/api/private/projects/$project/webhooks/gitea" \
	"{\"enabled\":true,\"config\":{\"instanceUrl\":\"$forge_url\"}}" PUT
secret=$(field generatedSecret)

say "A push, as a forge tells of it"
commit=$(git -C "$dir/git/hello" -c safe.directory='*' rev-parse HEAD)
deliver "{\"ref\":\"refs/heads/main\",\"after\":\"$commit\",\"repository\":{\"clone_url\":\"$forge_url/hello.git\"}}"
run=$(field runId)
echo "$run"

wait_until 30 is_painting || true
say "Its processes, each step in a sandbox of its own"
show_tree

say "Its log"
show "anvilctl logs --result $run"
passed=yes
ctl logs --result "$run" || passed=

say "The run is at"
echo "  $url/app/runs/$run"
echo "  login $email, password $password"
if [ -n "$stay" ]; then
	say "Where to look next, until Ctrl-C"
	cat <<-TEXT
		  export SESSION=$session
		  curl -H "Authorization: Bearer \$SESSION" $url/api/private/runs/$run/log
		  export ANVIL_RUNTIME_DIR=$dir/run PATH=$bin:\$PATH
		  anvilctl why $run
		  anvilctl deliveries demo/hello
		  anvilctl run demo/hello --watch
		  anvilctl --help
		  less $log
	TEXT
	trap 'exit 0' INT TERM HUP
	wait "$pid" || die "anvild has ended"
fi
[ -n "$passed" ]
