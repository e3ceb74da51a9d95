/*
 * The page codec of Cairn's index, for C.
 *
 * Whole pages in, numbers out: CAIRN_OK or more when it went well, a negative code when not. Nothing here longjmps, panics
 * or keeps a pointer, except that an open leaf reads the page that it was opened on until it is opened again or freed.
 */
#ifndef CAIRN_INDEX_H
#define CAIRN_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define CAIRN_OK 0
#define CAIRN_DAMAGED (-1)   /* the page is not what a packer writes; cairn_leaf_error says where */
#define CAIRN_TOO_LARGE (-2) /* one row does not fit a page; cairn_packer_needed says what it takes */
#define CAIRN_INVALID (-3)   /* arguments that contradict each other */
#define CAIRN_FAULT (-4)     /* a fault of the library, contained: free the handle */

#define CAIRN_MAX_ROWS 65535
#define CAIRN_MAX_COLUMNS 64

typedef struct CairnLeaf CairnLeaf;
typedef struct CairnPacker CairnPacker;

/* A value of a row: `integer`, or `integer` bytes at `bytes`. */
typedef struct CairnValue
{
	const uint8_t *bytes;
	uint64_t	integer;
	int			is_null;
} CairnValue;

typedef struct CairnColumnStats
{
	const char *encoding;		/* not terminated by a zero */
	size_t		encoding_len;
	size_t		bytes;
	size_t		runs;
	size_t		strings;
	int			has_nulls;
} CairnColumnStats;

extern CairnLeaf *cairn_leaf_new(void);
extern void cairn_leaf_free(CairnLeaf *leaf);
extern int	cairn_leaf_open(CairnLeaf *leaf, const uint8_t *page, size_t bytes);
extern uint32_t cairn_leaf_rows(const CairnLeaf *leaf);
extern uint32_t cairn_leaf_columns(const CairnLeaf *leaf);
extern size_t cairn_leaf_error(const CairnLeaf *leaf, uint32_t *offset, const char **what);

/* Ranges of rows. A tid is three times 16 bits: block high, block low, offset. */
extern int	cairn_leaf_tids(CairnLeaf *leaf, uint32_t start, uint32_t count, void *out);
extern int	cairn_leaf_blocks(CairnLeaf *leaf, uint32_t from, uint32_t to, uint64_t out[2]);
extern int	cairn_leaf_integers(CairnLeaf *leaf, uint32_t column, uint32_t start, uint32_t count, uint64_t *out);
extern int	cairn_leaf_nulls(CairnLeaf *leaf, uint32_t column, uint32_t start, uint32_t count, uint64_t *out);
extern int	cairn_leaf_has_nulls(CairnLeaf *leaf, uint32_t column);

/* One row: 1 if it is NULL, 0 if not. A string holds until the next call with this leaf. */
extern int	cairn_leaf_cell(CairnLeaf *leaf, uint32_t column, uint32_t row, uint64_t *out);
extern int	cairn_leaf_string(CairnLeaf *leaf, uint32_t column, uint64_t code, const uint8_t **out, size_t *len);

/* Search, filters and sums on encoded values. Bit 0 of a mask is row `from`; masks come in whole words. A filter by values says 0 where it is plain that no
 * bit is left, 1 if not. */
extern int	cairn_leaf_count_before(CairnLeaf *leaf, uint32_t column, uint32_t from, uint32_t to, int64_t value,
									int or_equal, int descends, uint32_t *out);
extern int	cairn_leaf_filter(CairnLeaf *leaf, uint32_t column, uint32_t from, uint32_t to, int64_t least, int64_t most,
							  uint64_t *mask);
extern int	cairn_leaf_filter_nulls(CairnLeaf *leaf, uint32_t column, uint32_t from, uint32_t to, int keep_values,
									uint64_t *mask);
extern int	cairn_leaf_sum(CairnLeaf *leaf, uint32_t column, uint32_t from, uint32_t to, const uint64_t *mask,
						   uint64_t out[2]);
extern int	cairn_leaf_extremes(CairnLeaf *leaf, uint32_t column, uint32_t from, uint32_t to, const uint64_t *mask,
								int64_t out[2]);

extern int	cairn_leaf_stats(CairnLeaf *leaf, int32_t column, CairnColumnStats *out);
extern int	cairn_leaf_verify(CairnLeaf *leaf);

/* Kinds: 0 integers, 1 byte strings. A row id is block << 16 | offset. */
extern CairnPacker *cairn_packer_new(const uint8_t *kinds, size_t columns, size_t capacity, size_t max_rows);
extern void cairn_packer_free(CairnPacker *packer);
extern int	cairn_packer_push(CairnPacker *packer, uint64_t id, const CairnValue *values);
extern int	cairn_packer_cut(CairnPacker *packer, int last, const uint8_t **page, size_t *bytes);
extern int	cairn_packer_empty(CairnPacker *packer, const uint8_t **page, size_t *bytes);
extern size_t cairn_packer_needed(const CairnPacker *packer);

#endif							/* CAIRN_INDEX_H */
