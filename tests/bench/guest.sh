# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
#
# The part of the benchmark that runs in a guest with virtual time: all rows
# for one kind of device. tests/bench/run starts it and makes the table.
#
#	KIND	raw, linear, writecache, dmcache, bcache or ssdcache
#	ROWS	which rows, "all" for those that the kind has
#
# Prints one line "BENCH {json}" for each row. Time is virtual, one
# instruction is a nanosecond: where the device keeps the CPU busy, the
# inverse of IOPS is the CPU time of one I/O.
. /test/lib.sh

SSD_NSEC=80000			# at depth 128
HDD_NSEC=4000000		# at depth 1
BLOCKSIZE=4096
SET=64				# MiB: the working set
MISS_START=512			# MiB: where nothing is cached yet
MISS=160
LINES_START=1024		# MiB: one block in each line of 256 KiB
LINES=20000
IOS=40000

# Rows that say nothing about a kind, "-" in the table:
# - dm-writecache forgets a block when it is clean, so there are none to be
#   written; its reads are of dirty blocks for the same reason.
# - dm-cache sends misses to the disk until the block of 256 KiB is promoted,
#   so they are at the speed of the disk.
case $KIND in
writecache)	LACKS="first_clean" ;;
dmcache)	LACKS="miss4k miss_line first_clean" ;;
*)		LACKS= ;;
esac

has() { case " $LACKS " in *" $1 "*) return 1 ;; esac; }
wanted()
{
	has "$1" || return 1
	case " ${ROWS:-all} " in *" all "*|*" $1 "*) return 0 ;; esac
	return 1
}
any() { local r; for r; do wanted "$r" && return 0; done; return 1; }

# --- Devices ------------------------------------------------------------------

disks()
{
	local ssd=10240

	# These two need no more for their rows, and format all of it.
	case $KIND in writecache|dmcache) ssd=2048 ;; esac
	must nullblk_create ssd $ssd $SSD_NSEC 128 $BLOCKSIZE
	[ "$KIND" = raw ] || [ "$KIND" = linear ] ||
		must nullblk_create hdd 12288 $HDD_NSEC 1 $BLOCKSIZE
}

BCACHE=/sys/block/bcache0/bcache

bcache_create()
{
	local d

	must modprobe bcache
	must make-bcache --block 4k --bucket 512k --writeback \
		-C /dev/ssd -B /dev/hdd
	for d in /dev/ssd /dev/hdd; do
		echo $d >/sys/fs/bcache/register || bail "bcache: register $d"
	done
	wait_for 30 test -b /dev/bcache0 -a -e $BCACHE/cache ||
		bail "no /dev/bcache0"
	echo writeback >$BCACHE/cache_mode
	echo 0 >$BCACHE/sequential_cutoff
	echo 0 >$BCACHE/cache/congested_read_threshold_us
	echo 0 >$BCACHE/cache/congested_write_threshold_us
	# Nothing is written back meanwhile, then as fast as it can.
	echo 0 >$BCACHE/writeback_running
	echo 0 >$BCACHE/writeback_percent
}

# settles SECONDS COMMAND...: waits until it succeeds. Asks seldom: sleep costs
# no real time, commands do.
settles()
{
	local n="$1"

	shift
	while ! "$@"; do
		n=$((n - 2))
		[ $n -gt 0 ] || return 1
		sleep 2
	done
}

# dmcache_migrate SECTORS: how much dm-cache may promote and write back at once.
dmcache_migrate() { must dmsetup message bench 0 migration_threshold "$1"; }

dmcache_is() { [ "$(dmsetup status bench | awk "{ print ($1) }")" = 1 ]; }

create()
{
	disks
	case $KIND in
	raw)
		DEV=/dev/ssd
		;;
	linear)
		must linear_create bench /dev/ssd
		DEV=/dev/mapper/bench
		;;
	ssdcache)
		# shellcheck disable=SC2086
		must ssdcache_create bench /dev/hdd /dev/ssd ${SSDCACHE_ARGS-}
		DEV=/dev/mapper/bench
		;;
	writecache)
		must modprobe dm-writecache
		must dmsetup create bench --table "0 $(sectors /dev/hdd) \
			writecache s /dev/hdd /dev/ssd $BLOCKSIZE 0"
		DEV=/dev/mapper/bench
		;;
	dmcache)
		must modprobe dm-cache-smq
		# The metadata are on the same kind of SSD.
		must nullblk_create meta 64 $SSD_NSEC 128 $BLOCKSIZE
		must dmsetup create bench --table "0 $(sectors /dev/hdd) \
			cache /dev/meta /dev/ssd /dev/hdd 512 1 writeback smq 0"
		DEV=/dev/mapper/bench
		;;
	bcache)
		bcache_create
		DEV=/dev/bcache0
		;;
	*)
		bail "no kind $KIND"
		;;
	esac
}

# All that is dirty goes to the disk; what was cached stays so.
clean()
{
	case $KIND in
	ssdcache)
		must dmsetup message bench 0 flush
		wait_for 600 sh -c '[ "$(dmsetup status bench | tr " " "\n" |
			grep -c -e ^dirty_blocks=0 -e ^flushing=0)" = 2 ]' ||
			bail "does not get clean: $(dmsetup status bench)"
		;;
	dmcache)
		# It does that when it has been idle for a second.
		dmcache_migrate 2048000
		settles 300 dmcache_is '$14 == 0' ||
			bail "does not get clean: $(dmsetup status bench)"
		dmcache_migrate 0
		;;
	bcache)
		echo 1 >$BCACHE/writeback_running
		settles 600 grep -qx clean $BCACHE/state ||
			bail "does not get clean: $(cat $BCACHE/dirty_data)"
		echo 0 >$BCACHE/writeback_running
		;;
	esac
}

# --- Jobs -----------------------------------------------------------------------

# Buffers in huge pages: otherwise it is luck how many pieces of memory an I/O
# of 128 KiB has, and what it costs.
echo always >/sys/kernel/mm/transparent_hugepage/enabled

FIO="fio --name=j --thread --direct=1 --ioengine=io_uring --randrepeat=1
	--norandommap --iomem_align=2m --output-format=json"

# job ROW OPTION...: a fio job and its figures.
job()
{
	local row="$1" up0 idle0 up idle

	shift
	read -r up0 idle0 </proc/uptime
	# shellcheck disable=SC2086
	$FIO --filename=$DEV "$@" >/tmp/fio.json 2>/tmp/fio.err ||
		{ cat /tmp/fio.err /tmp/fio.json; bail "fio: $row"; }
	read -r up idle </proc/uptime
	jq -c --arg row "$row" --arg kind "$KIND" \
		--argjson idle "$(echo "$up0 $idle0 $up $idle" |
			awk '{ printf "%.2f", ($4 - $2) / ($3 - $1) }')" '
		.jobs[0] as $j |
		(if $j.read.total_ios > $j.write.total_ios
			then $j.read else $j.write end) as $d |
		{ kind: $kind, row: $row, ios: $d.total_ios, iops: $d.iops,
		  bytes_per_s: $d.bw_bytes, latency_ns: $d.lat_ns.mean,
		  p99_ns: $d.clat_ns.percentile."99.000000",
		  runtime_ms: $d.runtime, usr: $j.usr_cpu, sys: $j.sys_cpu,
		  idle: $idle }' /tmp/fio.json >/tmp/row.json
	jq -r '"BENCH \(.)"' /tmp/row.json
	ROW_BYTES=$(jq '.ios * 4096' /tmp/row.json)
}

# The same without figures.
quiet()
{
	# shellcheck disable=SC2086
	$FIO --filename=$DEV "$@" >/tmp/fio.json 2>&1 ||
		{ cat /tmp/fio.json; bail "fio $*"; }
}

# meta_begin; ...; meta_end ROW BYTES: what was written for metadata meanwhile,
# commits by timer included.
meta_begin()
{
	[ "$KIND" = ssdcache ] || return 0
	sleep 1.5
	META=$(status_field bench metadata_writes)
	COMMITS=$(status_field bench journal_commits)
	DESTAGED=$(status_field bench destaged)
}

meta_end()
{
	[ "$KIND" = ssdcache ] || return 0
	sleep 1.5
	echo "BENCH {\"kind\":\"$KIND\",\"row\":\"$1\",\"metadata_blocks\":$((\
		$(status_field bench metadata_writes) - META)),\"commits\":$((\
		$(status_field bench journal_commits) - COMMITS)),\"destaged\":$((\
		$(status_field bench destaged) - DESTAGED)),\"data_bytes\":$2}"
}

# The working set is written once, in random order.
fill()
{
	local n=0

	[ "$KIND" != dmcache ] || dmcache_migrate 2048000
	while :; do
		quiet --rw=randwrite --bs=64k --iodepth=16 --size=${SET}m \
			--norandommap=0
		[ "$KIND" = dmcache ] || return 0
		# dm-cache promotes what is hot: again until that is all.
		! dmcache_is "int(\$7) >= $((SET * 4))" || break
		n=$((n + 1))
		[ $n -lt 30 ] ||
			bail "not wholly cached: $(dmsetup status bench)"
	done
	# Nothing is written back or promoted while it is measured.
	dmcache_migrate 0
}

# A log for fio that names one block in each of LINES lines, in an order that
# looks random: powers of a primitive root of a prime above LINES.
lines_log()
{
	awk -v n=$LINES -v start=$LINES_START -v dev="$DEV" 'BEGIN {
		p = 20011; x = 1
		print "fio version 2 iolog"
		print dev " add"
		print dev " open"
		for (i = 1; i < p; i++) {
			x = (x * 7324) % p
			if (x <= n)
				printf "%s write %.0f 4096\n", dev,
					start * 1048576 + (x - 1) * 262144
		}
		print dev " close"
	}' >/tmp/lines.log
}

lines_job() { job "$1" --read_iolog=/tmp/lines.log --iodepth=16; }

# --- Rows ---------------------------------------------------------------------------

create
set_opts="--size=${SET}m"
# shellcheck disable=SC2086
{
if any read4k lat_read read128k; then
	fill
	clean
	! wanted read4k || job read4k --rw=randread --bs=4k --iodepth=16 \
		$set_opts --io_size=100g --number_ios=$IOS
	! wanted lat_read || job lat_read --rw=randread --bs=4k --iodepth=1 \
		$set_opts --io_size=100g --number_ios=2000
	! wanted read128k || job read128k --rw=randread --bs=128k --iodepth=16 \
		$set_opts --io_size=100g --number_ios=4000
fi
if any write4k fsync4k lat_write write128k; then
	fill
	if wanted write4k; then
		meta_begin
		job write4k --rw=randwrite --bs=4k --iodepth=16 \
			$set_opts --io_size=100g --number_ios=$IOS
		meta_end meta_overwrite "$ROW_BYTES"
	fi
	if wanted fsync4k; then
		meta_begin
		job fsync4k --rw=randwrite --bs=4k --iodepth=16 --fsync=1 \
			$set_opts --io_size=100g --number_ios=20000
		meta_end meta_fsync "$ROW_BYTES"
	fi
	! wanted lat_write || job lat_write --rw=randwrite --bs=4k --iodepth=1 \
		$set_opts --io_size=100g --number_ios=2000
	! wanted write128k || job write128k --rw=randwrite --bs=128k \
		--iodepth=16 $set_opts --io_size=100g --number_ios=4000
fi
if wanted miss4k; then
	meta_begin
	job miss4k --rw=randwrite --bs=4k --iodepth=16 --offset=${MISS_START}m \
		--size=${MISS}m --norandommap=0
	meta_end meta_miss4k "$ROW_BYTES"
fi
if any miss_line first_clean; then
	lines_log
	meta_begin
	lines_job miss_line
	meta_end meta_miss_line "$ROW_BYTES"
	if has first_clean; then
		clean
		meta_begin
		lines_job first_clean
		meta_end meta_first_clean "$ROW_BYTES"
		lines_job lines_again
	fi
fi
}
case $KIND in
ssdcache|writecache|dmcache) echo "# $(dmsetup status bench)" ;;
esac
