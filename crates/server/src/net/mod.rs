//! Sockets, plain or TLS, over TCP or a socket file, and the buffers of a connection.

pub mod listen;
pub mod socket;
pub mod transport;
pub mod wire;
