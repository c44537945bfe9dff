# SPDX-License-Identifier: GPL-2.0
# Sourced by the scripts in tests/ that run on the host: where things are, and
# which kernels there are. POSIX sh, except that "local" is used.
# shellcheck shell=dash
#
# Kernels go by short names: 6.1 and 6.12 (Debian's stock kernels), kasan and
# kcsan (linux-source-6.12 built with tests/guest/x86-*.config).

TESTS=${TESTS:-$(cd "$(dirname "$0")" && pwd)}
TOP=$(cd "$TESTS/.." && pwd)

# What is expensive to make is kept here, outside the tree, under names that
# change with what it was made from.
CACHE=${SSDCACHE_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ssdcache-tests}

STOCK_KERNELS="6.1 6.12"
DEBUG_KERNELS="kasan kcsan"

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# headers_dir 6.1: the newest headers folder of that series, nothing if none.
headers_dir()
{
	ls -d /usr/src/linux-headers-"$1".*-amd64 2>/dev/null |
		grep -v -e '-rt-amd64$' -e '-cloud-amd64$' | sort -V | tail -n 1
}

# The release of the kernel whose headers or built tree is in $1.
kernel_release()
{
	sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' \
		"$1/include/generated/utsrelease.h"
}

# Debian's version of an installed package, nothing if it is not installed.
package_version()
{
	dpkg-query -W -f '${db:Status-Abbrev} ${Version}\n' "$1" 2>/dev/null |
		sed -n 's/^ii *//p'
}

# What a debug kernel is made from decides the name of its folder.
debug_dir()
{
	local config="$TESTS/guest/x86-$1.config" key

	[ -f "$config" ] || die "no kernel '$1'"
	key=$({ cat "$config"; package_version linux-source-6.12
		gcc -dumpfullversion; } | sha256sum | cut -c 1-12)
	echo "$CACHE/debug/$1-$key"
}

stock_dir()
{
	local headers release

	headers=$(headers_dir "$1")
	[ -n "$headers" ] || return 1
	release=${headers##*/linux-headers-}
	echo "$CACHE/stock/${release}_$(package_version "linux-headers-$release")"
}

# kernel_env NAME: sets KDIR (to build modules for), RELEASE, KROOT (the
# folder with lib/modules/RELEASE) and KERNEL_IMAGE. Fails if setup.sh has not
# made them yet.
kernel_env()
{
	local dir

	case $1 in
	kasan|kcsan)
		dir=$(debug_dir "$1")
		[ -e "$dir/complete" ] || return 1
		KDIR=$dir/build
		KROOT=$dir/root
		KERNEL_IMAGE=$dir/vmlinux
		RELEASE=$(kernel_release "$KDIR")
		;;
	6.1|6.12)
		dir=$(stock_dir "$1") || return 1
		[ -e "$dir/complete" ] || return 1
		KDIR=$(headers_dir "$1")
		RELEASE=$(kernel_release "$KDIR")
		KROOT=$dir
		KERNEL_IMAGE=$dir/boot/vmlinux-$RELEASE
		;;
	*)
		die "unknown kernel '$1'"
		;;
	esac
}
