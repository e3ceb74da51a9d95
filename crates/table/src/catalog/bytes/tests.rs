use super::*;

/// A table with one column, as written by versions before identity columns.
const PLAIN: &[u8] = b"\x01\x06\0\0\0public\x01\0\0\0t\x01\0\0\0\x07\0\0\0\x01\0\0\0\
    \x02\0\0\0id\x02\0\0\0\0\x01\x13\0\0\0nextval('t_id_seq')\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// The same table with an identity column: a different layout version, and one byte after the
/// default.
const ALWAYS: &[u8] = b"\x02\x06\0\0\0public\x01\0\0\0t\x01\0\0\0\x07\0\0\0\x01\0\0\0\
    \x02\0\0\0id\x02\0\0\0\0\x01\x13\0\0\0nextval('t_id_seq')\x02\
    \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

/// Goal: records already on disk keep their meaning and their bytes. Method: decodes bytes written
/// by earlier versions and encodes them again.
#[test]
fn records_of_each_layout_are_decoded() {
    let (mut def, roots) = get_table(PLAIN).unwrap();
    assert_eq!(roots, [7]);
    assert_eq!(def.columns[0].default.as_deref(), Some("nextval('t_id_seq')"));
    assert_eq!(def.columns[0].identity, None);
    assert_eq!(put_table(&def, &roots), PLAIN);
    def.columns[0].identity = Some(Identity::Always);
    assert_eq!(put_table(&def, &roots), ALWAYS);
    assert_eq!(get_table(ALWAYS), Some((def.clone(), roots.clone())));
    def.columns[0].identity = Some(Identity::ByDefault);
    assert_eq!(get_table(&put_table(&def, &roots)), Some((def, roots)));
}

/// Goal: only complete, valid records decode. Method: every prefix, one byte too many, an unknown
/// layout, and an unknown kind of identity.
#[test]
fn damaged_records_are_refused() {
    for bytes in [PLAIN, ALWAYS] {
        assert!((0..bytes.len()).all(|end| get_table(&bytes[..end]).is_none()));
        assert_eq!(get_table(&[bytes, &[0]].concat()), None);
    }
    let mut unknown = ALWAYS.to_vec();
    unknown[0] = 3;
    assert_eq!(get_table(&unknown), None);
    let mut unknown = ALWAYS.to_vec();
    let mark = unknown.len() - 18;
    unknown[mark] = 3;
    assert_eq!(get_table(&unknown), None);
    // The layout byte does not match the contents.
    let mut swapped = ALWAYS.to_vec();
    swapped[0] = 1;
    assert_eq!(get_table(&swapped), None);
}

/// Goal: a layout after all known ones is reported as later; any other unknown layout counts as
/// damage, and statistics of any layout may be ignored. Method: layouts of each kind of record.
#[test]
fn later_layouts_are_told_from_damage() {
    use crate::catalog::{Catalog, STATISTICS, TABLE, VIEW};

    let later = |kind: u8, layout: u8| Catalog::later_layout(&[kind, 0, 0, 0, 7], &[layout]);
    assert_eq!([0, 1, 2, 3, 255].map(|layout| later(TABLE, layout)), [None, None, None, Some(3), Some(255)]);
    assert_eq!([0, 1, 2].map(|layout| later(VIEW, layout)), [None, None, Some(2)]);
    assert_eq!(later(STATISTICS, 255), None);
    assert_eq!(Catalog::later_layout(&[TABLE, 0, 0, 0, 7], &[]), None);
}
