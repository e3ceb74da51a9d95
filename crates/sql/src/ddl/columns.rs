//! Columns of tables.

use cairn_table::row::Order;
use cairn_table::schema::{ColumnDef, ColumnType, Identity, KeyColumn};
use sqlparser::ast::{self, ColumnOption, Expr, SequenceOptions, UnaryOperator};

use super::constraints::{Constraints, check_characteristics};
use super::identity::owner;
use crate::direct::default_of;
use crate::error::{Error, Result};
use crate::runtime::sequence::{Name, Sequence, parse_name};
use crate::sqlstate::{
    DUPLICATE_COLUMN, DUPLICATE_TABLE, INVALID_PARAMETER_VALUE, OBJECT_NOT_IN_PREREQUISITE_STATE,
    SYNTAX_ERROR,
};
use crate::syntax::{check_collation, column_type, ident, is_serial, kind_of, quote_ident, sequence_name};

/// A sequence that a column creates.
pub(super) type OwnSequence = (Name, Sequence);

impl Constraints<'_> {
    /// Adds a column with its constraints.
    ///
    /// Errors: as [`Constraints::add`]; types that do not exist; defaults that cannot be computed.
    pub fn add_column(&mut self, column: &ast::ColumnDef, sequences: &mut Vec<OwnSequence>) -> Result<()> {
        let name = ident(&column.name);
        if self.def.column(&name).is_some() {
            return Err(Error::new(DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once")));
        }
        let kind = column_type(&column.data_type)?;
        let at = self.def.columns.len();
        let mut def = ColumnDef { name: name.clone(), kind, nullable: true, default: None, identity: None };
        if is_serial(&column.data_type) {
            self.counts(&mut def, &[], sequences)?;
        }
        for option in &column.options {
            match &option.option {
                ColumnOption::NotNull => def.nullable = false,
                ColumnOption::Default(_) if def.identity.is_some() => {
                    return Err(self.twice("both default and identity specified", &def));
                }
                ColumnOption::Default(expr) => def.default = Some(expr.to_string()),
                ColumnOption::Generated { generated_as, sequence_options, generation_expr: None, .. } => {
                    let identity =
                        kind_of(generated_as).ok_or_else(|| Error::unsupported("a generated column"))?;
                    let options = sequence_options.as_deref().unwrap_or_default();
                    self.identity(&mut def, identity, options, sequences)?;
                }
                ColumnOption::Identity(_) | ColumnOption::DialectSpecific(_) => {
                    self.counts(&mut def, &[], sequences)?
                }
                ColumnOption::Generated { .. } | ColumnOption::Materialized(_) => {
                    return Err(Error::unsupported("a generated column"));
                }
                ColumnOption::Collation(name) => check_collation(name)?,
                // Constraints are added once the column exists.
                ColumnOption::Null
                | ColumnOption::PrimaryKey(_)
                | ColumnOption::Unique(_)
                | ColumnOption::Check(_)
                | ColumnOption::ForeignKey(_) => {}
                other => return Err(Error::unsupported(format_args!("{other} for a column"))),
            }
        }
        default_of(&def)?;
        self.def.columns.push(def);
        for option in &column.options {
            self.constraint_of(option, at, &name)?;
        }
        Ok(())
    }

    fn constraint_of(&mut self, option: &ast::ColumnOptionDef, at: usize, column: &str) -> Result<()> {
        let key = || vec![KeyColumn { column: at, order: Order::default() }];
        match &option.option {
            ColumnOption::PrimaryKey(constraint) => {
                check_characteristics(constraint.characteristics.as_ref())?;
                self.primary_key(option.name.as_ref().or(constraint.name.as_ref()), key())
            }
            ColumnOption::Unique(constraint) => {
                check_characteristics(constraint.characteristics.as_ref())?;
                self.unique(option.name.as_ref().or(constraint.name.as_ref()), key())
            }
            ColumnOption::Check(check) => {
                let mut check = check.clone();
                check.name = check.name.or_else(|| option.name.clone());
                self.check(&check, Some(column))
            }
            ColumnOption::ForeignKey(reference) => {
                let mut reference = reference.clone();
                reference.name = reference.name.or_else(|| option.name.clone());
                self.foreign_key(&reference, vec![at])
            }
            _ => Ok(()),
        }
    }

    /// Returns the error for a column with two of something that it may have only once.
    fn twice(&self, what: &str, column: &ColumnDef) -> Error {
        let what = format!("{what} for column \"{}\" of table \"{}\"", column.name, self.def.name);
        Error::new(SYNTAX_ERROR, what)
    }

    /// Makes a column an identity column.
    ///
    /// Errors: 42601 if it is one already, or has a default; 22023 if its type is not an integer;
    /// those of its sequence.
    pub fn identity(
        &mut self,
        column: &mut ColumnDef,
        identity: Identity,
        options: &[SequenceOptions],
        sequences: &mut Vec<OwnSequence>,
    ) -> Result<()> {
        if column.identity.is_some() {
            return Err(self.twice("multiple identity specifications", column));
        }
        if column.default.is_some() {
            return Err(self.twice("both default and identity specified", column));
        }
        check_identity_type(&column.kind)?;
        self.counts(column, options, sequences)?;
        column.identity = Some(identity);
        Ok(())
    }

    /// Gives a column a sequence for its values.
    fn counts(
        &mut self,
        column: &mut ColumnDef,
        options: &[SequenceOptions],
        sequences: &mut Vec<OwnSequence>,
    ) -> Result<()> {
        let taken = |name: &str| {
            sequences.iter().any(|((_, other), _)| other == name)
                // The sequence of a renamed table keeps its old name.
                || self.sequences.iter().any(|(schema, other)| *schema == self.def.schema && other == name)
                || self.catalog.has_name(&self.def.schema, name)
        };
        let name = match sequence_name(options) {
            None => super::free_name(format!("{}_{}_seq", self.def.name, column.name), taken),
            Some(text) => {
                let (schema, name) = parse_name(text, &self.def.schema);
                if schema != self.def.schema {
                    let what = "sequence must be in same schema as table it is linked to";
                    return Err(Error::new(OBJECT_NOT_IN_PREREQUISITE_STATE, what));
                }
                if taken(&name) {
                    return Err(Error::new(DUPLICATE_TABLE, format!("relation \"{name}\" already exists")));
                }
                name
            }
        };
        let mut sequence = Sequence::of(column.kind.kind, Some(owner(self.def, &column.name)));
        apply(&mut sequence, options)?;
        column.nullable = false;
        column.default = Some(default_text(&self.def.schema, &name));
        sequences.push(((self.def.schema.clone(), name), sequence));
        Ok(())
    }
}

/// Checks that a column of this type may be an identity column.
///
/// Errors: 22023.
pub(super) fn check_identity_type(kind: &ColumnType) -> Result<()> {
    match kind.kind.is_integer() {
        true => Ok(()),
        false => {
            let what = "identity column type must be smallint, integer, or bigint";
            Err(Error::new(INVALID_PARAMETER_VALUE, what))
        }
    }
}

/// Returns the text of the expression `nextval` on a sequence.
fn default_text(schema: &str, name: &str) -> String {
    let name = if schema == cairn_table::PUBLIC {
        quote_ident(name)
    } else {
        format!("{}.{}", quote_ident(schema), quote_ident(name))
    };
    format!("nextval('{}')", name.replace('\'', "''"))
}

/// Applies the options of CREATE SEQUENCE.
///
/// Errors: 42601 for malformed numbers.
pub(super) fn apply(sequence: &mut Sequence, options: &[SequenceOptions]) -> Result<()> {
    let (mut start, mut minimum, mut maximum) = (None, None, None);
    for option in options {
        match option {
            SequenceOptions::IncrementBy(expr, _) => sequence.increment = whole(expr)?,
            SequenceOptions::MinValue(value) => minimum = value.as_ref().map(whole).transpose()?,
            SequenceOptions::MaxValue(value) => maximum = value.as_ref().map(whole).transpose()?,
            SequenceOptions::StartWith(expr, _) => start = Some(whole(expr)?),
            SequenceOptions::Cache(_) => {}
            SequenceOptions::Cycle(no) => sequence.cycles = !no,
        }
    }
    if sequence.increment == 0 {
        return Err(Error::new(INVALID_PARAMETER_VALUE, "INCREMENT must not be zero"));
    }
    if sequence.increment < 0 {
        // The negative range of the type.
        (sequence.minimum, sequence.maximum) = (-sequence.maximum - 1, -1);
    }
    sequence.minimum = minimum.unwrap_or(sequence.minimum);
    sequence.maximum = maximum.unwrap_or(sequence.maximum);
    sequence.start =
        start.unwrap_or(if sequence.increment > 0 { sequence.minimum } else { sequence.maximum });
    if sequence.minimum >= sequence.maximum
        || !(sequence.minimum..=sequence.maximum).contains(&sequence.start)
    {
        let what = format!("START value ({}) cannot be outside MINVALUE and MAXVALUE", sequence.start);
        return Err(Error::new(INVALID_PARAMETER_VALUE, what));
    }
    sequence.next = Some(sequence.start);
    Ok(())
}

fn whole(expr: &Expr) -> Result<i64> {
    let number = match expr {
        // Parsed with its sign, because the least number has no positive counterpart.
        Expr::Value(_) | Expr::UnaryOp { op: UnaryOperator::Minus, .. } => expr.to_string().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| {
        Error::new(SYNTAX_ERROR, format!("invalid sequence option value {expr}: expected an integer"))
    })
}
