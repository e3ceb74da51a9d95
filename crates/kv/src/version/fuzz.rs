//! The manifest decoder, for the fuzz targets.

use std::path::PathBuf;

use super::edit::VersionEdit;
use super::encode::{decode, encode};
use super::handle::ObsoleteFiles;
use super::manifest::format::{Identity, frame, header, seal};
use super::manifest::read::ManifestBytes;
use super::state::StoreState;
use cairn_vfs::sync::Arc;

/// Decodes `how u8 | bytes`. If bit 0 of `how` is set, the bytes are the payload of one edit, which
/// is wrapped into a sound file; otherwise they are a whole manifest.
///
/// Besides panics, it detects edits that change when they are encoded again, and states whose
/// snapshot leads to a different state.
pub fn manifest(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    let identity = Identity { store: 7, number: 1 };
    let bytes = if how & 1 == 0 { bytes.to_vec() } else { framed(identity, bytes) };
    let file = ManifestBytes { path: PathBuf::from("MANIFEST-000001"), number: 1, store: None, bytes };
    let mut state = StoreState::new(Arc::new(ObsoleteFiles::default()));
    let replayed = file.replay(|edit| {
        assert!(decode(&encode(&edit)).as_ref() == Ok(&edit), "an edit survives being written again");
        let prepared = state.prepare(&edit)?;
        state.commit(prepared);
        Ok(())
    });
    if replayed.is_err() {
        return;
    }
    let snapshot = state.snapshot();
    let mut again = StoreState::new(Arc::new(ObsoleteFiles::default()));
    let prepared = again.prepare(&snapshot);
    assert!(prepared.is_ok(), "a snapshot of a state is a valid edit: {:?}", prepared.err());
    if let Ok(prepared) = prepared {
        again.commit(prepared);
    }
    assert!(again.snapshot() == snapshot, "and makes the same state");
}

/// Returns a manifest whose first record has this payload.
fn framed(identity: Identity, payload: &[u8]) -> Vec<u8> {
    let mut file = header(identity).to_vec();
    file.extend(frame(identity, file.len() as u64, payload));
    file.extend(seal(identity, file.len() as u64));
    file
}

/// Returns inputs that reach all of the decoder, as the initial corpus.
pub fn manifest_corpus() -> Vec<(&'static str, Vec<u8>)> {
    let payload = encode(&super::edit::example());
    let mut as_edit = vec![1];
    as_edit.extend(&payload);
    let mut as_file = vec![0];
    as_file.extend(framed(Identity { store: 7, number: 1 }, &payload));
    let mut empty = vec![1];
    empty.extend(encode(&VersionEdit::default()));
    vec![("edit", as_edit), ("file", as_file), ("empty", empty)]
}
