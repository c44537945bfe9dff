# SPDX-License-Identifier: GPL-2.0
# Shell library of the guest scripts: ". /test/lib.sh" first. Runs under
# dash. Output is TAP; the plan is printed at the end.
# shellcheck shell=dash

T_COUNT=0
T_FAILED=0
T_KMSG=

# --- TAP ------------------------------------------------------------------

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

# A line in the kernel log too, so that messages there can be told apart.
t_note() { echo "ssdcache-test: $*" >/dev/kmsg; }

t_result()	# "ok" or "not ok", NAME
{
	T_COUNT=$((T_COUNT + 1))
	[ "$1" = ok ] || T_FAILED=$((T_FAILED + 1))
	echo "$1 $T_COUNT - $2"
	t_note "$1 $T_COUNT - $2"
}

pass() { t_result ok "$1"; }
fail() { t_result "not ok" "$1"; shift; [ $# = 0 ] || diag "$@"; return 1; }

# ok NAME COMMAND...: passes if the command does. Its output is shown only
# if it fails.
ok()
{
	local name="$1" st
	shift
	"$@" >/tmp/.t_out 2>&1
	st=$?
	if [ $st = 0 ]; then
		pass "$name"
	else
		fail "$name" "exit status $st: $*"
		sed 's/^/# /' /tmp/.t_out | tail -n 40
		return 1
	fi
}

# fails NAME COMMAND...: passes if the command fails.
fails()
{
	local name="$1"
	shift
	if "$@" >/tmp/.t_out 2>&1; then
		fail "$name" "should have failed: $*"
		return 1
	fi
	pass "$name"
}

# is NAME GOT WANTED
is()
{
	if [ "$2" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "got:    $2" 
		diag "wanted: $3"
		return 1
	fi
}

# compare NAME A OP B, with the numeric operators of test: -lt, -ge, ...
compare()
{
	if [ "$2" "$3" "$4" ]; then
		pass "$1"
	else
		fail "$1" "$2 $3 $4 is not so"
	fi
}

# skip NAME REASON
skip()
{
	T_COUNT=$((T_COUNT + 1))
	echo "ok $T_COUNT - $1 # SKIP $2"
}

bail() { echo "Bail out! $*"; t_note "bail out: $*"; exit 1; }

# must COMMAND...: preparations that are not tests of their own.
must()
{
	"$@" >/tmp/.t_must 2>&1 && return
	sed 's/^/# /' /tmp/.t_must | tail -n 40
	bail "$*"
}

# Called when the script ends, however it does.
t_end()
{
	local st=$?

	trap - EXIT
	# A newline of its own: the last line may lack one.
	printf "\n1..%s\n" "$T_COUNT"
	[ $st = 0 ] || exit $st
	[ $T_FAILED = 0 ] || exit 1
	exit 0
}
trap t_end EXIT

# Runs "$1 again and again" until it succeeds: wait_for SECONDS COMMAND...
wait_for()
{
	local n=$(($1 * 10))
	shift
	while ! "$@" >/dev/null 2>&1; do
		n=$((n - 1))
		[ $n -gt 0 ] || return 1
		sleep 0.1
	done
}

# within SECONDS COMMAND...: false (124) if it takes longer. A command stuck
# in the kernel cannot be killed; then it is left behind.
within()
{
	local n=$(($1 * 10)) pid
	shift
	"$@" &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		n=$((n - 1))
		if [ $n -le 0 ]; then
			kill -9 $pid 2>/dev/null
			return 124
		fi
		sleep 0.1
	done
	wait $pid
}

# --- Kernel log ------------------------------------------------------------

# kmsg_mark; ...; kmsg_since: what the kernel said since the mark, without
# the lines of this library.
kmsg_mark()
{
	T_KMSG="mark $$ $T_COUNT $(cut -d ' ' -f 1 /proc/uptime)"
	t_note "$T_KMSG"
}

kmsg_since()
{
	dmesg | awk -v mark="ssdcache-test: $T_KMSG" '
		index($0, mark) { seen = 1; text = ""; next }
		seen && !index($0, "ssdcache-test: ") { text = text $0 "\n" }
		END { printf "%s", text }'
}

# --- Disks -------------------------------------------------------------------

NULLB=/sys/kernel/config/nullb

nullblk_load() { [ -d $NULLB ] || modprobe null_blk nr_devices=0; }

# nullblk_create NAME SIZE_MB [COMPLETION_NSEC [DEPTH [BLOCKSIZE [MEMORY_BACKED]]]] [KEY=VALUE]...
# makes /dev/NAME. COMPLETION_NSEC 0: completes at once. Further attributes
# of null_blk may follow as KEY=VALUE (discard=1, cache_size=16, ...).
nullblk_create()
{
	local name="$1" size="$2" ns=0 depth=64 bs=512 backed=1 d="$NULLB/$1" kv

	shift 2
	case ${1-=} in *=*) ;; *) ns=$1; shift ;; esac
	case ${1-=} in *=*) ;; *) depth=$1; shift ;; esac
	case ${1-=} in *=*) ;; *) bs=$1; shift ;; esac
	case ${1-=} in *=*) ;; *) backed=$1; shift ;; esac

	nullblk_load && mkdir "$d" || return 1
	echo "$size" >"$d/size" &&
	echo "$bs" >"$d/blocksize" &&
	echo "$depth" >"$d/hw_queue_depth" &&
	echo "$backed" >"$d/memory_backed" &&
	if [ "$ns" -gt 0 ]; then
		echo 2 >"$d/irqmode" && echo "$ns" >"$d/completion_nsec"
	else
		echo 0 >"$d/irqmode"
	fi || return 1
	for kv; do
		echo "${kv#*=}" >"$d/${kv%%=*}" || return 1
	done
	echo 1 >"$d/power" && wait_for 10 test -b "/dev/$name"
}

nullblk_destroy()
{
	local name

	for name; do
		echo 0 >"$NULLB/$name/power"
		rmdir "$NULLB/$name" || return 1
	done
}

# sectors DEVICE: its size in 512-byte sectors.
sectors() { blockdev --getsz "$1"; }

# major:minor of a device
devno() { stat -L -c '%Hr:%Lr' "$1"; }

# brd_create NUMBER SIZE_MB: /dev/ram0 ... of that size each.
brd_create() { modprobe brd rd_nr="$1" rd_size=$(($2 * 1024)); }

# loop_create FILE SIZE_MB [LOSETUP ARGS]...: prints the loop device.
loop_create()
{
	local file="$1" mb="$2"

	shift 2
	modprobe loop && truncate -s "${mb}M" "$file" &&
	losetup --show -f "$@" "$file"
}

# md_create NAME LEVEL CHUNK_KIB DEVICE...: /dev/md/NAME as /dev/NAME (md0...).
# Memory-backed members are all zero, which is a clean array.
md_create()
{
	local name="$1" level="$2" chunk="$3"

	shift 3
	[ "$level" = 1 ] || set -- --chunk="$chunk" "$@"
	[ "$level" = 0 ] || set -- --assume-clean --bitmap=none "$@"
	mdadm --create "/dev/$name" --run --quiet --metadata=1.2 \
		--level="$level" --raid-devices="$(md_members "$@")" "$@"
}

md_members()
{
	local n=0 a

	for a; do case $a in -*) ;; *) n=$((n + 1)) ;; esac; done
	echo $n
}

# --- The target ----------------------------------------------------------------

# ssdcache_table ARRAY SSD [ARGS]...: a table line for the whole array.
ssdcache_table()
{
	local array="$1"

	echo "0 ${SSDCACHE_SECTORS:-$(sectors "$array")} ssdcache $*"
}

# ssdcache_create NAME ARRAY SSD [ARGS]...: /dev/mapper/NAME. The length is
# the array's unless SSDCACHE_SECTORS says otherwise.
ssdcache_create()
{
	local name="$1"

	shift
	dmsetup create "$name" --table "$(ssdcache_table "$@")"
}

# status_field NAME FIELD: the value of FIELD=value in the device's status.
status_field()
{
	dmsetup status "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}

# The words of the table line after "ssdcache".
table_args() { dmsetup table "$1" | cut -d ' ' -f 4-; }

# linear_create NAME DEVICE [OFFSET [LENGTH]], in sectors.
linear_create()
{
	local off="${3:-0}"

	dmsetup create "$1" --table \
		"0 ${4:-$(($(sectors "$2") - off))} linear $2 $off"
}

# dm_swap NAME TABLE: loads another table and swaps it in.
dm_swap()
{
	dmsetup suspend --noflush --nolockfs "$1" &&
	dmsetup load "$1" --table "$2" && dmsetup resume "$1"
}

# --- Data ---------------------------------------------------------------------

# write_pattern DEVICE BLOCK COUNT BYTE [DD ARGS]: 4 KiB blocks full of one
# byte, given as three octal digits.
write_pattern()
{
	local dev="$1" block="$2" count="$3" byte="$4"

	shift 4
	head -c $((count * 4096)) /dev/zero | tr '\0' "\\$byte" |
		dd of="$dev" bs=4k seek="$block" iflag=fullblock oflag=direct \
			conv=notrunc status=none "$@"
}

# block_sum DEVICE BLOCK [COUNT]: a checksum of 4 KiB blocks.
block_sum()
{
	dd if="$1" bs=4k skip="$2" count="${3:-1}" iflag=direct status=none |
		sha256sum | cut -c 1-64
}

# device_sum DEVICE: a checksum of the whole.
device_sum()
{
	dd if="$1" bs=1M iflag=direct status=none | sha256sum | cut -c 1-64
}

# reset_machine: the machine is reset at once, nothing is written back. For
# scripts with "# boots: N"; BOOT tells which one runs.
reset_machine()
{
	trap - EXIT
	printf '\n1..%s\nSSDCACHE-GUEST-RESET\n' "$T_COUNT"
	sleep 0.1
	echo b >/proc/sysrq-trigger
	sleep 60
}

# The output is a terminal, but nobody wants colours in it.
jq() { command jq -M "$@"; }
