//! Statements that are neither queries nor changes of rows.

use cairn_table::Isolation;
use sqlparser::ast::{
    self, DiscardObject, Expr, Reset, Set, Statement as Tree, TransactionAccessMode,
    TransactionIsolationLevel, TransactionMode, Value,
};

use super::prepare::{first_words, variable_name};
use super::{Answer, Executor, Statement};
use crate::command_tag::CommandTag;
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::expr::Node;
use crate::runtime::settings::isolation_name;
use crate::session::{Modes, Session};
use crate::sqlstate::{ACTIVE_SQL_TRANSACTION, DUPLICATE_OBJECT, INTERNAL_ERROR};
use crate::syntax::{Plain, fold, ident, last_name, sql_of};

impl Executor {
    /// Runs a statement from its syntax tree.
    ///
    /// Errors: any error of the statement.
    pub fn utility(&mut self, plain: &Plain) -> Result<Answer> {
        if let Some((statement, params)) = self.executed(plain)? {
            return self.run(&statement, &params, true);
        }
        if let Plain::Fetch(fetch) = plain {
            return self.fetch(fetch);
        }
        let of_session = match plain {
            Plain::Close { name } => {
                Some(self.close_cursors(name.as_deref()).inspect_err(|_| self.fail_block())?)
            }
            Plain::Tree(tree) => self.of_session(tree).inspect_err(|_| self.fail_block())?,
            _ => None,
        };
        match of_session {
            Some(tag) => Ok(Answer::Done(tag)),
            None => self.in_transaction(plain).map(Answer::Done),
        }
    }

    /// Returns the statement of an EXECUTE, with its parameters; `None` for other statements.
    ///
    /// Errors: 26000; those of computing the parameters.
    pub(super) fn executed(&mut self, plain: &Plain) -> Result<Option<(Statement, Vec<Datum>)>> {
        let Plain::Tree(Tree::Execute { name, parameters, .. }) = plain else { return Ok(None) };
        self.named_statement(name.as_ref(), parameters).map(Some).inspect_err(|_| self.fail_block())
    }

    /// Runs statements that need no transaction, or end one.
    fn of_session(&mut self, tree: &Tree) -> Result<Option<CommandTag>> {
        if !matches!(tree, Tree::Commit { .. } | Tree::Rollback { .. }) {
            self.check_alive()?;
        }
        if let Some(tag) = self.control_transaction(tree)? {
            return Ok(Some(tag));
        }
        let tag = match tree {
            Tree::Set(set) => {
                self.set(set)?;
                CommandTag::new("SET")
            }
            Tree::Reset(reset) => {
                match &reset.reset {
                    Reset::ALL => self.reset_settings(),
                    Reset::ConfigurationParameter(name) => {
                        self.change_setting(&setting_name(name), None, false)?
                    }
                }
                CommandTag::new("RESET")
            }
            // Outdated plans are replaced anyway, and there are no temporary tables.
            Tree::Discard { object_type: DiscardObject::PLANS } => CommandTag::new("DISCARD PLANS"),
            Tree::Discard { object_type: DiscardObject::SEQUENCES } => {
                self.context.sequences.forget();
                CommandTag::new("DISCARD SEQUENCES")
            }
            Tree::Discard { object_type: DiscardObject::TEMP } => CommandTag::new("DISCARD TEMP"),
            Tree::Discard { object_type: DiscardObject::ALL } => {
                self.discard_all()?;
                CommandTag::new("DISCARD ALL")
            }
            Tree::Prepare { name, data_types, statement } => {
                self.prepare_named(ident(name), data_types, statement)?;
                CommandTag::new("PREPARE")
            }
            Tree::Deallocate { name, .. } if fold(&name.value) == "all" => {
                self.named.clear();
                CommandTag::new("DEALLOCATE ALL")
            }
            Tree::Deallocate { name, .. } => {
                let name = ident(name);
                if self.named.remove(&name).is_none() {
                    return Err(not_prepared(&name));
                }
                CommandTag::new("DEALLOCATE")
            }
            _ => return Ok(None),
        };
        Ok(Some(tag))
    }

    /// Runs statements that begin or end a transaction, or a part of one; `None` for others.
    fn control_transaction(&mut self, tree: &Tree) -> Result<Option<CommandTag>> {
        let tag = match tree {
            Tree::StartTransaction { modes, .. } => {
                self.begin_block(modes_of(modes)?)?;
                CommandTag::new("BEGIN")
            }
            Tree::Commit { chain, .. } => {
                let committed = self.commit_block()?;
                if *chain {
                    self.begin_block(Modes::default())?;
                }
                CommandTag::new(if committed { "COMMIT" } else { "ROLLBACK" })
            }
            Tree::Rollback { savepoint: Some(name), .. } => {
                self.rollback_to(&ident(name))?;
                CommandTag::new("ROLLBACK")
            }
            Tree::Rollback { chain, .. } => {
                self.rollback_block()?;
                if *chain {
                    self.begin_block(Modes::default())?;
                }
                CommandTag::new("ROLLBACK")
            }
            Tree::Savepoint { name } => {
                self.savepoint(ident(name))?;
                CommandTag::new("SAVEPOINT")
            }
            Tree::ReleaseSavepoint { name } => {
                self.release(&ident(name))?;
                CommandTag::new("RELEASE")
            }
            _ => return Ok(None),
        };
        Ok(Some(tag))
    }

    fn discard_all(&mut self) -> Result<()> {
        if self.in_block() {
            return Err(Error::new(
                ACTIVE_SQL_TRANSACTION,
                "DISCARD ALL cannot run inside a transaction block",
            ));
        }
        self.named.clear();
        self.cursors.clear();
        self.context.sequences.forget();
        self.reset_settings();
        Ok(())
    }

    fn prepare_named(&mut self, name: String, data_types: &[ast::DataType], statement: &Tree) -> Result<()> {
        if self.named.contains_key(&name) {
            return Err(Error::new(
                DUPLICATE_OBJECT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let types = data_types
            .iter()
            .map(|kind| crate::syntax::parameter_type(kind).map(Some))
            .collect::<Result<Vec<_>>>()?;
        // Prepared from its text, which a statement keeps in order to be replanned.
        let prepared = self.prepare(&sql_of(statement), &types)?;
        self.named.insert(name, prepared);
        Ok(())
    }

    /// Runs statements within a transaction.
    fn in_transaction(&mut self, plain: &Plain) -> Result<CommandTag> {
        self.begin_statement()?;
        let done = match plain {
            Plain::Tree(tree) => {
                self.check_writable(&first_words(&tree.to_string())).and_then(|()| self.define(tree))
            }
            Plain::Vacuum { analyze, tables } => self.vacuum(*analyze, tables),
            Plain::AlterSequence { name, restart, owner } => self
                .check_writable("ALTER SEQUENCE")
                .and_then(|()| self.alter_sequence(name, *restart, owner.as_ref().map(Option::as_ref))),
            Plain::Analyze { tables } => self.analyze(tables).map(|()| CommandTag::new("ANALYZE")),
            Plain::Checkpoint => {
                self.shared.tables.checkpoint().map(|()| CommandTag::new("CHECKPOINT")).map_err(Error::from)
            }
            Plain::Empty => Ok(CommandTag::new("")),
            Plain::Declare { .. } | Plain::Fetch(_) | Plain::Close { .. } => {
                Err(Error::new(INTERNAL_ERROR, "internal error: unexpected kind of plan"))
            }
        };
        match done {
            Ok(tag) => self.end_statement(true).map(|()| tag),
            Err(error) => {
                let error = self.explain(error);
                self.end_statement(false)?;
                Err(error)
            }
        }
    }

    /// Returns the statement that EXECUTE names, and its parameters.
    fn named_statement(
        &mut self,
        name: Option<&ast::ObjectName>,
        parameters: &[Expr],
    ) -> Result<(Statement, Vec<Datum>)> {
        let name = name.map(last_name).unwrap_or_default();
        let statement: Statement = self.named.get(&name).cloned().ok_or_else(|| not_prepared(&name))?;
        let mut nodes = Vec::with_capacity(parameters.len());
        for expr in parameters {
            let scope = crate::expr::Scope::empty();
            let mut types = Vec::new();
            let node = crate::expr::Compiler::new(&scope, &mut types).output(expr);
            let node =
                node.map_err(|failure| crate::direct::unsupported(failure, "this expression in EXECUTE"))?;
            nodes.push(node.0);
        }
        // Drawing from a sequence needs a transaction. Without one, another transaction could be
        // about to undo its changes of the sequence.
        let is_apart = self.open.is_none() && nodes.iter().any(Node::is_volatile);
        if is_apart {
            self.begin_statement()?;
        }
        let env = crate::expr::Env::new(crate::expr::Cells::None, &[], &self.context);
        let params: Result<Vec<Datum>> = nodes.iter().map(|node| Ok(node.eval(&env)?.into_datum())).collect();
        if is_apart {
            self.end_statement(params.is_ok())?;
        }
        Ok((statement, params?))
    }
}

impl Session {
    fn set(&mut self, set: &Set) -> Result<()> {
        match set {
            Set::SingleAssignment { variable, values, scope, .. } => {
                let local = is_local(scope.as_ref());
                let texts: Vec<String> = values.iter().map(text_of).collect();
                let name = setting_name(variable);
                if let [only] = texts.as_slice()
                    && only.eq_ignore_ascii_case("default")
                    && !matches!(values.first(), Some(Expr::Value(_)))
                {
                    return self.change_setting(&name, None, local);
                }
                self.set_named(&name, &texts, local)
            }
            Set::SetTimeZone { value, local } => {
                self.change_setting("timezone", Some(&[text_of(value)]), *local)
            }
            Set::SetNames { charset_name, .. } => {
                let values = std::slice::from_ref(&charset_name.value);
                self.change_setting("client_encoding", Some(values), false)
            }
            Set::SetNamesDefault {} | Set::SetRole { .. } | Set::SetSessionAuthorization(_) => Ok(()),
            Set::SetTransaction { modes, session: false, .. } => self.set_modes(modes_of(modes)?),
            Set::SetTransaction { modes, .. } => {
                let modes = modes_of(modes)?;
                if let Some(isolation) = modes.isolation {
                    let value = isolation_name(isolation).to_owned();
                    self.change_setting("default_transaction_isolation", Some(&[value]), false)?;
                }
                match modes.read_only {
                    Some(read_only) => {
                        let value = if read_only { "on" } else { "off" }.to_owned();
                        self.change_setting("default_transaction_read_only", Some(&[value]), false)
                    }
                    None => Ok(()),
                }
            }
            other => Err(Error::unsupported(format_args!("{other}"))),
        }
    }
}

/// Whether a SET ends with its transaction.
fn is_local(scope: Option<&ast::ContextModifier>) -> bool {
    matches!(scope, Some(ast::ContextModifier::Local))
}

fn not_prepared(name: &str) -> Error {
    let what = format!("prepared statement \"{name}\" does not exist");
    Error::new("26000", what).in_routine("FetchPreparedStatement")
}

/// Returns the name of a setting. It may contain dots.
fn setting_name(name: &ast::ObjectName) -> String {
    let parts: Vec<ast::Ident> = name
        .0
        .iter()
        .filter_map(|part| match part {
            ast::ObjectNamePart::Identifier(part) => Some(part.clone()),
            ast::ObjectNamePart::Function(_) => None,
        })
        .collect();
    variable_name(&parts)
}

fn text_of(expr: &Expr) -> String {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(name) => name.value.clone(),
        other => other.to_string(),
    }
}

fn modes_of(modes: &[TransactionMode]) -> Result<Modes> {
    let mut all = Modes::default();
    for mode in modes {
        match mode {
            TransactionMode::AccessMode(mode) => {
                all.read_only = Some(*mode == TransactionAccessMode::ReadOnly)
            }
            TransactionMode::IsolationLevel(level) => {
                all.isolation = Some(match level {
                    TransactionIsolationLevel::ReadUncommitted | TransactionIsolationLevel::ReadCommitted => {
                        Isolation::ReadCommitted
                    }
                    TransactionIsolationLevel::RepeatableRead | TransactionIsolationLevel::Snapshot => {
                        Isolation::Snapshot
                    }
                    TransactionIsolationLevel::Serializable => Isolation::Serializable,
                });
            }
        }
    }
    Ok(all)
}
