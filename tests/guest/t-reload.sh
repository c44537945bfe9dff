# SPDX-License-Identifier: GPL-2.0
# Tables, modes and sizes change while I/O runs and is verified.
# kernels: 6.1 6.12
# smp: 2
# timeout: 400
. /test/lib.sh
. /test/lib-check.sh

cache_size() { sectors /dev/mapper/cache; }
mode_is() { [ "$(status_field cache mode)" = "$1" ]; }

reload()	# TABLE
{
	dmsetup load cache --table "$1" && dmsetup resume cache
}

# repeat N COMMAND...
repeat()
{
	local n="$1"

	shift
	while [ "$n" -gt 0 ]; do
		"$@" || return 1
		n=$((n - 1))
	done
}

suspend_resume()	# [OPTION]...
{
	dmsetup suspend "$@" cache && sleep 0.1 && dmsetup resume cache
}

# --- Reloads, suspends, modes, messages --------------------------------------

devices 48 8
must ssdcache_create cache /dev/hdd /dev/ssd 2 line_size 128
check_start --seconds 1000 --pause 5000 --save /tmp/m /dev/mapper/cache

ok "the same table again, 10 times" repeat $(few 10) reload \
	"$(ssdcache_table /dev/hdd /dev/ssd 2 line_size 128)"
is "the table is as it was loaded" "$(table_args cache)" \
	"$(devno /dev/hdd) $(devno /dev/ssd) 2 line_size 128"
ok "without line_size" reload "$(ssdcache_table /dev/hdd /dev/ssd)"
is "the line size stays" "$(status_field cache line)" 128
fails "another line size is refused" dmsetup load cache --table \
	"$(ssdcache_table /dev/hdd /dev/ssd 2 line_size 512)"
dmsetup clear cache

for mode in writethrough writeback writearound passthrough writeback; do
	ok "reload with mode $mode" reload \
		"$(ssdcache_table /dev/hdd /dev/ssd 2 mode $mode)"
	ok "it becomes $mode" wait_for 60 mode_is $mode
	sleep 0.3
done
ok "reload with other keys" reload \
	"$(ssdcache_table /dev/hdd /dev/ssd 4 seq_cutoff 64 discard nopassdown)"
ok "and back" reload "$(ssdcache_table /dev/hdd /dev/ssd)"

ok "suspend and resume" repeat $(few 4) suspend_resume
ok "suspend --noflush and resume" repeat $(few 4) suspend_resume --noflush
ok "suspend --nolockfs and resume" repeat 2 suspend_resume --nolockfs
ok "a table that is not used, then a suspend" sh -c "dmsetup load cache --table \
	'$(ssdcache_table /dev/hdd /dev/ssd 2 seq_cutoff 0)' && dmsetup clear cache &&
	dmsetup suspend cache && dmsetup resume cache"

for mode in writethrough writearound passthrough writeback writearound \
		writethrough passthrough writeback; do
	ok "set mode $mode" within 60 dmsetup message cache 0 set mode $mode
	is "mode" "$(status_field cache mode)" $mode
	[ $mode = writeback ] || drained "nothing is dirty in $mode mode"
	sleep 0.2
done
ok "flush while I/O runs" within 60 dmsetup message cache 0 flush
ok "flush twice at once" sh -c "dmsetup message cache 0 flush & a=\$!
	dmsetup message cache 0 flush && wait \$a"
ok "invalidate while I/O runs" within 60 dmsetup message cache 0 invalidate \
	0 "$(cache_size)"
ok "clear_stats" dmsetup message cache 0 clear_stats
ok "a flush that a suspend meets ends" sh -c "dmsetup message cache 0 flush &
	sleep 0.05; dmsetup suspend cache && dmsetup resume cache && wait"
ok "a mode change that a suspend meets ends" sh -c \
	"dmsetup message cache 0 set mode writethrough &
	sleep 0.05; dmsetup suspend cache && dmsetup resume cache && wait"
ok "set mode writeback" dmsetup message cache 0 set mode writeback
check_stop "all I/O meanwhile was right"
ok "flush" dmsetup message cache 0 flush
drained "nothing is dirty"
array_holds "the array holds it all" /tmp/m

# --- Removal -------------------------------------------------------------------

check_start --seconds 1000 --pause 3000 --load /tmp/m --save /tmp/m \
	--allow-errors --no-verify /dev/mapper/cache
sleep 1
fails "a device in use is not removed" dmsetup remove cache
fails "nor is the module unloaded" rmmod dm_ssdcache
# Still open, so it stays, but as an error target.
within 60 dmsetup remove --force cache 2>/dev/null
is "remove --force with I/O running takes the cache away" \
	"$(dmsetup table cache | cut -d ' ' -f 3)" error
check_stop "its I/O was right"
ok "remove" within 30 dmsetup remove cache
ok "unload the module" rmmod dm_ssdcache
ok "load the module" insmod /test/dm-ssdcache.ko
ok "create" ssdcache_create cache /dev/hdd /dev/ssd
check "what was written is there" --verify-only --load /tmp/m --save /tmp/m \
	/dev/mapper/cache
ok "remove" within 30 dmsetup remove cache
no_devices

# --- Growing ---------------------------------------------------------------------

devices 32 16
# An array that ends inside a line, and inside a block.
SSDCACHE_SECTORS=$((20 * 2048 + 77))
must linear_create ssdl /dev/ssd 0 $((4 * 2048))
must ssdcache_create cache /dev/hdd /dev/mapper/ssdl
slots=$(status_field cache slots)
check "the end of an array of odd size" --ops $(few 3000) --save /tmp/m \
	/dev/mapper/cache
must dmsetup message cache 0 flush
for more in 78 80 $((2048 + 9)) $((12 * 2048)); do
	SSDCACHE_SECTORS=$((20 * 2048 + more))
	check_start --ops $(few 2000) --load /tmp/m --save /tmp/m /dev/mapper/cache
	sleep 0.5
	must dmsetup message cache 0 flush
	ok "a longer array: $SSDCACHE_SECTORS sectors" within 30 reload \
		"$(ssdcache_table /dev/hdd /dev/mapper/ssdl)"
	is "it is longer" "$(cache_size)" $SSDCACHE_SECTORS
	check_wait "I/O while it grows"
done
SSDCACHE_SECTORS=$((20 * 2048))
fails "a shorter one is refused" dmsetup load cache --table \
	"$(ssdcache_table /dev/hdd /dev/mapper/ssdl)"
dmsetup clear cache
SSDCACHE_SECTORS=

check_start --seconds 1000 --pause 3000 --load /tmp/m --save /tmp/m /dev/mapper/cache
sleep 0.5
ok "the SSD grows" dm_swap ssdl "0 $((14 * 2048)) linear /dev/ssd 0"
is "no more slots yet" "$(status_field cache slots)" "$slots"
ok "load the table" reload "$(ssdcache_table /dev/hdd /dev/mapper/ssdl)"
compare "more slots" "$(status_field cache slots)" -gt $((slots * 2))
sleep 3
compare "they are used" "$(status_field cache used)" -gt "$slots"
check_stop "I/O while the SSD grows"
ok "remove" within 30 dmsetup remove cache
ok "create again" ssdcache_create cache /dev/hdd /dev/mapper/ssdl
compare "still more slots" "$(status_field cache slots)" -gt $((slots * 2))
check "verify" --verify-only --load /tmp/m --save /tmp/m /dev/mapper/cache
ok "flush" dmsetup message cache 0 flush
array_holds "the array holds it all" /tmp/m
ok "remove" within 30 dmsetup remove cache
ok "an SSD that shrank: the device is made smaller" dm_swap ssdl \
	"0 $((4 * 2048)) linear /dev/ssd 0"
fails "and is refused" ssdcache_create cache /dev/hdd /dev/mapper/ssdl
