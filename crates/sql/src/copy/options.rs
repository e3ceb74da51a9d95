//! The options of COPY.

use sqlparser::ast::{CopyLegacyCsvOption, CopyLegacyOption, CopyOption, Ident};

use crate::sqlstate::{FEATURE_NOT_SUPPORTED, INVALID_PARAMETER_VALUE, SYNTAX_ERROR, UNDEFINED_COLUMN};
use crate::syntax::{HEADER_MATCH, ident};
use crate::{Error, Result};

/// The encoding of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Format {
    /// One row per line, values separated by tabs, special characters escaped with backslashes.
    #[default]
    Text,
    /// RFC 4180, with PostgreSQL's rules for NULL.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
    /// Apache Parquet.
    Parquet,
}

/// Whether the first line holds the names of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Header {
    /// The first line is a row.
    #[default]
    No,
    /// The first line holds names, which are ignored.
    Yes,
    /// The first line holds names, which must match those of the columns.
    Match,
}

/// A format with all its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub format: Format,
    pub header: Header,
    /// The separator of values.
    pub delimiter: u8,
    /// The representation of NULL.
    pub null: String,
    /// The quote character of CSV.
    pub quote: u8,
    /// The character that escapes a quote within a CSV value.
    pub escape: u8,
    /// For each column: its CSV values are always quoted. Empty: this applies to no column.
    pub force_quote: Vec<bool>,
    /// For each column: its values are never NULL.
    pub force_not_null: Vec<bool>,
    /// For each column: the representation of NULL means NULL even in quotes.
    pub force_null: Vec<bool>,
}

/// The options as the statement gives them, before they are checked against each other.
#[derive(Debug, Default)]
struct RawOptions<'a> {
    format: Option<Format>,
    header: Option<Header>,
    delimiter: Option<char>,
    null: Option<&'a str>,
    quote: Option<char>,
    escape: Option<char>,
    force_quote: Option<&'a [Ident]>,
    force_not_null: Option<&'a [Ident]>,
    force_null: Option<&'a [Ident]>,
}

fn set<T>(to: &mut Option<T>, value: T) -> Result<()> {
    if to.replace(value).is_some() {
        return Err(Error::new(SYNTAX_ERROR, "conflicting or redundant options"));
    }
    Ok(())
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(INVALID_PARAMETER_VALUE, what)
}

impl Options {
    /// Returns the defaults of a format.
    pub fn new(format: Format) -> Self {
        let csv = format == Format::Csv;
        Options {
            format,
            header: Header::No,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { String::new() } else { "\\N".to_owned() },
            quote: b'"',
            escape: b'"',
            force_quote: Vec::new(),
            force_not_null: Vec::new(),
            force_null: Vec::new(),
        }
    }

    /// Returns the options of a statement, for columns with these names. `from` says that it is
    /// COPY FROM.
    ///
    /// Errors: 42601, 22023, 42703 and 0A000 as in PostgreSQL, for repeated options, options of
    /// another format and invalid values.
    pub fn parse(
        options: &[CopyOption],
        legacy: &[CopyLegacyOption],
        columns: &[&str],
        from: bool,
    ) -> Result<Self> {
        let mut raw = RawOptions::default();
        options.iter().try_for_each(|option| raw.take(option))?;
        legacy.iter().try_for_each(|option| raw.take_legacy(option))?;
        raw.decide(columns, from)
    }
}

impl<'a> RawOptions<'a> {
    fn take(&mut self, option: &'a CopyOption) -> Result<()> {
        match option {
            CopyOption::Format(name) => set(
                &mut self.format,
                match ident(name).as_str() {
                    "text" => Format::Text,
                    "csv" => Format::Csv,
                    "binary" => Format::Binary,
                    "parquet" => Format::Parquet,
                    other => return Err(invalid(format!("COPY format \"{other}\" not recognized"))),
                },
            ),
            // FREEZE has no effect: every row is as durable as its transaction.
            CopyOption::Freeze(_) => Ok(()),
            CopyOption::Delimiter(value) => set(&mut self.delimiter, *value),
            CopyOption::Null(value) => set(&mut self.null, value),
            CopyOption::Header(value) => set(&mut self.header, if *value { Header::Yes } else { Header::No }),
            CopyOption::Quote(value) => set(&mut self.quote, *value),
            CopyOption::Escape(value) => set(&mut self.escape, *value),
            CopyOption::ForceQuote(columns) => set(&mut self.force_quote, columns),
            CopyOption::ForceNotNull(columns) => set(&mut self.force_not_null, columns),
            CopyOption::ForceNull(columns) => set(&mut self.force_null, columns),
            CopyOption::Encoding(name) if name == HEADER_MATCH => set(&mut self.header, Header::Match),
            CopyOption::Encoding(name) => match name.to_ascii_lowercase().replace(['-', '_'], "").as_str() {
                "utf8" | "unicode" => Ok(()),
                _ => Err(Error::new(
                    FEATURE_NOT_SUPPORTED,
                    format!("encoding \"{name}\" is not supported: only UTF8 is"),
                )),
            },
        }
    }

    fn take_legacy(&mut self, option: &'a CopyLegacyOption) -> Result<()> {
        match option {
            CopyLegacyOption::Binary => set(&mut self.format, Format::Binary),
            CopyLegacyOption::Delimiter(value) => set(&mut self.delimiter, *value),
            CopyLegacyOption::Null(value) => set(&mut self.null, value),
            CopyLegacyOption::Header => set(&mut self.header, Header::Yes),
            CopyLegacyOption::Csv(options) => {
                set(&mut self.format, Format::Csv)?;
                options.iter().try_for_each(|option| match option {
                    CopyLegacyCsvOption::Header => set(&mut self.header, Header::Yes),
                    CopyLegacyCsvOption::Quote(value) => set(&mut self.quote, *value),
                    CopyLegacyCsvOption::Escape(value) => set(&mut self.escape, *value),
                    CopyLegacyCsvOption::ForceQuote(columns) => set(&mut self.force_quote, columns),
                    CopyLegacyCsvOption::ForceNotNull(columns) => set(&mut self.force_not_null, columns),
                })
            }
            other => Err(Error::unsupported(format_args!("the COPY option {other}"))),
        }
    }

    fn decide(self, columns: &[&str], from: bool) -> Result<Options> {
        let format = self.format.unwrap_or_default();
        let mut options = Options::new(format);
        let (text, csv) = (matches!(format, Format::Text | Format::Csv), format == Format::Csv);
        let only = |is_given: bool, allowed: bool, what: &str| match is_given && !allowed {
            true => Err(Error::new(FEATURE_NOT_SUPPORTED, format!("COPY {what}"))),
            false => Ok(()),
        };
        let name = match format {
            Format::Parquet => "PARQUET",
            _ => "BINARY",
        };
        only(self.delimiter.is_some(), text, &format!("cannot specify DELIMITER in {name} mode"))?;
        only(self.null.is_some(), text, &format!("cannot specify NULL in {name} mode"))?;
        only(
            self.header.is_some_and(|header| header != Header::No),
            text,
            &format!("cannot specify HEADER in {name} mode"),
        )?;
        only(self.quote.is_some(), csv, "quote available only in CSV mode")?;
        only(self.escape.is_some(), csv, "escape available only in CSV mode")?;
        only(self.force_quote.is_some(), csv, "force quote available only in CSV mode")?;
        only(self.force_quote.is_some(), !from, "force quote only available using COPY TO")?;
        only(self.force_not_null.is_some(), csv, "force not null available only in CSV mode")?;
        only(self.force_not_null.is_some(), from, "force not null only available using COPY FROM")?;
        only(self.force_null.is_some(), csv, "force null available only in CSV mode")?;
        only(self.force_null.is_some(), from, "force null only available using COPY FROM")?;
        let byte = |value: Option<char>, what: &str| match value {
            None => Ok(None),
            Some(value) if value.is_ascii() && value != '\0' => Ok(Some(value as u8)),
            Some(_) => Err(Error::new(
                FEATURE_NOT_SUPPORTED,
                format!("COPY {what} must be a single one-byte character"),
            )),
        };
        options.header = self.header.unwrap_or_default();
        options.delimiter = byte(self.delimiter, "delimiter")?.unwrap_or(options.delimiter);
        options.quote = byte(self.quote, "quote")?.unwrap_or(options.quote);
        options.escape = byte(self.escape, "escape")?.unwrap_or(options.quote);
        options.null = self.null.map_or(options.null, str::to_owned);
        check(&options)?;
        let places = |names: Option<&[Ident]>, what: &str| match names {
            None => Ok(Vec::new()),
            Some(names) => chosen(names, columns, what),
        };
        options.force_quote = places(self.force_quote, "FORCE_QUOTE")?;
        options.force_not_null = places(self.force_not_null, "FORCE_NOT_NULL")?;
        options.force_null = places(self.force_null, "FORCE_NULL")?;
        Ok(options)
    }
}

/// Rejects combinations that make the input ambiguous.
fn check(options: &Options) -> Result<()> {
    let Options { format, delimiter, quote, null, .. } = options;
    if matches!(delimiter, b'\n' | b'\r') {
        return Err(invalid("COPY delimiter cannot be newline or carriage return"));
    }
    if null.contains(['\n', '\r']) {
        return Err(invalid("COPY null representation cannot use newline or carriage return"));
    }
    if *format == Format::Text
        && (matches!(delimiter, b'\\' | b'.') || delimiter.is_ascii_lowercase() || delimiter.is_ascii_digit())
    {
        return Err(invalid(format!("COPY delimiter cannot be \"{}\"", *delimiter as char)));
    }
    if *format == Format::Csv && matches!(quote, b'\n' | b'\r') {
        return Err(invalid("COPY quote cannot be newline or carriage return"));
    }
    if *format == Format::Csv && delimiter == quote {
        return Err(invalid("COPY delimiter and quote must be different"));
    }
    if matches!(format, Format::Text | Format::Csv) && null.as_bytes().contains(delimiter) {
        return Err(invalid("COPY delimiter must not appear in the NULL specification"));
    }
    if *format == Format::Csv && null.as_bytes().contains(quote) {
        return Err(invalid("CSV quote character must not appear in the NULL specification"));
    }
    Ok(())
}

/// Says for each column whether it is named. An empty list, or a star, names all of them.
fn chosen(names: &[Ident], columns: &[&str], what: &str) -> Result<Vec<bool>> {
    if names.is_empty() || matches!(names, [star] if star.value == "*") {
        return Ok(vec![true; columns.len()]);
    }
    let mut chosen = vec![false; columns.len()];
    for name in names {
        let name = ident(name);
        let at = columns.iter().position(|column| *column == name);
        match at.and_then(|at| chosen.get_mut(at)) {
            Some(at) => *at = true,
            None => {
                return Err(Error::new(
                    UNDEFINED_COLUMN,
                    format!("{what} column \"{name}\" not referenced by COPY"),
                ));
            }
        }
    }
    Ok(chosen)
}
