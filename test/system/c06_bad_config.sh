#!/bin/bash
# c06_bad_config.sh -- each way in which an .anvil.yml can be wrong: code, message, nothing run.
. "$(dirname "$0")/lib.sh"

make_empty_repo "$T/src"
echo nothing >"$T/src/readme"
commit_all "$T/src" "Without a configuration" >/dev/null

declare -a cases=() patterns=()
# bad NAME PATTERN: the text on standard input becomes the configuration of a branch.
bad() {
	git_in "$T/src" switch -q -c "$1" main
	cat >"$T/src/.anvil.yml"
	commit_all "$T/src" "$1" >/dev/null
	git_in "$T/src" switch -q main
	cases+=("$1")
	patterns+=("$2")
}

yaml=$'Repository config is not valid YAML\n.anvil.yml:'
rules=$'Repository config failed validation\n.anvil.yml:'
steps='steps: [{name: a, run: b}]'

bad syntax "${yaml}[0-9]*" <<<'version: [1'
bad tab "${yaml}3:*tab*" <<<$'version: 1\nrun:\n\tsteps: []'
bad utf8 "$yaml*invalid UTF-8*" <<<$'version: 1\nrun: {steps: [{name: "\xff", run: x}]}'
bad duplicate-key "${yaml}4:*duplicate key \"steps\"*" <<<$'version: 1\nrun:\n  steps: []\n  steps: []'
bad anchor "$yaml*anchor &x is not allowed*" <<<$'version: 1\nrun: &x {steps: []}'
bad alias "$yaml*alias \\*x is not allowed*" <<<$'version: 1\nrun: *x'
bad tag "$yaml*tag*" <<<$'version: !!int 1\nrun: {steps: []}'
bad second-document "$yaml*second document*" <<<$'version: 1\nrun: {steps: []}\n---\nversion: 1'
bad deep "$yaml*nested deeper than 8*" <<<'version: [[[[[[[[[[1]]]]]]]]]]'

bad empty "$rules*" <<<''
bad list "$rules*" <<<'- version: 1'
bad unknown "$rules*unknown key \"jobs\"*" <<<$'version: 1\njobs: {}\nrun: {'"$steps"'}'
bad near "$rules*run.steps: missing*run.step: unknown key \"step\"*steps*" <<<$'version: 1\nrun: {step: []}'
bad merge "$rules*unknown key \"<<\"*" <<<$'version: 1\n<<: {}\nrun: {'"$steps"'}'
bad no-version "$rules*version: *missing*" <<<'run: {'"$steps"'}'
bad no-run "$rules*run: *missing*" <<<'version: 1'
bad no-steps "$rules*run.steps: *missing*" <<<$'version: 1\nrun: {}'
bad version-2 "$rules*version: expected *, got *2*" <<<$'version: 2\nrun: {'"$steps"'}'
bad version-text "$rules*version: expected *" <<<$'version: "1"\nrun: {'"$steps"'}'
bad null "$rules*run.timeoutSeconds: expected RunTimeoutSeconds*" <<<$'version: 1\nrun: {timeoutSeconds: null, '"$steps"'}'
bad hex "$rules*checkout.depth: expected CheckoutDepth, got*0x10*" <<<$'version: 1\ncheckout: {depth: 0x10}\nrun: {'"$steps"'}'
bad depth "$rules*checkout.depth: expected CheckoutDepth*" <<<$'version: 1\ncheckout: {depth: 2147483648}\nrun: {'"$steps"'}'
bad timeout-0 "$rules*run.timeoutSeconds: expected RunTimeoutSeconds*" <<<$'version: 1\nrun: {timeoutSeconds: 0, '"$steps"'}'
bad timeout-big "$rules*run.timeoutSeconds: expected RunTimeoutSeconds*" <<<$'version: 1\nrun: {timeoutSeconds: 3601, '"$steps"'}'
bad directory "${rules}2:*run.workingDirectory: expected RepoRelativePath, got \"../x\"*" <<<$'version: 1\nrun: {workingDirectory: "../x", '"$steps"'}'
bad no-directory "$rules*run.workingDirectory: *" <<<$'version: 1\nrun: {workingDirectory: not/there, '"$steps"'}'
bad file-directory "$rules*run.workingDirectory: *" <<<$'version: 1\nrun: {workingDirectory: readme, '"$steps"'}'
bad blank-name "$rules*run.steps\\[0\\].name: expected RepoConfigStepName*" <<<$'version: 1\nrun: {steps: [{name: "  ", run: b}]}'
bad no-command "$rules*run.steps\\[1\\].run: *missing*" <<<$'version: 1\nrun: {steps: [{name: a, run: b}, {name: c}]}'
bad step-text "$rules*run.steps\\[0\\]: expected*" <<<$'version: 1\nrun: {steps: [make]}'
bad 21-steps "$rules*run.steps: expected RepoConfigSteps*" < <(
	printf 'version: 1\nrun:\n  steps:\n'
	yes '  - {name: a, run: b}' | head -n 21
)
bad all-errors "$rules*version*"$'\n'"*checkout.depth*"$'\n'"*run.timeoutSeconds*" \
	<<<$'version: 3\ncheckout: {depth: x}\nrun: {timeoutSeconds: y, '"$steps"'}'
bad too-many "$rules*and 5 more" < <(
	printf 'version: 1\nrun: {%s}\n' "$steps"
	for i in $(seq 25); do echo "key$i: 1"; done
)
bad long $'Repository config failed size validation\n.anvil.yml: 7* bytes, 65536 are allowed' < <(
	printf 'version: 1\nrun: {steps: []}\n'
	yes '# a comment that is there to be long' | head -c 70000
)

git_in "$T/src" switch -q -c is-directory main
mkdir "$T/src/.anvil.yml"
echo x >"$T/src/.anvil.yml/file"
commit_all "$T/src" "A directory" >/dev/null
git_in "$T/src" switch -q -c is-symlink main
echo 'version: 1' >"$T/src/other.yml"
ln -s other.yml "$T/src/.anvil.yml"
commit_all "$T/src" "A symlink" >/dev/null
git_in "$T/src" switch -q main

start_all runs.sandbox=none runs.max_concurrent=4
sign_in
# Two projects, that two runs are under way at a time.
project=$(new_project config "file://$T/src")
second=$(new_project second "file://$T/src")
elsewhere=$(new_project elsewhere "file://$T/src" '{"configPath":"ci/build.yml"}')

check() {	# RUN CODE PATTERN
	has_failed "$@"
	expect "$(jq -c '[.steps, .run.exitCode]' <<<"$DETAIL")" '[[],1]' "steps and exit code"
}

[ ${#cases[@]} -le 40 ] || fail "more cases than two projects may have queued"
runs=()
for i in "${!cases[@]}"; do
	runs+=("$(trigger "$([ $((i % 2)) = 0 ] && echo "$project" || echo "$second")" "${cases[i]}")")
done
for i in "${!runs[@]}"; do
	check "${runs[i]}" config_invalid "${patterns[i]}"
done
expect_in "$(log_of "${runs[-1]}")" "65536 are allowed" "issue in the log"

check "$(trigger "$project")" config_not_found 'Repository config not found: .anvil.yml'
check "$(trigger "$elsewhere")" config_not_found 'Repository config not found: ci/build.yml'
for name in is-directory is-symlink; do
	check "$(trigger "$project" $name)" config_not_found \
		'Repository config not found: .anvil.yml (not a regular file)'
done
stop_all
