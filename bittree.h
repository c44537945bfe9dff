/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bitmap with summary levels: the next set bit is found in O(levels), whatever
 * lies between. Level 0 holds the bits, a bit of level n + 1 says that a word of
 * level n may not be zero.
 *
 * Setting is atomic and may be done by anyone in any context. Clearing and
 * searching is for one user at a time (each tree says who). A set bit is never
 * missed: a summary bit is cleared before its word is looked at again, and a
 * setter sets the word before the summary.
 *
 * Pure but for the atomic bit operations; compiles in user space.
 */
#ifndef SSDCACHE_BITTREE_H
#define SSDCACHE_BITTREE_H

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/vmalloc.h>

#define BITTREE_LEVELS	6
#define BITTREE_NONE	(~0ULL)

struct bittree {
	unsigned int nr_levels;
	unsigned long *level[BITTREE_LEVELS];
	u64 nr_words[BITTREE_LEVELS];
};

static inline void bittree_exit(struct bittree *tree)
{
	unsigned int i;

	for (i = 0; i < tree->nr_levels; i++)
		vfree(tree->level[i]);
	tree->nr_levels = 0;
}

/**
 * bittree_init() - allocates a tree with all bits clear
 * @tree: freed with bittree_exit(), which may be called after an error too
 * @nr_bits: at least 1, at most 2^36
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
static inline int bittree_init(struct bittree *tree, u64 nr_bits)
{
	u64 words = nr_bits;

	tree->nr_levels = 0;
	do {
		words = DIV_ROUND_UP_ULL(words, BITS_PER_LONG);
		tree->nr_words[tree->nr_levels] = words;
		tree->level[tree->nr_levels] =
			vzalloc(array_size(words, sizeof(unsigned long)));
		if (!tree->level[tree->nr_levels]) {
			bittree_exit(tree);
			return -ENOMEM;
		}
		tree->nr_levels++;
	} while (words > 1);
	return 0;
}

static inline bool bittree_test(const struct bittree *tree, u64 bit)
{
	return test_bit(bit, tree->level[0]);
}

static inline void bittree_set(struct bittree *tree, u64 bit)
{
	unsigned int i;

	for (i = 0; i < tree->nr_levels; i++) {
		/*
		 * The summary above an already set bit may just be being
		 * cleared by the one user that searches, who then looks at
		 * this word again: it must see the bit, and this the summary.
		 */
		if (!test_bit(bit, tree->level[i]))
			set_bit(bit, tree->level[i]);
		/* Pairs with bittree_prune(). */
		smp_mb__after_atomic();
		bit /= BITS_PER_LONG;
	}
}

static inline void bittree_clear(struct bittree *tree, u64 bit)
{
	clear_bit(bit, tree->level[0]);
}

/* Drops a summary bit over an empty word, unless it fills meanwhile. */
static inline void bittree_prune(struct bittree *tree, unsigned int level,
				 u64 bit)
{
	clear_bit(bit, tree->level[level]);
	/* Pairs with bittree_set(). */
	smp_mb__after_atomic();
	if (READ_ONCE(tree->level[level - 1][bit]))
		set_bit(bit, tree->level[level]);
}

/**
 * bittree_next() - the first set bit at or after a place
 * @tree: only its one user may call this
 * @from: where to begin
 *
 * Return: its number, or BITTREE_NONE.
 */
static inline u64 bittree_next(struct bittree *tree, u64 from)
{
	unsigned int level = 0, bit = from % BITS_PER_LONG;
	u64 at, word = from / BITS_PER_LONG;

	while (level < tree->nr_levels) {
		unsigned long bits = 0;

		if (word < tree->nr_words[level] && bit < BITS_PER_LONG)
			bits = READ_ONCE(tree->level[level][word]) &
			       (~0UL << bit);
		if (!bits) {
			/* Nothing in the rest of this word: the next, above. */
			level++;
			if (level < tree->nr_levels &&
			    word < tree->nr_words[level - 1] &&
			    !READ_ONCE(tree->level[level - 1][word]))
				bittree_prune(tree, level, word);
			/* Behind the last bit nothing is left of that word. */
			bit = word % BITS_PER_LONG + 1;
			word /= BITS_PER_LONG;
			continue;
		}
		bit = __ffs(bits);
		at = word * BITS_PER_LONG + bit;
		if (!level)
			return at;
		/* Down into the word that the summary bit stands for. */
		if (!READ_ONCE(tree->level[level - 1][at])) {
			bittree_prune(tree, level, at);
			continue;
		}
		level--;
		word = at;
		bit = 0;
	}
	return BITTREE_NONE;
}

static inline void bittree_clear_all(struct bittree *tree)
{
	u64 bit = 0;

	while ((bit = bittree_next(tree, bit)) != BITTREE_NONE)
		bittree_clear(tree, bit);
}

/**
 * bittree_empty() - whether no bit is set
 * @tree: any
 *
 * Says false until a search from 0 to the end has come by after the last bit was
 * cleared. Context: any.
 */
static inline bool bittree_empty(const struct bittree *tree)
{
	return !READ_ONCE(tree->level[tree->nr_levels - 1][0]);
}

#endif
