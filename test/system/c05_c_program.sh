#!/bin/bash
# c05_c_program.sh -- builds a C program from a Makefile in the sandbox, and runs its test.
. "$(dirname "$0")/lib.sh"

make_empty_repo "$T/src"
mkdir "$T/src/program"
cat >"$T/src/program/sum.c" <<'END'
#include <stdio.h>
#include <stdlib.h>

int
main(int argc, char *argv[])
{
	long sum = 0;

	for (int i = 1; i < argc; i++)
		sum += strtol(argv[i], NULL, 10);
	printf("%ld\n", sum);
	return 0;
}
END
cat >"$T/src/program/Makefile" <<'END'
CFLAGS = -O1 -Wall -Wextra -Werror

sum: sum.o
	$(CC) $(CFLAGS) -o $@ sum.o
test: sum
	test "$$(./sum 1 2 39)" = 42
.PHONY: test
END
cat >"$T/src/.anvil.yml" <<'END'
version: 1
checkout:
  depth: 0
run:
  workingDirectory: program
  timeoutSeconds: 120
  steps:
    - name: build
      run: make
    - name: test
      run: |
        make test
        echo "the sum is $(./sum 40 2)"
    - name: break
      run: |
        echo 'int main(void) { return undeclared; }' > sum.c
        ! make
END
commit_all "$T/src" "A program" >/dev/null
start_all
sign_in
run=$(trigger "$(new_project program "file://$T/src")")
has_ended "$run" passed
text=$(log_of "$run")
expect_in "$text" "the sum is 42"
expect_in "$text" "undeclared"
stop_all
