# anvil -- one Makefile, no recursion.  `make help` prints the menu.
#
# Sources are found by their place: lib/<area>/*.c, cmd/<program>/*.c, test/<kind>/*.c.
# Everything made goes below build/: build/<flavour> for objects and programs, build/gen for
# the code that is made from proto/ and schema/.  FLAVOUR=release|asan|tsan, CC=gcc|clang.

comma := ,
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
CPPFLAGS += -D_GNU_SOURCE -DANVIL_VERSION='"$(VERSION)"' -I. -Ibuild
HARDEN := -fstack-protector-strong -fPIE -fstack-clash-protection -fcf-protection
LDHARDEN := -pie -Wl,-z,relro,-z,now,-z,noexecstack

FLAVOUR_release := -O2 -D_FORTIFY_SOURCE=2
FLAVOUR_asan := -O1 -DANVIL_FAULTS -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all -DANVIL_SANITIZED
FLAVOUR_tsan := -O1 -DANVIL_FAULTS -fno-omit-frame-pointer -fsanitize=thread -DANVIL_SANITIZED
FLAVOUR_faults := -O2 -D_FORTIFY_SOURCE=2 -DANVIL_FAULTS
FLAVOUR_fuzz := -O1 -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link \
	-fno-sanitize-recover=all -DANVIL_SANITIZED
ifndef FLAVOUR_$(FLAVOUR)
$(error FLAVOUR=$(FLAVOUR) is not known: release, asan, tsan, faults or fuzz)
endif
CFLAGS_ALL = -std=gnu17 -g $(WARN) $(HARDEN) $(FLAVOUR_$(FLAVOUR)) $(CFLAGS)
LDFLAGS_ALL = $(LDHARDEN) -Wl,--as-needed $(filter -fsanitize%,$(FLAVOUR_$(FLAVOUR))) $(LDFLAGS)
LIBS := -levent_core -levent_pthreads -ljansson -lsqlite3 -lsodium -lcrypto -lgit2 -lyaml \
	-lzstd -lwslay -lhttp_parser -lpthread -lm

# ---- what there is -------------------------------------------------------------------

AREAS := $(notdir $(wildcard lib/*))
PROGRAMS := $(filter-out anvil-protogen,$(notdir $(wildcard cmd/*)))
STORES := $(notdir $(wildcard schema/*/.))
STORES := $(patsubst schema/%/.,%,$(wildcard schema/*/.))
PROTOS := $(basename $(notdir $(wildcard proto/*.json)))

GEN_H := $(PROTOS:%=$(GEN)/%.h)
GEN_C := $(PROTOS:%=$(GEN)/%.c) $(STORES:%=$(GEN)/schema_%.c)
LIB_A := $(AREAS:%=$(B)/lib/%.a) $(B)/gen.a
LIB_GROUP = -Wl,--start-group $(LIB_A) -Wl,--end-group

objects = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)/*.c))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all help check lint clean

all: $(PROGRAMS:%=$(B)/%)	## release build of every program (the default)

# ---- generated code ------------------------------------------------------------------

$(HOST)/anvil-protogen: $(wildcard cmd/anvil-protogen/*.[ch]) $(wildcard lib/base/*.[ch] lib/base/*.def)
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -g -O1 $(WARN) $(CPPFLAGS) -o $@ $(filter %.c,$^) -ljansson -lpthread

# One run writes header, code and the document to serve of each contract file.
$(GEN)/%.h $(GEN)/%.c: proto/%.json proto/types.json $(HOST)/anvil-protogen
	@mkdir -p $(GEN)
	$(HOST)/anvil-protogen proto $* $(GEN)

$(GEN)/schema_%.c: schema/%/*.sql scripts/embed-schema.sh
	@mkdir -p $(GEN)
	sh scripts/embed-schema.sh $* $(filter %.sql,$^) > $@

# ---- objects, archives, programs ---------------------------------------------------------

$(B)/%.o: %.c $(GEN_H)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(B)/gen/%.o: $(GEN)/%.c $(GEN_H)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

define area_rule
$(B)/lib/$(1).a: $$(call objects,lib/$(1))
	@rm -f $$@
	ar rcs $$@ $$^
endef
$(foreach a,$(AREAS),$(eval $(call area_rule,$(a))))

$(B)/gen.a: $(patsubst $(GEN)/%.c,$(B)/gen/%.o,$(GEN_C))
	@rm -f $@
	ar rcs $@ $^

define program_rule
$(B)/cmd/$(1).a: $$(filter-out $(B)/cmd/$(1)/main.o,$$(call objects,cmd/$(1)))
	@mkdir -p $$(@D) && rm -f $$@
	ar rcs $$@ $$^
$(B)/$(1): $(B)/cmd/$(1)/main.o $(B)/cmd/$(1).a $$(LIB_A)
	$$(CC) $$(CFLAGS_ALL) $$(LDFLAGS_ALL) -o $$@ $(B)/cmd/$(1)/main.o \
	    -Wl,--start-group $(B)/cmd/$(1).a $$(LIB_A) -Wl,--end-group $$(LIBS)
endef
$(foreach p,$(PROGRAMS),$(eval $(call program_rule,$(p))))

# ---- tests ---------------------------------------------------------------------------

CMD_A := $(PROGRAMS:%=$(B)/cmd/%.a)
TEST_SUPPORT := $(call objects,test/support)
UNIT_TESTS := $(patsubst %.c,$(B)/%,$(wildcard test/unit/test_*.c))
ACTOR_TESTS := $(patsubst %.c,$(B)/%,$(wildcard test/actor/test_*.c))
FUZZ_TARGETS := $(patsubst %.c,%,$(notdir $(wildcard test/fuzz/fuzz_*.c)))
BENCHES := $(patsubst %.c,$(B)/%,$(wildcard test/bench/bench_*.c))

$(B)/test/unit/%: $(B)/test/unit/%.o $(TEST_SUPPORT) $(CMD_A) $(LIB_A)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(TEST_SUPPORT) \
	    -Wl,--start-group $(CMD_A) $(LIB_A) -Wl,--end-group $(LIBS) -lcmocka
$(B)/test/actor/%: $(B)/test/actor/%.o $(TEST_SUPPORT) $(CMD_A) $(LIB_A)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(TEST_SUPPORT) \
	    -Wl,--start-group $(CMD_A) $(LIB_A) -Wl,--end-group $(LIBS) -lcmocka
$(B)/test/bench/%: $(B)/test/bench/%.o $(LIB_A)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(LIB_GROUP) $(LIBS)
# Replays a corpus without a fuzzing engine; `make fuzz` links the engine instead.
$(B)/test/fuzz/%: $(B)/test/fuzz/%.o $(B)/test/fuzz/replay.o $(CMD_A) $(LIB_A)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< $(B)/test/fuzz/replay.o \
	    -Wl,--start-group $(CMD_A) $(LIB_A) -Wl,--end-group $(LIBS)
$(B)/test/fuzz-engine/%: $(B)/test/fuzz/%.o $(CMD_A) $(LIB_A)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $< \
	    -Wl,--start-group $(CMD_A) $(LIB_A) -Wl,--end-group $(LIBS)

# `make unit T=test_wire_frame` builds and runs one.
unit: $(if $(T),$(B)/test/unit/$(T),$(UNIT_TESTS))	## unit tests of this flavour (T=name: one)
	@for t in $^; do echo "== $$t"; $$t || exit 1; done

help:	## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

clean:	## removes build/
	rm -rf build

-include $(shell find $(B) -name '*.d' 2>/dev/null)
