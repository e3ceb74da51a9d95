//! Goal: the queries of real clients are planned, run, and give what PostgreSQL 15 gave. Method: queries that psql, the JDBC driver, SQLAlchemy and others sent
//! (`testing/compat/catalog-queries`), over the tables that they were recorded with.

use std::path::Path;

use cairn_table::row::{Order, Type};
use cairn_table::schema::{
    CheckDef, ColumnDef, ColumnType, ForeignKeyDef, IndexDef, KeyColumn, Referential, TableDef, ViewDef,
};
use cairn_table::{Database, Isolation, Options};
use cairn_vfs::{Fs, MemFs};
use datafusion::execution::config::SessionConfig;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::*;

fn column(name: &str, kind: impl Into<ColumnType>, nullable: bool) -> ColumnDef {
    ColumnDef { name: name.to_owned(), kind: kind.into(), nullable, default: None }
}

fn keys(columns: &[usize]) -> Vec<KeyColumn> {
    columns.iter().map(|&column| KeyColumn { column, order: Order::default() }).collect()
}

fn index(name: &str, columns: Vec<KeyColumn>, unique: bool, is_constraint: bool) -> IndexDef {
    IndexDef { name: name.to_owned(), columns, include: Vec::new(), unique, is_constraint }
}

/// The tables of `schema.sql` beside the queries.
fn catalog() -> Arc<Catalog> {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let database = Database::open(&fs, Path::new("catalog.db"), &Options::default()).unwrap();
    let mut transaction = database.begin(Isolation::ReadCommitted).unwrap();
    transaction.create_schema("app").unwrap();
    let default = |mut column: ColumnDef, value: &str| {
        column.default = Some(value.to_owned());
        column
    };
    let customers = TableDef {
        schema: "public".to_owned(),
        name: "customers".to_owned(),
        columns: vec![
            column("id", Type::Int, false),
            column("name", ColumnType::varchar(40), false),
            column("email", Type::Text, true),
            column("born", Type::Date, true),
            default(column("balance", ColumnType::decimal(12, 2), true), "0"),
            default(column("active", Type::Boolean, false), "true"),
        ],
        primary_key: keys(&[0]),
        indexes: vec![index("customers_email_key", keys(&[2]), true, true)],
        checks: vec![CheckDef {
            name: "positive".to_owned(),
            expression: "balance >= 0::numeric".to_owned(),
        }],
        ..TableDef::default()
    };
    let customers = transaction.create_table(customers).unwrap();
    let down = KeyColumn { column: 3, order: Order { descending: true, nulls_first: true } };
    let names = ["placed", "note", "total", "uid", "data", "raw", "span"];
    let kinds = [
        Type::Timestamp.into(),
        Type::Text.into(),
        Type::Double.into(),
        Type::Uuid.into(),
        ColumnType::json(),
        Type::Blob.into(),
        Type::Interval.into(),
    ];
    let first = [
        column("id", Type::BigInt, false),
        column("line", Type::SmallInt, false),
        column("customer", Type::Int, true),
    ];
    let orders = TableDef {
        schema: "public".to_owned(),
        name: "orders".to_owned(),
        columns: first
            .into_iter()
            .chain(names.into_iter().zip(kinds).map(|(name, kind)| column(name, kind, true)))
            .collect(),
        primary_key: keys(&[0, 1]),
        indexes: vec![
            index("orders_customer", vec![keys(&[2])[0], down], false, false),
            index("orders_uid", keys(&[6]), true, false),
        ],
        foreign_keys: vec![ForeignKeyDef {
            name: "orders_customer_fkey".to_owned(),
            columns: vec![2],
            table: customers.id(),
            references: vec![0],
            on_delete: Referential::Cascade,
            on_update: Referential::Restrict,
        }],
        ..TableDef::default()
    };
    transaction.create_table(orders).unwrap();
    let log = TableDef {
        schema: "app".to_owned(),
        name: "log".to_owned(),
        columns: vec![
            column("at", Type::Timestamp, true),
            column("line", Type::Text, true),
            column("level", Type::Real, true),
            column("clock", Type::Time, true),
        ],
        ..TableDef::default()
    };
    transaction.create_table(log).unwrap();
    let query = "SELECT customers.id,\n    customers.name\n   FROM customers\n  WHERE customers.active";
    let view = ViewDef {
        schema: "public".to_owned(),
        name: "active_customers".to_owned(),
        columns: vec!["id".to_owned(), "name".to_owned()],
        query: query.to_owned(),
    };
    transaction.create_view(view, false).unwrap();
    Arc::clone(transaction.view().catalog())
}

fn facts(catalog: &Catalog) -> Arc<SessionFacts> {
    let columns = vec![("id".to_owned(), Type::Int.into()), ("name".to_owned(), ColumnType::varchar(40))];
    let settings = [
        ("max_index_keys", "32"),
        ("server_version_num", "150000"),
        ("default_table_access_method", "heap"),
        ("search_path", "public"),
        ("standard_conforming_strings", "on"),
    ];
    Arc::new(SessionFacts {
        database: "cairn".to_owned(),
        user: "cairn".to_owned(),
        version: "PostgreSQL 15.0 (Cairn)".to_owned(),
        pid: 7,
        search_path: vec!["public".to_owned()],
        settings: settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        views: catalog.views().map(|(id, _)| (id, columns.clone())).collect(),
        ..SessionFacts::default()
    })
}

struct Lab {
    catalog: Arc<Catalog>,
    facts: Arc<SessionFacts>,
    context: SessionContext,
    runtime: tokio::runtime::Runtime,
}

impl Lab {
    fn new() -> Self {
        let catalog = catalog();
        let facts = facts(&catalog);
        let config =
            SessionConfig::new().with_default_catalog_and_schema("cairn", "public").with_target_partitions(1);
        let context = SessionContext::new_with_config(config);
        register(&context, &catalog, &facts).unwrap();
        Lab {
            catalog,
            facts,
            context,
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        }
    }

    /// The rows, values apart by `|`.
    fn run(&self, sql: &str) -> Result<Vec<String>, String> {
        let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, sql)
            .map_err(|error| format!("parse: {error}"))?
            .remove(0);
        if is_about(&statement) {
            rewrite(&mut statement, &self.catalog, &self.facts);
        }
        let text = statement.to_string();
        let shown = |what: &str, error: datafusion::error::DataFusionError| {
            format!("{what}: {}\n   {text}", error.strip_backtrace())
        };
        self.runtime.block_on(async {
            let plan = self
                .context
                .state()
                .statement_to_plan(Parsed::Statement(Box::new(statement)))
                .await
                .map_err(|error| shown("plan", error))?;
            let frame =
                self.context.execute_logical_plan(plan).await.map_err(|error| shown("execute", error))?;
            let batches = frame.collect().await.map_err(|error| shown("run", error))?;
            let mut rows = Vec::new();
            for batch in batches {
                let columns: Vec<Vec<cell::Cell>> =
                    batch.columns().iter().map(|column| cell::cells(column).unwrap()).collect();
                for row in 0..batch.num_rows() {
                    let shown = columns.iter().map(|column| match &column[row] {
                        cell::Cell::Bool(value) => if *value { "t" } else { "f" }.to_owned(),
                        other => other.text().unwrap_or_default(),
                    });
                    rows.push(shown.collect::<Vec<_>>().join("|"));
                }
            }
            Ok(rows)
        })
    }

    /// Puts our numbers in the place of `{schema.name}`.
    fn number(&self, sql: &str) -> String {
        let world = functions::World { catalog: Arc::clone(&self.catalog), facts: Arc::clone(&self.facts) };
        let mut text = sql.to_owned();
        while let Some(from) = text.find("{public.").or_else(|| text.find("{app.")) {
            let to = from + text[from..].find('}').unwrap();
            let oid = functions::class_oid(&world, &text[from + 1..to]).unwrap();
            text.replace_range(from..=to, &oid.to_string());
        }
        text
    }
}

/// Queries with their labels and what PostgreSQL gave, `None` where that depends on the server.
fn recorded() -> Vec<(String, String, Option<Vec<String>>)> {
    let files = [
        ("psql", include_str!("../../../../testing/compat/catalog-queries/psql.sql")),
        ("jdbc", include_str!("../../../../testing/compat/catalog-queries/jdbc.sql")),
        ("sqlalchemy", include_str!("../../../../testing/compat/catalog-queries/sqlalchemy.sql")),
        ("drivers", include_str!("../../../../testing/compat/catalog-queries/drivers.sql")),
    ];
    let mut all = Vec::new();
    for (file, text) in files {
        for part in text.split(";\n\n").filter(|part| !part.trim().is_empty()) {
            let (label, sql) = part.trim_start().split_once('\n').unwrap();
            let (sql, answer) =
                sql.split_once("\n-- gives\n").map_or((sql, None), |(sql, answer)| (sql, Some(answer)));
            let answer = answer.map(|answer| {
                answer.lines().map(|line| line.strip_prefix("-- ").unwrap_or_default().to_owned()).collect()
            });
            all.push((format!("{file} {label}"), sql.to_owned(), answer));
        }
    }
    assert!(all.len() > 100, "{} queries", all.len());
    all
}

/// Every recorded query runs; those whose answers do not depend on the server give PostgreSQL's.
#[test]
fn recorded_queries() {
    let lab = Lab::new();
    let mut failures = Vec::new();
    for (label, sql, answer) in recorded() {
        match (lab.run(&lab.number(&sql)), answer) {
            (Err(error), _) => failures.push(format!("{label}: {error}")),
            (Ok(found), Some(answer)) if found.join("\n") != answer.join("\n") => {
                failures.push(format!(
                    "{label}: differs\n  found:\n{}\n  expected:\n{}\n{sql}",
                    found.join("\n"),
                    answer.join("\n")
                ));
            }
            _ => {}
        }
    }
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n\n"));
}
