//! `string_agg` of texts and of bytea values.
//!
//! DataFusion treats bytea as text, requires a constant delimiter, and returns distinct texts in
//! order of arrival. PostgreSQL sorts them if DISTINCT comes without ORDER BY, and otherwise by
//! ORDER BY and then by all arguments.
//!
//! A partial state is a list with three items per value, in any order: the sort key, as bytes that
//! compare like the values ([`RowConverter`]); the delimiter before the value; and the value. The
//! parts are sorted once all of them have arrived.

use std::collections::BTreeSet;
use std::mem::{size_of, size_of_val};

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use arrow::row::{RowConverter, SortField};
use cairn_vfs::sync::Arc;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// The aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    signature: Signature,
}

/// Returns `string_agg`.
pub(crate) fn string_agg() -> AggregateUDF {
    AggregateUDF::from(Joined { signature: Signature::user_defined(Volatility::Immutable) })
}

fn is_binary(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

impl AggregateUDFImpl for Joined {
    fn name(&self) -> &str {
        "string_agg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        match kinds {
            [bytes, _] if is_binary(bytes) => Ok(vec![DataType::BinaryView, DataType::BinaryView]),
            [text, delimiter] => {
                let kind = |kind: &DataType| if kind.is_string() { kind.clone() } else { DataType::Utf8View };
                Ok(vec![kind(text), kind(delimiter)])
            }
            other => Ok(other.to_vec()),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        Ok(match kinds.first() {
            Some(kind) if is_binary(kind) => DataType::BinaryView,
            _ => DataType::LargeUtf8,
        })
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let by = args
            .order_bys
            .iter()
            .map(|by| Ok(SortField::new_with_options(by.expr.data_type(args.schema)?, by.options)));
        let by: Vec<SortField> = by.collect::<Result<_>>()?;
        Ok(Box::new(Parts {
            kind: args.return_field.data_type().clone(),
            order: if by.is_empty() { None } else { Some(RowConverter::new(by)?) },
            is_distinct: args.is_distinct,
            delimiters: Vec::new(),
            parts: Vec::new(),
            seen: BTreeSet::new(),
            bytes: 0,
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let item = Arc::new(Field::new_list_field(DataType::BinaryView, true));
        let list = Field::new(format!("{}[parts]", args.name), DataType::List(item), true);
        Ok(vec![Arc::new(list)])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::HardRequirement
    }

    fn reverse_expr(&self) -> datafusion::logical_expr::ReversedUDAF {
        datafusion::logical_expr::ReversedUDAF::NotSupported
    }
}

/// A value with its sort key. The delimiter between two values is that of the second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    key: Vec<u8>,
    bytes: Vec<u8>,
    /// Index into [`Parts::delimiters`].
    delimiter: usize,
}

/// The collected values.
#[derive(Debug)]
struct Parts {
    /// The result type: bytea or text.
    kind: DataType,
    /// Converts the values of ORDER BY to sort keys.
    order: Option<RowConverter>,
    is_distinct: bool,
    /// The delimiters. Usually there is only one.
    delimiters: Vec<Vec<u8>>,
    /// All values, in order of arrival; empty for DISTINCT.
    parts: Vec<Part>,
    /// For DISTINCT: values and delimiters with their sort keys, which they determine.
    seen: BTreeSet<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    /// Allocated bytes.
    bytes: usize,
}

impl Parts {
    fn push(&mut self, key: &[u8], delimiter: &[u8], bytes: &[u8]) {
        let size = key.len() + bytes.len() + size_of::<Part>();
        if self.is_distinct {
            if self.seen.insert((key.to_vec(), bytes.to_vec(), delimiter.to_vec())) {
                self.bytes += size + delimiter.len();
            }
            return;
        }
        if self.delimiters.last().is_none_or(|last| last != delimiter) {
            self.bytes += delimiter.len() + size_of::<Vec<u8>>();
            self.delimiters.push(delimiter.to_vec());
        }
        self.bytes += size;
        let delimiter = self.delimiters.len() - 1;
        self.parts.push(Part { key: key.to_vec(), bytes: bytes.to_vec(), delimiter });
    }

    /// Returns the sort keys, delimiters and values in order.
    fn all(&mut self) -> Vec<[&[u8]; 3]> {
        if self.is_distinct {
            return self.seen.iter().map(|(key, bytes, between)| [&**key, &**between, &**bytes]).collect();
        }
        if self.order.is_some() {
            // The sort is stable: values with equal keys stay in order of arrival.
            self.parts.sort_by(|one, other| one.key.cmp(&other.key));
        }
        let of = |part: &Part| self.delimiters.get(part.delimiter).map_or(&[][..], Vec::as_slice);
        self.parts.iter().map(|part| [&*part.key, of(part), &*part.bytes]).collect()
    }
}

impl Accumulator for Parts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [bytes, delimiters, by @ ..] = values else { return Ok(()) };
        let keys = self.order.as_ref().map(|order| order.convert_columns(by)).transpose()?;
        let (bytes, delimiters) =
            (cast(bytes, &DataType::BinaryView)?, cast(delimiters, &DataType::BinaryView)?);
        for (at, (bytes, delimiter)) in
            bytes.as_binary_view().iter().zip(delimiters.as_binary_view()).enumerate()
        {
            if let Some(bytes) = bytes {
                let key = keys.as_ref().map(|keys| keys.row(at));
                let key = key.as_ref().map_or(&[][..], AsRef::as_ref);
                self.push(key, delimiter.unwrap_or_default(), bytes);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let kind = self.kind.clone();
        let all = self.all();
        if all.is_empty() {
            return ScalarValue::try_from(&kind);
        }
        let mut joined = Vec::new();
        for (at, [_, delimiter, bytes]) in all.into_iter().enumerate() {
            if at > 0 {
                joined.extend_from_slice(delimiter);
            }
            joined.extend_from_slice(bytes);
        }
        match String::from_utf8(joined) {
            Ok(text) if kind.is_string() => ScalarValue::LargeUtf8(Some(text)).cast_to(&kind),
            Ok(text) => Ok(ScalarValue::BinaryView(Some(text.into_bytes()))),
            Err(other) => Ok(ScalarValue::BinaryView(Some(other.into_bytes()))),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let flat = self.all().into_iter().flatten();
        let flat: Vec<ScalarValue> = flat.map(|part| ScalarValue::BinaryView(Some(part.to_vec()))).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list(&flat, &DataType::BinaryView, true))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first() else { return Ok(()) };
        for list in lists.as_list::<i32>().iter().flatten() {
            let flat: Vec<&[u8]> = list.as_binary_view().iter().map(Option::unwrap_or_default).collect();
            for part in flat.chunks_exact(3) {
                if let [key, delimiter, bytes] = part {
                    self.push(key, delimiter, bytes);
                }
            }
        }
        Ok(())
    }
}
