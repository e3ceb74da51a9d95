//! The 22 queries, as tpchgen has them from the specification, with the parameters of the published
//! answers.

use tpchgen::q_and_a::queries;

use crate::stores::sql::Dialect;

/// The values of `:1`, `:2`, … in each query.
const PARAMETERS: [&[&str]; super::QUERIES] = [
    &["90"],
    &["15", "BRASS", "EUROPE"],
    &["BUILDING", "1995-03-15"],
    &["1993-07-01"],
    &["ASIA", "1994-01-01"],
    &["1994-01-01", "0.06", "24"],
    &["FRANCE", "GERMANY"],
    &["BRAZIL", "AMERICA", "ECONOMY ANODIZED STEEL"],
    &["green"],
    &["1993-10-01"],
    // The second parameter depends on the scale factor.
    &["GERMANY"],
    &["MAIL", "SHIP", "1994-01-01"],
    &["special", "requests"],
    &["1995-09-01"],
    &["1996-01-01"],
    &["Brand#45", "MEDIUM POLISHED", "49", "14", "23", "45", "19", "3", "36", "9"],
    &["Brand#23", "MED BOX"],
    &["300"],
    &["Brand#12", "Brand#23", "Brand#34", "1", "10", "20"],
    &["forest", "1994-01-01", "CANADA"],
    &["SAUDI ARABIA"],
    &["13", "31", "23", "29", "30", "18", "17"],
];

/// Returns the maximum number of rows of an answer, if it is limited.
fn limit(number: usize) -> Option<u32> {
    match number {
        2 | 18 | 21 => Some(100),
        3 => Some(10),
        10 => Some(20),
        _ => None,
    }
}

/// Returns the text of a query, by its number from 1. Empty if there is no such query.
pub fn sql(number: usize, scale: f64, dialect: Dialect) -> String {
    let text = i32::try_from(number).ok().and_then(queries::query).unwrap_or_default();
    let text = if number == 15 { without_view(text) } else { text.to_owned() };
    let mut text = text.trim().trim_end_matches(';').to_owned();
    let mut parameters: Vec<String> = PARAMETERS
        .get(number.wrapping_sub(1))
        .map_or_else(Vec::new, |known| known.iter().map(|&known| known.to_owned()).collect());
    if number == 11 {
        parameters.push(format!("{:.10}", 0.0001 / scale));
    }
    // Starts with the last parameter, because :1 is also a prefix of :10.
    for (index, value) in parameters.iter().enumerate().rev() {
        text = text.replace(&format!(":{}", index + 1), value);
    }
    text = text.replace("day (3)", "day");
    if number == 13 {
        // Not every engine supports column names behind the name of a subquery.
        text = text.replace("count(o_orderkey)\n", "count(o_orderkey) as c_count\n");
        text = text.replace("c_orders (c_custkey, c_count)", "c_orders");
    }
    if let Some(limit) = limit(number) {
        text += &format!("\nlimit {limit}");
    }
    if dialect == Dialect::Sqlite { for_sqlite(number, &text) } else { text }
}

/// Turns the view of query 15 into a common table expression, so that the query is one statement.
fn without_view(text: &str) -> String {
    let text = text.replace("revenue:s", "revenue");
    let text = text.replacen("create view revenue (supplier_no, total_revenue) as", "with revenue as (", 1);
    let text = text.replacen("\t\tl_suppkey,\n", "\t\tl_suppkey as supplier_no,\n", 1);
    let text = text.replacen(
        "sum(l_extendedprice * (1 - l_discount))",
        "sum(l_extendedprice * (1 - l_discount)) as total_revenue",
        1,
    );
    let text = text.replacen(';', ")", 1);
    text.split_once("drop view").map_or_else(|| text.clone(), |(query, _)| query.trim().to_owned())
}

/// Adapts a query to SQLite, which stores dates as text and computes with them by functions. Its
/// planner does not recognize a join condition inside `OR`, so the condition is moved out. In
/// floating point 0.06 + 0.01 is less than 0.07, so the sum is computed here.
fn for_sqlite(number: usize, text: &str) -> String {
    let mut text = dates(text);
    text = between(&text, "extract(year from ", ")", |column| {
        format!("cast(strftime('%Y', {column}) as integer)")
    });
    text = between(&text, "substring(", ")", |what| {
        format!("substr({})", what.replace(" from ", ", ").replace(" for ", ", "))
    });
    match number {
        6 => text.replace("0.06 - 0.01 and 0.06 + 0.01", "0.05 and 0.07"),
        19 => {
            let all = text.replace("\t\tp_partkey = l_partkey\n\t\tand p_brand", "\t\tp_brand");
            all.replacen("where\n", "where\n\tp_partkey = l_partkey and (\n", 1) + "\n)"
        }
        _ => text,
    }
}

/// Rewrites `date '1994-01-01' + interval '1' year` as `date('1994-01-01', '+1 year')`, and `date
/// '1994-01-01'` as text.
fn dates(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("date '") {
        let (day, after) = after.split_once('\'').unwrap_or((after, ""));
        out += before;
        let shift = ["+", "-"].iter().find_map(|sign| {
            let (count, after) = after.strip_prefix(&format!(" {sign} interval '"))?.split_once("' ")?;
            let unit = ["day", "month", "year"].into_iter().find(|unit| after.starts_with(unit))?;
            Some((format!("date('{day}', '{sign}{count} {unit}')"), after.get(unit.len()..)?))
        });
        match shift {
            Some((call, after)) => {
                out += &call;
                rest = after;
            }
            None => {
                out += &format!("'{day}'");
                rest = after;
            }
        }
    }
    out + rest
}

/// Rewrites the text between two delimiters, including the delimiters.
fn between(text: &str, start: &str, end: &str, rewrite: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(start) {
        let (inside, after) = after.split_once(end).unwrap_or((after, ""));
        out += before;
        out += &rewrite(inside);
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every query is one statement that contains all its parameters, in every dialect.
    #[test]
    fn queries_are_whole() {
        for number in 1..=crate::suites::sql::tpch::QUERIES {
            for dialect in [Dialect::Postgres, Dialect::DuckDb, Dialect::Sqlite] {
                let text = sql(number, 0.1, dialect);
                assert!(text.starts_with("select") || text.starts_with("with"), "{text}");
                assert!(!text.contains(':') && !text.contains(';') && !text.contains("view"), "{text}");
                assert_eq!(text.matches('(').count(), text.matches(')').count(), "{text}");
                let is_plain =
                    !text.contains("interval") && !text.contains("extract") && !text.contains("date '");
                assert!(dialect != Dialect::Sqlite || is_plain, "{text}");
            }
        }
        assert!(sql(11, 0.1, Dialect::Postgres).contains("* 0.0010000000"));
        assert!(sql(16, 1.0, Dialect::Postgres).contains("(49, 14, 23, 45, 19, 3, 36, 9)"));
        assert!(sql(1, 1.0, Dialect::Sqlite).contains("<= date('1998-12-01', '-90 day')"));
        assert_eq!(sql(23, 1.0, Dialect::Postgres), "");
    }
}
