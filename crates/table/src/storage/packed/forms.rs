//! The forms of the columns of a packed leaf, for display.

use cairn_pool::Changed;

use super::{ALL_NULL, BYTES, CODES, HIGH, NUMBERS, PLAIN, Packed, TEXTS, VALUES};
use crate::storage::source::Source;

/// The encoding of a column of a packed leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StreamForm {
    /// Numbers as bit-packed differences from the least one.
    Numbers,
    /// Numbers as indexes into a dictionary of few distinct values.
    NumberDictionary,
    /// Bytes, back to back.
    Bytes,
    /// Bytes as indexes into a dictionary of few distinct values.
    ByteDictionary,
    /// Bytes as codes of their frequent symbols.
    Symbols,
    /// No data: all values are NULL.
    Nulls,
}

impl StreamForm {
    /// Returns the name of the form.
    pub fn name(self) -> &'static str {
        match self {
            StreamForm::Numbers => "bit-packed numbers",
            StreamForm::NumberDictionary => "dictionary of numbers",
            StreamForm::Bytes => "plain bytes",
            StreamForm::ByteDictionary => "dictionary of bytes",
            StreamForm::Symbols => "symbol table",
            StreamForm::Nulls => "all NULL",
        }
    }
}

impl<S: Source + ?Sized> Packed<'_, S> {
    /// Returns the forms of the columns, including the one for the lead of the records. A column of
    /// 16 bytes appears once.
    pub(crate) fn forms(&self) -> Result<Vec<StreamForm>, Changed> {
        let (streams, _) = self.shape()?;
        let mut forms = Vec::with_capacity(streams);
        for nth in 0..streams {
            let stream = self.stream(nth)?;
            if stream.width == HIGH {
                continue;
            }
            forms.push(match (stream.width, stream.form) {
                _ if stream.nulls == ALL_NULL => StreamForm::Nulls,
                (BYTES, PLAIN) => StreamForm::Bytes,
                (BYTES, TEXTS) => StreamForm::ByteDictionary,
                (BYTES, CODES) => StreamForm::Symbols,
                (_, NUMBERS) => StreamForm::Numbers,
                (_, VALUES) => StreamForm::NumberDictionary,
                _ => return Err(Changed),
            });
        }
        Ok(forms)
    }
}
