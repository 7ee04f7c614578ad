#!/bin/bash
# check-layers.sh: who includes whom.  Prints every include that points the wrong way.
#
# A folder may include lower folders only, and of those only the one public header; lib/base
# has several.  A header of a third-party library is included in the folder that wraps it.
set -euo pipefail
cd "$(dirname "$0")/.."

# What a folder may include, besides itself.
allowed() {
	case $1 in
	lib/base) ;;
	lib/ytree | lib/wire) echo "base" ;;
	lib/store) echo "base wire" ;;
	lib/actor) echo "base wire store gen" ;;
	lib/pipeline | lib/config) echo "base ytree wire store actor gen" ;;
	lib/*) echo "base wire store actor gen" ;;	# domain: not one another
	cmd/anvil-protogen) echo "base" ;;		# built before everything else
	cmd/*) echo "any" ;;
	esac
}

# Where the header of a third-party library may be included; nothing: not known here.
wrapped_in() {
	case $1 in
	jansson.h) echo "any" ;;
	event2/*) echo "lib/wire lib/actor lib/http" ;;
	yaml.h) echo "lib/ytree lib/pipeline lib/config" ;;
	sqlite3.h) echo "lib/store" ;;
	sodium.h | openssl/*) echo "lib/vault" ;;
	git2.h | git2/*) echo "lib/checkout" ;;
	http_parser.h | wslay/*) echo "lib/http" ;;
	zstd.h) echo "lib/record" ;;
	esac
}

# Headers of the C library and the kernel.
is_system() {
	case $1 in
	sys/* | linux/* | net/* | netinet/* | arpa/*) return 0 ;;
	assert.h | ctype.h | dirent.h | endian.h | errno.h | fcntl.h | fnmatch.h | fts.h | ftw.h | \
		getopt.h | grp.h | ifaddrs.h | inttypes.h | langinfo.h | limits.h | locale.h | \
		malloc.h | math.h | netdb.h | poll.h | pthread.h | pwd.h | sched.h | search.h | \
		semaphore.h | setjmp.h | signal.h | spawn.h | stdalign.h | stdarg.h | \
		stdatomic.h | stdbool.h | stddef.h | stdint.h | stdio.h | stdlib.h | \
		stdnoreturn.h | string.h | strings.h | syslog.h | termios.h | threads.h | \
		time.h | ucontext.h | unistd.h | execinfo.h | elf.h | wchar.h | \
		sanitizer/*) return 0 ;;
	esac
	return 1
}

bad=0
complain() {
	echo "$*"
	bad=1
}

check_ours() {	# FILE FOLDER PATH
	local area=${3#*/} name
	area=${area%%/*}
	case $3 in
	"$2"/*) return ;;
	gen/*) area=gen ;;
	schema/*.def) return ;;
	cmd/*) complain "$1: $3 belongs to another program" && return ;;
	lib/base/*) ;;
	lib/*/*)
		name=${3#lib/*/}
		if [ "$name" != "$area.h" ]; then
			complain "$1: $3 is private to lib/$area"
		fi
		;;
	*) complain "$1: $3 is no path below lib, cmd, schema or gen" && return ;;
	esac
	case " $(allowed "$2") " in
	" any " | *" $area "*) ;;
	*) complain "$1: $2 may not use $area ($3)" ;;
	esac
}

check_foreign() {	# FILE FOLDER HEADER
	local folders
	folders=$(wrapped_in "$3")
	case " $folders " in
	"  ") is_system "$3" || complain "$1: <$3> is not known to scripts/check-layers.sh" ;;
	" any " | *" $2 "*) ;;
	*) complain "$1: <$3> belongs to $folders" ;;
	esac
}

while IFS=: read -r file line; do
	folder=${file%/*}
	case $folder in
	lib/*/* | cmd/*/*) complain "$file: no folders below $(dirname "$folder")" ;;
	esac
	case $line in
	*\"*)
		header=${line#*\"} header=${header%%\"*}
		case $header in
		*/*) check_ours "$file" "$folder" "$header" ;;
		*) complain "$file: \"$header\" is not a path from the root" ;;
		esac
		;;
	*\<*)
		header=${line#*<} header=${header%%>*}
		check_foreign "$file" "$folder" "$header"
		;;
	esac
done < <(grep -rH --include='*.[ch]' '^ *# *include' lib cmd)
exit $bad
