//! Scripts: sequences of statements that depend on each other.

use super::draw::Draw;
use super::{Kind, Statement};

/// The names of the scripts.
pub const SCRIPTS: [&str; 3] = ["constraints", "transactions", "definitions"];

/// Draws the script called `name`, over tables whose names end in `number`.
pub fn script(name: &str, draw: &mut Draw, number: usize) -> Vec<Statement> {
    match name {
        "constraints" => constraints(draw, number),
        "transactions" => transactions(draw, number),
        _ => definitions(draw, number),
    }
}

struct Script(Vec<Statement>);

impl Script {
    fn control(&mut self, sql: String) {
        self.0.push(Statement::new(Kind::Control, sql));
    }

    fn change(&mut self, sql: String) {
        self.0.push(Statement::new(Kind::Change, sql));
    }

    fn query(&mut self, sql: String) {
        self.0.push(Statement::new(Kind::Query, sql));
    }
}

/// Keys, unique columns, NOT NULL, CHECK, DEFAULT, and references in both directions; some of the
/// statements must fail.
fn constraints(draw: &mut Draw, number: usize) -> Vec<Statement> {
    let mut script = Script(Vec::new());
    let (parent, child) = (format!("p{number}"), format!("c{number}"));
    let action = draw.pick(&[
        "",
        " ON DELETE CASCADE",
        " ON DELETE SET NULL",
        " ON DELETE RESTRICT",
        " ON UPDATE CASCADE",
    ]);
    let least = draw.between(0, 5);
    script.control(format!(
        "CREATE TABLE {parent} (id INTEGER PRIMARY KEY, code VARCHAR(10) UNIQUE, n INTEGER NOT NULL DEFAULT {} CHECK (n >= {least}))",
        draw.between(5, 9)
    ));
    script.control(format!(
        "CREATE TABLE {child} (a INTEGER, b INTEGER, parent INTEGER REFERENCES {parent} (id){action}, PRIMARY KEY (a, b), CHECK (a <> b))"
    ));
    for id in 1..=5 {
        script.change(format!("INSERT INTO {parent} (id, code) VALUES ({id}, 'k{id}')"));
        script.change(format!("INSERT INTO {child} VALUES ({id}, {}, {id})", id + 10));
    }
    for _ in 0..12 {
        let (id, other) = (draw.between(1, 8), draw.between(1, 8));
        let n = draw.between(-2, 12);
        script.change(match draw.below(11) {
            0 => format!("INSERT INTO {parent} (id, code, n) VALUES ({id}, 'k{other}', {n})"),
            1 => format!("INSERT INTO {parent} (id, code, n) VALUES ({}, NULL, {n})", id + 20),
            2 => format!("INSERT INTO {parent} (id, n) VALUES ({id}, NULL)"),
            3 => format!("UPDATE {parent} SET n = {n} WHERE id = {id}"),
            4 => format!("UPDATE {parent} SET code = 'k{other}' WHERE id = {id}"),
            5 => format!("DELETE FROM {parent} WHERE id = {id}"),
            6 => format!("UPDATE {parent} SET id = id + 30 WHERE id = {id}"),
            7 => format!("INSERT INTO {child} VALUES ({id}, {other}, {})", draw.between(1, 12)),
            8 => format!("INSERT INTO {child} VALUES ({id}, {other}, NULL)"),
            9 => format!("UPDATE {child} SET parent = {} WHERE a = {id}", draw.between(1, 12)),
            _ => format!("DELETE FROM {child} WHERE a = {id}"),
        });
        if draw.chance(60) {
            script.query(format!("SELECT id, code, n FROM {parent}"));
            script.query(format!("SELECT a, b, parent FROM {child}"));
        }
    }
    script.query(format!(
        "SELECT p.id, p.code, c.a FROM {parent} AS p LEFT JOIN {child} AS c ON c.parent = p.id"
    ));
    script.0
}

/// Transactions with savepoints that commit or roll back. Within them a statement fails only after
/// a savepoint to which the script rolls back.
fn transactions(draw: &mut Draw, number: usize) -> Vec<Statement> {
    let mut script = Script(Vec::new());
    let table = format!("x{number}");
    script.control(format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, v INTEGER)"));
    script.control(format!("INSERT INTO {table} VALUES (1, 10), (2, 20), (3, 30)"));
    let mut next = 4;
    for _ in 0..4 {
        script.control(draw.pick(&["BEGIN", "BEGIN TRANSACTION"]).to_owned());
        let mut savepoints: Vec<String> = Vec::new();
        for step in 0..4 + draw.below(5) {
            match draw.below(8) {
                0 | 1 => {
                    script.control(format!("INSERT INTO {table} VALUES ({next}, {})", draw.between(0, 99)));
                    next += 1;
                }
                2 => script.control(format!(
                    "UPDATE {table} SET v = v + {} WHERE id > {}",
                    draw.between(1, 5),
                    draw.between(0, 4)
                )),
                3 => script.control(format!("DELETE FROM {table} WHERE id = {}", draw.between(2, 9))),
                4 => {
                    script.control(format!("SAVEPOINT s{step}"));
                    savepoints.push(format!("s{step}"));
                }
                5 if !savepoints.is_empty() => {
                    let at = draw.below(savepoints.len());
                    script.control(format!(
                        "ROLLBACK TO SAVEPOINT {}",
                        savepoints.get(at).map_or("", String::as_str)
                    ));
                    savepoints.truncate(at + 1);
                }
                6 if !savepoints.is_empty() => {
                    let at = draw.below(savepoints.len());
                    script.control(format!(
                        "RELEASE SAVEPOINT {}",
                        savepoints.get(at).map_or("", String::as_str)
                    ));
                    savepoints.truncate(at);
                }
                7 => {
                    // Fails because its key exists, and is rolled back to the savepoint.
                    script.control("SAVEPOINT f".to_owned());
                    script.control(format!("INSERT INTO {table} SELECT id, 0 FROM {table} WHERE id = 1"));
                    script.control("ROLLBACK TO SAVEPOINT f".to_owned());
                }
                _ => {}
            }
            if draw.chance(50) {
                script.query(format!("SELECT id, v FROM {table}"));
            }
        }
        script.control(draw.pick(&["COMMIT", "ROLLBACK", "COMMIT"]).to_owned());
        script.query(format!("SELECT count(*), sum(v), max(id) FROM {table}"));
    }
    script.0
}

/// CREATE TABLE AS, views, added columns, renames, indexes, and DROP.
fn definitions(draw: &mut Draw, number: usize) -> Vec<Statement> {
    let mut script = Script(Vec::new());
    let (table, copy, view) = (format!("d{number}"), format!("e{number}"), format!("v{number}"));
    script.control(format!("CREATE TABLE {table} (id INTEGER PRIMARY KEY, a INTEGER, s VARCHAR(20))"));
    let rows: Vec<String> = (1..=8)
        .map(|id| format!("({id}, {}, '{}')", draw.between(0, 4), draw.pick(&["x", "y", "z", ""])))
        .collect();
    script.control(format!("INSERT INTO {table} VALUES {}", rows.join(", ")));
    script.control(format!(
        "CREATE TABLE {copy} AS SELECT id, a * {} AS aa, s FROM {table} WHERE a > 0",
        draw.between(2, 5)
    ));
    script.query(format!("SELECT * FROM {copy}"));
    script.control(format!("CREATE VIEW {view} AS SELECT a, count(*) AS n FROM {table} GROUP BY a"));
    script.query(format!("SELECT a, n FROM {view} WHERE n > {}", draw.between(0, 2)));
    script.query(format!("SELECT {view}.a, {copy}.s FROM {view} JOIN {copy} ON {copy}.id = {view}.a"));
    script.control(format!("INSERT INTO {table} VALUES (20, {}, 'new')", draw.between(0, 4)));
    script.query(format!("SELECT sum(n) FROM {view}"));
    if draw.chance(70) {
        script.control(format!("ALTER TABLE {copy} ADD COLUMN extra INTEGER DEFAULT {}", draw.between(1, 9)));
        script.query(format!("SELECT id, extra FROM {copy}"));
        script.control(format!("UPDATE {copy} SET extra = id WHERE aa > 4"));
        script.query(format!("SELECT id, aa, extra FROM {copy}"));
    }
    if draw.chance(60) {
        script.control(format!("ALTER TABLE {copy} RENAME COLUMN aa TO bb"));
        script.query(format!("SELECT bb FROM {copy} WHERE bb IS NOT NULL"));
        script.control(format!("ALTER TABLE {copy} DROP COLUMN s"));
        script.query(format!("SELECT * FROM {copy}"));
    }
    if draw.chance(60) {
        script.control(format!("ALTER TABLE {copy} RENAME TO {copy}_b"));
        script.query(format!("SELECT count(*) FROM {copy}_b"));
        script.change(format!("INSERT INTO {copy} (id) VALUES (1)"));
        script.control(format!("ALTER TABLE {copy}_b RENAME TO {copy}"));
    }
    let unique = draw.pick(&["", "UNIQUE "]);
    script.change(format!("CREATE {unique}INDEX i{number} ON {table} (a, id)"));
    script.query(format!("SELECT id FROM {table} WHERE a = {}", draw.between(0, 4)));
    script.control(format!("DROP VIEW {view}"));
    script.control(format!("DROP TABLE {copy}"));
    script.change(format!("INSERT INTO {copy} (id) VALUES (1)"));
    script.control(format!("DROP TABLE IF EXISTS {copy}"));
    script.query(format!("SELECT id, a, s FROM {table}"));
    script.0
}
