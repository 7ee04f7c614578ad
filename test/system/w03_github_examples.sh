#!/bin/bash
# w03_github_examples.sh -- every payload that GitHub's community has collected, in both
# encodings, for the project's repository and for another: no event disturbs, and pushes to the
# default branch become runs.
. "$(dirname "$0")/lib.sh"

need node npm
npm install --prefix "$T/npm" --cache "$T/npm-cache" --no-audit --no-fund --ignore-scripts \
	--no-update-notifier --fetch-retries=1 --fetch-timeout=20000 \
	@octokit/webhooks-examples@7.6.1 >"$T/npm.out" 2>&1 </dev/null ||
	skip "the registry of npm does not give the payloads: $(head -n 1 "$T/npm.out")"
secret='correct horse battery staple'

# Of every payload its event, the file and what is to come of it.  A payload without a repository
# is delivered as it is; the others also with the project's name in place of theirs.
cat >"$T/deliver.js" <<'END'
const fs = require("fs"), http = require("http"), crypto = require("crypto");
const [dir, port, secret] = process.argv.slice(2);
const agent = new http.Agent({keepAlive: true, maxSockets: 8});
const own = "Example/Hello", counts = {};

function wanted(event, body)
{
	const name = body.repository?.full_name;
	if (name !== undefined && name.toLowerCase() !== own.toLowerCase())
		return "403 webhook_repo_mismatch";
	if (event === "ping")
		return "200 ignored_ping";
	if (event !== "push" || !body.ref.startsWith("refs/heads/"))
		return "200 ignored_event";
	if (body.ref !== "refs/heads/master")
		return "200 ignored_branch";
	return /^0+$/.test(body.after) ? "200 ignored_event" : "202 accepted";
}

function deliver(event, id, text, type)
{
	const headers = {
		"Content-Type": type, "Content-Length": text.length, "User-Agent": "GitHub-Hookshot/0",
		"X-GitHub-Event": event, "X-GitHub-Delivery": id, "X-GitHub-Hook-ID": "1",
		"X-Hub-Signature": "sha1=" + crypto.createHmac("sha1", secret).update(text).digest("hex"),
		"X-Hub-Signature-256":
			"sha256=" + crypto.createHmac("sha256", secret).update(text).digest("hex"),
	};
	const path = "/api/public/hooks/github/demo/hello";
	return new Promise((done, failed) => {
		const to = http.request({host: "127.0.0.1", port, path, method: "POST", headers, agent}, from => {
			let got = "";
			from.on("data", part => got += part).on("end", () => {
				const answer = JSON.parse(got);
				done(`${from.statusCode} ${answer.outcome ?? answer.error.code}`);
			});
		});
		to.on("error", failed).end(text);
	});
}

const todo = [];

function plan(where, event, body)
{
	const json = Buffer.from(JSON.stringify(body)), want = wanted(event, body);
	const form = Buffer.from(String(new URLSearchParams({payload: json})));
	const what = `${where}, ${event} ${body.action ?? ""}`;
	todo.push({what, event, want, text: json, type: "application/json"},
		{what, event, want, text: form, type: "application/x-www-form-urlencoded"});
}

async function work()
{
	for (let one; (one = todo.shift()) !== undefined; ) {
		const got = await deliver(one.event, crypto.randomUUID(), one.text, one.type);
		if (got !== one.want) {
			console.log(`${one.what} as ${one.type}: got "${got}", expected "${one.want}"`);
			process.exitCode = 1;
		}
		counts[got] = (counts[got] ?? 0) + 1;
	}
}

for (const place of fs.readdirSync(dir).sort()) {
	if (!fs.existsSync(`${dir}/${place}/index.json`))
		continue;
	for (const {name, examples} of JSON.parse(fs.readFileSync(`${dir}/${place}/index.json`)))
		for (const example of examples) {
			plan(place, name, example);
			if (example.repository?.full_name === undefined)
				continue;
			example.repository.full_name = own;
			plan(place, name, example);
		}
}
Promise.all(Array.from({length: 8}, work)).then(() => {
	agent.destroy();
	fs.writeFileSync("counts.json", JSON.stringify(counts));
});
END

start_all limits.public_per_minute_per_address=0
sign_in
ctl drain >/dev/null
project=$(new_project hello https://github.com/example/hello '{"defaultBranch":"master"}')
hooks=/api/private/projects/$project/webhooks
api PUT "$hooks/github" "{\"enabled\":true,\"secret\":\"$secret\"}" >/dev/null

rc=0
(cd "$T" && node deliver.js npm/node_modules/@octokit/webhooks-examples "$PORT" "$secret") \
	>"$T/out" 2>&1 || rc=$?
expect "$rc" 0 "$(head -n 20 "$T/out")"
# Of each kind there are some.
expect "$(jq -r 'keys | join(", ")' "$T/counts.json")" \
	"200 ignored_event, 200 ignored_ping, 202 accepted, 403 webhook_repo_mismatch" \
	"outcomes"
[ "$(jq '."200 ignored_event"' "$T/counts.json")" -gt 1000 ] || fail "few events: $(cat "$T/counts.json")"
runs=$(jq '."202 accepted"' "$T/counts.json")
expect "$(api GET "/api/private/projects/$project/runs?limit=100" | jq '.runs | length')" "$runs" "runs"
for run in $(api GET "/api/private/projects/$project/runs?limit=100" | jq -r '.runs[].id'); do
	expect_match "$(ctl why "$run")" \
		'delivered +GitHub push [0-9a-f-]{36}, refs/heads/master at 6113728f27ae' "why"
done
stop_all
