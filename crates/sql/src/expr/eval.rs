//! Evaluates expressions.

use cairn_table::RowRef;
use cairn_table::row::{Make, Value};

use super::functions::Function;
use super::node::{LEVELS, Node};
use super::operator::Comparison;
use super::value::{Context, Val};
use super::{arithmetic, cast, like, logic};
use crate::datum::{Datum, DatumRef};
use crate::error::Result;
use crate::syntax::deeper;

/// The values of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cells<'a> {
    None,
    Row(RowRef<'a>),
    Values(&'a [Value<'a>]),
}

impl<'a> Cells<'a> {
    #[inline]
    pub fn get(&self, column: usize) -> Value<'a> {
        match self {
            Cells::None => Value::Null,
            Cells::Row(row) => row.get(column),
            Cells::Values(values) => values.get(column).copied().unwrap_or(Value::Null),
        }
    }

    /// Like [`Cells::get`], but converts the value as it is read.
    #[inline]
    fn get_as<M: Make<'a>>(&self, column: usize, make: M) -> M::Made {
        match self {
            Cells::Row(row) => row.get_as(column, make),
            Cells::None | Cells::Values(_) => make.make(self.get(column)),
        }
    }
}

/// Converts values as they are read from a column of this scale.
#[derive(Debug, Clone, Copy)]
struct AsVal {
    scale: u8,
}

impl<'a> Make<'a> for AsVal {
    type Made = Result<Val<'a>>;

    #[inline(always)]
    fn make(self, value: Value<'a>) -> Result<Val<'a>> {
        Ok(Val::Ref(DatumRef::from_value(value, self.scale)))
    }

    #[inline(always)]
    fn absent(self) -> Result<Val<'a>> {
        Ok(Val::NULL)
    }
}

/// The input of an expression.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Env<'a> {
    pub row: Cells<'a>,
    /// The row proposed for insertion. Its slots follow those of `row`, of which there are `width`.
    pub excluded: Cells<'a>,
    pub width: usize,
    pub params: &'a [Datum],
    pub context: &'a dyn Context,
}

impl<'a> Env<'a> {
    pub fn new(row: Cells<'a>, params: &'a [Datum], context: &'a dyn Context) -> Self {
        Env { row, excluded: Cells::None, width: usize::MAX, params, context }
    }
}

impl Node {
    /// Evaluates the expression.
    ///
    /// Errors: overflow, division by zero, texts that are invalid for the requested type.
    pub fn eval<'a>(&'a self, env: &Env<'a>) -> Result<Val<'a>> {
        Ok(match self {
            Node::Const(datum) => datum.borrow().into(),
            Node::Slot { slot, scale } => {
                let make = AsVal { scale: *scale };
                return match slot.checked_sub(env.width) {
                    None => env.row.get_as(*slot, make),
                    Some(slot) => env.excluded.get_as(slot, make),
                };
            }
            Node::Param(param) => env.params.get(*param).map_or(DatumRef::Null, Datum::borrow).into(),
            Node::Not(operand) => Val::boolean(operand.eval(env)?.truth().map(|truth| !truth)),
            Node::And(all) => Val::boolean(logic::all(all, env)?),
            Node::Or(any) => Val::boolean(logic::any(any, env)?),
            Node::Compare(comparison, pair) => {
                let [left, right] = &**pair;
                Val::boolean(comparison.of(left.eval(env)?.get(), right.eval(env)?.get()))
            }
            Node::Distinct { pair, negated } => {
                let [left, right] = &**pair;
                let distinct = logic::is_distinct(left.eval(env)?.get(), right.eval(env)?.get());
                Val::boolean(Some(distinct != *negated))
            }
            Node::IsNull { operand, negated } => Val::boolean(Some(operand.eval(env)?.is_null() != *negated)),
            Node::IsTruth { operand, truth, negated } => {
                Val::boolean(Some((operand.eval(env)?.truth() == Some(*truth)) != *negated))
            }
            Node::Binary(operator, pair) => {
                let [left, right] = &**pair;
                let (left, right) = (left.eval(env)?, right.eval(env)?);
                if left.is_null() || right.is_null() {
                    return Ok(Val::NULL);
                }
                arithmetic::binary(*operator, left.get(), right.get())?.into()
            }
            Node::Negate(operand) => arithmetic::negate(operand.eval(env)?.get())?.into(),
            Node::Cast { operand, to } => match operand.eval(env)? {
                Val::Ref(datum) => cast::cast(datum, to)?,
                Val::Own(datum) => cast::cast(datum.borrow(), to)?.into_datum().into(),
            },
            Node::Case { whens, otherwise } => {
                for (when, then) in whens {
                    if when.eval(env)?.truth() == Some(true) {
                        return then.eval(env);
                    }
                }
                return otherwise.as_ref().map_or(Ok(Val::NULL), |otherwise| otherwise.eval(env));
            }
            Node::Coalesce(all) => {
                for node in all {
                    let value = node.eval(env)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Val::NULL
            }
            Node::NullIf(pair) => {
                let [left, right] = &**pair;
                let left = left.eval(env)?;
                let equal = Comparison::Equal.of(left.get(), right.eval(env)?.get()) == Some(true);
                if equal { Val::NULL } else { left }
            }
            Node::In { operand, list, negated } => {
                Val::boolean(logic::is_in(operand, list, env)?.map(|is_in| is_in != *negated))
            }
            Node::Like { pair, escape, insensitive, negated } => {
                let [text, pattern] = &**pair;
                let (text, pattern) = (text.eval(env)?, pattern.eval(env)?);
                if text.is_null() || pattern.is_null() {
                    return Ok(Val::NULL);
                }
                let matches = like::like(&text.text(), &pattern.text(), *escape, *insensitive)?;
                Val::boolean(Some(matches != *negated))
            }
            Node::Call(function, arguments) => return call(function, arguments, env),
            Node::Deep(inner) => return deeper(LEVELS, || inner.eval(env)),
        })
    }

    /// Whether the condition holds. NULL does not.
    pub fn holds(&self, env: &Env<'_>) -> Result<bool> {
        Ok(self.eval(env)?.truth() == Some(true))
    }
}

fn call<'a>(function: &Function, arguments: &'a [Node], env: &Env<'a>) -> Result<Val<'a>> {
    let mut values: [Val<'a>; 4] = [Val::NULL, Val::NULL, Val::NULL, Val::NULL];
    if arguments.len() > values.len() {
        let values = arguments.iter().map(|argument| argument.eval(env)).collect::<Result<Vec<_>>>()?;
        if function.is_strict && values.iter().any(Val::is_null) {
            return Ok(Val::NULL);
        }
        return function.call(&values, env.context).map(Val::Own);
    }
    for (place, argument) in values.iter_mut().zip(arguments) {
        *place = argument.eval(env)?;
    }
    let values = values.get(..arguments.len()).unwrap_or_default();
    if function.is_strict && values.iter().any(Val::is_null) {
        return Ok(Val::NULL);
    }
    function.call(values, env.context).map(Val::Own)
}
