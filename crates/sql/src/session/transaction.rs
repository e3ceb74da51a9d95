//! The transactions of a session.

use cairn_table::{Isolation, Savepoint, Transaction};

use super::Session;
use super::rules::Rules;
use crate::error::{Error, Result};
use crate::runtime::{SessionContext, Settings};
use crate::sqlstate::{
    ACTIVE_SQL_TRANSACTION, IN_FAILED_SQL_TRANSACTION, INTERNAL_ERROR, INVALID_SAVEPOINT,
    NO_ACTIVE_SQL_TRANSACTION,
};

/// The state of a connection's transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// No transaction: each statement has its own.
    Idle,
    /// In a transaction.
    Open,
    /// In a transaction that has failed, and waits for ROLLBACK.
    Failed,
}

/// The extent of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// A single statement.
    Statement,
    /// Statements that arrived together.
    Together,
    /// Until COMMIT.
    Block,
}

/// An open transaction.
#[derive(Debug)]
pub(crate) struct Open {
    pub transaction: Box<Transaction>,
    pub span: Span,
    pub failed: bool,
    pub read_only: bool,
    /// The named savepoints, oldest first.
    savepoints: Vec<Named>,
    /// Whether it has changed the schema.
    has_defined: bool,
    /// `None` until it changes a setting.
    pub(super) settings: Option<Box<ChangedSettings>>,
    /// Whether no statement has run in it.
    pub fresh: bool,
    /// Whether the running statement is the first one.
    is_first: bool,
}

impl Open {
    /// Marks the transaction as failed: it can only be rolled back. Without a savepoint that is
    /// done at once, so that other transactions need not wait for its locks until the client sends
    /// ROLLBACK. Errors: as [`Session::rollback`].
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
    /// The settings at the savepoint, if any had been changed before.
    settings: Option<(Settings, Box<ChangedSettings>)>,
    /// The number of changes of sequences before the savepoint.
    sequences: usize,
}

/// The settings that a transaction has changed.
#[derive(Debug, Clone)]
pub(super) struct ChangedSettings {
    /// The settings before the transaction.
    pub before: Settings,
    /// The settings after a commit, without those of SET LOCAL.
    pub after: Settings,
}

/// The options of BEGIN and SET TRANSACTION.
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

    /// The versions of the catalog and the settings that a statement would be planned with now. It
    /// waits for no lock: the schema does not change while a block is open.
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

    /// Enters the transaction of a statement, and begins one for it alone if none is open.
    ///
    /// Errors: 25P02 in a transaction that has failed; 57014 if the message that the statement
    /// belongs to was canceled.
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

    /// Ends the statement that [`Session::begin_statement`] began.
    ///
    /// Errors: 23503 for foreign keys that are violated, and those of the commit, if there is one.
    pub fn end_statement(&mut self, succeeded: bool) -> Result<()> {
        // The actions that follow from its changes can be canceled like the changes themselves.
        let settled = if succeeded { self.end_changes() } else { Ok(()) };
        let succeeded = succeeded && settled.is_ok();
        let general = self.general;
        general.release_view(self);
        let changed = if succeeded {
            self.take_changes()
        } else {
            self.setting_changes.take();
            Ok(())
        };
        // The rows of held cursors are computed in there.
        let ended = self.end_transaction(succeeded && changed.is_ok());
        self.stop_timer(succeeded);
        settled.and(changed).and(ended)
    }

    /// Discards a request to cancel that came before this call, unless it applies to a whole
    /// message.
    ///
    /// Errors: 57014 if it does.
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

    /// Marks the open transaction as failed.
    fn fail_open(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if open.savepoints.is_empty() {
            // The cursors' snapshots are released with the transaction.
            self.cursors.end(false);
            // ORDER: before the locks on their rows are released.
            self.context.sequences.end(&self.shared, false);
        }
        open.fail()
    }

    /// Whether the running statement is the transaction's first one, and whether there are
    /// savepoints.
    pub fn place_in_transaction(&self) -> (bool, bool) {
        self.open.as_ref().map_or((false, false), |open| (open.is_first, !open.savepoints.is_empty()))
    }

    /// The number of savepoints.
    pub fn savepoint_depth(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.savepoints.len())
    }

    /// Whether the transaction extends beyond the statement.
    pub fn in_block(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.span != Span::Statement)
    }

    /// Invalidates earlier plans after a change of the schema, because the catalog's version does
    /// not change until the transaction commits.
    pub fn schema_changed(&mut self) {
        self.context.settings.change();
        if let Some(open) = &mut self.open {
            open.has_defined = true;
        }
    }

    /// Marks a transaction of several statements as failed, after an error in one of its parts.
    pub fn fail_block(&mut self) {
        if self.in_block() {
            // An error marks the database as failed, so the next call reports it.
            let _ = self.fail_open();
        }
    }

    fn start_timer(&mut self) {
        self.timer = None;
        if let Some(timeout) = self.context.settings.statement_timeout {
            // If no thread can be started, there is no timeout. If the statement needs threads, it
            // fails by itself.
            self.timer = crate::runtime::Timer::start(&self.shared, timeout, &self.canceller).ok();
        }
    }

    fn stop_timer(&mut self, succeeded: bool) {
        let has_fired = self.timer.take().is_some_and(|timer| timer.has_fired());
        if has_fired && succeeded && self.keeps_cancels {
            // The timeout was reached after the statement had finished. The statements after it
            // have their own timeouts.
            self.canceller.reset();
        }
    }

    pub fn transaction(&mut self) -> Result<&mut Transaction> {
        self.open.as_mut().map(|open| &mut *open.transaction).ok_or_else(no_transaction)
    }

    /// The transaction, and the context of expressions.
    pub fn parts(&mut self) -> Result<(&mut Transaction, &SessionContext)> {
        let open = self.open.as_mut().ok_or_else(no_transaction)?;
        Ok((&mut *open.transaction, &self.context))
    }

    /// Commits the open transaction.
    ///
    /// Errors: 40001 if it cannot be serialized with others; those of the disk.
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
        // ORDER: before the locks on their rows are released, as in a rollback.
        let undoes = || sequences.end(shared, false);
        let result = open.transaction.commit_reusable(self.context.settings.durability, undoes);
        let result = result.map(|spare| self.spare = spare);
        self.cursors.end(result.is_ok());
        self.keep_settings(open.settings, result.is_ok());
        if open.has_defined && result.is_err() {
            self.schema_changed();
        }
        self.context.sequences.end(&self.shared, result.is_ok());
        result.map_err(|error| self.explain(error.into()))
    }

    /// Rolls back the open transaction.
    pub fn rollback(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.cursors.end(false);
        self.keep_settings(open.settings, false);
        if open.has_defined {
            // Plans made since may refer to tables that no longer exist.
            self.schema_changed();
        }
        // ORDER: before the locks on their rows are released.
        self.context.sequences.end(&self.shared, false);
        self.spare = open.transaction.rollback_reusable()?;
        Ok(())
    }

    /// Applies the end of a transaction to the settings that it has changed.
    fn keep_settings(&mut self, changed: Option<Box<ChangedSettings>>, committed: bool) {
        if let Some(changed) = changed {
            self.context.settings.restore(if committed { changed.after } else { changed.before });
        }
    }

    /// Rejects statements in a transaction that has failed, unless they end it.
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
            // Statements of the same message that came before BEGIN belong to the block.
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

    /// Commits the open transaction with a timeout and cancellation, because held cursors may have
    /// rows to materialize.
    fn commit_in_time(&mut self) -> Result<()> {
        if let Err(error) = self.heed_cancel() {
            // As after any failed COMMIT.
            self.rollback()?;
            return Err(error);
        }
        self.start_timer();
        let committed = self.commit();
        self.stop_timer(committed.is_ok());
        committed
    }

    /// COMMIT. Returns false if the transaction had failed and was rolled back instead.
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

    /// Returns the open block. Only blocks have savepoints: statements of one message end with the
    /// message.
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
        // The snapshots of these cursors are rolled back.
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
            // No setting had been changed at the savepoint.
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
        // An error marks the database as failed, so every connection reports it.
        let _ = self.rollback();
    }
}

fn find(savepoints: &[Named], name: &str) -> Result<usize> {
    let found = savepoints.iter().rposition(|savepoint| savepoint.name == name);
    found.ok_or_else(|| Error::new(INVALID_SAVEPOINT, format!("savepoint \"{name}\" does not exist")))
}
