//! Functions that write texts from values: concatenation, quotes, `format`.

use super::Kind::{Any, AnyElement, Text};
use super::{Call, Function, check_length, function};
use crate::datum::Datum;
use crate::error::Result;
use crate::expr::Val;
use crate::expr::quote::{format, quote_literal};
use crate::syntax::quote_ident;

pub(super) static ROWS: &[Function] = &[
    function("concat", &[Any], Text, concat).variadic().called_on_null().doc(
        "Joins the texts of all arguments. NULLs are left out.",
        &[("concat('abcde', 2, NULL, 22)", "abcde222"), ("concat(NULL, true)", "t")],
    ),
    function("concat_ws", &[Text, Any], Text, concat_ws).optional(1).variadic().called_on_null().doc(
        "Joins the texts of all arguments but the first, which is put between them.",
        &[("concat_ws(',', 'abcde', 2, NULL, 22)", "abcde,2,22"), ("concat_ws(NULL, 'a')", "NULL")],
    ),
    function("format", &[Text, Any], Text, |c| Ok(format(c.values)?.map_or(Datum::Null, Datum::Text)))
        .optional(1)
        .variadic()
        .called_on_null()
        .doc(
            "Replaces `%s` by a value, `%I` by an identifier, `%L` by a literal, with widths and `%n$`.",
            &[
                ("format('Hello %s, %1$s', 'World')", "Hello World, World"),
                ("format('%I = %L', 'a b', 'it''s')", "\"a b\" = 'it''s'"),
                ("format('%s')", "22023"),
            ],
        ),
    function("quote_ident", &[Text], Text, |c| Ok(Datum::Text(quote_ident(c.text(0))))).doc(
        "As an identifier of SQL, in quotes where it needs them.",
        &[("quote_ident('Foo bar')", "\"Foo bar\""), ("quote_ident('foo')", "foo")],
    ),
    function("quote_literal", &[AnyElement], Text, |c| Ok(Datum::Text(quote_literal(c.text(0))))).doc(
        "As a literal of SQL.",
        &[("quote_literal('O''Reilly')", "'O''Reilly'"), ("quote_literal(42.5)", "'42.5'")],
    ),
    function("quote_nullable", &[AnyElement], Text, |c| {
        Ok(Datum::Text(match c.value(0).is_null() {
            true => "NULL".to_owned(),
            false => quote_literal(c.text(0)),
        }))
    })
    .called_on_null()
    .doc(
        "As a literal of SQL; the word NULL for NULL.",
        &[("quote_nullable(NULL)", "NULL"), ("quote_nullable(42.5)", "'42.5'")],
    ),
];

fn concat(c: &Call<'_>) -> Result<Datum> {
    let mut all = String::new();
    for value in c.values.iter().filter(|value| !value.is_null()) {
        let text = value.text();
        check_length(all.len().saturating_add(text.len()))?;
        all += &text;
    }
    Ok(Datum::Text(all))
}

fn concat_ws(c: &Call<'_>) -> Result<Datum> {
    let Some((separator, rest)) = c.values.split_first().filter(|(separator, _)| !separator.is_null()) else {
        return Ok(Datum::Null);
    };
    let mut all = String::new();
    for (at, value) in rest.iter().filter(|value| !Val::is_null(value)).enumerate() {
        let (between, text) = (if at > 0 { separator.text() } else { "".into() }, value.text());
        check_length(all.len().saturating_add(between.len()).saturating_add(text.len()))?;
        all += &between;
        all += &text;
    }
    Ok(Datum::Text(all))
}
