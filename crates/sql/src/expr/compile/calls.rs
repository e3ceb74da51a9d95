//! Compiles function calls.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::{Compiler, Failure, Result, Typed};
use crate::datum::Datum;
use crate::error::Error;
use crate::expr::functions::{Body, Form};
use crate::expr::{Function, Node, functions};
use crate::sqlstate::UNDEFINED_FUNCTION;
use crate::syntax::build::number;
use crate::syntax::{ident, last_name};
use crate::types::name_of;

/// Returns the arguments of a call with named arguments by position; `None` for other calls, and
/// for functions whose arguments have no names.
///
/// Errors: 42883 for an unknown or repeated name.
pub(crate) fn positional(function: &ast::Function) -> crate::Result<Option<Vec<Expr>>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let is_named = |arg: &FunctionArg| !matches!(arg, FunctionArg::Unnamed(_));
    if !list.args.iter().any(is_named) {
        return Ok(None);
    }
    let Some(names) = functions::argument_names(&last_name(&function.name)) else { return Ok(None) };
    let place_of = |name: &ast::Ident| names.iter().position(|other| *other == ident(name));
    let mut places: Vec<Option<Expr>> = vec![None; names.len()];
    for (at, argument) in list.args.iter().enumerate() {
        let (place, value) = match argument {
            FunctionArg::Unnamed(value) => (Some(at), value),
            FunctionArg::Named { name, arg, .. } => (place_of(name), arg),
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => (place_of(name), arg),
            FunctionArg::ExprNamed { arg, .. } => (None, arg),
        };
        match (place.and_then(|at| places.get_mut(at)), value) {
            (Some(place @ None), FunctionArgExpr::Expr(value)) => *place = Some(value.clone()),
            _ => {
                let message = format!("function {function} does not exist");
                return Err(Error::new(UNDEFINED_FUNCTION, message));
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
        let arguments = arguments.iter().map(|expr| self.compile(expr)).collect::<Result<Vec<_>>>()?;
        self.resolved(name, arguments)
    }

    /// Calls a function by its name.
    fn resolved(&mut self, name: &str, arguments: Vec<Typed>) -> Result<Typed> {
        let kinds: Vec<_> = arguments.iter().map(|typed| typed.kind.clone()).collect();
        let resolved = functions::resolve(name, &kinds).ok_or(Failure::Unknown)?;
        if let Body::Form(form) = resolved.function.body {
            return self.form(form, arguments);
        }
        let converted = arguments.into_iter().zip(&resolved.arguments);
        let converted =
            converted.map(|(typed, kind)| self.coerce(typed, kind)).collect::<Result<Vec<_>>>()?;
        Ok(called(resolved.function, converted))
    }

    /// Compiles a function that is part of the syntax.
    fn form(&mut self, form: Form, arguments: Vec<Typed>) -> Result<Typed> {
        match (form, arguments.as_slice()) {
            (Form::Coalesce, _) => {
                let (nodes, kind) = self.same_type(arguments)?;
                Ok(Typed { node: Node::Coalesce(nodes), kind })
            }
            (Form::Extreme(function), _) => {
                let (nodes, kind) = self.same_type(arguments)?;
                Ok(Typed { node: Node::Call(function, nodes), kind })
            }
            (Form::NullIf, [left, right]) => {
                let (left, right) = self.unify(left.clone(), right.clone(), "=")?;
                Ok(Typed { node: Node::NullIf(Box::new([left.node, right.node])), kind: left.kind })
            }
            (Form::TypeOf, [typed]) => {
                let kind = typed.kind.as_ref().map_or("unknown", name_of).to_owned();
                Ok(Typed::new(Node::Const(Datum::Text(kind)), Type::Text.into()))
            }
            (Form::Operator(operator, symbol), [left, right]) => {
                self.operator(operator, symbol, left.clone(), right.clone())
            }
            (Form::AgeToday, [earlier]) => {
                let today = called(&functions::CURRENT_DATE, Vec::new());
                self.resolved("age", vec![today, earlier.clone()])
            }
            _ => Err(Failure::Unknown),
        }
    }

    pub(super) fn extract(&mut self, field: &str, expr: &Expr) -> Result<Typed> {
        let operand = self.compile(expr)?;
        let kind = operand.kind.as_ref().ok_or(Failure::Unknown)?.kind;
        if !matches!(kind, Type::Date | Type::Time | Type::Timestamp | Type::Interval) {
            return Err(Failure::Unknown);
        }
        let field = Node::Const(Datum::Text(field.to_lowercase()));
        Ok(called(&functions::EXTRACT, vec![Typed::new(field, Type::Text.into()), operand]))
    }
}

/// Returns a call with arguments of the function's types.
fn called(function: &'static Function, arguments: Vec<Typed>) -> Typed {
    let kinds: Vec<ColumnType> = arguments.iter().filter_map(|typed| typed.kind.clone()).collect();
    let nodes = arguments.into_iter().map(|typed| typed.node).collect();
    Typed::new(Node::Call(function, nodes), function.result_type(&kinds))
}
