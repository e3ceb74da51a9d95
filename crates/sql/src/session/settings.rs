//! SET and SHOW.

use std::collections::BTreeMap;
use std::time::Duration;

use cairn_table::{Durability, Isolation, PUBLIC};
use cairn_vfs::sync::Arc;

use crate::database::Shared;
use crate::error::{Error, Result};
use crate::sqlstate::{CANT_CHANGE_RUNTIME_PARAM, INVALID_PARAMETER_VALUE, UNDEFINED_OBJECT};

/// The version of PostgreSQL whose dialect, messages and catalogs these are.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// Who is connected, as long as nobody says who.
const DEFAULT_USER: &str = "cairn";

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
    /// Namespaces that names without one are looked up in.
    pub search_path: Vec<String>,
    /// Counts changes that names depend on.
    pub version: u64,
    /// Of statements and of locks.
    timeouts_at_first: (Option<Duration>, Option<Duration>),
    durability_at_first: Durability,
    others: Arc<BTreeMap<String, String>>,
}

impl Settings {
    pub fn new(shared: &Shared) -> Self {
        Settings {
            default_isolation: Isolation::ReadCommitted,
            default_read_only: false,
            durability: shared.durability,
            statement_timeout: shared.statement_timeout,
            lock_timeout: shared.lock_timeout,
            search_path: vec![PUBLIC.to_owned()],
            version: 0,
            timeouts_at_first: (shared.statement_timeout, shared.lock_timeout),
            durability_at_first: shared.durability,
            others: Arc::new(
                REMEMBERED
                    .iter()
                    .chain(FIXED)
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
            ),
        }
    }

    /// Makes all of them what they were at first.
    pub fn reset(&mut self, shared: &Shared) {
        let (version, user) = (self.version, self.user().to_owned());
        *self = Settings { version: version + 1, ..Settings::new(shared) };
        self.set_user(&user);
    }

    /// Puts those of another time in their place.
    pub fn restore(&mut self, before: Settings) {
        let version = self.version;
        *self = Settings { version: version + 1, ..before };
    }

    /// Who is connected. All may do everything; this is what they are told.
    pub fn user(&self) -> &str {
        self.others.get("session_authorization").map_or(DEFAULT_USER, String::as_str)
    }

    pub fn set_user(&mut self, user: &str) {
        self.version += 1;
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
            "default_transaction_read_only" | "transaction_read_only" => on(self.default_read_only),
            "synchronous_commit" => on(self.durability == Durability::Sync),
            "statement_timeout" => shown(self.statement_timeout),
            "lock_timeout" => shown(self.lock_timeout),
            "search_path" => self.search_path.join(", "),
            _ => self.others.get(&name)?.clone(),
        })
    }

    /// All settings and their values.
    pub fn all(&self) -> Vec<(String, String)> {
        let own = [
            "default_transaction_isolation",
            "default_transaction_read_only",
            "lock_timeout",
            "search_path",
            "statement_timeout",
            "synchronous_commit",
            "transaction_isolation",
            "transaction_read_only",
        ];
        let names = own.into_iter().chain(self.others.keys().map(String::as_str));
        let mut all: Vec<_> = names.filter_map(|name| Some((name.to_owned(), self.get(name)?))).collect();
        all.sort();
        all
    }

    /// Changes a setting; `None` makes it what it was at first.
    ///
    /// Errors: 42704, 22023, 55P02.
    pub fn set(&mut self, name: &str, values: Option<&[String]>) -> Result<()> {
        // Plans may have a setting's value in them.
        self.version += 1;
        let name = name.to_ascii_lowercase();
        let value = values.map(|values| values.join(", "));
        let invalid = || {
            let what =
                format!("invalid value for parameter \"{name}\": \"{}\"", value.clone().unwrap_or_default());
            Error::new(INVALID_PARAMETER_VALUE, what)
        };
        match name.as_str() {
            "default_transaction_isolation" | "transaction_isolation" => {
                let named = |text: &str| isolation_of(text).ok_or_else(invalid);
                self.default_isolation = value.as_deref().map_or(Ok(Isolation::ReadCommitted), named)?;
            }
            "default_transaction_read_only" | "transaction_read_only" => {
                self.default_read_only = value.as_deref().map_or(Some(false), switch).ok_or_else(invalid)?;
            }
            "synchronous_commit" => {
                self.durability = match value.as_deref() {
                    None => self.durability_at_first,
                    Some("off" | "false" | "no" | "0") => Durability::Buffered,
                    Some("on" | "true" | "yes" | "1" | "local" | "remote_write" | "remote_apply") => {
                        Durability::Sync
                    }
                    Some(_) => return Err(invalid()),
                }
            }
            "statement_timeout" | "lock_timeout" => {
                let given = match value.as_deref() {
                    None => None,
                    Some(text) => Some(duration(text).ok_or_else(invalid)?),
                };
                let (statement, lock) = self.timeouts_at_first;
                let (place, at_first) = match name.as_str() {
                    "lock_timeout" => (&mut self.lock_timeout, lock),
                    _ => (&mut self.statement_timeout, statement),
                };
                *place = given.map_or(at_first, |given| Some(given).filter(|given| !given.is_zero()));
            }
            "search_path" => {
                let names = values.unwrap_or_default().iter().flat_map(|value| value.split(','));
                let names = names
                    .map(|name| name.trim().trim_matches('"').to_owned())
                    .filter(|name| !name.is_empty() && name != "$user");
                self.search_path = if values.is_some() { names.collect() } else { vec![PUBLIC.to_owned()] };
            }
            _ if FIXED.iter().any(|(fixed, _)| *fixed == name) => {
                return Err(Error::new(
                    CANT_CHANGE_RUNTIME_PARAM,
                    format!("parameter \"{name}\" cannot be changed"),
                ));
            }
            _ => {
                let first =
                    REMEMBERED.iter().find(|(known, _)| *known == name).map(|(_, first)| (*first).to_owned());
                if first.is_none() && !name.contains('.') {
                    return Err(Error::new(
                        UNDEFINED_OBJECT,
                        format!("unrecognized configuration parameter \"{name}\""),
                    ));
                }
                let value = value.or(first).unwrap_or_default();
                if name == "client_encoding"
                    && !matches!(
                        value.to_ascii_uppercase().as_str(),
                        "UTF8" | "UTF-8" | "UNICODE" | "SQL_ASCII" | "DEFAULT"
                    )
                {
                    return Err(Error::unsupported(format_args!("the encoding {value}")));
                }
                if name == "timezone" && !is_utc(&value) {
                    return Err(Error::unsupported(format_args!("the time zone {value}")));
                }
                Arc::make_mut(&mut self.others).insert(name, value);
            }
        }
        Ok(())
    }
}

/// Whether clocks of a time zone show what those of UTC do.
pub(crate) fn is_utc(zone: &str) -> bool {
    const NAMES: [&str; 13] = [
        "utc",
        "gmt",
        "uct",
        "z",
        "zulu",
        "universal",
        "greenwich",
        "default",
        "local",
        "gmt0",
        "gmt+0",
        "gmt-0",
        "",
    ];
    let zone = zone.trim().to_ascii_lowercase();
    let zone = zone.strip_prefix("etc/").unwrap_or(&zone);
    // No hours to either side.
    NAMES.contains(&zone) || zone.bytes().all(|byte| matches!(byte, b'0' | b'+' | b'-' | b':' | b'.'))
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
