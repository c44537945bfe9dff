# SPDX-License-Identifier: GPL-2.0
# Status: the fields, their order, and that each counts what it says.
# kernels: 6.1 6.12
# smp: 2
# timeout: 300
. /test/lib.sh
. /test/lib-check.sh

FIELDS="state mode line slots used valid_blocks dirty_blocks read_hits \
read_hit_blocks read_misses read_miss_blocks write_hits write_hit_blocks \
write_misses write_miss_blocks bypassed bypassed_blocks fills filled_blocks \
destaged journal_commits metadata_writes metadata_repaired ssd_read_errors \
ssd_write_errors array_errors learning flushing"
COUNTERS="read_hits read_hit_blocks read_misses read_miss_blocks write_hits \
write_hit_blocks write_misses write_miss_blocks bypassed bypassed_blocks fills \
filled_blocks destaged"

must nullblk_create hdd 32 discard=1
must nullblk_create ssd 8

# fresh [ARGS]...: a new cache on a blank array.
fresh()
{
	! dmsetup info cache >/dev/null 2>&1 || must dmsetup remove cache
	wipe /dev/ssd
	must ssdcache_create cache /dev/hdd /dev/ssd "$@"
}

# change NAME "FIELD..." WANTED COMMAND...: by how much the fields change.
change()
{
	local name="$1" which="$2" wanted="$3" before after out= b

	shift 3
	# shellcheck disable=SC2086
	before=$(fields cache $which)
	must "$@"
	# Fills end some time after the read.
	sleep 0.3
	# shellcheck disable=SC2086
	after=$(fields cache $which)
	# shellcheck disable=SC2086
	set -- $after
	for b in $before; do
		out="$out${out:+ }$(($1 - b))"
		shift
	done
	is "$name: $which" "$out" "$wanted"
}

rd() { dd if=/dev/mapper/cache of=/dev/null iflag=direct status=none "$@"; }
wr() { dd if=/dev/zero of=/dev/mapper/cache oflag=direct conv=notrunc status=none "$@"; }
R="read_hits read_hit_blocks read_misses read_miss_blocks fills filled_blocks"
W="write_hits write_hit_blocks write_misses write_miss_blocks bypassed \
bypassed_blocks"
C="valid_blocks dirty_blocks"

# --- Form ---------------------------------------------------------------------------

fresh 2 line_size 128
is "the fields in order" "$(dmsetup status cache | cut -d ' ' -f 4- | tr ' ' '\n' |
	sed 's/=.*//' | tr '\n' ' ')" "$FIELDS "
is "no field is empty" "$(dmsetup status cache | grep -o '[a-z_]*=\( \|$\)')" ""
is "start, length, name" "$(dmsetup status cache | cut -d ' ' -f 1-3)" \
	"0 $(sectors /dev/hdd) ssdcache"
is "of a new cache" "$(fields cache state mode line used valid_blocks \
	dirty_blocks learning flushing)" "running writeback 128 0 0 0 1 0"
# shellcheck disable=SC2086
is "nothing is counted yet" "$(fields cache $COUNTERS | tr ' ' '\n' | sort -u)" 0
is "no errors" "$(fields cache ssd_read_errors ssd_write_errors array_errors \
	metadata_repaired)" "0 0 0 0"
compare "slots" "$(status_field cache slots)" -gt 100

# --- Reads and writes ----------------------------------------------------------------

change "a miss of a block" "$R" "0 0 1 1 1 1" rd bs=4k count=1
change "a hit of it" "$R" "1 1 0 0 0 0" rd bs=4k count=1
change "a hit of a sector" "$R" "1 1 0 0 0 0" rd bs=512 count=1 skip=3
# The rest of the block is fetched for the fill.
change "a read of sectors of two blocks, one of them missing" "$R" \
	"0 0 1 2 1 1" rd bs=1k count=1 skip=7 iflag=direct,skip_bytes skip=3584
change "four lines at once" "$R" "0 0 4 64 4 64" rd bs=256k count=1 skip=2
change "hits of four lines" "$R" "4 64 0 0 0 0" rd bs=256k count=1 skip=2
is "valid blocks, none dirty" "$(fields cache valid_blocks dirty_blocks used)" \
	"66 0 5"
change "a write of missing blocks" "$W $C" "0 0 1 4 0 0 4 4" wr bs=16k count=1 \
	seek=100
change "the same again" "$W $C" "1 4 0 0 0 0 0 0" wr bs=16k count=1 seek=100
change "a write of clean blocks" "$W $C" "1 2 0 0 0 0 0 2" wr bs=8k count=1 seek=64
change "sectors of a dirty block" "$W $C" "1 1 0 0 0 0 0 0" wr bs=512 count=1 \
	seek=3200
change "sectors of a missing block" "$W $C" "0 0 1 1 1 1 0 0" wr bs=512 count=1 \
	seek=8000
change "a read of dirty and missing blocks" "read_hits read_hit_blocks \
read_misses read_miss_blocks" "1 4 1 4" rd bs=32k count=1 skip=50
is "used" "$(status_field cache used)" 6
change "a discard of dirty blocks" "$C" "-2 -2" blkdiscard -f -o $((100 * 16384)) \
	-l 8192 /dev/mapper/cache
change "flush" "destaged $C" "4 0 -4" dmsetup message cache 0 flush
compare "commits" "$(status_field cache journal_commits)" -gt 0
compare "metadata writes: two places a commit" \
	"$(status_field cache metadata_writes)" -ge \
	$((2 * $(status_field cache journal_commits)))
commits=$(status_field cache journal_commits)
change "invalidate" "valid_blocks" "-16" dmsetup message cache 0 invalidate 1024 128
compare "it was committed" "$(status_field cache journal_commits)" -gt "$commits"

is "no errors" "$(fields cache ssd_read_errors ssd_write_errors array_errors \
	metadata_repaired)" "0 0 0 0"
commits=$(status_field cache journal_commits)
must dmsetup message cache 0 clear_stats
# shellcheck disable=SC2086
is "clear_stats" "$(fields cache $COUNTERS | tr ' ' '\n' | sort -u)" 0
compare "but not of commits" "$(status_field cache journal_commits)" -ge "$commits"
compare "nor of valid blocks" "$(status_field cache valid_blocks)" -gt 40

# --- Streams and evictions ------------------------------------------------------------

fresh 4 line_size 128 seq_cutoff 256
change "a stream of writes is cut off" "bypassed_blocks dirty_blocks" "224 32" \
	wr bs=64k count=16 seek=16
fresh 4 line_size 128 seq_cutoff 256
change "a stream of reads is" "filled_blocks read_miss_blocks" "32 256" \
	rd bs=64k count=16 skip=16
fresh 4 line_size 128 seq_cutoff 0
change "not without a cutoff" "bypassed_blocks dirty_blocks" "0 256" \
	wr bs=64k count=16 seek=16
ok "set seq_cutoff" dmsetup message cache 0 set seq_cutoff 256
change "but with a new one" "bypassed_blocks dirty_blocks" "224 32" \
	wr bs=64k count=16 seek=64

fresh 4 line_size 128 seq_cutoff 0
is "learning" "$(status_field cache learning)" 1
ok "more reads than fit" rd bs=64k count=300
sleep 1
is "not learning any more" "$(status_field cache learning)" 0
slots=$(status_field cache slots)
compare "used up to what is kept free" "$(status_field cache used)" -ge \
	$((slots * 9 / 10))
compare "no more than there are" "$(status_field cache used)" -le "$slots"
compare "valid blocks fit in them" "$(status_field cache valid_blocks)" -le \
	$((slots * 16))
ok "more writes than fit" wr bs=64k count=300
compare "dirty blocks are valid" "$(status_field cache dirty_blocks)" -le \
	"$(status_field cache valid_blocks)"
must dmsetup message cache 0 flush
is "flush" "$(fields cache dirty_blocks flushing)" "0 0"

# --- Modes ------------------------------------------------------------------------------

fresh 4 line_size 128 mode writethrough
is "mode" "$(status_field cache mode)" writethrough
change "write-through: missing blocks" "$W $C" "0 0 1 4 0 0 4 0" wr bs=16k count=1
change "write-through: valid blocks" "$W $C" "1 4 0 0 0 0 0 0" wr bs=16k count=1
fresh 4 line_size 128 mode writearound
change "write-around: a read" "$R $C" "0 0 1 4 1 4 4 0" rd bs=16k count=1
change "write-around: a hit" "$R $C" "1 4 0 0 0 0 0 0" rd bs=16k count=1
change "write-around: a write of one of the blocks" "bypassed bypassed_blocks $C" \
	"1 1 -1 0" wr bs=4k count=1
ok "set mode passthrough" dmsetup message cache 0 set mode passthrough
change "pass-through: a read of valid blocks" "$R $C" "0 0 1 2 0 0 0 0" rd bs=4k \
	count=1 skip=1 bs=8k
change "pass-through: a write" "bypassed bypassed_blocks $C" "1 1 -1 0" wr bs=4k \
	count=1 seek=1

# --- All together -------------------------------------------------------------------------

# Each bio is a hit or a miss; what fio does is whole blocks within a line.
fresh 2 line_size 128
ok "fio" fio --name=mix --filename=/dev/mapper/cache --direct=1 \
	--ioengine=io_uring --iodepth=8 --rw=randrw --bs=8k --size=16m \
	--number_ios=$(few 2000) --output-format=json --output=/tmp/fio.json
reads=$(jq '.jobs[0].read.total_ios' /tmp/fio.json)
writes=$(jq '.jobs[0].write.total_ios' /tmp/fio.json)
# shellcheck disable=SC2046
set -- $(fields cache $W read_hits read_misses)
# Udev's eyes, or fio's: a few reads more are possible, cut ones too.
compare "reads are hits or misses" $(($7 + $8)) -ge "$reads"
compare "and cut at most once" $(($7 + $8)) -le $((2 * reads + 16))
compare "writes are hits or misses" $(($1 + $3)) -ge "$writes"
is "blocks of writes" $(($2 + $4)) $((2 * writes))
ok "flush" dmsetup message cache 0 flush
drained "nothing is dirty"
used=$(fields cache used valid_blocks)
must dmsetup remove cache
must ssdcache_create cache /dev/hdd /dev/ssd
is "after a restart" "$(fields cache used valid_blocks)" "$used"
ok "detach" dmsetup message cache 0 detach
is "state and mode" "$(fields cache state mode)" "detached passthrough"
