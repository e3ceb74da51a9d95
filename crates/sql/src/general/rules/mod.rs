//! Rules that correct plans: DataFusion analyzes, optimizes and plans between them.

pub(crate) mod aggregate_scans;
pub(crate) mod computed_groups;
pub(crate) mod date_comparisons;
pub(crate) mod duplicate_sort_keys;
pub(crate) mod grouping_orders;
pub(crate) mod guarded_rules;
pub(crate) mod guards;
pub(crate) mod hidden_sorts;
pub(crate) mod in_lists;
pub(crate) mod inner_orders;
pub(crate) mod intervals;
pub(crate) mod join_filters;
pub(crate) mod join_orders;
pub(crate) mod late_columns;
pub(crate) mod literals;
pub(crate) mod multisets;
pub(crate) mod normalize;
pub(crate) mod numbers;
pub(crate) mod outer_types;
pub(crate) mod quotients;
pub(crate) mod shared_totals;
pub(crate) mod text_casts;
pub(crate) mod unknown_keys;
pub(crate) mod unnest;
pub(crate) mod wide_sums;
pub(crate) mod zone_marks;
