//! Who may come in, and how.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_vfs::Fs;

use crate::error::Failure;
use crate::net::socket::Peer;
use crate::sqlstate;
use crate::tls::Tls;

/// What the server asks of a client before it listens to it.
#[derive(Debug)]
pub struct Access {
    /// Where the password file is read.
    pub fs: Arc<dyn Fs>,
    /// Users and their verifiers; `None` lets every user in.
    pub password_file: Option<PathBuf>,
    /// Whether the socket file asks for no password even so: who can open it is known to the
    /// operating system.
    pub is_socket_trusted: bool,
    /// TLS, where it is offered.
    pub tls: Option<Tls>,
    /// Whether other machines may come without TLS or passwords.
    pub is_open: bool,
    /// What decoys are made from.
    pub secret: [u8; 32],
}

impl Access {
    /// Whether a client has to prove who it is.
    pub fn needs_password(&self, peer: Peer) -> bool {
        self.password_file.is_some() && !(peer == Peer::Unix && self.is_socket_trusted)
    }

    /// Errors: this client may not come in this way, whoever it is.
    pub fn check(&self, peer: Peer, is_tls: bool) -> Result<(), Failure> {
        let Peer::Remote(address) = peer else { return Ok(()) };
        if self.is_open {
            return Ok(());
        }
        if !is_tls {
            return Err(Failure::new(
                sqlstate::INVALID_AUTHORIZATION,
                format!("connections from {address} must use TLS"),
            )
            .with_hint("Set sslmode=require."));
        }
        if self.password_file.is_none() {
            let message = format!("connections from {address} need passwords, but this server has none");
            return Err(Failure::new(sqlstate::INVALID_AUTHORIZATION, message));
        }
        Ok(())
    }
}
