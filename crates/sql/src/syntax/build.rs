//! Constructors for parts of syntax trees.

use sqlparser::ast::{
    CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, TableFactor, Value,
};

pub(crate) fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

pub(crate) fn number(value: i64) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).into())
}

pub(crate) fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).into())
}

/// Returns a function call.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let args = arguments.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Returns a cast to another type.
pub(crate) fn with_type(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

pub(crate) fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// Moves an expression out, and leaves NULL.
pub(crate) fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, null())
}

/// Returns the text of a string literal.
pub(crate) fn string(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Moves a table factor out, and leaves a placeholder that the caller replaces.
pub(crate) fn take_factor(factor: &mut TableFactor) -> TableFactor {
    let nothing = TableFactor::TableFunction { expr: null(), alias: None };
    std::mem::replace(factor, nothing)
}
