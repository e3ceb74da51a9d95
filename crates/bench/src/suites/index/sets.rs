//! The data sets: those of the benchmark guide, and the variants that it suggests. Each set is a
//! table, the forms of an index on it, and queries.
//!
//! In a table made with `g % N`, the row ids of a key lie on a line, which flatters indexes that
//! compress them. So each such table exists a second time with its rows shuffled.

/// A suite of data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// Q1 to Q3 of the guide, a million rows each.
    Quick,
    /// Five million rows, with an index larger than the buffers.
    Thrash,
    /// The same with twenty million rows.
    Pressure,
    /// Selectivity, workers, key types, widths, skew, and a mix.
    Ideas,
}

impl Suite {
    /// All suites, in order.
    pub const ALL: [Suite; 4] = [Suite::Quick, Suite::Thrash, Suite::Pressure, Suite::Ideas];

    /// Returns the name of the suite.
    pub fn name(self) -> &'static str {
        match self {
            Suite::Quick => "quick",
            Suite::Thrash => "thrash",
            Suite::Pressure => "pressure",
            Suite::Ideas => "ideas",
        }
    }
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Name of the query.
    pub name: String,
    /// SQL over the table `d`. Several statements separated by `;` form one query.
    pub sql: String,
    /// Number of parallel workers that it may use.
    pub workers: u32,
}

/// A table and the queries on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSet {
    /// Name of the data set.
    pub name: String,
    /// Number of rows.
    pub rows: u64,
    /// The columns, as SQL over the row number `g`.
    pub columns: String,
    /// Whether the rows are stored in random order.
    pub shuffled: bool,
    /// Key columns of the index.
    pub keys: Vec<String>,
    /// Columns that the index includes.
    pub includes: Vec<String>,
    /// The queries.
    pub queries: Vec<Query>,
    /// Whether rows are inserted into a copy of the table.
    pub writes: bool,
}

fn query(name: &str, sql: impl Into<String>) -> Query {
    Query { name: name.to_owned(), sql: sql.into(), workers: 0 }
}

fn set(
    name: &str,
    rows: u64,
    columns: &str,
    keys: &[&str],
    includes: &[&str],
    queries: Vec<Query>,
) -> DataSet {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    DataSet {
        name: name.to_owned(),
        rows,
        columns: columns.to_owned(),
        shuffled: false,
        keys: owned(keys),
        includes: owned(includes),
        queries,
        writes: false,
    }
}

/// Returns a set, and the same set with its rows in random order.
fn both(set: DataSet) -> [DataSet; 2] {
    let shuffled =
        DataSet { name: format!("{}, shuffled", set.name), shuffled: true, writes: false, ..set.clone() };
    [set, shuffled]
}

/// Returns the data sets of a suite, with `scale` times the guide's rows.
pub fn sets(suite: Suite, scale: f64) -> Vec<DataSet> {
    let scaled = |rows: u64| ((rows as f64 * scale) as u64).max(1000);
    match suite {
        Suite::Quick => quick(scaled(1_000_000)),
        Suite::Thrash => both(thrash("thrash", scaled(5_000_000))).into(),
        Suite::Pressure => both(thrash("pressure", scaled(20_000_000))).into(),
        Suite::Ideas => ideas(scaled(1_000_000)),
    }
}

/// Keys of a zipf distribution over 10,000 values. The hottest key has a tenth of the rows.
const ZIPF: &str = "CASE WHEN random() < 0.1 THEN 42 ELSE floor(10000 ^ random())::int END AS k, \
     (random() * 9999)::int AS a, (random() * 9999)::int AS b";

fn quick(rows: u64) -> Vec<DataSet> {
    let q1 = set(
        "Q1",
        rows,
        "g::int AS k",
        &["k"],
        &[],
        vec![
            query("range of 50 %", format!("SELECT count(*) FROM d WHERE k > {}", rows / 2)),
            query("range of 1 %", format!("SELECT count(*) FROM d WHERE k > {}", rows - rows / 100)),
            query("point", format!("SELECT k FROM d WHERE k = {}", rows / 8)),
            query(
                "IN of 5",
                format!(
                    "SELECT k FROM d WHERE k IN (5, {}, {}, {}, {rows}) ORDER BY k",
                    rows / 9,
                    rows / 3,
                    rows / 2
                ),
            ),
            query(
                "backward, 100 rows",
                format!("SELECT k FROM d WHERE k < {} ORDER BY k DESC LIMIT 100", rows / 10 * 7),
            ),
        ],
    );
    let q2 = set(
        "Q2",
        rows,
        ZIPF,
        &["k"],
        &["a", "b"],
        vec![
            query("hot key", "SELECT sum(a), sum(b) FROM d WHERE k = 42"),
            query("cold key", "SELECT sum(a), sum(b) FROM d WHERE k = 7777"),
            query("groups", "SELECT k, count(*), sum(a) FROM d GROUP BY k ORDER BY k"),
        ],
    );
    let q3 = set(
        "Q3",
        rows,
        "date '2020-01-01' + (g % 3650)::int AS d, (g % 1000)::int AS k",
        &["d", "k"],
        &[],
        vec![query("range and filter", "SELECT count(*) FROM d WHERE d >= '2024-06-01' AND k = 17")],
    );
    let mut sets: Vec<DataSet> = both(DataSet { writes: true, ..q1 }).into();
    // Its rows are in random order already.
    sets.push(q2);
    sets.extend(both(q3));
    sets
}

fn thrash(name: &str, rows: u64) -> DataSet {
    set(
        name,
        rows,
        "(g % 50000)::int AS k, (g % 10000)::int AS a, (g % 10000)::int AS b",
        &["k"],
        &["a", "b"],
        vec![
            query("range of 10 %", "SELECT sum(a), sum(b), count(*) FROM d WHERE k >= 45000"),
            query("one key", "SELECT sum(a), sum(b), count(*) FROM d WHERE k = 777"),
        ],
    )
}

fn ideas(rows: u64) -> Vec<DataSet> {
    let mut sets = vec![sweep(rows)];
    let types = [
        ("int2", "(g % 30000)::int2", "30000 / 10 * 9"),
        ("int8", "g::int8 * 1000003", "1000003::int8 * :n / 10 * 9"),
        ("uuid", "md5(g::text)::uuid", "'e6666666-0000-0000-0000-000000000000'"),
        (
            "text",
            "'customer ' || lpad((g * 7919 % :n)::text, 9, '0')",
            "'customer ' || lpad((:n / 10 * 9)::text, 9, '0')",
        ),
        ("numeric", "(g % 100000) / 100.0", "900"),
        (
            "timestamp",
            "timestamp '2020-01-01' + g * interval '7 seconds'",
            "timestamp '2020-01-01' + :n / 10 * 9 * interval '7 seconds'",
        ),
    ];
    for (name, column, from) in types {
        let fill = |text: &str| text.replace(":n", &rows.to_string());
        let asked = format!("SELECT count(k) FROM d WHERE k >= {}", fill(from));
        let rows_of = format!("SELECT max(k::text) FROM d WHERE k >= {}", fill(from));
        sets.push(set(
            &format!("key {name}"),
            rows,
            &format!("{} AS k", fill(column)),
            &["k"],
            &[],
            vec![query("range of 10 %", asked), query("rows of 10 %", rows_of)],
        ));
    }
    for width in [1, 2, 4, 8] {
        let names: Vec<String> = (1..=width).map(|column| format!("c{column}")).collect();
        let columns: Vec<String> =
            names.iter().map(|name| format!("(random() * 999)::int AS {name}")).collect();
        let includes: Vec<&str> = names.iter().map(String::as_str).collect();
        let asked = format!("SELECT sum({}) FROM d WHERE k > {}", names[width - 1], rows / 10 * 9);
        let columns = format!("g::int AS k, {}", columns.join(", "));
        let queries = vec![query("sum of 10 %", asked)];
        sets.push(set(&format!("{width} INCLUDE columns"), rows, &columns, &["k"], &includes, queries));
    }
    let skews = [
        ("uniform", "(random() * 9999)::int"),
        ("zipf", "floor(10000 ^ random())::int"),
        ("heavy tail", "least(9999, floor(random() ^ -1.5))::int"),
    ];
    for (name, key) in skews {
        let columns = format!("{key} AS k, (random() * 9999)::int AS a");
        let queries = vec![
            query("first keys", "SELECT sum(a) FROM d WHERE k BETWEEN 1 AND 9"),
            query("groups", "SELECT k, sum(a) FROM d GROUP BY k ORDER BY k"),
        ];
        sets.push(set(&format!("skew {name}"), rows, &columns, &["k"], &["a"], queries));
    }
    let mix = "SELECT sum(a) FROM d WHERE k = 42; SELECT k, a, b FROM d WHERE k = 7777 ORDER BY k, a, b; \
         SELECT count(*) FROM d WHERE k BETWEEN 100 AND 200; SELECT max(k) FROM d; SELECT sum(a) FROM d WHERE k IN (3, 99, 5000); \
         SELECT k, count(*) FROM d WHERE k > 9000 GROUP BY k ORDER BY k";
    sets.push(set("mix", rows, ZIPF, &["k"], &["a", "b"], vec![query("six queries", mix)]));
    sets
}

/// Returns a set whose queries vary the fraction of the table and the number of processes.
fn sweep(rows: u64) -> DataSet {
    let range = |percent: u64| format!("SELECT sum(k) FROM d WHERE k > {}", rows - rows / 100 * percent);
    let mut queries: Vec<Query> =
        [1, 10, 50, 90].into_iter().map(|percent| query(&format!("{percent} %"), range(percent))).collect();
    for workers in [1, 2, 3, 5] {
        queries.push(Query { name: format!("90 %, {workers} workers"), sql: range(90), workers });
    }
    set("selectivity", rows, "g::int AS k", &["k"], &[], queries)
}

/// A way to answer queries: an index and planner settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The contender.
    pub name: &'static str,
    /// The family under which the report draws it.
    pub family: &'static str,
    /// Name of its index. Several contenders may share one.
    pub index: Option<&'static str>,
    /// The text after `CREATE INDEX … ON d`.
    pub definition: String,
    /// Settings of its sessions.
    pub settings: &'static str,
    /// Text that only plans that use this access contain.
    pub plan: &'static str,
}

impl Access {
    /// Returns true for Cairn's.
    pub fn ours(&self) -> bool {
        self.family == "cairn"
    }
}

/// Names of all contenders, ours first.
pub const CONTENDERS: [&str; 8] = [
    "cairn aggregate",
    "cairn scan",
    "btree",
    "btree of all columns",
    "btree without deduplication",
    "brin",
    "hash",
    "sequential scan",
];

/// Returns all contenders that can take part in a set.
pub fn accesses(set: &DataSet) -> Vec<Access> {
    const ONLY: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off";
    let keys = set.keys.join(", ");
    let form = |includes: &[String]| {
        if includes.is_empty() {
            format!("({keys})")
        } else {
            format!("({keys}) INCLUDE ({})", includes.join(", "))
        }
    };
    let access = |name, family, index, definition: String, settings, plan| Access {
        name,
        family,
        index,
        definition,
        settings,
        plan,
    };
    let cairn = format!("USING cairn {}", form(&set.includes));
    let mut all = vec![
        access("cairn aggregate", "cairn", Some("d_cairn"), cairn.clone(), ONLY, "Cairn Aggregate"),
        access(
            "cairn scan",
            "cairn",
            Some("d_cairn"),
            cairn,
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET cairn.enable_aggregate = off",
            "d_cairn",
        ),
        access(
            "btree",
            "btree",
            Some("d_btree"),
            format!("USING btree {}", form(&set.includes)),
            ONLY,
            "d_btree",
        ),
    ];
    if set.includes.is_empty() {
        let definition = format!("USING btree ({keys}) WITH (deduplicate_items = off)");
        all.push(access(
            "btree without deduplication",
            "btree",
            Some("d_plain"),
            definition,
            ONLY,
            "d_plain",
        ));
    } else {
        let definition = format!("USING btree ({keys}, {})", set.includes.join(", "));
        all.push(access("btree of all columns", "btree", Some("d_columns"), definition, ONLY, "d_columns"));
    }
    let first = set.keys.first().map_or("", String::as_str);
    all.push(access(
        "brin",
        "brin",
        Some("d_brin"),
        format!("USING brin ({first})"),
        "SET enable_seqscan = off",
        "d_brin",
    ));
    all.push(access(
        "hash",
        "hash",
        Some("d_hash"),
        format!("USING hash ({first})"),
        "SET enable_seqscan = off",
        "d_hash",
    ));
    all.push(access(
        "sequential scan",
        "seqscan",
        None,
        String::new(),
        "SET enable_indexscan = off",
        "Seq Scan",
    ));
    all
}
