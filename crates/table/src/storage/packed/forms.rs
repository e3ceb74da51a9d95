//! Which forms the columns of a packed leaf were given, for whoever shows it.

use cairn_pool::Changed;

use super::{ALL_NULL, BYTES, CODES, HIGH, NUMBERS, PLAIN, Packed, TEXTS, VALUES};
use crate::storage::source::Source;

/// How a column of a packed leaf is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StreamForm {
    /// Numbers as what they are above the least one, in as few bits as that takes.
    Numbers,
    /// Numbers as places in a list of the few that there are.
    NumberDictionary,
    /// Bytes one after the other.
    Bytes,
    /// Bytes as places in a list of the few values that there are.
    ByteDictionary,
    /// Bytes as codes of the symbols that are frequent in them.
    Symbols,
    /// Nothing: all values are NULL.
    Nulls,
}

impl StreamForm {
    /// A word for it.
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
    /// The forms of its columns, those of what records begin with counted; one of sixteen bytes is
    /// told once.
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
