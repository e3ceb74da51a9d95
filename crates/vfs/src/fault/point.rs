//! A moment at which the power may fail, and the disks that may be found afterwards.

use std::sync::Arc;

use super::FaultFs;
use super::crash::CrashImage;
use super::disk::Disk;
use super::options::FaultOptions;
use super::state::{Log, State};
use crate::{Rng, SeededRng};

/// A disk with its pending changes, held at one moment. Draw as many crash images from it as you
/// like; each is a fresh [`FaultFs`], ready for a recovery that may crash in turn.
///
/// Cheap: it shares all bytes with the disk it was taken from. An image costs work only for files
/// that had something pending.
#[derive(Debug, Clone)]
pub struct CrashPoint {
    pub(super) operation: u64,
    pub(super) disk: Disk,
    pub(super) options: Arc<FaultOptions>,
    pub(super) quota_bytes: Option<u64>,
    pub(super) rng: SeededRng,
    /// The log so far: its first entries, up to this many.
    pub(super) log: Option<(Log, usize)>,
}

impl CrashPoint {
    /// How many operations were done before it. All that an engine acknowledged while
    /// [`FaultFs::operation_count`] was at most this must have survived.
    pub fn operation(&self) -> u64 {
        self.operation
    }

    /// The disk after the crash. Equal images of equal points are equal disks.
    pub fn image(&self, image: CrashImage) -> FaultFs {
        let disk = self.disk.after_crash(image, &self.options);
        let mut state = State::new(Arc::clone(&self.options), disk, self.rng.clone());
        state.quota_bytes = self.quota_bytes;
        state.continue_log(self.log.as_ref(), image);
        FaultFs::from_state(state)
    }

    /// The two fixed images, nothing kept and all kept, and `random` drawn ones. Their seeds follow
    /// from the seed of the file system and from [`CrashPoint::operation`].
    pub fn images(&self, random: u64) -> impl Iterator<Item = (CrashImage, FaultFs)> + '_ {
        let mut seeds = SeededRng::new(self.options.seed ^ self.operation.rotate_left(32)).fork("images");
        let drawn = (0..random).map(move |_| CrashImage::Random(seeds.next_u64()));
        [CrashImage::None, CrashImage::All].into_iter().chain(drawn).map(|image| (image, self.image(image)))
    }
}
