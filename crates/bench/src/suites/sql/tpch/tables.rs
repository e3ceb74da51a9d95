//! The eight tables and their rows.

use std::fmt::Write;

use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use crate::core::answer::Cell;
use crate::core::error::{Error, Result};
use crate::stores::sql::{Dialect, Rows};

/// How the text of a column becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    /// Two digits after the point, which may be absent from whole numbers.
    Money,
    /// A date, or any other text.
    Text,
}

/// A column: its name, its type, and the conversion of its text.
#[derive(Debug, Clone, Copy)]
pub struct Column(&'static str, &'static str, Kind);

const fn int(name: &'static str) -> Column {
    Column(name, "INTEGER", Kind::Int)
}

const fn money(name: &'static str) -> Column {
    Column(name, "DECIMAL(12,2)", Kind::Money)
}

const fn date(name: &'static str) -> Column {
    Column(name, "DATE", Kind::Text)
}

const fn text(name: &'static str, kind: &'static str) -> Column {
    Column(name, kind, Kind::Text)
}

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct TableOf {
    pub name: &'static str,
    pub columns: &'static [Column],
    key: &'static str,
}

/// The tables, each after those that it refers to.
pub const TABLES: [TableOf; 8] = [
    TableOf {
        name: "region",
        key: "r_regionkey",
        columns: &[int("r_regionkey"), text("r_name", "VARCHAR(25)"), text("r_comment", "VARCHAR(152)")],
    },
    TableOf {
        name: "nation",
        key: "n_nationkey",
        columns: &[
            int("n_nationkey"),
            text("n_name", "VARCHAR(25)"),
            int("n_regionkey"),
            text("n_comment", "VARCHAR(152)"),
        ],
    },
    TableOf {
        name: "part",
        key: "p_partkey",
        columns: &[
            int("p_partkey"),
            text("p_name", "VARCHAR(55)"),
            text("p_mfgr", "VARCHAR(25)"),
            text("p_brand", "VARCHAR(10)"),
            text("p_type", "VARCHAR(25)"),
            int("p_size"),
            text("p_container", "VARCHAR(10)"),
            money("p_retailprice"),
            text("p_comment", "VARCHAR(23)"),
        ],
    },
    TableOf {
        name: "supplier",
        key: "s_suppkey",
        columns: &[
            int("s_suppkey"),
            text("s_name", "VARCHAR(25)"),
            text("s_address", "VARCHAR(40)"),
            int("s_nationkey"),
            text("s_phone", "VARCHAR(15)"),
            money("s_acctbal"),
            text("s_comment", "VARCHAR(101)"),
        ],
    },
    TableOf {
        name: "partsupp",
        key: "ps_partkey, ps_suppkey",
        columns: &[
            int("ps_partkey"),
            int("ps_suppkey"),
            int("ps_availqty"),
            money("ps_supplycost"),
            text("ps_comment", "VARCHAR(199)"),
        ],
    },
    TableOf {
        name: "customer",
        key: "c_custkey",
        columns: &[
            int("c_custkey"),
            text("c_name", "VARCHAR(25)"),
            text("c_address", "VARCHAR(40)"),
            int("c_nationkey"),
            text("c_phone", "VARCHAR(15)"),
            money("c_acctbal"),
            text("c_mktsegment", "VARCHAR(10)"),
            text("c_comment", "VARCHAR(117)"),
        ],
    },
    TableOf {
        name: "orders",
        key: "o_orderkey",
        columns: &[
            int("o_orderkey"),
            int("o_custkey"),
            text("o_orderstatus", "VARCHAR(1)"),
            money("o_totalprice"),
            date("o_orderdate"),
            text("o_orderpriority", "VARCHAR(15)"),
            text("o_clerk", "VARCHAR(15)"),
            int("o_shippriority"),
            text("o_comment", "VARCHAR(79)"),
        ],
    },
    TableOf {
        name: "lineitem",
        key: "l_orderkey, l_linenumber",
        columns: &[
            int("l_orderkey"),
            int("l_partkey"),
            int("l_suppkey"),
            int("l_linenumber"),
            money("l_quantity"),
            money("l_extendedprice"),
            money("l_discount"),
            money("l_tax"),
            text("l_returnflag", "VARCHAR(1)"),
            text("l_linestatus", "VARCHAR(1)"),
            date("l_shipdate"),
            date("l_commitdate"),
            date("l_receiptdate"),
            text("l_shipinstruct", "VARCHAR(25)"),
            text("l_shipmode", "VARCHAR(10)"),
            text("l_comment", "VARCHAR(44)"),
        ],
    },
];

/// Returns indexes of foreign keys, for engines that use them in joins. DuckDB does not use them.
/// Its tables have no keys either, as in its makers' own setup.
pub fn indexes(dialect: Dialect) -> &'static [&'static str] {
    if dialect == Dialect::DuckDb {
        return &[];
    }
    &[
        "CREATE INDEX nation_region ON nation (n_regionkey)",
        "CREATE INDEX supplier_nation ON supplier (s_nationkey)",
        "CREATE INDEX partsupp_supplier ON partsupp (ps_suppkey)",
        "CREATE INDEX customer_nation ON customer (c_nationkey)",
        "CREATE INDEX orders_customer ON orders (o_custkey)",
        "CREATE INDEX lineitem_part ON lineitem (l_partkey, l_suppkey)",
        "CREATE INDEX lineitem_supplier ON lineitem (l_suppkey)",
    ]
}

/// Returns the approximate number of rows in `lineitem`, which represents the size of a data set.
pub fn line_items(scale: f64) -> u64 {
    (scale * 6_000_000.0).round() as u64
}

impl TableOf {
    /// Returns the statement that creates the table.
    pub fn create(&self, dialect: Dialect) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|Column(name, kind, _)| format!("{name} {kind} NOT NULL")).collect();
        let key =
            if dialect == Dialect::DuckDb { String::new() } else { format!(", PRIMARY KEY ({})", self.key) };
        format!("CREATE TABLE {} ({}{key})", self.name, columns.join(", "))
    }

    /// Returns the rows of the table.
    pub fn rows(&self, scale: f64) -> TpchRows {
        TpchRows { table: *self, scale }
    }
}

/// The rows of a table.
#[derive(Debug)]
pub struct TpchRows {
    table: TableOf,
    scale: f64,
}

impl Rows for TpchRows {
    fn each(&mut self, visit: &mut dyn FnMut(&[Cell<'_>]) -> Result<()>) -> Result<()> {
        let columns = self.table.columns;
        let mut line = String::new();
        // Each row prints itself as a line with a bar behind every column.
        macro_rules! rows {
            ($generator:ident) => {
                for row in $generator::new(self.scale, 1, 1).iter() {
                    line.clear();
                    // Writing to a string cannot fail.
                    let _ = write!(line, "{row}");
                    visit(&cells(columns, &line)?)?;
                }
            };
        }
        match self.table.name {
            "region" => rows!(RegionGenerator),
            "nation" => rows!(NationGenerator),
            "part" => rows!(PartGenerator),
            "supplier" => rows!(SupplierGenerator),
            "partsupp" => rows!(PartSuppGenerator),
            "customer" => rows!(CustomerGenerator),
            "orders" => rows!(OrderGenerator),
            _ => rows!(LineItemGenerator),
        }
        Ok(())
    }
}

fn cells<'l>(columns: &[Column], line: &'l str) -> Result<Vec<Cell<'l>>> {
    let wrong = |text: &str| Error::engine("tpchgen", format!("a row with {text:?}: {line}"));
    let cell = |(Column(_, _, kind), text): (&Column, &'l str)| match kind {
        Kind::Int => text.parse().map(Cell::Int).map_err(|_| wrong(text)),
        Kind::Text => Ok(Cell::Text(text)),
        Kind::Money => {
            let (whole, cents) = text.split_once('.').unwrap_or((text, "00"));
            let units: i64 = format!("{whole}{cents}").parse().map_err(|_| wrong(text))?;
            if cents.len() == 2 { Ok(Cell::Decimal(units, 2)) } else { Err(wrong(text)) }
        }
    };
    columns.iter().zip(line.split('|')).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every table has rows, each with a value for every column. Method: all tables at a
    /// small scale.
    #[test]
    fn tables_have_rows() {
        for table in &TABLES {
            let mut count = 0;
            let mut check = |row: &[Cell<'_>]| {
                count += 1;
                assert_eq!(row.len(), table.columns.len(), "{}", table.name);
                Ok(())
            };
            table.rows(0.001).each(&mut check).unwrap();
            assert!(count >= 5, "{} has {count} rows", table.name);
            assert!(table.create(Dialect::Sqlite).contains("PRIMARY KEY"));
            assert!(!table.create(Dialect::DuckDb).contains("PRIMARY KEY"));
        }
        assert!(cells(&[int("a")], "x|").is_err() && cells(&[money("a")], "1.5|").is_err());
        let columns = [int("a"), money("b"), money("c"), text("d", "TEXT")];
        let row = cells(&columns, "1|-2.05|17|x y|").unwrap();
        assert_eq!(row, [Cell::Int(1), Cell::Decimal(-205, 2), Cell::Decimal(1700, 2), Cell::Text("x y")]);
    }
}
