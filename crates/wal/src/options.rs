//! Options for writing and for recovering a log.

use crate::format::{HEADER_BYTES, MAX_SEGMENT_BYTES};
use crate::{Error, Lsn, Result};

const _: () = assert!(2 * HEADER_BYTES < MAX_SEGMENT_BYTES && MAX_SEGMENT_BYTES.is_multiple_of(4096));

/// Options for writing a log. They are not stored: a log can be opened with different options each
/// time.
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
    /// Sets the maximum size of a segment's file, 8 KiB to 2 GiB, in multiples of 4 KiB. Default 16
    /// MiB, which keeps the unused space at either end of a log small. A record that does not fit
    /// gets a segment of its own size.
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u32) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Sets the size of the first segment after opening or trimming
    /// ([`Log::trim`](crate::Log::trim)), in multiples of 4 KiB. Each later segment is twice as
    /// large as the previous one, up to [`Options::segment_bytes`], so that a log with few records
    /// stays small. Default 256 KiB; values above the maximum segment size count as that.
    #[must_use]
    pub fn first_segment_bytes(mut self, bytes: u32) -> Self {
        self.first_segment_bytes = bytes;
        self
    }

    /// Sets how much of a segment is brought into memory at a time, in multiples of 4 KiB. Default
    /// 256 KiB: about four thousand small records, and a tenth of a millisecond of work.
    #[must_use]
    pub fn window_bytes(mut self, bytes: u32) -> Self {
        self.window_bytes = bytes;
        self
    }

    /// Sets how many released segments of the full size are kept for recycling; others are removed.
    /// Default 4.
    #[must_use]
    pub fn recycled_max(mut self, count: usize) -> Self {
        self.recycled_max = count;
        self
    }

    /// Sets whether a helper thread prepares memory and segments ahead of need. Default true.
    /// Without it, the appending thread does this work when needed, and the behaviour of the log is
    /// a deterministic function of the calls.
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

/// How a recovery treats damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Ends at the first damaged record unless something shows that it had been synced, so that the
    /// effects of a power loss are not errors. Damage to synced records is `Corruption`.
    #[default]
    TolerateTornTail,
    /// Any damage is `Corruption`. For logs that were closed properly.
    Strict,
    /// Skips and reports damage, and continues with the sound records. For repair: the result may
    /// have holes.
    Salvage,
}

/// Options for recovering a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryOptions {
    pub(crate) mode: Mode,
    pub(crate) read_bytes: usize,
    pub(crate) nothing_released: bool,
    pub(crate) known: Option<Known>,
}

/// Facts about a log that its owner stores outside the log. With them, a recovery can distinguish
/// the log from others and detect that its end is missing, which nothing inside a log can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// The random number that all segments of the log carry ([`Log::id`](crate::Log::id)).
    pub log_id: u64,
    /// A position up to which everything is on stable storage; [`Lsn::ZERO`] for none.
    pub reached: Lsn,
    /// The salt of the segment that contains that position. Meaningless if there is no position.
    pub salt: u64,
}

impl Default for RecoveryOptions {
    fn default() -> Self {
        RecoveryOptions { mode: Mode::default(), read_bytes: 1 << 20, nothing_released: false, known: None }
    }
}

impl RecoveryOptions {
    /// Sets how damage is treated. Default [`Mode::TolerateTornTail`].
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets how many bytes are read at a time, at least 4 KiB. Default 1 MiB. A recovery takes this
    /// much memory, or as much as the largest record if that is more.
    #[must_use]
    pub fn read_bytes(mut self, bytes: usize) -> Self {
        // BOUND: no segment is longer.
        self.read_bytes = bytes.clamp(4096, MAX_SEGMENT_BYTES as usize);
        self
    }

    /// Sets whether the caller knows that nothing has been released since the newest segment was
    /// begun. A recovery from [`Lsn::ZERO`](crate::Lsn::ZERO) normally takes missing segments for
    /// released ones. With this option, those that existed when the newest segment was begun count
    /// as lost. Default false.
    #[must_use]
    pub fn nothing_released(mut self, known: bool) -> Self {
        self.nothing_released = known;
        self
    }

    /// Sets facts about the log from an earlier [`Log::known`](crate::Log::known). Segments of
    /// another log, and a log that ends before the known position, are then `Corruption` of the
    /// wrong or missing file; a salvage reports them and continues. A new log takes over the id.
    /// Default: none, and the newest segment determines the log's id.
    #[must_use]
    pub fn known(mut self, known: Known) -> Self {
        self.known = Some(known);
        self
    }
}
