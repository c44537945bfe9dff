# SPDX-License-Identifier: GPL-2.0
# File systems on the device, and devices above and below it that cut bios at odd
# places or take small ones only.
# kernels: 6.1 6.12
# smp: 2
# timeout: 400
. /test/lib.sh
. /test/lib-check.sh

must mkdir -p /mnt /tmp/tree
must modprobe ext4
must modprobe xfs

# The programs and libraries of the guest are the real thing for a file system:
# many sizes, links, folders. A part on slow kernels.
case $SLOW in
1)	SOURCE="usr/bin usr/lib/modules usr/lib/busybox etc" ;;
*)	SOURCE="usr/lib/busybox etc" ;;
esac
# shellcheck disable=SC2086
tree_sum() { (cd "$1" && find $SOURCE -type f | sort | xargs sha256sum &&
	find $SOURCE -type l | sort | wc -l) | sha256sum; }
TREE=$(tree_sum /)

make_fs()	# TYPE DEVICE [OPTION]...
{
	local type="$1" dev="$2"

	shift 2
	case $type in
	ext4)	mke2fs -q -F -t ext4 "$@" "$dev" ;;
	xfs)	mkfs.xfs -q -f -K "$@" "$dev" ;;
	esac
}

check_fs()	# TYPE DEVICE
{
	case $1 in
	ext4)	e2fsck -f -n "$2" ;;
	xfs)	xfs_repair -n "$2" ;;
	esac
}

fill() { (cd / && tar cf - $SOURCE) | tar xf - -C /mnt; }

drop_caches() { sync; echo 3 >/proc/sys/vm/drop_caches; }

# filesystem NAME TYPE DEVICE ARRAY [MKFS-OPTION]...: made, filled, read, checked;
# with ARRAY, that is checked alone, too.
filesystem()
{
	local name="$1" type="$2" dev="$3" array="$4"

	shift 4
	ok "$name: mkfs" make_fs "$type" "$dev" "$@"
	ok "$name: mount" mount -t "$type" -o discard "$dev" /mnt || return
	ok "$name: fill" fill
	ok "$name: remove a part" rm -r /mnt/etc
	ok "$name: and bring it back" sh -c "cd / && tar cf - etc | tar xf - -C /mnt"
	drop_caches
	is "$name: read" "$(tree_sum /mnt)" "$TREE"
	ok "$name: umount" umount /mnt
	ok "$name: fsck" check_fs "$type" "$dev"
	ok "$name: flush" dmsetup message cache 0 flush
	drained "$name: nothing is dirty"
	ok "$name: remount" mount -t "$type" "$dev" /mnt
	is "$name: read again" "$(tree_sum /mnt)" "$TREE"
	ok "$name: umount" umount /mnt
	[ -n "$array" ] || return 0
	ok "$name: flush" dmsetup message cache 0 flush
	drop_caches
	ok "$name: fsck of the array" check_fs "$type" "$array"
}

done_with() { ok "$1: remove" within 30 dmsetup remove cache; }

# --- ext4 and XFS, sectors of 512 and 4096 bytes --------------------------------------

for block in 512 $(fast && echo 4096); do
	must nullblk_create hdd 336 0 64 $block 1 discard=1
	must nullblk_create ssd 24 0 64 512
	must ssdcache_create cache /dev/hdd /dev/ssd 2 line_size 128
	filesystem "ext4 on sectors of $block" ext4 /dev/mapper/cache /dev/hdd
	done_with "ext4 on sectors of $block"
	must ssdcache_create cache /dev/hdd /dev/ssd 2 mode writethrough
	filesystem "XFS on sectors of $block" xfs /dev/mapper/cache /dev/hdd \
		-s size=$block
	done_with "XFS on sectors of $block"
	must nullblk_destroy hdd ssd
done

# --- md RAID 5 ---------------------------------------------------------------------------

for n in 0 1 2 3; do must nullblk_create disk$n 128; done
must nullblk_create ssd 24
must md_create md0 5 64 /dev/disk0 /dev/disk1 /dev/disk2 /dev/disk3
must ssdcache_create cache /dev/md0 /dev/ssd
is "RAID 5: a stripe is the best I/O" \
	"$(cat "/sys/dev/block/$(devno /dev/mapper/cache)/queue/optimal_io_size")" \
	$((3 * 64 * 1024))
filesystem "XFS on RAID 5" xfs /dev/mapper/cache /dev/md0
blank /dev/md0
ok "RAID 5: all is invalid" dmsetup message cache 0 invalidate 0 \
	"$(sectors /dev/md0)"
check "RAID 5: random I/O" --ops $(few 1500) --range 0:65536 --no-verify \
	--save /tmp/m /dev/mapper/cache
ok "RAID 5: flush" dmsetup message cache 0 flush
array_holds "RAID 5: holds it all" /tmp/m /dev/md0
done_with "RAID 5"
must mdadm --stop --quiet /dev/md0
must nullblk_destroy ssd disk0 disk1 disk2 disk3

# --- Above: snapshot and crypt ----------------------------------------------------------

must modprobe dm-snapshot
must modprobe dm-crypt
must nullblk_create hdd 96 0 64 512 1 discard=1
must nullblk_create ssd 12
must nullblk_create cow 96
must ssdcache_create cache /dev/hdd /dev/ssd 2 line_size 128
check "before the snapshot" --ops $(few 800) --save /tmp/origin /dev/mapper/cache
must dmsetup create origin --table \
	"0 $(sectors /dev/hdd) snapshot-origin /dev/mapper/cache"
# The origin learns the size of the snapshot's chunks when it is resumed.
must dmsetup suspend origin
must dmsetup create snap --table \
	"0 $(sectors /dev/hdd) snapshot /dev/mapper/cache /dev/cow N 8"
must dmsetup resume origin
check_start --ops $(few 1000) --load /tmp/origin --save /tmp/snap --discards 0 \
	/dev/mapper/snap
cp /tmp/origin /tmp/still
ok "I/O of the origin" blockcheck --ops $(few 1000) --load /tmp/origin \
	--save /tmp/origin --discards 0 /dev/mapper/origin
check_wait "I/O of the snapshot"
must dmsetup remove snap
check "the origin is what it was" --verify-only --load /tmp/origin \
	/dev/mapper/cache
must dmsetup remove origin

# Exceptions of the snapshot in the cache, too.
must dmsetup create part1 --table "0 65536 linear /dev/mapper/cache 0"
must dmsetup create part2 --table "0 65536 linear /dev/mapper/cache 65536"
blank /dev/mapper/part1
wipe /dev/mapper/part2
must dmsetup create snap --table \
	"0 65536 snapshot /dev/mapper/part1 /dev/mapper/part2 P 16"
check "a snapshot and its store on one cache" --ops $(few 1000) --discards 0 \
	--range 0:16384 --save /tmp/snap /dev/mapper/snap
must dmsetup remove snap
must dmsetup message cache 0 flush
must dmsetup create snap --table \
	"0 65536 snapshot /dev/mapper/part1 /dev/mapper/part2 P 16"
check "its store was kept" --verify-only --load /tmp/snap /dev/mapper/snap
must dmsetup remove snap part1 part2

# crypt DEVICE NAME. Zeros of a discard do not look like zeros through it.
key=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
crypt()
{
	dmsetup create "$2" --table "0 $(sectors "$1") crypt aes-xts-plain64 \
		$key 0 $1 0 1 allow_discards"
}
must crypt /dev/mapper/cache above
ok "zeros through crypt" blank /dev/mapper/above
check "dm-crypt above the cache" --ops $(few 800) --discards 0 \
	--save /tmp/m /dev/mapper/above
must dmsetup remove above
ok "flush" dmsetup message cache 0 flush
must crypt /dev/hdd above
array_holds "the array alone, through crypt" /tmp/m /dev/mapper/above
must dmsetup remove above cache
wipe /dev/ssd

# --- Below ---------------------------------------------------------------------------------

must crypt /dev/hdd below
ok "zeros through crypt" blank /dev/mapper/below
must ssdcache_create cache /dev/mapper/below /dev/ssd
check "dm-crypt as the array" --ops $(few 800) --discards 0 \
	--save /tmp/m /dev/mapper/cache
ok "flush" dmsetup message cache 0 flush
drained "nothing is dirty"
array_holds "it holds it all" /tmp/m /dev/mapper/below
must dmsetup remove cache below
must nullblk_destroy hdd ssd cow

# max_sectors of 8: nothing above 4 KiB goes down in one piece.
must nullblk_create hdd 32 0 64 512 1 discard=1 max_sectors=8
must nullblk_create ssd 12 0 64 512 1 max_sectors=16
is "an array with small limits" "$(cat /sys/block/hdd/queue/max_sectors_kb)" 4
for mode in writeback writethrough; do
	blank /dev/hdd
	wipe /dev/ssd
	must ssdcache_create cache /dev/hdd /dev/ssd 2 mode $mode
	check "I/O with small limits, $mode" --ops $(few 1000) --save /tmp/m \
		/dev/mapper/cache
	ok "flush" within 60 dmsetup message cache 0 flush
	drained "nothing is dirty"
	array_holds "the array holds it all" /tmp/m
	must dmsetup remove cache
done
