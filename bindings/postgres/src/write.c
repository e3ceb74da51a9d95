/*
 * Rows in order into leaves, and leaves under inner pages. Nothing that is written here is reachable before the meta page says
 * so; a crash leaves pages that nobody knows, not a broken tree.
 */
#include "cairn.h"

#include "miscadmin.h"
#include "nodes/pg_list.h"

static void
free_packer(void *writer)
{
	cairn_packer_free(((CairnWriter *) writer)->packer);
	((CairnWriter *) writer)->packer = NULL;
}

CairnWriter *
cairn_writer_begin(CairnIndex *index, uint32 generation)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "cairn writer", ALLOCSET_DEFAULT_SIZES);
	CairnWriter *writer = MemoryContextAllocZero(context, sizeof(CairnWriter));
	CairnOptions *options = (CairnOptions *) index->rel->rd_options;
	uint8_t		kinds[INDEX_MAX_KEYS];

	for (int i = 0; i < index->columns; i++)
		kinds[i] = index->column[i].byval ? 0 : 1;
	writer->index = index;
	writer->generation = generation;
	writer->context = context;
	writer->scratch = AllocSetContextCreate(context, "cairn row", ALLOCSET_DEFAULT_SIZES);
	writer->packer = cairn_packer_new(kinds, index->columns, CAIRN_LEAF_CAPACITY,
									  options ? options->page_rows : CAIRN_MAX_ROWS);
	if (writer->packer == NULL)
		elog(ERROR, "no packer for %d columns", index->columns);
	writer->callback.func = free_packer;
	writer->callback.arg = writer;
	MemoryContextRegisterResetCallback(context, &writer->callback);
	writer->leaf = cairn_new_leaf(context);
	writer->child_room = 64;
	writer->children = MemoryContextAlloc(context, writer->child_room * sizeof(CairnChild));
	return writer;
}

void
cairn_writer_free(CairnWriter *writer)
{
	MemoryContextDelete(writer->context);
}

/* Appends a child that is there already, or has just been written. */
void
cairn_writer_keep(CairnWriter *writer, BlockNumber block, IndexTuple first)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);

	if (writer->child_count == writer->child_room)
	{
		writer->child_room *= 2;
		writer->children = repalloc_huge(writer->children, writer->child_room * sizeof(CairnChild));
	}
	writer->children[writer->child_count].block = block;
	writer->children[writer->child_count].first = CopyIndexTuple(first);
	writer->child_count++;
	MemoryContextSwitchTo(old);
}

/* The key of a page's first row. */
static IndexTuple
first_key(CairnWriter *writer, BlockNumber block, const uint8_t *page, size_t bytes)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	int			code = cairn_leaf_open(writer->leaf, page, bytes);

	if (code < 0)
		cairn_codec_failed(writer->index->rel, block, writer->leaf, code);
	for (int i = 0; i < writer->index->keys; i++)
	{
		uint64_t	integer;

		/* A row just written: what cannot be read is a fault of the codec, not of a disk. */
		code = cairn_leaf_cell(writer->leaf, i, 0, &integer);
		if (code < 0)
			cairn_codec_failed(writer->index->rel, block, writer->leaf, code);
		nulls[i] = code == 1;
		values[i] = (Datum) 0;
		if (!nulls[i] && writer->index->column[i].byval)
			values[i] = cairn_from_integer(&writer->index->column[i], integer);
		else if (!nulls[i])
		{
			const uint8_t *string;
			size_t		count;

			code = cairn_leaf_string(writer->leaf, i, integer, &string, &count);
			if (code < 0)
				cairn_codec_failed(writer->index->rel, block, writer->leaf, code);
			values[i] = cairn_from_string(&writer->index->column[i], string, count);
		}
	}
	return index_form_tuple(writer->index->key_desc, values, nulls);
}

/* Writes a page of rows and remembers it as a child. */
void
cairn_writer_put(CairnWriter *writer, const uint8_t *bytes, size_t count)
{
	Buffer		buffer = cairn_allocate(writer->index->rel);
	BlockNumber block = BufferGetBlockNumber(buffer);
	GenericXLogState *log = GenericXLogStart(writer->index->rel);
	MemoryContext old;

	cairn_write_leaf(GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE), writer->generation, bytes, count);
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);
	old = MemoryContextSwitchTo(writer->scratch);
	cairn_writer_keep(writer, block, first_key(writer, block, bytes, count));
	MemoryContextSwitchTo(old);
	MemoryContextReset(writer->scratch);
}

/* Writes the pages that the packer can fill; all that is left if no more rows come. */
static void
cut_pages(CairnWriter *writer, bool last)
{
	for (;;)
	{
		const uint8_t *bytes;
		size_t		count;
		int			rows = cairn_packer_cut(writer->packer, last, &bytes, &count);

		if (rows == CAIRN_TOO_LARGE)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("a row of index \"%s\" takes %zu bytes where a page has %d",
							RelationGetRelationName(writer->index->rel), cairn_packer_needed(writer->packer),
							(int) CAIRN_LEAF_CAPACITY)));
		if (rows < 0)
			cairn_codec_failed(writer->index->rel, InvalidBlockNumber, writer->leaf, rows);
		if (rows == 0)
			return;
		CHECK_FOR_INTERRUPTS();
		if (!writer->collects)
			cairn_writer_put(writer, bytes, count);
		else
		{
			MemoryContext old = MemoryContextSwitchTo(writer->context);
			CairnImage *image = palloc(sizeof(CairnImage));

			image->bytes = palloc(count);
			image->count = count;
			memcpy(image->bytes, bytes, count);
			writer->images = lappend(writer->images, image);
			MemoryContextSwitchTo(old);
		}
	}
}

void
cairn_writer_add(CairnWriter *writer, ItemPointer tid, Datum *values, bool *nulls)
{
	CairnIndex *index = writer->index;
	CairnValue	row[INDEX_MAX_KEYS] = {{0}};
	size_t		bytes = 0;
	bool		by_reference = false;
	uint64		id = ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) | ItemPointerGetOffsetNumberNoCheck(tid);
	int			code;
	MemoryContext old = MemoryContextSwitchTo(writer->scratch);

	for (int i = 0; i < index->columns; i++)
	{
		CairnColumn *column = &index->column[i];

		row[i].is_null = nulls[i];
		row[i].bytes = NULL;
		row[i].integer = 0;
		if (nulls[i])
			continue;
		if (column->byval)
			row[i].integer = cairn_to_integer(column, values[i]);
		else if (column->len > 0)
		{
			row[i].bytes = (uint8_t *) DatumGetPointer(values[i]);
			row[i].integer = column->len;
		}
		else
		{
			struct varlena *plain = PG_DETOAST_DATUM_PACKED(values[i]);
			struct varlena *packed = cairn_pack(plain, index->columns);
			const uint8_t *string;
			size_t		count;

			cairn_to_string(packed != NULL ? packed : plain, &string, &count);
			by_reference |= string != (const uint8_t *) VARDATA_ANY(DatumGetPointer(values[i]));
			row[i].bytes = (uint8_t *) string;
			row[i].integer = count;
		}
		bytes += column->byval ? 8 : row[i].integer;
	}
	if (bytes > CAIRN_MAX_ROW_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index row size %zu exceeds maximum %d for index \"%s\"",
						bytes, (int) CAIRN_MAX_ROW_BYTES, RelationGetRelationName(index->rel))));
	code = cairn_packer_push(writer->packer, id, row);
	MemoryContextSwitchTo(old);
	if (by_reference)
		MemoryContextReset(writer->scratch);
	if (code < 0)
		cairn_codec_failed(index->rel, InvalidBlockNumber, writer->leaf, code);
	writer->rows++;
	if (code > 0)
		cut_pages(writer, false);
}

/* Writes what waits, so that the next child can be one that is kept. */
void
cairn_writer_flush(CairnWriter *writer)
{
	cut_pages(writer, true);
}

/* Puts children from `from` on into an inner page; `to` says where it is full. */
void
cairn_fill_inner(CairnIndex *index, Page page, CairnChild *children, int from, int *to)
{
	int			at = from;

	while (at < *to)
	{
		IndexTuple	tuple = children[at].first;
		Size		size = IndexTupleSize(tuple);

		if (PageGetFreeSpace(page) < size)
			break;
		ItemPointerSet(&tuple->t_tid, children[at].block, 1);
		if (PageAddItem(page, (Item) tuple, size, InvalidOffsetNumber, false, false) == InvalidOffsetNumber)
			elog(ERROR, "no room for a child in an inner page of index \"%s\"", RelationGetRelationName(index->rel));
		at++;
	}
	*to = at;
}

/*
 * BOUND: an inner page has room for two children at least. A key takes CAIRN_MAX_ROW_BYTES and, for each column, a length word and what aligns it; so
 * each level has at most half of the pages of the one below, and no tree of a file's blocks is deeper than a walk goes.
 */
StaticAssertDecl(2 * (sizeof(ItemIdData) + MAXALIGN(CAIRN_MAX_ROW_BYTES + MAXALIGN(sizeof(IndexTupleData) + sizeof(IndexAttributeBitMapData)) +
													INDEX_MAX_KEYS * (VARHDRSZ + MAXIMUM_ALIGNOF))) <= CAIRN_LEAF_CAPACITY,
				 "two keys fit an inner page");
StaticAssertDecl((UINT64CONST(1) << CAIRN_MAX_DEPTH) > MaxBlockNumber, "halves of a file's blocks, level by level, end within the depth of a walk");

/* Writes inner pages over the children, which become the children. */
void
cairn_writer_level(CairnWriter *writer, CairnPageKind kind)
{
	int			parents = 0;

	for (int from = 0; from < writer->child_count;)
	{
		int			to = writer->child_count;
		Buffer		buffer = cairn_allocate(writer->index->rel);
		GenericXLogState *log = GenericXLogStart(writer->index->rel);
		Page		page = GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE);

		cairn_page_init(page, kind, writer->generation);
		cairn_fill_inner(writer->index, page, writer->children, from, &to);
		if (to == from)
			elog(ERROR, "a key of index \"%s\" does not fit a page", RelationGetRelationName(writer->index->rel));
		GenericXLogFinish(log);
		/* Parents take the places of children that have been read. */
		writer->children[parents].first = writer->children[from].first;
		writer->children[parents].block = BufferGetBlockNumber(buffer);
		parents++;
		UnlockReleaseBuffer(buffer);
		from = to;
	}
	writer->child_count = parents;
}

/* Writes what waits, and inner pages over all of it. The root is returned; invalid without rows. */
BlockNumber
cairn_writer_finish(CairnWriter *writer)
{
	cut_pages(writer, true);
	while (writer->child_count > 1)
		cairn_writer_level(writer, CAIRN_INNER);
	return writer->child_count == 0 ? InvalidBlockNumber : writer->children[0].block;
}
