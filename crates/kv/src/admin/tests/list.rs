//! Listing keyspaces without opening the store.

use std::time::Duration;

use cairn_vfs::sync::Arc;
use cairn_vfs::{CrashImage, ErrorKind, FaultFs, FaultOptions, Fs, MemFs};

use super::{STORE, builder, small};
use crate::admin::list::list_keyspaces_in;
use crate::{AddU64, Append, Error, KeyspaceOptions};

/// Goal: the list contains everything needed to open an unknown store: names, TTL, merge operators;
/// it also works while the store is open, and writes nothing.
/// Method: a store with one keyspace of each kind, listed beside its writer and afterwards; the
/// store opens with the listed options.
#[test]
fn tells_what_to_open_with() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    assert_eq!(list_keyspaces_in(&fs, STORE).unwrap_err().kind(), ErrorKind::NotFound);
    let ttl = Some(Duration::from_secs(60));
    let expiring = KeyspaceOptions { ttl, ..small() };
    let counting = KeyspaceOptions { merge_operator: Some(Arc::new(AddU64)), ..small() };
    let db = builder(&fs).default_keyspace(expiring).keyspace("counts", counting).open().unwrap();
    let listed = list_keyspaces_in(&fs, STORE).unwrap();
    let told: Vec<_> = listed.iter().map(|it| (&*it.name, it.ttl, it.merge_operator.as_deref())).collect();
    assert_eq!(told, [("default", ttl, None), ("counts", None, Some("cairn.add_u64"))]);
    drop(db);
    assert_eq!(list_keyspaces_in(&fs, STORE).unwrap(), listed);
    builder(&fs).open().unwrap_err();
    let default = KeyspaceOptions { ttl: listed[0].ttl, ..small() };
    builder(&fs).default_keyspace(default).open().unwrap();
}

/// Goal: when a keyspace created without a merge operator is first opened with one, the store keeps
/// that operator before anything is merged with it; read-only and refused openings keep nothing.
/// Method: openings of both kinds; another operator, and none; a power loss right after the
/// opening.
#[test]
fn operators_are_kept_from_their_first_opening() {
    let fault = FaultFs::new(FaultOptions::seeded(1));
    let fs: Arc<dyn Fs> = Arc::new(fault.clone());
    drop(builder(&fs).keyspace("counts", small()).open().unwrap());
    let counting = || KeyspaceOptions { merge_operator: Some(Arc::new(AddU64)), ..small() };
    let kept = |fs: &Arc<dyn Fs>| -> Vec<Option<String>> {
        list_keyspaces_in(fs, STORE).unwrap().into_iter().map(|it| it.merge_operator).collect()
    };
    drop(builder(&fs).default_keyspace(counting()).read_only(true).open().unwrap());
    let brief = KeyspaceOptions { ttl: Some(Duration::from_secs(1)), ..small() };
    builder(&fs).keyspace("counts", counting()).default_keyspace(brief).open().unwrap_err();
    assert_eq!(kept(&fs), [None, None]);
    let db = builder(&fs).keyspace("counts", counting()).open().unwrap();
    let named = Some("cairn.add_u64".to_owned());
    let lost: Arc<dyn Fs> = Arc::new(fault.crash_point().image(CrashImage::None));
    assert_eq!(kept(&lost), [None, named.clone()]);
    db.keyspace("counts").unwrap().merge("n", 1_u64.to_le_bytes()).unwrap();
    drop(db);
    assert_eq!(kept(&fs), [None, named]);
    let append = KeyspaceOptions { merge_operator: Some(Arc::new(Append)), ..small() };
    let error = builder(&fs).keyspace("counts", append).open().unwrap_err();
    assert!(error.to_string().contains("cairn.append"), "{error}");
    let db = builder(&fs).keyspace("counts", small()).open().unwrap();
    let error = db.keyspace("counts").unwrap().get("n").unwrap_err();
    assert!(matches!(&error, Error::NoMergeOperator { key, .. } if key == "\"n\""), "{error}");
}

/// Goal: a damaged store yields an error, not an empty list and not [`ErrorKind::NotFound`].
/// Method: a manifest cut to its first bytes; a missing `CURRENT` beside a table.
#[test]
fn damage_is_an_error() {
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    drop(super::open(&fs));
    let mut manifest = fs.read_dir(std::path::Path::new(STORE)).unwrap().into_iter();
    let manifest = manifest.rfind(|path| path.to_string_lossy().contains("MANIFEST")).unwrap();
    fs.open(&manifest, cairn_vfs::OpenOptions::write()).unwrap().set_len(3).unwrap();
    assert_eq!(list_keyspaces_in(&fs, STORE).unwrap_err().kind(), ErrorKind::Corruption);
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let db = super::open(&fs);
    db.put("a", "1").unwrap();
    db.flush().unwrap();
    drop(db);
    fs.remove(&std::path::Path::new(STORE).join("CURRENT")).unwrap();
    let error = list_keyspaces_in(&fs, STORE).unwrap_err();
    assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains("CURRENT"), "{error}");
}
