/*
 * Visibility of a leaf's rows by the visibility map.
 *
 * The map may be believed about a row id if VACUUM cannot have taken the row out of the index, and its place in the heap been used again, since
 * the leaf was read. Where the leaf is pinned, VACUUM waits. A standby's replay waits for no pins, so there the map is asked first, and then
 * the meta page whether VACUUM has begun to remove rows, or a merge made another tree, since before the leaf was read. Replay goes in the order of the
 * log, in which VACUUM steps the sequence of the meta page before it removes a row, and sets bits of the map after. Snapshots that must not
 * believe a bit are cancelled by replay itself, as they are for btrees.
 */
#include "visible.h"

#include "access/visibilitymap.h"

/* The visibility map, as visibilitymap.c lays it out: two bits a block, the lower one says that all rows are visible to all. */
#define MAP_BYTES (BLCKSZ - MAXALIGN(SizeOfPageHeaderData))
#define BLOCKS_PER_BYTE 4
#define BLOCKS_PER_MAP_PAGE (MAP_BYTES * BLOCKS_PER_BYTE)
#define ALL_VISIBLE_BITS 0x55
#define ALL_VISIBLE_WORD UINT64CONST(0x5555555555555555)

/* Whether what the map has just said holds for rows of the walk's leaf. */
static bool
leaf_is_current(CairnWalk *walk)
{
	CairnMetaData meta;

	if (!walk->copies)
		return true;
	/* ORDER: the map has been read, then the meta page is. */
	meta = cairn_read_meta(walk->index->rel);
	return meta.vacuum_seq == walk->vacuum_seq && meta.vacuum_seq % 2 == 0 && meta.generation == walk->generation;
}

/* Whether a bit is missing in bytes `from..to` of the map: eight at a time, for the compiler makes no vectors of such a loop at -O2. */
static uint8
bits_missing(const uint8 *bytes, uint32 from, uint32 to)
{
	uint64		words = 0;
	uint8		rest = 0;

	for (; from + sizeof(uint64) <= to; from += sizeof(uint64))
	{
		uint64		word;

		memcpy(&word, bytes + from, sizeof(word));
		words |= ~word & ALL_VISIBLE_WORD;
	}
	for (; from < to; from++)
		rest |= ALL_VISIBLE_BITS & ~bytes[from];
	return words != 0 ? ALL_VISIBLE_BITS : rest;
}

/* Whether the map says of all blocks `first..=last` that their rows are visible to all. */
static bool
blocks_visible(Relation heap, BlockNumber first, BlockNumber last, Buffer *map)
{
	StaticAssertStmt(BITS_PER_HEAPBLOCK == 2, "two bits a block");
	for (;;)
	{
		uint32		from = first % BLOCKS_PER_MAP_PAGE;
		uint32		to = Min(from + (last - first), BLOCKS_PER_MAP_PAGE - 1);
		const uint8 *bytes;
		uint32		at = from / BLOCKS_PER_BYTE;
		uint32		end = to / BLOCKS_PER_BYTE;
		uint8		head = ALL_VISIBLE_BITS & (0xff << 2 * (from % BLOCKS_PER_BYTE));
		uint8		tail = ALL_VISIBLE_BITS & (0xff >> 2 * (BLOCKS_PER_BYTE - 1 - to % BLOCKS_PER_BYTE));
		uint8		missing = 0;

		/* Finds the page of the map and pins it. */
		if (!VM_ALL_VISIBLE(heap, first, map))
			return false;
		bytes = (const uint8 *) PageGetContents(BufferGetPage(*map));
		if (at == end)
			missing = (head & tail) & ~bytes[at];
		else
		{
			missing = head & ~bytes[at];
			missing |= bits_missing(bytes, at + 1, end);
			missing |= tail & ~bytes[end];
		}
		if (missing != 0)
			return false;
		if (last - first <= to - from)
			return true;
		first += to - from + 1;
	}
}

/*
 * Whether all rows `from..to` of the walk's leaf are visible to all. False as well where the look would take longer than asking row by row: in a
 * large table whose rows are in another order than the index's.
 */
bool
cairn_leaf_visible(CairnWalk *walk, uint32 from, uint32 to, Relation heap, Buffer *map)
{
	uint64_t	blocks[2];
	int			code;

	if (from >= to)
		return true;
	code = cairn_leaf_blocks(walk->leaf, from, to, blocks);
	if (code < 0)
		cairn_codec_failed(walk->index->rel, BufferGetBlockNumber(walk->leaf_buffer), walk->leaf, code);
	if (blocks[1] > MaxBlockNumber || blocks[0] > blocks[1] || blocks[1] - blocks[0] > 1024 + 64 * (uint64) (to - from))
		return false;
	return blocks_visible(heap, (BlockNumber) blocks[0], (BlockNumber) blocks[1], map) && leaf_is_current(walk);
}

/* Sets the bits of those of a leaf's rows which the map vouches for and clears the others'. */
void
cairn_rows_visible(CairnWalk *walk, const ItemPointerData *tids, int count, Relation heap, Buffer *map, uint64 *mask)
{
	memset(mask, 0, CAIRN_MASK_WORDS(count) * sizeof(uint64));
	for (int row = 0; row < count; row++)
		if (VM_ALL_VISIBLE(heap, ItemPointerGetBlockNumber(&tids[row]), map))
			mask[row / 64] |= UINT64CONST(1) << (row % 64);
	if (!leaf_is_current(walk))
		memset(mask, 0, CAIRN_MASK_WORDS(count) * sizeof(uint64));
}
