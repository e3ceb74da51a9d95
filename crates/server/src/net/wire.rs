//! The buffers of a connection: messages are read whole, and answers are written together.
//!
//! ```text
//! bytes: | done | message being handled | more messages, the last in part | free |
//!               ^start                  ^start + length                   ^end
//! ```
//! Output is written when the next read might have to wait, or when it has grown large. An exchange
//! of one question and one answer thus takes one read and one write.

use std::io::{self, Read, Write};

use crate::codec::HEADER_BYTES;
use crate::codec::frontend::{self, Message};
use crate::error::ProtocolError;

use super::transport::{SharedSocket, Transport};

/// Initial size of the input buffer. It holds nearly all messages, which are small.
const INPUT_BYTES: usize = 16 << 10;
/// Output beyond this size is sent before the answer is complete.
const OUTPUT_BYTES: usize = 64 << 10;

/// The reason why no more messages can be read.
#[derive(Debug)]
pub enum ReadError {
    /// The client has gone, with or without Terminate, or the operating system has given up the
    /// connection.
    Disconnected,
    /// The client violated the protocol.
    Protocol(ProtocolError),
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        ReadError::Disconnected
    }
}

impl From<ProtocolError> for ReadError {
    fn from(error: ProtocolError) -> Self {
        ReadError::Protocol(error)
    }
}

/// The messages of a connection in both directions.
#[derive(Debug)]
pub struct Wire<S: Read + Write = SharedSocket> {
    transport: Transport<S>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// The current message: its tag, and its length including the header.
    tag: u8,
    length: usize,
    /// Pending output, to which messages are appended.
    pub out: Vec<u8>,
}

impl<S: Read + Write> Wire<S> {
    /// Creates a wire with empty buffers.
    pub fn new(transport: Transport<S>) -> Self {
        Wire {
            transport,
            bytes: vec![0; INPUT_BYTES],
            start: 0,
            end: 0,
            tag: 0,
            length: 0,
            out: Vec::with_capacity(INPUT_BYTES),
        }
    }

    /// Returns the byte stream below.
    pub fn transport(&self) -> &Transport<S> {
        &self.transport
    }

    /// Returns the tag of the message after the current one, if it has arrived.
    #[inline]
    pub fn peek_tag(&self) -> Option<u8> {
        self.bytes.get(self.start + self.length..self.end).and_then(|rest| rest.first().copied())
    }

    /// Waits for the next message, with a body of at most `bytes_max`, and returns its tag. Sends
    /// pending output before waiting.
    #[inline]
    pub fn receive(&mut self, bytes_max: usize) -> Result<u8, ReadError> {
        self.consume();
        loop {
            let here = self.bytes.get(self.start..self.end).unwrap_or_default();
            let mut wanted = HEADER_BYTES;
            if let Some((tag, body)) = frontend::header(here, bytes_max)? {
                wanted = HEADER_BYTES + body;
                if here.len() >= wanted {
                    (self.tag, self.length) = (tag, wanted);
                    return Ok(tag);
                }
            }
            self.fill(wanted)?;
        }
    }

    /// Returns the body of the current message.
    pub fn body(&self) -> &[u8] {
        let body = self.start + HEADER_BYTES.min(self.length)..self.start + self.length;
        self.bytes.get(body).unwrap_or_default()
    }

    /// Decodes the current message.
    pub fn message(&self) -> Result<Message<'_>, ProtocolError> {
        frontend::decode(self.tag, self.body())
    }

    /// Reads the first message of a connection, which has no tag. Its length counts itself.
    ///
    /// Errors: a length below 8 or above `bytes_max`.
    pub fn receive_untagged(&mut self, bytes_max: usize) -> Result<&[u8], ReadError> {
        self.consume();
        loop {
            let here = self.bytes.get(self.start..self.end).unwrap_or_default();
            let mut wanted = 4;
            if let Some(length) = here.first_chunk::<4>() {
                let length = i32::from_be_bytes(*length);
                wanted = usize::try_from(length)
                    .ok()
                    .filter(|length| (8..=bytes_max).contains(length))
                    .ok_or(ProtocolError::Length { length: length.into(), bytes_max })?;
                if here.len() >= wanted {
                    self.length = wanted;
                    return Ok(self.bytes.get(self.start + 4..self.start + wanted).unwrap_or_default());
                }
            }
            self.fill(wanted)?;
        }
    }

    fn consume(&mut self) {
        self.start += self.length;
        self.length = 0;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > INPUT_BYTES {
                self.bytes.truncate(INPUT_BYTES);
                self.bytes.shrink_to_fit();
            }
        }
    }

    /// Reads more bytes. `wanted` is the number of bytes from the start that the caller waits for.
    fn fill(&mut self, wanted: usize) -> Result<(), ReadError> {
        self.flush()?;
        if self.start + wanted > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.bytes.len() {
            // A length is only a claim, so the buffer grows only with the bytes that actually
            // arrive.
            self.bytes.resize((self.bytes.len() * 2).min(wanted.max(INPUT_BYTES)), 0);
        }
        let room = self.bytes.get_mut(self.end..).unwrap_or_default();
        match self.transport.read(room)? {
            0 => Err(ReadError::Disconnected),
            count => {
                self.end += count;
                Ok(())
            }
        }
    }

    /// Sends pending output if it has grown large.
    #[inline]
    pub fn flush_if_full(&mut self) -> io::Result<()> {
        if self.out.len() >= OUTPUT_BYTES { self.flush() } else { Ok(()) }
    }

    /// Sends all pending output.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let sent = self.transport.write_all(&self.out);
        self.out.clear();
        if self.out.capacity() > 4 * OUTPUT_BYTES {
            self.out.shrink_to(INPUT_BYTES);
        }
        sent
    }

    /// Switches to TLS. Errors: the handshake fails, or more bytes came in before the answer to the
    /// client's request. They are not encrypted, and an attacker may have injected them.
    pub fn into_tls(mut self, config: &std::sync::Arc<rustls::ServerConfig>) -> Result<Self, ReadError> {
        self.consume();
        if self.end > self.start {
            return Err(ReadError::Protocol(ProtocolError::Malformed {
                message: "data before the TLS handshake",
            }));
        }
        self.flush()?;
        self.transport = self.transport.into_tls(config)?;
        Ok(self)
    }

    /// Sends all pending output and closes the stream.
    pub fn finish(&mut self) {
        // The client may already be gone.
        let _ = self.flush();
        self.transport.finish();
    }
}
