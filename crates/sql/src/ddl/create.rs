//! CREATE TABLE, CREATE VIEW, CREATE SCHEMA, CREATE SEQUENCE.

use cairn_table::Table;
use cairn_table::schema::{ColumnDef, TableDef, ViewDef};
use cairn_vfs::sync::Arc;
use sqlparser::ast::{self, ObjectName, SchemaName, Statement as Tree};

use super::columns::{OwnSequence, apply};
use super::identity::owner;
use crate::batch::BatchReader;
use crate::batch::arrow_error;
use crate::command_tag::CommandTag;
use crate::datum::DatumRef;
use crate::direct::Checks;
use crate::error::{Error, Result};
use crate::runtime::sequence::{HIDDEN, Sequence, find as find_sequence, undefined};
use crate::session::Session;
use crate::sqlstate::{DUPLICATE_SCHEMA, DUPLICATE_TABLE, INVALID_SCHEMA_NAME, INVALID_TABLE_DEFINITION};
use crate::syntax::{TableName, column_type, ident, qualified};

/// The largest number of columns of a table, as in PostgreSQL.
const MOST_COLUMNS: usize = 1_600;

impl Session {
    /// Returns the namespace and the name for a new object.
    ///
    /// Errors: 3F000.
    pub(super) fn place_of(&mut self, name: &ObjectName) -> Result<(String, String)> {
        let TableName { schema, name } = qualified(name)?;
        let schema = schema.unwrap_or_else(|| self.context.settings.schema().to_owned());
        if schema == HIDDEN || !self.transaction()?.view().catalog().has_schema(&schema) {
            return Err(Error::new(INVALID_SCHEMA_NAME, format!("schema \"{schema}\" does not exist")));
        }
        Ok((schema, name))
    }

    /// Like [`Session::place_of`], but locks the schema; `None` if the name is taken, which IF NOT
    /// EXISTS allows.
    ///
    /// Errors: 3F000, 42P07, and those of waiting for the lock.
    fn new_place(&mut self, name: &ObjectName, may_exist: bool) -> Result<Option<(String, String)>> {
        self.look_up(|session| {
            let (schema, name) = session.place_of(name)?;
            Ok((!session.is_taken(&schema, &name, may_exist)?).then_some((schema, name)))
        })
    }

    /// Whether the name is taken. IF NOT EXISTS turns that error into a notice.
    pub(super) fn is_taken(&mut self, schema: &str, name: &str, may_exist: bool) -> Result<bool> {
        let view = self.transaction()?.view();
        let is_taken = view.catalog().has_name(schema, name)
            || find_sequence(view, &(schema.to_owned(), name.to_owned()))?.is_some();
        if !is_taken {
            return Ok(false);
        }
        if may_exist {
            self.notice(DUPLICATE_TABLE, format!("relation \"{name}\" already exists, skipping"));
            return Ok(true);
        }
        Err(Error::new(DUPLICATE_TABLE, format!("relation \"{name}\" already exists")))
    }

    pub(super) fn create_table(&mut self, create: &ast::CreateTable) -> Result<CommandTag> {
        if create.or_replace
            || create.external
            || create.inherits.is_some()
            || create.partition_by.is_some()
            || create.partition_of.is_some()
        {
            return Err(Error::unsupported("this form of CREATE TABLE"));
        }
        if create.temporary || create.on_commit.is_some() {
            return Err(Error::unsupported("a temporary table"));
        }
        let Some((schema, name)) = self.new_place(&create.name, create.if_not_exists)? else {
            return Ok(CommandTag::new("CREATE TABLE"));
        };
        if let Some(query) = &create.query {
            return self.create_table_as(schema, name, create, query);
        }
        let (def, sequences) =
            self.columns_and_constraints(create, TableDef { schema, name, ..TableDef::default() })?;
        self.make(def, sequences)?;
        Ok(CommandTag::new("CREATE TABLE"))
    }

    fn columns_and_constraints(
        &mut self,
        create: &ast::CreateTable,
        mut def: TableDef,
    ) -> Result<(TableDef, Vec<OwnSequence>)> {
        if create.columns.len() > MOST_COLUMNS {
            let what = format!("tables can have at most {MOST_COLUMNS} columns");
            return Err(Error::new(crate::sqlstate::TOO_MANY_COLUMNS, what));
        }
        if let Some(like) = &create.like {
            let (ast::CreateTableLikeKind::Parenthesized(like) | ast::CreateTableLikeKind::Plain(like)) =
                like;
            let with_defaults = matches!(like.defaults, Some(ast::CreateTableLikeDefaults::Including));
            let columns = self.table_named(&like.name)?.def().columns.clone();
            def.columns.extend(columns.into_iter().map(|mut column| {
                // An identity's sequence is neither copied nor shared.
                let is_identity = column.identity.take().is_some();
                column.default = column.default.filter(|_| with_defaults && !is_identity);
                column
            }));
        }
        self.with_more(def, None, |constraints| {
            let mut sequences = Vec::new();
            for column in &create.columns {
                constraints.add_column(column, &mut sequences)?;
            }
            create.constraints.iter().try_for_each(|constraint| constraints.add(constraint))?;
            Ok(sequences)
        })
    }

    fn make(&mut self, def: TableDef, sequences: Vec<OwnSequence>) -> Result<Arc<Table>> {
        Checks::new(&def)?;
        let table = self.transaction()?.create_table(def)?;
        self.make_sequences(sequences)?;
        Ok(table)
    }

    /// Creates the sequences of columns.
    pub(super) fn make_sequences(&mut self, sequences: Vec<OwnSequence>) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let (transaction, context) = self.parts()?;
        for (name, sequence) in sequences {
            context.sequences.create(&shared, transaction, &name, sequence)?;
        }
        Ok(())
    }

    fn create_table_as(
        &mut self,
        schema: String,
        name: String,
        create: &ast::CreateTable,
        query: &ast::Query,
    ) -> Result<CommandTag> {
        let tree = Tree::Query(Box::new(query.clone()));
        let (query, _, columns) = self.plan_query(&tree, &[])?;
        let names: Vec<String> = create.columns.iter().map(|column| ident(&column.name)).collect();
        if names.len() > columns.len() {
            return Err(Error::new(crate::sqlstate::SYNTAX_ERROR, "too many column names were specified"));
        }
        let mut def = TableDef { schema, name, ..TableDef::default() };
        for (at, column) in columns.iter().enumerate() {
            let name = names.get(at).unwrap_or(&column.name).clone();
            if def.column(&name).is_some() {
                let what = format!("column \"{name}\" specified more than once");
                return Err(Error::new(crate::sqlstate::DUPLICATE_COLUMN, what));
            }
            def.columns.push(ColumnDef {
                name,
                kind: column.kind.clone(),
                nullable: true,
                default: None,
                identity: None,
            });
        }
        if def.columns.is_empty() {
            return Err(Error::new(INVALID_TABLE_DEFINITION, "a table needs a column"));
        }
        let kinds: Vec<_> = def.columns.iter().map(|column| column.kind.clone()).collect();
        let mut batches = query.run(self, &[])?;
        let transaction = self.transaction()?;
        let table = transaction.create_table(def)?;
        let mut insert = transaction.bulk_insert(&table)?;
        while let Some(batch) = batches.next()? {
            let reader = BatchReader::new(&batch, &kinds).map_err(arrow_error)?;
            for row in 0..reader.rows() {
                let values: Vec<_> =
                    (0..kinds.len()).map(|column| DatumRef::to_value(reader.get(row, column))).collect();
                insert.push(&values)?;
            }
        }
        Ok(CommandTag::of_rows("SELECT", insert.finish()?))
    }

    pub(super) fn create_view(&mut self, create: &ast::CreateView) -> Result<CommandTag> {
        if create.materialized {
            return Err(Error::unsupported("a materialized view"));
        }
        if create.temporary {
            return Err(Error::unsupported("a temporary view"));
        }
        let found = self.look_up(|session| {
            let (schema, name) = session.place_of(&create.name)?;
            let exists = session.transaction()?.view().catalog().view(&schema, &name).is_some();
            let is_taken =
                !(create.or_replace && exists) && session.is_taken(&schema, &name, create.if_not_exists)?;
            Ok((!is_taken).then_some((schema, name)))
        })?;
        let Some((schema, name)) = found else { return Ok(CommandTag::new("CREATE VIEW")) };
        let names: Vec<String> = create.columns.iter().map(|column| ident(&column.name)).collect();
        // The query is planned, to check that it is valid.
        let tree = Tree::Query(create.query.clone());
        {
            let general = self.general;
            general.check_view(self, &tree)?;
        };
        let (_, params, columns) = self.plan_query(&tree, &[])?;
        if !params.is_empty() {
            return Err(Error::new(crate::sqlstate::UNDEFINED_PARAMETER, "there is no parameter $1"));
        }
        if names.len() > columns.len() {
            return Err(Error::new(
                crate::sqlstate::SYNTAX_ERROR,
                "CREATE VIEW specifies more column names than columns",
            ));
        }
        let mut all: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        all.iter_mut().zip(&names).for_each(|(name, given)| *name = given);
        for (at, name) in all.iter().enumerate() {
            if all.iter().take(at).any(|other| other == name) {
                let what = format!("column \"{name}\" specified more than once");
                return Err(Error::new(crate::sqlstate::DUPLICATE_COLUMN, what));
            }
        }
        let columns = all.iter().map(|name| (*name).to_owned()).collect();
        let def = ViewDef { schema, name, columns, query: create.query.to_string() };
        self.transaction()?.create_view(def, create.or_replace)?;
        Ok(CommandTag::new("CREATE VIEW"))
    }

    pub(super) fn create_schema(&mut self, name: &SchemaName, may_exist: bool) -> Result<CommandTag> {
        let name = match name {
            SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => qualified(name)?.name,
            SchemaName::UnnamedAuthorization(name) => ident(name),
        };
        if name.starts_with("pg_") || name == HIDDEN || name == "information_schema" {
            return Err(Error::new("42939", format!("unacceptable schema name \"{name}\"")));
        }
        let is_new = self.look_up(|session| {
            let is_there = session.transaction()?.view().catalog().has_schema(&name);
            if is_there && !may_exist {
                return Err(Error::new(DUPLICATE_SCHEMA, format!("schema \"{name}\" already exists")));
            }
            if is_there {
                session.notice(DUPLICATE_SCHEMA, format!("schema \"{name}\" already exists, skipping"));
            }
            Ok((!is_there).then_some(()))
        })?;
        if is_new.is_some() {
            self.transaction()?.create_schema(&name)?;
        }
        Ok(CommandTag::new("CREATE SCHEMA"))
    }

    pub(super) fn create_sequence(
        &mut self,
        name: &ObjectName,
        may_exist: bool,
        kind: Option<&ast::DataType>,
        options: &[ast::SequenceOptions],
        owner: Option<&ObjectName>,
    ) -> Result<CommandTag> {
        let Some(name) = self.new_place(name, may_exist)? else {
            return Ok(CommandTag::new("CREATE SEQUENCE"));
        };
        let kind =
            kind.map(column_type).transpose()?.map_or(cairn_table::row::Type::BigInt, |kind| kind.kind);
        let owner = owner.map(|column| self.owner_of(&name.0, column)).transpose()?;
        let mut sequence = Sequence::of(kind, owner);
        apply(&mut sequence, options)?;
        let shared = Arc::clone(&self.shared);
        let (transaction, context) = self.parts()?;
        context.sequences.create(&shared, transaction, &name, sequence)?;
        Ok(CommandTag::new("CREATE SEQUENCE"))
    }

    /// Runs ALTER SEQUENCE: sets its next value, or its owning column.
    ///
    /// Errors: 42P01, 42703, 22023 for a value outside its bounds.
    pub(crate) fn alter_sequence(
        &mut self,
        name: &ObjectName,
        restart: Option<Option<i64>>,
        owner: Option<Option<&ObjectName>>,
    ) -> Result<CommandTag> {
        // Needs the schema lock: otherwise other sessions would take values that would be given out
        // again if this transaction is rolled back.
        let found = self.look_up(|session| {
            let name = session.place_of(name)?;
            match find_sequence(session.transaction()?.view(), &name)? {
                Some(_) => Ok(Some(name)),
                None => Err(undefined(&name.1)),
            }
        })?;
        let Some(name) = found else { return Ok(CommandTag::new("ALTER SEQUENCE")) };
        if owner.is_some() {
            self.check_is_free(&name)?;
        }
        let owner = match owner {
            Some(Some(column)) => Some(Some(self.owner_of(&name.0, column)?)),
            Some(None) => Some(None),
            None => None,
        };
        let shared = Arc::clone(&self.shared);
        let (transaction, context) = self.parts()?;
        context.sequences.alter(&shared, transaction, &name, |sequence| {
            if let Some(value) = restart {
                let value = value.unwrap_or(sequence.start);
                if !(sequence.minimum..=sequence.maximum).contains(&value) {
                    let what = format!("RESTART value ({value}) cannot be outside MINVALUE and MAXVALUE");
                    return Err(Error::new(crate::sqlstate::INVALID_PARAMETER_VALUE, what));
                }
                sequence.next = Some(value);
            }
            if let Some(owner) = owner {
                sequence.owner = owner;
            }
            Ok(())
        })?;
        self.schema_changed();
        Ok(CommandTag::new("ALTER SEQUENCE"))
    }

    /// Returns `table.column`, the form in which sequences store their owner. The table is in the
    /// namespace of the sequence.
    fn owner_of(&mut self, schema: &str, column: &ObjectName) -> Result<String> {
        let mut parts = column.0.clone();
        let last = parts.pop().and_then(|part| part.as_ident().map(crate::syntax::ident));
        let (Some(column), false) = (last, parts.is_empty()) else {
            return Err(Error::new(crate::sqlstate::SYNTAX_ERROR, "OWNED BY takes table.column or NONE"));
        };
        let given = crate::syntax::qualified(&ObjectName(parts))?;
        let search_path = self.context.settings.search_path.clone();
        let catalog = Arc::clone(self.transaction()?.view().catalog());
        let table = crate::direct::table_of(&catalog, &search_path, &given).ok_or_else(|| {
            Error::new(crate::sqlstate::UNDEFINED_TABLE, format!("relation \"{given}\" does not exist"))
        })?;
        let def = table.def();
        if def.schema != schema {
            let what = "sequence must be in same schema as table it is linked to";
            return Err(Error::new(crate::sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, what));
        }
        if def.column(&column).is_none() {
            let what = format!("column \"{column}\" of relation \"{}\" does not exist", def.name);
            return Err(Error::new(crate::sqlstate::UNDEFINED_COLUMN, what));
        }
        Ok(owner(def, &column))
    }
}
