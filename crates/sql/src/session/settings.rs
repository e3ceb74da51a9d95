//! SET and SHOW: settings of the session, and those that a transaction overrides.

use super::Session;
use super::transaction::{ChangedSettings, Modes, Span};
use crate::error::Result;
use crate::runtime::Settings;
use crate::runtime::settings::isolation_name;
use crate::sqlstate::NO_ACTIVE_SQL_TRANSACTION;

impl Session {
    /// Changes a setting; `None` restores its initial value. The change is a part of the open
    /// transaction, and with `local` ends with it.
    ///
    /// Errors: as [`Settings::set`].
    pub fn change_setting(&mut self, name: &str, values: Option<&[String]>, local: bool) -> Result<()> {
        let open = self.open.as_mut().filter(|open| open.span != Span::Statement);
        let Some(open) = open else {
            if local {
                self.warn(NO_ACTIVE_SQL_TRANSACTION, "SET LOCAL can only be used in transaction blocks");
                return Ok(());
            }
            return self.context.settings.set(name, values);
        };
        let settings = &mut self.context.settings;
        let before = settings.clone();
        settings.set(name, values)?;
        let changed = open
            .settings
            .get_or_insert_with(|| Box::new(ChangedSettings { before: before.clone(), after: before }));
        if !local {
            changed.after.set(name, values)?;
        }
        Ok(())
    }

    /// Restores the initial values of all settings, with the semantics of
    /// [`Session::change_setting`].
    pub fn reset_settings(&mut self) {
        let mut first = self.context.settings.clone();
        first.reset();
        if let Some(open) = self.open.as_mut().filter(|open| open.span != Span::Statement) {
            let before = self.context.settings.clone();
            let changed = open
                .settings
                .get_or_insert_with(|| Box::new(ChangedSettings { before, after: first.clone() }));
            changed.after = first.clone();
        }
        self.context.settings.restore(first);
    }

    /// Changes a setting by its name, for the session or until the end of the transaction.
    ///
    /// Errors: as SET.
    pub fn set_named(&mut self, name: &str, values: &[String], local: bool) -> Result<()> {
        if name.eq_ignore_ascii_case("transaction_isolation")
            || name.eq_ignore_ascii_case("transaction_read_only")
        {
            let mut probe = Settings::new(&self.shared);
            probe.set(name, Some(values))?;
            let modes = match name.to_ascii_lowercase().as_str() {
                "transaction_isolation" => {
                    Modes { isolation: Some(probe.default_isolation), read_only: None }
                }
                _ => Modes { isolation: None, read_only: Some(probe.default_read_only) },
            };
            return self.set_modes(modes);
        }
        self.change_setting(name, Some(values), local)
    }

    /// Applies the changes that a statement has made by `set_config`.
    ///
    /// Errors: as SET.
    pub fn take_changes(&mut self) -> Result<()> {
        for change in self.setting_changes.take() {
            let is_known = self.in_block() || !change.is_local;
            // Outside of a block, the transaction is over by now.
            if is_known {
                self.set_named(&change.name, &[change.value], change.is_local)?;
            }
        }
        Ok(())
    }

    /// Returns a setting, or the value that the open transaction overrides it with.
    pub fn setting(&self, name: &str) -> Option<String> {
        let block = self.open.as_ref().filter(|open| open.span != Span::Statement);
        match (name.to_ascii_lowercase().as_str(), block) {
            ("transaction_isolation", Some(open)) => {
                Some(isolation_name(open.transaction.isolation()).to_owned())
            }
            ("transaction_read_only", Some(open)) => {
                Some(if open.read_only { "on" } else { "off" }.to_owned())
            }
            _ => self.context.settings.get(name),
        }
    }
}
