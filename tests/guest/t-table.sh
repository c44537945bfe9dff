# SPDX-License-Identifier: GPL-2.0
# Table lines: each key and all their combinations come back from TABLE status in
# a form that loads again; what is refused, and what is said then.
# kernels: 6.1 6.12
# smp: 2
# timeout: 300
. /test/lib.sh
. /test/lib-check.sh

must nullblk_create hdd 32 discard=1
must nullblk_create ssd 8

array=$(devno /dev/hdd) ssd=$(devno /dev/ssd)

# --- Accepted ---------------------------------------------------------------------

# accepted ARGS WANTED: creates it, compares the table, loads that again.
accepted()
{
	local name="table '$1'" table

	wipe /dev/ssd 4
	# shellcheck disable=SC2086
	ssdcache_create cache /dev/hdd /dev/ssd $1 || { fail "$name"; return; }
	is "$name" "$(table_args cache)" "$array $ssd${2:+ $2}"
	table=$(dmsetup table cache)
	if dmsetup load cache --table "$table" && dmsetup resume cache &&
	   [ "$(dmsetup table cache)" = "$table" ]; then
		pass "$name: loads again"
	else
		fail "$name: loads again" "$table" "$(dmsetup table cache)"
	fi
	must dmsetup remove cache
}

accepted "" ""
accepted "0" ""
for mode in writeback writethrough writearound passthrough; do
	accepted "2 mode $mode" "2 mode $mode"
done
for line in 128 256 512; do
	accepted "2 line_size $line" "2 line_size $line"
done
for cutoff in 0 1 8192 18446744073709551615; do
	accepted "2 seq_cutoff $cutoff" "2 seq_cutoff $cutoff"
done
for discard in passdown nopassdown; do
	accepted "2 discard $discard" "2 discard $discard"
done
# The combinations, in the order that is printed and backwards.
for n in $(fast && seq 3 15 || echo 15); do
	args='' back='' count=0
	[ $((n & 1)) = 0 ] || {
		args="$args mode writearound" back=" mode writearound$back"
		count=$((count + 2)); }
	[ $((n & 2)) = 0 ] || {
		args="$args line_size 256" back=" line_size 256$back"
		count=$((count + 2)); }
	[ $((n & 4)) = 0 ] || {
		args="$args seq_cutoff 4096" back=" seq_cutoff 4096$back"
		count=$((count + 2)); }
	[ $((n & 8)) = 0 ] || {
		args="$args discard nopassdown" back=" discard nopassdown$back"
		count=$((count + 2)); }
	[ $count -gt 2 ] || continue
	accepted "$count$back" "$count$args"
done
accepted "4 seq_cutoff 1 seq_cutoff 2" "2 seq_cutoff 2"

# What was set by message is in the table, too.
wipe /dev/ssd 4
must ssdcache_create cache /dev/hdd /dev/ssd
must dmsetup message cache 0 set seq_cutoff 77
must dmsetup message cache 0 set mode writethrough
must dmsetup message cache 0 set discard nopassdown
is "keys set by message" "$(table_args cache)" \
	"$array $ssd 6 mode writethrough seq_cutoff 77 discard nopassdown"
must dmsetup remove cache
ok "by major and minor" dmsetup create cache --table \
	"0 $(sectors /dev/hdd) ssdcache $array $ssd"
is "the same" "$(table_args cache)" "$array $ssd"
must dmsetup remove cache

# --- Refused ----------------------------------------------------------------------

# refused NAME WHAT-IS-SAID ARRAY SSD [ARGS]...
refused()
{
	local name="$1" said="$2"

	shift 2
	kmsg_mark
	if dmsetup create refused --table "$(ssdcache_table "$@")" \
			>/tmp/refused 2>&1; then
		fail "$name: is refused"
		dmsetup remove refused
		return
	fi
	if kmsg_since | grep -q -F -- "$said"; then
		pass "$name: is refused"
	else
		fail "$name: is refused, and why" "wanted: $said" "$(kmsg_since)"
	fi
	! dmsetup info refused >/dev/null 2>&1 || dmsetup remove refused
}

line_512="line_size must be 128, 256 or 512 sectors"
SSDCACHE_SECTORS=$(sectors /dev/hdd)
refused "no device" "Usage:"
refused "one device" "Usage:" /dev/hdd
refused "no such array" "Array: can not be opened" /dev/none /dev/ssd
refused "no such SSD" "SSD: can not be opened" /dev/hdd /dev/none
refused "array = SSD" "Array and SSD are the same device" /dev/hdd /dev/hdd
refused "unknown key" "unknown key" /dev/hdd /dev/ssd 2 colour blue
refused "key in capitals" "unknown key" /dev/hdd /dev/ssd 2 MODE writeback
refused "unknown mode" "mode must be" /dev/hdd /dev/ssd 2 mode writeonly
for size in 0 64 127 1024 128k -128 99999999999999999999 x; do
	refused "line_size $size" "$line_512" /dev/hdd /dev/ssd 2 line_size $size
done
for cutoff in -1 x 18446744073709551616 1.5 8k; do
	refused "seq_cutoff $cutoff" "seq_cutoff must be a number" /dev/hdd \
		/dev/ssd 2 seq_cutoff $cutoff
done
refused "discard no" "discard must be" /dev/hdd /dev/ssd 2 discard no
refused "a key without a value" "Each key needs a value" /dev/hdd /dev/ssd 1 mode
refused "three words" "Each key needs a value" /dev/hdd /dev/ssd 3 mode \
	writeback discard
refused "fewer words than said" "" /dev/hdd /dev/ssd 4 mode writeback
refused "more words than said" "More arguments than their number says" /dev/hdd \
	/dev/ssd 2 mode writeback discard passdown
refused "too many words" "Number of arguments" /dev/hdd /dev/ssd 100 mode writeback
refused "no number" "Number of arguments" /dev/hdd /dev/ssd mode writeback
refused "a negative number" "Number of arguments" /dev/hdd /dev/ssd -2 mode \
	writeback
SSDCACHE_SECTORS=$(($(sectors /dev/hdd) + 8))
refused "longer than the array" "Array: smaller than the table's length" /dev/hdd \
	/dev/ssd
SSDCACHE_SECTORS=$(($(sectors /dev/hdd) - 8))
refused "shorter than the cache knows" "Array: shorter than the cache knows it" \
	/dev/hdd /dev/ssd
SSDCACHE_SECTORS=

# What the SSD holds.
must ssdcache_create cache /dev/hdd /dev/ssd
must write_pattern /dev/mapper/cache 0 8 101
must dmsetup remove cache
refused "another line size" "formatted with another line_size" /dev/hdd /dev/ssd \
	2 line_size 128
ok "the same is taken" ssdcache_create cache /dev/hdd /dev/ssd 2 line_size 512
must linear_create second /dev/hdd 0 $((16 * 2048))
kmsg_mark
fails "an SSD in use by another cache is refused" ssdcache_create refused \
	/dev/mapper/second /dev/ssd
ok "and the log says so" sh -c "dmesg | grep -q 'SSD: in use by another cache'"
dmsetup remove refused 2>/dev/null
is "the first goes on" "$(block_sum /dev/mapper/cache 0)" \
	"$(printf '%4096s' '' | tr ' ' A | sha256sum | cut -c 1-64)"
must dmsetup message cache 0 detach
must dmsetup remove cache
refused "a detached SSD" "was detached from its array" /dev/hdd /dev/ssd
ok "its first 4 KiB are zeroed" wipe /dev/ssd 4
ok "it is taken" ssdcache_create cache /dev/hdd /dev/ssd
is "and empty" "$(status_field cache valid_blocks)" 0
must dmsetup remove cache

# Foreign content is not touched.
foreign()	# NAME
{
	local sum

	sum=$(device_sum /dev/ssd)
	refused "$1" "SSD: holds something else" /dev/hdd /dev/ssd
	is "$1: is left alone" "$(device_sum /dev/ssd)" "$sum"
}

blank /dev/ssd
must mke2fs -q -t ext4 /dev/ssd
# ext4's first 1 KiB is free for boot loaders.
foreign "ext4"
blank /dev/ssd
printf x | dd of=/dev/ssd bs=1 seek=4095 conv=notrunc status=none
foreign "one byte"
blank /dev/ssd
write_pattern /dev/ssd 0 4 252
foreign "0xaa"
blank /dev/ssd
write_pattern /dev/ssd 1 20 252
ok "garbage behind zeroed 4 KiB is taken" ssdcache_create cache /dev/hdd /dev/ssd
must dmsetup remove cache

# Sizes.
for kib in 4 64 128 512 1024; do
	must linear_create small /dev/ssd 0 $((kib * 2))
	wipe /dev/mapper/small 4
	refused "an SSD of $kib KiB" "SSD: too small for a cache" /dev/hdd \
		/dev/mapper/small
	must dmsetup remove small
done
must linear_create small /dev/ssd 0 8192
wipe /dev/mapper/small
must ssdcache_create cache /dev/hdd /dev/mapper/small
must dmsetup remove cache
must dm_swap small "0 6144 linear /dev/ssd 0"
refused "an SSD that shrank" "SSD: smaller than when it was formatted" /dev/hdd \
	/dev/mapper/small
must dmsetup remove small

# Sector sizes.
must nullblk_create ssd4k 8 0 64 4096
must nullblk_create hdd4k 32 0 64 4096
refused "larger sectors on the SSD" "SSD: logical blocks larger than the array's" \
	/dev/hdd /dev/ssd4k
wipe /dev/ssd
ok "smaller ones are taken" ssdcache_create cache /dev/hdd4k /dev/ssd
is "the array's count" "$(blockdev --getss /dev/mapper/cache)" 4096
must dmsetup remove cache

# Limits that are handed up.
q() { cat "/sys/dev/block/$(devno /dev/mapper/cache)/queue/$1"; }
wipe /dev/ssd
must ssdcache_create cache /dev/hdd /dev/ssd 2 line_size 256
is "logical blocks" "$(q logical_block_size)" 512
compare "smallest I/O" "$(q minimum_io_size)" -ge 4096
is "best I/O: a line" "$(q optimal_io_size)" 131072
is "write cache" "$(q write_cache)" "write back"
is "FUA" "$(q fua)" 1
compare "discards" "$(q discard_max_bytes)" -gt 0
is "discard granularity" "$(q discard_granularity)" 4096
must dmsetup remove cache
