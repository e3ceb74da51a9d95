//! Goal: the page of functions and the list for the comparison with PostgreSQL are those of the
//! table. Method: both are written anew and compared; with `CAIRN_BLESS=1` they are stored.

// The page and the list are files of the source tree.
#![allow(clippy::disallowed_methods)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::casts::CASTS;
use super::operators::{OPERATORS, Operands, OperatorRow};
use super::{Body, Example, FAMILIES, Function, Kind, Listing, Volatility, all};

const PAGE: &str = "docs/src/engines/sql-functions.md";
const LIST: &str = "testing/differential/functions.json";

const HEAD: &str = "# Functions, operators and casts

<!-- Written by `CAIRN_BLESS=1 cargo nextest run -p cairn-sql page_of_functions`, from the rows in
     crates/sql/src/expr/functions. -->

All functions, operators and casts of [the relational engine](sql.md), with PostgreSQL's results.
psql lists them as well: `\\df pg_catalog.lpad`, `\\do pg_catalog.+`, `\\dC integer`. Five letters and
digits are the SQLSTATE of an error.

A function of `numeric` that has no exact result is computed in `double precision`, and returns it. A
function is immutable, unless it says otherwise: its result depends on its arguments only. It returns
NULL if an argument is NULL, unless its description says otherwise.
";

#[test]
fn page_of_functions() {
    is_stored(PAGE, &page());
}

#[test]
fn list_of_functions() {
    is_stored(LIST, &list());
}

fn is_stored(path: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    if std::env::var_os("CAIRN_BLESS").is_some() {
        fs::write(&file, text).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    assert!(stored == text, "{path} differs from the table of functions: run with CAIRN_BLESS=1");
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for family in FAMILIES {
        let rows: Vec<&Function> =
            family.rows.iter().filter(|function| function.listing != Listing::Hidden).collect();
        if rows.is_empty() {
            continue;
        }
        write!(
            page,
            "\n## {}\n\n| function | returns | description | examples |\n|---|---|---|---|\n",
            family.title
        )
        .unwrap();
        for rows in rows.chunk_by(|a, b| (a.name, a.doc) == (b.name, b.doc)) {
            page += &line(&[
                each(rows, |function| code(&signature(function))),
                each(rows, |function| code(function.result.name())),
                documentation(rows[0]),
                examples(rows.iter().flat_map(|function| function.examples)),
            ]);
        }
    }
    page += "\n## System catalogs and the session\n\n| function | description |\n|---|---|\n";
    for (name, arguments, doc) in crate::pg_catalog::documented() {
        let arguments: Vec<&str> = arguments.iter().map(|kind| kind.name().trim_matches('"')).collect();
        page += &line(&[code(&format!("{name}({})", arguments.join(", "))), doc.to_owned()]);
    }
    page += "\n## Operators\n\n| operator | operands | returns | description | examples |\n|---|---|---|---|---|\n";
    for row in OPERATORS {
        page += &line(&[
            code(row.symbol),
            operands(row),
            row.result.map_or_else(|| "the same".to_owned(), |kind| code(kind.name())),
            row.doc.to_owned(),
            examples(row.examples),
        ]);
    }
    page += "\nOther syntax: `AND`, `OR`, `NOT`, `IS [NOT] NULL`, `IS [NOT] TRUE`, `IS [NOT] DISTINCT FROM`, `[NOT]\nBETWEEN [SYMMETRIC]`, `[NOT] IN`, `SIMILAR TO`, `CASE`, `ANY` and `ALL`.\n";
    page += "\n## Casts\n\nEach type is read from a text by an explicit cast, and written to a text by an assignment.\n";
    page += "\n| from | to | applied | description | examples |\n|---|---|---|---|---|\n";
    for cast in CASTS {
        let context = match cast.context {
            super::casts::Context::Explicit => "when it is written",
            super::casts::Context::Assignment => "in assignments",
            super::casts::Context::Implicit => "everywhere",
        };
        page += &line(&[
            code(cast.from.name()),
            kinds(cast.to),
            context.to_owned(),
            cast.doc.to_owned(),
            examples(cast.examples),
        ]);
    }
    page
}

/// A row of a Markdown table.
fn line(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// Code in a Markdown table.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// Joins the cells of several rows, each once.
fn each(rows: &[&Function], cell: impl Fn(&Function) -> String) -> String {
    let mut cells: Vec<String> = rows.iter().map(|function| cell(function)).collect();
    cells.dedup();
    cells.join("<br>")
}

fn signature(function: &Function) -> String {
    let required = function.arguments.len() - function.optional;
    let mut text = format!("{}(", function.name);
    for (at, kind) in function.arguments.iter().enumerate() {
        let is_optional = at >= required;
        text += if is_optional { " [" } else { "" };
        text += if at > 0 { ", " } else { "" };
        text += function.argument_names.get(at).map(|name| format!("{name} ")).unwrap_or_default().as_str();
        text += kind.name().trim_matches('"');
        text += if function.is_variadic && at + 1 == function.arguments.len() { ", ..." } else { "" };
    }
    text += &"]".repeat(function.optional);
    text + ")"
}

fn documentation(function: &Function) -> String {
    let mut text = function.doc.to_owned();
    if !function.aliases.is_empty() {
        let names: Vec<String> = function.aliases.iter().map(|name| code(name)).collect();
        write!(text, " Also {}.", names.join(", ")).unwrap();
    }
    text += match function.volatility {
        Volatility::Immutable => "",
        Volatility::Stable => " Constant within a statement.",
        Volatility::Volatile => " Volatile.",
    };
    text
}

fn examples<'e>(examples: impl IntoIterator<Item = &'e Example>) -> String {
    let shown = |(expr, value): &Example| {
        let value = if value.is_empty() { "empty".to_owned() } else { code(value) };
        format!("{} → {value}", code(expr))
    };
    examples.into_iter().map(shown).collect::<Vec<_>>().join("<br>")
}

fn kinds(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| code(kind.name())).collect::<Vec<_>>().join(", ")
}

fn operands(row: &OperatorRow) -> String {
    match row.operands {
        Operands::Same(same) if same.len() == 1 => format!("two {}", kinds(same)),
        Operands::Same(same) => format!("two of the same type: {}", kinds(same)),
        Operands::Pair(left, right) => format!("{} and {}", code(left.name()), code(right.name())),
        Operands::Prefix(of) => format!("one: {}", kinds(of)),
    }
}

/// The rows as JSON, an object a line.
fn list() -> String {
    let functions = all().filter(|function| function.listing != Listing::Hidden).map(|function| {
        let kind = match function.body {
            Body::Aggregate => "aggregate",
            Body::Window => "window",
            Body::General => "general",
            Body::Values(_) | Body::Double(_) | Body::Form(_) => "scalar",
        };
        let volatility = format!("{:?}", function.volatility).to_lowercase();
        format!(
            "{{\"name\": {}, \"arguments\": {}, \"optional\": {}, \"variadic\": {}, \"result\": {}, \"kind\": {}, \"volatility\": {}, \"examples\": {}}}",
            string(function.name),
            array(function.arguments.iter().map(|kind| string(kind.name()))),
            function.optional,
            function.is_variadic,
            string(function.result.name()),
            string(kind),
            string(&volatility),
            pairs(function.examples),
        )
    });
    let operators = OPERATORS.iter().flat_map(|row| row.signatures()).map(|operator| {
        format!(
            "{{\"symbol\": {}, \"left\": {}, \"right\": {}, \"result\": {}, \"examples\": {}}}",
            string(operator.row.symbol),
            operator.left.map_or_else(|| "null".to_owned(), |kind| string(kind.name())),
            string(operator.right.name()),
            string(operator.result.name()),
            pairs(operator.row.examples),
        )
    });
    let casts = CASTS.iter().flat_map(|cast| cast.to.iter().map(move |to| (cast, to))).map(|(cast, to)| {
        format!(
            "{{\"from\": {}, \"to\": {}, \"context\": {}, \"examples\": {}}}",
            string(cast.from.name()),
            string(to.name()),
            string(&format!("{:?}", cast.context).to_lowercase()),
            pairs(cast.examples),
        )
    });
    let lines = |lines: Vec<String>| lines.join(",\n    ");
    format!(
        "{{\n  \"functions\": [\n    {}\n  ],\n  \"operators\": [\n    {}\n  ],\n  \"casts\": [\n    {}\n  ]\n}}\n",
        lines(functions.collect()),
        lines(operators.collect()),
        lines(casts.collect())
    )
}

fn string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn pairs(examples: &[Example]) -> String {
    array(examples.iter().map(|(expr, value)| format!("[{}, {}]", string(expr), string(value))))
}
