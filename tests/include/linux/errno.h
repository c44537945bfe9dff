/* SPDX-License-Identifier: GPL-2.0 */
#ifndef STANDIN_LINUX_ERRNO_H
#define STANDIN_LINUX_ERRNO_H

/* The C library's <errno.h> includes this one too. */
#include <asm/errno.h>

#endif
