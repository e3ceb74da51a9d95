//! Converts values to and from Rust types.

use super::{Datum, DatumRef};
use crate::sqlstate::DATATYPE_MISMATCH;
use crate::{Error, Result};

/// A Rust type that column values convert to.
pub trait FromDatum: Sized {
    /// Errors: 42804 for a value of another type or out of range. NULL is one too: read columns
    /// that have it as `Option`.
    fn from_datum(datum: DatumRef<'_>) -> Result<Self>;
}

fn mismatch<T>(datum: DatumRef<'_>) -> Error {
    let what = match datum.type_of() {
        None if datum.is_null() => "NULL".to_owned(),
        None => format!("the list {datum}"),
        Some(kind) => format!("the {kind:?} {datum}"),
    };
    Error::new(DATATYPE_MISMATCH, format!("{what} cannot be read as {}", std::any::type_name::<T>()))
}

impl<T: FromDatum> FromDatum for Option<T> {
    fn from_datum(datum: DatumRef<'_>) -> Result<Self> {
        if datum.is_null() { Ok(None) } else { T::from_datum(datum).map(Some) }
    }
}

macro_rules! integers {
    ($($to:ty),*) => { $(impl FromDatum for $to {
        fn from_datum(datum: DatumRef<'_>) -> Result<Self> {
            let value = match datum {
                DatumRef::SmallInt(value) => <$to>::try_from(value).ok(),
                DatumRef::Int(value) => <$to>::try_from(value).ok(),
                DatumRef::BigInt(value) => <$to>::try_from(value).ok(),
                _ => None,
            };
            value.ok_or_else(|| mismatch::<$to>(datum))
        }
    })* };
}
integers!(i16, i32, i64, u8, u16, u32, u64, usize, i128);

macro_rules! one_variant {
    ($($to:ty: $($variant:ident)|+),* $(,)?) => { $(impl FromDatum for $to {
        fn from_datum(datum: DatumRef<'_>) -> Result<Self> {
            match datum {
                $(DatumRef::$variant(value) => Ok(value.into()),)+
                _ => Err(mismatch::<$to>(datum)),
            }
        }
    })* };
}
one_variant! {
    bool: Boolean,
    f32: Real,
    f64: Double | Real | Int | SmallInt,
    String: Text,
    Vec<u8>: Blob,
    [u8; 16]: Uuid,
}

impl FromDatum for Datum {
    fn from_datum(datum: DatumRef<'_>) -> Result<Self> {
        Ok(datum.to_owned())
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident),* $(,)?) => { $(impl From<$from> for Datum {
        fn from(value: $from) -> Self {
            Datum::$variant(value.into())
        }
    })* };
}
from! {
    bool => Boolean, i16 => SmallInt, i32 => Int, i64 => BigInt, u32 => BigInt, f32 => Real, f64 => Double,
    &str => Text, String => Text, &[u8] => Blob, Vec<u8> => Blob, [u8; 16] => Uuid,
}

impl<T: Into<Datum>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Self {
        value.map_or(Datum::Null, Into::into)
    }
}
