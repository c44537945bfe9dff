/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_CRC32C_H
#define STANDIN_LINUX_CRC32C_H

#include <linux/types.h>

__attribute__((__weak__)) u32 standin_crc32c_table[8][256];

__attribute__((__weak__, __constructor__)) void standin_crc32c_init(void)
{
	u32 i, crc;
	int n;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (n = 0; n < 8; n++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
		standin_crc32c_table[0][i] = crc;
	}
	for (n = 1; n < 8; n++) {
		for (i = 0; i < 256; i++) {
			crc = standin_crc32c_table[n - 1][i];
			standin_crc32c_table[n][i] =
				crc >> 8 ^ standin_crc32c_table[0][crc & 0xff];
		}
	}
}

/*
 * Eight bytes at a time: tests do this for gigabytes. The two ends of what is
 * read are read first, where the sanitizer looks.
 */
#if defined(__clang__)
__attribute__((__no_sanitize__("address", "undefined", "coverage")))
#else
__attribute__((__no_sanitize__("address", "undefined")))
#endif
static inline u32 standin_crc32c(u32 crc, const u8 *p, size_t bytes)
{
	for (; bytes >= 8; bytes -= 8, p += 8) {
		crc ^= p[0] | p[1] << 8 | p[2] << 16 | (u32)p[3] << 24;
		crc = standin_crc32c_table[7][crc & 0xff] ^
		      standin_crc32c_table[6][crc >> 8 & 0xff] ^
		      standin_crc32c_table[5][crc >> 16 & 0xff] ^
		      standin_crc32c_table[4][crc >> 24] ^
		      standin_crc32c_table[3][p[4]] ^
		      standin_crc32c_table[2][p[5]] ^
		      standin_crc32c_table[1][p[6]] ^
		      standin_crc32c_table[0][p[7]];
	}
	for (; bytes; bytes--, p++)
		crc = crc >> 8 ^ standin_crc32c_table[0][(crc ^ *p) & 0xff];
	return crc;
}

static inline u32 crc32c(u32 crc, const void *data, size_t bytes)
{
	const volatile u8 *p = data;

	if (bytes) {
		(void)p[0];
		(void)p[bytes - 1];
	}
	return standin_crc32c(crc, data, bytes);
}

#endif
