/*
 * The tail: rows that came after the last merge, as index tuples in the order of their coming. Scans read all of it. VACUUM, cairn_merge(), and the insert
 * that makes it longer than its limit move it into the compressed pages.
 */
#include "cairn.h"

#include "access/genam.h"
#include "catalog/index.h"
#include "miscadmin.h"

/* Adds to the last tail page if it has room. The meta page is locked, so that the tail does not freeze meanwhile. */
static bool
add_to_last(Relation rel, BlockNumber last, IndexTuple tuple, Size size)
{
	Buffer		buffer = cairn_read(rel, last, BUFFER_LOCK_EXCLUSIVE);
	Page		page = BufferGetPage(buffer);
	bool		fits = PageGetFreeSpace(page) >= size;

	if (CairnOpaque(page)->kind != CAIRN_TAIL)
		cairn_page_damaged(rel, last, "the page is not a tail page");
	if (fits)
	{
		GenericXLogState *log = GenericXLogStart(rel);

		page = GenericXLogRegisterBuffer(log, buffer, 0);
		if (PageAddItem(page, (Item) tuple, size, InvalidOffsetNumber, false, false) == InvalidOffsetNumber)
			elog(ERROR, "no room for a row in block %u of index \"%s\"", last, RelationGetRelationName(rel));
		GenericXLogFinish(log);
	}
	UnlockReleaseBuffer(buffer);
	return fits;
}

/* Hangs a page with the tuple behind the tail. The meta page is locked exclusively. */
static void
add_page(Relation rel, Buffer meta_buffer, IndexTuple tuple, Size size)
{
	BlockNumber last = cairn_meta(rel, BufferGetPage(meta_buffer))->tail_last;
	Buffer		last_buffer = InvalidBuffer;
	Buffer		buffer = cairn_allocate(rel);
	GenericXLogState *log;
	CairnMetaData *meta;
	Page		page;

	if (BlockNumberIsValid(last))
		last_buffer = cairn_read(rel, last, BUFFER_LOCK_EXCLUSIVE);
	log = GenericXLogStart(rel);
	meta = cairn_meta(rel, GenericXLogRegisterBuffer(log, meta_buffer, 0));
	page = GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE);
	cairn_page_init(page, CAIRN_TAIL, meta->generation);
	if (PageAddItem(page, (Item) tuple, size, InvalidOffsetNumber, false, false) == InvalidOffsetNumber)
		elog(ERROR, "no room for a row in an empty page of index \"%s\"", RelationGetRelationName(rel));
	if (BufferIsValid(last_buffer))
		CairnOpaque(GenericXLogRegisterBuffer(log, last_buffer, 0))->next = BufferGetBlockNumber(buffer);
	else
		meta->tail_head = BufferGetBlockNumber(buffer);
	meta->tail_last = BufferGetBlockNumber(buffer);
	meta->tail_pages++;
	cairn_tail_seen(rel, meta->tail_pages);
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);
	if (BufferIsValid(last_buffer))
		UnlockReleaseBuffer(last_buffer);
}

/* Hangs the tuple behind the tail. The meta page is locked, exclusively or not, and stays so. Whether the tail has a page more now. */
bool
cairn_append(Relation rel, Buffer meta_buffer, IndexTuple tuple, bool exclusive)
{
	Size		size = IndexTupleSize(tuple);
	BlockNumber last = cairn_meta(rel, BufferGetPage(meta_buffer))->tail_last;

	while (!BlockNumberIsValid(last) || !add_to_last(rel, last, tuple, size))
	{
		BlockNumber now;

		if (!exclusive)
		{
			LockBuffer(meta_buffer, BUFFER_LOCK_UNLOCK);
			LockBuffer(meta_buffer, BUFFER_LOCK_EXCLUSIVE);
			exclusive = true;
		}
		now = cairn_meta(rel, BufferGetPage(meta_buffer))->tail_last;
		if (now == last)
		{
			add_page(rel, meta_buffer, tuple, size);
			return true;
		}
		/* Somebody else was faster. The lock is stronger than needed from here on, which harms nobody. */
		last = now;
	}
	return false;
}

/* The row as the tail holds it. */
static IndexTuple
form_tuple(Relation rel, Datum *values, bool *nulls, ItemPointer tid)
{
	TupleDesc	desc = RelationGetDescr(rel);
	Datum		plain[INDEX_MAX_KEYS];
	IndexTuple	tuple;
	Size		size = 0;

	/* What the writer of leaves is going to say at the next merge has to be said now. A value that it packs is packed here too: the tail has no more room. */
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		plain[i] = values[i];
		if (nulls[i])
			continue;
		if (attribute->attlen == -1)
		{
			struct varlena *unpacked = PG_DETOAST_DATUM_PACKED(values[i]);
			struct varlena *packed = cairn_pack(unpacked, desc->natts);

			if (packed != NULL && (Pointer) unpacked != DatumGetPointer(values[i]))
				pfree(unpacked);
			plain[i] = PointerGetDatum(packed != NULL ? packed : unpacked);
			size += cairn_stored_bytes((struct varlena *) DatumGetPointer(plain[i]));
		}
		else
			size += attribute->attbyval ? 8 : attribute->attlen;
	}
	if (size > CAIRN_MAX_ROW_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index row size %zu exceeds maximum %d for index \"%s\"",
						size, (int) CAIRN_MAX_ROW_BYTES, RelationGetRelationName(rel))));
	tuple = index_form_tuple(desc, plain, nulls);
	tuple->t_tid = *tid;
	/* An INSERT of many rows would keep the copies of all of them. */
	for (int i = 0; i < desc->natts; i++)
		if (!nulls[i] && plain[i] != values[i])
			pfree(DatumGetPointer(plain[i]));
	return tuple;
}

bool
cairn_insert(Relation rel, Datum *values, bool *nulls, ItemPointer tid, Relation heap, IndexUniqueCheck check,
			 bool unchanged, IndexInfo *info)
{
	IndexTuple	tuple = form_tuple(rel, values, nulls, tid);
	Buffer		meta_buffer;
	bool		is_unique = false;
	bool		grew = false;

	if (check != UNIQUE_CHECK_NO)
		is_unique = cairn_insert_unique(rel, heap, tuple, values, nulls, check, info, &grew);
	else
	{
		meta_buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);
		grew = cairn_append(rel, meta_buffer, tuple, false);
		UnlockReleaseBuffer(meta_buffer);
	}
	pfree(tuple);
	if (grew)
		cairn_bound_tail(rel, heap);
	return is_unique;
}

/*
 * Shows the tuples of a tail to `visitor`, page by page under a share lock. `from`: those behind this place, which is moved to the last tuple shown; null
 * for all of them. If VACUUM has moved tuples of the place's page since, all of that page are shown again.
 */
void
cairn_visit_tail_from(Relation rel, BlockNumber head, CairnTailPlace *from, CairnTailVisitor visitor, void *state)
{
	BlockNumber steps = 0;
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);
	OffsetNumber at = FirstOffsetNumber;

	if (from != NULL && BlockNumberIsValid(from->block))
	{
		head = from->block;
		at = OffsetNumberNext(from->offset);
	}
	while (BlockNumberIsValid(head))
	{
		Buffer		buffer = cairn_read(rel, head, BUFFER_LOCK_SHARE);
		Page		page = BufferGetPage(buffer);
		OffsetNumber count = PageGetMaxOffsetNumber(page);
		BlockNumber next = CairnOpaque(page)->next;

		CHECK_FOR_INTERRUPTS();
		if (CairnOpaque(page)->kind != CAIRN_TAIL)
			cairn_page_damaged(rel, head, "the page is not a tail page");
		/* A chain longer than the file goes in a circle. It may have grown since the file was measured. */
		if (++steps > blocks)
		{
			blocks = RelationGetNumberOfBlocks(rel);
			if (steps > blocks)
				cairn_page_damaged(rel, head, "the tail goes in a circle");
		}
		/* A tuple that goes moves all behind it, so whether one has gone shows at the place itself. */
		if (at > FirstOffsetNumber &&
			(at - 1 > count || !ItemPointerEquals(&cairn_tail_row(rel, head, page, at - 1)->t_tid, &from->tid)))
			at = FirstOffsetNumber;
		for (; at <= count; at++)
			visitor(cairn_tail_row(rel, head, page, at), state);
		if (from != NULL)
		{
			*from = (CairnTailPlace) {.block = head, .offset = count};
			if (count > 0)
				from->tid = cairn_tail_row(rel, head, page, count)->t_tid;
		}
		UnlockReleaseBuffer(buffer);
		at = FirstOffsetNumber;
		head = next;
	}
}

void
cairn_visit_tail(Relation rel, BlockNumber head, CairnTailVisitor visitor, void *state)
{
	cairn_visit_tail_from(rel, head, NULL, visitor, state);
}
