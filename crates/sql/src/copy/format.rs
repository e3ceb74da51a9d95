//! Formats and their options.

use datafusion::sql::sqlparser::ast::{CopyLegacyCsvOption, CopyLegacyOption, CopyOption};

use crate::error::{Error, Result};
use crate::sqlstate::INVALID_PARAMETER_VALUE;
use crate::syntax::ident;

/// How rows are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Format {
    pub csv: bool,
    pub delimiter: u8,
    pub null: String,
    pub header: bool,
    pub quote: u8,
    pub escape: u8,
}

impl Format {
    /// What the options say.
    ///
    /// Errors: 0A000 for formats that there are elsewhere, 22023 for characters that take more than a byte.
    pub fn new(options: &[CopyOption], legacy: &[CopyLegacyOption]) -> Result<Format> {
        let format = options.iter().find_map(|option| match option {
            CopyOption::Format(name) => Some(ident(name).to_lowercase()),
            _ => None,
        });
        let old_csv = legacy.iter().any(|option| matches!(option, CopyLegacyOption::Csv(_)));
        let csv = match format.as_deref() {
            Some("csv") => true,
            None => old_csv,
            Some("text") => false,
            Some(other) => return Err(Error::unsupported(format_args!("COPY format {other}"))),
        };
        let (delimiter, null) = if csv { (b',', "") } else { (b'\t', "\\N") };
        let mut format =
            Format { csv, delimiter, null: null.to_owned(), header: false, quote: b'"', escape: b'"' };
        let mut escape = None;
        for option in options {
            match option {
                CopyOption::Delimiter(c) => format.delimiter = byte(*c)?,
                CopyOption::Null(text) => format.null.clone_from(text),
                CopyOption::Header(header) => format.header = *header,
                CopyOption::Quote(c) => format.quote = byte(*c)?,
                CopyOption::Escape(c) => escape = Some(byte(*c)?),
                CopyOption::Format(_) | CopyOption::Freeze(_) | CopyOption::Encoding(_) => {}
                other => return Err(Error::unsupported(format_args!("the option {other}"))),
            }
        }
        for option in legacy {
            match option {
                CopyLegacyOption::Delimiter(c) => format.delimiter = byte(*c)?,
                CopyLegacyOption::Null(text) => format.null.clone_from(text),
                CopyLegacyOption::Header => format.header = true,
                CopyLegacyOption::Csv(options) => {
                    for option in options {
                        match option {
                            CopyLegacyCsvOption::Header => format.header = true,
                            CopyLegacyCsvOption::Quote(c) => format.quote = byte(*c)?,
                            CopyLegacyCsvOption::Escape(c) => escape = Some(byte(*c)?),
                            _ => return Err(Error::unsupported("this option of CSV")),
                        }
                    }
                }
                _ => return Err(Error::unsupported("this option of COPY")),
            }
        }
        format.escape = escape.unwrap_or(format.quote);
        Ok(format)
    }
}

fn byte(c: char) -> Result<u8> {
    let one = u8::try_from(c).ok().filter(u8::is_ascii);
    one.ok_or_else(|| {
        Error::new(INVALID_PARAMETER_VALUE, format!("COPY takes single one-byte characters, not {c}"))
    })
}
