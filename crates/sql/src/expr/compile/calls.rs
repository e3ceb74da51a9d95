//! Compiles function calls.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::{Compiler, Failure, Result, Typed};
use crate::datum::Datum;
use crate::error::Error;
use crate::expr::node::Operator;
use crate::expr::{Function, Node, builtin};
use crate::sqlstate::UNDEFINED_FUNCTION;
use crate::syntax::build::number;
use crate::syntax::{ident, last_name};
use crate::types::name_of;

/// The names of `make_interval`'s parameters.
const PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// Returns the arguments of a `make_interval` call with named arguments by position; `None` for
/// other calls.
///
/// Errors: 42883 for an unknown or repeated name.
pub(crate) fn positional(function: &ast::Function) -> crate::Result<Option<Vec<Expr>>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let is_named = |arg: &FunctionArg| !matches!(arg, FunctionArg::Unnamed(_));
    if last_name(&function.name) != "make_interval" || !list.args.iter().any(is_named) {
        return Ok(None);
    }
    let mut places: Vec<Option<Expr>> = vec![None; PARTS.len()];
    for (at, argument) in list.args.iter().enumerate() {
        let (place, value) = match argument {
            FunctionArg::Unnamed(value) => (Some(at), value),
            FunctionArg::Named { name, arg, .. } => (PARTS.iter().position(|part| *part == ident(name)), arg),
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
                (PARTS.iter().position(|part| *part == ident(name)), arg)
            }
            FunctionArg::ExprNamed { arg, .. } => (None, arg),
        };
        match (place.and_then(|at| places.get_mut(at)), value) {
            (Some(place @ None), FunctionArgExpr::Expr(value)) => *place = Some(value.clone()),
            _ => {
                let what = format!("function {function} does not exist");
                return Err(Error::new(UNDEFINED_FUNCTION, what));
            }
        }
    }
    Ok(Some(places.into_iter().map(|place| place.unwrap_or_else(|| number(0))).collect()))
}

impl Compiler<'_> {
    pub(super) fn function(&mut self, function: &ast::Function) -> Result<Typed> {
        if function.over.is_some()
            || function.filter.is_some()
            || !function.within_group.is_empty()
            || function.null_treatment.is_some()
        {
            return Err(Failure::Unknown);
        }
        if let [ast::ObjectNamePart::Identifier(schema), _] = function.name.0.as_slice()
            && ident(schema) != "pg_catalog"
        {
            return Err(Failure::Unknown);
        }
        if let Some(positional) = positional(function)? {
            return self.call(&last_name(&function.name), &positional.iter().collect::<Vec<_>>());
        }
        let list = match &function.args {
            FunctionArguments::None => Vec::new(),
            FunctionArguments::List(list)
                if list.duplicate_treatment.is_none() && list.clauses.is_empty() =>
            {
                let plain = |argument| match argument {
                    &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Ok(expr),
                    _ => Err(Failure::Unknown),
                };
                list.args.iter().map(plain).collect::<Result<Vec<_>>>()?
            }
            _ => return Err(Failure::Unknown),
        };
        self.call(&last_name(&function.name), &list)
    }

    pub(super) fn call(&mut self, name: &str, arguments: &[&Expr]) -> Result<Typed> {
        let mut arguments = arguments.iter().map(|expr| self.compile(expr)).collect::<Result<Vec<_>>>()?;
        if name == "age" && arguments.len() == 1 {
            // The age as of midnight today.
            arguments.insert(0, Typed::new(Node::Call(Function::CurrentDate, Vec::new()), Type::Date.into()));
        }
        match (name, arguments.as_slice()) {
            ("coalesce", [_, ..]) => {
                let (nodes, kind) = self.same_type(arguments)?;
                return Ok(Typed { node: Node::Coalesce(nodes), kind });
            }
            ("greatest" | "least", [_, ..]) => {
                let (nodes, kind) = self.same_type(arguments)?;
                let function = if name == "greatest" { Function::Greatest } else { Function::Least };
                return Ok(Typed { node: Node::Call(function, nodes), kind });
            }
            ("nullif", [left, right]) => {
                let (left, right) = self.unify(left.clone(), right.clone(), "=")?;
                return Ok(Typed { node: Node::NullIf(Box::new([left.node, right.node])), kind: left.kind });
            }
            ("pg_typeof", [typed]) => {
                let kind = typed.kind.as_ref().map_or("unknown", name_of).to_owned();
                return Ok(Typed::new(Node::Const(Datum::Text(kind)), Type::Text.into()));
            }
            ("mod", [left, right]) => {
                return self.operator(Operator::Modulo, "%", left.clone(), right.clone());
            }
            ("power" | "pow", [left, right]) => {
                return self.operator(Operator::Power, "^", left.clone(), right.clone());
            }
            _ => {}
        }
        let kinds: Vec<_> = arguments.iter().map(|typed| typed.kind.clone()).collect();
        let signature = builtin::resolve(name, &kinds).ok_or(Failure::Unknown)?;
        let arguments = arguments.into_iter().zip(&signature.arguments);
        let nodes =
            arguments.map(|(typed, kind)| Ok(self.coerce(typed, kind)?.node)).collect::<Result<_>>()?;
        Ok(Typed::new(Node::Call(signature.function, nodes), signature.result))
    }

    pub(super) fn extract(&mut self, field: &str, expr: &Expr) -> Result<Typed> {
        let operand = self.compile(expr)?;
        let kind = operand.kind.as_ref().ok_or(Failure::Unknown)?.kind;
        if !matches!(kind, Type::Date | Type::Time | Type::Timestamp | Type::Interval) {
            return Err(Failure::Unknown);
        }
        let field = Node::Const(Datum::Text(field.to_lowercase()));
        Ok(Typed::new(Node::Call(Function::Extract, vec![field, operand.node]), ColumnType::decimal(38, 6)))
    }
}
