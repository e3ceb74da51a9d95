//! How a log is written, and how it is read back.

use crate::format::{HEADER_BYTES, MAX_SEGMENT_BYTES};
use crate::{Error, Lsn, Result};

/// How a log is written. None of it is stored: a log can be opened with other options each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub(crate) segment_bytes: u32,
    pub(crate) first_segment_bytes: u32,
    pub(crate) window_bytes: u32,
    pub(crate) recycled_max: usize,
    pub(crate) background: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_bytes: 16 << 20,
            first_segment_bytes: 256 << 10,
            window_bytes: 256 << 10,
            recycled_max: 4,
            background: true,
        }
    }
}

impl Options {
    /// Most that a segment's file has, 8 KiB to 2 GiB, in multiples of 4 KiB. Default 16 MiB: what
    /// is left over at either end of a log is small. A record that does not fit gets a segment of
    /// its own size.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u32) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Size of the first segment of a log that was just opened, or trimmed
    /// ([`Log::trim`](crate::Log::trim)), in multiples of 4 KiB. Those that follow are each twice
    /// the one before, up to [`Options::segment_bytes`], so that few records take little room.
    /// Default 256 KiB; more than a segment may have counts as that.
    #[must_use]
    pub fn first_segment_bytes(mut self, bytes: u32) -> Self {
        self.first_segment_bytes = bytes;
        self
    }

    /// How much of a segment is brought into memory at a time, in multiples of 4 KiB. Default 256
    /// KiB: some four thousand small records, and a tenth of a millisecond of work.
    #[must_use]
    pub fn window_bytes(mut self, bytes: u32) -> Self {
        self.window_bytes = bytes;
        self
    }

    /// How many released segments of the full size are kept to be written again; others are
    /// removed. Default 4.
    #[must_use]
    pub fn recycled_max(mut self, count: usize) -> Self {
        self.recycled_max = count;
        self
    }

    /// Whether a thread prepares memory and segments ahead of need. Default true. Without it
    /// whoever appends does so, at the time of need, and everything the log does is a function of
    /// the calls.
    #[must_use]
    pub fn background(mut self, on: bool) -> Self {
        self.background = on;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let bytes = self.segment_bytes;
        if !(2 * HEADER_BYTES..=MAX_SEGMENT_BYTES).contains(&bytes) || !bytes.is_multiple_of(4096) {
            return Err(Error::invalid(format!(
                "segments of {bytes} bytes, expected a multiple of 4096 from {} to {MAX_SEGMENT_BYTES}",
                2 * HEADER_BYTES
            )));
        }
        let first = self.first_segment_bytes;
        if first < 2 * HEADER_BYTES || !first.is_multiple_of(4096) {
            return Err(Error::invalid(format!(
                "a first segment of {first} bytes, expected a multiple of 4096 from {} on",
                2 * HEADER_BYTES
            )));
        }
        let window = self.window_bytes;
        if window == 0 || !window.is_multiple_of(4096) {
            return Err(Error::invalid(format!("windows of {window} bytes, expected a multiple of 4096")));
        }
        Ok(())
    }
}

/// What a recovery does about damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Ends at the first damaged record if nothing says that it had been synced; what a power loss
    /// leaves behind is thereby no error. Damage below what had been synced is `Corruption`.
    #[default]
    TolerateTornTail,
    /// Any damage is `Corruption`. For logs that were closed in order.
    Strict,
    /// Skips what is damaged, says what that was, and goes on with what is sound. For repair: what
    /// comes out may have holes.
    Salvage,
}

/// How a log is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryOptions {
    pub(crate) mode: Mode,
    pub(crate) read_bytes: usize,
    pub(crate) nothing_released: bool,
    pub(crate) known: Option<Known>,
}

/// What the owner of a log has written down of it, elsewhere than in the log: by this a recovery
/// knows the log from others and notices that the end of it is gone, which nothing within a log can
/// say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// The random number that all segments of the log carry ([`Log::id`](crate::Log::id)).
    pub log_id: u64,
    /// A position up to which everything is on stable storage; [`Lsn::ZERO`] for none.
    pub reached: Lsn,
    /// Which segment that position is in: a random number of its own. Means nothing where the
    /// position does not.
    pub salt: u64,
}

impl Default for RecoveryOptions {
    fn default() -> Self {
        RecoveryOptions { mode: Mode::default(), read_bytes: 1 << 20, nothing_released: false, known: None }
    }
}

impl RecoveryOptions {
    /// What to do about damage. Default [`Mode::TolerateTornTail`].
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// How many bytes are read at a time, at least 4 KiB. Default 1 MiB. This, or the largest
    /// record where that is more, is the memory that a recovery takes.
    #[must_use]
    pub fn read_bytes(mut self, bytes: usize) -> Self {
        // BOUND: no segment is longer.
        self.read_bytes = bytes.clamp(4096, MAX_SEGMENT_BYTES as usize);
        self
    }

    /// Whether the caller knows that nothing has been released since the newest segment was begun.
    /// A recovery from [`Lsn::ZERO`](crate::Lsn::ZERO) takes segments that are not there for
    /// released ones; then it takes them for lost if they were there at that time. Default false.
    #[must_use]
    pub fn nothing_released(mut self, known: bool) -> Self {
        self.nothing_released = known;
        self
    }

    /// What is known of the log from elsewhere, as [`Log::known`](crate::Log::known) has said it.
    /// Segments of another log, and a log that ends before the position, are then `Corruption`, of
    /// the file that is wrong or missing; a salvage says so and goes on. A log that is begun takes
    /// the id. Default: nothing, and the newest segment says which log it is.
    #[must_use]
    pub fn known(mut self, known: Known) -> Self {
        self.known = Some(known);
        self
    }
}
