//! Creates disk images that a power loss may leave behind.

use std::sync::Arc;

use super::FaultFs;
use super::crash::CrashImage;
use super::state::{CrashPoint, State};
use crate::{Rng, SeededRng};

impl CrashPoint {
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
