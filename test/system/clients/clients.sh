#!/bin/bash
# clients.sh -- clients that others wrote, and the README's proxy before anvil; the tests with
# them source it after lib.sh.

# Lines of a step as $HOLD, for a test that does much before it lets go.
# shellcheck disable=SC2034 # the tests use it
HOLD_LONG=${HOLD/600/2400}

# readme_proxy PORT [LINES]: the example of the README as somebody has filled it in, with LINES
# in the server.  Time-outs that it raises are left out: by default it is anvil that has to keep
# connections alive.
readme_proxy() {
	local text known names="localhost;
	ssl_certificate $T/tls/server.pem;
	ssl_certificate_key $T/tls/server.key;
	${2-}
	#"
	text=$(awk '/^```nginx$/ { on = 1; next } /^```$/ { on = 0 } on' "$ROOT/README.md" |
		grep -v '_timeout ')
	for known in 'listen 443 ssl;' 'server_name ci.example.org;' 'http://127.0.0.1:8470;'; do
		expect_in "$text" "$known" "nginx in the README"
	done
	text=${text/443 ssl/127.0.0.1:$1 ssl}
	text=${text/ci.example.org;/"$names"}
	echo "${text/127.0.0.1:8470/127.0.0.1:$PORT}"
}

# pages_at PATH POLICY: the pages of this folder, in a server.
pages_at() {
	cat <<-END
	location $1 {
		alias $T/pages/;
		types { text/html html; text/javascript js; }
		add_header Content-Security-Policy "$2";
	}
	END
}

# proxy_start [KEY=VALUE...]: configures anvil for a proxy at $AT and starts both.  $AT_OTHER is
# another origin with the same pages; at $AT_PATIENT the proxy waits for two hours.  $CA_FILE is
# the authority behind the certificates.
proxy_start() {
	local port other patient policy pages user=
	need nginx openssl
	[ "$(id -u)" != 0 ] || user="user root;"
	CA_FILE=$T/tls/ca.pem
	mkdir -p "$T/tls" "$T/nginx" "$T/pages"
	make_ca ca
	make_certificate server ca
	free_port
	port=$FREE_PORT
	free_port
	other=$FREE_PORT
	free_port
	patient=$FREE_PORT
	AT=https://localhost:$port
	AT_OTHER=https://localhost:$other
	AT_PATIENT=https://localhost:$patient
	start_all public_url="$AT" trusted_proxies='[127.0.0.1]' "$@"
	# The pages are under the policy of anvil's own.
	policy=$(curl -sSI "http://127.0.0.1:$PORT/healthz" | tr -d '\r' |
		sed -n 's/^Content-Security-Policy: //ip')
	expect_in "$policy" connect-src "policy of anvil"
	pages="$(pages_at /pages/ "$policy") $(pages_at /sandboxed/ 'sandbox allow-scripts')
		location = /favicon.ico { return 204; }"
	cat >"$T/nginx/nginx.conf" <<-END
	$user
	daemon off;
	worker_processes 1;
	pid $T/nginx/pid;
	error_log $T/nginx/error.log;
	events { worker_connections 512; }
	http {
		access_log $T/nginx/access.log;
		client_body_temp_path $T/nginx/body;
		fastcgi_temp_path $T/nginx/fastcgi;
		proxy_temp_path $T/nginx/proxy;
		uwsgi_temp_path $T/nginx/uwsgi;
		scgi_temp_path $T/nginx/scgi;
		$(readme_proxy "$port" "$pages")
		$(readme_proxy "$other" "$pages")
		$(readme_proxy "$patient" "proxy_read_timeout 2h;")
	}
	END
	background nginx -p "$T/nginx" -c "$T/nginx/nginx.conf" -e "$T/nginx/error.log" \
		</dev/null >>"$T/nginx/error.log" 2>&1
	wait_for 20 "curl -s -o /dev/null --cacert $CA_FILE $AT/healthz"
}

# fetch_packages DIR: what package.json names, exactly as the lock has it.
fetch_packages() {
	mkdir -p "$1"
	cp "$HERE"/clients/package*.json "$1"
	(cd "$1" && timeout 60 npm ci --ignore-scripts --no-audit --no-fund --fetch-retries=0 \
		--cache "$T/npm-cache" >"$T/npm.log" 2>&1 </dev/null)
}

# get_clients: the programs of this folder and their packages, in $T/clients; fails, with the
# reason in $WHY_NOT, when these are not to be had.  The packages are fetched once for each list
# of them, and kept below build/.
get_clients() {
	local kept=$ROOT/build/clients key lock program
	for program in node npm; do
		WHY_NOT="$program is not here"
		command -v $program >/dev/null || return 1
	done
	WHY_NOT="node is older than 18"
	[ "$(node -p 'parseInt(process.versions.node)')" -ge 18 ] || return 1
	key=$(cat "$HERE"/clients/package*.json | sha256sum | head -c 16)
	mkdir -p "$kept"
	exec {lock}>"$kept/lock"
	flock "$lock"
	if [ ! -d "$kept/$key" ]; then
		WHY_NOT="npm cannot fetch the clients"
		fetch_packages "$T/fetched" || {
			exec {lock}>&-
			return 1
		}
		rm -rf "${kept:?}"/*/
		cp -r "$T/fetched" "$kept/new"
		mv "$kept/new" "$kept/$key"
	fi
	exec {lock}>&-
	mkdir -p "$T/clients" "$T/client-home" "$T/pages"
	cp -r "$kept/$key/node_modules" "$HERE"/clients/*.mjs "$T/clients"
	cp "$HERE"/clients/page.* "$T/pages"
	chmod -R a+rX "$T/clients" "$T/pages"
	[ -z "$ACCOUNT" ] || chown "$ACCOUNT" "$T/client-home"
}

need_clients() {
	get_clients || skip "$WHY_NOT"
}

# client PROGRAM [NAME=VALUE...]: runs one as anvil's user, so that it may let runs go and end
# processes; what it has to know is in its environment.
client() {
	as_account env -u http_proxy -u https_proxy HOME="$T/client-home" TMPDIR="$T/client-home" \
		NODE_EXTRA_CA_CERTS="$CA_FILE" AT="$AT" AT_OTHER="$AT_OTHER" TOKEN="$TOKEN" \
		DATA="$DATA" ANVILCTL="$BUILD/anvilctl" CONF="$CONF" "${@:2}" \
		node "$T/clients/$1"
}

# at_once: the clients speak to anvil itself, without a proxy.
at_once() {
	AT=http://127.0.0.1:$PORT
	AT_OTHER=$AT
	CA_FILE=/dev/null
}
