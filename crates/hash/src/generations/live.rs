//! A store that can be replaced while it is read.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, Guard};

use crate::Result;

type Open<T> = Box<dyn Fn() -> Result<T> + Send + Sync>;

/// Hands out the current reader and swaps in a newer one without stopping anybody.
///
/// Readers that work with the old one keep it until they are done; its file may be gone by then,
/// the mapping is not. Taking the current one costs a few nanoseconds and no lock
/// (hazard-pointer-like slots of the `arc-swap` crate). `T` is [`super::Generations`],
/// [`crate::table::Reader`] or [`crate::sparkey::SparkeyReader`].
pub struct Live<T> {
    current: ArcSwap<T>,
    open: Open<T>,
    reloading: Mutex<()>,
}

impl<T> Live<T> {
    /// Opens the first reader with `open`, which [`Live::reload`] will call again.
    pub fn new(open: impl Fn() -> Result<T> + Send + Sync + 'static) -> Result<Live<T>> {
        let current = ArcSwap::from_pointee(open()?);
        Ok(Live { current, open: Box::new(open), reloading: Mutex::new(()) })
    }

    /// The current reader, for a few lookups. Hold it briefly: while it is held, its memory is.
    #[inline]
    pub fn load(&self) -> Guard<Arc<T>> {
        self.current.load()
    }

    /// The current reader, to keep.
    pub fn load_full(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Opens what is there now and swaps it in. After an error the old reader stays in place.
    pub fn reload(&self) -> Result<()> {
        // Two reloads at once must not put the older one in place last.
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
