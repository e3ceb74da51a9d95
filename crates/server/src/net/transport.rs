//! The byte stream of a connection, plain or TLS.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::socket::Socket;

/// A socket with shared ownership: its session, and any thread that may end the session.
#[derive(Debug)]
pub struct SharedSocket(pub Arc<Socket>);

impl Read for SharedSocket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(into)
    }
}

impl Write for SharedSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The byte stream to and from a client. It is generic over readers and writers, so that tests need
/// no socket.
#[derive(Debug)]
pub enum Transport<S: Read + Write = SharedSocket> {
    /// Unencrypted.
    Plain(S),
    /// Encrypted.
    Tls(Box<StreamOwned<ServerConnection, S>>),
}

impl<S: Read + Write> Transport<S> {
    /// Performs the TLS handshake, and continues encrypted.
    pub fn into_tls(self, config: &Arc<ServerConfig>) -> io::Result<Transport<S>> {
        let Transport::Plain(mut socket) = self else {
            return Err(io::Error::other("TLS within TLS"));
        };
        let mut connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(Transport::Tls(Box::new(StreamOwned::new(connection, socket))))
    }

    /// Whether the stream is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self, Transport::Tls(_))
    }

    /// Reads available bytes, waiting for at least one; 0 at the end.
    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Transport::Plain(socket) => socket.read(into),
                Transport::Tls(stream) => stream.read(into),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Writes everything.
    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Transport::Plain(socket) => socket.write_all(bytes),
            Transport::Tls(stream) => {
                stream.write_all(bytes)?;
                stream.flush()
            }
        }
    }

    /// Sends close_notify, if the stream is encrypted.
    pub fn finish(&mut self) {
        if let Transport::Tls(stream) = self {
            stream.conn.send_close_notify();
            // The client may already be gone.
            let _ = stream.flush();
        }
    }
}
