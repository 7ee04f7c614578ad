#!/bin/bash
# https.sh -- git over real HTTPS for the system tests; sourced by lib.sh.

# make_certificate NAME CA: $T/tls/NAME.pem and .key for localhost, signed by CA.
make_certificate() {
	openssl req -newkey rsa:2048 -nodes -subj /CN=localhost \
		-keyout "$T/tls/$1.key" -out "$T/tls/$1.csr" 2>/dev/null
	openssl x509 -req -in "$T/tls/$1.csr" -days 2 -CAcreateserial \
		-CA "$T/tls/$2.pem" -CAkey "$T/tls/$2.key" -out "$T/tls/$1.pem" \
		-extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") 2>/dev/null
}

make_ca() {	# NAME
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=anvil test $1" \
		-addext basicConstraints=critical,CA:TRUE \
		-keyout "$T/tls/$1.key" -out "$T/tls/$1.pem" 2>/dev/null
}

nginx_location() {	# PATH [LINES]
	cat <<-END
	location $1 {
		${2-}
		fastcgi_pass unix:$T/nginx/fcgi.sock;
		fastcgi_param SCRIPT_FILENAME $(git --exec-path)/git-http-backend;
		fastcgi_param GIT_PROJECT_ROOT $T/served;
		fastcgi_param GIT_HTTP_EXPORT_ALL 1;
		fastcgi_param GIT_CONFIG_NOSYSTEM 1;
		fastcgi_param GIT_CONFIG_GLOBAL /dev/null;
		fastcgi_param GIT_CONFIG_COUNT 1;
		fastcgi_param GIT_CONFIG_KEY_0 safe.directory;
		fastcgi_param GIT_CONFIG_VALUE_0 *;
		fastcgi_param PATH_INFO \$uri;
		fastcgi_param QUERY_STRING \$query_string;
		fastcgi_param REQUEST_METHOD \$request_method;
		fastcgi_param CONTENT_TYPE \$content_type;
		fastcgi_param CONTENT_LENGTH \$content_length;
		fastcgi_param HTTP_CONTENT_ENCODING \$http_content_encoding;
		fastcgi_param HTTP_GIT_PROTOCOL \$http_git_protocol;
	}
	END
}

nginx_conf() {
	local user=
	[ "$(id -u)" != 0 ] || user="user root;"
	cat <<-END
	$user
	daemon off;
	worker_processes 1;
	pid $T/nginx/pid;
	error_log $T/nginx/error.log;
	events { worker_connections 64; }
	http {
		access_log $T/nginx/access.log;
		client_body_temp_path $T/nginx/body;
		fastcgi_temp_path $T/nginx/fastcgi;
		proxy_temp_path $T/nginx/proxy;
		uwsgi_temp_path $T/nginx/uwsgi;
		scgi_temp_path $T/nginx/scgi;
		ssl_protocols TLSv1.2 TLSv1.3;
		server {
			listen 127.0.0.1:$HTTPS_PORT ssl;
			server_name localhost;
			ssl_certificate $T/tls/server.pem;
			ssl_certificate_key $T/tls/server.key;
			$(nginx_location /)
			$(nginx_location /private/ "auth_basic git; auth_basic_user_file $T/nginx/passwords;")
			${NGINX_MORE-}
			location /moved/ { return 302 https://127.0.0.1:$HTTPS_PORT/repo\$is_args\$args; }
		}
		server {
			listen 127.0.0.1:$STRANGE_PORT ssl;
			server_name localhost;
			ssl_certificate $T/tls/strange.pem;
			ssl_certificate_key $T/tls/strange.key;
			$(nginx_location /)
		}
	}
	END
}

# https_server: with what $NGINX_MORE adds to nginx's configuration, serves the repositories below $T/served at https://localhost:$HTTPS_PORT/, those
# below $T/served/private to the user oauth2 with the password $GIT_TOKEN alone.  $CA_FILE is
# the authority behind it; the server at $STRANGE_PORT has a certificate of another one.
https_server() {
	need nginx fcgiwrap openssl
	GIT_TOKEN=glpat-4Kq9xV2mZ7
	CA_FILE=$T/tls/ca.pem
	mkdir -p "$T/tls" "$T/nginx" "$T/served/private"
	make_ca ca
	make_ca other
	make_certificate server ca
	make_certificate strange other
	echo "oauth2:{PLAIN}$GIT_TOKEN" >"$T/nginx/passwords"
	free_port
	HTTPS_PORT=$FREE_PORT
	free_port
	STRANGE_PORT=$FREE_PORT
	nginx_conf >"$T/nginx/nginx.conf"
	background fcgiwrap -c 2 -s "unix:$T/nginx/fcgi.sock" </dev/null >>"$T/nginx/fcgi.log" 2>&1
	background nginx -p "$T/nginx" -c "$T/nginx/nginx.conf" -e "$T/nginx/error.log" \
		</dev/null >>"$T/nginx/error.log" 2>&1
	wait_for 10 "[ -S $T/nginx/fcgi.sock ]"
	wait_for 10 "curl -s -o /dev/null --cacert $CA_FILE https://localhost:$HTTPS_PORT/"
}

# serve_repo DIR NAME: a bare copy of a repository, as it is served.
serve_repo() {
	git_in "$T" clone -q --bare "$1" "$T/served/$2"
}
