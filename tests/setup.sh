#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Brings what the tests need: Debian packages, the stock kernels' images and
# the debug kernels. All but the packages goes to the cache folder (see
# common.sh). Whatever is there already is not fetched or built again.
#
#	setup.sh			packages and stock kernels
#	setup.sh packages
#	setup.sh kernel 6.1|6.12
#	setup.sh debug-kernel kasan|kcsan
#	setup.sh all			packages and every kernel
set -eu

TESTS=$(cd "$(dirname "$0")" && pwd)
. "$TESTS/common.sh"

# The header metapackages bring the newest headers of their series.
PACKAGES="gcc make bc bison flex libc6-dev libelf-dev libssl-dev
	linux-headers-amd64 linux-headers-6.12-amd64 linux-source-6.12
	qemu-system-x86 busybox-static cpio kmod xz-utils zstd rsync
	dmsetup mdadm e2fsprogs xfsprogs bcache-tools fio jq util-linux
	sparse libcmocka-dev perl"

apt_updated=
apt_update()
{
	[ -z "$apt_updated" ] || return 0
	say "apt-get update"
	apt-get update -qq >&2 || say "apt-get update failed, going on"
	apt_updated=yes
}

apt_install()
{
	say "installing: $*"
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
		--no-install-recommends -o Dpkg::Use-Pty=0 "$@" \
		</dev/null >"$CACHE/apt.log" 2>&1 ||
		{ tail -n 20 "$CACHE/apt.log" >&2; die "cannot install $*"; }
}

packages()
{
	local missing="" p

	for p in $PACKAGES; do
		[ -n "$(package_version "$p")" ] || missing="$missing $p"
	done
	[ -n "$missing" ] || return 0
	[ "$(id -u)" = 0 ] || die "please install:$missing"
	apt_update
	# shellcheck disable=SC2086
	apt_install $missing
}

# Thousands of drivers that no guest has make depmod slow: keep what a disk
# may need.
prune_modules()
{
	local d

	for d in "$1"/* "$1"/drivers/*; do
		case ${d#"$1"/} in
		arch|block|crypto|drivers|fs|kernel|lib|mm) ;;
		drivers/block|drivers/char|drivers/crypto|drivers/dax) ;;
		drivers/md|drivers/nvme|drivers/scsi|drivers/virtio) ;;
		*) rm -rf "$d" ;;
		esac
	done
}

# The ELF image inside a bzImage, which QEMU starts directly: an emulated CPU
# takes seconds to unpack itself. Where it is, the boot protocol says.
extract_vmlinux()
{
	local sectors offset length

	number() { od -A n -t "u$3" -j "$2" -N "$3" "$1" | tr -d ' '; }
	sectors=$(number "$1" $((0x1f1)) 1)
	offset=$(($(number "$1" $((0x248)) 4) + (sectors + 1) * 512))
	# The last four bytes are the unpacked size.
	length=$(($(number "$1" $((0x24c)) 4) - 4))
	tail -c +$((offset + 1)) "$1" | head -c $length >"$1.payload"
	case $(od -A n -t x1 -N 4 "$1.payload" | tr -d ' ') in
	fd377a58)	xz -dc "$1.payload" ;;
	28b52ffd)	zstd -qdc "$1.payload" ;;
	1f8b*)		gzip -dc "$1.payload" ;;
	*)		return 1 ;;
	esac
	rm -f "$1.payload"
}

# fetch_image RELEASE VERSION DIR: unpacks the kernel image package, which is
# not installed, into DIR.
fetch_image()
{
	local tmp="$3.tmp" deb

	rm -rf "$tmp"
	mkdir -p "$tmp"
	(cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root download \
		"linux-image-$1=$2" >/dev/null 2>&1) || return 1
	deb=$(echo "$tmp"/*.deb)
	dpkg -x "$deb" "$tmp"
	rm -rf "$deb" "$tmp/usr/share/doc"
	prune_modules "$tmp/lib/modules/$1/kernel"
	depmod -b "$tmp" "$1"
	extract_vmlinux "$tmp/boot/vmlinuz-$1" >"$tmp/boot/vmlinux-$1"
	readelf -h "$tmp/boot/vmlinux-$1" >/dev/null || die "cannot unpack $1"
	touch "$tmp/complete"
	rm -rf "$3"
	mv "$tmp" "$3"
}

# The image must be of the same version as the headers. When the archive no
# longer has that one, both are brought to the newest.
stock_kernel()
{
	local meta=linux-headers-$1-amd64 dir headers release

	[ "$1" != 6.1 ] || meta=linux-headers-amd64
	dir=$(stock_dir "$1") || { packages; dir=$(stock_dir "$1"); }
	[ ! -e "$dir/complete" ] || return 0

	headers=$(headers_dir "$1")
	release=${headers##*/linux-headers-}
	say "fetching the stock kernel $release"
	fetch_image "$release" "$(package_version "linux-headers-$release")" \
		"$dir" && return 0

	apt_update
	fetch_image "$release" "$(package_version "linux-headers-$release")" \
		"$dir" && return 0

	[ "$(id -u)" = 0 ] || die "please upgrade $meta"
	apt_install "$meta"
	headers=$(headers_dir "$1")
	release=${headers##*/linux-headers-}
	dir=$(stock_dir "$1")
	[ -e "$dir/complete" ] ||
		fetch_image "$release" \
			"$(package_version "linux-headers-$release")" "$dir" ||
		die "cannot fetch the image of kernel $release"
}

# The source is unpacked once and shared by the debug kernels, which are built
# outside it.
kernel_source()
{
	local version dir

	version=$(package_version linux-source-6.12)
	[ -n "$version" ] || { packages; version=$(package_version linux-source-6.12); }
	dir=$CACHE/source/$version
	if [ ! -e "$dir/complete" ]; then
		say "unpacking linux-source-6.12"
		rm -rf "$dir"
		mkdir -p "$dir"
		tar -xf /usr/src/linux-source-6.12.tar.xz -C "$dir" \
			--strip-components=1
		touch "$dir/complete"
	fi
	echo "$dir"
}

# check_config FRAGMENT CONFIG: every line of the fragment must have taken.
check_config()
{
	local line bad=0 want

	while read -r line; do
		case $line in
		CONFIG_*=n)	want="# ${line%=n} is not set" ;;
		CONFIG_*|"# CONFIG_"*" is not set") want=$line ;;
		*)		continue ;;
		esac
		grep -qxF -e "$want" "$2" && continue
		# An option that does not exist for this configuration is off.
		case $want in
		"# "*)
			want=${want#\# }
			grep -q "^${want%% *}=" "$2" || continue
			;;
		esac
		say "did not take: $line"
		bad=1
	done <"$1"
	return $bad
}

debug_kernel()
{
	local name="$1" config="$TESTS/guest/x86-$1.config" dir source build log

	dir=$(debug_dir "$name")
	[ ! -e "$dir/complete" ] || return 0
	source=$(kernel_source)
	build=$dir/build
	log=$dir/build.log
	rm -rf "$dir"
	mkdir -p "$build"
	say "building the $name kernel (10 min on two free cores), log: $log"

	{
		make -C "$source" O="$build" allnoconfig \
			KCONFIG_ALLCONFIG="$config" &&
		check_config "$config" "$build/.config" &&
		make -C "$build" -j"$(nproc)" vmlinux modules &&
		make -C "$build" modules_install INSTALL_MOD_STRIP=1 \
			INSTALL_MOD_PATH="$dir/root" &&
		strip -o "$dir/vmlinux" "$build/vmlinux"
	} </dev/null >"$log" 2>&1 || {
		grep -E 'did not take|[Ee]rror' "$log" | head -n 20 >&2
		die "cannot build the $name kernel, see $log"
	}

	# External modules need headers, scripts and Module.symvers; the
	# objects of the kernel itself are not needed again.
	find "$build" -name '*.o' ! -path "$build/scripts/*" \
		! -path "$build/tools/*" -delete
	rm -f "$build/vmlinux" "$build"/.tmp_vmlinux* "$build"/*.a
	touch "$dir/complete"
	# Kernels of older configurations.
	find "$CACHE/debug" -maxdepth 1 -name "$name-*" -mtime +14 \
		-exec rm -rf {} +
}

# Two runs at once must not make the same thing: one waits for the other.
locked()
{
	mkdir -p "$CACHE"
	(
		flock 9
		"$@"
	) 9>"$CACHE/.lock-$1${2:+-$2}"
}

# In braces, so that a shell has read all of it before it runs for minutes:
# the file may be edited meanwhile.
{
case ${1:-default} in
packages)	locked packages ;;
kernel)		locked stock_kernel "$2" ;;
debug-kernel)	locked debug_kernel "$2" ;;
default|all)
	locked packages
	for k in $STOCK_KERNELS; do locked stock_kernel "$k"; done
	[ "${1:-}" != all ] ||
		for k in $DEBUG_KERNELS; do locked debug_kernel "$k"; done
	;;
*)
	die "what is '$1'?"
	;;
esac
exit
}
