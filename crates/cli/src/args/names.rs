//! Names from lists: stores, peers, policies, suites. The error for an unknown name mentions its
//! option and lists the known names.

use cairn_bench::catalog::installed;
use cairn_bench::suites::all::SuiteName;
use cairn_bench::suites::index::{self, Suite};
use cairn_bench::suites::kv::{Benchmark, Mode};
use cairn_pool::PolicyKind;

/// Stands for all names of a list, or for none.
const ALL_OR_NONE: [&str; 2] = ["all", "none"];

/// A key-value store.
pub fn store(name: &str) -> Result<String, String> {
    one_of(name, installed().kv.all_names())
}

/// Returns the help of an option that takes names of key-value stores.
pub fn stores_help() -> String {
    format!("Stores to measure [default: {}]", stores())
}

/// Returns the names of the key-value stores that take part by default, with commas.
pub fn stores() -> String {
    installed().kv.names().join(",")
}

/// A mode of `cairn bench kv`, or a word for several.
pub fn mode(name: &str) -> Result<String, String> {
    let modes = Mode::parse("all").unwrap_or_default();
    let modes: Vec<String> = modes.iter().map(Mode::name).collect();
    one_of(name, modes.iter().map(String::as_str).chain(["dkv", "ycsb", "all"]))
}

/// A benchmark of `db_bench`.
pub fn benchmark(name: &str) -> Result<Benchmark, String> {
    name.parse().map_err(|_| expected(Benchmark::ALL.into_iter().map(Benchmark::name)))
}

/// A peer of `cairn bench pool`.
pub fn pool_peer(name: &str) -> Result<String, String> {
    one_of(name, installed().pages.peer_names().into_iter().chain(ALL_OR_NONE))
}

/// A replacement policy, however it is spelt.
pub fn policy(name: &str) -> Result<String, String> {
    if ALL_OR_NONE.contains(&name) || name.parse::<PolicyKind>().is_ok() {
        return Ok(name.to_owned());
    }
    let known = PolicyKind::ALL.map(|kind| kind.name().to_ascii_lowercase());
    Err(expected(known.iter().map(String::as_str).chain(ALL_OR_NONE)))
}

/// An engine of `cairn bench sql`.
pub fn sql_peer(name: &str) -> Result<String, String> {
    one_of(name, installed().sql.names().into_iter().chain(ALL_OR_NONE))
}

/// A suite of `cairn bench index`.
pub fn index_suite(name: &str) -> Result<String, String> {
    one_of(name, Suite::ALL.iter().map(|suite| suite.name()).chain(["all"]))
}

/// A contender of `cairn bench index`.
pub fn index_contender(name: &str) -> Result<String, String> {
    one_of(name, index::CONTENDERS)
}

/// A suite of `cairn bench all`.
pub fn suite(name: &str) -> Result<String, String> {
    one_of(name, SuiteName::ALL.map(SuiteName::word))
}

fn one_of<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Result<String, String> {
    let known: Vec<&str> = known.into_iter().collect();
    if known.contains(&name) { Ok(name.to_owned()) } else { Err(expected(known)) }
}

fn expected<'a>(known: impl IntoIterator<Item = &'a str>) -> String {
    format!("expected one of {}", known.into_iter().collect::<Vec<_>>().join(", "))
}
