#!/bin/sh
# embed-ui.sh DIR FILE...: prints C code with the files of the web interface, by their paths
# beneath DIR.  The assembler takes them from where they lie; the digests make what is printed
# another one when a file changes.
set -eu
dir=$1
shift
type_of() {
	case $1 in
	*.html) echo 'text/html; charset=utf-8' ;;
	*.css) echo 'text/css; charset=utf-8' ;;
	*.js) echo 'text/javascript; charset=utf-8' ;;
	*.svg) echo 'image/svg+xml' ;;
	*) echo "embed-ui.sh: $1: which type is this?" >&2 && return 1 ;;
	esac
}
printf '/* Made from %s by scripts/embed-ui.sh: never edited. */\n' "$dir"
printf '#include "cmd/anvil-ingress/ui.h"\n\n'
n=0
for file in "$@"; do
	printf '__asm__(".section .rodata\\nui_%d:\\n.incbin \\"%s\\"\\nui_%d_end:\\n.byte 0\\n.previous\\n");\n' \
		$n "$file" $n
	printf 'extern const char ui_%d[], ui_%d_end[];\n' $n $n
	n=$((n + 1))
done
printf '\nconst struct ui_file ui_files[] = {\n'
n=0
for file in "$@"; do
	type=$(type_of "$file")
	printf '\t{ "/%s", "%s", "\\"%.16s\\"", ui_%d, ui_%d_end },\n' \
		"${file#"$dir"/}" "$type" "$(sha256sum "$file")" $n $n
	n=$((n + 1))
done
printf '};\nconst size_t ui_nfiles = %d;\n' $n
