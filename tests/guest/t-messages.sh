# SPDX-License-Identifier: GPL-2.0
# Messages: each does what it says, also twice, also wrongly asked for.
# kernels: 6.1 6.12
# smp: 2
# timeout: 300
. /test/lib.sh
. /test/lib-check.sh

msg() { dmsetup message -- cache 0 "$@"; }

# wrong WHAT-IS-SAID MESSAGE...
wrong()
{
	local said="$1"

	shift
	kmsg_mark
	if msg "$@" >/dev/null 2>&1; then
		fail "wrong message: $*" "was accepted"
	elif kmsg_since | grep -q -F -- "$said"; then
		pass "wrong message: $*"
	else
		fail "wrong message: $*" "wanted: $said" "$(kmsg_since)"
	fi
}

devices 32 12
must ssdcache_create cache /dev/hdd /dev/ssd
before=$(dmsetup table cache)

wrong "unknown message" hello
wrong "unknown message" flush now
wrong "unknown message" set
wrong "unknown message" set mode
wrong "unknown message" set mode writeback please
wrong "unknown message" invalidate 0
wrong "unknown message" detach 1
wrong "unknown message" clear_stats 1
wrong "unknown message" cancel_flush 1
wrong "unknown key" set colour blue
wrong "mode must be" set mode writesome
wrong "line_size can not be changed" set line_size 128
wrong "line_size can not be changed" set line_size 512
wrong "seq_cutoff must be a number" set seq_cutoff -1
wrong "seq_cutoff must be a number" set seq_cutoff many
wrong "discard must be" set discard maybe
wrong "invalidate: needs" invalidate 0 0
wrong "invalidate: needs" invalidate x 8
wrong "invalidate: needs" invalidate 0 -8
wrong "invalidate: needs" invalidate "$(sectors /dev/hdd)" 8
wrong "invalidate: needs" invalidate 0 $(($(sectors /dev/hdd) + 1))
wrong "invalidate: needs" invalidate 8 18446744073709551615
is "they changed nothing" "$(dmsetup table cache)" "$before"

# --- flush, cancel_flush ------------------------------------------------------------

check "write" --ops $(few 1500) --save /tmp/m /dev/mapper/cache
ok "flush" msg flush
is "nothing is dirty, nothing is flushed any more" \
	"$(fields cache dirty_blocks flushing)" "0 0"
array_holds "the array holds it all" /tmp/m
ok "flush again" msg flush
ok "cancel_flush where there is none" msg cancel_flush
ok "case does not matter" msg FLUSH

# A slow array, so that there is time.
must nullblk_create tortoise 32 100000000 1 discard=1
must dmsetup remove cache
wipe /dev/ssd
must ssdcache_create cache /dev/tortoise /dev/ssd
for at in $(seq 0 2 62); do
	must write_pattern /dev/mapper/cache $((at * 128)) 1 $((100 + at / 8))
	must write_pattern /dev/mapper/cache $((at * 128 + 9)) 1 $((100 + at / 8))
done
compare "dirty blocks" "$(status_field cache dirty_blocks)" -gt 20
msg flush 2>/dev/null &
flush=$!
sleep 0.3
is "it says that it flushes" "$(status_field cache flushing)" 1
ok "status while it flushes" within 5 dmsetup status cache
ok "cancel_flush" within 10 msg cancel_flush
wait $flush
st=$?
is "the flush ends" "$([ $st != 0 ] && echo failed)" failed
is "flushing" "$(status_field cache flushing)" 0
compare "what is left is dirty" "$(status_field cache dirty_blocks)" -gt 0
msg flush 2>/dev/null &
flush=$!
sleep 0.3
kill -TERM $flush
wait $flush
compare "a signal ends it, too" $? -gt 128
compare "before it is done" "$(status_field cache dirty_blocks)" -gt 0
ok "flush" msg flush
drained "nothing is dirty"
is "the array holds it" "$(block_sum /dev/tortoise $((62 * 128 + 9)))" \
	"$(block_sum /dev/mapper/cache $((62 * 128 + 9)))"
must dmsetup remove cache
must nullblk_destroy tortoise
wipe /dev/ssd

# --- set -------------------------------------------------------------------------------

must ssdcache_create cache /dev/hdd /dev/ssd
check "what is there" --verify-only --load /tmp/m --save /tmp/m /dev/mapper/cache
for mode in writethrough passthrough writearound writeback writethrough writearound \
		passthrough writeback; do
	check "I/O" --ops $(few 200) --load /tmp/m --save /tmp/m /dev/mapper/cache
	ok "set mode $mode" msg set mode $mode
	is "mode" "$(status_field cache mode)" $mode
	is "table" "$(table_args cache | cut -d ' ' -f 3-)" "2 mode $mode"
	if [ $mode != writeback ]; then
		drained "nothing is dirty"
		array_holds "the array holds it all" /tmp/m
	fi
	ok "set mode $mode again" msg set mode $mode
done
ok "set seq_cutoff" msg set seq_cutoff 16
ok "set discard" msg set discard nopassdown
is "table" "$(table_args cache | cut -d ' ' -f 3-)" \
	"6 mode writeback seq_cutoff 16 discard nopassdown"
check "I/O" --ops $(few 200) --discards 10 --load /tmp/m --save /tmp/m \
	/dev/mapper/cache
ok "flush" msg flush
array_holds "the array holds it all, without discards too" /tmp/m
ok "set discard passdown" msg set discard passdown
ok "set seq_cutoff 0" msg set seq_cutoff 0
is "the mode that was set survives a restart with its table" "$(
	msg set mode writearound
	table=$(dmsetup table cache)
	dmsetup remove cache
	dmsetup create cache --table "$table"
	status_field cache mode)" writearound
ok "set mode writeback" msg set mode writeback

# --- invalidate ----------------------------------------------------------------------

ok "write" write_pattern /dev/mapper/cache 0 256 101
is "valid and dirty" "$(($(status_field cache dirty_blocks) >= 256))" 1
valid=$(status_field cache valid_blocks)
ok "invalidate what is dirty" msg invalidate 0 1024
is "it is not in the cache" "$(($(status_field cache valid_blocks)))" $((valid - 128))
drained "nothing is dirty"
is "nothing is lost" "$(block_sum /dev/mapper/cache 0 256)" \
	"$(head -c 1048576 /dev/zero | tr '\0' 'A' | sha256sum | cut -c 1-64)"
# For the places where the array was written around the cache.
ok "the array is written around the cache" write_pattern /dev/hdd 2 3 102
ok "invalidate parts of blocks" msg invalidate $((2 * 8 + 7)) 10
is "the new data is seen" "$(block_sum /dev/mapper/cache 2 3)" \
	"$(block_sum /dev/hdd 2 3)"
ok "invalidate all" msg invalidate 0 "$(sectors /dev/hdd)"
is "the cache is empty" "$(status_field cache valid_blocks)" 0
ok "invalidate a line that is not there" msg invalidate 512 512
ok "the last sector" msg invalidate $(($(sectors /dev/hdd) - 1)) 1

# --- While suspended -----------------------------------------------------------------

must dmsetup suspend cache
for m in flush clear_stats detach; do
	kmsg_mark
	fails "$m while suspended" within 10 dmsetup message cache 0 $m
	ok "and the reason" sh -c "dmesg | tail -n 20 | grep -q 'resume it first'"
done
ok "status while suspended" within 10 dmsetup status cache
must dmsetup resume cache
ok "flush" msg flush

# --- detach ---------------------------------------------------------------------------

blank /dev/hdd
ok "all is invalid" msg invalidate 0 "$(sectors /dev/hdd)"
check "write" --ops $(few 500) --save /tmp/m /dev/mapper/cache
ok "detach" msg detach
is "state" "$(fields cache state mode dirty_blocks)" "detached passthrough 0"
array_holds "the array holds it all" /tmp/m
check "it goes on" --ops $(few 300) --load /tmp/m --save /tmp/m /dev/mapper/cache
array_holds "the array alone is used" /tmp/m
wrong "the SSD is detached" set mode writeback
ok "detach again does no harm" sh -c "dmsetup message cache 0 detach; true"
ok "flush does none either" msg flush
ok "suspend and resume" sh -c "dmsetup suspend cache && dmsetup resume cache"
check "and on" --ops $(few 300) --load /tmp/m --save /tmp/m /dev/mapper/cache
array_holds "the array alone is used" /tmp/m
ok "the SSD can be used for something else" dm_swap cache \
	"0 $(sectors /dev/hdd) linear /dev/hdd 0"
ok "by now" wipefs -a /dev/ssd
check "nobody noticed" --verify-only --load /tmp/m /dev/mapper/cache
