//! PostgreSQL's dialect, with a bound on backtracking.
//!
//! Where the parser cannot tell which construct follows, it tries one and backtracks to try
//! another. Nested attempts double the work with each level, so that parsing a text of a few
//! hundred bytes can take hours. Therefore each attempt at an expression is counted, and a
//! statement with many more attempts than tokens ends with an error. One construct is disabled,
//! because the parser would try it for every call: `json_object('key' VALUE 1)`.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::Expr;
use sqlparser::dialect::{self, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

/// Attempts at expressions and names per token of a statement.
const TRIES: usize = 64;
/// Attempts that any statement may make, however short.
const TRIES_AT_LEAST: usize = 10_000;

/// The dialect of one statement.
#[derive(Debug)]
pub(super) struct Dialect {
    left: Cell<usize>,
}

impl Dialect {
    /// Returns the dialect for a statement of this many tokens.
    pub fn of(tokens: usize) -> Self {
        Dialect { left: Cell::new(TRIES_AT_LEAST.saturating_add(tokens.saturating_mul(TRIES))) }
    }

    /// Counts an attempt. Returns false if there were too many.
    fn try_once(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    /// Counts an attempt where no error can be returned. After too many, it consumes all tokens, so
    /// that the parser stops by itself.
    fn try_name(&self, parser: &mut Parser<'_>) {
        if !self.try_once() {
            while parser.next_token().token != Token::EOF {}
        }
    }
}

macro_rules! as_postgres {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            POSTGRES.$name()
        })*
    };
}

impl dialect::Dialect for Dialect {
    /// The parser checks this where PostgreSQL's syntax differs.
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        (!self.try_once()).then_some(Err(ParserError::RecursionLimitExceeded))
    }

    fn is_select_item_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.try_name(parser);
        POSTGRES.is_select_item_alias(explicit, keyword, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.try_name(parser);
        POSTGRES.is_table_factor_alias(explicit, keyword, parser)
    }

    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        POSTGRES.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        POSTGRES.is_identifier_part(ch)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        POSTGRES.is_custom_operator_part(ch)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        POSTGRES.is_reserved_for_identifier(keyword)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        POSTGRES.get_next_precedence(parser)
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        POSTGRES.prec_value(prec)
    }

    as_postgres! {
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_set_names,
        supports_alter_column_type_using,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_comment_optimizer_hint,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;

    /// Returns the number of attempts for a text; `None` if the parser is stopped.
    fn tries(sql: &str) -> Option<usize> {
        let tokens = Tokenizer::new(&POSTGRES, sql).tokenize_with_location().unwrap();
        let dialect = Dialect::of(tokens.len());
        let most = dialect.left.get();
        let parser = Parser::new(&dialect).with_recursion_limit(1_000);
        let parsed = parser.with_tokens_with_locations(tokens).parse_statement();
        parsed.is_ok().then(|| most - dialect.left.get())
    }

    /// Goal: the parser's work is linear in the statement. Method: nested calls and brackets, of
    /// two depths.
    #[test]
    fn work_grows_with_the_text() {
        for (open, close) in [
            ("abs(", ")"),
            ("coalesce(", ", 1)"),
            ("replace(", ", 'a', 'b')"),
            ("f(1, ", ")"),
            ("(", ")"),
            ("case when true then ", " end"),
            ("array[", "]"),
            ("row(", ", 2)"),
            ("(select ", ")"),
            ("cast(", " as int)"),
            ("substring(", " from 1)"),
            ("extract(year from ", ")"),
            ("trim(", ")"),
        ] {
            let work = |n: usize| {
                let sql = format!("select {}a{}", open.repeat(n), close.repeat(n));
                tries(&sql).unwrap_or_else(|| panic!("{open} is stopped"))
            };
            let (few, many) = (work(50), work(100));
            assert!(many < few * 5 / 2, "{open}: {few}, then {many}");
        }
    }

    /// Goal: exponential backtracking is stopped. Method: joins in brackets that begin with
    /// queries, so that each bracket is parsed twice, and a syntax error within ambiguous brackets.
    #[test]
    fn endless_tries_are_stopped() {
        let mut inner = "t".to_owned();
        for _ in 0..40 {
            inner = format!("((select * from {inner} x) a join t b on true)");
        }
        // The parser's frames are large without optimization.
        stacker::grow(64 << 20, || {
            assert_eq!(tries(&format!("select * from {inner}")), None);
            let faulty = format!("select {}a a a{}", "position(".repeat(60), ")".repeat(60));
            assert_eq!(tries(&faulty), None);
        });
    }
}
