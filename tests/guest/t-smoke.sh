# SPDX-License-Identifier: GPL-2.0
# The module loads, a device can be made, used and removed.
# kernels: 6.1 6.12 kasan kcsan
# smp: 2
# timeout: 240
. /test/lib.sh

must nullblk_create hdd 256
must nullblk_create ssd 64

ok "create" ssdcache_create cache /dev/hdd /dev/ssd
is "size is the array's" "$(sectors /dev/mapper/cache)" "$(sectors /dev/hdd)"
ok "status" sh -c "dmsetup status cache | grep -q ' ssdcache '"
ok "fio verify" fio --name=verify --filename=/dev/mapper/cache --direct=1 \
	--ioengine=io_uring --iodepth=16 --rw=randwrite --bs=4k --size=16m \
	--verify=crc32c --verify_fatal=1 --number_ios=2000 --randrepeat=1
ok "remove" within 30 dmsetup remove cache
ok "the module can be unloaded" rmmod dm_ssdcache
