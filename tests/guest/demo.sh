# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=dash
# What the target does, shown: an SSD in front of a RAID 5 of four slow disks,
# ext4 and a source tree on it, fio with and without it, a warm restart.
# "make demo" runs it with a tar archive in /test/files/tree.tar.
. /test/lib.sh

say() { printf '\n== %s\n' "$*"; }

disks="0 1 2 3"
for i in $disks; do
	must nullblk_create disk$i 160 4000000 1
done
must nullblk_create ssd 256 80000 128
# shellcheck disable=SC2046
must md_create md0 5 64 $(for i in $disks; do echo /dev/disk$i; done)
say "RAID 5 of four disks of 4 ms, an SSD of 80 us"
cat /proc/mdstat | head -n 3

# measure NAME DEVICE RW: a line "NAME IOPS LATENCY".
measure()
{
	fio --name=demo --filename="$2" --direct=1 --ioengine=io_uring \
		--iodepth=8 --bs=4k --rw="$3" --offset=256m --size=32m \
		--number_ios="$4" --randrepeat=1 --output-format=json \
		>/tmp/fio.json || bail "fio"
	jq -r --arg name "$1" '.jobs[0] |
		(if .read.total_ios > 0 then .read else .write end) |
		"\($name) \(.iops | floor) \(.lat_ns.mean / 1000 | floor)"' \
		/tmp/fio.json >>/tmp/table
}

: >/tmp/table
say "fio on the array alone: 4 KiB, random, depth 8"
measure "reads_without" /dev/md0 randread 500
measure "writes_without" /dev/md0 randwrite 200

say "dmsetup create"
must ssdcache_create cache /dev/md0 /dev/ssd
dmsetup table cache

say "ext4 and a source tree"
must mkfs.ext4 -q -F /dev/mapper/cache 240m
# (fio has the rest of the device)
mkdir -p /tmp/mnt
must mount /dev/mapper/cache /tmp/mnt
must tar -xf /test/files/tree.tar -C /tmp/mnt
find /tmp/mnt -type f | wc -l | sed 's/$/ files unpacked/'
(cd /tmp/mnt && find . -type f -exec sha256sum {} + | sort -k 2) >/tmp/sums
must umount /tmp/mnt
must mount /dev/mapper/cache /tmp/mnt
ok "the tree reads back with the same checksums" \
	sh -c 'cd /tmp/mnt && sha256sum --quiet -c /tmp/sums 2>/dev/null ||
		sha256sum -c /tmp/sums >/dev/null'
must umount /tmp/mnt

say "fio on the cache: the same"
fio --name=warm --filename=/dev/mapper/cache --direct=1 --ioengine=io_uring \
	--iodepth=8 --bs=64k --rw=write --offset=256m --size=32m >/dev/null ||
	bail "fio"
must dmsetup message cache 0 clear_stats
measure "reads_with" /dev/mapper/cache randread 4000
measure "writes_with" /dev/mapper/cache randwrite 4000
hits=$(($(status_field cache read_hits) * 100 /
	($(status_field cache read_hits) + $(status_field cache read_misses))))
say "status"
dmsetup status cache

say "clean stop, warm restart"
must dmsetup remove cache
must ssdcache_create cache /dev/md0 /dev/ssd
measure "after_restart" /dev/mapper/cache randread 2000
warm=$(($(status_field cache read_hits) * 100 /
	($(status_field cache read_hits) + $(status_field cache read_misses))))
must mount /dev/mapper/cache /tmp/mnt
ok "the tree is still whole" sh -c 'cd /tmp/mnt && sha256sum -c /tmp/sums >/dev/null'
must umount /tmp/mnt
ok "flush" dmsetup message cache 0 flush
must dmsetup remove cache
ok "e2fsck of the array alone" e2fsck -fn /dev/md0

say "4 KiB, random, depth 8"
awk 'BEGIN { printf "%-16s %10s %12s\n", "", "IOPS", "latency us" }
	{ printf "%-16s %10s %12s\n", $1, $2, $3 }' /tmp/table
echo "hit ratio of reads: $hits %, after the restart: $warm %"
