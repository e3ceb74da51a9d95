//! The server side of SCRAM-SHA-256 (RFC 5802, RFC 7677).
//!
//! ```text
//! SaltedPassword  = PBKDF2(password, salt, iterations)
//! ClientKey       = HMAC(SaltedPassword, "Client Key")      StoredKey = SHA-256(ClientKey)
//! ServerKey       = HMAC(SaltedPassword, "Server Key")
//! AuthMessage     = client-first-bare , server-first , client-final-without-proof
//! ClientProof     = ClientKey XOR HMAC(StoredKey, AuthMessage)
//! ServerSignature = HMAC(ServerKey, AuthMessage)
//! ```
//! The server stores StoredKey and ServerKey. An attacker that steals these can neither log in nor
//! learn the password except by guessing.

use std::hint::black_box;
use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use zeroize::Zeroizing;

/// Iterations of new verifiers: the minimum of RFC 7677, as in PostgreSQL.
pub const ITERATIONS: u32 = 4096;
/// Bytes of a salt.
const SALT_BYTES: usize = 16;
/// Bytes of randomness in a nonce.
const NONCE_BYTES: usize = 18;
const KEY_BYTES: usize = 32;

/// The name of the mechanism.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// The name of the mechanism with channel binding to the server's certificate.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The data that is stored for a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    iterations: NonZeroU32,
    salt: Vec<u8>,
    stored_key: [u8; KEY_BYTES],
    server_key: [u8; KEY_BYTES],
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Verifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

/// The operating system could not provide random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system provides no randomness")]
pub struct NoRandomness;

/// Fills `bytes` with random numbers for secrets.
pub fn random(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    SystemRandom::new().fill(bytes).map_err(|_| NoRandomness)
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_BYTES] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    let mut tag = [0; KEY_BYTES];
    tag.copy_from_slice(context.sign().as_ref());
    tag
}

/// Compares in constant time, so that the time does not reveal where the values differ.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
    one.len() == other.len() && black_box(difference) == 0
}

impl Verifier {
    /// Creates a verifier with a new salt. The password is prepared by SASLprep (RFC 4013), or used
    /// as it is if SASLprep forbids it, as all PostgreSQL clients do.
    pub fn new(password: &str) -> Result<Verifier, NoRandomness> {
        let mut salt = vec![0; SALT_BYTES];
        random(&mut salt)?;
        Ok(Verifier::with_salt(password, salt, NonZeroU32::new(ITERATIONS).unwrap_or(NonZeroU32::MIN)))
    }

    fn with_salt(password: &str, salt: Vec<u8>, iterations: NonZeroU32) -> Verifier {
        let prepared = Zeroizing::new(stringprep::saslprep(password).unwrap_or(password.into()).into_owned());
        let mut salted = Zeroizing::new([0; KEY_BYTES]);
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, prepared.as_bytes(), &mut *salted);
        let client_key = Zeroizing::new(hmac(&*salted, &[b"Client Key"]));
        let mut stored_key = [0; KEY_BYTES];
        stored_key.copy_from_slice(digest::digest(&digest::SHA256, &*client_key).as_ref());
        Verifier { iterations, salt, stored_key, server_key: hmac(&*salted, &[b"Server Key"]) }
    }

    /// Creates a verifier that no password matches, always the same for the same name, so that
    /// attackers cannot find out which users exist. `cost` is the number of iterations and the
    /// length of the salt; `None` for those of [`Verifier::new`].
    pub fn decoy(secret: &[u8], user: &str, cost: Option<(NonZeroU32, usize)>) -> Verifier {
        let usual = (NonZeroU32::new(ITERATIONS).unwrap_or(NonZeroU32::MIN), SALT_BYTES);
        let (iterations, salt_bytes) = cost.unwrap_or(usual);
        let salt = hmac(secret, &[b"salt", user.as_bytes()]);
        Verifier {
            iterations,
            salt: salt.iter().copied().cycle().take(salt_bytes).collect(),
            stored_key: hmac(secret, &[b"stored", user.as_bytes()]),
            server_key: hmac(secret, &[b"server", user.as_bytes()]),
        }
    }

    /// Returns the number of iterations and the length of the salt in bytes. Clients see both.
    pub fn cost(&self) -> (NonZeroU32, usize) {
        (self.iterations, self.salt.len())
    }

    /// Parses PostgreSQL's format: `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`.
    pub fn parse(text: &str) -> Option<Verifier> {
        let (mechanism, rest) = text.split_once('$')?;
        let (first, keys) = rest.split_once('$')?;
        let (iterations, salt) = first.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let key = |text: &str| <[u8; KEY_BYTES]>::try_from(BASE64.decode(text).ok()?).ok();
        let verifier = Verifier {
            iterations: iterations.parse().ok()?,
            salt: BASE64.decode(salt).ok().filter(|salt| !salt.is_empty())?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        };
        (mechanism == MECHANISM).then_some(verifier)
    }
}

impl std::fmt::Display for Verifier {
    /// Formats a verifier as PostgreSQL stores it in `pg_authid`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [salt, stored_key, server_key] =
            [&self.salt[..], &self.stored_key, &self.server_key].map(|bytes| BASE64.encode(bytes));
        write!(f, "{MECHANISM}${}:{salt}${stored_key}:{server_key}", self.iterations)
    }
}

/// The reason for a failed exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The message is not valid SCRAM.
    Malformed(&'static str),
    /// The password is wrong.
    WrongPassword,
}

/// The server's state of an exchange after the client's first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    nonce: String,
    client_first_bare: String,
    server_first: String,
    /// The value that the client must repeat: its header, and the channel binding data.
    binding: Vec<u8>,
}

impl Exchange {
    /// Processes the client's first message. `end_point` is the digest of the certificate if the
    /// client chose the mechanism with channel binding; `could_bind` says whether that was offered.
    pub fn start(
        verifier: Verifier,
        client_first: &str,
        end_point: Option<&[u8]>,
        could_bind: bool,
    ) -> Result<Exchange, Refusal> {
        let mut parts = client_first.splitn(3, ',');
        let (flag, authzid, bare) = (parts.next(), parts.next(), parts.next());
        let (Some(flag), Some(authzid), Some(bare)) = (flag, authzid, bare) else {
            return Err(Refusal::Malformed("expected three parts in the first message"));
        };
        match (flag, end_point) {
            ("n", None) => {}
            ("y", None) if !could_bind => {}
            ("y", None) => {
                return Err(Refusal::Malformed(
                    "The client supports SCRAM channel binding but thinks the server does not.  \
                     However, this server does support channel binding.",
                ));
            }
            ("p=tls-server-end-point", Some(_)) => {}
            _ => return Err(Refusal::Malformed("the channel binding does not match the mechanism")),
        }
        if !authzid.is_empty() {
            return Err(Refusal::Malformed("an identity other than the user's is not accepted"));
        }
        let mut attributes = bare.split(',');
        let user = attributes.next().and_then(|part| part.strip_prefix("n="));
        let client_nonce = attributes.next().and_then(|part| part.strip_prefix("r="));
        let (Some(_), Some(client_nonce)) = (user, client_nonce.filter(|nonce| is_nonce(nonce))) else {
            return Err(Refusal::Malformed("expected a user and a nonce in the first message"));
        };
        let mut random_bytes = [0; NONCE_BYTES];
        random(&mut random_bytes).map_err(|_| Refusal::Malformed("no randomness"))?;
        let nonce = format!("{client_nonce}{}", BASE64.encode(random_bytes));
        let server_first = format!("r={nonce},s={},i={}", BASE64.encode(&verifier.salt), verifier.iterations);
        let mut binding = format!("{flag},,").into_bytes();
        binding.extend_from_slice(end_point.unwrap_or_default());
        Ok(Exchange { verifier, nonce, client_first_bare: bare.to_owned(), server_first, binding })
    }

    /// Returns the server's first message.
    pub fn challenge(&self) -> &str {
        &self.server_first
    }

    /// Processes the client's final message. Returns the server's final message, which proves to
    /// the client that the server knows the verifier.
    pub fn finish(&self, client_final: &str) -> Result<String, Refusal> {
        let Some((without_proof, proof)) = client_final.rsplit_once(",p=") else {
            return Err(Refusal::Malformed("expected a proof at the end of the last message"));
        };
        let mut attributes = without_proof.split(',');
        let binding = attributes.next().and_then(|part| part.strip_prefix("c="));
        let nonce = attributes.next().and_then(|part| part.strip_prefix("r="));
        if binding.and_then(|text| BASE64.decode(text).ok()).is_none_or(|bytes| bytes != self.binding) {
            return Err(Refusal::Malformed("the channel binding does not match"));
        }
        if nonce.is_none_or(|nonce| !is_same(nonce.as_bytes(), self.nonce.as_bytes())) {
            return Err(Refusal::Malformed("the nonce does not match"));
        }
        let Some(proof) = BASE64.decode(proof).ok().and_then(|proof| <[u8; KEY_BYTES]>::try_from(proof).ok())
        else {
            return Err(Refusal::Malformed("the proof is not 32 bytes in base64"));
        };
        let parts = [&self.client_first_bare, ",", &self.server_first, ",", without_proof];
        let message: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        let signature = hmac(&self.verifier.stored_key, &message);
        let client_key =
            Zeroizing::new(std::array::from_fn::<u8, KEY_BYTES, _>(|at| proof[at] ^ signature[at]));
        if !is_same(digest::digest(&digest::SHA256, &*client_key).as_ref(), &self.verifier.stored_key) {
            return Err(Refusal::WrongPassword);
        }
        Ok(format!("v={}", BASE64.encode(hmac(&self.verifier.server_key, &message))))
    }
}

/// Whether a text is a nonce by RFC 5802: printable, without commas. Its length is bounded by that
/// of messages before authentication.
fn is_nonce(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21..=0x2b | 0x2d..=0x7e))
}

#[cfg(test)]
mod tests;
