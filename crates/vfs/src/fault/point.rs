//! A moment at which the power may fail, and the possible disks after that.

use std::sync::Arc;

use super::FaultFs;
use super::crash::CrashImage;
use super::disk::Disk;
use super::options::FaultOptions;
use super::state::{Log, State};
use crate::{Rng, SeededRng};

/// A snapshot of a disk with its pending changes. Any number of crash images can be drawn from it.
/// Each image is a fresh [`FaultFs`], ready for a recovery that may crash in turn.
///
/// Cheap: it shares all bytes with the original disk. Drawing an image costs work only for files
/// with pending changes.
#[derive(Debug, Clone)]
pub struct CrashPoint {
    pub(super) operation: u64,
    pub(super) disk: Disk,
    pub(super) options: Arc<FaultOptions>,
    pub(super) quota_bytes: Option<u64>,
    pub(super) rng: SeededRng,
    /// The log up to this point: the first entries, and their number.
    pub(super) log: Option<(Log, usize)>,
}

impl CrashPoint {
    /// Returns the number of operations before this point. Everything that an engine acknowledged
    /// while [`FaultFs::operation_count`] was at most this must have survived.
    pub fn operation(&self) -> u64 {
        self.operation
    }

    /// Returns the disk after the crash. Equal images of equal points are equal disks.
    pub fn image(&self, image: CrashImage) -> FaultFs {
        let disk = self.disk.after_crash(image, &self.options);
        let mut state = State::new(Arc::clone(&self.options), disk, self.rng.clone());
        state.quota_bytes = self.quota_bytes;
        state.continue_log(self.log.as_ref(), image);
        FaultFs::from_state(state)
    }

    /// Returns the two fixed images, nothing kept and everything kept, and `random` drawn ones.
    /// Their seeds derive from the seed of the file system and from [`CrashPoint::operation`].
    pub fn images(&self, random: u64) -> impl Iterator<Item = (CrashImage, FaultFs)> + '_ {
        let mut seeds = SeededRng::new(self.options.seed ^ self.operation.rotate_left(32)).fork("images");
        let drawn = (0..random).map(move |_| CrashImage::Random(seeds.next_u64()));
        [CrashImage::None, CrashImage::All].into_iter().chain(drawn).map(|image| (image, self.image(image)))
    }
}
