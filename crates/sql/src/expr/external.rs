//! Functions, operators and casts of this evaluator for the general path, where DataFusion's differ
//! from PostgreSQL's.

use arrow::array::ArrayRef;
use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::compile::converted;
use super::functions::{self, Body, Form, Input, Resolved};
use super::operator::Operator;
use super::{Cells, Compiler, Env, NoContext, Node, Scope, Typed, Val};
use crate::datum::Datum;
use crate::error::Result;
use crate::types::name_of;

/// Returns the scale of the numbers that `to_number` returns for a pattern.
pub(crate) fn scale_of_pattern(pattern: &str) -> Option<u8> {
    super::pattern::scale_of(pattern)
}

/// An operation on values of known types.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// The values are its parameters.
    node: Node,
    pub result: ColumnType,
}

impl Operation {
    /// Returns the function for a call with arguments of these types; `None` if there is none. The
    /// type of NULL and of untyped literals is `None`.
    pub fn function(name: &str, kinds: &[Option<ColumnType>]) -> Option<Operation> {
        // DataFusion types integers as bigint where their actual type may be smaller.
        let narrow = |kind: &Option<ColumnType>| match kind {
            Some(kind) if kind.kind == Type::BigInt => Some(Type::Int.into()),
            other => other.clone(),
        };
        let resolved = functions::resolve(name, kinds)
            .or_else(|| functions::resolve(name, &kinds.iter().map(narrow).collect::<Vec<_>>()))?;
        match (resolved.function.body, kinds) {
            (Body::Form(Form::TypeOf), [kind]) => {
                let kind = kind.as_ref().map_or("unknown", name_of).to_owned();
                Some(Operation { node: Node::Const(Datum::Text(kind)), result: Type::Text.into() })
            }
            (Body::Form(Form::Operator(operator, _)), [_, _]) => {
                let kind =
                    |at: usize| kinds.get(at).cloned().flatten().or(resolved.arguments.get(at).cloned());
                Operation::operator(operator, &kind(0)?, &kind(1)?)
            }
            (Body::Form(_), _) => None,
            _ => Operation::call(&resolved, kinds),
        }
    }

    fn call(resolved: &Resolved, kinds: &[Option<ColumnType>]) -> Option<Operation> {
        let (scope, mut params) = (Scope::default(), kinds.to_vec());
        let mut compiler = Compiler::new(&scope, &mut params);
        let given = kinds.iter().enumerate().zip(&resolved.arguments);
        let arguments = given.map(|((at, kind), to)| {
            // An untyped argument is a text, or NULL.
            if kind.is_none() && to.kind != Type::Text {
                // The digits of the result depend on those of the argument, which are not known.
                if to.kind == Type::Decimal && resolved.function.is_refined() {
                    return None;
                }
                let operand = Box::new(Node::Param(at));
                // A numeric keeps the digits that it is written with.
                let mut open = to.clone();
                open.decimal = None;
                return Some(Node::Cast { operand, to: open });
            }
            compiler.coerced(Typed { node: Node::Param(at), kind: kind.clone() }, to).ok()
        });
        let node = Node::Call(resolved.function, arguments.collect::<Option<Vec<_>>>()?);
        Some(Operation { node, result: resolved.function.result_type(&resolved.arguments) })
    }

    /// Returns the operator for values of two types; `None` if there is none.
    pub fn operator(operator: Operator, left: &ColumnType, right: &ColumnType) -> Option<Operation> {
        let (scope, mut params) = (Scope::default(), vec![Some(left.clone()), Some(right.clone())]);
        let mut compiler = Compiler::new(&scope, &mut params);
        let (left, right) =
            (Typed::new(Node::Param(0), left.clone()), Typed::new(Node::Param(1), right.clone()));
        let typed = compiler.operator(operator, "", left, right).ok()?;
        Some(Operation { node: typed.node, result: typed.kind? })
    }

    /// Returns the cast.
    pub fn cast(from: &ColumnType, to: &ColumnType) -> Operation {
        Operation { node: converted(Node::Param(0), from, to), result: to.clone() }
    }

    /// Computes a column of results from the arguments of a call, if the function has a way to do
    /// so and none of them is converted.
    ///
    /// Errors: those of the function.
    pub fn column(&self, inputs: &[Input<'_>]) -> Result<Option<ArrayRef>> {
        let Node::Call(function, arguments) = &self.node else { return Ok(None) };
        let is_given = |(at, node): (usize, &Node)| matches!(node, Node::Param(number) if *number == at);
        match arguments.iter().enumerate().all(is_given) {
            true => function.column(inputs),
            false => Ok(None),
        }
    }

    /// Applies the operation to values. It handles NULL itself.
    ///
    /// Errors: those of the function.
    pub fn of(&self, values: &[Datum]) -> Result<Datum> {
        self.node.eval(&Env::new(Cells::None, values, &NoContext)).map(Val::into_datum)
    }
}
