//! A hook that sees every statement, such as a recorder of traces.

use std::fmt;
use std::sync::Arc;

type Tell = dyn Fn(&str, u64) + Send + Sync;

/// A function that is called for every statement that succeeds, with its text and the number of
/// rows that it returned or changed. The calls come from the threads of all sessions, and are part
/// of the run time of a statement. There is none by default.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Tell>>);

impl Observer {
    /// Creates an observer that calls this function.
    pub fn new(tell: impl Fn(&str, u64) + Send + Sync + 'static) -> Self {
        Observer(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, sql: &str, rows: u64) {
        if let Some(tell) = &self.0 {
            tell(sql, rows);
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observer").field(&self.0.is_some()).finish()
    }
}
