/* CREATE INDEX: the heap's rows, sorted, written once. */
#include "cairn.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/pg_opclass.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "utils/backend_progress.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "build.h"
#include "phases.h"

/* The last row that counts in a unique index, and whether the next one has its key. */
typedef struct Last
{
	bool		is_set;
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
} Last;

void
cairn_build_add_row(Relation rel, ItemPointer tid, Datum *values, bool *nulls, bool is_alive, void *state)
{
	CairnBuildState *build = state;

	cairn_sort_add(build->sort, tid, values, nulls, !is_alive);
	build->tuples++;
}

/* Fails if a live row has the key of the live row before it. */
static void
check_unique(CairnIndex *index, Relation heap, IndexInfo *info, Last *last, Datum *values, bool *nulls)
{
	bool		same = last->is_set;
	int			nulls_met = 0;

	for (int i = 0; i < index->keys; i++)
	{
		nulls_met += nulls[i];
		same = same && cairn_compare_datums(index, i, last->values[i], last->nulls[i], values[i], nulls[i]) == 0;
	}
	/* NULL is not equal to NULL unless the index was made so. */
	if (nulls_met > 0 && !info->ii_NullsNotDistinct)
		return;
	if (same)
		cairn_unique_built(index, heap, values, nulls);
	for (int i = 0; i < index->keys; i++)
	{
		CairnColumn *column = &index->column[i];

		if (!column->byval && last->is_set && !last->nulls[i])
			pfree(DatumGetPointer(last->values[i]));
		last->nulls[i] = nulls[i];
		last->values[i] = nulls[i] ? (Datum) 0 : datumCopy(values[i], column->byval, column->len);
	}
	last->is_set = true;
}

/* The heap's rows in order, by as many processes as PostgreSQL allows. */
static CairnSort *
sort_heap(Relation heap, Relation rel, IndexInfo *info, CairnIndex *index, IndexBuildResult *result, CairnBuildLeader **leader)
{
	CairnBuildState build = {0};

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, CAIRN_PHASE_SCAN);
	*leader = cairn_build_parallel(heap, rel, info, index, &build.sort, &result->heap_tuples, &build.tuples);
	if (*leader == NULL)
	{
		build.sort = cairn_sort_begin(index, maintenance_work_mem, NULL);
		result->heap_tuples = table_index_build_scan(heap, rel, info, true, true, cairn_build_add_row, &build, NULL);
	}
	result->index_tuples = build.tuples;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) build.tuples);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, CAIRN_PHASE_SORT);
	cairn_sort_perform(build.sort);
	return build.sort;
}

/*
 * The classes for patterns order strings by their bytes, and have the equality of the type. Under a collation that takes different bytes for equal the two
 * disagree, and scans would miss rows. PostgreSQL refuses such an index where it knows the class, which is btree's alone.
 */
static void
check_collations(CairnIndex *index)
{
	for (int i = 0; i < index->keys; i++)
	{
		CairnColumn *column = &index->column[i];
		Oid			compare = column->compare->fn_oid;
		HeapTuple	tuple;

		if ((compare != F_BTTEXT_PATTERN_CMP && compare != F_BTBPCHAR_PATTERN_CMP) || !OidIsValid(column->collation) ||
			get_collation_isdeterministic(column->collation))
			continue;
		tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(get_index_column_opclass(RelationGetRelid(index->rel), i + 1)));
		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "no operator class of column %d of index \"%s\"", i + 1, RelationGetRelationName(index->rel));
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("nondeterministic collations are not supported for operator class \"%s\"",
						NameStr(((Form_pg_opclass) GETSTRUCT(tuple))->opcname))));
	}
}

IndexBuildResult *
cairn_build(Relation heap, Relation rel, IndexInfo *info)
{
	CairnIndex *index;
	CairnWriter *writer;
	CairnSort  *sort;
	CairnBuildLeader *leader;
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	Last		last = {0};
	ItemPointerData tid;
	Datum	   *values;
	bool	   *nulls;
	bool		dead;
	BlockNumber root;
	Buffer		buffer;
	GenericXLogState *log;
	CairnMetaData *meta;
	int64		done = 0;

	if (RelationGetNumberOfBlocks(rel) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(rel));
	index = cairn_index_open(rel);
	check_collations(index);
	/* The meta page comes first, and becomes true last. */
	buffer = cairn_allocate(rel);
	Assert(BufferGetBlockNumber(buffer) == CAIRN_META_BLOCK);
	log = GenericXLogStart(rel);
	cairn_meta_init(GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE));
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);

	sort = sort_heap(heap, rel, info, index, result, &leader);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, CAIRN_PHASE_WRITE);
	writer = cairn_writer_begin(index, 1);
	while (cairn_sort_next(sort, &tid, &values, &nulls, &dead))
	{
		if (info->ii_Unique && !dead)
			check_unique(index, heap, info, &last, values, nulls);
		cairn_writer_add(writer, &tid, values, nulls);
		if (++done % 8192 == 0)
			pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
	}
	root = cairn_writer_finish(writer);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);

	buffer = cairn_read(rel, CAIRN_META_BLOCK, BUFFER_LOCK_EXCLUSIVE);
	log = GenericXLogStart(rel);
	meta = cairn_meta(rel, GenericXLogRegisterBuffer(log, buffer, 0));
	meta->root = root;
	meta->rows = (uint64) writer->rows;
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);

	cairn_writer_free(writer);
	cairn_sort_end(sort);
	if (leader != NULL)
		cairn_build_parallel_end(leader);
	return result;
}

/* The empty index that an unlogged table gets back after a crash. */
void
cairn_build_empty(Relation rel)
{
	Buffer		buffer = ReadBufferExtended(rel, INIT_FORKNUM, P_NEW, RBM_NORMAL, NULL);

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	cairn_meta_init(BufferGetPage(buffer));
	MarkBufferDirty(buffer);
	log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buffer);
}
