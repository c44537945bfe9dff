# SPDX-License-Identifier: GPL-2.0
# Power cuts: what was flushed is there, what was read once stays (C1, C2, C4).
# Variables: SEED, CUTS, COUNT (cuts of one set of caches), see powercut.c.
# kernels: 6.1
# smp: 2
# mem: 768
# timeout: 600
# module: no
# test-module: powercut
. /test/lib.sh

must insmod /test/dm-powercut.ko

# Shown as it comes: the time may be over before it ends.
powercut --seed "${SEED:-1}" --cuts "${CUTS:-360}" --count "${COUNT:-12}"
is "powercut" $? 0
