#!/bin/sh
# embed-schema.sh STORE FILE...: prints C code with the migrations of a store, in order.
set -eu
store=$1
shift
n=0
printf '/* Made from schema/%s by scripts/embed-schema.sh: never edited. */\n' "$store"
printf '#include <stddef.h>\n#include "lib/store/store.h"\n\n'
printf 'extern const struct store_migration schema_%s[];\nextern const size_t schema_%s_count;\n\n' "$store" "$store"
printf 'const struct store_migration schema_%s[] = {\n' "$store"
for file in "$@"; do
	n=$((n + 1))
	number=$(basename "$file" | sed 's/_.*//')
	if [ "$number" != "$(printf '%04d' "$n")" ]; then
		echo "$file: the next migration has to be numbered $(printf '%04d' "$n")" >&2
		exit 1
	fi
	printf '\t{ "%s",\n' "$(basename "$file" .sql)"
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/\t    "/' -e 's/$/\\n"/' "$file"
	printf '\t},\n'
done
printf '};\nconst size_t schema_%s_count = %d;\n' "$store" "$n"
