//! Compiles syntax trees to expressions.

mod calls;
mod casts;
mod constant;
mod lists;
mod predicates;

pub(crate) use calls::positional;
pub(crate) use constant::NoContext;

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;
use sqlparser::ast::{self, BinaryOperator, Expr, TrimWhereField, UnaryOperator, Value};

use crate::expr::cast::rank;
use crate::expr::literal::{literal, parameter};
use crate::expr::operator::Operator;
use crate::expr::{Comparison, Node, Scope, functions, is_assignable};
use constant::fold;

use crate::datum::{Datum, DatumRef, kept, typed_interval};
use crate::error::Error;
use crate::sqlstate::{DATATYPE_MISMATCH, UNDEFINED_FUNCTION};
use crate::syntax::{column_type, deeper, ident};
use crate::types::name_of;

/// The reason why an expression was not compiled.
#[derive(Debug)]
pub(crate) enum Failure {
    /// This compiler does not support it; the general path may.
    Unknown,
    /// It is an error on any path.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

type Result<T, E = Failure> = std::result::Result<T, E>;

/// A compiled expression and its type; `None` for untyped literals, NULL and parameters without a
/// type.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub node: Node,
    pub kind: Option<ColumnType>,
}

impl Typed {
    pub fn new(node: Node, kind: ColumnType) -> Self {
        Typed { node, kind: Some(kind) }
    }

    pub fn unknown(node: Node) -> Self {
        Typed { node, kind: None }
    }
}

/// The scale of a result that depends on a parameter's digits.
const OPEN_SCALE: u8 = 10;

/// Compiles expressions over the columns of a scope. Inferred types of parameters are stored in
/// `params`.
#[derive(Debug)]
pub(crate) struct Compiler<'a> {
    pub scope: &'a Scope,
    pub params: &'a mut Vec<Option<ColumnType>>,
}

/// Converts a node to another type. The text of a timestamp with a time zone includes the zone.
pub(in crate::expr) fn converted(node: Node, from: &ColumnType, to: &ColumnType) -> Node {
    // A list of such timestamps already is text.
    let operand = match from.is_zoned && from.kind == Type::Timestamp && to.kind == Type::Text {
        true => Node::Call(&functions::TIMESTAMPTZ_TEXT, vec![node]),
        false => node,
    };
    Node::Cast { operand: Box::new(operand), to: to.clone() }
}

/// Returns the value of an INTERVAL literal with its qualifiers; `None` for forms that are not
/// literals.
///
/// Errors: the quoted text is not an interval.
pub(crate) fn interval_literal(interval: &ast::Interval) -> crate::Result<Option<Datum>> {
    let Expr::Value(value) = &*interval.value else { return Ok(None) };
    let (Value::SingleQuotedString(text) | Value::Number(text, _)) = &value.value else { return Ok(None) };
    let name = |field: &ast::DateTimeField| field.to_string();
    let (first, last) = (interval.leading_field.as_ref().map(name), interval.last_field.as_ref().map(name));
    let precision = interval.fractional_seconds_precision.or(interval.leading_precision);
    typed_interval(text, first.as_deref(), last.as_deref(), precision).map(Some)
}

/// Whether an expression is a literal number.
fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(_) => true,
        Expr::Nested(inner) => is_literal(inner),
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => is_literal(expr),
        _ => false,
    }
}

impl<'a> Compiler<'a> {
    pub fn new(scope: &'a Scope, params: &'a mut Vec<Option<ColumnType>>) -> Self {
        Compiler { scope, params }
    }

    /// Compiles a condition.
    pub fn condition(&mut self, expr: &Expr) -> Result<Node> {
        let typed = self.compile(expr)?;
        self.as_boolean(typed, "WHERE")
    }

    /// Compiles an expression that is assigned to a column.
    pub fn assignment(&mut self, expr: &Expr, column: &str, to: &ColumnType) -> Result<Node> {
        let typed = self.compile(expr)?;
        let Some(from) = &typed.kind else { return Ok(fold(self.coerce_unbounded(typed, to)?)) };
        if !is_assignable(from, to) {
            let what = format!(
                "column \"{column}\" is of type {} but expression is of type {}",
                name_of(to),
                name_of(from)
            );
            return Err(Error::new(DATATYPE_MISMATCH, what)
                .with_hint("You will need to rewrite or cast the expression.")
                .into());
        }
        if let (Node::Const(Datum::Decimal { unscaled, scale }), Some(digits), true) =
            (&typed.node, to.decimal, is_literal(expr))
        {
            kept(*unscaled, *scale, digits)?;
        }
        // Numbers and times are converted at insertion. Only here it is known whether a timestamp
        // has a time zone.
        Ok(match from.is_zoned && to.kind == Type::Text {
            true => converted(typed.node, from, &Type::Text.into()),
            false => typed.node,
        })
    }

    /// Compiles any expression.
    pub fn compile(&mut self, expr: &Expr) -> Result<Typed> {
        // A check or a default may be nested deeper than the statement that it is compiled for,
        // which the stack was sized for.
        let typed = deeper(0, || self.any(expr))?;
        Ok(Typed { node: fold(typed.node).with_care(), kind: typed.kind })
    }

    /// Compiles an expression for a result column. An expression without a type becomes text.
    pub fn output(&mut self, expr: &Expr) -> Result<(Node, ColumnType)> {
        let typed = self.compile(expr)?;
        match typed.kind {
            Some(kind) => Ok((typed.node, kind)),
            None => {
                let typed = self.coerce(typed, &Type::Text.into())?;
                Ok((typed.node, Type::Text.into()))
            }
        }
    }

    /// Converts an expression to this type.
    pub fn coerced(&mut self, typed: Typed, to: &ColumnType) -> Result<Node> {
        Ok(self.coerce(typed, to)?.node)
    }

    fn any(&mut self, expr: &Expr) -> Result<Typed> {
        match expr {
            Expr::Nested(inner) => self.compile(inner),
            Expr::Identifier(name) => self.column(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(names) => self.column(names),
            Expr::Value(value) => match &value.value {
                Value::Placeholder(placeholder) => self.parameter(placeholder),
                other => literal(other),
            },
            Expr::TypedString(typed) => {
                let Value::SingleQuotedString(text) = &typed.value.value else {
                    return Err(Failure::Unknown);
                };
                let kind = column_type(&typed.data_type)?;
                let value = super::cast(DatumRef::Text(text), &kind)?.into_datum();
                Ok(Typed::new(Node::Const(value), kind))
            }
            Expr::Interval(interval) => self.interval(interval),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::IsNull(operand) => self.is_null(operand, false),
            Expr::IsNotNull(operand) => self.is_null(operand, true),
            Expr::IsTrue(operand) => self.is_truth(operand, true, false),
            Expr::IsNotTrue(operand) => self.is_truth(operand, true, true),
            Expr::IsFalse(operand) => self.is_truth(operand, false, false),
            Expr::IsNotFalse(operand) => self.is_truth(operand, false, true),
            Expr::IsUnknown(operand) => self.is_null(operand, false),
            Expr::IsNotUnknown(operand) => self.is_null(operand, true),
            Expr::IsDistinctFrom(left, right) => self.distinct(left, right, false),
            Expr::IsNotDistinctFrom(left, right) => self.distinct(left, right, true),
            Expr::Between { expr, negated, low, high } => self.between(expr, *negated, low, high),
            Expr::InList { expr, list, negated } => self.in_list(expr, list, *negated),
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => self.among(left, right, false),
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => self.among(left, right, true),
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), false, *negated)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char } => {
                self.like(expr, pattern, escape_char.as_ref(), true, *negated)
            }
            Expr::Cast {
                kind: ast::CastKind::Cast | ast::CastKind::DoubleColon,
                expr,
                data_type,
                array: false,
                format: None,
            } => self.cast(expr, data_type),
            Expr::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Expr::Function(function) => self.function(function),
            Expr::Extract { field, expr, .. } => self.extract(&field.to_string(), expr),
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let one = Expr::Value(Value::Number("1".to_owned(), false).into());
                let from = substring_from.as_deref().unwrap_or(&one);
                let arguments = [Some(&**expr), Some(from), substring_for.as_deref()];
                self.call("substring", &arguments.into_iter().flatten().collect::<Vec<_>>())
            }
            Expr::Position { expr, r#in } => self.call("strpos", &[r#in, expr]),
            Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let arguments =
                    [Some(&**expr), Some(&**overlay_what), Some(&**overlay_from), overlay_for.as_deref()];
                self.call("overlay", &arguments.into_iter().flatten().collect::<Vec<_>>())
            }
            Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
                let name = match trim_where {
                    Some(TrimWhereField::Leading) => "ltrim",
                    Some(TrimWhereField::Trailing) => "rtrim",
                    _ => "btrim",
                };
                let arguments = [Some(&**expr), trim_what.as_deref()];
                self.call(name, &arguments.into_iter().flatten().collect::<Vec<_>>())
            }
            Expr::Ceil { expr, field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime) } => {
                self.call("ceil", &[expr])
            }
            Expr::Floor {
                expr,
                field: ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime),
            } => self.call("floor", &[expr]),
            _ => Err(Failure::Unknown),
        }
    }

    fn column(&mut self, names: &[ast::Ident]) -> Result<Typed> {
        let names: Vec<String> = names.iter().map(ident).collect();
        let column = self.scope.find(&names)?;
        let scale = column.kind.decimal.map_or(0, |(_, scale)| scale);
        Ok(Typed::new(Node::Slot { slot: column.slot, scale }, column.kind.clone()))
    }

    fn parameter(&mut self, placeholder: &str) -> Result<Typed> {
        let number = parameter(placeholder)?;
        if self.params.len() <= number {
            self.params.resize(number + 1, None);
        }
        let kind = self.params.get(number).cloned().flatten();
        // List parameters are supported in ANY and ALL only.
        if kind.as_ref().is_some_and(|kind| kind.is_list) {
            return Err(Failure::Unknown);
        }
        Ok(Typed { node: Node::Param(number), kind })
    }

    /// Converts an expression implicitly. One without a type takes this one.
    pub(super) fn coerce(&mut self, typed: Typed, to: &ColumnType) -> Result<Typed> {
        let node = match &typed.kind {
            None if to.kind == Type::Decimal => return self.open_decimal(typed, to),
            None => self.coerce_unbounded(typed, to)?,
            Some(from)
                if from.kind == to.kind && (from.kind != Type::Decimal || from.decimal == to.decimal) =>
            {
                typed.node
            }
            Some(from) => fold(converted(typed.node, from, to)),
        };
        Ok(Typed::new(node, to.clone()))
    }

    /// Types an untyped literal or parameter next to a decimal. It keeps its own digits.
    fn open_decimal(&mut self, typed: Typed, beside: &ColumnType) -> Result<Typed> {
        let mut open = ColumnType::new(Type::Decimal);
        open.decimal = None;
        let node = self.coerce_unbounded(typed, &open)?;
        let scale = beside.decimal.map_or(0, |(_, scale)| scale);
        let scale = match &node {
            Node::Const(Datum::Decimal { scale, .. }) => *scale,
            Node::Param(_) => scale.max(OPEN_SCALE),
            _ => scale,
        };
        Ok(Typed::new(node, ColumnType::decimal(38, scale)))
    }

    /// Types an untyped literal or parameter as `to`. The type's length is ignored, as is the
    /// precision of a parameter.
    fn coerce_unbounded(&mut self, typed: Typed, to: &ColumnType) -> Result<Node> {
        Ok(match typed.node {
            Node::Const(Datum::Text(text)) => Node::Const(Datum::parse(&text, to)?),
            Node::Param(number) => {
                if let Some(kind @ None) = self.params.get_mut(number) {
                    let mut open = to.clone();
                    (open.length, open.decimal) = (None, None);
                    *kind = Some(open);
                }
                Node::Param(number)
            }
            // CASE and the like, whose results are all untyped.
            node @ (Node::Const(_) | Node::Cast { .. }) => node,
            node => Node::Cast { operand: Box::new(node), to: to.clone() },
        })
    }

    fn as_boolean(&mut self, typed: Typed, place: &str) -> Result<Node> {
        match &typed.kind {
            Some(kind) if kind.kind != Type::Boolean => {
                let what = format!("argument of {place} must be type boolean, not type {}", name_of(kind));
                Err(Error::new(DATATYPE_MISMATCH, what).into())
            }
            _ => Ok(self.coerce(typed, &Type::Boolean.into())?.node),
        }
    }

    fn boolean(&mut self, expr: &Expr, place: &str) -> Result<Node> {
        let typed = self.compile(expr)?;
        self.as_boolean(typed, place)
    }

    fn interval(&mut self, interval: &ast::Interval) -> Result<Typed> {
        match interval_literal(interval)? {
            Some(value) => Ok(Typed::new(Node::Const(value), Type::Interval.into())),
            None => Err(Failure::Unknown),
        }
    }

    fn unary(&mut self, op: UnaryOperator, expr: &Expr) -> Result<Typed> {
        match op {
            UnaryOperator::Not => {
                let operand = self.boolean(expr, "NOT")?;
                Ok(Typed::new(Node::Not(Box::new(operand)), Type::Boolean.into()))
            }
            UnaryOperator::Minus => {
                // The least number of a type has no positive counterpart.
                if let Expr::Value(value) = expr
                    && let Value::Number(digits, _) = &value.value
                {
                    return literal(&Value::Number(format!("-{digits}"), false));
                }
                let typed = self.compile(expr)?;
                let kind = typed.kind.clone().ok_or(Failure::Unknown)?;
                if rank(kind.kind).is_none() && kind.kind != Type::Interval {
                    let what = format!("operator does not exist: - {}", name_of(&kind));
                    return Err(Error::new(UNDEFINED_FUNCTION, what).into());
                }
                Ok(Typed::new(Node::Negate(Box::new(typed.node)), kind))
            }
            UnaryOperator::BitwiseNot => {
                let typed = self.compile(expr)?;
                let ones = match typed.kind.as_ref().map(|kind| kind.kind) {
                    Some(Type::SmallInt) => Datum::SmallInt(-1),
                    Some(Type::Int) => Datum::Int(-1),
                    Some(Type::BigInt) => Datum::BigInt(-1),
                    _ => return Err(Failure::Unknown),
                };
                let pair = Box::new([typed.node, Node::Const(ones)]);
                Ok(Typed { node: Node::Binary(Operator::BitXor, pair), kind: typed.kind })
            }
            UnaryOperator::PGSquareRoot => self.call("sqrt", &[expr]),
            UnaryOperator::PGCubeRoot => self.call("cbrt", &[expr]),
            UnaryOperator::PGAbs => self.call("abs", &[expr]),
            UnaryOperator::Plus => {
                let typed = self.compile(expr)?;
                let numeric = typed.kind.as_ref().is_some_and(|kind| rank(kind.kind).is_some());
                if numeric { Ok(typed) } else { Err(Failure::Unknown) }
            }
            _ => Err(Failure::Unknown),
        }
    }

    fn binary(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Typed> {
        use BinaryOperator as B;
        let comparison = match op {
            B::Eq => Some(Comparison::Equal),
            B::NotEq => Some(Comparison::NotEqual),
            B::Lt => Some(Comparison::Less),
            B::LtEq => Some(Comparison::LessOrEqual),
            B::Gt => Some(Comparison::Greater),
            B::GtEq => Some(Comparison::GreaterOrEqual),
            _ => None,
        };
        if let Some(comparison) = comparison {
            let (left, right) = (self.compile(left)?, self.compile(right)?);
            return self.comparison(comparison, &op.to_string(), left, right);
        }
        let matched = match op {
            B::PGRegexMatch => Some((false, false)),
            B::PGRegexIMatch => Some((true, false)),
            B::PGRegexNotMatch => Some((false, true)),
            B::PGRegexNotIMatch => Some((true, true)),
            _ => None,
        };
        if let Some((insensitive, negated)) = matched {
            let (left, right) = (self.compile(left)?, self.compile(right)?);
            let fits = |typed: &Typed| {
                typed.kind.as_ref().is_none_or(|kind| kind.kind == Type::Text && !kind.is_list)
            };
            if !fits(&left) || !fits(&right) {
                return Err(Failure::Unknown);
            }
            let text = Type::Text.into();
            let nodes = vec![self.coerce(left, &text)?.node, self.coerce(right, &text)?.node];
            let function = functions::regular_match(insensitive, negated);
            return Ok(Typed::new(Node::Call(function, nodes), Type::Boolean.into()));
        }
        let operator = match op {
            B::And => {
                let (left, right) = (self.boolean(left, "AND")?, self.boolean(right, "AND")?);
                let mut all = match left {
                    Node::And(all) => all,
                    left => vec![left],
                };
                all.push(right);
                return Ok(Typed::new(Node::And(all), Type::Boolean.into()));
            }
            B::Or => {
                let (left, right) = (self.boolean(left, "OR")?, self.boolean(right, "OR")?);
                let mut any = match left {
                    Node::Or(any) => any,
                    left => vec![left],
                };
                any.push(right);
                return Ok(Typed::new(Node::Or(any), Type::Boolean.into()));
            }
            B::Plus => Operator::Add,
            B::Minus => Operator::Subtract,
            B::Multiply => Operator::Multiply,
            B::Divide => Operator::Divide,
            B::Modulo => Operator::Modulo,
            B::StringConcat => Operator::Concat,
            B::BitwiseAnd => Operator::BitAnd,
            B::BitwiseOr => Operator::BitOr,
            B::PGBitwiseXor => Operator::BitXor,
            B::PGBitwiseShiftLeft => Operator::ShiftLeft,
            B::PGBitwiseShiftRight => Operator::ShiftRight,
            B::PGExp => Operator::Power,
            _ => return Err(Failure::Unknown),
        };
        let (left, right) = (self.compile(left)?, self.compile(right)?);
        self.operator(operator, &op.to_string(), left, right)
    }

    pub(super) fn comparison(
        &mut self,
        comparison: Comparison,
        symbol: &str,
        left: Typed,
        right: Typed,
    ) -> Result<Typed> {
        let (left, right) = self.unify(left, right, symbol)?;
        let json = |typed: &Typed| typed.kind.as_ref().is_some_and(|kind| kind.is_json);
        if json(&left) && json(&right) {
            return Err(Failure::Unknown);
        }
        let node = Node::Compare(comparison, Box::new([left.node, right.node]));
        Ok(Typed::new(node, Type::Boolean.into()))
    }
}
