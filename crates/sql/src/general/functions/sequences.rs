//! `nextval` and similar functions on the general path, and the clock. They run on the threads of
//! the query, but act on the session.

use arrow::datatypes::DataType;
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use crate::general::errors::external;
use crate::general::functions::{RowFunction, text_of};
use crate::pg_catalog::World;
use crate::runtime::Shared;
use crate::runtime::sequence::SessionSequences;
use crate::session::Session;

/// The state that the functions work on.
#[derive(Debug, Clone)]
pub(crate) struct Counting {
    shared: Arc<Shared>,
    sequences: Arc<SessionSequences>,
    /// The schema of unqualified names.
    schema: String,
}

impl Counting {
    pub fn of(session: &Session) -> Self {
        Counting {
            shared: Arc::clone(&session.shared),
            sequences: Arc::clone(&session.context.sequences),
            schema: session.context.settings.schema().to_owned(),
        }
    }

    /// Returns the function with the given name; `None` for other names.
    pub fn function(&self, name: &str, world: &Arc<World>) -> Option<Arc<ScalarUDF>> {
        let (of, world) = (self.clone(), Arc::clone(world));
        let number = |value: crate::Result<i64>| Ok(ScalarValue::Int64(Some(value.map_err(external)?)));
        let function = match name {
            "nextval" => RowFunction::volatile(name, &[1], DataType::Int64, move |values| {
                let Some(name) = sequence(values, &world) else { return Ok(ScalarValue::Int64(None)) };
                number(of.sequences.next(&of.shared, &of.schema, &name))
            }),
            "currval" => RowFunction::volatile(name, &[1], DataType::Int64, move |values| {
                let Some(name) = sequence(values, &world) else { return Ok(ScalarValue::Int64(None)) };
                number(of.sequences.current(&of.schema, Some(&name)))
            }),
            "lastval" => RowFunction::volatile(name, &[0], DataType::Int64, move |_| {
                number(of.sequences.current(&of.schema, None))
            }),
            "setval" => RowFunction::volatile(name, &[2, 3], DataType::Int64, move |values| {
                let name = sequence(values, &world);
                let (Some(name), Some(value)) = (name, integer(values)?) else {
                    return Ok(ScalarValue::Int64(None));
                };
                let is_called = match values.get(2) {
                    None => true,
                    Some(ScalarValue::Boolean(Some(is_called))) => *is_called,
                    Some(_) => return Ok(ScalarValue::Int64(None)),
                };
                number(of.sequences.set(&of.shared, &of.schema, &name, value, is_called))
            }),
            "clock_timestamp" => RowFunction::clock(name, move |_| {
                let now = of.shared.clock.wall().as_micros() as i64;
                Ok(ScalarValue::TimestampMicrosecond(Some(now), None))
            }),
            _ => return None,
        };
        Some(Arc::new(function))
    }
}

/// Returns the sequence given by name or object id in the first argument.
fn sequence(values: &[ScalarValue], world: &World) -> Option<String> {
    match values.first()? {
        ScalarValue::Int64(number) => Some(world.name_of((*number)?)),
        other => text_of(other),
    }
}

fn integer(values: &[ScalarValue]) -> Result<Option<i64>> {
    match values.get(1).map(|value| value.cast_to(&DataType::Int64)).transpose()? {
        Some(ScalarValue::Int64(value)) => Ok(value),
        _ => Ok(None),
    }
}
