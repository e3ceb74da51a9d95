//! Transactions of a session.

use std::collections::BTreeMap;

use cairn_table::{Isolation, Savepoint, Transaction};

use super::{Session, Settings};
use crate::error::{Error, Result};
use crate::sqlstate::{
    ACTIVE_SQL_TRANSACTION, IN_FAILED_SQL_TRANSACTION, INTERNAL_ERROR, INVALID_SAVEPOINT,
    NO_ACTIVE_SQL_TRANSACTION,
};

/// Where a connection is with its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// In none: each statement is its own.
    Idle,
    /// In one.
    Open,
    /// In one that met an error and waits for ROLLBACK.
    Failed,
}

/// How long a transaction is meant to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// One statement.
    Statement,
    /// Statements that came together.
    Together,
    /// Up to COMMIT.
    Block,
}

/// A transaction that is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub transaction: Transaction,
    pub span: Span,
    pub failed: bool,
    pub read_only: bool,
    /// Those that were named, the oldest first.
    savepoints: Vec<(String, Savepoint)>,
    /// Whether no statement has run in it.
    pub fresh: bool,
    /// The settings before the first that it has changed, for ROLLBACK.
    settings: Option<Box<Settings>>,
    /// Those that are to be as before after COMMIT, and what they were.
    local: BTreeMap<String, String>,
}

impl Open {
    /// A setting was changed in it: for its own time, or for good.
    pub fn set(&mut self, name: String, before: Option<String>, is_local: bool) {
        match before {
            Some(before) if is_local => _ = self.local.entry(name).or_insert(before),
            _ => _ = self.local.remove(&name),
        }
    }
}

/// What BEGIN and SET TRANSACTION may say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Modes {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
}

fn no_transaction() -> Error {
    Error::new(INTERNAL_ERROR, "there is no transaction")
}

impl Session {
    pub fn status(&self) -> TransactionStatus {
        match &self.open {
            Some(Open { span: Span::Statement, .. }) | None => TransactionStatus::Idle,
            Some(Open { span: Span::Together, failed: false, .. }) => TransactionStatus::Idle,
            Some(open) if open.failed => TransactionStatus::Failed,
            Some(_) => TransactionStatus::Open,
        }
    }

    fn open(&mut self, span: Span, modes: Modes) -> Result<&mut Open> {
        let settings = &self.context.settings;
        let isolation = modes.isolation.unwrap_or(settings.default_isolation);
        let read_only = modes.read_only.unwrap_or(settings.default_read_only) || self.shared.read_only;
        let transaction =
            self.shared.tables.begin_with(isolation, &self.canceller, self.context.settings.lock_timeout)?;
        self.context.begin();
        Ok(self.open.insert(Open {
            transaction,
            span,
            failed: false,
            read_only,
            savepoints: Vec::new(),
            fresh: true,
            settings: None,
            local: BTreeMap::new(),
        }))
    }

    /// The transaction that a statement runs in; one is begun for it alone where there is none.
    ///
    /// Errors: 25P02 in a transaction that has failed.
    pub fn begin_statement(&mut self) -> Result<()> {
        self.canceller.reset();
        self.start_timer();
        match &mut self.open {
            None => {
                self.open(Span::Statement, Modes::default())?;
            }
            Some(open) if open.failed => {
                let what = "current transaction is aborted, commands ignored until end of transaction block";
                return Err(Error::new(IN_FAILED_SQL_TRANSACTION, what));
            }
            Some(open) => {
                if !std::mem::take(&mut open.fresh) {
                    open.transaction.begin_statement()?;
                }
            }
        }
        if let Some(open) = &mut self.open {
            open.fresh = false;
            open.transaction.set_lock_timeout(self.context.settings.lock_timeout);
        }
        Ok(())
    }

    /// Ends what [`Session::begin_statement`] began.
    ///
    /// Errors: those of committing, if that is what has to be done.
    pub fn end_statement(&mut self, succeeded: bool) -> Result<()> {
        self.stop_timer();
        self.leave_engine();
        let changed = if succeeded {
            self.take_changes()
        } else {
            self.changes.take();
            Ok(())
        };
        let ended = self.end_transaction(succeeded && changed.is_ok());
        changed.and(ended)
    }

    fn end_transaction(&mut self, succeeded: bool) -> Result<()> {
        match &mut self.open {
            Some(open) if open.span == Span::Statement => {
                if succeeded {
                    self.commit()
                } else {
                    self.rollback()
                }
            }
            Some(open) => {
                open.failed |= !succeeded;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether COMMIT is still to come.
    pub fn in_block(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.span != Span::Statement)
    }

    /// A change of the schema in a transaction is not to be seen from the catalog's version: nothing that was planned before it holds.
    pub fn schema_changed(&mut self) {
        self.context.settings.version += 1;
    }

    /// The statements that came together have failed.
    pub fn fail_implicit(&mut self) {
        if let Some(open) = self.open.as_mut().filter(|open| open.span != Span::Statement) {
            open.failed = true;
        }
    }

    fn start_timer(&mut self) {
        self.timer = None;
        if let Some(timeout) = self.context.settings.statement_timeout {
            // Without threads there is no timeout: what the statement needs them for fails by itself.
            self.timer = crate::database::Timer::start(&self.shared, timeout, &self.canceller).ok();
        }
    }

    fn stop_timer(&mut self) {
        self.timer = None;
    }

    pub fn transaction(&mut self) -> Result<&mut Transaction> {
        self.open.as_mut().map(|open| &mut open.transaction).ok_or_else(no_transaction)
    }

    /// The transaction, and what expressions may ask for beside it.
    pub fn parts(&mut self) -> Result<(&mut Transaction, &super::SessionContext)> {
        let open = self.open.as_mut().ok_or_else(no_transaction)?;
        Ok((&mut open.transaction, &self.context))
    }

    /// Commits what is open.
    ///
    /// Errors: 40001 where it cannot be put in a line with others; the disk's.
    pub fn commit(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let (settings, local) = (open.settings.take(), std::mem::take(&mut open.local));
        let result = self.commit_transaction(open);
        match result {
            Ok(()) => self.forget_local(local),
            Err(_) => self.restore_settings(settings),
        }
        result
    }

    fn commit_transaction(&mut self, mut open: Open) -> Result<()> {
        let written = self.context.sequences.write_back(&self.shared, &mut open.transaction);
        if let Err(error) = written {
            open.transaction.rollback()?;
            return Err(error);
        }
        let result = open.transaction.commit(self.context.settings.durability);
        self.context.sequences.end(&self.shared, result.is_ok());
        result.map_err(|error| self.explain(error.into()))
    }

    /// Takes back what is open.
    pub fn rollback(&mut self) -> Result<()> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        self.restore_settings(open.settings.take());
        self.context.sequences.end(&self.shared, false);
        Ok(open.transaction.rollback()?)
    }

    /// Remembers the settings before the open transaction changes any.
    pub fn keep_settings(&mut self) {
        if let Some(open) = &mut self.open {
            open.settings.get_or_insert_with(|| Box::new(self.context.settings.clone()));
        }
    }

    fn restore_settings(&mut self, before: Option<Box<Settings>>) {
        if let Some(before) = before {
            self.context.settings.restore(*before);
        }
    }

    /// The transaction is over for which these were set.
    fn forget_local(&mut self, local: BTreeMap<String, String>) {
        for (name, before) in local {
            // It had this value before, so it may have it.
            let _ = self.context.settings.set(&name, Some(&[before]));
        }
    }

    pub fn begin_block(&mut self, modes: Modes) -> Result<()> {
        match &mut self.open {
            Some(open) if open.span == Span::Block => {
                self.warn(ACTIVE_SQL_TRANSACTION, "there is already a transaction in progress");
                Ok(())
            }
            // What came together before BEGIN is part of it.
            Some(open) => {
                open.span = Span::Block;
                if modes.isolation.is_some() || modes.read_only.is_some() {
                    self.set_modes(modes)
                } else {
                    Ok(())
                }
            }
            None => {
                self.canceller.reset();
                self.open(Span::Block, modes).map(|_| ())
            }
        }
    }

    /// SET TRANSACTION.
    ///
    /// Errors: 25001 once it has read anything.
    pub fn set_modes(&mut self, modes: Modes) -> Result<()> {
        let Some(open) = &mut self.open else {
            self.warn(NO_ACTIVE_SQL_TRANSACTION, "SET TRANSACTION can only be used in transaction blocks");
            return Ok(());
        };
        if let Some(isolation) = modes.isolation
            && isolation != open.transaction.isolation()
        {
            if !open.fresh {
                let what = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(Error::new(ACTIVE_SQL_TRANSACTION, what));
            }
            open.transaction = self.shared.tables.begin_with(
                isolation,
                &self.canceller,
                self.context.settings.lock_timeout,
            )?;
        }
        if let Some(read_only) = modes.read_only {
            open.read_only = read_only || self.shared.read_only;
        }
        Ok(())
    }

    /// COMMIT. Says whether it was one: a transaction that failed is rolled back.
    pub fn commit_block(&mut self) -> Result<bool> {
        match &self.open {
            None | Some(Open { span: Span::Statement | Span::Together, .. }) => {
                self.warn(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
                self.commit().map(|()| true)
            }
            Some(open) if open.failed => self.rollback().map(|()| false),
            Some(_) => self.commit().map(|()| true),
        }
    }

    pub fn rollback_block(&mut self) -> Result<()> {
        if !matches!(&self.open, Some(Open { span: Span::Block, .. })) {
            self.warn(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
        }
        self.rollback()
    }

    fn block(&mut self, what: &str) -> Result<&mut Open> {
        let none = || {
            Error::new(NO_ACTIVE_SQL_TRANSACTION, format!("{what} can only be used in transaction blocks"))
        };
        self.open.as_mut().filter(|open| open.span != Span::Statement).ok_or_else(none)
    }

    pub fn savepoint(&mut self, name: String) -> Result<()> {
        let open = self.block("SAVEPOINT")?;
        if open.failed {
            let what = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Error::new(IN_FAILED_SQL_TRANSACTION, what));
        }
        let savepoint = open.transaction.savepoint();
        open.savepoints.push((name, savepoint));
        Ok(())
    }

    pub fn release(&mut self, name: &str) -> Result<()> {
        let open = self.block("RELEASE SAVEPOINT")?;
        let at = find(&open.savepoints, name)?;
        open.savepoints.truncate(at);
        Ok(())
    }

    /// ROLLBACK TO. The savepoint stays.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let open = self.block("ROLLBACK TO SAVEPOINT")?;
        let at = find(&open.savepoints, name)?;
        open.savepoints.truncate(at + 1);
        if let Some((_, savepoint)) = open.savepoints.last() {
            open.transaction.rollback_to(*savepoint)?;
        }
        open.failed = false;
        Ok(())
    }

    pub fn begin_implicit(&mut self) -> Result<()> {
        if self.open.is_none() {
            self.canceller.reset();
            self.open(Span::Together, Modes::default())?;
        }
        Ok(())
    }

    pub fn end_implicit(&mut self) -> Result<()> {
        match &self.open {
            Some(open) if open.span == Span::Together => {
                if open.failed {
                    self.rollback()
                } else {
                    self.commit()
                }
            }
            _ => Ok(()),
        }
    }
}

fn find(savepoints: &[(String, Savepoint)], name: &str) -> Result<usize> {
    let found = savepoints.iter().rposition(|(other, _)| other == name);
    found.ok_or_else(|| Error::new(INVALID_SAVEPOINT, format!("savepoint \"{name}\" does not exist")))
}
