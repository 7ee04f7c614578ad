#!/bin/bash
# l43_redaction.sh -- a credential with odd characters is nowhere to be seen, in whatever form a
# step prints it: in one piece or byte by byte, in names, commands, messages, events and the log.
. "$(dirname "$0")/lib.sh"

SECRET='p@ss/w+rd;x%1=~Q&<"'
USER=deploybot
pair64=$(printf %s "$USER:$SECRET" | base64 -w0)
x() { head -c "$1" /dev/zero | tr '\0' x; }

# A server that has the credential, and says it when it refuses.
said="ERR $(x 460)$pair64"
NGINX_MORE="location /said/ {
	default_type application/x-git-upload-pack-advertisement;
	return 200 \"001e# service=git-upload-pack\n0000$(printf %04x $((${#said} + 4)))$said\";
}"
https_server
echo "$USER:{PLAIN}$SECRET" >>"$T/nginx/passwords"
plain64=$(printf %s "$SECRET" | base64 -w0)
escaped=$(jq -rn --arg s "$SECRET" '$s | @uri')
lower='p%40ss%2fw%2brd%3bx%251%3d~Q%26%3c%22'
form='p%40ss%2Fw%2Brd%3Bx%251%3D%7EQ%26%3C%22'

# The steps get the secret in a form that is taken out of their commands.
# shellcheck disable=SC2016 # the steps expand it
make_steps_repo "$T/src" \
	forms 'T=$(echo '"$plain64"' | base64 -d)
b() { printf %s "$1" | base64 -w0; }
echo "a $T" "b '"$USER"':$T" "c $(b "$T")" "d $(b "$T" | tr +/ -_ | tr -d =)"
echo "e Authorization: Basic $(b "'"$USER"':$T")"
echo "f '"$escaped"'" "g '"$lower"'" "h '"$form"'" "i https://'"$USER:$escaped"'@localhost/x"
for before in x xx xxx; do echo "j $(b "$before${T}y")"; done
head -c 16380 /dev/zero | tr "\0" .; echo "k $T"
for i in $(seq 3000); do printf %s "$T"; done; echo
printf "l "; for ((i = 0; i < ${#T}; i++)); do printf %s "${T:i:1}"; sleep 0.02; done; echo
for part in "${T:0:9}" "${T:9}"; do printf %s "$part"; sleep 0.1; printf %s "$part" >&2; sleep 0.1; done
echo; echo "forms are over"' \
	"named $pair64" 'exit 3' >/dev/null
serve_repo "$T/src" private/repo

# Configs whose faults are told; in most the text is cut in the middle of the secret.
make_empty_repo "$T/bad"
config() {	# BRANCH WORKING_DIRECTORY [MORE]
	git_in "$T/bad" checkout -q -B "$1"
	printf 'version: 1\nrun: {workingDirectory: "%s", steps: [{name: a, run: "rm -r /workspace/x*"},
		{name: b, run: "true"}], %s}\n' "$2" "${3-}" >"$T/bad/.anvil.yml"
	commit_all "$T/bad" "$1" >/dev/null
}
config main "../$escaped"
config value "../$(x 30)$pair64"
config key . "\"$pair64\": 1"
config missing "$(x 33)$pair64"
deep=$(x 200)/$(x 200)/$(x 80)/$pair64
config gone "$deep"
mkdir -p "$T/bad/$deep" && touch "$T/bad/$deep/file"
commit_all "$T/bad" "A directory" >/dev/null
serve_repo "$T/bad" private/bad
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true log.level=debug
sign_in
token=$(jq -cn --arg t "$USER:$SECRET" '{repoToken: $t}')
url=https://localhost:$HTTPS_PORT/private
project=$(new_project odd "$url/repo" "$token")
bad=$(new_project bad "$url/bad" "$token")
says=$(new_project says "https://localhost:$HTTPS_PORT/said/repo" "$token")

# shows_nothing FILE: neither the secret nor the better part of one of its forms.
shows_nothing() {
	local one
	for one in "$SECRET" 'w+rd;x%1' "${plain64:2:16}" "${pair64:4:24}" "$escaped" "$lower" "$form" \
		"$(jq -rn --arg s "$SECRET" '$s | @json' | tr -d '\n')"; do
		! grep -qaF -- "$one" "$1" || fail "\"$one\" in $1"
	done
}

run=$(trigger "$project")
curl -sSN -m 60 -H "Authorization: Bearer $TOKEN" \
	"http://127.0.0.1:$PORT/api/private/runs/$run/events" >"$T/events" &
viewer=$!
has_failed "$run" step_failed 'Step "named [[]REDACTED]" failed with exit code 3.'
wait $viewer || fail "the stream was cut"
log_of "$run" >"$T/text"
detail_of "$run" | jq . >"$T/detail"
ctl why "$run" >"$T/why"
grep -qa 'forms are over' "$T/text" || fail "the step did not come to its end"
expect "$(grep -a '^[a-l] ' "$T/text" | grep -avc 'REDACTED' || true)" 0 "lines that show something"
expect "$(grep -aoF '[REDACTED]' "$T/text" | wc -l)" "$((14 + 3000 + 4))" "marks"
for file in text detail events why; do
	shows_nothing "$T/$file"
done

# tells_nothing RUN CODE MESSAGE: the run fails so, and shows nothing either.
tells_nothing() {
	has_failed "$@"
	log_of "$1" >"$T/text"
	detail_of "$1" | jq . >"$T/detail"
	shows_nothing "$T/text"
	shows_nothing "$T/detail"
}

tells_nothing "$(trigger "$bad")" config_invalid '*workingDirectory*REDACTED*'
tells_nothing "$(trigger "$bad" value)" config_invalid '*got "../xx*REDACTED*'
tells_nothing "$(trigger "$bad" key)" config_invalid '*: run.*REDACTED*: unknown key "*REDACTED*'
tells_nothing "$(trigger "$bad" missing)" config_invalid '*got "xx*REDACTED*no directory*'
tells_nothing "$(trigger "$bad" gone)" step_failed '*xx/*REDACTED* is gone.'
tells_nothing "$(trigger "$says")" checkout_failed 'Checkout failed: remote error: xx*x[[]REDACTED]'
shows_nothing "$LOG"
expect "$(grep -rlaF -e "$SECRET" -e "$plain64" -e "$pair64" "$DATA" --exclude-dir=cache || true)" "" \
	"files with the secret"
stop_all
