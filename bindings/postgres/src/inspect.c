/* Functions for people: cairn_merge, cairn_check, cairn_page_stats. */
#include "cairn.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

/* Opens a cairn index of which the caller is the owner, and its table under `lock`. */
static Relation
open_index(Oid oid, LOCKMODE table_lock, LOCKMODE lock, Relation *heap)
{
	Oid			table = IndexGetRelation(oid, true);
	Relation	rel;

	*heap = NULL;
	if (OidIsValid(table))
		*heap = table_open(table, table_lock);
	rel = relation_open(oid, lock);
	if (rel->rd_rel->relkind != RELKIND_INDEX || rel->rd_rel->relam != get_am_oid("cairn", false))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a cairn index", RelationGetRelationName(rel))));
#if PG_VERSION_NUM >= 160000
	if (!object_ownercheck(RelationRelationId, oid, GetUserId()))
#else
	if (!pg_class_ownercheck(oid, GetUserId()))
#endif
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, RelationGetRelationName(rel));
	return rel;
}

PG_FUNCTION_INFO_V1(cairn_merge);

/* Moves the rows of the tail into compressed pages. As VACUUM, it excludes VACUUM and itself, and nobody else. */
Datum
cairn_merge(PG_FUNCTION_ARGS)
{
	Relation	heap;
	Relation	rel;
	CairnMetaData meta;
	int64		pages;

	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("recovery is in progress"), errhint("Merge on the primary.")));
	rel = open_index(PG_GETARG_OID(0), ShareUpdateExclusiveLock, RowExclusiveLock, &heap);
	/* A cursor of this session would wait for itself. */
	CheckTableNotInUse(rel, "cairn_merge");
	meta = cairn_read_meta(rel);
	pages = meta.tail_pages;
	if (pages > 0)
		cairn_merge_tail(cairn_index_open(rel), maintenance_work_mem, true);
	else
		cairn_free_retired(cairn_index_open(rel), true);
	relation_close(rel, RowExclusiveLock);
	table_close(heap, ShareUpdateExclusiveLock);
	PG_RETURN_INT64(pages);
}

typedef struct CheckState
{
	CairnIndex *index;
	CairnWalk	walk;
	int64		rows;
	Datum		last[INDEX_MAX_KEYS];
	bool		last_null[INDEX_MAX_KEYS];
	ItemPointerData last_tid;
	bool		has_last;
	MemoryContext now;
	MemoryContext before;
} CheckState;

/* Every value can be read, and rows ascend by key and tid, over the borders of leaves too. */
static void
check_leaf(CheckState *state)
{
	CairnWalk  *walk = &state->walk;
	CairnIndex *index = state->index;
	BlockNumber block = BufferGetBlockNumber(walk->leaf_buffer);
	int			code = cairn_leaf_verify(walk->leaf);
	IndexTuple	first;

	if (code < 0)
		cairn_codec_failed(index->rel, block, walk->leaf, code);
	for (uint32 row = 0; row < walk->rows; row++)
	{
		Datum		values[INDEX_MAX_KEYS];
		bool		nulls[INDEX_MAX_KEYS];
		ItemPointerData tid;
		MemoryContext swap;
		MemoryContext old = MemoryContextSwitchTo(state->now);

		for (int i = 0; i < index->keys; i++)
			nulls[i] = cairn_leaf_datum(walk, i, row, &values[i]);
		code = cairn_leaf_tids(walk->leaf, row, 1, &tid);
		if (code < 0)
			cairn_codec_failed(index->rel, block, walk->leaf, code);
		if (!ItemPointerIsValid(&tid))
			cairn_page_damaged(index->rel, block, "a row points to no place in a heap");
		if (state->has_last &&
			cairn_compare_keys(index, state->last, state->last_null, &state->last_tid, values, nulls, &tid) >= 0)
			cairn_page_damaged(index->rel, block, psprintf("row %u is not behind the row before it", row));
		if (row == 0 && cairn_walk_key_tuple(walk, &first))
			for (int i = 0; i < index->keys; i++)
			{
				bool		is_null;
				Datum		datum = index_getattr(first, i + 1, index->key_desc, &is_null);
				int			order = cairn_compare_datums(index, i, datum, is_null, values[i], nulls[i]);

				if (order > 0)
					cairn_page_damaged(index->rel, block, "the inner page's key is behind the first row");
				if (order < 0)
					break;
			}
		memcpy(state->last, values, sizeof(values));
		memcpy(state->last_null, nulls, sizeof(nulls));
		state->last_tid = tid;
		state->has_last = true;
		MemoryContextSwitchTo(old);
		swap = state->before;
		state->before = state->now;
		state->now = swap;
		MemoryContextReset(state->now);
		state->rows++;
	}
}

static void
count_tuple(IndexTuple tuple, void *count)
{
	++*(int64 *) count;
}

PG_FUNCTION_INFO_V1(cairn_check);

/* Reads the whole index and fails where it is damaged. Says how many rows it has. */
Datum
cairn_check(PG_FUNCTION_ARGS)
{
	Relation	heap;
	Relation	rel = open_index(PG_GETARG_OID(0), AccessShareLock, AccessShareLock, &heap);
	CheckState	state = {0};
	Buffer		buffer;
	CairnMetaData meta;

	state.index = cairn_index_open(rel);
	state.now = AllocSetContextCreate(CurrentMemoryContext, "cairn check", ALLOCSET_SMALL_SIZES);
	state.before = AllocSetContextCreate(CurrentMemoryContext, "cairn check", ALLOCSET_SMALL_SIZES);
	/* Tree and tail of one moment, as scans take them, or a merge moves rows from one into the other meanwhile. */
	buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_SHARE);
	meta = *cairn_meta(rel, BufferGetPage(buffer));
	cairn_walk_begin(&state.walk, state.index, &meta, cairn_new_leaf(CurrentMemoryContext));
	cairn_visit_tail(rel, meta.frozen_head, count_tuple, &state.rows);
	cairn_visit_tail(rel, meta.tail_head, count_tuple, &state.rows);
	UnlockReleaseBuffer(buffer);
	if (cairn_walk_edge(&state.walk, false))
		do
			check_leaf(&state);
		while (cairn_walk_next(&state.walk));
	cairn_walk_release(&state.walk);
	relation_close(rel, AccessShareLock);
	table_close(heap, AccessShareLock);
	PG_RETURN_INT64(state.rows);
}

static const char *
kind_name(CairnPageKind kind)
{
	switch (kind)
	{
		case CAIRN_META:
			return "meta";
		case CAIRN_LEAF:
			return "leaf";
		case CAIRN_INNER:
			return "inner";
		case CAIRN_SPLIT:
			return "split";
		case CAIRN_TAIL:
			return "tail";
		case CAIRN_FREE:
			return "free";
		case CAIRN_RETIRED:
			return "retired";
		default:
			return "unknown";
	}
}

static void
put_row(ReturnSetInfo *result, BlockNumber block, CairnPageKind kind, int64 rows, int column, CairnColumnStats *stats)
{
	Datum		values[8];
	bool		nulls[8] = {false};

	values[0] = Int64GetDatum(block);
	values[1] = CStringGetTextDatum(kind_name(kind));
	values[2] = Int64GetDatum(rows);
	nulls[3] = nulls[4] = nulls[5] = nulls[6] = nulls[7] = stats == NULL;
	if (stats != NULL)
	{
		values[3] = Int32GetDatum(column);
		values[4] = PointerGetDatum(cstring_to_text_with_len(stats->encoding, stats->encoding_len));
		values[5] = Int64GetDatum(stats->bytes);
		values[6] = Int64GetDatum(stats->runs);
		values[7] = Int64GetDatum(stats->strings);
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

PG_FUNCTION_INFO_V1(cairn_page_stats);

/* A row for each page, and for each column of a leaf; column 0 is the row ids. */
Datum
cairn_page_stats(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	Relation	heap;
	Relation	rel;
	CairnLeaf  *leaf = cairn_new_leaf(CurrentMemoryContext);
	BlockNumber blocks;

	InitMaterializedSRF(fcinfo, 0);
	rel = open_index(PG_GETARG_OID(0), AccessShareLock, AccessShareLock, &heap);
	blocks = RelationGetNumberOfBlocks(rel);
	for (BlockNumber block = 0; block < blocks; block++)
	{
		Buffer		buffer = ReadBuffer(rel, block);
		Page		page = BufferGetPage(buffer);

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (PageIsNew(page))
			put_row(result, block, CAIRN_FREE, 0, 0, NULL);
		else
		{
			cairn_check_page(rel, block, page);
			if (CairnOpaque(page)->kind != CAIRN_LEAF)
				put_row(result, block, CairnOpaque(page)->kind,
						CairnOpaque(page)->kind == CAIRN_META || CairnOpaque(page)->kind == CAIRN_RETIRED ? 0 : PageGetMaxOffsetNumber(page),
						0, NULL);
			else
			{
				int			code = cairn_leaf_open(leaf, (uint8_t *) PageGetContents(page),
												   ((PageHeader) page)->pd_lower - (PageGetContents(page) - (char *) page));

				for (int column = -1; code >= 0 && column < (int) cairn_leaf_columns(leaf); column++)
				{
					CairnColumnStats stats;

					code = cairn_leaf_stats(leaf, column, &stats);
					if (code >= 0)
						put_row(result, block, CAIRN_LEAF, cairn_leaf_rows(leaf), column + 1, &stats);
				}
				if (code < 0)
					cairn_codec_failed(rel, block, leaf, code);
			}
		}
		UnlockReleaseBuffer(buffer);
	}
	relation_close(rel, AccessShareLock);
	table_close(heap, AccessShareLock);
	return (Datum) 0;
}
