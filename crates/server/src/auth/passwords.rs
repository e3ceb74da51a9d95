//! The password file: a line `name:verifier` for each user. It never contains a password.
//!
//! ```text
//! # made by `cairn sql passwd`
//! #decoys:<base64 of 32 bytes>      key for answers to unknown names, kept across restarts
//! alice:SCRAM-SHA-256$4096:<salt>$<StoredKey>:<ServerKey>
//! ```
//! It is read at each log-in, so that changes take effect at once.

use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use cairn_vfs::{AtomicFile, Fs, Operation, StdFs};

use crate::error::Error;
use crate::tls::read;

use super::scram::{Verifier, random};

/// The users of a file, in its order.
#[derive(Clone, Default)]
pub struct Passwords {
    users: Vec<(String, Verifier)>,
    decoys: Option<[u8; 32]>,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords").field("users", &self.users).finish_non_exhaustive()
    }
}

/// The prefix of the line with the decoy key. Readers that do not know it take it for a comment.
const DECOYS: &str = "#decoys:";

impl Passwords {
    /// Reads a file.
    ///
    /// Errors: [`Error::Passwords`] with the first wrong line, [`Error::Vfs`].
    pub fn read(fs: &dyn Fs, path: &Path) -> Result<Passwords, Error> {
        let bytes = read(fs, path)?;
        let refuse = |line, what| Error::Passwords { path: path.to_owned(), line, what };
        let text = String::from_utf8(bytes).map_err(|_| refuse(1, "expected UTF-8"))?;
        let mut passwords = Passwords::default();
        for (at, line) in text.lines().enumerate() {
            if let Some(secret) = line.strip_prefix(DECOYS) {
                let bytes = BASE64.decode(secret.trim()).ok().and_then(|bytes| bytes.try_into().ok());
                passwords.decoys =
                    Some(bytes.ok_or_else(|| refuse(at + 1, "expected #decoys: and 32 bytes in base64"))?);
                continue;
            }
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, verifier) = line
                .rsplit_once(":SCRAM-SHA-256$")
                .and_then(|(name, rest)| {
                    Some((name, Verifier::parse(&format!("SCRAM-SHA-256${}", rest.trim_end()))?))
                })
                .ok_or_else(|| {
                    refuse(at + 1, "expected name:SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>")
                })?;
            passwords.set(name, verifier);
        }
        Ok(passwords)
    }

    /// Returns the verifier of a user.
    pub fn get(&self, user: &str) -> Option<&Verifier> {
        self.users.iter().find(|(name, _)| name == user).map(|(_, verifier)| verifier)
    }

    /// Returns a verifier for an unknown user, so that attackers cannot find out which users exist.
    /// The same name always gets the same verifier, with the iterations and the salt length of most
    /// real ones. `secret` is the key if the file has none.
    pub fn decoy(&self, secret: &[u8], user: &str) -> Verifier {
        let mut counts: Vec<_> = self.users.iter().map(|(_, verifier)| verifier.cost()).collect();
        counts.sort_unstable();
        let runs = counts.chunk_by(|a, b| a == b);
        let most = runs.max_by_key(|run| run.len()).and_then(|run| run.first()).copied();
        Verifier::decoy(self.decoys.as_ref().map_or(secret, |own| own.as_slice()), user, most)
    }

    /// Sets the verifier of a user, and adds the user if necessary.
    pub fn set(&mut self, user: &str, verifier: Verifier) {
        match self.users.iter_mut().find(|(name, _)| name == user) {
            Some((_, place)) => *place = verifier,
            None => self.users.push((user.to_owned(), verifier)),
        }
    }

    /// Removes a user. Returns false if there was none.
    pub fn remove(&mut self, user: &str) -> bool {
        let before = self.users.len();
        self.users.retain(|(name, _)| name != user);
        self.users.len() < before
    }

    /// Returns the names, in the order of the file.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.users.iter().map(|(name, _)| name.as_str())
    }

    /// Writes the file atomically, readable only by its owner.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let mut text =
            "# made by `cairn sql passwd`: users and the verifiers of their passwords\n".to_owned();
        let mut decoys = self.decoys.unwrap_or_default();
        if self.decoys.is_none() {
            random(&mut decoys).map_err(|error| Error::Settings(error.to_string()))?;
        }
        text.push_str(&format!("{DECOYS}{}\n", BASE64.encode(decoys)));
        for (name, verifier) in &self.users {
            text.push_str(&format!("{name}:{verifier}\n"));
        }
        let fs: Arc<dyn Fs> = Arc::new(StdFs::new());
        let atomic = AtomicFile::create(&fs, path)?;
        let built = atomic.file().path();
        // ORDER: the file must be private before it has any content.
        std::fs::set_permissions(built, PermissionsExt::from_mode(0o600))
            .map_err(|source| cairn_vfs::Error::new(Operation::Open, built, source))?;
        atomic.file().write_all_at(text.as_bytes(), 0)?;
        Ok(atomic.commit()?)
    }
}

/// Whether a name can be stored in the file.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('#') && name.trim() == name && !name.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: users survive a round trip through the file, including names with colons; changes and
    /// removals take effect; only the owner can read the file.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "modes of files are no matter of engines")]
    fn users_round_trip_through_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("passwords");
        let mut passwords = Passwords::default();
        for (name, password) in [("alice", "one"), ("b:ob", "two"), ("alice", "three")] {
            passwords.set(name, Verifier::new(password).unwrap());
        }
        passwords.write(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut read = Passwords::read(&StdFs::new(), &path).unwrap();
        assert_eq!(read.users().collect::<Vec<_>>(), ["alice", "b:ob"]);
        assert_eq!(read.get("alice"), passwords.get("alice"));
        assert!(read.remove("alice") && !read.remove("alice") && read.get("alice").is_none());
    }

    /// Goal: a client cannot tell an unknown user from a known one. Method: the decoy of an unknown
    /// name stays the same when the file is read again and users were added, and has the iterations
    /// and the salt length of most users.
    #[test]
    fn decoy_salts_stay_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("passwords");
        let mut passwords = Passwords::default();
        let costly = "SCRAM-SHA-256$15000:MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=$H5BcrnAx1nlGkAKNKtLTWQYYYb4HZr6ZVF8AzWaDHK0=:Gs7FsrIvr6NNnEJzCwYWUcsBdKHmjVCfNzGzAMEcIYQ=";
        for name in ["ann", "bob"] {
            passwords.set(name, Verifier::parse(costly).unwrap());
        }
        passwords.write(&path).unwrap();
        let mut read = Passwords::read(&StdFs::new(), &path).unwrap();
        let decoy = read.decoy(b"one start", "nobody");
        assert_eq!(decoy.cost(), read.get("ann").unwrap().cost());
        read.set("eve", Verifier::new("x").unwrap());
        read.write(&path).unwrap();
        let again = Passwords::read(&StdFs::new(), &path).unwrap();
        assert_eq!(again.decoy(b"another start", "nobody").to_string(), decoy.to_string());
        assert_ne!(again.decoy(b"another start", "nobody else").to_string(), decoy.to_string());
    }

    /// Goal: a line without a valid verifier is refused by number, above all a plain password.
    /// Method: files with one wrong line.
    #[test]
    fn wrong_lines_are_named() {
        let fs = cairn_vfs::MemFs::new();
        let path = Path::new("passwords");
        for wrong in
            ["alice:secret", "alice", ":", "a:SCRAM-SHA-256$x:y$z:w", "a:md5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
        {
            let file = fs.open(path, cairn_vfs::OpenOptions::create()).unwrap();
            file.set_len(0).unwrap();
            file.write_all_at(format!("# users\n\n{wrong}\n").as_bytes(), 0).unwrap();
            let error = Passwords::read(&fs, path).unwrap_err();
            assert!(matches!(error, Error::Passwords { line: 3, .. }), "{wrong}: {error}");
        }
        assert!(is_name("alice") && !is_name("") && !is_name("#a") && !is_name("a\nb") && !is_name(" a"));
    }
}
