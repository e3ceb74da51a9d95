//! Who a client is: [`scram`] exchanges, [`passwords`] kept as verifiers, and when neither is asked
//! for.

pub mod exchange;
pub mod passwords;
pub mod scram;
