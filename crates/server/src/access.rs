//! Access control: which clients are admitted, and how.

use std::path::PathBuf;
use std::sync::Arc;

use cairn_vfs::Fs;

use crate::error::Failure;
use crate::net::socket::Peer;
use crate::sqlstate;
use crate::tls::Tls;

/// The conditions under which a client is admitted.
#[derive(Debug)]
pub struct Access {
    /// The file system of the password file.
    pub fs: Arc<dyn Fs>,
    /// The file of users and their verifiers; `None` admits every user.
    pub password_file: Option<PathBuf>,
    /// Whether clients of the socket file need no password even if there is a password file. The
    /// operating system controls who can open it.
    pub is_socket_trusted: bool,
    /// TLS, if it is offered.
    pub tls: Option<Tls>,
    /// Whether other machines may connect without TLS or passwords.
    pub is_open: bool,
    /// The key for decoys, if the password file has none.
    pub secret: [u8; 32],
}

impl Access {
    /// Whether a client has to authenticate.
    pub fn needs_password(&self, peer: Peer) -> bool {
        self.password_file.is_some() && !(peer == Peer::Unix && self.is_socket_trusted)
    }

    /// Errors: no user may connect from this peer in this way.
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
