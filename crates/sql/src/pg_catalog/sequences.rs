//! Sequences in PostgreSQL's catalogs.

use cairn_table::Catalog;
use cairn_table::schema::{ColumnDef, TableDef};

use super::row::{Row, row};
use super::{define, facts::SessionFacts, oids};
use crate::runtime::sequence::{Name, Sequence, identity_column, identity_sequence};
use crate::syntax::quote_ident;

/// The columns of a sequence as a relation, and their types.
const COLUMNS: &[(&str, i64)] = &[("last_value", 20), ("log_cnt", 20), ("is_called", 16)];

fn each(facts: &SessionFacts) -> impl Iterator<Item = (i64, &Name, &Sequence)> {
    facts.sequences.iter().enumerate().map(|(at, (name, sequence))| (oids::sequence(at), name, sequence))
}

/// Returns the type whose range the sequence covers.
fn kind(sequence: &Sequence) -> i64 {
    match sequence.maximum {
        maximum if maximum == i64::from(i16::MAX) => 21,
        maximum if maximum == i64::from(i32::MAX) => 23,
        _ => 20,
    }
}

/// Returns the last value given out; `None` if there is none.
fn last(sequence: &Sequence) -> Option<i64> {
    match sequence.next {
        Some(next) if next == sequence.start => None,
        Some(next) => Some(next - sequence.increment),
        None if sequence.increment > 0 => Some(sequence.maximum),
        None => Some(sequence.minimum),
    }
}

/// Rows of `pg_class`.
pub(super) fn classes(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let class = |(oid, (schema, name), _): (i64, &Name, &Sequence)| {
        row! {
            "oid": oid, "relname": name, "relnamespace": oids::namespace(catalog, schema), "relowner": oids::USER, "relfilenode": oid, "relpages": 1_i64, "reltuples": 1.0,
            "relpersistence": "p", "relkind": "S", "relnatts": COLUMNS.len(), "relispopulated": true, "relreplident": "n",
        }
    };
    each(facts).map(class).collect()
}

/// Rows of `pg_attribute`.
pub(super) fn attributes(facts: &SessionFacts) -> Vec<Row> {
    let columns = |oid: i64| {
        COLUMNS.iter().enumerate().map(move |(at, (name, kind))| {
            let mut row = super::row::attribute(oid, at, name, *kind, -1);
            row.extend(row! { "attnotnull": true });
            row
        })
    };
    each(facts).flat_map(|(oid, ..)| columns(oid)).collect()
}

/// The row of a sequence in `pg_sequence`.
fn sequence_row(oid: i64, sequence: &Sequence) -> Row {
    row! {
        "seqrelid": oid, "seqtypid": kind(sequence), "seqstart": sequence.start, "seqincrement": sequence.increment, "seqmax": sequence.maximum, "seqmin": sequence.minimum,
        "seqcache": 1_i64, "seqcycle": sequence.cycles,
    }
}

/// Rows of `pg_sequence`.
pub(super) fn sequences(facts: &SessionFacts) -> Vec<Row> {
    each(facts).map(|(oid, _, sequence)| sequence_row(oid, sequence)).collect()
}

/// Returns a numeric column of a `pg_sequence` row; `None` if there is no such row.
pub(super) fn number(facts: &SessionFacts, oid: i64, column: &str) -> Option<i64> {
    let (_, _, sequence) = each(facts).find(|(other, ..)| *other == oid)?;
    sequence_row(oid, sequence).into_iter().find(|(name, _)| *name == column)?.1.int()
}

/// Whether a sequence restarts after its last value.
pub(super) fn cycles(facts: &SessionFacts, oid: i64) -> Option<bool> {
    each(facts).find(|(other, ..)| *other == oid).map(|(_, _, sequence)| sequence.cycles)
}

/// Rows of `pg_sequences`.
pub(super) fn shown(facts: &SessionFacts) -> Vec<Row> {
    let row = |(_, (schema, name), sequence): (i64, &Name, &Sequence)| {
        row! {
            "schemaname": schema, "sequencename": name, "sequenceowner": &facts.user, "data_type": define::format_type(kind(sequence), None), "start_value": sequence.start,
            "min_value": sequence.minimum, "max_value": sequence.maximum, "increment_by": sequence.increment, "cycle": sequence.cycles, "cache_size": 1_i64, "last_value": last(sequence),
        }
    };
    each(facts).map(row).collect()
}

/// Returns the columns of `information_schema.columns` on an identity column's sequence.
pub(super) fn identity(facts: &SessionFacts, def: &TableDef, column: &ColumnDef) -> Row {
    let own = identity_sequence(def, column);
    let Some((_, sequence)) = own.and_then(|own| facts.sequences.iter().find(|(name, _)| *name == own))
    else {
        return Vec::new();
    };
    row! {
        "identity_start": sequence.start.to_string(), "identity_increment": sequence.increment.to_string(), "identity_maximum": sequence.maximum.to_string(),
        "identity_minimum": sequence.minimum.to_string(), "identity_cycle": if sequence.cycles { "YES" } else { "NO" },
    }
}

/// Rows of `information_schema.sequences`: the sequences that belong to no identity column.
pub(super) fn information(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let row = |(_, (schema, name), sequence): (i64, &Name, &Sequence)| {
        let bits: i64 = match kind(sequence) {
            21 => 16,
            23 => 32,
            _ => 64,
        };
        row! {
            "sequence_catalog": &facts.database, "sequence_schema": schema, "sequence_name": name, "data_type": define::format_type(kind(sequence), None), "numeric_precision": bits,
            "numeric_precision_radix": 2_i64, "numeric_scale": 0_i64, "start_value": sequence.start.to_string(), "minimum_value": sequence.minimum.to_string(),
            "maximum_value": sequence.maximum.to_string(), "increment": sequence.increment.to_string(), "cycle_option": if sequence.cycles { "YES" } else { "NO" },
        }
    };
    each(facts).filter(|(_, name, _)| identity_column(catalog, name).is_none()).map(row).collect()
}

/// Returns the table and the position of the column that owns a sequence.
fn owner(catalog: &Catalog, name: &Name, sequence: &Sequence) -> Option<(i64, usize)> {
    let owner = sequence.owner.as_deref()?;
    catalog.tables().filter(|table| table.def().schema == name.0).find_map(|table| {
        let def = table.def();
        // Either name may contain dots.
        let column = owner.strip_prefix(&def.name)?.strip_prefix('.')?;
        let at = def.columns.iter().position(|other| other.name == column)?;
        Some((oids::relation(table.id()), at))
    })
}

/// Rows of `pg_depend`: the columns that own sequences.
pub(super) fn depends(catalog: &Catalog, facts: &SessionFacts) -> Vec<Row> {
    let row = |(oid, name, sequence): (i64, &Name, &Sequence)| {
        let (table, column) = owner(catalog, name, sequence)?;
        // An identity's sequence is a part of the column, and cannot be dropped alone.
        let kind = if identity_column(catalog, name).is_some() { "i" } else { "a" };
        Some(
            row! { "classid": 1259_i64, "objid": oid, "refclassid": 1259_i64, "refobjid": table, "refobjsubid": column + 1, "deptype": kind },
        )
    };
    each(facts).filter_map(row).collect()
}

/// Returns the name of the sequence that a column owns, as `pg_get_serial_sequence` does.
pub(super) fn of_column(catalog: &Catalog, facts: &SessionFacts, table: i64, column: &str) -> Option<String> {
    let def = catalog.tables().find(|other| oids::relation(other.id()) == table)?.def();
    let at = def.columns.iter().position(|other| other.name == column)?;
    let (_, (schema, name), _) =
        each(facts).find(|(_, name, sequence)| owner(catalog, name, sequence) == Some((table, at)))?;
    Some(format!("{}.{}", quote_ident(schema), quote_ident(name)))
}

/// Returns the OID of a sequence. `name` is its namespace and its name, separated by a dot.
pub(super) fn oid_by_name(facts: &SessionFacts, name: &str) -> Option<i64> {
    each(facts).find(|(_, (schema, own), _)| format!("{schema}.{own}") == name).map(|(oid, ..)| oid)
}
