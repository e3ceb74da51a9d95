//! SET and SHOW.

use std::collections::BTreeMap;
use std::time::Duration;

use cairn_table::{Durability, Isolation, PUBLIC};
use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};

use crate::database::Shared;
use crate::error::{Error, Result};
use crate::sqlstate::{CANT_CHANGE_RUNTIME_PARAM, INVALID_PARAMETER_VALUE, UNDEFINED_OBJECT};

/// The version of PostgreSQL whose dialect, messages and catalogs these are.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// Who is connected, as long as nobody says who.
const DEFAULT_USER: &str = "cairn";

/// Settings that anybody may change and that say what is done.
const OWN: &[&str] = &[
    "cairn.direct_path",
    "cairn.optimizer",
    "default_transaction_isolation",
    "default_transaction_read_only",
    "lock_timeout",
    "search_path",
    "statement_timeout",
    "synchronous_commit",
    "transaction_isolation",
    "transaction_read_only",
];

/// Settings that anybody may change and that are only remembered: what they are at first.
const REMEMBERED: &[(&str, &str)] = &[
    ("application_name", ""),
    ("backslash_quote", "safe_encoding"),
    ("bytea_output", "hex"),
    ("check_function_bodies", "on"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("constraint_exclusion", "partition"),
    ("datestyle", "ISO, MDY"),
    ("default_table_access_method", "heap"),
    ("default_tablespace", ""),
    ("default_toast_compression", "pglz"),
    ("default_transaction_deferrable", "off"),
    ("enable_seqscan", "on"),
    ("escape_string_warning", "on"),
    ("extra_float_digits", "1"),
    ("idle_in_transaction_session_timeout", "0"),
    ("intervalstyle", "postgres"),
    ("jit", "off"),
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("maintenance_work_mem", "64MB"),
    ("quote_all_identifiers", "off"),
    ("row_security", "on"),
    ("standard_conforming_strings", "on"),
    ("synchronize_seqscans", "on"),
    ("temp_buffers", "8MB"),
    ("timezone", "UTC"),
    ("work_mem", "4MB"),
    ("xmloption", "content"),
];

/// Those of them that are on or off.
const SWITCHES: &[&str] = &[
    "check_function_bodies",
    "default_transaction_deferrable",
    "enable_seqscan",
    "escape_string_warning",
    "jit",
    "quote_all_identifiers",
    "row_security",
    STRINGS,
    "synchronize_seqscans",
];

/// Whether a backslash in a text is no more than that: it is.
const STRINGS: &str = "standard_conforming_strings";

/// Settings that nobody changes.
const FIXED: &[(&str, &str)] = &[
    ("block_size", "8192"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("is_superuser", "on"),
    ("lc_collate", "C"),
    ("lc_ctype", "C.UTF-8"),
    ("max_connections", "100"),
    ("max_identifier_length", "1073741824"),
    ("max_index_keys", "32"),
    ("server_encoding", "UTF8"),
    ("server_version", SERVER_VERSION),
    ("server_version_num", "150000"),
    ("session_authorization", DEFAULT_USER),
    ("wal_level", "replica"),
];

/// The settings of a session.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub default_isolation: Isolation,
    pub default_read_only: bool,
    pub durability: Durability,
    pub statement_timeout: Option<Duration>,
    pub lock_timeout: Option<Duration>,
    /// `cairn.direct_path`: whether the direct path may run what it can. Off sends every statement
    /// through the general path, so that tests can hold the two against each other.
    pub direct_path: bool,
    /// `cairn.optimizer`: whether plans of the general path are optimized beyond what it takes to
    /// run them. Off is for tests that look for wrong answers of the optimizer.
    pub optimizer: bool,
    /// Namespaces that names without one are looked up in.
    pub search_path: Vec<String>,
    /// The number of the last change, of plans' names too: 0 as long as there was none. No other
    /// session of the database has its number, as a statement may be run by several.
    pub version: u64,
    /// The last number that any session has.
    versions: Arc<AtomicU64>,
    /// What they go back to; these themselves have none.
    first: Option<Arc<Settings>>,
    /// Nothing can be written, whatever they say.
    is_read_only: bool,
    others: Arc<BTreeMap<String, String>>,
}

impl Settings {
    pub fn new(shared: &Shared) -> Self {
        let mut settings = Settings {
            default_isolation: Isolation::ReadCommitted,
            default_read_only: false,
            durability: shared.durability,
            statement_timeout: shared.statement_timeout,
            lock_timeout: shared.lock_timeout,
            direct_path: true,
            optimizer: true,
            search_path: vec![PUBLIC.to_owned()],
            version: 0,
            versions: Arc::clone(&shared.settings_versions),
            first: None,
            is_read_only: shared.read_only,
            others: Arc::new(
                REMEMBERED
                    .iter()
                    .chain(FIXED)
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
            ),
        };
        settings.keep();
        settings
    }

    /// What they are now is what they go back to from here on.
    pub fn keep(&mut self) {
        self.first = Some(Arc::new(Settings { first: None, ..self.clone() }));
    }

    /// Makes all of them what they were at first.
    pub fn reset(&mut self) {
        let user = self.user().to_owned();
        if let Some(first) = self.first.clone() {
            self.restore(Settings { first: Some(Arc::clone(&first)), ..(*first).clone() });
        }
        self.set_user(&user);
    }

    /// Puts those of another time in their place.
    pub fn restore(&mut self, before: Settings) {
        *self = before;
        self.change();
    }

    /// What was planned before holds no more.
    pub fn change(&mut self) {
        self.version = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
    }

    /// Who is connected. All may do everything; this is what they are told.
    pub fn user(&self) -> &str {
        self.others.get("session_authorization").map_or(DEFAULT_USER, String::as_str)
    }

    pub fn set_user(&mut self, user: &str) {
        self.change();
        Arc::make_mut(&mut self.others).insert("session_authorization".to_owned(), user.to_owned());
    }

    /// The namespace that things without one are made in.
    pub fn schema(&self) -> &str {
        self.search_path.iter().find(|schema| !schema.starts_with("pg_")).map_or(PUBLIC, String::as_str)
    }

    /// The value of a setting; `None` for one that does not exist.
    pub fn get(&self, name: &str) -> Option<String> {
        let name = name.to_ascii_lowercase();
        let on = |value: bool| if value { "on" } else { "off" }.to_owned();
        Some(match name.as_str() {
            "default_transaction_isolation" | "transaction_isolation" => {
                isolation_name(self.default_isolation).to_owned()
            }
            "default_transaction_read_only" | "transaction_read_only" => {
                on(self.default_read_only || self.is_read_only)
            }
            "synchronous_commit" => on(self.durability == Durability::Sync),
            "cairn.direct_path" => on(self.direct_path),
            "cairn.optimizer" => on(self.optimizer),
            "statement_timeout" => shown(self.statement_timeout),
            "lock_timeout" => shown(self.lock_timeout),
            "search_path" => self.search_path.join(", "),
            _ => self.others.get(&name)?.clone(),
        })
    }

    /// All settings and their values.
    pub fn all(&self) -> Vec<(String, String)> {
        let names = OWN.iter().copied().chain(self.others.keys().map(String::as_str));
        let mut all: Vec<_> = names.filter_map(|name| Some((name.to_owned(), self.get(name)?))).collect();
        all.sort();
        all
    }

    /// Changes a setting; `None` makes it what it was at first.
    ///
    /// Errors: 42704, 22023, 55P02; 0A000 for values that would change nothing of what is done.
    pub fn set(&mut self, name: &str, values: Option<&[String]>) -> Result<()> {
        let name = name.to_ascii_lowercase();
        check_changeable(&name)?;
        // Plans may have a setting's value in them.
        self.change();
        let Some(values) = values else {
            self.go_back(&name);
            return Ok(());
        };
        let value = values.join(", ");
        let invalid = || invalid(&name, &value);
        match name.as_str() {
            "default_transaction_isolation" | "transaction_isolation" => {
                self.default_isolation = isolation_of(&value).ok_or_else(invalid)?;
            }
            "default_transaction_read_only" | "transaction_read_only" => {
                self.default_read_only = switch(&value).ok_or_else(invalid)?;
            }
            "cairn.direct_path" => self.direct_path = switch(&value).ok_or_else(invalid)?,
            "cairn.optimizer" => self.optimizer = switch(&value).ok_or_else(invalid)?,
            "synchronous_commit" => {
                self.durability = match value.as_str() {
                    "off" | "false" | "no" | "0" => Durability::Buffered,
                    "on" | "true" | "yes" | "1" | "local" | "remote_write" | "remote_apply" => {
                        Durability::Sync
                    }
                    _ => return Err(invalid()),
                }
            }
            "statement_timeout" | "lock_timeout" => {
                let given = duration(&value).ok_or_else(invalid)?;
                let place = match name.as_str() {
                    "lock_timeout" => &mut self.lock_timeout,
                    _ => &mut self.statement_timeout,
                };
                *place = Some(given).filter(|given| !given.is_zero());
            }
            "search_path" => {
                let names = values.iter().flat_map(|value| value.split(','));
                let names = names.map(|name| name.trim().trim_matches('"').to_owned());
                self.search_path = names.filter(|name| !name.is_empty() && name != "$user").collect();
            }
            _ => {
                let value = canonical(&name, &value)?;
                Arc::make_mut(&mut self.others).insert(name, value);
            }
        }
        Ok(())
    }

    /// Makes one of them what it was at first.
    fn go_back(&mut self, name: &str) {
        let Some(first) = self.first.clone() else { return };
        match name {
            "default_transaction_isolation" | "transaction_isolation" => {
                self.default_isolation = first.default_isolation;
            }
            "default_transaction_read_only" | "transaction_read_only" => {
                self.default_read_only = first.default_read_only;
            }
            "cairn.direct_path" => self.direct_path = first.direct_path,
            "cairn.optimizer" => self.optimizer = first.optimizer,
            "synchronous_commit" => self.durability = first.durability,
            "statement_timeout" => self.statement_timeout = first.statement_timeout,
            "lock_timeout" => self.lock_timeout = first.lock_timeout,
            "search_path" => self.search_path.clone_from(&first.search_path),
            // Of names with a point there may be none at first.
            _ => {
                let value = first.others.get(name).cloned().unwrap_or_default();
                Arc::make_mut(&mut self.others).insert(name.to_owned(), value);
            }
        }
    }
}

/// Errors: 42704 for a setting that does not exist, 55P02 for one that nobody changes.
fn check_changeable(name: &str) -> Result<()> {
    let has = |known: &[(&str, &str)]| known.iter().any(|(known, _)| *known == name);
    if has(FIXED) {
        return Err(Error::new(CANT_CHANGE_RUNTIME_PARAM, format!("parameter \"{name}\" cannot be changed")));
    }
    if !OWN.contains(&name) && !has(REMEMBERED) && !name.contains('.') {
        return Err(Error::new(UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\"")));
    }
    Ok(())
}

fn invalid(name: &str, value: &str) -> Error {
    Error::new(INVALID_PARAMETER_VALUE, format!("invalid value for parameter \"{name}\": \"{value}\""))
}

/// The value of a setting that is only remembered as PostgreSQL shows it: clients compare it letter
/// by letter.
///
/// Errors: 22023; 0A000 for what would have to be done otherwise than it is.
fn canonical(name: &str, value: &str) -> Result<String> {
    let unsupported = || Error::unsupported(format_args!("{name} = {value}"));
    let one_of = |done: &str, others: &[&str]| match value.trim().to_ascii_lowercase() {
        value if value == done => Ok(value),
        value if others.contains(&value.as_str()) => Err(unsupported()),
        _ => Err(invalid(name, value)),
    };
    match name {
        _ if SWITCHES.contains(&name) => match switch(value).ok_or_else(|| invalid(name, value))? {
            false if name == STRINGS => Err(unsupported()),
            is_on => Ok(if is_on { "on" } else { "off" }.to_owned()),
        },
        "bytea_output" => one_of("hex", &["escape"]),
        "client_encoding" => encoding(value)
            .map(str::to_owned)
            .ok_or_else(|| Error::unsupported(format_args!("the encoding {value}"))),
        "datestyle" => date_style(value),
        "intervalstyle" => one_of("postgres", &["iso_8601", "postgres_verbose", "sql_standard"]),
        "timezone" => utc(value).ok_or_else(|| Error::unsupported(format_args!("the time zone {value}"))),
        _ => Ok(value.to_owned()),
    }
}

/// The name of an encoding that texts are in without being turned into it; signs between letters do
/// not count.
fn encoding(value: &str) -> Option<&'static str> {
    let letters: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    match letters.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" | "default" => Some("UTF8"),
        "sqlascii" => Some("SQL_ASCII"),
        _ => None,
    }
}

/// A style of dates: they are written as ISO has it. The order of day and month counts for nothing,
/// as no date is read whose order would be in doubt.
///
/// Errors: 22023 for what is no style; 0A000 for another one.
fn date_style(value: &str) -> Result<String> {
    let mut order = "MDY";
    let mut is_other = false;
    for word in value.split([',', ' ']).filter(|word| !word.is_empty()) {
        match word.to_ascii_lowercase().as_str() {
            "iso" | "default" => {}
            "mdy" | "us" | "noneuro" | "noneuropean" => order = "MDY",
            "dmy" | "euro" | "european" => order = "DMY",
            "ymd" => order = "YMD",
            "german" | "postgres" | "sql" => is_other = true,
            _ => return Err(invalid("datestyle", value)),
        }
    }
    if is_other {
        return Err(Error::unsupported(format_args!("datestyle = {value}")));
    }
    Ok(format!("ISO, {order}"))
}

/// How a time zone is spelled whose clocks show what those of UTC do; `None` for any other.
fn utc(zone: &str) -> Option<String> {
    const NAMES: [&str; 10] =
        ["UTC", "GMT", "UCT", "Zulu", "Universal", "Greenwich", "GMT0", "GMT+0", "GMT-0", "Z"];
    let zone = zone.trim();
    let (region, name) = match zone.split_at_checked(4) {
        Some((region, name)) if region.eq_ignore_ascii_case("etc/") => ("Etc/", name),
        _ => ("", zone),
    };
    if let Some(known) = NAMES.iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return Some(format!("{region}{known}"));
    }
    let is_own = ["", "default", "local"].iter().any(|own| own.eq_ignore_ascii_case(zone));
    // No hours to either side.
    let is_number = zone.bytes().all(|byte| matches!(byte, b'0' | b'+' | b'-' | b':' | b'.'));
    (is_own || is_number).then(|| "UTC".to_owned())
}

pub(crate) fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadCommitted => "read committed",
        Isolation::Snapshot => "repeatable read",
        Isolation::Serializable => "serializable",
    }
}

fn isolation_of(text: &str) -> Option<Isolation> {
    match text.to_ascii_lowercase().as_str() {
        "read committed" | "read uncommitted" => Some(Isolation::ReadCommitted),
        "repeatable read" | "snapshot" => Some(Isolation::Snapshot),
        "serializable" => Some(Isolation::Serializable),
        _ => None,
    }
}

fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// A time as PostgreSQL shows it: in the greatest unit that divides it.
fn shown(time: Option<Duration>) -> String {
    let millis = time.map_or(0, |time| time.as_millis());
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms")];
    let unit = units.iter().find(|(millis_each, _)| millis.is_multiple_of(*millis_each));
    match unit {
        Some((millis_each, unit)) if millis > 0 => format!("{}{unit}", millis / millis_each),
        _ => "0".to_owned(),
    }
}

/// `1500`, `1500ms`, `2s`, `1min`, `1h`; milliseconds without a unit.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(at);
    let count: u64 = digits.parse().ok()?;
    let millis = match unit.trim() {
        "" | "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(count.checked_mul(millis)?))
}
