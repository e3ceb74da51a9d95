/*
 * Pages that nobody names: a crash, or an error, in the middle of a merge or of a VACUUM leaves what it had written. The next VACUUM that has
 * work to do finds them and makes them free.
 *
 * All pages are known that the tree, the tails and the list of retired pages lead to. Trees and lists change only under the lock of the table,
 * which VACUUM has; an insert hangs a page behind the tail with the meta page locked from before it takes the page until after.
 */
#include "cairn.h"

#include "commands/vacuum.h"
#include "miscadmin.h"
#include "storage/indexfsm.h"

typedef struct SweepState
{
	Relation	rel;
	BlockNumber blocks;
	bool	   *known;
} SweepState;

static void
mark(SweepState *state, BlockNumber block)
{
	if (block < state->blocks)
		state->known[block] = true;
}

static void
mark_tree(SweepState *state, BlockNumber block, int depth)
{
	Buffer		buffer;
	Page		page;
	CairnPageKind kind;
	OffsetNumber count;
	BlockNumber *children;

	/* BOUND: as deep as any walk goes. */
	if (depth > CAIRN_MAX_DEPTH)
		cairn_page_damaged(state->rel, block, "the tree is deeper than any that is built");
	CHECK_FOR_INTERRUPTS();
	buffer = cairn_read(state->rel, block, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	kind = CairnOpaque(page)->kind;
	count = kind == CAIRN_INNER || kind == CAIRN_SPLIT ? PageGetMaxOffsetNumber(page) : 0;
	children = palloc(Max(count, 1) * sizeof(BlockNumber));
	for (OffsetNumber at = 1; at <= count; at++)
		children[at - 1] = ItemPointerGetBlockNumberNoCheck(&cairn_item(state->rel, block, page, at)->t_tid);
	UnlockReleaseBuffer(buffer);
	mark(state, block);
	for (int at = 0; at < count; at++)
		mark_tree(state, children[at], depth + 1);
	pfree(children);
}

/* A chain of pages, and the pages that each of them lists if it is one of retired pages. */
static void
mark_chain(SweepState *state, BlockNumber head, bool lists)
{
	/* A chain that goes in a circle ends where it comes back. */
	while (BlockNumberIsValid(head) && !(head < state->blocks && state->known[head]))
	{
		Buffer		buffer = cairn_read(state->rel, head, BUFFER_LOCK_SHARE);
		Page		page = BufferGetPage(buffer);

		CHECK_FOR_INTERRUPTS();
		mark(state, head);
		if (lists)
		{
			BlockNumber *listed = (BlockNumber *) PageGetContents(page);
			int			count = (((PageHeader) page)->pd_lower - (PageGetContents(page) - (char *) page)) / sizeof(BlockNumber);

			for (int i = 0; i < count; i++)
				mark(state, listed[i]);
		}
		head = CairnOpaque(page)->next;
		UnlockReleaseBuffer(buffer);
	}
}

/* Makes a page free if it is one that a crash left, with inserts held off. */
static bool
free_leaked(SweepState *state, BlockNumber block)
{
	Buffer		meta_buffer = cairn_read(state->rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);
	uint32		generation = cairn_meta(state->rel, BufferGetPage(meta_buffer))->generation;
	Buffer		buffer = ReadBuffer(state->rel, block);
	Page		page;
	bool		leaked;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	page = BufferGetPage(buffer);
	leaked = PageIsNew(page);
	if (!leaked)
	{
		cairn_check_page(state->rel, block, page);
		leaked = CairnOpaque(page)->kind != CAIRN_TAIL && CairnOpaque(page)->kind != CAIRN_FREE;
	}
	if (leaked)
	{
		GenericXLogState *log = GenericXLogStart(state->rel);

		cairn_page_init(GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE), CAIRN_FREE, generation);
		GenericXLogFinish(log);
	}
	UnlockReleaseBuffer(buffer);
	UnlockReleaseBuffer(meta_buffer);
	if (leaked)
		RecordFreeIndexPage(state->rel, block);
	return leaked;
}

/* Frees all such pages and says how many there were. The caller has the table locked against VACUUM and merges. */
BlockNumber
cairn_sweep(CairnIndex *index)
{
	SweepState	state = {.rel = index->rel, .blocks = RelationGetNumberOfBlocks(index->rel)};
	CairnMetaData meta = cairn_read_meta(index->rel);
	BlockNumber freed = 0;

	state.known = MemoryContextAllocExtended(CurrentMemoryContext, Max(state.blocks, 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	mark(&state, CAIRN_META_BLOCK);
	if (BlockNumberIsValid(meta.root))
		mark_tree(&state, meta.root, 0);
	mark_chain(&state, meta.frozen_head, false);
	mark_chain(&state, meta.tail_head, false);
	mark_chain(&state, meta.retired_head, true);
	for (BlockNumber block = 0; block < state.blocks; block++)
	{
		Buffer		buffer;
		Page		page;
		bool		is_free;
		bool		suspect;

		if (state.known[block])
			continue;
		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(index->rel, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		is_free = !PageIsNew(page) && CairnOpaque(page)->kind == CAIRN_FREE;
		suspect = PageIsNew(page) || (!is_free && CairnOpaque(page)->kind != CAIRN_TAIL);
		UnlockReleaseBuffer(buffer);
		/* The map of free pages is not logged: after a crash, or on a standby that was promoted, it knows little. Who takes a page from it looks. */
		if (is_free)
			RecordFreeIndexPage(index->rel, block);
		else if (suspect && free_leaked(&state, block))
			freed++;
	}
	pfree(state.known);
	return freed;
}
