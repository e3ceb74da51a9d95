/* Pages: how each kind begins, how they are checked, found and written. */
#include "cairn.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/freespace.h"
#include "storage/indexfsm.h"
#include "storage/lmgr.h"

void
cairn_page_init(Page page, CairnPageKind kind, uint32 generation)
{
	CairnPageOpaque opaque;

	PageInit(page, BLCKSZ, sizeof(CairnPageOpaqueData));
	opaque = CairnOpaque(page);
	opaque->next = InvalidBlockNumber;
	opaque->generation = generation;
	opaque->kind = kind;
	opaque->page_id = CAIRN_PAGE_ID;
}

void
cairn_page_damaged(Relation rel, BlockNumber block, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is damaged at block %u: %s", RelationGetRelationName(rel), block, what),
			 errhint("Please REINDEX it.")));
	pg_unreachable();
}

/* A page that PostgreSQL could read may still be zero, foreign or cut: nothing in it is believed before this. */
void
cairn_check_page(Relation rel, BlockNumber block, Page page)
{
	PageHeader	header = (PageHeader) page;

	if (PageIsNew(page))
		cairn_page_damaged(rel, block, "the page is empty where one with content is expected");
	if (PageGetSpecialSize(page) != MAXALIGN(sizeof(CairnPageOpaqueData)) ||
		CairnOpaque(page)->page_id != CAIRN_PAGE_ID)
		cairn_page_damaged(rel, block, "the page is not one of this access method");
	if (header->pd_lower < SizeOfPageHeaderData || header->pd_lower > header->pd_upper ||
		header->pd_upper > header->pd_special)
		cairn_page_damaged(rel, block, "the page's content exceeds the page");
}

/* A tuple of an inner or a tail page, which lies within the page as it says. */
IndexTuple
cairn_item(Relation rel, BlockNumber block, Page page, OffsetNumber at)
{
	ItemId		id = PageGetItemId(page, at);
	Size		offset = ItemIdGetOffset(id);
	IndexTuple	tuple = (IndexTuple) ((char *) page + offset);

	if (!ItemIdIsNormal(id) || offset < ((PageHeader) page)->pd_upper || offset != MAXALIGN(offset) ||
		ItemIdGetLength(id) < sizeof(IndexTupleData) || offset + ItemIdGetLength(id) > ((PageHeader) page)->pd_special ||
		IndexTupleSize(tuple) > ItemIdGetLength(id))
		cairn_page_damaged(rel, block, "a tuple exceeds the page");
	return tuple;
}

/* A row of a tail page, which names a place that a table can have: what takes row ids believes them, and a merge would spread a wrong one. */
IndexTuple
cairn_tail_row(Relation rel, BlockNumber block, Page page, OffsetNumber at)
{
	IndexTuple	tuple = cairn_item(rel, block, page, at);

	if (!cairn_is_row_id(&tuple->t_tid))
		cairn_page_damaged(rel, block, "a row is at a place that no page of a table has");
	return tuple;
}

Buffer
cairn_read(Relation rel, BlockNumber block, int lock)
{
	Buffer		buffer = ReadBuffer(rel, block);

	LockBuffer(buffer, lock);
	cairn_check_page(rel, block, BufferGetPage(buffer));
	return buffer;
}

/* A page to write, locked. What the map of free pages says is checked: it is not logged, and may be old. */
Buffer
cairn_allocate(Relation rel)
{
	Buffer		buffer;
	bool		extend_lock;

	for (;;)
	{
		BlockNumber block = GetFreeIndexPage(rel);

		if (!BlockNumberIsValid(block))
			break;
		buffer = ReadBuffer(rel, block);
		if (ConditionalLockBuffer(buffer))
		{
			Page		page = BufferGetPage(buffer);

			if (!PageIsNew(page) &&
				PageGetSpecialSize(page) == MAXALIGN(sizeof(CairnPageOpaqueData)) &&
				CairnOpaque(page)->page_id == CAIRN_PAGE_ID && CairnOpaque(page)->kind == CAIRN_FREE)
				return buffer;
			LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
		}
		ReleaseBuffer(buffer);
	}
	extend_lock = !RELATION_IS_LOCAL(rel);
	if (extend_lock)
		LockRelationForExtension(rel, ExclusiveLock);
	buffer = ReadBuffer(rel, P_NEW);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	if (extend_lock)
		UnlockRelationForExtension(rel, ExclusiveLock);
	return buffer;
}

void
cairn_write_leaf(Page page, uint32 generation, const uint8_t *bytes, size_t count)
{
	cairn_page_init(page, CAIRN_LEAF, generation);
	memcpy(PageGetContents(page), bytes, count);
	((PageHeader) page)->pd_lower = (PageGetContents(page) - (char *) page) + count;
}

void
cairn_meta_init(Page page)
{
	CairnMetaData *meta;

	cairn_page_init(page, CAIRN_META, 0);
	meta = (CairnMetaData *) PageGetContents(page);
	memset(meta, 0, sizeof(CairnMetaData));
	meta->magic = CAIRN_MAGIC;
	meta->version = CAIRN_VERSION;
	meta->generation = 1;
	meta->root = InvalidBlockNumber;
	meta->frozen_head = InvalidBlockNumber;
	meta->tail_head = InvalidBlockNumber;
	meta->tail_last = InvalidBlockNumber;
	meta->retired_head = InvalidBlockNumber;
	meta->retired_root = InvalidBlockNumber;
	((PageHeader) page)->pd_lower = (PageGetContents(page) - (char *) page) + sizeof(CairnMetaData);
}

CairnMetaData *
cairn_meta(Relation rel, Page page)
{
	CairnMetaData *meta = (CairnMetaData *) PageGetContents(page);

	if (CairnOpaque(page)->kind != CAIRN_META || meta->magic != CAIRN_MAGIC)
		cairn_page_damaged(rel, CAIRN_META_BLOCK, "the first page is not a meta page");
	if (meta->version != CAIRN_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" has version %u where %d is supported",
						RelationGetRelationName(rel), meta->version, CAIRN_VERSION),
				 errhint("Please REINDEX it, or install the version of cairn that wrote it.")));
	return meta;
}

CairnMetaData
cairn_read_meta(Relation rel)
{
	Buffer		buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);
	CairnMetaData meta = *cairn_meta(rel, BufferGetPage(buffer));

	UnlockReleaseBuffer(buffer);
	return meta;
}

/*
 * How long the tail is, for estimates, of an index of so many blocks. What a session remembers of an index, in rd_amcache, is the number of blocks at
 * which it last saw no tail: a tail that came since has made the index longer, or lies in pages that were free, which the next scan finds out.
 */
uint32
cairn_tail_pages(Relation rel, BlockNumber blocks)
{
	BlockNumber *known = rel->rd_amcache;
	uint32		pages;

	if (known != NULL && *known == blocks)
		return 0;
	pages = cairn_read_meta(rel).tail_pages;
	if (known == NULL)
		rel->rd_amcache = known = MemoryContextAlloc(rel->rd_indexcxt, sizeof(BlockNumber));
	*known = pages == 0 ? blocks : InvalidBlockNumber;
	return pages;
}

/* Somebody has read or written the meta page, and the tail has so many pages. */
void
cairn_tail_seen(Relation rel, uint32 pages)
{
	if (pages > 0 && rel->rd_amcache != NULL)
		*(BlockNumber *) rel->rd_amcache = InvalidBlockNumber;
}
