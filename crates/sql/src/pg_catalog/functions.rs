//! Functions about the system.

use arrow::datatypes::{DataType, Field};
use cairn_vfs::sync::Arc;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use super::System;
use super::constraints::definition;
use super::system::{OWNER_NAME, index_oid, oid};
use super::text::{index_def, quoted, view_def};
use super::types::format;
use crate::query::{RowFunction, number_of, text_of};

/// The function of this name; `None` where it is none of the system's.
pub(crate) fn function(system: &Arc<System>, name: &str) -> Option<Arc<ScalarUDF>> {
    let system = Arc::clone(system);
    let flag = |name: &str, counts: &[usize]| {
        RowFunction::new(name, counts, DataType::Boolean, |_| Ok(ScalarValue::Boolean(Some(true))))
    };
    let null = |name: &str, counts: &[usize]| {
        RowFunction::new(name, counts, DataType::Utf8View, |_| Ok(ScalarValue::Utf8View(None)))
    };
    let oid_at = |values: &[ScalarValue], at: usize| {
        values.get(at).and_then(number_of).and_then(|number| u32::try_from(number).ok())
    };
    let text = |value: Option<String>| Ok(ScalarValue::Utf8View(value));
    let list = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8View, true)));
    let function = match name {
        "pg_table_is_visible"
        | "pg_type_is_visible"
        | "pg_function_is_visible"
        | "pg_opclass_is_visible"
        | "pg_operator_is_visible"
        | "pg_collation_is_visible"
        | "pg_ts_config_is_visible"
        | "pg_statistics_obj_is_visible" => RowFunction::new(name, &[1], DataType::Boolean, move |values| {
            let schema = oid_at(values, 0).and_then(|oid| system.name_of(oid)).map(|(schema, _)| schema);
            let visible = schema.is_none_or(|schema| system.search_path.contains(&schema));
            Ok(ScalarValue::Boolean(Some(visible)))
        }),
        "has_table_privilege"
        | "has_column_privilege"
        | "has_schema_privilege"
        | "has_database_privilege"
        | "has_sequence_privilege"
        | "has_function_privilege"
        | "has_any_column_privilege"
        | "has_type_privilege"
        | "pg_has_role"
        | "has_tablespace_privilege" => flag(name, &[1, 2, 3, 4]),
        "pg_is_in_recovery"
        | "pg_relation_is_publishable"
        | "row_security_active"
        | "pg_is_other_temp_schema" => {
            RowFunction::new(name, &[0, 1], DataType::Boolean, |_| Ok(ScalarValue::Boolean(Some(false))))
        }
        "obj_description"
        | "shobj_description"
        | "col_description"
        | "pg_get_partkeydef"
        | "pg_get_statisticsobjdef_columns"
        | "pg_get_triggerdef"
        | "pg_get_ruledef"
        | "pg_get_functiondef"
        | "pg_get_function_result"
        | "pg_get_function_arguments"
        | "pg_get_function_identity_arguments"
        | "pg_tablespace_location"
        | "pg_get_partition_constraintdef" => null(name, &[1, 2, 3]),
        "format_type" => RowFunction::new(name, &[2], DataType::Utf8View, move |values| {
            let modifier = values.get(1).and_then(number_of).unwrap_or(-1);
            text(oid_at(values, 0).map(|oid| format(oid, modifier)))
        }),
        "pg_get_expr" => RowFunction::text(name, &[2, 3], |texts| texts.first().cloned()),
        "pg_get_constraintdef" => RowFunction::new(name, &[1, 2], DataType::Utf8View, move |values| {
            text(oid_at(values, 0).and_then(|oid| definition(&system, oid)))
        }),
        "pg_get_indexdef" => RowFunction::new(name, &[1, 2, 3], DataType::Utf8View, move |values| {
            let column = values.get(1).and_then(number_of).filter(|&column| column > 0);
            text(oid_at(values, 0).and_then(|oid| indexdef(&system, oid, column)))
        }),
        "pg_get_viewdef" => RowFunction::new(name, &[1, 2], DataType::Utf8View, move |values| {
            let wanted = oid_at(values, 0)
                .or_else(|| values.first().and_then(text_of).and_then(|name| system.relation(&name)));
            let found = system.catalog.views().find(|(id, _)| Some(oid(*id)) == wanted);
            text(found.map(|(_, view)| view_def(view)))
        }),
        "pg_get_userbyid" => {
            RowFunction::new(name, &[1], DataType::Utf8View, move |_| text(Some(OWNER_NAME.to_owned())))
        }
        "pg_encoding_to_char" => {
            RowFunction::new(name, &[1], DataType::Utf8View, move |_| text(Some("UTF8".to_owned())))
        }
        "pg_get_serial_sequence" => RowFunction::text(name, &[2], move |texts| {
            let owner = format!("{}.{}", texts.first()?.trim_matches('"'), texts.get(1)?);
            let owner =
                owner.rsplit('.').take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(".");
            let found = system.sequences.iter().find(|(_, of)| of.owner.as_deref() == Some(&owner));
            found.map(|((schema, name), _)| format!("{}.{}", quoted(schema), quoted(name)))
        }),
        "cairn_regclass" => RowFunction::new(name, &[1], DataType::Utf8View, move |values| {
            let Some(oid) = oid_at(values, 0) else { return text(values.first().and_then(text_of)) };
            text(Some(match system.name_of(oid) {
                Some((schema, name)) if system.search_path.contains(&schema) => quoted(&name),
                Some((schema, name)) => format!("{}.{}", quoted(&schema), quoted(&name)),
                None => oid.to_string(),
            }))
        }),
        "to_regclass" => RowFunction::new(name, &[1], DataType::Int64, move |values| {
            let found = values.first().and_then(text_of).and_then(|name| system.relation(&name));
            Ok(ScalarValue::Int64(found.map(i64::from)))
        }),
        "to_regtype" => RowFunction::new(name, &[1], DataType::Int64, |values| {
            let found =
                values.first().and_then(text_of).map(|name| super::type_oid(&name)).filter(|&oid| oid != 0);
            Ok(ScalarValue::Int64(found.map(i64::from)))
        }),
        "current_schemas" => RowFunction::new(name, &[1], list, move |values| {
            let implicit = matches!(values.first(), Some(ScalarValue::Boolean(Some(true))));
            let own = implicit.then(|| "pg_catalog".to_owned());
            let names: Vec<ScalarValue> = own
                .into_iter()
                .chain(system.search_path.iter().cloned())
                .map(|name| ScalarValue::Utf8View(Some(name)))
                .collect();
            Ok(ScalarValue::List(ScalarValue::new_list_nullable(&names, &DataType::Utf8View)))
        }),
        "pg_backend_pid" => RowFunction::new(name, &[0], DataType::Int32, move |_| {
            Ok(ScalarValue::Int32(Some(system.backend as i32)))
        }),
        "quote_ident" => RowFunction::text(name, &[1], |texts| texts.first().map(|name| quoted(name))),
        "quote_literal" => RowFunction::text(name, &[1], |texts| {
            texts.first().map(|text| format!("'{}'", text.replace('\'', "''")))
        }),
        "set_config" => RowFunction::text(name, &[3], |texts| texts.get(1).cloned()),
        "pg_relation_size"
        | "pg_total_relation_size"
        | "pg_table_size"
        | "pg_indexes_size"
        | "pg_database_size" => {
            RowFunction::new(name, &[1, 2], DataType::Int64, |_| Ok(ScalarValue::Int64(Some(0))))
        }
        "pg_size_pretty" => RowFunction::new(name, &[1], DataType::Utf8View, move |values| {
            text(values.first().and_then(number_of).map(|bytes| format!("{bytes} bytes")))
        }),
        "txid_current" | "pg_current_xact_id" => {
            RowFunction::new(name, &[0], DataType::Int64, |_| Ok(ScalarValue::Int64(Some(1))))
        }
        _ => return None,
    };
    Some(Arc::new(function))
}

fn indexdef(system: &System, wanted: u32, column: Option<i64>) -> Option<String> {
    for table in system.tables() {
        let (id, def) = (table.id(), table.def());
        let mut candidates = std::iter::once(None).chain((0..def.indexes.len()).map(Some));
        let Some(at) = candidates.find(|&at| index_oid(id, at) == wanted) else { continue };
        let Some(column) = column else { return Some(index_def(def, at)) };
        let index = at.and_then(|at| def.indexes.get(at));
        let keys = index.map_or(&def.primary_key, |index| &index.columns).iter().map(|key| key.column);
        let include = index.map(|index| index.include.clone()).unwrap_or_default();
        let place = usize::try_from(column - 1).ok()?;
        let column = keys.chain(include).nth(place)?;
        return def.columns.get(column).map(|column| quoted(&column.name));
    }
    None
}
