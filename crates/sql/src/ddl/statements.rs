//! Dispatches statements that change the schema.

use sqlparser::ast::{AlterIndexOperation, Statement as Tree};

use crate::command_tag::CommandTag;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::syntax::check_places;

impl Session {
    /// Runs a change of the schema within the open transaction.
    ///
    /// Errors: any error of the statement.
    pub(crate) fn define(&mut self, tree: &Tree) -> Result<CommandTag> {
        check_places(tree)?;
        let tag = match tree {
            Tree::CreateTable(create) => self.create_table(create)?,
            Tree::CreateIndex(create) => self.create_index(create)?,
            Tree::CreateView(create) => self.create_view(create)?,
            Tree::CreateSchema { schema_name, if_not_exists, .. } => {
                self.create_schema(schema_name, *if_not_exists)?
            }
            Tree::CreateSequence { temporary: true, .. } => {
                return Err(Error::unsupported("a temporary sequence"));
            }
            Tree::CreateSequence { name, if_not_exists, data_type, sequence_options, owned_by, .. } => {
                // The parser returns NONE as a name.
                let owner = owned_by.as_ref().filter(|owner| !owner.to_string().eq_ignore_ascii_case("none"));
                self.create_sequence(name, *if_not_exists, data_type.as_ref(), sequence_options, owner)?
            }
            Tree::AlterTable(alter) => self.alter_table(alter)?,
            Tree::AlterIndex { name, operation: AlterIndexOperation::RenameIndex { index_name } } => {
                self.rename_index(name, index_name)?
            }
            Tree::Drop { object_type, if_exists, names, cascade, .. } => {
                self.drop_objects(*object_type, names, *if_exists, *cascade)?
            }
            Tree::Truncate(truncate) => self.truncate(truncate)?,
            Tree::Comment { object_type, object_name, comment, .. } => {
                self.comment(object_type, object_name, comment.as_deref())?;
                return Ok(CommandTag::new("COMMENT"));
            }
            // The only user may do everything.
            Tree::Grant(_) => return Ok(CommandTag::new("GRANT")),
            Tree::Revoke(_) => return Ok(CommandTag::new("REVOKE")),
            other => {
                let text = other.to_string();
                let words: Vec<&str> = text.split_whitespace().take(2).collect();
                return Err(Error::unsupported(format_args!("the statement {}", words.join(" "))));
            }
        };
        self.tidy_comments(tree)?;
        self.schema_changed();
        Ok(tag)
    }
}
