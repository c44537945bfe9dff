# SPDX-License-Identifier: GPL-2.0
#
# make                  the module for one kernel, see KDIR
# make modules-all      the module for every supported kernel whose headers
#                       are installed
# make check-style      checkpatch, W=1 and sparse: all must be silent
# make test             set-up, then every test; ends with a line
#                       "N passed, N failed, N skipped"
# make test-unit | test-guest | test-debug
#                       parts of it: unit tests; guest tests on the stock
#                       kernels; guest tests on the debug kernels
# make test-one TEST=name [KERNEL=6.1|6.12|kasan|kcsan]
# make test-powercut-long [CUTS=10000] [SEED=n] [COUNT=n] [KERNEL=...]
#                       one long run of power cuts, see tests/tools/powercut.c
# make demo             what the target does, shown in a guest
# make bench [ONLY=ssdcache,linear] [ROWS=...]
#                       the benchmarks, in virtual time
# make fuzz [RUNS=n]    fuzzes the on-disk format; needs clang
# make install          modules_install for KDIR
#
# Variables:
#   KDIR  kernel headers (or a built kernel tree) to build for. Without it:
#         the running kernel's, else the newest in /usr/src.
#   W, C, V are handed to Kbuild as usual.
#
# The module is built in build/<kernel release>/ out of links to the sources,
# so that builds for several kernels can live side by side. dm-ssdcache.ko
# here is a link to the one built last by a plain "make".

running := /lib/modules/$(shell uname -r)/build
newest := $(lastword $(shell ls -d /usr/src/linux-headers-[0-9]*-amd64 \
	2>/dev/null | grep -v -e '-rt-amd64$$' -e '-cloud-amd64$$' | sort -V))
KDIR ?= $(if $(wildcard $(running)/include/generated/utsrelease.h),$(running),$(newest))

release = $(shell sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null)
builddir = build/$(release)

# Other kernels than the one in KDIR, for modules-all.
supported := 6.1 6.12
all-kdirs := $(foreach v,$(supported),$(lastword $(shell \
	ls -d /usr/src/linux-headers-$(v).*-amd64 2>/dev/null | \
	grep -v -e '-rt-amd64$$' -e '-cloud-amd64$$' | sort -V)))

sources := $(wildcard *.c *.h) Kbuild

.PHONY: all module links modules-all check-style test test-unit test-guest
.PHONY: test-debug test-one test-powercut-long demo bench fuzz setup install clean

all: module
	@ln -sfn $(builddir)/dm-ssdcache.ko dm-ssdcache.ko

# Only what is not there yet is linked; links to deleted sources go.
links:
	@if [ -z "$(release)" ]; then \
		echo "No kernel headers found in '$(KDIR)': give KDIR=" >&2; \
		exit 1; \
	fi
	@mkdir -p $(builddir)
	@find $(builddir) -maxdepth 1 -xtype l -exec rm -f {} +
	@for f in $(sources); do \
		[ -L $(builddir)/$$f ] || ln -s $(CURDIR)/$$f $(builddir)/$$f; \
	done

module: links
	+@flock $(builddir)/.lock $(MAKE) -C $(KDIR) M=$(CURDIR)/$(builddir) modules

modules-all:
	@[ -n "$(all-kdirs)" ] || { echo "No kernel headers found" >&2; exit 1; }
	+@for k in $(all-kdirs); do \
		echo "== $$k"; \
		$(MAKE) --no-print-directory module KDIR=$$k || exit 1; \
	done

install: module
	+$(MAKE) -C $(KDIR) M=$(CURDIR)/$(builddir) modules_install

setup:
	tests/setup.sh

check-style:
	tests/check-style

test:
	@tests/run all

test-unit:
	@tests/run unit

test-guest:
	@tests/run guest

test-debug:
	@tests/run debug

test-one:
	@tests/run one $(TEST) $(KERNEL)

test-powercut-long:
	@tests/guest/run --kernel $(or $(KERNEL),6.12) --no-module --mem 768 \
		--test-module powercut --timeout 86400 --env CUTS=$(or $(CUTS),10000) \
		$(if $(SEED),--env SEED=$(SEED)) $(if $(COUNT),--env COUNT=$(COUNT)) \
		tests/guest/t-powercut.sh

demo:
	@tests/setup.sh packages
	@tests/setup.sh kernel 6.12
	@mkdir -p build/demo
	@tar -cf build/demo/tree.tar -C $(lastword $(shell \
		ls -d /usr/src/linux-headers-6.12.*-common)) scripts include/uapi
	@tests/guest/run --kernel 6.12 --mem 2048 --timeout 600 \
		--file build/demo/tree.tar tests/guest/demo.sh

bench:
	@tests/bench/run

# What is found stays in build/fuzz/corpus for the next time.
RUNS ?= 10000000
fuzz:
	@mkdir -p build/fuzz/corpus
	clang -O2 -g -Wall -Wextra -Wno-unused-parameter \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-D_GNU_SOURCE -Itests/include -I. -o build/fuzz/fuzz-format \
		tests/fuzz/fuzz-format.c format.c
	build/fuzz/fuzz-format -runs=$(RUNS) -max_len=2000 \
		-artifact_prefix=build/fuzz/ build/fuzz/corpus tests/fuzz/corpus

clean:
	rm -rf build dm-ssdcache.ko
