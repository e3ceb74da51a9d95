//! Commands of the shell: `.commands` as in sqlite3, `\commands` as in psql.

use clap::ValueEnum;

use crate::args::shell::Mode;
use crate::error::{Error, Result};

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Prints the help.
    Help,
    /// Ends the shell.
    Quit,
    /// Lists the names of tables and views that match a pattern.
    Tables(Option<String>),
    /// Prints the statements that create the tables matching a pattern.
    Schema(Option<String>),
    /// Lists the names of indexes, of all tables or one.
    Indexes(Option<String>),
    /// Sets the output format of rows, and the table of `insert`.
    Mode(Option<Mode>, Option<String>),
    /// Turns column names on or off.
    Headers(Option<bool>),
    /// Turns timing of statements on or off.
    Timer(Option<bool>),
    /// Turns output with one line per column on or off.
    Expanded(Option<bool>),
    /// Sets the text for NULL.
    Null(String),
    /// Runs the statements of a file.
    Read(String),
    /// Redirects results; to standard output if there is no file.
    Output(Option<String>),
    /// Imports rows of a CSV file into a table.
    Import(Import),
    /// Dumps the whole database, or some tables, as statements.
    Dump(Option<String>),
    /// Backs up the database.
    Backup(String),
    /// Shows the plan of a statement.
    Explain(String),
    /// Shows the settings of the session.
    Settings,
    /// Prints a text.
    Echo(String),
    /// Lists objects of these kinds that match a pattern.
    List(Kinds, Option<String>),
    /// Describes a table in full.
    Describe(String),
    /// Shows the database.
    Databases,
    /// Lists the schemas.
    Schemas,
    /// Lists the users.
    Users,
    /// Shows the connection.
    Connection,
    /// Runs COPY with a file on the shell's side: the statement without the file, the file, and the
    /// direction.
    Copy {
        /// `COPY t FROM STDIN WITH (...)`.
        sql: String,
        /// The file.
        file: String,
        /// True if the file is read.
        is_in: bool,
    },
}

/// The kinds of objects in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds {
    /// Tables.
    pub tables: bool,
    /// Views.
    pub views: bool,
    /// Indexes.
    pub indexes: bool,
}

/// The arguments of `.import`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Import {
    /// The file.
    pub file: String,
    /// The table. If it does not exist, it is created with text columns.
    pub table: String,
    /// True if fields are separated by tabs.
    pub has_tabs: bool,
    /// True if the first line has column names. This is always so if the table is created.
    pub has_header: bool,
}

/// The help text, with a line for each command.
pub const HELP: &str = "\
Statements end with a semicolon and may take several lines. Ctrl-C cancels one, Ctrl-D leaves.

  .tables [PATTERN]          tables and views                       \\d  \\dt \\dv \\di [PATTERN]
  .schema [PATTERN]          the statements that make them          \\d TABLE   one of them in full
  .indexes [TABLE]           indexes
  .mode MODE                 table, csv, json, jsonl, line, markdown, insert [TABLE], tabs
  .headers on|off            column names and counts of rows        \\t
  .null TEXT                 the text for NULL                      \\pset null TEXT
  .timer on|off              how long statements take               \\timing
  .expanded on|off           a line for each column                 \\x
  .explain STATEMENT         its plan
  .read FILE                 statements of a file                   \\i FILE
  .output [FILE]             results into a file, or back           \\o [FILE]
  .import [--tabs] [--header] FILE TABLE    rows of a CSV file into a table, made if absent
  .dump [PATTERN]            statements that recreate everything
  .backup FILE               a copy of the database
  .settings                  settings of the session
  .quit                      leave the shell                        \\q

  \\copy TABLE FROM|TO 'FILE' [OPTIONS]      COPY with a file here   \\l \\dn \\du \\conninfo \\echo TEXT \\?
";

/// Parses a command: a line that begins with a dot or a backslash.
///
/// Errors: there is no such command, or its arguments are wrong.
pub fn parse(line: &str) -> Result<Command> {
    let line = line.trim();
    let line = if line.starts_with('\\') { line.trim_end_matches(';').trim_end() } else { line };
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    if word == "\\copy" {
        return copy(rest);
    }
    let words = words(rest)?;
    let mut given = words.iter().map(String::as_str);
    let first = given.next().map(str::to_owned);
    let need = |what: &str| first.clone().ok_or_else(|| Error::usage(format!("{word} needs {what}")));
    let all = Kinds { tables: true, views: true, indexes: false };
    let none = Kinds { tables: false, views: false, indexes: false };
    Ok(match word {
        ".help" | "\\?" | "\\h" | ".h" => Command::Help,
        ".quit" | ".exit" | "\\q" | ".q" => Command::Quit,
        ".tables" => Command::Tables(first),
        ".schema" => Command::Schema(first),
        ".indexes" | ".indices" => Command::Indexes(first),
        ".mode" => mode(first.as_deref(), given.next())?,
        ".headers" | ".header" => Command::Headers(switch(word, first.as_deref())?),
        "\\t" => Command::Headers(switch(word, first.as_deref())?.map(|only_rows| !only_rows)),
        ".timer" | "\\timing" => Command::Timer(switch(word, first.as_deref())?),
        ".expanded" | "\\x" => Command::Expanded(switch(word, first.as_deref())?),
        ".null" | ".nullvalue" => Command::Null(first.unwrap_or_default()),
        "\\pset" if first.as_deref() == Some("null") => {
            Command::Null(given.next().unwrap_or_default().to_owned())
        }
        ".read" | "\\i" => Command::Read(need("a file")?),
        ".output" | "\\o" => Command::Output(first),
        ".import" => import(&words)?,
        ".dump" => Command::Dump(first),
        ".backup" => Command::Backup(need("a file")?),
        ".explain" if rest.is_empty() => return Err(Error::usage(".explain needs a statement")),
        ".explain" => Command::Explain(rest.trim_end_matches(';').to_owned()),
        ".settings" | ".show" => Command::Settings,
        ".echo" | ".print" | "\\echo" => Command::Echo(words.join(" ")),
        ".databases" | "\\l" | "\\list" => Command::Databases,
        ".describe" => Command::Describe(need("a table")?),
        "\\d" | "\\d+" => first.map_or(Command::List(all, None), Command::Describe),
        "\\dt" | "\\dt+" => Command::List(Kinds { tables: true, ..none }, first),
        "\\dv" | "\\dv+" => Command::List(Kinds { views: true, ..none }, first),
        "\\di" | "\\di+" => Command::List(Kinds { indexes: true, ..none }, first),
        "\\dn" => Command::Schemas,
        "\\du" | "\\dg" => Command::Users,
        "\\conninfo" => Command::Connection,
        _ => return Err(Error::usage(format!("there is no command {word}; .help lists them"))),
    })
}

/// Splits words; a word with blanks must be quoted.
fn words(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match (quote, character) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(Error::usage("a quote is not closed"));
    }
    words.extend(word);
    Ok(words)
}

fn switch(command: &str, word: Option<&str>) -> Result<Option<bool>> {
    match word {
        None => Ok(None),
        Some("on" | "yes" | "1" | "true") => Ok(Some(true)),
        Some("off" | "no" | "0" | "false") => Ok(Some(false)),
        Some(other) => Err(Error::usage(format!("{command} takes on or off, not {other:?}"))),
    }
}

fn mode(word: Option<&str>, table: Option<&str>) -> Result<Command> {
    let Some(word) = word else { return Ok(Command::Mode(None, None)) };
    // Names that users know from other shells.
    let word = match word {
        "list" | "column" | "columns" | "box" | "aligned" => "table",
        "tsv" => "tabs",
        other => other,
    };
    let mode = Mode::from_str(word, true).map_err(|_| {
        let known: Vec<String> = Mode::value_variants()
            .iter()
            .filter_map(|mode| Some(mode.to_possible_value()?.get_name().to_owned()))
            .collect();
        Error::usage(format!("there is no mode {word:?}; the modes are {}", known.join(", ")))
    })?;
    Ok(Command::Mode(Some(mode), table.map(str::to_owned)))
}

fn import(words: &[String]) -> Result<Command> {
    let mut import = Import::default();
    let mut names = Vec::new();
    for word in words {
        match word.as_str() {
            "--tabs" | "--tsv" => import.has_tabs = true,
            "--header" | "--skip-header" => import.has_header = true,
            "--csv" => {}
            option if option.starts_with("--") => {
                return Err(Error::usage(format!(".import has no option {option}")));
            }
            _ => names.push(word.clone()),
        }
    }
    let Ok([file, table]) = <[String; 2]>::try_from(names) else {
        return Err(Error::usage(".import needs a file and a table"));
    };
    Ok(Command::Import(Import { file, table, ..import }))
}

/// Parses `\copy t [(a, b)] FROM|TO 'file' [WITH ...]`.
fn copy(text: &str) -> Result<Command> {
    let refuse =
        || Error::usage("\\copy takes: TABLE or (QUERY), FROM or TO, a file in quotes, options of COPY");
    let folded = text.to_ascii_lowercase();
    // Find the last FROM or TO outside of parentheses; those within belong to the query.
    let mut depth = 0_i32;
    let mut found = None;
    for (at, character) in folded.char_indices() {
        depth += i32::from(character == '(') - i32::from(character == ')');
        let rest = folded.get(at..).unwrap_or_default();
        let is_word = |word: &str| {
            rest.strip_prefix(word)
                .is_some_and(|after| after.starts_with(|c: char| c.is_whitespace() || c == '\''))
                && folded
                    .get(..at)
                    .is_some_and(|before| before.ends_with(|c: char| c.is_whitespace() || c == ')'))
        };
        if depth == 0 && found.is_none() && (is_word("from") || is_word("to")) {
            found = Some((at, if rest.starts_with("from") { 4 } else { 2 }));
        }
    }
    let (at, length) = found.ok_or_else(refuse)?;
    let what = text.get(..at).unwrap_or_default().trim();
    let is_in = length == 4;
    let rest = text.get(at + length..).unwrap_or_default().trim_start();
    let (file, options) = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\'').ok_or_else(refuse)?,
        None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    if file.is_empty() || what.is_empty() {
        return Err(refuse());
    }
    let options = options.trim();
    // psql accepts `csv header` without parentheses, the old syntax of COPY.
    let options = match options.to_ascii_lowercase().as_str() {
        "" => String::new(),
        "csv" | "with csv" => " WITH (FORMAT csv)".to_owned(),
        "csv header" | "with csv header" => " WITH (FORMAT csv, HEADER)".to_owned(),
        _ => format!(" {options}"),
    };
    let end = if is_in { "FROM STDIN" } else { "TO STDOUT" };
    Ok(Command::Copy { sql: format!("COPY {what} {end}{options}"), file: file.to_owned(), is_in })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: commands of both families are parsed, including quotes, and everything else is
    /// refused.
    #[test]
    fn commands_are_understood() {
        assert_eq!(parse(".tables a%").unwrap(), Command::Tables(Some("a%".to_owned())));
        assert_eq!(parse("\\d  t;").unwrap(), Command::Describe("t".to_owned()));
        assert_eq!(parse(".mode insert t").unwrap(), Command::Mode(Some(Mode::Insert), Some("t".to_owned())));
        assert_eq!(parse(".mode column").unwrap(), Command::Mode(Some(Mode::Table), None));
        assert_eq!(parse("\\t on").unwrap(), Command::Headers(Some(false)));
        assert_eq!(parse(".read 'a b.sql'").unwrap(), Command::Read("a b.sql".to_owned()));
        let import =
            Import { file: "f.csv".to_owned(), table: "t".to_owned(), has_tabs: true, has_header: false };
        assert_eq!(parse(".import --tabs f.csv t").unwrap(), Command::Import(import));
        for wrong in [
            ".nonsense",
            ".read",
            ".mode x",
            ".timer maybe",
            ".read 'a",
            ".import f",
            "\\copy t",
            "\\copy t from",
            "\\",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    /// Goal: `\copy` is split into COPY and a file.
    #[test]
    fn copy_statement_is_parsed() {
        for (line, expected, name, reads) in [
            (
                "\\copy t from 'a b.csv' csv header",
                "COPY t FROM STDIN WITH (FORMAT csv, HEADER)",
                "a b.csv",
                true,
            ),
            ("\\copy t(a, b) TO f.txt", "COPY t(a, b) TO STDOUT", "f.txt", false),
            (
                "\\copy (select * from t) to 'x' with (format csv)",
                "COPY (select * from t) TO STDOUT with (format csv)",
                "x",
                false,
            ),
        ] {
            let Command::Copy { sql, file, is_in } = parse(line).unwrap() else { panic!() };
            assert_eq!((sql.as_str(), file.as_str(), is_in), (expected, name, reads));
        }
    }
}
