/* What a query asks of an index. */
#ifndef CAIRN_AGGREGATE_REQUEST_H
#define CAIRN_AGGREGATE_REQUEST_H

#include "aggregate.h"

typedef struct CairnRequest
{
	IndexOptInfo *index;
	Index		varno;
	List	   *outputs;		/* Aggref and Var, each once */
	List	   *output_info;	/* four integers each */
	List	   *keys;			/* six integers each: of WHERE, then of each FILTER clause */
	List	   *arguments;		/* of the conditions */
	int			where_keys;
	List	   *where;			/* RestrictInfo of each of those */
	List	   *filters;		/* FILTER clauses, each once */
	List	   *filter_keys;	/* how many each has */
	bool		grouped;
	List	   *having;			/* conditions on groups */
} CairnRequest;

extern int	cairn_request_column(CairnRequest *request, Node *node);
extern bool cairn_request_orders(Oid type);
extern bool cairn_request_conditions(CairnRequest *request, RelOptInfo *rel);
extern bool cairn_request_target(CairnRequest *request, List *exprs);

#endif							/* CAIRN_AGGREGATE_REQUEST_H */
