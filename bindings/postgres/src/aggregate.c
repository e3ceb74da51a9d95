#include "postgres.h"
#include "utils/guc.h"
#include "aggregate.h"
static bool enable_aggregate = true;
void cairn_aggregate_init(void) {
	DefineCustomBoolVariable("cairn.enable_aggregate", "Plans aggregates over compressed pages.", NULL, &enable_aggregate, true, PGC_USERSET, 0, NULL, NULL, NULL);
}
