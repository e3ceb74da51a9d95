//! SET and SHOW.

use std::collections::BTreeMap;
use std::time::Duration;

use cairn_table::{Durability, Isolation, PUBLIC};
use cairn_vfs::sync::Arc;
use cairn_vfs::sync::atomic::{AtomicU64, Ordering};

use super::Shared;
use crate::error::{Error, Result};
use crate::sqlstate::{CANT_CHANGE_RUNTIME_PARAM, INVALID_PARAMETER_VALUE, UNDEFINED_OBJECT};

/// The version of PostgreSQL whose dialect, messages and catalogs are implemented.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// The user name until one is set.
const DEFAULT_USER: &str = "cairn";

/// Settings that users can change, and that have an effect.
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

/// Settings that users can change, but that have no effect, with their defaults.
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

/// The settings of `REMEMBERED` that are on or off.
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

/// Whether backslashes in plain literals are ordinary characters. They always are.
const STRINGS: &str = "standard_conforming_strings";

/// Settings that cannot be changed.
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
    /// `cairn.direct_path`: whether to use the direct path. Off sends every statement through the
    /// general path, so that tests can compare the two.
    pub direct_path: bool,
    /// `cairn.optimizer`: whether the general path optimizes plans beyond the rewrites that it
    /// needs to run them. Off is for tests that search for wrong results of the optimizer.
    pub optimizer: bool,
    /// The namespaces in which unqualified names are looked up.
    pub search_path: Vec<String>,
    /// The version of the last change, including changes of the schema in a transaction; 0 if there
    /// was none. It is unique within the database, because several sessions may run the same
    /// statement.
    pub version: u64,
    /// The last version in any session.
    versions: Arc<AtomicU64>,
    /// The settings to return to. These have none themselves.
    first: Option<Arc<Settings>>,
    /// The database is read-only, whatever the settings say.
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

    /// Makes the current settings the ones to return to.
    pub fn keep(&mut self) {
        self.first = Some(Arc::new(Settings { first: None, ..self.clone() }));
    }

    /// Restores all settings to their initial values.
    pub fn reset(&mut self) {
        let user = self.user().to_owned();
        if let Some(first) = self.first.clone() {
            self.restore(Settings { first: Some(Arc::clone(&first)), ..(*first).clone() });
        }
        self.set_user(&user);
    }

    /// Replaces the settings by earlier ones.
    pub fn restore(&mut self, before: Settings) {
        *self = before;
        self.change();
    }

    /// Invalidates existing plans.
    pub fn change(&mut self) {
        self.version = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
    }

    /// The connected user. Every user may do everything; the name is for display only.
    pub fn user(&self) -> &str {
        self.others.get("session_authorization").map_or(DEFAULT_USER, String::as_str)
    }

    pub fn set_user(&mut self, user: &str) {
        self.change();
        Arc::make_mut(&mut self.others).insert("session_authorization".to_owned(), user.to_owned());
    }

    /// The namespace in which unqualified objects are created.
    pub fn schema(&self) -> &str {
        self.search_path.iter().find(|schema| !schema.starts_with("pg_")).map_or(PUBLIC, String::as_str)
    }

    /// Returns the value of a setting; `None` if it does not exist.
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

    /// Returns all settings with their values.
    pub fn all(&self) -> Vec<(String, String)> {
        let names = OWN.iter().copied().chain(self.others.keys().map(String::as_str));
        let mut all: Vec<_> = names.filter_map(|name| Some((name.to_owned(), self.get(name)?))).collect();
        all.sort();
        all
    }

    /// Changes a setting; `None` restores its initial value.
    ///
    /// Errors: 42704, 22023, 55P02; 0A000 for values whose effect is not implemented.
    pub fn set(&mut self, name: &str, values: Option<&[String]>) -> Result<()> {
        let name = name.to_ascii_lowercase();
        check_changeable(&name)?;
        // Plans may contain values of settings.
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

    /// Restores the initial value of a setting.
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
            // A name with a dot may have no initial value.
            _ => {
                let value = first.others.get(name).cloned().unwrap_or_default();
                Arc::make_mut(&mut self.others).insert(name.to_owned(), value);
            }
        }
    }
}

/// Errors: 42704 for a setting that does not exist, 55P02 for one that cannot be changed.
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

/// Returns the value of a setting without effect as PostgreSQL shows it, because clients compare it
/// literally.
///
/// Errors: 22023; 0A000 for values that would require another behavior.
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

/// Returns the name of an encoding that needs no conversion. Punctuation in `value` is ignored.
fn encoding(value: &str) -> Option<&'static str> {
    let letters: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    match letters.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" | "default" => Some("UTF8"),
        "sqlascii" => Some("SQL_ASCII"),
        _ => None,
    }
}

/// Parses a date style. Dates are always written in ISO format. The order of day and month has no
/// effect, because dates whose order is ambiguous are not accepted.
///
/// Errors: 22023 for an unknown style; 0A000 for one other than ISO.
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

/// Returns the spelling of a time zone that equals UTC; `None` for any other.
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
    // An offset of zero.
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

/// Formats a duration as PostgreSQL does, in the largest unit that divides it.
fn shown(time: Option<Duration>) -> String {
    let millis = time.map_or(0, |time| time.as_millis());
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms")];
    let unit = units.iter().find(|(millis_each, _)| millis.is_multiple_of(*millis_each));
    match unit {
        Some((millis_each, unit)) if millis > 0 => format!("{}{unit}", millis / millis_each),
        _ => "0".to_owned(),
    }
}

/// Parses `1500`, `1500ms`, `2s`, `1min`, `1h`. The default unit is milliseconds.
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
