//! Statements for the server, and their answers.

use std::time::Duration;

use cairn_vfs::{Clock, SystemClock};

use crate::core::answer::Answer;
use crate::core::error::Result;
use crate::stores::copy_text::append_text;
use crate::stores::sql::SqlSession;

/// Runs a query and returns its answer for comparison.
pub(super) fn answer(session: &mut dyn SqlSession, sql: &str) -> Result<Answer> {
    let mut answer = Answer::default();
    for statement in statements(sql) {
        session.select(statement, &mut |row| answer.add(row))?;
    }
    Ok(answer)
}

/// Runs a query and returns its rows as text.
pub(super) fn text(session: &mut dyn SqlSession, sql: &str) -> Result<String> {
    let mut out = Vec::new();
    for statement in statements(sql) {
        session.select(statement, &mut |row| {
            for cell in row {
                append_text(*cell, &mut out);
                out.push(b'|');
            }
            out.push(b'\n');
        })?;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Runs a query and returns its only number.
pub(super) fn number(session: &mut dyn SqlSession, sql: &str) -> Result<f64> {
    let text = text(session, sql)?;
    Ok(text.trim_end_matches(['|', '\n']).parse().unwrap_or(f64::NAN))
}

pub(super) fn statements(sql: &str) -> impl Iterator<Item = &str> {
    sql.split(';').map(str::trim).filter(|statement| !statement.is_empty())
}

/// Runs several statements.
pub(super) fn execute(session: &mut dyn SqlSession, sql: &str) -> Result<()> {
    statements(sql).try_for_each(|statement| session.execute(statement).map(drop))
}

/// Measures how long a query takes, including reading its rows, in nanoseconds.
pub(super) fn time(session: &mut dyn SqlSession, sql: &str) -> Result<f64> {
    let clock = SystemClock::new();
    let began = clock.now();
    for statement in statements(sql) {
        session.select(statement, &mut |_| {})?;
    }
    Ok((clock.now() - began).as_nanos() as f64)
}

/// Runs a query repeatedly, at least three times, and returns the nanoseconds of each execution.
pub(super) fn times(session: &mut dyn SqlSession, sql: &str, seconds: f64) -> Result<Vec<f64>> {
    let clock = SystemClock::new();
    let until = clock.now() + Duration::from_secs_f64(seconds);
    let mut all = Vec::new();
    while all.len() < 3 || (clock.now() < until && all.len() < 100_000) {
        all.push(time(session, sql)?);
    }
    Ok(all)
}

/// Returns the lines of a plan. With `analyze` they include the buffers that were used.
pub(super) fn plan(session: &mut dyn SqlSession, sql: &str, analyze: bool) -> Result<String> {
    let how =
        if analyze { "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, COSTS OFF) " } else { "EXPLAIN (COSTS OFF) " };
    statements(sql).map(|statement| text(session, &format!("{how}{statement}"))).collect()
}

/// Returns the buffers hit and read by the top nodes of the plans. Buffers of planning come later
/// in the text and are not counted.
pub(super) fn buffers(plan: &str) -> (f64, f64) {
    let (mut hit, mut read, mut counted) = (0.0, 0.0, false);
    for line in plan.lines() {
        // A plan begins at the left margin. The buffers of its top node come before those of the
        // nodes below.
        if !line.starts_with(' ') {
            counted = line.starts_with("Planning:");
        }
        if counted {
            continue;
        }
        let Some((_, found)) = line.split_once("Buffers: shared") else { continue };
        counted = true;
        let of = |word: &str| {
            let rest = found.split_once(word)?.1;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<f64>().ok()
        };
        hit += of("hit=").unwrap_or(0.0);
        read += of("read=").unwrap_or(0.0);
    }
    (hit, read)
}
