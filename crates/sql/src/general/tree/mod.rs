//! Helpers for DataFusion's trees of plans and expressions.

pub(crate) mod expression_types;
pub(crate) mod operand_schema;
pub(crate) mod values;
pub(crate) mod walk;
