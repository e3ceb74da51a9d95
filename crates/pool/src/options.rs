//! Settings of a pool.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::policy::PolicyKind;

/// The smallest page size.
pub const MIN_PAGE_SIZE: usize = 4 << 10;
/// The largest page size.
pub const MAX_PAGE_SIZE: usize = 64 << 10;

const _: () = assert!(MIN_PAGE_SIZE.is_power_of_two() && MAX_PAGE_SIZE.is_power_of_two());
const _: () = assert!(MIN_PAGE_SIZE < MAX_PAGE_SIZE && crate::PAGE_HEADER_LEN < MIN_PAGE_SIZE);

/// Settings of a pool: see [`Pool::builder`](crate::Pool::builder).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// Page size in bytes: a power of two from 4 to 64 KiB. Default 4 KiB.
    pub page_size: usize,
    /// Number of pages kept in memory. Default 16384: 64 MiB with pages of 4 KiB.
    pub frames: usize,
    /// The largest number of frames that [`Pool::resize`](crate::Pool::resize) may set later. Costs
    /// address space. Default 16 times `frames`.
    pub max_frames: Option<usize>,
    /// The replacement policy.
    pub policy: PolicyKind,
    /// How long a thread waits for a frame while all are pinned, or for a latch held by others.
    /// Default 10 s.
    pub wait_limit: Duration,
    /// The thread that writes dirty pages before their frames are needed.
    pub background_writer: BackgroundWriter,
}

/// When the background writer works.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum BackgroundWriter {
    /// No background writer: pages are written when they are evicted or flushed. For deterministic
    /// tests and read-only use.
    Off,
    /// Starts writing when more than this share of the frames is dirty, and stops at half of it.
    Above(f64),
}

impl Default for Options {
    fn default() -> Self {
        Options {
            page_size: MIN_PAGE_SIZE,
            frames: 16 << 10,
            max_frames: None,
            policy: PolicyKind::DEFAULT,
            wait_limit: Duration::from_secs(10),
            background_writer: BackgroundWriter::Above(0.25),
        }
    }
}

impl Options {
    /// Returns the maximum number of frames.
    pub(crate) fn max_frames(&self) -> usize {
        self.max_frames
            .unwrap_or_else(|| self.frames.saturating_mul(16).min(crate::translation::MAX_FRAMES))
            .max(self.frames)
    }

    /// Checks the settings. Errors: [`Error::Invalid`], which names the setting.
    pub(crate) fn check(&self) -> Result<()> {
        let size = self.page_size;
        if !size.is_power_of_two() || !(MIN_PAGE_SIZE..=MAX_PAGE_SIZE).contains(&size) {
            return Err(Error::invalid(format!(
                "page_size is {size}, expected a power of two from {MIN_PAGE_SIZE} to {MAX_PAGE_SIZE}"
            )));
        }
        check_frames("frames", self.frames)?;
        check_frames("max_frames", self.max_frames())?;
        if let BackgroundWriter::Above(share) = self.background_writer
            && !(share > 0.0 && share <= 1.0)
        {
            return Err(Error::invalid(format!(
                "background_writer begins above {share} of the frames, expected a share above 0 and up to 1"
            )));
        }
        Ok(())
    }
}

pub(crate) fn check_frames(setting: &str, frames: usize) -> Result<()> {
    if frames == 0 || frames > crate::translation::MAX_FRAMES {
        let most = crate::translation::MAX_FRAMES;
        return Err(Error::invalid(format!("{setting} is {frames}, expected 1 to {most}")));
    }
    Ok(())
}
