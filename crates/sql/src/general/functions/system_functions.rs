//! Functions of PostgreSQL's catalogs, as functions of DataFusion.

use std::hash::{Hash, Hasher};

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef};
use cairn_vfs::sync::Arc;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};

use crate::general::errors::external;
use crate::pg_catalog::{self, SystemFunction, World};

/// A function over a snapshot of the catalogs. Functions with the same name and snapshot are equal.
#[derive(Debug)]
struct Function {
    of: &'static SystemFunction,
    signature: Signature,
    world: Arc<World>,
}

/// Returns the function of this name; `None` if it is not one of the system's.
pub(crate) fn system_function(name: &str, world: &Arc<World>) -> Option<Arc<ScalarUDF>> {
    let of = pg_catalog::function(name)?;
    let volatility = if of.is_volatile() { Volatility::Volatile } else { Volatility::Stable };
    let signature = Signature::one_of(vec![TypeSignature::Nullary, TypeSignature::VariadicAny], volatility);
    Some(Arc::new(ScalarUDF::from(Function { of, signature, world: Arc::clone(world) })))
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.of.name == other.of.name && Arc::ptr_eq(&self.world, &other.world)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, to: &mut H) {
        self.of.name.hash(to);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.of.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.of.kind())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(self.of.field()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let columns: Vec<ArrayRef> = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<_>>()?;
        self.of.call(&self.world, &columns, rows).map(ColumnarValue::Array).map_err(external)
    }
}
