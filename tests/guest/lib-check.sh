# SPDX-License-Identifier: GPL-2.0
# What the functional tests share: ". /test/lib-check.sh" after lib.sh.
# shellcheck shell=dash

# Debug kernels do less in the same time.
case $KERNEL in
kasan|kcsan)	SLOW=8 ;;
*)		SLOW=1 ;;
esac

# For what is left out there.
fast() { [ $SLOW = 1 ]; }

# few N: a number of I/Os for this kernel.
few() { echo $((($1 + SLOW - 1) / SLOW)); }

# wipe DEVICE [KIB]: no cache is on it any more.
wipe()
{
	dd if=/dev/zero of="$1" bs=4k count=$((${2:-256} / 4)) oflag=direct \
		conv=notrunc status=none
}

# blank DEVICE: all zero.
blank()
{
	dd if=/dev/zero of="$1" bs=1M oflag=direct iflag=count_bytes \
		count=$(($(sectors "$1") * 512)) conv=notrunc status=none
}

# The two devices of most tests: they take some time for each I/O, so that
# I/Os meet. devices ARRAY_MB SSD_MB [ARRAY_BLOCK_SIZE [SSD_BLOCK_SIZE]]
devices()
{
	must nullblk_create hdd "$1" 300000 64 "${3:-512}" 1 discard=1
	must nullblk_create ssd "$2" 60000 64 "${4:-512}" 1
}

no_devices() { must nullblk_destroy hdd ssd; }

# check NAME [OPTION]... DEVICE: blockcheck as a test.
check()
{
	local name="$1"

	shift
	check_start "$@"
	check_wait "$name"
}

# check_start [OPTION]... DEVICE: in the background.
check_start()
{
	blockcheck "$@" >/tmp/check_out 2>&1 &
	CHECK_PID=$!
}

# check_stop NAME: ends it, and says whether all was right.
check_stop()
{
	kill -TERM $CHECK_PID 2>/dev/null
	check_wait "$1"
}

check_wait()
{
	local st

	wait $CHECK_PID
	st=$?
	if [ $st = 0 ]; then
		pass "$1"
	else
		fail "$1" "blockcheck: status $st"
		head -n 70 /tmp/check_out | sed 's/^/# /'
	fi
	tail -n 1 /tmp/check_out | sed 's/^/# /'
	return $st
}

# check_going NAME: it found nothing wrong so far.
check_going()
{
	if kill -0 $CHECK_PID 2>/dev/null; then
		pass "$1"
	else
		check_wait "$1" && fail "$1: to its end" "it ended early"
	fi
}

# array_holds NAME MODEL [DEVICE]: after "flush" the array has it all.
array_holds() { ok "$1" blockcheck --verify-only --load "$2" "${3:-/dev/hdd}"; }

# In write-back mode: drained.
drained() { is "$1" "$(status_field "${2:-cache}" dirty_blocks)" 0; }

# fields DEVICE FIELD...: their values in one line.
fields()
{
	local dev="$1" status f out=

	shift
	status=$(dmsetup status "$dev")
	for f; do
		case " $status " in
		*" $f="*)
			f=${status#* "$f"=}
			out="$out${out:+ }${f%% *}"
			;;
		*)	out="$out${out:+ }?" ;;
		esac
	done
	echo "$out"
}
