//! Functions for scalar subqueries.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef};
use cairn_vfs::sync::Arc;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::error::Error;
use crate::general::errors::external;
use crate::general::markers::{NULLABLE, SINGLE_VALUE, WITHOUT_METADATA};
use crate::sqlstate::CARDINALITY_VIOLATION;

/// Returns the only element of a list; NULL for NULL or an empty list.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleValue {
    signature: Signature,
}

/// Returns the function that extracts the single value from the list of all values of a subquery.
pub(crate) fn single_value() -> ScalarUDF {
    ScalarUDF::from(SingleValue { signature: Signature::any(1, Volatility::Immutable) })
}

fn no_list() -> DataFusionError {
    DataFusionError::Internal("the values of a subquery are no list".to_owned())
}

impl ScalarUDFImpl for SingleValue {
    fn name(&self) -> &str {
        SINGLE_VALUE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        match args.first() {
            Some(DataType::List(item)) => Ok(item.data_type().clone()),
            _ => Err(no_list()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(field) = args.arg_fields.first() else { return Err(no_list()) };
        let DataType::List(item) = field.data_type() else { return Err(no_list()) };
        // The metadata of the values is on the list.
        let metadata = field.metadata().clone();
        Ok(Arc::new(
            item.as_ref().clone().with_name(SINGLE_VALUE).with_nullable(true).with_metadata(metadata),
        ))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = args.args.first().ok_or_else(no_list)?.to_array(args.number_rows)?;
        let lists: &arrow::array::ListArray = lists.as_list_opt().ok_or_else(no_list)?;
        let place = |row: usize| {
            if lists.is_null(row) || lists.value_length(row) == 0 {
                return Ok(None);
            }
            if lists.value_length(row) > 1 {
                let what = "more than one row returned by a subquery used as an expression";
                return Err(external(Error::new(CARDINALITY_VIOLATION, what)));
            }
            Ok(lists.value_offsets().get(row).copied())
        };
        let places = (0..lists.len()).map(place).collect::<Result<arrow::array::Int32Array>>()?;
        let values: ArrayRef = take(lists.values(), &places, None)?;
        Ok(ColumnarValue::Array(values))
    }
}

/// Returns its argument, declared as nullable.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Nullable {
    /// Whether the field metadata is dropped: DataFusion requires equal metadata in all rows of
    /// VALUES.
    drops_metadata: bool,
    signature: Signature,
}

/// See [`NULLABLE`].
pub(crate) fn nullable() -> ScalarUDF {
    ScalarUDF::from(Nullable { drops_metadata: false, signature: Signature::any(1, Volatility::Immutable) })
}

/// See [`WITHOUT_METADATA`].
pub(crate) fn without_metadata() -> ScalarUDF {
    ScalarUDF::from(Nullable { drops_metadata: true, signature: Signature::any(1, Volatility::Immutable) })
}

impl ScalarUDFImpl for Nullable {
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = args.arg_fields.first();
        let of =
            of.map_or_else(|| Field::new(NULLABLE, DataType::Null, true), |field| field.as_ref().clone());
        // The metadata of the argument still applies.
        let of = if self.drops_metadata { of.with_metadata(HashMap::new()) } else { of };
        Ok(Arc::new(of.with_name(self.name()).with_nullable(true)))
    }

    fn name(&self) -> &str {
        if self.drops_metadata { WITHOUT_METADATA } else { NULLABLE }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = args.args.into_iter().next();
        value.ok_or_else(|| DataFusionError::Internal("a subquery without a value".to_owned()))
    }
}
