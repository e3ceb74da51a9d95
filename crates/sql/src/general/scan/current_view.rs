//! The view of the running statement, for the tables of its plans.

use cairn_table::View;
use cairn_vfs::sync::{Mutex, lock};
use datafusion::error::DataFusionError;

/// The view that tables are read from while a statement is planned and run.
#[derive(Debug, Default)]
pub(crate) struct Current {
    view: Mutex<Option<View>>,
}

impl Current {
    /// Sets the view of the running statement.
    pub fn set(&self, view: Option<View>) {
        *lock(&self.view) = view;
    }

    /// Returns the view of the running statement.
    pub fn view(&self) -> Result<View, DataFusionError> {
        let view = lock(&self.view).clone();
        view.ok_or_else(|| DataFusionError::Internal("a table is read outside of a statement".to_owned()))
    }
}
