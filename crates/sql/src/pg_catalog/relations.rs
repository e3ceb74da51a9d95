//! The relations of PostgreSQL's catalogs, and their columns.

use std::sync::OnceLock;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use cairn_vfs::sync::Arc;

use super::cell::{Cell, Shape};

/// A relation of `pg_catalog` or `information_schema`.
#[derive(Debug)]
pub(super) struct Relation {
    pub schema: &'static str,
    pub name: &'static str,
    pub oid: i64,
    /// `r` or `v`.
    pub kind: &'static str,
    /// Names and types.
    pub columns: Vec<(&'static str, &'static str)>,
}

/// A type.
#[derive(Debug)]
pub(super) struct PgType {
    pub oid: i64,
    pub name: &'static str,
    /// The other columns of `pg_type` whose values differ between types, by name.
    pub rest: Vec<(&'static str, &'static str)>,
}

impl PgType {
    pub fn get(&self, column: &str) -> &'static str {
        self.rest.iter().find(|(name, _)| *name == column).map_or("", |(_, value)| value)
    }
}

/// All relations, by schema and name.
pub(super) fn relations() -> &'static [Relation] {
    static RELATIONS: OnceLock<Vec<Relation>> = OnceLock::new();
    RELATIONS.get_or_init(|| include_str!("relations.txt").lines().filter_map(relation).collect())
}

fn relation(line: &'static str) -> Option<Relation> {
    let mut words = line.split(' ').filter(|_| !line.starts_with('#'));
    let (schema, name) = words.next()?.split_once('.')?;
    let (oid, kind) = (words.next()?.parse().ok()?, words.next()?);
    Some(Relation {
        schema,
        name,
        oid,
        kind,
        columns: words.filter_map(|word| word.split_once(':')).collect(),
    })
}

/// Returns a relation by its name.
pub(super) fn find(schema: &str, name: &str) -> Option<&'static Relation> {
    relations().iter().find(|relation| relation.schema == schema && relation.name == name)
}

/// All types, by OID.
pub(super) fn types() -> &'static [PgType] {
    static TYPES: OnceLock<Vec<PgType>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let mut lines =
            include_str!("types.txt").lines().filter_map(|line| line.strip_prefix("# ").or(Some(line)));
        let names: Vec<&str> =
            lines.by_ref().find(|line| line.starts_with("oid ")).unwrap_or_default().split(' ').collect();
        let row = |line: &'static str| {
            let rest: Vec<_> = names.iter().copied().zip(line.split(' ')).collect();
            Some(PgType { oid: rest.first()?.1.parse().ok()?, name: rest.get(1)?.1, rest })
        };
        lines.filter_map(row).collect()
    })
}

/// Returns a type by its OID.
pub(super) fn type_by_oid(oid: i64) -> Option<&'static PgType> {
    types().binary_search_by_key(&oid, |kind| kind.oid).ok().and_then(|at| types().get(at))
}

/// Returns a type by PostgreSQL's short name, such as `int4`.
pub(super) fn type_by_name(name: &str) -> Option<&'static PgType> {
    types().iter().find(|kind| kind.name == name)
}

/// Returns the representation of a type's values.
pub(super) fn shape(kind: &str) -> Shape {
    match kind {
        "bool" => Shape::Bool,
        "int2" => Shape::Small,
        "int4" => Shape::Int,
        "int8" | "oid" | "xid" => Shape::Big,
        "float4" => Shape::Real,
        "float8" | "numeric" => Shape::Double,
        "timestamptz" => Shape::Time,
        "int2vector" | "_int2" => Shape::Smalls,
        "oidvector" | "_oid" => Shape::Bigs,
        _ if kind.starts_with('_') => Shape::Texts,
        _ => Shape::Text,
    }
}

/// Returns the value of a column that a row does not set: NULL, or the zero of its type where
/// PostgreSQL has no NULL.
pub(super) fn default(relation: &Relation, kind: &str) -> Cell {
    if relation.schema == "information_schema" || relation.kind == "v" {
        return Cell::Null;
    }
    match kind {
        "bool" => Cell::Bool(false),
        "int2" | "int4" | "int8" | "oid" | "xid" => Cell::Int(0),
        "float4" | "float8" => Cell::Float(0.0),
        "name" | "char" => Cell::Text(String::new()),
        "regproc" => Cell::Text("-".to_owned()),
        "int2vector" | "oidvector" => Cell::Ints(Vec::new()),
        _ => Cell::Null,
    }
}

/// Returns the Arrow type of a column.
pub(super) fn data_type(shape: Shape) -> DataType {
    let list = |item: DataType| DataType::List(Arc::new(Field::new("item", item, true)));
    match shape {
        Shape::Bool => DataType::Boolean,
        Shape::Small => DataType::Int16,
        Shape::Int => DataType::Int32,
        Shape::Big => DataType::Int64,
        Shape::Real => DataType::Float32,
        Shape::Double => DataType::Float64,
        Shape::Time => DataType::Timestamp(TimeUnit::Microsecond, None),
        Shape::Text => DataType::Utf8,
        Shape::Smalls => list(DataType::Int16),
        Shape::Bigs => list(DataType::Int64),
        Shape::Texts => list(DataType::Utf8),
    }
}

impl Relation {
    /// The Arrow schema of its columns.
    pub fn arrow(&self) -> SchemaRef {
        let field = |(name, kind): &(&str, &str)| Field::new(*name, data_type(shape(kind)), true);
        let mut fields: Vec<Field> = self.columns.iter().map(field).collect();
        if self.has_tableoid() {
            fields.push(Field::new("tableoid", DataType::Int64, true));
        }
        Arc::new(Schema::new(fields))
    }

    /// Whether it has `tableoid`. PostgreSQL hides this column from `*`, but here `*` returns it,
    /// so only relations have it for which clients ask for it.
    pub fn has_tableoid(&self) -> bool {
        matches!(self.name, "pg_constraint" | "pg_opclass" | "pg_opfamily" | "pg_rewrite" | "pg_trigger")
    }
}
