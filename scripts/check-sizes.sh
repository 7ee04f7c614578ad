#!/bin/bash
# check-sizes.sh: files, functions, parameters, nesting and macros within their limits.
#
# What exceeds one has to stand in size-exceptions.txt with exactly its size, and that file
# may only get shorter.  With --all every function is printed with its numbers.
set -euo pipefail
cd "$(dirname "$0")/.."

exceptions=scripts/size-exceptions.txt
most_exceptions=0

# KIND NAME SIZE LIMIT of everything that is measured.
measure() {
	find lib cmd test -name '*.[ch]' -exec awk -f scripts/strip-code.awk {} + | awk '
	function limit_of_file(name) {
		if (name ~ /\.h$/)
			return 200
		return name ~ /^cmd\/.*\/main\.c$/ ? 200 : 800
	}
	function follow_braces(text) {
		while (match(text, /[{}]/)) {
			depth += substr(text, RSTART, 1) == "{" ? 1 : -1
			if (depth > deepest)
				deepest = depth
			text = substr(text, RSTART + 1)
		}
	}
	# The commas between the outermost parentheses of a signature.
	function parameters(text, i, c, depth, n) {
		for (i = index(text, "("); i <= length(text); i++) {
			c = substr(text, i, 1)
			if (c == "(")
				depth++
			else if (c == ")" && --depth == 0)
				break
			else if (c == "," && depth == 1)
				n++
		}
		return n + 1
	}
	function end_of_file() {
		if (file != "")
			print "file", file, line, limit_of_file(file)
	}
	{
		split($0, part, ":")
		if (part[1] != file) {
			end_of_file()
			file = part[1]
			depth = state = 0
		}
		line = part[2]
		code = substr($0, length(part[1]) + length(part[2]) + 3)
		if (macro == "" && code ~ /^[ \t]*#[ \t]*define/) {
			macro = code
			sub(/^[ \t]*#[ \t]*define[ \t]+/, "", macro)
			sub(/[^A-Za-z0-9_].*/, "", macro)
			macro_from = line
		}
		if (macro != "" || code ~ /^[ \t]*#/) {
			if (macro != "" && code !~ /\\$/) {
				print "macro", file ":" macro, line - macro_from + 1, 12
				macro = ""
			}
			next
		}
		if (state == 0 && code ~ /^[a-z_][A-Za-z0-9_]*\(/) {
			state = 1
			name = code
			sub(/\(.*/, "", name)
			signature = ""
			from = line
		}
		if (state == 1) {
			if (code ~ /^\{/) {
				print "parameters", file ":" name, parameters(signature), 7
				state = 2
				depth = deepest = 0
			} else if (code ~ /;[ \t]*$/) {
				state = 0
			} else {
				signature = signature code
			}
		}
		if (state == 2) {
			follow_braces(code)
			if (code ~ /^\}/) {
				print "function", file ":" name, line - from + 1, 80
				print "nesting", file ":" name, deepest - 1, 4
				state = 0
			}
		}
	}
	END { end_of_file() }'
}

if [ "${1-}" = --all ]; then
	measure | sort -k1,1 -k3,3nr | column -t
	exit
fi
listed() { grep -v "^#" "$exceptions" || true; }
if [ "$(listed | wc -l)" -gt $most_exceptions ]; then
	echo "$exceptions: more than $most_exceptions lines; it may only get shorter"
	exit 1
fi
measure | awk -v list="$exceptions" '
BEGIN {
	while ((getline line <list) > 0)
		if (line !~ /^#/ && split(line, field, " ") == 3)
			excepted[field[1] " " field[2]] = field[3]
}
{
	key = $1 " " $2
	if (key in excepted) {
		if ($3 != excepted[key])
			complain(key " is " $3 " now; " list " says " excepted[key])
		delete excepted[key]
	} else if ($3 + 0 > $4 + 0) {
		complain(key " is " $3 ", the limit is " $4)
	}
}
END {
	for (key in excepted)
		complain(list ": there is no " key)
	exit bad
}
function complain(text) {
	print text
	bad = 1
}'
