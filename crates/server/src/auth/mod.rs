//! Authentication: [`scram`] exchanges, and the file of verifiers in [`passwords`].

pub mod exchange;
pub mod passwords;
pub mod scram;
