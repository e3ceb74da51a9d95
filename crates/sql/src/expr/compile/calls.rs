//! Functions.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use datafusion::sql::sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::{Compiler, Failure, Result, Typed};
use crate::datum::Datum;
use crate::expr::node::Operator;
use crate::expr::{Function, Node, builtin};
use crate::syntax::{ident, last_name};
use crate::types::name_of;

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
            // Up to today's midnight.
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
