#!/bin/sh
# needs.sh: prints what each folder and each test has to be linked with, read off its includes.
#
# One word each, NAME:NEED,NEED, where a need is lib/<area>, cmd/<program>, gen (the generated
# code) or test/<kind>/<file>, whatever is needed in turn included.
set -eu
find lib cmd test -name '*.[ch]' -exec grep -H '^#include "' {} + | awk -F '[:"]' '
function node_of(path, n, part) {
	n = split(path, part, "/")
	# Statements go with a schema, which is embedded in generated code.
	if (part[1] == "gen" || part[1] == "schema")
		return "gen"
	if (n < 3)
		return ""	# a neighbour in the same folder
	if (part[1] == "test")
		return substr(path, 1, length(path) - 2)
	return part[1] "/" part[2]
}
function reach(from, to, n, i, next_ones) {
	if (seen[to]++)
		return
	list = list "," to
	n = split(edges[to], next_ones, " ")
	for (i = 1; i <= n; i++)
		reach(from, next_ones[i])
}
{
	from = node_of($1)
	to = node_of($3)
	if (from != "" && to ~ /^(lib\/|cmd\/|gen$|test\/)/ && !known[from, to]++)
		edges[from] = edges[from] " " to
	if (from != "")
		nodes[from]
}
BEGIN {
	edges["gen"] = "lib/base lib/wire lib/store"
}
END {
	for (node in nodes) {
		delete seen
		list = ""
		reach(node, node)
		print node ":" substr(list, 2)
	}
}'
