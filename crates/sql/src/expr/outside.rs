//! Functions, operators and casts of this evaluator for the general path, where DataFusion's differ
//! from PostgreSQL's.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::builtin;
use super::compile::converted;
use super::node::Operator;
use super::{Analytic, Cells, Compiler, Env, Function, NoContext, Node, Scope, Typed, Val};
use crate::datum::Datum;
use crate::error::Result;
use crate::types::name_of;

/// Returns the scale of the numbers that `to_number` returns for a pattern.
pub(crate) fn scale_of_pattern(pattern: &str) -> Option<u8> {
    super::pattern::scale_of(pattern)
}

/// An operation on values of known types.
#[derive(Debug, Clone)]
pub(crate) struct Deed {
    /// The values are its parameters.
    node: Node,
    pub result: ColumnType,
}

impl Deed {
    /// Returns the function for a call with arguments of these types; `None` if there is none. The
    /// type of NULL is `None`.
    pub fn function(name: &str, kinds: &[Option<ColumnType>]) -> Option<Deed> {
        if let ("pg_typeof", [kind]) = (name, kinds) {
            let kind = kind.as_ref().map_or("unknown", name_of).to_owned();
            return Some(Deed { node: Node::Const(Datum::Text(kind)), result: Type::Text.into() });
        }
        if let ("power" | "pow", [left, right]) = (name, kinds) {
            let double: ColumnType = Type::Double.into();
            let kind = |kind: &Option<ColumnType>| kind.clone().unwrap_or_else(|| double.clone());
            return Deed::operator(Operator::Power, &kind(left), &kind(right));
        }
        // DataFusion types integers as bigint where their actual type may be smaller.
        let narrow = |kind: &Option<ColumnType>| match kind {
            Some(kind) if kind.kind == Type::BigInt => Some(Type::Int.into()),
            other => other.clone(),
        };
        let signature = builtin::resolve(name, kinds)
            .or_else(|| builtin::resolve(name, &kinds.iter().map(narrow).collect::<Vec<_>>()))?;
        let (scope, mut params) = (Scope::default(), kinds.to_vec());
        let mut compiler = Compiler::new(&scope, &mut params);
        let given = kinds.iter().enumerate().zip(&signature.arguments);
        let arguments = given.map(|((at, kind), to)| {
            // An untyped argument is a text, or NULL.
            if kind.is_none() && to.kind != Type::Text {
                let operand = Box::new(Node::Param(at));
                return Some(Node::Cast { operand, to: to.clone() });
            }
            compiler.coerced(Typed { node: Node::Param(at), kind: kind.clone() }, to).ok()
        });
        let node = Node::Call(signature.function, arguments.collect::<Option<Vec<_>>>()?);
        Some(Deed { node, result: signature.result })
    }

    /// Returns the operator for values of two types; `None` if there is none.
    pub fn operator(operator: Operator, left: &ColumnType, right: &ColumnType) -> Option<Deed> {
        let (scope, mut params) = (Scope::default(), vec![Some(left.clone()), Some(right.clone())]);
        let mut compiler = Compiler::new(&scope, &mut params);
        let (left, right) =
            (Typed::new(Node::Param(0), left.clone()), Typed::new(Node::Param(1), right.clone()));
        let typed = compiler.operator(operator, "", left, right).ok()?;
        Some(Deed { node: typed.node, result: typed.kind? })
    }

    /// Returns the cast.
    pub fn cast(from: &ColumnType, to: &ColumnType) -> Deed {
        Deed { node: converted(Node::Param(0), from, to), result: to.clone() }
    }

    /// Returns the function, if it is a function of one double, applied to its only argument.
    pub fn analytic(&self) -> Option<Analytic> {
        match &self.node {
            Node::Call(Function::Analytic(function), arguments) => {
                matches!(arguments.as_slice(), [Node::Param(0)]).then_some(*function)
            }
            _ => None,
        }
    }

    /// Applies the operation to values. It handles NULL itself.
    ///
    /// Errors: those of the function.
    pub fn of(&self, values: &[Datum]) -> Result<Datum> {
        self.node.eval(&Env::new(Cells::None, values, &NoContext)).map(Val::into_datum)
    }
}
