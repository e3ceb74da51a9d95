//! The direct path: statements that are compiled once to operations on the trees of tables. Running
//! one plans nothing, waits for nothing but row locks, and allocates little.

mod access;
mod aggregate;
mod arbiter;
mod columnar;
mod cursor;
mod grouped;
mod identity;
mod insert;
mod join;
mod leaf_rows;
mod leaves;
mod lookups;
mod place;
mod ranges;
mod row;
mod select;
mod source;
mod update;

pub(crate) use access::{Access, Wanted};
pub(crate) use aggregate::{Aggregate, leaves_doubles};
pub(crate) use arbiter::is_default;
pub(crate) use columnar::{
    Asked, Conditions, Formulas, Gathered, Gathering, Group, Members, Step, TooWide, Total, Unable,
};
pub(crate) use cursor::Cursor;
pub(crate) use grouped::{Grouped, cells};
pub(crate) use identity::{is_ignored, may_insert, may_update};
pub(crate) use insert::{Insert, InsertRun};
pub(crate) use join::{JoinCursor, Level};
pub(crate) use leaf_rows::LeafRows;
pub(crate) use leaves::Leaves;
pub(crate) use place::keeps_values;
pub(crate) use ranges::Ranges;
pub(crate) use row::{Assigned, Checks, Returning};
pub(crate) use row::{default_of, unsupported};
pub(crate) use select::{Locks, Output, Select, SelectPlan, Sort};
pub(crate) use source::{Binder, name_of, row_count, table_of};
pub(crate) use update::{Delete, Update};
