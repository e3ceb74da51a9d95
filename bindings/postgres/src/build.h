/* Building an index, by one process or by several. */
#ifndef CAIRN_BUILD_H
#define CAIRN_BUILD_H

#include "cairn.h"

/* What a scan of the heap, or of a part of it, gathers. */
typedef struct CairnBuildState
{
	CairnSort  *sort;
	double		tuples;
} CairnBuildState;

extern void cairn_build_add_row(Relation rel, ItemPointer tid, Datum *values, bool *nulls, bool is_alive, void *state);

/* Of several processes. Null if one does it all. */
typedef struct CairnBuildLeader CairnBuildLeader;
extern CairnBuildLeader *cairn_build_parallel(Relation heap, Relation rel, IndexInfo *info, CairnIndex *index,
											  CairnSort **sort, double *heap_tuples, double *tuples);
extern void cairn_build_parallel_end(CairnBuildLeader *leader);

#endif							/* CAIRN_BUILD_H */
