//! TLS: certificate and key, from files or self-signed, and the data for channel binding of a
//! password exchange.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::{Fs, OpenOptions};
use ring::digest;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::Error;

/// The largest file that is read; larger than any chain of certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The TLS configuration of the server.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The configuration of handshakes.
    pub config: Arc<ServerConfig>,
    /// The digest of the certificate for `tls-server-end-point` (RFC 5929).
    pub end_point: Vec<u8>,
}

impl Tls {
    /// Loads a chain of certificates, and the key of the first one, from PEM files.
    pub fn from_files(fs: &dyn Fs, certificate: &Path, key: &Path) -> Result<Tls, Error> {
        let refuse =
            |path: &Path, why: &dyn std::fmt::Display| Error::Tls(format!("{}: {why}", path.display()));
        let pem = read(fs, certificate)?;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<_, _>>()
            .map_err(|error| refuse(certificate, &error))?;
        if chain.is_empty() {
            return Err(refuse(certificate, &"the file contains no certificate"));
        }
        let pem = zeroize::Zeroizing::new(read(fs, key)?);
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| refuse(key, &error))?;
        Tls::new(chain, key)
    }

    /// Creates a self-signed certificate for these names, new at every start. Clients can trust it
    /// only by comparing its fingerprint.
    pub fn self_made(names: Vec<String>) -> Result<Tls, Error> {
        let made =
            rcgen::generate_simple_self_signed(names).map_err(|error| Error::Tls(error.to_string()))?;
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        Tls::new(vec![made.cert.der().clone()], key.into())
    }

    /// Creates the configuration from certificates and key in memory.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Tls, Error> {
        let end_point = chain.first().map(|first| end_point_digest(first)).unwrap_or_default();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map(|builder| builder.with_no_client_auth())
            .and_then(|builder| builder.with_single_cert(chain, key))
            .map_err(|error| Error::Tls(error.to_string()))?;
        Ok(Tls { config: Arc::new(config), end_point })
    }

    /// Returns the digest in hexadecimal, for people to compare.
    pub fn fingerprint(&self) -> String {
        self.end_point.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Reads a small file completely.
pub fn read(fs: &dyn Fs, path: &Path) -> Result<Vec<u8>, Error> {
    let file = fs.open(path, OpenOptions::read())?;
    let length = file.len()?;
    if length > FILE_BYTES_MAX {
        return Err(Error::Settings(format!("{}: file too large: {length} bytes", path.display())));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Returns the digest by RFC 5929: with the hash function of the certificate's signature, or with
/// SHA-256 if that is MD5 or SHA-1, or there is none.
fn end_point_digest(certificate: &[u8]) -> Vec<u8> {
    // The prefixes of the object identifiers of sha384With..., RSASSA-PSS, ecdsa-with-SHA384,
    // id-sha384 and so on (RFC 4055, RFC 5758). The last byte tells them apart.
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    const HASH: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
    let (identifier, parameters) = signature_algorithm(certificate).unwrap_or_default();
    let pss_hash = || pss_hash(parameters).and_then(|hash| hash.strip_prefix(HASH));
    let algorithm = match (identifier.strip_prefix(RSA), identifier.strip_prefix(ECDSA)) {
        (Some([10]), _) if matches!(pss_hash(), Some([2])) => &digest::SHA384,
        (Some([10]), _) if matches!(pss_hash(), Some([3])) => &digest::SHA512,
        (Some([12]), _) | (_, Some([3])) => &digest::SHA384,
        (Some([13]), _) | (_, Some([4])) => &digest::SHA512,
        _ => &digest::SHA256,
    };
    digest::digest(algorithm, certificate).as_ref().to_vec()
}

/// Returns the object identifier and the bytes after it in `SEQUENCE { tbsCertificate SEQUENCE,
/// signatureAlgorithm SEQUENCE { OID, ... }, ... }`.
fn signature_algorithm(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (outer, _) = element(certificate, 0x30)?;
    let (_, after) = element(outer, 0x30)?;
    let (algorithm, _) = element(after, 0x30)?;
    element(algorithm, 0x06)
}

/// Returns the hash function in the parameters of RSASSA-PSS: `SEQUENCE { [0] SEQUENCE { OID, ...
/// }, ... }`. If absent, it is SHA-1.
fn pss_hash(parameters: &[u8]) -> Option<&[u8]> {
    let (parameters, _) = element(parameters, 0x30)?;
    let (hash, _) = element(parameters, 0xa0)?;
    let (algorithm, _) = element(hash, 0x30)?;
    element(algorithm, 0x06).map(|(identifier, _)| identifier)
}

/// Returns the content of a DER element with this tag, and the bytes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..0x80 => (usize::from(first), rest),
        _ => {
            let (digits, rest) =
                rest.split_at_checked(usize::from(first & 0x7f)).filter(|(d, _)| d.len() <= 4)?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
        }
    };
    if found == tag { rest.split_at_checked(length) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the handshake accepts a self-signed certificate, and its signature algorithm is found.
    /// Method: rcgen signs with ECDSA and SHA-256, whose identifier ends with 2.
    #[test]
    fn a_self_made_certificate_is_understood() {
        let tls = Tls::self_made(vec!["localhost".to_owned()]).unwrap();
        assert_eq!(tls.fingerprint().len(), 64);
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (identifier, _) = signature_algorithm(made.cert.der()).unwrap();
        assert_eq!(identifier, [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]);
    }

    /// Goal: the digest for channel binding uses the hash function of the certificate's signature.
    /// Method: minimal certificates with each algorithm; the length of the digest.
    #[test]
    fn the_digest_is_that_of_the_signature() {
        let der = |tag: u8, parts: &[&[u8]]| {
            let content = parts.concat();
            [&[tag, u8::try_from(content.len()).unwrap()][..], &content].concat()
        };
        let certificate = |algorithm: &[&[u8]]| der(0x30, &[&der(0x30, &[]), &der(0x30, algorithm)]);
        let rsa = |last: u8| der(0x06, &[&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last]]);
        let null = der(0x05, &[]);
        let bytes = |algorithm: &[&[u8]]| end_point_digest(&certificate(algorithm)).len();
        for (last, expected) in [(5, 32), (11, 32), (12, 48), (13, 64)] {
            assert_eq!(bytes(&[&rsa(last), &null]), expected, "{last}");
        }
        for (last, expected) in [(1, 32), (2, 48), (3, 64)] {
            let hash = der(0x06, &[&[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, last]]);
            let parameters = der(0x30, &[&der(0xa0, &[&der(0x30, &[&hash, &null])])]);
            assert_eq!(bytes(&[&rsa(10), &parameters]), expected, "{last}");
        }
        assert_eq!(bytes(&[&rsa(10), &der(0x30, &[])]), 32);
    }

    /// Goal: no bytes break the parser of certificates. Method: every prefix of a certificate, and
    /// wrong lengths.
    #[test]
    fn damaged_certificates_are_no_trouble() {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        for length in 0..made.cert.der().len() {
            let _ = signature_algorithm(&made.cert.der()[..length]);
        }
        assert_eq!(element(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 1], 0x30), None);
        assert_eq!(element(&[0x30, 0x89, 1, 1, 1, 1, 1, 1, 1, 1, 1], 0x30), None);
    }
}
