//! Transactions of a session.

use cairn_table::{Isolation, Savepoint, Transaction};

use super::rules::Rules;
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
    pub transaction: Box<Transaction>,
    pub span: Span,
    pub failed: bool,
    pub read_only: bool,
    /// Those that were named, the oldest first.
    savepoints: Vec<Named>,
    /// Whether it has changed the schema.
    has_defined: bool,
    /// Once it has changed any setting.
    settings: Option<Box<Changed>>,
    /// Whether no statement has run in it.
    pub fresh: bool,
    /// Whether the statement that runs is the first one.
    is_first: bool,
}

impl Open {
    /// It can only be taken back from here on. Where there is no savepoint to go back to that is
    /// done at once: others need not wait for what it has locked until its client says ROLLBACK.
    /// Errors: as [`Session::rollback`].
    fn fail(&mut self) -> Result<()> {
        let was_failed = std::mem::replace(&mut self.failed, true);
        if !was_failed && self.savepoints.is_empty() {
            self.transaction.abandon()?;
        }
        Ok(())
    }
}

/// A savepoint.
#[derive(Debug)]
struct Named {
    name: String,
    savepoint: Savepoint,
    /// The settings at the time, if any had been changed before.
    settings: Option<(Settings, Box<Changed>)>,
    /// What had been done to sequences by then.
    sequences: usize,
}

/// Settings that a transaction has changed.
#[derive(Debug, Clone)]
struct Changed {
    /// As they were before.
    before: Settings,
    /// As they are to be once it is committed: without those of SET LOCAL.
    after: Settings,
}

/// What BEGIN and SET TRANSACTION may say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Modes {
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
}

fn aborted() -> Error {
    let what = "current transaction is aborted, commands ignored until end of transaction block";
    Error::new(IN_FAILED_SQL_TRANSACTION, what)
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

    /// The catalog and the settings that a statement would be planned with now. Nobody is waited
    /// for: while a block is open the schema stays what it is.
    pub fn versions(&self) -> (u64, u64) {
        let catalog = match &self.open {
            Some(open) => open.transaction.view().catalog().version(),
            None => self.shared.tables.catalog_version(),
        };
        (catalog, self.context.settings.version)
    }

    fn open(&mut self, span: Span, modes: Modes) -> Result<&mut Open> {
        let settings = &self.context.settings;
        let isolation = modes.isolation.unwrap_or(settings.default_isolation);
        let read_only = modes.read_only.unwrap_or(settings.default_read_only) || self.shared.read_only;
        let timeout = settings.lock_timeout;
        let transaction =
            self.shared.tables.begin_from(self.spare.take(), isolation, &self.canceller, timeout)?;
        self.context.begin();
        Ok(self.open.insert(Open {
            transaction,
            span,
            failed: false,
            read_only,
            savepoints: Vec::new(),
            has_defined: false,
            settings: None,
            fresh: true,
            is_first: true,
        }))
    }

    /// The transaction that a statement runs in; one is begun for it alone where there is none.
    ///
    /// Errors: 25P02 in a transaction that has failed; 57014 where the message that it is part of
    /// was cancelled.
    pub fn begin_statement(&mut self) -> Result<()> {
        self.heed_cancel().inspect_err(|_| self.fail_block())?;
        self.start_timer();
        self.context.begin_statement();
        match &mut self.open {
            None => {
                self.open(Span::Statement, Modes::default())?;
            }
            Some(open) if open.failed => return Err(aborted()),
            Some(open) => {
                open.is_first = std::mem::take(&mut open.fresh);
                if !open.is_first {
                    open.transaction.begin_statement()?;
                }
            }
        }
        if let Some(open) = &mut self.open {
            open.fresh = false;
            open.transaction.set_lock_timeout(self.context.settings.lock_timeout);
            open.transaction.begin_changes();
        }
        Ok(())
    }

    /// Ends what [`Session::begin_statement`] began.
    ///
    /// Errors: 23503 for references that do not hold, and those of committing, if that is what has
    /// to be done.
    pub fn end_statement(&mut self, succeeded: bool) -> Result<()> {
        // What follows from its changes can be stopped as these could.
        let settled = if succeeded { self.end_changes() } else { Ok(()) };
        let succeeded = succeeded && settled.is_ok();
        self.leave_engine();
        let changed = if succeeded {
            self.take_changes()
        } else {
            self.changes.take();
            Ok(())
        };
        // Rows that cursors hold are still to be computed there.
        let ended = self.end_transaction(succeeded && changed.is_ok());
        self.stop_timer(succeeded);
        settled.and(changed).and(ended)
    }

    /// A request to cancel that came before this call is for nothing that runs, unless it holds for
    /// more than a statement.
    ///
    /// Errors: 57014 where it does.
    fn heed_cancel(&self) -> Result<()> {
        if !self.keeps_cancels {
            self.canceller.reset();
        } else if self.canceller.is_cancelled() {
            return Err(cairn_table::Error::Cancelled.into());
        }
        Ok(())
    }

    fn end_changes(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let ended = open.transaction.end_changes_by(&Rules::new(&self.context));
        ended.map_err(|error| self.explain(error.into()))
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
            Some(_) if !succeeded => self.fail_open(),
            Some(_) | None => Ok(()),
        }
    }

    /// What is open can only be taken back.
    fn fail_open(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.savepoints.is_empty() {
            // What they see is let go of with the rest.
            self.cursors.end(false);
            // ORDER: before their rows are anybody's.
            self.context.sequences.end(&self.shared, false);
        }
        open.fail()
    }

    /// Whether the statement that runs is the transaction's first one, and whether there are
    /// savepoints to go back to.
    pub fn place_in_transaction(&self) -> (bool, bool) {
        self.open.as_ref().map_or((false, false), |open| (open.is_first, !open.savepoints.is_empty()))
    }

    /// How many savepoints there are to go back to.
    pub fn savepoint_depth(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.savepoints.len())
    }

    /// Whether COMMIT is still to come.
    pub fn in_block(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.span != Span::Statement)
    }

    /// A change of the schema in a transaction is not to be seen from the catalog's version:
    /// nothing that was planned before it holds.
    pub fn schema_changed(&mut self) {
        self.context.settings.change();
        if let Some(open) = &mut self.open {
            open.has_defined = true;
        }
    }

    /// A part of what is open, and of more than a statement, has failed: it can only be taken back.
    pub fn fail_block(&mut self) {
        if self.in_block() {
            // Of an error the next call hears: it marks the database.
            let _ = self.fail_open();
        }
    }

    fn start_timer(&mut self) {
        self.timer = None;
        if let Some(timeout) = self.context.settings.statement_timeout {
            // Without threads there is no timeout: what the statement needs them for fails by
            // itself.
            self.timer = crate::database::Timer::start(&self.shared, timeout, &self.canceller).ok();
        }
    }

    fn stop_timer(&mut self, succeeded: bool) {
        let has_fired = self.timer.take().is_some_and(|timer| timer.has_fired());
        if has_fired && succeeded && self.keeps_cancels {
            // Its time was over when there was nothing left to stop: the statements behind it have
            // their own.
            self.canceller.reset();
        }
    }

    pub fn transaction(&mut self) -> Result<&mut Transaction> {
        self.open.as_mut().map(|open| &mut *open.transaction).ok_or_else(no_transaction)
    }

    /// The transaction, and what expressions may ask for beside it.
    pub fn parts(&mut self) -> Result<(&mut Transaction, &super::SessionContext)> {
        let open = self.open.as_mut().ok_or_else(no_transaction)?;
        Ok((&mut *open.transaction, &self.context))
    }

    /// Commits what is open.
    ///
    /// Errors: 40001 where it cannot be put in a line with others; the disk's.
    pub fn commit(&mut self) -> Result<()> {
        if let Err(error) = self.hold_cursors() {
            let error = self.explain(error);
            self.rollback()?;
            return Err(error);
        }
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let written = self.context.sequences.write_back(&self.shared, &mut open.transaction);
        if let Err(error) = written {
            self.open = Some(open);
            self.rollback()?;
            return Err(error);
        }
        let (shared, sequences) = (&self.shared, &self.context.sequences);
        // ORDER: before their rows are anybody's, as in a rollback.
        let undoes = || sequences.end(shared, false);
        let result = open.transaction.commit_sparing(self.context.settings.durability, undoes);
        let result = result.map(|spare| self.spare = spare);
        self.cursors.end(result.is_ok());
        self.keep_settings(open.settings, result.is_ok());
        if open.has_defined && result.is_err() {
            self.schema_changed();
        }
        self.context.sequences.end(&self.shared, result.is_ok());
        result.map_err(|error| self.explain(error.into()))
    }

    /// Takes back what is open.
    pub fn rollback(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.cursors.end(false);
        self.keep_settings(open.settings, false);
        if open.has_defined {
            // What was planned since is about tables that there are not.
            self.schema_changed();
        }
        // ORDER: before their rows are anybody's.
        self.context.sequences.end(&self.shared, false);
        self.spare = open.transaction.rollback_sparing()?;
        Ok(())
    }

    /// What a transaction's end makes of the settings that it has changed.
    fn keep_settings(&mut self, changed: Option<Box<Changed>>, committed: bool) {
        if let Some(changed) = changed {
            self.context.settings.restore(if committed { changed.after } else { changed.before });
        }
    }

    /// Changes a setting; `None` makes it what it was at first. It is part of the open transaction,
    /// and with `local` ends with it.
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
        let changed =
            open.settings.get_or_insert_with(|| Box::new(Changed { before: before.clone(), after: before }));
        if !local {
            changed.after.set(name, values)?;
        }
        Ok(())
    }

    /// Makes all settings what they were at first, as [`Session::change_setting`] does.
    pub fn reset_settings(&mut self) {
        let mut first = self.context.settings.clone();
        first.reset();
        if let Some(open) = self.open.as_mut().filter(|open| open.span != Span::Statement) {
            let before = self.context.settings.clone();
            let changed =
                open.settings.get_or_insert_with(|| Box::new(Changed { before, after: first.clone() }));
            changed.after = first.clone();
        }
        self.context.settings.restore(first);
    }

    /// Refuses whatever does not end a transaction that has failed.
    ///
    /// Errors: 25P02.
    pub fn check_alive(&self) -> Result<()> {
        if self.open.as_ref().is_some_and(|open| open.failed) { Err(aborted()) } else { Ok(()) }
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
                self.heed_cancel()?;
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
            let timeout = self.context.settings.lock_timeout;
            open.transaction =
                self.shared.tables.begin_from(self.spare.take(), isolation, &self.canceller, timeout)?;
        }
        if let Some(read_only) = modes.read_only {
            open.read_only = read_only || self.shared.read_only;
        }
        Ok(())
    }

    /// Commits what is open, as a statement of its own: it may have rows to put aside, which can be
    /// stopped.
    fn commit_in_time(&mut self) -> Result<()> {
        if let Err(error) = self.heed_cancel() {
            // As after every COMMIT that fails.
            self.rollback()?;
            return Err(error);
        }
        self.start_timer();
        let committed = self.commit();
        self.stop_timer(committed.is_ok());
        committed
    }

    /// COMMIT. Says whether it was one: a transaction that failed is rolled back.
    pub fn commit_block(&mut self) -> Result<bool> {
        match &self.open {
            Some(open) if open.failed => self.rollback().map(|()| false),
            None | Some(Open { span: Span::Statement | Span::Together, .. }) => {
                self.warn(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
                self.commit_in_time().map(|()| true)
            }
            Some(_) => self.commit_in_time().map(|()| true),
        }
    }

    pub fn rollback_block(&mut self) -> Result<()> {
        if !matches!(&self.open, Some(Open { span: Span::Block, .. })) {
            self.warn(NO_ACTIVE_SQL_TRANSACTION, "there is no transaction in progress");
        }
        self.rollback()
    }

    /// The block that is open. Savepoints are for these only: statements that came together end
    /// with their message, whatever it says.
    ///
    /// Errors: 25P01.
    fn block(&mut self, what: &str) -> Result<&mut Open> {
        let none = || {
            Error::new(NO_ACTIVE_SQL_TRANSACTION, format!("{what} can only be used in transaction blocks"))
        };
        self.open.as_mut().filter(|open| open.span == Span::Block).ok_or_else(none)
    }

    pub fn savepoint(&mut self, name: String) -> Result<()> {
        let open = self.block("SAVEPOINT")?;
        let savepoint = open.transaction.savepoint();
        let changed = open.settings.clone();
        let settings = changed.map(|changed| (self.context.settings.clone(), changed));
        let sequences = self.context.sequences.mark();
        self.block("SAVEPOINT")?.savepoints.push(Named { name, savepoint, settings, sequences });
        Ok(())
    }

    pub fn release(&mut self, name: &str) -> Result<()> {
        let open = self.block("RELEASE SAVEPOINT")?;
        let at = find(&open.savepoints, name)?;
        open.savepoints.truncate(at);
        self.cursors.release(at);
        Ok(())
    }

    /// ROLLBACK TO. The savepoint stays.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let open = self.block("ROLLBACK TO SAVEPOINT")?;
        let at = find(&open.savepoints, name)?;
        // What they read is taken back.
        self.cursors.roll_back_to(at);
        let open = self.block("ROLLBACK TO SAVEPOINT")?;
        open.savepoints.truncate(at + 1);
        let (mut then, mut mark) = (None, None);
        if let Some(named) = open.savepoints.last() {
            open.transaction.rollback_to(named.savepoint)?;
            (then, mark) = (named.settings.clone(), Some(named.sequences));
        }
        open.failed = false;
        let has_defined = open.has_defined;
        let now = open.settings.take();
        match (then, now) {
            (Some((settings, changed)), _) => {
                open.settings = Some(changed);
                self.context.settings.restore(settings);
            }
            // None had been changed then.
            (None, Some(changed)) => self.context.settings.restore(changed.before),
            (None, None) => {}
        }
        if let Some(mark) = mark {
            self.context.sequences.take_back(&self.shared, mark);
        }
        if has_defined {
            self.schema_changed();
        }
        Ok(())
    }

    pub fn begin_implicit(&mut self) -> Result<()> {
        if self.open.is_none() {
            self.heed_cancel()?;
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
                    self.commit_in_time()
                }
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Of an error everybody hears: it marks the database.
        let _ = self.rollback();
    }
}

fn find(savepoints: &[Named], name: &str) -> Result<usize> {
    let found = savepoints.iter().rposition(|savepoint| savepoint.name == name);
    found.ok_or_else(|| Error::new(INVALID_SAVEPOINT, format!("savepoint \"{name}\" does not exist")))
}
