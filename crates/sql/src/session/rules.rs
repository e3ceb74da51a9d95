//! Defaults and checks for rows that a foreign key's action changes. The tables themselves do not
//! evaluate expressions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::Arc as StdArc;

use cairn_table::row::Value;
use cairn_table::{OwnedValue, Table};

use crate::datum::Datum;
use crate::direct::{Checks, default_of};
use crate::error::Result;
use crate::expr::{Cells, Env, assign};
use crate::runtime::SessionContext;

/// Defaults and checks of a statement's tables.
#[derive(Debug)]
pub(super) struct Rules<'s> {
    context: &'s SessionContext,
    /// Checks by the number of their table, compiled once.
    checks: RefCell<HashMap<u32, StdArc<Checks>>>,
}

type Refusal = StdArc<dyn StdError + Send + Sync>;

impl<'s> Rules<'s> {
    pub fn new(context: &'s SessionContext) -> Self {
        Rules { context, checks: RefCell::default() }
    }

    fn checks_of(&self, table: &Table) -> Result<StdArc<Checks>> {
        if let Some(checks) = self.checks.borrow().get(&table.id()) {
            return Ok(StdArc::clone(checks));
        }
        let checks = StdArc::new(Checks::new(table.def())?);
        self.checks.borrow_mut().insert(table.id(), StdArc::clone(&checks));
        Ok(checks)
    }

    fn default(&self, table: &Table, column: usize) -> Result<OwnedValue> {
        let Some(column) = table.def().columns.get(column) else {
            return Ok(OwnedValue::Plain(Value::Null));
        };
        let env = Env::new(Cells::None, &[], self.context);
        let value: Datum = default_of(column)?.eval(&env)?.into_datum();
        Ok(assign(value.borrow(), &column.kind)?.get().to_value().into())
    }

    fn hold(&self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        let checks = self.checks_of(table)?;
        checks.hold(table, &Env::new(Cells::Values(values), &[], self.context))
    }
}

impl cairn_table::Rules for Rules<'_> {
    fn default_of(&self, table: &Table, column: usize) -> Result<OwnedValue, Refusal> {
        self.default(table, column).map_err(|error| StdArc::new(error) as Refusal)
    }

    fn check(&self, table: &Table, values: &[Value<'_>]) -> Result<(), Refusal> {
        self.hold(table, values).map_err(|error| StdArc::new(error) as Refusal)
    }
}
