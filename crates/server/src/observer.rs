//! Who is told of every statement, such as a recorder of traces.

use std::fmt;
use std::sync::Arc;

type Tell = dyn Fn(&str, u64) + Send + Sync;

/// Is told of every statement that has ended well: its text, and the rows that it returned or
/// changed. Called from every session's thread, on the statement's own path. Nobody by default.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Tell>>);

impl Observer {
    /// This function is told.
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
