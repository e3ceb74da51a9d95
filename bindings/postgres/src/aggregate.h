/* Aggregates straight from compressed pages: what the planner hands to the executor. */
#ifndef CAIRN_AGGREGATE_H
#define CAIRN_AGGREGATE_H

#include "postgres.h"

#include "nodes/extensible.h"
#include "nodes/pathnodes.h"

typedef enum CairnAggregateKind
{
	CAIRN_COUNT_ROWS,
	CAIRN_COUNT_VALUES,
	CAIRN_SUM,
	CAIRN_AVERAGE,
	CAIRN_LEAST,
	CAIRN_GREATEST,
	CAIRN_GROUP_KEY				/* not an aggregate: the column that is grouped by */
} CairnAggregateKind;

/* Of several processes each has a part; the plan that is above them has theirs as its child. */
typedef enum CairnAggregateRole
{
	CAIRN_WHOLE,
	CAIRN_PARTIAL
} CairnAggregateRole;

/*
 * custom_private of the plan, lists of integers unless said otherwise:
 *   heap oid, index oid (oids) | output: kind, column, result type, FILTER clause of each | keys: flags, column, strategy, subtype,
 *   collation, function of each condition | whether rows are grouped, role, conditions of WHERE, of each FILTER clause | for EXPLAIN,
 *   trees over a table of number 1: the conditions of WHERE, or null, then those of each FILTER clause
 */
extern void cairn_aggregate_init(void);
extern Node *cairn_aggregate_state(CustomScan *plan);

#endif							/* CAIRN_AGGREGATE_H */
