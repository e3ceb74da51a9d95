//! The part of page 0 that ties the files of a database together.
//!
//! ```text
//!   24  database u64     random, never changes
//!   32  log u64          the id in all segments of its log
//!   40  session u64      random, of the last session that wrote here
//!   48  before u64       the session before that one
//!   56  checkpoint u64   position: all changes up to it are in the pages, so the log is needed
//!                        from there on
//!   64  reached u64      position up to which the log was durable when this was written
//!   72  salt u64         of the log's segment that contains this position
//!   80  pages u32        minimum number of pages of the file
//! ```
//!
//! Each checkpoint writes it, after everything else is durable and before any of the log is
//! released. Closing the database writes it too. It is not logged.

use cairn_pool::{Changed, Lsn, Owner};

use super::source::Source;

/// Behind the fields that transactions change.
pub(super) const AT: usize = 24;
const LEN: usize = 60;
/// Seven words and a number of pages.
const _: () = assert!(LEN == 7 * size_of::<u64>() + size_of::<u32>());
/// The random fields are among them.
const _: () = assert!(RANDOM.start == AT && RANDOM.end <= AT + LEN);

/// The fields; see the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FileIdentity {
    pub(crate) database: u64,
    pub(crate) log: u64,
    pub(crate) session: u64,
    pub(crate) before: u64,
    pub(crate) checkpoint: Lsn,
    pub(crate) reached: Lsn,
    pub(crate) salt: u64,
    pub(crate) pages: u32,
}

/// Location in a payload of the random fields.
pub(crate) const RANDOM: std::ops::Range<usize> = AT..AT + 32;

impl FileIdentity {
    /// Returns the owner of the double write.
    pub(crate) fn owner(&self) -> Owner {
        Owner { file: self.database, session: self.session, before: self.before }
    }

    /// Reads the fields from the payload of a page 0.
    pub(crate) fn decode(payload: &[u8]) -> Option<FileIdentity> {
        let word = |at: usize| {
            let bytes = payload.get(AT + 8 * at..)?.first_chunk()?;
            Some(u64::from_le_bytes(*bytes))
        };
        Some(FileIdentity {
            database: word(0)?,
            log: word(1)?,
            session: word(2)?,
            before: word(3)?,
            checkpoint: Lsn(word(4)?),
            reached: Lsn(word(5)?),
            salt: word(6)?,
            pages: Source::u32(payload, AT + 56).ok()?,
        })
    }

    /// Writes the fields to a payload.
    pub(crate) fn encode(&self, payload: &mut [u8]) -> Result<(), Changed> {
        let place = payload.get_mut(AT..AT + LEN).ok_or(Changed)?;
        let words = [
            self.database,
            self.log,
            self.session,
            self.before,
            self.checkpoint.0,
            self.reached.0,
            self.salt,
        ];
        debug_assert!(
            self.checkpoint <= self.reached || self.reached == Lsn::NONE,
            "the log is needed from {} on, and is durable up to {}",
            self.checkpoint,
            self.reached
        );
        for (place, word) in place.chunks_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        place.get_mut(56..60).ok_or(Changed)?.copy_from_slice(&self.pages.to_le_bytes());
        debug_assert!(
            FileIdentity::decode(payload).as_ref() == Some(self),
            "{self:?} is not read as it was written"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the fields that are written are read back, and no other bytes change.
    #[test]
    fn round_trip() {
        let identity = FileIdentity {
            database: 1,
            log: 2,
            session: 3,
            before: 4,
            checkpoint: Lsn(5),
            reached: Lsn(6),
            salt: 7,
            pages: 8,
        };
        let mut payload = vec![0xee; 100];
        identity.encode(&mut payload).unwrap();
        assert_eq!(FileIdentity::decode(&payload), Some(identity));
        assert!(payload[..24].iter().chain(&payload[84..]).all(|&byte| byte == 0xee));
        assert!(
            FileIdentity::decode(&payload[..83]).is_none() && identity.encode(&mut payload[..83]).is_err()
        );
    }
}
