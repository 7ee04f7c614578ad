# anvil -- one Makefile, recursive only to build another flavour.  `make help` prints the menu.
#
# Sources are found by their place: lib/<area>/*.c, cmd/<program>/*.c, test/<kind>/*.c.
# Everything made goes below build/: build/<flavour> for objects and programs, build/gen for
# the code that is made from proto/ and schema/.  FLAVOUR and CC choose the flavour.

FLAVOUR ?= release
ifeq ($(origin CC),default)
CC := gcc
endif
B := build/$(FLAVOUR)$(if $(findstring clang,$(CC)),-clang)
GEN := build/gen
HOST := build/host
VERSION := $(shell cat proto/VERSION 2>/dev/null || echo 0.0.0)
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla \
	-Wformat=2 -Wundef -Wpointer-arith -Wcast-qual -Wwrite-strings -Werror
CPPFLAGS_ALL = -D_GNU_SOURCE -DANVIL_VERSION='"$(VERSION)"' -I. -Ibuild $(CPPFLAGS)
HARDEN := -fstack-protector-strong -fPIE -fstack-clash-protection -fcf-protection
LDHARDEN := -Wl,-z,relro,-z,now,-z,noexecstack

FLAVOUR_release := -O2 -D_FORTIFY_SOURCE=2
FLAVOUR_asan := -O1 -DANVIL_FAULTS -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all -DANVIL_SANITIZED
FLAVOUR_tsan := -O1 -DANVIL_FAULTS -fno-omit-frame-pointer -fsanitize=thread -DANVIL_SANITIZED
FLAVOUR_faults := -O2 -D_FORTIFY_SOURCE=2 -DANVIL_FAULTS
FLAVOUR_fuzz := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link \
	-fno-sanitize-recover=all -DANVIL_SANITIZED
FLAVOUR_cover := -O0 --coverage -DANVIL_FAULTS
FLAVOUR_plain := -O0
ifndef FLAVOUR_$(FLAVOUR)
$(error FLAVOUR=$(FLAVOUR) is not known: release, asan, tsan, faults, fuzz, cover or plain)
endif
STD := -std=gnu17
CFLAGS_ALL = $(STD) -g $(WARN) $(HARDEN) $(FLAVOUR_$(FLAVOUR)) $(CFLAGS)
LDFLAGS_ALL = $(LDHARDEN) -Wl,--as-needed $(filter -fsanitize%,$(FLAVOUR_$(FLAVOUR))) $(LDFLAGS)
LIBS := -levent_core -levent_pthreads -ljansson -lsqlite3 -lsodium -lcrypto -lgit2 -lyaml \
	-lzstd -lwslay -lhttp_parser -lpthread -lm

# Programs that are static and never sanitized: they run where there are no libraries.
STATIC_PROGRAMS := anvil-init

# Unit tests that use threads; these run under the thread sanitizer too.
THREAD_TESTS := test_store_% test_actor_%

# Further linker flags of one program or test go into LINK_<its name>.

# ---- what there is -------------------------------------------------------------------

AREAS := $(notdir $(patsubst %/.,%,$(wildcard lib/*/.)))
PROGRAMS := $(filter-out anvil-protogen,$(notdir $(patsubst %/main.c,%,$(wildcard cmd/*/main.c))))
CMDS := $(filter-out anvil-protogen,$(notdir $(patsubst %/.,%,$(wildcard cmd/*/.))))
STORES := $(patsubst schema/%/.,%,$(wildcard schema/*/.))
PROTOS := $(basename $(notdir $(wildcard proto/*.json)))

GEN_H := $(PROTOS:%=$(GEN)/%.h)
GEN_C := $(PROTOS:%=$(GEN)/%.c) $(STORES:%=$(GEN)/schema_%.c) $(GEN)/ui_files.c

UNIT_TESTS := $(patsubst %.c,$(B)/%,$(wildcard test/unit/test_*.c))
ACTOR_TESTS := $(patsubst %.c,$(B)/%,$(wildcard test/actor/test_*.c))
FUZZ_TARGETS := $(patsubst %.c,$(B)/%,$(wildcard test/fuzz/fuzz_*.c))
FUZZ_ENGINES := $(FUZZ_TARGETS:$(B)/test/fuzz/%=$(B)/test/fuzz-engine/%)
BENCHES := $(patsubst %.c,$(B)/%,$(wildcard test/bench/bench_*.c))
SOAK := $(B)/test/soak/soak
TSAN_TESTS := $(filter $(THREAD_TESTS:%=$(B)/test/unit/%),$(UNIT_TESTS))

objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)/*.c))
group = -Wl,--start-group $(1) -Wl,--end-group
# V=1 shows the commands themselves.
Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) '$(or $(2),$@)')
link = $(Q)$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(LINK_$(@F)) \
	$(if $(filter $(STATIC_PROGRAMS),$(@F)),-static-pie,-pie) -o $@

# remember,FILE,TEXT: rewrites the file when its text is another one, so that what depends on
# it is made again when a flag changes or a source goes.
same = $(and $(findstring <$(1)>,<$(2)>),$(findstring <$(2)>,<$(1)>))
remember = $(if $(call same,$(file <$(1)),made of $(2)),,$(shell mkdir -p $(dir $(1)))$(file >$(1),made of $(2)))

MAKING := $(filter-out clean help,$(or $(MAKECMDGOALS),all))
ifneq ($(MAKING),)
$(call remember,$(B)/flags,$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL))
$(foreach a,$(AREAS),$(call remember,$(B)/lib/$(a).list,$(call objects,lib/$(a))))
$(foreach c,$(CMDS),$(call remember,$(B)/cmd/$(c).list,$(call objects,cmd/$(c))))
$(call remember,$(B)/gen.list,$(GEN_C))
$(call remember,$(GEN)/ui.list,$(shell find cmd/anvil-ingress/ui -type f | sort))
endif

# Says which packages are missing before a compiler does; SETUP=no builds without asking.
ifneq ($(and $(filter all install,$(MAKING)),$(filter-out no,$(or $(SETUP),yes))),)
ifneq ($(shell scripts/setup.sh --check build >&2 || echo missing),)
$(error packages are missing)
endif
endif

# needs,NAME: the archives that a folder or test is linked with, itself included; read off the
# includes, so that a fault in one area stops only what uses it.
comma := ,
ifneq ($(MAKING),)
$(foreach n,$(shell scripts/needs.sh),$(eval NEEDS_$(subst :, := ,$(subst $(comma), ,$(n)))))
endif
archive_of = $(if $(filter lib/% cmd/%,$(1)),$(B)/$(1).a,$(if $(filter gen,$(1)),$(B)/gen.a))
needs = $(sort $(foreach n,$(filter $(AREAS:%=lib/%) $(CMDS:%=cmd/%) gen,$(NEEDS_$(1))),$(call archive_of,$(n))))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE all programs objects tests tsan-tests print-tsan-tests fuzz-engines benches gen asan tsan faults \
	unit check lint fuzz bench soak model cover demo install help clean

all: programs	## release build of every program (the default)
programs: $(PROGRAMS:%=$(B)/%)

asan tsan faults:	## build of every program in that flavour, below build/
	@$(MAKE) --no-print-directory FLAVOUR=$@ programs

# ---- generated code ------------------------------------------------------------------

# Several makes may be at work here for different flavours: what they share appears whole.
$(HOST)/anvil-protogen: $(wildcard cmd/anvil-protogen/*.[ch]) $(wildcard lib/base/*.[ch] lib/base/*.def)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(STD) -g -O1 $(WARN) $(CPPFLAGS_ALL) -o $@.$$$$ $(filter %.c,$^) -ljansson -lpthread \
	    && mv -f $@.$$$$ $@

# One run writes all that is made of a contract file.  What comes out as it was keeps its time,
# so that a new comment in a contract does not compile everything again.
$(GEN)/%.stamp: proto/%.json $(wildcard proto/*.json) $(HOST)/anvil-protogen
	@mkdir -p $(GEN)
	$(call say,GEN,proto/$*.json)
	$(Q)new=$$(mktemp -d $@.XXXXXX) && $(HOST)/anvil-protogen proto $* $$new && \
	for f in $$new/*; do \
		cmp -s $$f $(GEN)/$${f##*/} || mv -f $$f $(GEN)/ || exit 1; \
	done; ok=$$?; rm -rf $$new; exit $$ok
	@touch $@

$(GEN)/%.h $(GEN)/%.c: $(GEN)/%.stamp
	@:
$(GEN)/%_methods.h: $(GEN)/%.stamp
	@:
$(GEN)/http_routes.h: $(GEN)/http.stamp
	@:

define store_rule
$(GEN)/schema_$(1).c: $$(wildcard schema/$(1)/*.sql) scripts/embed-schema.sh
	@mkdir -p $$(@D)
	$$(call say,GEN)
	$$(Q)sh scripts/embed-schema.sh $(1) $$(filter %.sql,$$^) > $$@
endef
$(foreach s,$(STORES),$(eval $(call store_rule,$(s))))

UI := cmd/anvil-ingress/ui
UI_FILES := $(sort $(shell find $(UI) -type f))
$(GEN)/ui_files.c: $(UI_FILES) scripts/embed-ui.sh $(GEN)/ui.list
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)sh scripts/embed-ui.sh $(UI) $(UI_FILES) > $@

gen: $(GEN_H) $(GEN_C)

# ---- objects, archives, programs -----------------------------------------------------

$(B)/%.o: %.c $(B)/flags | $(GEN_H)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/gen/%.o: $(GEN)/%.c $(B)/flags | $(GEN_H)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

archive = @mkdir -p $(@D) && rm -f $@ && ar rcs $@ $(filter %.o,$^)

define area_rule
$(B)/lib/$(1).a: $$(call objects,lib/$(1)) $(B)/lib/$(1).list
	$$(archive)
endef
$(foreach a,$(AREAS),$(eval $(call area_rule,$(a))))

$(B)/gen.a: $(patsubst $(GEN)/%.c,$(B)/gen/%.o,$(GEN_C)) $(B)/gen.list
	$(archive)

define program_rule
$(B)/cmd/$(1).a: $$(filter-out $(B)/cmd/$(1)/main.o,$$(call objects,cmd/$(1))) $(B)/cmd/$(1).list
	$$(archive)
$(if $(and $(filter $(STATIC_PROGRAMS),$(1)),$(findstring sanitize,$(FLAVOUR_$(FLAVOUR)))),
$(B)/$(1): FORCE | $(GEN_H)
	@$$(MAKE) --no-print-directory FLAVOUR=release CC=gcc build/release/$(1)
	@mkdir -p $$(@D) && { cmp -s build/release/$(1) $$@ || cp build/release/$(1) $$@; }
,
$(B)/$(1): $(B)/cmd/$(1)/main.o $(B)/cmd/$(1).a $$(call needs,cmd/$(1))
	$$(call say,LINK)
	$$(link) $$< \
	    $$(call group,$$(filter %.a,$$^)) $(if $(filter $(STATIC_PROGRAMS),$(1)),,$$(LIBS))
)
endef
$(foreach c,$(CMDS),$(eval $(call program_rule,$(c))))

# Every object and program, to see that a compiler accepts them.
objects: programs $(foreach d,$(AREAS:%=lib/%) $(CMDS:%=cmd/%) test/support test/soak,$(call objects,$(d))) \
	$(patsubst %,%.o,$(UNIT_TESTS) $(ACTOR_TESTS) $(FUZZ_TARGETS) $(BENCHES))

# ---- tests ---------------------------------------------------------------------------

# Files beside a test that it includes the header of, in test/support for instance.
helpers = $(foreach n,$(filter-out $(1),$(filter test/%,$(NEEDS_$(1)))),$(patsubst %.c,$(B)/%.o,$(wildcard $(n).c)))
# A test with a sandbox starts the program that is PID 1 in it.
starts = $(if $(filter lib/sandbox,$(NEEDS_$(1))),$(filter $(STATIC_PROGRAMS:%=$(B)/%),$(PROGRAMS:%=$(B)/%)))

define test_rule
$(1): $(1).o $$(call helpers,$(2)) $$(call needs,$(2)) | $$(call starts,$(2))
	$$(call say,LINK)
	$$(link) $$(filter %.o,$$^) $$(call group,$$(filter %.a,$$^)) $$(LIBS) -lcmocka
endef
$(foreach t,$(UNIT_TESTS) $(ACTOR_TESTS) $(BENCHES) $(SOAK),$(eval $(call test_rule,$(t),$(t:$(B)/%=%))))
$(ACTOR_TESTS): | programs

# The first replays a corpus, the second is driven by the fuzzing engine of clang.
define fuzz_rule
$(1): $(1).o $(B)/test/fuzz/replay.o $$(call helpers,$(1:$(B)/%=%)) $$(call needs,$(1:$(B)/%=%))
	$$(call say,LINK)
	$$(link) $$(filter %.o,$$^) $$(call group,$$(filter %.a,$$^)) $$(LIBS)
$(1:$(B)/test/fuzz/%=$(B)/test/fuzz-engine/%): $(1).o $$(call helpers,$(1:$(B)/%=%)) $$(call needs,$(1:$(B)/%=%))
	@mkdir -p $$(@D)
	$$(call say,LINK)
	$$(link) -fsanitize=fuzzer $$(filter %.o,$$^) $$(call group,$$(filter %.a,$$^)) $$(LIBS)
endef
$(foreach t,$(FUZZ_TARGETS),$(eval $(call fuzz_rule,$(t))))

tests: programs $(UNIT_TESTS) $(ACTOR_TESTS) $(FUZZ_TARGETS) $(SOAK)
tsan-tests: $(TSAN_TESTS)
print-tsan-tests:
	@echo $(TSAN_TESTS)
fuzz-engines: $(FUZZ_ENGINES)
benches: $(BENCHES)

# `make unit T=test_wire_frame` builds and runs one.
unit: $(if $(T),$(B)/test/unit/$(T),$(UNIT_TESTS))	## unit tests of this flavour (T=name: one)
	@for t in $^; do echo "== $$t"; $$t || exit 1; done

check:	## every test but benches and long fuzzing, with sanitizers
	@scripts/setup.sh build test lint
	@scripts/check.sh

lint:	## clang-tidy, cppcheck and every check of the source
	@scripts/setup.sh build lint
	@scripts/lint.sh

fuzz:	## each fuzz target for FUZZ_SECONDS
	@$(MAKE) --no-print-directory FLAVOUR=fuzz CC=clang fuzz-engines
	@scripts/fuzz.sh build/fuzz-clang $(FUZZ_SECONDS)

bench:	## benches, on a release build (T="run idle": those; JSON=file: the table as JSON too)
	@$(MAKE) --no-print-directory FLAVOUR=release programs benches
	@$(MAKE) --no-print-directory FLAVOUR=faults programs build/faults/test/bench/bench_accept \
		build/faults/test/bench/bench_deliver
	@scripts/bench.sh build/release build/faults $(if $(JSON),--json $(JSON)) $(T)

soak:	## faults of every kind under load, then all promises are compared (SECONDS=3600 SEED=1)
	@scripts/setup.sh build test
	@$(MAKE) --no-print-directory FLAVOUR=faults programs build/faults/test/soak/soak
	@scripts/soak.sh build/faults $(or $(SECONDS),3600) $(or $(SEED),1)
	@for t in test/system/x0*.sh; do echo "$$t"; LONG=1 ANVIL_BUILD=$(CURDIR)/build/faults $$t || exit 1; done

model:	## the protocol of runs: every interleaving within bounds, and faults that must be found
	@scripts/setup.sh model
	@scripts/model.sh
	@scripts/model.sh --teeth

cover:	## unit tests with the share of lines that they execute
	@$(MAKE) --no-print-directory FLAVOUR=cover tests
	@scripts/cover.sh build/cover

demo:	## a whole system in a scratch directory, one push, one run
	@scripts/setup.sh build test
	@$(MAKE) --no-print-directory programs
	@scripts/demo.sh

# ---- install -------------------------------------------------------------------------

BIN := $(filter anvild anvilctl,$(PROGRAMS))
LIBEXEC := $(filter-out $(BIN),$(PROGRAMS))
MAN := $(wildcard cmd/*/*.[158])
COMPLETION := $(wildcard cmd/anvilctl/anvilctl.bash)
AT := $(DESTDIR)$(PREFIX)

install: all	## programs, man pages and completion below DESTDIR and PREFIX
	install -d $(AT)/bin $(AT)/libexec/anvil
	$(if $(BIN),install -m 755 $(BIN:%=$(B)/%) $(AT)/bin)
	$(if $(LIBEXEC),install -m 755 $(LIBEXEC:%=$(B)/%) $(AT)/libexec/anvil)
	$(foreach m,$(MAN),install -D -m 644 $(m) $(AT)/share/man/man$(subst .,,$(suffix $(m)))/$(notdir $(m)) &&) :
	$(if $(COMPLETION),install -D -m 644 $(COMPLETION) $(AT)/share/bash-completion/completions/anvilctl)

help:	## this list
	@sed -n 's/^\([a-z][a-z -]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

clean:	## removes build/
	rm -rf build

ifneq ($(MAKING),)
-include $(shell find $(B) -name '*.d' 2>/dev/null)
endif
