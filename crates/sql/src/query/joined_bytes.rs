//! `string_agg` of bytes, which are bytes: DataFusion takes them for texts. And of different texts, which come in their order, and of texts with something else between any two of them.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::mem::size_of_val;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef};
use cairn_vfs::sync::Arc;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

/// `string_agg`: of texts DataFusion's, of bytes ours.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    texts: Arc<AggregateUDF>,
    signature: Signature,
}

/// The aggregate.
pub(super) fn string_agg() -> AggregateUDF {
    AggregateUDF::from(Joined {
        texts: string_agg_udaf(),
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

fn is_binary(kind: &DataType) -> bool {
    matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

fn of_bytes(fields: &[FieldRef]) -> bool {
    fields.first().is_some_and(|field| is_binary(field.data_type()))
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
        match kinds.first() {
            Some(kind) if is_binary(kind) => Ok(DataType::BinaryView),
            _ => self.texts.return_type(kinds),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if !of_bytes(args.expr_fields) && !args.is_distinct {
            return self.texts.accumulator(args);
        }
        Ok(Box::new(Bytes {
            kind: args.return_field.data_type().clone(),
            parts: Vec::new(),
            seen: args.is_distinct.then(BTreeSet::new),
            is_sorted: args.order_bys.is_empty(),
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !of_bytes(args.input_fields) && !args.is_distinct {
            return self.texts.inner().state_fields(args);
        }
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

/// What bytes come to. What stands between two of them is the second one's.
#[derive(Debug)]
struct Bytes {
    /// The result's type: of bytes or of texts.
    kind: DataType,
    /// Delimiter and bytes, as they came. One state's are in order behind another's.
    parts: Vec<(Vec<u8>, Vec<u8>)>,
    /// For DISTINCT: those that are there already.
    seen: Option<BTreeSet<(Vec<u8>, Vec<u8>)>>,
    /// Different ones are in their own order, where there is no ORDER BY.
    is_sorted: bool,
}

impl Bytes {
    fn push(&mut self, bytes: &[u8], delimiter: &[u8]) {
        let is_new = match &mut self.seen {
            Some(seen) => seen.insert((bytes.to_vec(), delimiter.to_vec())),
            None => true,
        };
        if is_new {
            self.parts.push((delimiter.to_vec(), bytes.to_vec()));
        }
    }

    fn all(&self) -> Vec<(&[u8], &[u8])> {
        match &self.seen {
            Some(seen) if self.is_sorted => {
                seen.iter().map(|(bytes, delimiter)| (delimiter.as_slice(), bytes.as_slice())).collect()
            }
            _ => {
                self.parts.iter().map(|(delimiter, bytes)| (delimiter.as_slice(), bytes.as_slice())).collect()
            }
        }
    }
}

impl Accumulator for Bytes {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [bytes, delimiters, ..] = values else { return Ok(()) };
        let (bytes, delimiters) =
            (cast(bytes, &DataType::BinaryView)?, cast(delimiters, &DataType::BinaryView)?);
        for (bytes, delimiter) in bytes.as_binary_view().iter().zip(delimiters.as_binary_view()) {
            if let Some(bytes) = bytes {
                self.push(bytes, delimiter.unwrap_or_default());
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let all = self.all();
        if all.is_empty() {
            return ScalarValue::try_from(&self.kind);
        }
        let mut joined = Vec::new();
        for (at, (delimiter, bytes)) in all.into_iter().enumerate() {
            if at > 0 {
                joined.extend_from_slice(delimiter);
            }
            joined.extend_from_slice(bytes);
        }
        match String::from_utf8(joined) {
            Ok(text) if self.kind.is_string() => ScalarValue::Utf8View(Some(text)).cast_to(&self.kind),
            Ok(text) => Ok(ScalarValue::BinaryView(Some(text.into_bytes()))),
            Err(other) => Ok(ScalarValue::BinaryView(Some(other.into_bytes()))),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.all().iter().map(|(a, b)| a.len() + b.len() + 48).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let flat = self.all().into_iter().flat_map(|(delimiter, bytes)| [delimiter, bytes]);
        let flat: Vec<ScalarValue> = flat.map(|part| ScalarValue::BinaryView(Some(part.to_vec()))).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list(&flat, &DataType::BinaryView, true))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first() else { return Ok(()) };
        for list in lists.as_list::<i32>().iter().flatten() {
            let flat: Vec<Option<&[u8]>> = list.as_binary_view().iter().collect();
            for pair in flat.chunks_exact(2) {
                if let [delimiter, bytes] = pair {
                    self.push(bytes.unwrap_or_default(), delimiter.unwrap_or_default());
                }
            }
        }
        Ok(())
    }
}
