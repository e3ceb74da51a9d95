//! Statements that change rows.

use super::draw::Draw;
use super::expr::{Expressions, Scope};
use super::schema::{Table, Type};
use super::{Kind, Statement};

/// Draws an INSERT, UPDATE or DELETE on one of the tables. Occasionally it is an INSERT that must
/// fail because its key exists.
pub fn change(draw: &mut Draw, tables: &[Table]) -> Option<Statement> {
    let table = draw.one(tables)?.clone();
    // Columns are qualified by the table name, because there is no alias.
    let (name, scope) = (table.name.clone(), Scope::of(&table, &table.name));
    let id = draw.between(1, table.ids + 12);
    let condition = |draw: &mut Draw| Expressions { draw, scope: &scope }.bool(2);
    let sql = match draw.below(10) {
        0..=2 => format!("INSERT INTO {name} VALUES ({})", table.row(draw, id).join(", ")),
        3 => {
            let row = table.row(draw, id).join(", ");
            format!("INSERT INTO {name} VALUES ({row}) ON CONFLICT (id) DO NOTHING")
        }
        4 => {
            let row = table.row(draw, id).join(", ");
            let column = table.columns.get(1).map_or("a", |column| column.name);
            format!("INSERT INTO {name} VALUES ({row}) ON CONFLICT (id) DO UPDATE SET {column} = excluded.id")
        }
        5 => {
            let (first, column) =
                (table.ids + draw.between(20, 60), table.columns.get(1).map_or("a", |c| c.name));
            let filter = condition(draw);
            format!(
                "INSERT INTO {name} (id, {column}) SELECT id + {first}, id FROM {name} WHERE {filter} AND id < 100"
            )
        }
        6 | 7 => {
            let set: Vec<String> =
                (0..=draw.below(2)).filter_map(|_| assignment(draw, &table, &scope)).collect();
            let mut seen: Vec<&String> = Vec::new();
            for one in &set {
                let column = one.split(' ').next();
                if !seen.iter().any(|other| other.split(' ').next() == column) {
                    seen.push(one);
                }
            }
            let set: Vec<&str> = seen.into_iter().map(String::as_str).collect();
            format!("UPDATE {name} SET {} WHERE {}", set.join(", "), condition(draw))
        }
        8 => format!("DELETE FROM {name} WHERE {} AND id > {}", condition(draw), draw.between(3, 9)),
        _ => format!("DELETE FROM {name} WHERE id = {id}"),
    };
    Some(Statement::new(Kind::Change, sql))
}

fn assignment(draw: &mut Draw, table: &Table, scope: &Scope) -> Option<String> {
    let columns = table.columns.get(1..)?;
    let column = draw.one(columns)?.clone();
    let value = match column.kind {
        Type::Int => format!("({}) % 100", Expressions { draw, scope }.int(1)),
        Type::Text => format!("substr({}, 1, 20)", Expressions { draw, scope }.text(1)),
    };
    Some(format!("{} = {value}", column.name))
}

/// Returns a query of all rows of a table, to check the effect of a change.
pub fn contents(table: &Table) -> Statement {
    Statement::new(Kind::Query, format!("SELECT * FROM {}", table.name))
}
