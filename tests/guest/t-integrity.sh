# SPDX-License-Identifier: GPL-2.0
# What was written is read: all modes, line sizes and sector sizes, with a cache
# much smaller than what is used; after a restart, and on the array alone.
# kernels: 6.1 6.12 kasan
# smp: 2
# timeout: 400
. /test/lib.sh
. /test/lib-check.sh

# integrity MODE LINE ARRAY_BLOCK SSD_BLOCK OPS
integrity()
{
	local mode="$1" name="$1, line $2, sectors $3 $4" block

	devices 48 6 "$3" "$4"
	ok "$name: create" ssdcache_create cache /dev/hdd /dev/ssd 4 mode "$mode" \
		line_size "$2"
	is "$name: block size" "$(blockdev --getss /dev/mapper/cache)" "$3"
	check "$name: I/O" --ops "$(few "$5")" --seed "$2$3" --save /tmp/m \
		/dev/mapper/cache
	ok "$name: stop" within 30 dmsetup remove cache
	ok "$name: restart" ssdcache_create cache /dev/hdd /dev/ssd 2 mode "$mode"
	[ "$mode" = passthrough ] ||
		compare "$name: warm" "$(status_field cache valid_blocks)" -gt 100
	check "$name: verify" --verify-only --load /tmp/m /dev/mapper/cache
	check "$name: I/O again" --ops "$(few $(($5 / 4)))" --load /tmp/m \
		--save /tmp/m /dev/mapper/cache
	ok "$name: flush" dmsetup message cache 0 flush
	drained "$name: nothing is dirty"
	array_holds "$name: the array holds it all" /tmp/m
	ok "$name: remove" within 30 dmsetup remove cache
	no_devices
}

# Each mode, each size of lines and of sectors; on fast kernels most pairs.
integrity writeback 128 512 512 2000
integrity writethrough 512 4096 512 1000
integrity writearound 256 4096 4096 1000
if fast; then
	for line in 256 512; do
		integrity writeback $line 512 512 2000
		integrity writeback $line 4096 512 1500
	done
	integrity writeback 512 4096 4096 1500
	for line in 128 256; do
		integrity writethrough $line 512 512 1000
	done
	integrity writearound 128 512 512 1000
	integrity passthrough 512 512 512 500
fi

# fio's own idea of it, from more CPUs, with io_uring and deep queues.
devices 64 8
must ssdcache_create cache /dev/hdd /dev/ssd 2 line_size 256
for bs in 1k 4k 24k; do
	ok "fio verify, $bs" fio --name=verify --filename=/dev/mapper/cache \
		--direct=1 --ioengine=io_uring --iodepth=32 --rw=randwrite \
		--bs=$bs --size=48m --verify=crc32c-intel --verify_fatal=1 \
		--number_ios=$(few 1500) --randrepeat=1
done
ok "flush" dmsetup message cache 0 flush
drained "nothing is dirty"
ok "remove" within 30 dmsetup remove cache
