#!/bin/bash
# l43_redaction.sh -- a credential with odd characters is nowhere to be seen, in whatever form a
# step prints it: in one piece or byte by byte, in names, commands, messages, events and the log.
. "$(dirname "$0")/lib.sh"

SECRET='p@ss/w+rd;x%1=~Q&<"'
USER=deploybot
https_server
echo "$USER:{PLAIN}$SECRET" >>"$T/nginx/passwords"
plain64=$(printf %s "$SECRET" | base64 -w0)
pair64=$(printf %s "$USER:$SECRET" | base64 -w0)
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
make_empty_repo "$T/bad"
printf 'version: 1\nrun: {workingDirectory: "../%s", steps: []}\n' "$escaped" >"$T/bad/.anvil.yml"
commit_all "$T/bad" "Bad" >/dev/null
serve_repo "$T/bad" private/bad
start_all repositories.ca_file="$CA_FILE" repositories.allow_private_hosts=true log.level=debug
sign_in
token=$(jq -cn --arg t "$USER:$SECRET" '{repoToken: $t}')
url=https://localhost:$HTTPS_PORT/private
project=$(new_project odd "$url/repo" "$token")
bad=$(new_project bad "$url/bad" "$token")

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

run=$(trigger "$bad")
has_failed "$run" config_invalid '*workingDirectory*REDACTED*'
log_of "$run" >"$T/text"
detail_of "$run" | jq . >"$T/detail"
shows_nothing "$T/text"
shows_nothing "$T/detail"
shows_nothing "$LOG"
expect "$(grep -rlaF -e "$SECRET" -e "$plain64" -e "$pair64" "$DATA" --exclude-dir=cache || true)" "" \
	"files with the secret"
stop_all
