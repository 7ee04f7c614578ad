#!/bin/bash
# fuzz.sh BUILDDIR SECONDS: runs each fuzz target for that long, two at a time.
#
# Seeds and dictionary come from test/fuzz; what is found goes below BUILDDIR: corpus/<name>
# for the next time, crash/<name>-... for inputs that broke something.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
seconds=$2
mkdir -p "$dir/crash"

for source in test/fuzz/fuzz_*.c; do
	[ -e "$source" ] || continue
	name=$(basename "$source" .c)
	short=${name#fuzz_}
	mkdir -p "$dir/corpus/$short"
	run="$dir/test/fuzz-engine/$name -max_total_time=$seconds -timeout=10 -rss_limit_mb=2048"
	run+=" -error_exitcode=1 -artifact_prefix=$dir/crash/$short-"
	[ ! -e "test/fuzz/$short.dict" ] || run+=" -dict=test/fuzz/$short.dict"
	run+=" $dir/corpus/$short"
	[ ! -d "test/fuzz/corpus/$short" ] || run+=" test/fuzz/corpus/$short"
	printf 'one\tfuzz/%s\t%d\t%s\n' "$short" $((seconds + 60)) "$run"
done | scripts/run-tests.sh "$dir/log" 2
