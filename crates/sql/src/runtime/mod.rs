//! The ground on which statements run: the state that sessions share, sequences, settings, and the
//! context of expressions. Nothing here knows a statement.

mod context;
pub(crate) mod sequence;
pub(crate) mod settings;
mod shared;
mod threads;
mod timer;

pub(crate) use context::SessionContext;
pub(crate) use settings::Settings;
pub(crate) use shared::Shared;
pub(crate) use timer::Timer;
