# SPDX-License-Identifier: GPL-2.0
# Much I/O on few lines: hits, misses, fills, writes around the cache, discards,
# destaging, evictions and messages meet all the time.
# kernels: 6.1 6.12 kasan
# smp: 2
# timeout: 400
. /test/lib.sh
. /test/lib-check.sh

# Messages that keep the lines moving, until /tmp/calm is there.
stir()
{
	local n=0

	rm -f /tmp/calm
	while [ ! -e /tmp/calm ]; do
		n=$((n + 1))
		dmsetup message cache 0 flush || echo flush >>/tmp/stir
		case $((n % 4)) in
		1)	dmsetup message cache 0 invalidate $((n * 37 % 2000)) 2500 ||
				echo invalidate >>/tmp/stir
			;;
		2)	dmsetup message cache 0 clear_stats ||
				echo clear_stats >>/tmp/stir
			;;
		3)	dmsetup status cache >/dev/null || echo status >>/tmp/stir ;;
		esac
		sleep 0.2
	done
}

# races MODE LINE ARRAY_MB SSD_MB OPS [OPTION]...
races()
{
	local mode="$1" line="$2" ops name="$1, line $2, $4 MB before $3 MB" pid

	ops=$(few "$5")
	devices "$3" "$4"
	shift 5
	must ssdcache_create cache /dev/hdd /dev/ssd 4 line_size "$line" \
		mode "$mode"
	: >/tmp/stir
	stir 2>>/tmp/stir &
	pid=$!
	check "$name${*:+, $*}" --ops "$ops" --threads 24 --hot 80 --save /tmp/m \
		"$@" /dev/mapper/cache
	: >/tmp/calm
	wait $pid
	is "$name: messages worked" "$(sort /tmp/stir | uniq -c)" ""
	ok "$name: flush" dmsetup message cache 0 flush
	drained "$name: nothing is dirty"
	array_holds "$name: the array holds it all" /tmp/m
	ok "$name: remove" within 30 dmsetup remove cache
	no_devices
}

# Everything fits.
races writeback 512 4 8 4000
if fast; then
	races writethrough 512 4 8 3000
	races writearound 512 4 8 2000
fi
# Evictions all the time.
races writeback 128 8 2 5000
if fast; then
	races writethrough 128 8 2 3000
	races writeback 256 8 2 3000 --overlap
	races writearound 256 8 2 2000 --overlap
	races passthrough 512 8 3 1000 --overlap
fi
races writethrough 512 8 3 3000 --overlap
# Little but sectors, and blocks that are discarded.
races writeback 512 4 4 3000 --overlap --max-sectors 24 --aligned 20 --discards 12
! fast ||
	races writethrough 512 4 4 3000 --overlap --max-sectors 24 --aligned 20 --discards 12

# A discard that overtakes a write to both devices, whose part on the SSD is
# slow: either may win, but the one that was read stays.
devices 8 8
must modprobe dm-delay
slow() { echo "0 $(sectors /dev/ssd) delay /dev/ssd 0 0 /dev/ssd 0 $1"; }
must dmsetup create slow --table "$(slow 0)"
must ssdcache_create cache /dev/hdd /dev/mapper/slow 2 mode writethrough
must write_pattern /dev/mapper/cache 0 16 101
must dm_swap slow "$(slow 1000)"
# The second one finds the line open.
must write_pattern /dev/mapper/cache 0 1 102
write_pattern /dev/mapper/cache 0 1 103 &
sleep 0.3
ok "discard while a write is in flight" blkdiscard -o 0 -l 4096 \
	/dev/mapper/cache
wait
sum=$(block_sum /dev/mapper/cache 0)
must dm_swap slow "$(slow 0)"
must dmsetup message cache 0 invalidate 0 512
is "what was read stays" "$(block_sum /dev/mapper/cache 0)" "$sum"
ok "remove" within 30 dmsetup remove cache
must dmsetup remove slow
