//! Steps that every written row goes through: its values are converted to the types of columns,
//! checks are evaluated, and RETURNING is computed.

use cairn_table::Table;
use cairn_table::row::{Type, Value};
use cairn_table::schema::{ColumnDef, TableDef};
use sqlparser::ast::SelectItem;

use super::Binder;
use crate::column::Column;
use crate::datum::{Datum, DatumRef, kept};
use crate::error::{Error, Result, Subject};
use crate::expr::{Compiler, Env, Failure, Node, Scope, Val, assign};
use crate::sqlstate::CHECK_VIOLATION;
use crate::syntax::expression;

/// Values that are being assigned to a row.
#[derive(Debug, Default)]
pub(crate) struct Assigned<'a>(pub Vec<Val<'a>>);

impl<'a> Assigned<'a> {
    /// Assigns a value to the next column.
    ///
    /// Errors: 22001 and 22003 for values that do not fit, and those of casts.
    pub fn push(&mut self, value: Val<'a>, column: &ColumnDef) -> Result<()> {
        let kind = &column.kind;
        let value = match value {
            Val::Ref(datum) => assign(datum, kind)?,
            Val::Own(datum)
                if datum.type_of() == Some(kind.kind)
                    && kind.length.is_none()
                    && kind.kind != Type::Decimal
                    && !kind.is_json =>
            {
                Val::Own(datum)
            }
            Val::Own(datum) => Val::Own(assign(datum.borrow(), kind)?.into_datum()),
        };
        self.0.push(value);
        Ok(())
    }

    /// Assigns the value of an expression to the next column. If it is a parameter, losing digits
    /// is an error.
    ///
    /// Errors: as [`Assigned::push`], and those of the expression.
    pub fn push_node(&mut self, node: &'a Node, env: &Env<'a>, column: &ColumnDef) -> Result<()> {
        let value = node.eval(env)?;
        if let (Node::Param(_), DatumRef::Decimal { unscaled, scale }, Some(digits)) =
            (node, value.get(), column.kind.decimal)
        {
            kept(unscaled, scale, digits)?;
        }
        self.push(value, column)
    }

    pub fn values(&self) -> Vec<Value<'_>> {
        self.0.iter().map(|value| value.get().to_value()).collect()
    }
}

/// The checks of a table.
#[derive(Debug, Default)]
pub(crate) struct Checks(Vec<(String, Node)>);

impl Checks {
    /// Compiles the checks.
    ///
    /// Errors: those of a check; 0A000 for expressions that need the general path.
    pub fn new(def: &TableDef) -> Result<Checks> {
        let scope = Scope::of_def(def, None);
        let mut checks = Vec::with_capacity(def.checks.len());
        for check in &def.checks {
            let expr = expression(&check.expression)?;
            let node = Compiler::new(&scope, &mut Vec::new()).condition(&expr);
            checks.push((
                check.name.clone(),
                node.map_err(|failure| unsupported(failure, "this expression in CHECK"))?,
            ));
        }
        Ok(Checks(checks))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Evaluates the checks. NULL passes. Violations of NOT NULL are reported before those of
    /// checks.
    ///
    /// Errors: 23502, 23514, and those of computing the checks.
    pub fn hold(&self, table: &Table, env: &Env<'_>) -> Result<()> {
        if !self.is_empty() {
            refuse_nulls(table.def(), env)?;
        }
        for (name, node) in &self.0 {
            if node.eval(env)?.truth() == Some(false) {
                let def = table.def();
                let what =
                    format!("new row for relation \"{}\" violates check constraint \"{name}\"", def.name);
                let error = Error::new(CHECK_VIOLATION, what).with_detail(failing_row(def, env));
                return Err(error.about(Subject::constraint(&def.schema, &def.name, name)));
            }
        }
        Ok(())
    }
}

/// Errors: 23502 for the first column that is NULL although it must not be. The table checks this
/// too, but later, when another error could come first.
pub fn refuse_nulls(def: &TableDef, env: &Env<'_>) -> Result<()> {
    for (at, column) in def.columns.iter().enumerate() {
        if !column.nullable && env.row.get(at) == Value::Null {
            let (schema, table, column) = (def.schema.clone(), def.name.clone(), column.name.clone());
            return Err(cairn_table::Error::NotNull { schema, table, column }.into());
        }
    }
    Ok(())
}

fn failing_row(def: &TableDef, env: &Env<'_>) -> String {
    let value = |(at, column): (usize, &ColumnDef)| {
        let scale = column.kind.decimal.map_or(0, |(_, scale)| scale);
        match DatumRef::from_value(env.row.get(at), scale) {
            DatumRef::Null => "null".to_owned(),
            datum => datum.to_string(),
        }
    };
    let values: Vec<String> = def.columns.iter().enumerate().map(value).collect();
    format!("Failing row contains ({}).", values.join(", "))
}

/// Turns [`Failure::Unknown`] into an error, for expressions that the general path does not run
/// either.
pub(crate) fn unsupported(failure: Failure, what: &str) -> Error {
    match failure {
        Failure::Error(error) => error,
        Failure::Unknown => Error::unsupported(what),
    }
}

/// Compiles the default of a column.
///
/// Errors: those of the expression; 0A000 for expressions that need the general path.
pub(crate) fn default_of(column: &ColumnDef) -> Result<Node> {
    let Some(text) = &column.default else { return Ok(Node::Const(Datum::Null)) };
    let expr = expression(text)?;
    let scope = Scope::empty();
    let node = Compiler::new(&scope, &mut Vec::new()).assignment(&expr, &column.name, &column.kind);
    node.map_err(|failure| unsupported(failure, "this expression in DEFAULT"))
}

/// RETURNING.
#[derive(Debug)]
pub(crate) struct Returning(Vec<Node>);

impl Returning {
    /// Compiles the clause.
    pub fn plan(
        items: Option<&[SelectItem]>,
        scope: &Scope,
        table: &Table,
        binder: &mut Binder<'_>,
    ) -> Result<(Option<Returning>, Vec<Column>), Failure> {
        let Some(items) = items else { return Ok((None, Vec::new())) };
        let (nodes, columns) = binder.outputs(items, scope, Some(table))?;
        Ok((Some(Returning(nodes)), columns))
    }

    /// Returns the result row for a changed row.
    ///
    /// Errors: those of computing it.
    pub fn row(&self, env: &Env<'_>) -> Result<Vec<Datum>> {
        self.0.iter().map(|node| Ok(node.eval(env)?.into_datum())).collect()
    }
}

/// Returns the distinct columns that expressions read.
pub(super) fn slots<'n>(nodes: impl Iterator<Item = &'n Node>) -> Vec<usize> {
    let mut slots = Vec::new();
    nodes.for_each(|node| {
        node.walk(&mut |node| {
            if let Node::Slot { slot, .. } = node {
                slots.push(*slot);
            }
        });
    });
    slots.sort_unstable();
    slots.dedup();
    slots
}
