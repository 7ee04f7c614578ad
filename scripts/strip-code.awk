# strip-code.awk -- prints FILE:LINE:CODE of C files, without comments and what is in quotes.
FNR == 1 {
	in_comment = 0
}
{
	text = $0
	code = ""
	while (text != "") {
		if (in_comment) {
			at = index(text, "*/")
			if (at == 0)
				break
			text = substr(text, at + 2)
			in_comment = 0
		} else if (match(text, /"|'|\/\*|\/\//) == 0) {
			code = code text
			break
		} else {
			code = code substr(text, 1, RSTART - 1)
			mark = substr(text, RSTART, RLENGTH)
			text = substr(text, RSTART + RLENGTH)
			if (mark == "//")
				break
			if (mark == "/*") {
				in_comment = 1
				continue
			}
			code = code mark mark
			while (match(text, "[\\\\" mark "]")) {
				found = substr(text, RSTART, 1)
				text = substr(text, RSTART + (found == "\\" ? 2 : 1))
				if (found == mark)
					break
			}
		}
	}
	print FILENAME ":" FNR ":" code
}
