//! `x = ANY (list)` and `x <> ALL (list)`, which are equivalent to `x IN (...)` and its negation.
//!
//! A literal list becomes a list of expressions. A list parameter stays a node, and its items are
//! looked up at run time like those of `IN`. They need not have the operand's type, because
//! comparisons with them accept integers of any width.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{ArrayElemTypeDef, DataType, Expr, Value};

use super::{Compiler, Failure, Result, Typed};
use crate::datum::{Datum, items};
use crate::expr::Node;
use crate::expr::literal::parameter;
use crate::expr::operator_types::{common, undefined};
use crate::syntax::build::{null, string, text, with_type};
use crate::syntax::column_type;

/// The list of ANY or ALL.
enum List {
    /// Expressions, one for each item.
    Written(Vec<Expr>),
    /// A parameter, and the type that its items are cast to.
    Parameter(usize, Option<ColumnType>),
}

impl Compiler<'_> {
    pub(super) fn among(&mut self, operand: &Expr, list: &Expr, negated: bool) -> Result<Typed> {
        let (number, to) = match list_of(list)? {
            List::Written(items) if items.is_empty() => {
                let operand = Box::new(self.output(operand)?.0);
                let list = vec![Node::Const(Datum::List(Vec::new()))];
                return Ok(Typed::new(Node::In { operand, list, negated }, Type::Boolean.into()));
            }
            List::Written(items) => return self.in_list(operand, &items, negated),
            List::Parameter(number, to) => (number, to),
        };
        let operand = self.compile(operand)?;
        let given = self.params.get(number).cloned().flatten();
        let element = match (to, &given) {
            (Some(to), _) => to,
            (None, Some(given)) => given.element().ok_or(Failure::Unknown)?,
            (None, None) => {
                let mut open = operand.kind.clone().ok_or(Failure::Unknown)?;
                (open.length, open.decimal) = (None, None);
                open
            }
        };
        if self.params.len() <= number {
            self.params.resize(number + 1, None);
        }
        let mut node = Node::Param(number);
        match &given {
            None => {
                if let Some(place) = self.params.get_mut(number) {
                    *place = Some(element.clone().list_of());
                }
            }
            Some(given) if given.is_list && given.kind == element.kind => {}
            Some(_) => node = Node::Cast { operand: Box::new(node), to: element.clone().list_of() },
        }
        let operand = match &operand.kind {
            None => self.coerce(operand, &element)?.node,
            Some(kind) if are_comparable(kind, &element) => operand.node,
            Some(kind) if common(kind, &element).is_none() => return Err(undefined("=", kind, &element)),
            Some(_) => return Err(Failure::Unknown),
        };
        let node = Node::In { operand: Box::new(operand), list: vec![node], negated };
        Ok(Typed::new(node, Type::Boolean.into()))
    }
}

fn list_of(expr: &Expr) -> Result<List> {
    match expr {
        Expr::Nested(inner) => list_of(inner),
        Expr::Array(array) if !array.elem.iter().any(|item| matches!(item, Expr::Array(_))) => {
            Ok(List::Written(array.elem.clone()))
        }
        Expr::Cast { expr, data_type: DataType::Array(of), format: None, .. } => {
            let (ArrayElemTypeDef::SquareBracket(of, _) | ArrayElemTypeDef::AngleBracket(of)) = of else {
                return Err(Failure::Unknown);
            };
            cast(list_of(expr)?, of)
        }
        Expr::Value(value) => match &value.value {
            Value::Placeholder(placeholder) => Ok(List::Parameter(parameter(placeholder)?, None)),
            Value::Null => Ok(List::Written(vec![null()])),
            _ => match string(expr) {
                Some(list) => {
                    let item = |item: Option<String>| item.map_or_else(null, |item| text(&item));
                    Ok(List::Written(items(list)?.into_iter().map(item).collect()))
                }
                None => Err(Failure::Unknown),
            },
        },
        _ => Err(Failure::Unknown),
    }
}

/// Casts the items of a list.
fn cast(list: List, of: &DataType) -> Result<List> {
    Ok(match list {
        List::Written(items) => {
            List::Written(items.into_iter().map(|item| with_type(item, of.clone())).collect())
        }
        List::Parameter(number, None) => {
            let to = column_type(of)?;
            // Casts that can lose digits or characters are left to the general path.
            if to.length.is_some() || to.decimal.is_some() {
                return Err(Failure::Unknown);
            }
            List::Parameter(number, Some(to))
        }
        List::Parameter(..) => return Err(Failure::Unknown),
    })
}

/// Whether values of a type can be compared with items of another type without a conversion.
fn are_comparable(kind: &ColumnType, element: &ColumnType) -> bool {
    let has_order = |kind: &ColumnType| !kind.is_json;
    let is_whole = element.kind.is_integer();
    has_order(kind)
        && has_order(element)
        && (kind.kind == element.kind || is_whole && (kind.kind.is_integer() || kind.kind == Type::Decimal))
}

#[cfg(test)]
mod tests {
    use cairn_vfs::MemFs;
    use cairn_vfs::sync::Arc;

    use crate::Database;
    use crate::executor::Plan;

    /// Goal: lists are looked up in a key or an index, like those of IN. Method: the parts of trees
    /// that statements are planned to read.
    #[test]
    fn lists_are_looked_up() {
        let database = Database::builder().fs(Arc::new(MemFs::new())).open("test.db").unwrap();
        let mut connection = database.connect();
        for sql in [
            "create table t (id int primary key, name text, u uuid, other int, w bigint)",
            "create index by_name on t (name)",
            "create unique index by_u on t (u)",
            "create index by_both on t (other, w)",
        ] {
            connection.execute(sql, &[]).unwrap();
        }
        for (condition, index) in [
            ("id = any($1)", None),
            ("id = any($1::bigint[])", None),
            ("id = any('{1,2}'::int[])", None),
            ("name = any($1)", Some(0)),
            ("name = any(array['a', 'b'])", Some(0)),
            ("u = any($1)", Some(1)),
            ("other = 3 and w = any($1)", Some(2)),
            ("other = any($1) and id > 3", Some(2)),
        ] {
            let statement = connection.prepare(&format!("select id from t where {condition}")).unwrap();
            let planned = statement.planned();
            let Plan::Select(select) = &planned.plan else { panic!("{condition}: {:?}", planned.plan) };
            let access = select.select.access.as_ref().unwrap();
            assert_eq!(access.index, index, "{condition}");
            assert!(access.range.any_of.is_some(), "{condition}: {:?}", access.range);
        }
    }
}
