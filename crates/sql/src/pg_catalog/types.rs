//! Types: `pg_type` and what goes with it.

use cairn_table::row::Type;
use cairn_table::schema::ColumnType;

use super::System;
use super::system::{OWNER, PG_CATALOG};
use super::table::Relation;

/// Number, name, bytes, category, number of the array type.
pub(super) const TYPES: &[(u32, &str, i64, &str, u32)] = &[
    (16, "bool", 1, "B", 1000),
    (17, "bytea", -1, "U", 1001),
    (18, "char", 1, "Z", 1002),
    (19, "name", 64, "S", 1003),
    (20, "int8", 8, "N", 1016),
    (21, "int2", 2, "N", 1005),
    (23, "int4", 4, "N", 1007),
    (25, "text", -1, "S", 1009),
    (26, "oid", 4, "N", 1028),
    (114, "json", -1, "U", 199),
    (700, "float4", 4, "N", 1021),
    (701, "float8", 8, "N", 1022),
    (1042, "bpchar", -1, "S", 1014),
    (1043, "varchar", -1, "S", 1015),
    (1082, "date", 4, "D", 1182),
    (1083, "time", 8, "D", 1183),
    (1114, "timestamp", 8, "D", 1115),
    (1184, "timestamptz", 8, "D", 1185),
    (1186, "interval", 16, "T", 1187),
    (1700, "numeric", -1, "N", 1231),
    (2205, "regclass", 4, "N", 2210),
    (2206, "regtype", 4, "N", 2211),
    (2249, "record", -1, "P", 2287),
    (2278, "void", 4, "P", 0),
    (2950, "uuid", 16, "U", 2951),
    (3802, "jsonb", -1, "U", 3807),
];

/// The number of a type.
pub(super) fn oid_of(kind: &ColumnType) -> u32 {
    match kind.kind {
        Type::Boolean => 16,
        Type::SmallInt => 21,
        Type::Int => 23,
        Type::BigInt => 20,
        Type::Real => 700,
        Type::Double => 701,
        Type::Decimal => 1700,
        Type::Text if kind.is_json => 114,
        Type::Text if kind.length.is_some() => 1043,
        Type::Blob => 17,
        Type::Date => 1082,
        Type::Time => 1083,
        Type::Timestamp => 1114,
        Type::Interval => 1186,
        Type::Uuid => 2950,
        _ => 25,
    }
}

/// Length or digits of a type, as PostgreSQL packs them.
pub(super) fn modifier_of(kind: &ColumnType) -> i64 {
    match (kind.length, kind.decimal) {
        (Some(length), _) => i64::from(length) + 4,
        (None, Some((precision, scale))) => (i64::from(precision) << 16 | i64::from(scale)) + 4,
        (None, None) => -1,
    }
}

/// `format_type`.
pub(super) fn format(oid: u32, modifier: i64) -> String {
    let name = match oid {
        16 => "boolean",
        20 => "bigint",
        21 => "smallint",
        23 => "integer",
        700 => "real",
        701 => "double precision",
        1042 => "character",
        1043 => "character varying",
        1083 => "time without time zone",
        1114 => "timestamp without time zone",
        1184 => "timestamp with time zone",
        _ => {
            if let Some((_, name, ..)) = TYPES.iter().find(|(other, ..)| *other == oid) {
                name
            } else if let Some((of, ..)) = TYPES.iter().find(|(_, _, _, _, array)| *array == oid && oid != 0)
            {
                return format!("{}[]", format(*of, -1));
            } else {
                return "???".to_owned();
            }
        }
    };
    match oid {
        1042 | 1043 if modifier > 4 => format!("{name}({})", modifier - 4),
        1700 if modifier > 4 => format!("{name}({},{})", (modifier - 4) >> 16, (modifier - 4) & 0xffff),
        _ => name.to_owned(),
    }
}

/// The number of a type by its name; 0 for none.
pub(crate) fn type_oid(name: &str) -> u32 {
    let name = name.trim().trim_matches('"').trim_start_matches("pg_catalog.").to_lowercase();
    let alias = match name.as_str() {
        "integer" | "int" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "boolean" => "bool",
        "real" => "float4",
        "double precision" => "float8",
        "character varying" => "varchar",
        "decimal" => "numeric",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        other => other,
    };
    TYPES.iter().find(|(_, other, ..)| *other == alias).map_or(0, |(oid, ..)| *oid)
}

pub(super) fn table(_: &System, name: &str) -> Option<Relation> {
    if name != "pg_type" {
        return empty(name);
    }
    let mut types = Relation::of(
        "oid:n typname typnamespace:n typowner:n typlen:s typbyval:b typtype typcategory typispreferred:b typisdefined:b typdelim typrelid:n \
         typsubscript:n typelem:n typarray:n typinput typoutput typreceive typsend typmodin typmodout typanalyze typalign typstorage typnotnull:b \
         typbasetype:n typtypmod:n typndims:n typcollation:n typdefaultbin typdefault typacl",
    );
    for &(oid, name, length, category, array) in TYPES {
        let kind = if category == "P" { "p" } else { "b" };
        let function = |suffix: &str| format!("{name}{suffix}");
        types.push_named(&[
            ("oid", oid.into()),
            ("typname", name.into()),
            ("typnamespace", PG_CATALOG.into()),
            ("typowner", OWNER.into()),
            ("typlen", length.into()),
            ("typbyval", (length > 0 && length <= 8).into()),
            ("typtype", kind.into()),
            ("typcategory", category.into()),
            ("typisdefined", true.into()),
            ("typdelim", ",".into()),
            ("typarray", array.into()),
            ("typinput", function("in").into()),
            ("typoutput", function("out").into()),
            ("typreceive", function("recv").into()),
            ("typsend", function("send").into()),
            ("typalign", "i".into()),
            ("typstorage", "p".into()),
            ("typtypmod", (-1i64).into()),
            ("typcollation", i64::from(if category == "S" { 100 } else { 0 }).into()),
        ]);
        if array != 0 {
            types.push_named(&[
                ("oid", array.into()),
                ("typname", format!("_{name}").into()),
                ("typnamespace", PG_CATALOG.into()),
                ("typowner", OWNER.into()),
                ("typlen", (-1i64).into()),
                ("typtype", "b".into()),
                ("typcategory", "A".into()),
                ("typisdefined", true.into()),
                ("typdelim", ",".into()),
                ("typelem", oid.into()),
                ("typinput", "array_in".into()),
                ("typoutput", "array_out".into()),
                ("typreceive", "array_recv".into()),
                ("typsend", "array_send".into()),
                ("typalign", "i".into()),
                ("typstorage", "x".into()),
                ("typtypmod", (-1i64).into()),
            ]);
        }
    }
    Some(types)
}

/// Tables that clients look into and that have nothing to say here.
fn empty(name: &str) -> Option<Relation> {
    Some(Relation::of(match name {
        "pg_enum" => "oid:n enumtypid:n enumsortorder:r enumlabel",
        "pg_range" => {
            "rngtypid:n rngsubtype:n rngmultitypid:n rngcollation:n rngsubopc:n rngcanonical rngsubdiff"
        }
        "pg_description" => "objoid:n classoid:n objsubid:n description",
        "pg_shdescription" => "objoid:n classoid:n description",
        "pg_proc" => {
            "oid:n proname pronamespace:n proowner:n prolang:n procost:r prorows:r provariadic:n prosupport prokind prosecdef:b proleakproof:b \
             proisstrict:b proretset:b provolatile proparallel pronargs:s pronargdefaults:s prorettype:n proargtypes:N proallargtypes:N proargmodes:T \
             proargnames:T proargdefaults protrftypes prosrc probin prosqlbody proconfig proacl"
        }
        "pg_aggregate" => "aggfnoid:n aggkind aggnumdirectargs:s",
        "pg_operator" => {
            "oid:n oprname oprnamespace:n oprowner:n oprkind oprleft:n oprright:n oprresult:n oprcode"
        }
        "pg_opclass" => {
            "oid:n opcmethod:n opcname opcnamespace:n opcowner:n opcfamily:n opcintype:n opcdefault:b opckeytype:n"
        }
        "pg_opfamily" => "oid:n opfmethod:n opfname opfnamespace:n opfowner:n",
        "pg_cast" => "oid:n castsource:n casttarget:n castfunc:n castcontext castmethod",
        "pg_inherits" => "inhrelid:n inhparent:n inhseqno:n inhdetachpending:b",
        "pg_trigger" => {
            "oid:n tgrelid:n tgparentid:n tgname tgfoid:n tgtype:s tgenabled tgisinternal:b tgconstrrelid:n tgconstrindid:n tgconstraint:n \
             tgdeferrable:b tginitdeferred:b tgnargs:s tgattr:N tgargs tgqual tgoldtable tgnewtable"
        }
        "pg_policy" => "oid:n polname polrelid:n polcmd polpermissive:b polroles:N polqual polwithcheck",
        "pg_policies" => "schemaname tablename policyname permissive roles:T cmd qual with_check",
        "pg_rewrite" => "oid:n rulename ev_class:n ev_type ev_enabled is_instead:b ev_qual ev_action",
        "pg_rules" => "schemaname tablename rulename definition",
        "pg_statistic_ext" => {
            "oid:n stxrelid:n stxname stxnamespace:n stxowner:n stxstattarget:n stxkeys:N stxkind:T stxexprs"
        }
        "pg_publication" => {
            "oid:n pubname pubowner:n puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b pubviaroot:b"
        }
        "pg_publication_rel" => "oid:n prpubid:n prrelid:n prqual prattrs:N",
        "pg_publication_namespace" => "oid:n pnpubid:n pnnspid:n",
        "pg_subscription" => "oid:n subdbid:n subname subowner:n subenabled:b",
        "pg_extension" => {
            "oid:n extname extowner:n extnamespace:n extrelocatable:b extversion extconfig:N extcondition:T"
        }
        "pg_available_extensions" => "name default_version installed_version comment",
        "pg_depend" => "classid:n objid:n objsubid:n refclassid:n refobjid:n refobjsubid:n deptype",
        "pg_shdepend" => "dbid:n classid:n objid:n objsubid:n refclassid:n refobjid:n deptype",
        "pg_foreign_table" => "ftrelid:n ftserver:n ftoptions:T",
        "pg_foreign_server" => "oid:n srvname srvowner:n srvfdw:n srvtype srvversion srvacl srvoptions:T",
        "pg_foreign_data_wrapper" => {
            "oid:n fdwname fdwowner:n fdwhandler:n fdwvalidator:n fdwacl fdwoptions:T"
        }
        "pg_partitioned_table" => {
            "partrelid:n partstrat partnatts:s partdefid:n partattrs:N partclass:N partcollation:N partexprs"
        }
        "pg_event_trigger" => "oid:n evtname evtevent evtowner:n evtfoid:n evtenabled evttags:T",
        "pg_matviews" => {
            "schemaname matviewname matviewowner tablespace hasindexes:b ispopulated:b definition"
        }
        "pg_auth_members" => "roleid:n member:n grantor:n admin_option:b",
        "pg_db_role_setting" => "setdatabase:n setrole:n setconfig:T",
        "pg_default_acl" => "oid:n defaclrole:n defaclnamespace:n defaclobjtype defaclacl",
        "pg_init_privs" => "objoid:n classoid:n objsubid:n privtype initprivs",
        "pg_seclabel" | "pg_seclabels" => "objoid:n classoid:n objsubid:n provider label",
        "pg_largeobject_metadata" => "oid:n lomowner:n lomacl",
        "pg_locks" => "locktype database:n relation:n pid:n mode granted:b",
        "pg_prepared_statements" => "name statement from_sql:b",
        "pg_prepared_xacts" => "transaction:n gid prepared owner database",
        "pg_stat_replication" => "pid:n usename application_name state",
        "pg_conversion" => "oid:n conname connamespace:n conowner:n",
        "pg_ts_config" | "pg_ts_dict" | "pg_ts_parser" | "pg_ts_template" => "oid:n name",
        "pg_transform" => "oid:n trftype:n trflang:n",
        "pg_stats" => "schemaname tablename attname inherited:b null_frac:r avg_width:n n_distinct:r",
        _ => return None,
    }))
}
