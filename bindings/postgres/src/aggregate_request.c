/*
 * What a query asks of an index, as far as its pages can answer: aggregates and groups in its target, conditions on its columns.
 */
#include "aggregate_request.h"

#include "access/nbtree.h"
#include "access/skey.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

/* The index column that a Var is, or -1. */
int
cairn_request_column(CairnRequest *request, Node *node)
{
	Var		   *var = (Var *) node;

	while (node != NULL && IsA(node, RelabelType))
	{
		node = (Node *) ((RelabelType *) node)->arg;
		var = (Var *) node;
	}
	if (node == NULL || !IsA(node, Var) || var->varno != (int) request->varno || var->varlevelsup != 0)
		return -1;
	for (int i = 0; i < request->index->ncolumns; i++)
		if (request->index->indexkeys[i] == var->varattno && var->varattno > 0)
			return i;
	return -1;
}

/* Types whose values the codec orders and adds as integers. */
static bool
is_number(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

bool
cairn_request_orders(Oid type)
{
	return is_number(type) || type == DATEOID || type == TIMESTAMPOID || type == TIMESTAMPTZOID;
}

static bool
add_output(CairnRequest *request, Node *node, CairnAggregateKind kind, int column, Oid type, int filter)
{
	request->outputs = lappend(request->outputs, node);
	request->output_info = lappend_int(request->output_info, kind);
	request->output_info = lappend_int(request->output_info, column);
	request->output_info = lappend_int(request->output_info, (int) type);
	request->output_info = lappend_int(request->output_info, filter);
	return true;
}

static void
add_key(CairnRequest *request, int flags, int column, int strategy, Oid subtype, Oid collation, Oid function, Node *argument)
{
	request->keys = lappend_int(request->keys, flags);
	request->keys = lappend_int(request->keys, column);
	request->keys = lappend_int(request->keys, strategy);
	request->keys = lappend_int(request->keys, (int) subtype);
	request->keys = lappend_int(request->keys, (int) collation);
	request->keys = lappend_int(request->keys, (int) function);
	request->arguments = lappend(request->arguments, argument);
}

static bool
is_constant(Node *node)
{
	return !contain_var_clause(node) && !contain_volatile_functions(node) && !contain_subplans(node);
}

static Oid
column_type(CairnRequest *request, int column)
{
	return exprType((Node *) list_nth_node(TargetEntry, request->index->indextlist, column)->expr);
}

/* column op constant, with an operator of the column's family. */
static bool
take_operator(CairnRequest *request, Oid operator, Oid collation, Node *left, Node *right, bool is_array)
{
	int			column = cairn_request_column(request, left);
	int			strategy;
	Oid			left_type,
				right_type;
	Oid			family;

	if (column < 0 || !is_constant(right))
	{
		operator = get_commutator(operator);
		if (is_array || !OidIsValid(operator) || !is_constant(left))
			return false;
		column = cairn_request_column(request, right);
		right = left;
	}
	if (column < 0)
		return false;
	/* A column that is carried along has no order in the index: its values are compared as its type is, whatever the collation. */
	if (column >= request->index->nkeycolumns)
		family = lookup_type_cache(column_type(request, column), TYPECACHE_BTREE_OPFAMILY)->btree_opf;
	else
	{
		family = request->index->opfamily[column];
		if (OidIsValid(request->index->indexcollations[column]) && request->index->indexcollations[column] != collation)
			return false;
	}
	if (!OidIsValid(family) || get_op_opfamily_strategy(operator, family) == 0)
		return false;
	get_op_opfamily_properties(operator, family, false, &strategy, &left_type, &right_type);
	if (is_array && strategy != BTEqualStrategyNumber)
		return false;
	add_key(request, is_array ? SK_SEARCHARRAY : 0, column, strategy, right_type, collation, get_opcode(operator), right);
	return true;
}

static bool
take_condition(CairnRequest *request, Node *clause)
{
	if (IsA(clause, OpExpr) && list_length(((OpExpr *) clause)->args) == 2)
	{
		OpExpr	   *expr = (OpExpr *) clause;

		return take_operator(request, expr->opno, expr->inputcollid, linitial(expr->args), lsecond(expr->args), false);
	}
	if (IsA(clause, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) clause)->useOr)
	{
		ScalarArrayOpExpr *expr = (ScalarArrayOpExpr *) clause;

		return take_operator(request, expr->opno, expr->inputcollid, linitial(expr->args), lsecond(expr->args), true);
	}
	if (IsA(clause, NullTest) && !((NullTest *) clause)->argisrow)
	{
		NullTest   *test = (NullTest *) clause;
		int			column = cairn_request_column(request, (Node *) test->arg);

		if (column < 0)
			return false;
		add_key(request, SK_ISNULL | (test->nulltesttype == IS_NULL ? SK_SEARCHNULL : SK_SEARCHNOTNULL), column,
				InvalidStrategy, InvalidOid, InvalidOid, InvalidOid,
				(Node *) makeNullConst(INT4OID, -1, InvalidOid));
		return true;
	}
	return false;
}

bool
cairn_request_conditions(CairnRequest *request, RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *info = lfirst_node(RestrictInfo, cell);

		if (info->pseudoconstant)
			return false;
		/* A condition that the predicate of a partial index implies holds for all of its rows. */
		if (list_member(request->index->indpred, info->clause))
			continue;
		if (!take_condition(request, (Node *) info->clause))
			return false;
		request->where = lappend(request->where, info);
	}
	request->where_keys = list_length(request->keys) / 6;
	return true;
}

/* The conditions of a FILTER clause, as those of WHERE. Aggregates with the same one share it. */
static bool
take_filter(CairnRequest *request, Node *clause, int *filter)
{
	ListCell   *cell;
	int			before = list_length(request->keys) / 6;

	*filter = 0;
	foreach(cell, request->filters)
	{
		if (equal(lfirst(cell), clause))
			return true;
		++*filter;
	}
	foreach(cell, make_ands_implicit((Expr *) clause))
		if (!take_condition(request, lfirst(cell)))
			return false;
	request->filters = lappend(request->filters, clause);
	request->filter_keys = lappend_int(request->filter_keys, list_length(request->keys) / 6 - before);
	return true;
}

static bool
take_aggregate(CairnRequest *request, Aggref *aggregate)
{
	Node	   *argument;
	int			column;
	Oid			type;
	char	   *name;
	int			filter = -1;

	if (aggregate->aggorder != NIL || aggregate->aggdistinct != NIL || aggregate->aggdirectargs != NIL || aggregate->aggvariadic || aggregate->agglevelsup != 0 ||
		aggregate->aggsplit != AGGSPLIT_SIMPLE || aggregate->aggfnoid >= FirstNormalObjectId)
		return false;
	if (aggregate->aggfilter != NULL && !take_filter(request, (Node *) aggregate->aggfilter, &filter))
		return false;
	name = get_func_name(aggregate->aggfnoid);
	if (aggregate->args == NIL)
		return strcmp(name, "count") == 0 &&
			add_output(request, (Node *) aggregate, CAIRN_COUNT_ROWS, -1, INT8OID, filter);
	if (list_length(aggregate->args) != 1)
		return false;
	argument = (Node *) ((TargetEntry *) linitial(aggregate->args))->expr;
	column = cairn_request_column(request, argument);
	if (column < 0 || IsA(argument, RelabelType))
		return false;
	type = exprType(argument);
	if (strcmp(name, "count") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_COUNT_VALUES, column, type, filter);
	if (is_number(type) && strcmp(name, "sum") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_SUM, column, type, filter);
	if (is_number(type) && strcmp(name, "avg") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_AVERAGE, column, type, filter);
	if (cairn_request_orders(type) && strcmp(name, "min") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_LEAST, column, type, filter);
	if (cairn_request_orders(type) && strcmp(name, "max") == 0)
		return add_output(request, (Node *) aggregate, CAIRN_GREATEST, column, type, filter);
	return false;
}

/* Whether everything in the target is made of aggregates that can be had here and of the group's column. */
bool
cairn_request_target(CairnRequest *request, List *exprs)
{
	List	   *parts = pull_var_clause((Node *) exprs, PVC_INCLUDE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
										PVC_INCLUDE_PLACEHOLDERS);
	ListCell   *cell;

	foreach(cell, parts)
	{
		Node	   *part = lfirst(cell);

		if (list_member(request->outputs, part))
			continue;
		if (IsA(part, Aggref) ? take_aggregate(request, (Aggref *) part)
			: IsA(part, Var) && request->grouped && cairn_request_column(request, part) == 0 &&
			add_output(request, part, CAIRN_GROUP_KEY, 0, exprType(part), -1))
			continue;
		return false;
	}
	return true;
}
