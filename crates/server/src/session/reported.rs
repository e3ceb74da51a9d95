//! Settings that are reported to clients at the start and whenever they change.

use cairn_sql::Connection;

use crate::codec::backend::parameter_status;

/// The reported settings, each with the value to report if the connection does not have it.
const SETTINGS: [(&str, &str); 13] = [
    ("server_version", "15.0"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("application_name", ""),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
    ("is_superuser", "on"),
    ("session_authorization", ""),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
];

/// The values that were reported last.
#[derive(Debug, Default)]
pub struct Reported {
    told: Vec<String>,
    /// The connection's settings version at that time.
    version: u64,
}

fn value_of(connection: &Connection, name: &str, default: &str) -> String {
    connection.setting(name).unwrap_or_else(|| default.to_owned())
}

impl Reported {
    /// Reports all settings.
    pub fn write_all_settings(&mut self, out: &mut Vec<u8>, connection: &Connection) {
        self.version = connection.settings_version();
        self.told = SETTINGS.iter().map(|(name, default)| value_of(connection, name, default)).collect();
        for ((name, _), value) in SETTINGS.iter().zip(&self.told) {
            parameter_status(out, name, value);
        }
    }

    /// Reports the settings that have changed since.
    #[inline]
    pub fn write_changed_settings(&mut self, out: &mut Vec<u8>, connection: &Connection) {
        let version = connection.settings_version();
        if std::mem::replace(&mut self.version, version) == version {
            return;
        }
        for ((name, default), told) in SETTINGS.iter().zip(&mut self.told) {
            let value = value_of(connection, name, default);
            if *told != value {
                parameter_status(out, name, &value);
                *told = value;
            }
        }
    }
}
