# SPDX-License-Identifier: GPL-2.0
# The machine is reset: what was flushed is there, what was clean stays warm and
# clean, what was dirty is drained before anything else may happen to it.
# kernels: 6.1 6.12
# smp: 2
# timeout: 400
# disk: 48M
# disk: 12M
# disk: 4M
# disk: 1M
# boots: 8
. /test/lib.sh
. /test/lib-check.sh

ARRAY=/dev/vda SSD=/dev/vdb MODEL=/dev/vdc NOTES=/dev/vdd

create() { ok "create${*:+, $*}" ssdcache_create cache $ARRAY $SSD "$@"; }
mode_is() { [ "$(status_field cache mode)" = "$1" ]; }

# The model of 98304 sectors is 2.6 MiB. What must be remembered of a boot:
note() { echo "$*" | dd of=$NOTES bs=4096 conv=sync oflag=direct status=none; }
noted() { dd if=$NOTES bs=4096 count=1 iflag=direct status=none | head -n 1; }

# run_check NAME [OPTION]...: goes on from the model on the disk, then flushes.
run_check()
{
	local name="$1"

	shift
	check "$name" --torn --load $MODEL --save $MODEL "$@" /dev/mapper/cache
}

verify() { check "$1" --verify-only --load $MODEL /dev/mapper/cache; }

# stays_warm VALID_BEFORE: at least 98 % of the blocks that were valid are.
stays_warm()
{
	compare "as warm as before: $(status_field cache valid_blocks) of $1 blocks" \
		"$(status_field cache valid_blocks)" -ge $(($1 * 98 / 100))
}

flush_and_compare()
{
	ok "flush" dmsetup message cache 0 flush
	drained "nothing is dirty"
	array_holds "the array holds it all" $MODEL $ARRAY
}

case $BOOT in
1)	# A, on the array; B over a part of it, flushed but not destaged.
	create 2 line_size 128
	check "A is written" --ops $(few 2000) --torn --save $MODEL --range 0:16384 \
		/dev/mapper/cache
	ok "flush" dmsetup message cache 0 flush
	drained "nothing is dirty"
	run_check "B is written" --ops $(few 400) --range 0:8192 --discards 0
	ok "sync" blockdev --flushbufs /dev/mapper/cache
	run_check "a flush" --ops 2 --reads 0 --writes 0 --fua 0 --discards 0 \
		--zeroes 0 --flushes 1
	sleep 2
	note "$(status_field cache valid_blocks) $(status_field cache dirty_blocks)"
	reset_machine
	;;
2)	# Clean data is clean, dirty data is dirty.
	set -- $(noted)
	create
	stays_warm "$1"
	compare "what was dirty is" "$(status_field cache dirty_blocks)" -ge "$2"
	compare "not all of the rest became dirty" \
		"$(status_field cache dirty_blocks)" -lt "$1"
	verify "B is read"
	# FUA writes alone, no flush.
	run_check "FUA writes" --ops $(few 400) --writes 0 --flushes 0 \
		--discards 0 --zeroes 0 --fua 30
	reset_machine
	;;
3)	create
	verify "they are there"
	flush_and_compare
	check_start --torn --load $MODEL --seconds 1000 --discards 0 --zeroes 0 \
		/dev/mapper/cache
	sleep 4
	check_going "I/O is running"
	reset_machine
	;;
4)	# In the middle of I/O. Asked for pass-through: drained first.
	create 2 mode passthrough
	check "nothing is older than its last flush" --verify-only --newer-ok \
		--load $MODEL --save $MODEL /dev/mapper/cache
	ok "it becomes passthrough" wait_for 60 mode_is passthrough
	drained "nothing is dirty"
	array_holds "the array holds what was read" $MODEL $ARRAY
	ok "set mode writethrough" dmsetup message cache 0 set mode writethrough
	run_check "I/O" --ops $(few 1000)
	# Lines that are not written are closed in 2 to 4 seconds.
	sleep 6
	note "$(status_field cache valid_blocks)"
	reset_machine
	;;
5)	# In write-through mode the array alone counts.
	set -- $(noted)
	array_holds "the array holds it all" $MODEL $ARRAY
	create 2 mode writethrough
	drained "nothing became dirty"
	stays_warm "$1"
	verify "verify"
	check_start --torn --load $MODEL --seconds 1000 --discards 0 --zeroes 0 \
		/dev/mapper/cache
	sleep 4
	check_going "I/O is running"
	reset_machine
	;;
6)	check "nothing is older than its last flush" --verify-only --newer-ok \
		--load $MODEL --save $MODEL $ARRAY
	create 2 mode writethrough
	drained "nothing became dirty"
	verify "the cache shows what the array holds"
	ok "set mode writeback" dmsetup message cache 0 set mode writeback
	run_check "I/O" --ops $(few 1000)
	run_check "a flush" --ops 2 --reads 0 --writes 0 --fua 0 --discards 0 \
		--zeroes 0 --flushes 1
	compare "there is dirty data" "$(status_field cache dirty_blocks)" -gt 0
	reset_machine
	;;
7)	# Asked for write-around, with writes at once.
	create 2 mode writearound
	run_check "verify while it drains" --ops $(few 1000)
	ok "it becomes writearound" wait_for 60 mode_is writearound
	drained "nothing is dirty"
	array_holds "the array holds it all" $MODEL $ARRAY
	ok "set mode writeback" dmsetup message cache 0 set mode writeback
	check_start --torn --load $MODEL --seconds 1000 --discards 0 --zeroes 0 \
		/dev/mapper/cache
	sleep 3
	# In the middle of a drain.
	dmsetup message cache 0 flush &
	sleep 0.3
	reset_machine
	;;
8)	create
	check "nothing is older than its last flush" --verify-only --newer-ok \
		--load $MODEL --save $MODEL /dev/mapper/cache
	ok "detach" dmsetup message cache 0 detach
	array_holds "the array holds what was read" $MODEL $ARRAY
	ok "remove" within 30 dmsetup remove cache
	fails "the SSD is not taken again" ssdcache_create cache $ARRAY $SSD
	;;
esac
