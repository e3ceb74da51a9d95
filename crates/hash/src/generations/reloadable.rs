//! A reader that is replaced while threads use it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};

use crate::Result;

type Open<T> = Box<dyn Fn() -> Result<T> + Send + Sync>;

/// Holds the current reader and swaps in a newer one without blocking any thread.
///
/// Threads that use the old reader keep it until they are done. Its file may be removed by then,
/// but its mapping remains. Loading the current reader costs a few nanoseconds and takes no lock
/// (hazard-pointer-like slots of the `arc-swap` crate). `T` is [`super::Generations`],
/// [`crate::table::Reader`] or [`crate::sparkey::SparkeyReader`].
pub struct Live<T> {
    current: ArcSwap<T>,
    open: Open<T>,
    reloading: Mutex<()>,
}

impl<T> Live<T> {
    /// Opens the first reader with `open`. [`Live::reload`] calls `open` again.
    pub fn new(open: impl Fn() -> Result<T> + Send + Sync + 'static) -> Result<Live<T>> {
        let current = ArcSwap::from_pointee(open()?);
        Ok(Live { current, open: Box::new(open), reloading: Mutex::new(()) })
    }

    /// Returns the current reader, for a few lookups. Hold it only briefly: its memory is not freed
    /// while it is held.
    #[inline]
    pub fn load(&self) -> Guard<Arc<T>> {
        self.current.load()
    }

    /// Returns the current reader as an [`Arc`], to be kept for longer.
    pub fn load_full(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Opens the store again and swaps the new reader in. After an error the old reader stays in
    /// place.
    pub fn reload(&self) -> Result<()> {
        // Serialized, so that of two concurrent reloads the older result never replaces the newer
        // one.
        let _turn = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        self.current.store(Arc::new((self.open)()?));
        Ok(())
    }
}

impl<T: fmt::Debug> fmt::Debug for Live<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("current", &self.current.load()).finish_non_exhaustive()
    }
}
