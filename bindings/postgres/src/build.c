/* CREATE INDEX: the heap's rows, sorted, written once. */
#include "cairn.h"

#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#if PG_VERSION_NUM >= 140000
#include "utils/backend_progress.h"
#endif

#include "phases.h"

typedef struct BuildState
{
	CairnSort  *sort;
	double		tuples;
} BuildState;

static void
add_row(Relation rel, ItemPointer tid, Datum *values, bool *nulls, bool is_alive, void *state)
{
	BuildState *build = state;

	cairn_sort_add(build->sort, tid, values, nulls);
	build->tuples++;
}

IndexBuildResult *
cairn_build(Relation heap, Relation rel, IndexInfo *info)
{
	CairnIndex *index;
	CairnWriter *writer;
	BuildState	build = {0};
	IndexBuildResult *result;
	ItemPointerData tid;
	Datum	   *values;
	bool	   *nulls;
	BlockNumber root;
	Buffer		buffer;
	GenericXLogState *log;
	CairnMetaData *meta;
	int64		done = 0;

	if (RelationGetNumberOfBlocks(rel) != 0)
		elog(ERROR, "index \"%s\" already contains data", RelationGetRelationName(rel));
	/* The meta page comes first, and becomes true last. */
	buffer = cairn_allocate(rel);
	Assert(BufferGetBlockNumber(buffer) == CAIRN_META_BLOCK);
	log = GenericXLogStart(rel);
	cairn_meta_init(GenericXLogRegisterBuffer(log, buffer, GENERIC_XLOG_FULL_IMAGE));
	GenericXLogFinish(log);
	UnlockReleaseBuffer(buffer);

	index = cairn_index_open(rel);
	build.sort = cairn_sort_begin(index, maintenance_work_mem);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, CAIRN_PHASE_SCAN);
	build.tuples = 0;
	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = table_index_build_scan(heap, rel, info, true, true, add_row, &build, NULL);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, (int64) build.tuples);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, CAIRN_PHASE_SORT);
	cairn_sort_perform(build.sort);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, CAIRN_PHASE_WRITE);
	writer = cairn_writer_begin(index, 1);
	while (cairn_sort_next(build.sort, &tid, &values, &nulls))
	{
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
	cairn_sort_end(build.sort);
	result->index_tuples = build.tuples;
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
