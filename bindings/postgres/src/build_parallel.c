/*
 * Parallel builds: several processes, this one among them, scan parts of the heap and sort what they find. This one merges that and writes the pages.
 *
 * Who takes part and how much memory each has is PostgreSQL's to say, as for btrees: max_parallel_maintenance_workers, maintenance_work_mem,
 * and whether functions in the index are safe.
 */
#include "build.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "postmaster/bgworker_internals.h"
#include "storage/condition_variable.h"
#include "storage/sharedfileset.h"
#include "storage/spin.h"
#include "utils/snapmgr.h"
#if PG_VERSION_NUM >= 160000
#include "utils/wait_event.h"
#endif

#define KEY_SHARED 1
#define KEY_TUPLES 2
#define KEY_WAL 3
#define KEY_BUFFERS 4

/* What the processes share. The state of the heap's scan follows. */
typedef struct BuildShared
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	int			participants;	/* that there are places for */
	int			kilobytes;		/* for each */
	SharedFileSet files;
	int			runs[MAX_PARALLEL_WORKER_LIMIT + 1];
	ConditionVariable changed;
	slock_t		lock;
	int			done;			/* processes that have sorted */
	double		heap_tuples;
	double		tuples;
	bool		broken_hot_chain;
} BuildShared;

#define ScanOf(shared) ((ParallelTableScanDesc) ((char *) (shared) + BUFFERALIGN(sizeof(BuildShared))))

struct CairnBuildLeader
{
	ParallelContext *context;
	BuildShared *shared;
	Snapshot	snapshot;		/* registered if it is an MVCC one */
	WalUsage   *wal;
	BufferUsage *buffers;
	CairnSortPart part;
};

PGDLLEXPORT void cairn_build_worker(dsm_segment *segment, shm_toc *toc);

static Snapshot
build_snapshot(bool concurrent)
{
	return concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
}

static CairnSortPart
part_of(BuildShared *shared, Sharedsort *tuples, int number)
{
	return (CairnSortPart) {.number = number, .participants = shared->participants, .runs = shared->runs,
		.files = &shared->files, .tuples = tuples};
}

/* Scans a part of the heap and leaves it sorted for the leader. */
static void
take_part(Relation heap, Relation rel, BuildShared *shared, Sharedsort *tuples, int number, bool progress)
{
	CairnIndex *index = cairn_index_open(rel);
	CairnSortPart part = part_of(shared, tuples, number);
	CairnBuildState build = {.sort = cairn_sort_begin(index, shared->kilobytes, &part)};
	IndexInfo  *info = BuildIndexInfo(rel);
	double		heap_tuples;

	info->ii_Concurrent = shared->concurrent;
	heap_tuples = table_index_build_scan(heap, rel, info, true, progress, cairn_build_add_row, &build,
										 table_beginscan_parallel(heap, ScanOf(shared)));
	cairn_sort_perform(build.sort);
	SpinLockAcquire(&shared->lock);
	shared->done++;
	shared->heap_tuples += heap_tuples;
	shared->tuples += build.tuples;
	shared->broken_hot_chain |= info->ii_BrokenHotChain;
	SpinLockRelease(&shared->lock);
	ConditionVariableSignal(&shared->changed);
	cairn_sort_end(build.sort);
}

/* What a worker process runs. */
void
cairn_build_worker(dsm_segment *segment, shm_toc *toc)
{
	BuildShared *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	Sharedsort *tuples = shm_toc_lookup(toc, KEY_TUPLES, false);
	WalUsage   *wal = shm_toc_lookup(toc, KEY_WAL, false);
	BufferUsage *buffers = shm_toc_lookup(toc, KEY_BUFFERS, false);
	Relation	heap = table_open(shared->heap, shared->concurrent ? ShareUpdateExclusiveLock : ShareLock);
	Relation	rel = index_open(shared->index, shared->concurrent ? RowExclusiveLock : AccessExclusiveLock);

	SharedFileSetAttach(&shared->files, segment);
	tuplesort_attach_shared(tuples, segment);
	InstrStartParallelQuery();
	take_part(heap, rel, shared, tuples, ParallelWorkerNumber, false);
	InstrEndParallelQuery(&buffers[ParallelWorkerNumber], &wal[ParallelWorkerNumber]);
	index_close(rel, NoLock);
	table_close(heap, NoLock);
}

static void
reserve(ParallelContext *context, Size bytes)
{
	shm_toc_estimate_chunk(&context->estimator, bytes);
	shm_toc_estimate_keys(&context->estimator, 1);
}

static void *
place(ParallelContext *context, int key, Size bytes)
{
	void	   *chunk = shm_toc_allocate(context->toc, bytes);

	shm_toc_insert(context->toc, key, chunk);
	return chunk;
}

static void
give_up(ParallelContext *context, Snapshot snapshot)
{
	DestroyParallelContext(context);
	if (IsMVCCSnapshot(snapshot))
		UnregisterSnapshot(snapshot);
	ExitParallelMode();
}

/* Starts the workers; null if there are none to be had. */
static CairnBuildLeader *
launch(Relation heap, Relation rel, IndexInfo *info, int workers, Sharedsort **tuples)
{
	CairnBuildLeader *leader = palloc0(sizeof(CairnBuildLeader));
	int			participants = workers + 1;
	Snapshot	snapshot;
	Size		shared_bytes;
	Size		tuples_bytes = tuplesort_estimate_shared(participants);
	ParallelContext *context;
	BuildShared *shared;

	EnterParallelMode();
	context = CreateParallelContext("$libdir/cairn", "cairn_build_worker", workers);
	snapshot = build_snapshot(info->ii_Concurrent);
	shared_bytes = BUFFERALIGN(sizeof(BuildShared)) + table_parallelscan_estimate(heap, snapshot);
	reserve(context, shared_bytes);
	reserve(context, tuples_bytes);
	reserve(context, mul_size(sizeof(WalUsage), workers));
	reserve(context, mul_size(sizeof(BufferUsage), workers));
	InitializeParallelDSM(context);
	if (context->seg == NULL)
	{
		give_up(context, snapshot);
		return NULL;
	}
	shared = place(context, KEY_SHARED, shared_bytes);
	memset(shared, 0, sizeof(BuildShared));
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(rel);
	shared->concurrent = info->ii_Concurrent;
	shared->participants = participants;
	shared->kilobytes = maintenance_work_mem / participants;
	SharedFileSetInit(&shared->files, context->seg);
	ConditionVariableInit(&shared->changed);
	SpinLockInit(&shared->lock);
	table_parallelscan_initialize(heap, ScanOf(shared), snapshot);
	*tuples = place(context, KEY_TUPLES, tuples_bytes);
	tuplesort_initialize_shared(*tuples, participants, context->seg);
	leader->wal = place(context, KEY_WAL, mul_size(sizeof(WalUsage), workers));
	leader->buffers = place(context, KEY_BUFFERS, mul_size(sizeof(BufferUsage), workers));
	LaunchParallelWorkers(context);
	if (context->nworkers_launched == 0)
	{
		WaitForParallelWorkersToFinish(context);
		give_up(context, snapshot);
		return NULL;
	}
	leader->context = context;
	leader->shared = shared;
	leader->snapshot = snapshot;
	return leader;
}

/* Until every process that was started has sorted its rows. */
static void
wait_for_all(BuildShared *shared, int processes)
{
	for (;;)
	{
		int			done;

		SpinLockAcquire(&shared->lock);
		done = shared->done;
		SpinLockRelease(&shared->lock);
		if (done == processes)
			break;
		ConditionVariableSleep(&shared->changed, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	}
	ConditionVariableCancelSleep();
}

/* Scans and sorts with workers. The sort that is left to the caller reads what all have sorted. Null if there are no workers. */
CairnBuildLeader *
cairn_build_parallel(Relation heap, Relation rel, IndexInfo *info, CairnIndex *index, CairnSort **sort,
					 double *heap_tuples, double *tuples)
{
	int			workers = info->ii_ParallelWorkers;
	CairnBuildLeader *leader;
	BuildShared *shared;
	Sharedsort *sharedsort;

#if PG_VERSION_NUM < 170000
	/* Asked for btrees alone before. */
	if (IsNormalProcessingMode() && !IsInParallelMode())
		workers = plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(rel));
#endif
	if (workers <= 0)
		return NULL;
	leader = launch(heap, rel, info, workers, &sharedsort);
	if (leader == NULL)
		return NULL;
	shared = leader->shared;
	ereport(DEBUG1, (errmsg_internal("index \"%s\" is built with %d workers", RelationGetRelationName(rel), leader->context->nworkers_launched)));
	/* Workers have the numbers up to here. */
	take_part(heap, rel, shared, sharedsort, leader->context->nworkers_launched, true);
	/* One that could not start is an error. */
	WaitForParallelWorkersToAttach(leader->context);
	wait_for_all(shared, leader->context->nworkers_launched + 1);
	*heap_tuples = shared->heap_tuples;
	*tuples = shared->tuples;
	info->ii_BrokenHotChain |= shared->broken_hot_chain;
	leader->part = part_of(shared, sharedsort, -1);
	leader->part.participants = leader->context->nworkers_launched + 1;
	*sort = cairn_sort_begin(index, maintenance_work_mem, &leader->part);
	return leader;
}

void
cairn_build_parallel_end(CairnBuildLeader *leader)
{
	ParallelContext *context = leader->context;

	WaitForParallelWorkersToFinish(context);
	for (int i = 0; i < context->nworkers_launched; i++)
		InstrAccumParallelQuery(&leader->buffers[i], &leader->wal[i]);
	give_up(context, leader->snapshot);
	pfree(leader);
}
