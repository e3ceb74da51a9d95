#include "postgres.h"
#include "aggregate.h"
void cairn_aggregate_init(void) {}
