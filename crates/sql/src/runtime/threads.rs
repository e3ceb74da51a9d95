//! Threads that run queries, and the one that runs timers.

use cairn_vfs::sync::OnceLock;

use crate::error::{Error, Result};
use crate::sqlstate::OUT_OF_MEMORY;

/// The threads of the general path. Dropping it does not wait for them, because no one needs their
/// results any more.
#[derive(Debug)]
pub(crate) struct Threads(Option<tokio::runtime::Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The stack of such a thread; the system allocates only the part in use. Computing a plan takes as
/// many nested calls as it has levels, up to the limit on those.
const STACK_BYTES: usize = 64 << 20;

/// Returns a pool of threads, and starts it at the first call.
pub(super) fn started(place: &OnceLock<Threads>, count: usize, name: &str) -> Result<tokio::runtime::Handle> {
    if let Some(Threads(Some(runtime))) = place.get() {
        return Ok(runtime.handle().clone());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(count)
        .thread_name(name)
        .thread_stack_size(STACK_BYTES)
        .enable_time()
        .build()
        .map_err(|error| Error::new(OUT_OF_MEMORY, format!("threads cannot be started: {error}")))?;
    let handle = runtime.handle().clone();
    // If another thread has been faster, its pool is used.
    let kept = place.get_or_init(|| Threads(Some(runtime)));
    Ok(kept.0.as_ref().map_or(handle, |runtime| runtime.handle().clone()))
}
