//! Bodies of the fuzz targets, which panic if something is wrong with their input. Tests call them
//! too.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use cairn_sql::ColumnType;
use cairn_vfs::{Fs, MemFs, OpenOptions};

use crate::access::Access;
use crate::auth::exchange::authenticate;
use crate::auth::scram::Verifier;
use crate::codec::frontend::Message;
use crate::net::transport::Transport;
use crate::net::wire::Wire;
use crate::startup::{Opened, open};
use crate::types::{self, binary, list, text};

/// A client that sends bytes in pieces of different lengths and discards the answers.
#[derive(Debug)]
pub struct Script<'a> {
    bytes: &'a [u8],
    turn: usize,
    sent: usize,
}

impl<'a> Script<'a> {
    /// Creates a client that sends these bytes and disconnects.
    pub fn new(bytes: &'a [u8]) -> Self {
        Script { bytes, turn: 0, sent: 0 }
    }
}

impl Read for Script<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        const PIECES: [usize; 5] = [1, 7, 4096, 3, 65_536];
        let count = PIECES[self.turn % PIECES.len()].min(into.len()).min(self.bytes.len());
        self.turn += 1;
        let (piece, rest) = self.bytes.split_at(count);
        if let Some(place) = into.get_mut(..count) {
            place.copy_from_slice(piece);
        }
        self.bytes = rest;
        Ok(count)
    }
}

impl Write for Script<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sent += bytes.len();
        // Answers stay small, so that attackers cannot use the server to flood another machine.
        assert!(self.sent < 1 << 20, "answers before log-in are small");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Processes the first messages of a connection, and a password exchange after them.
pub fn startup(data: &[u8]) {
    let path = Path::new("passwords");
    let fs: Arc<dyn Fs> = Arc::new(MemFs::new());
    let line = format!("ann:{}\n", Verifier::decoy(b"fuzz", "ann", None));
    let written = fs.open(path, OpenOptions::create()).and_then(|file| file.write_all_at(line.as_bytes(), 0));
    assert!(written.is_ok(), "a disk in memory takes what it is given");
    let access = Access {
        fs,
        password_file: Some(path.to_owned()),
        is_socket_trusted: false,
        tls: None,
        is_open: false,
        secret: [7; 32],
    };
    let Ok((mut wire, opened)) = open(Wire::new(Transport::Plain(Script::new(data))), None) else { return };
    if let Opened::Session(startup) = opened {
        let proven = authenticate(&mut wire, &access, &startup.user);
        assert!(proven.is_err(), "nobody guesses a key of 32 bytes");
    }
}

/// Fully decodes messages after log-in.
pub fn messages(data: &[u8]) {
    let mut wire = Wire::new(Transport::Plain(Script::new(data)));
    // BOUND: each message takes at least five bytes.
    while wire.receive(1 << 20).is_ok() {
        let Ok(message) = wire.message() else { continue };
        match message {
            Message::Parse(parse) => assert!(parse.types().count() <= 1 << 16),
            Message::Bind(bind) => {
                let count = bind.parameters().count();
                assert_eq!(count, usize::from(bind.parameter_count));
                for (at, value) in bind.parameters().enumerate() {
                    assert!(bind.result_formats.len() <= 1 << 16);
                    values(at, bind.parameter_formats.is_binary(at), value.unwrap_or_default());
                }
            }
            _ => {}
        }
    }
}

/// Decodes a parameter as a type that depends on its position, and encodes it again.
fn values(at: usize, is_binary: bool, bytes: &[u8]) {
    const TYPES: [u32; 25] = [
        0, 16, 17, 18, 19, 20, 21, 23, 25, 26, 114, 700, 701, 1042, 1043, 1082, 1083, 1114, 1186, 1700, 2950,
        3802, 1007, 1009, 2951,
    ];
    let type_oid = TYPES[at % TYPES.len()];
    let kind = types::kind_of(type_oid).unwrap_or(ColumnType::decimal(38, 10));
    let decoded = if is_binary { binary::decode(type_oid, &kind, bytes) } else { text::decode(&kind, bytes) };
    if let Ok(value) = decoded {
        let mut out = Vec::new();
        text::encode(&mut out, value.borrow());
        out.clear();
        match kind.element() {
            Some(element) => list::encode(&mut out, &element, &value.to_string()),
            None => binary::encode(&mut out, &kind, value.borrow()),
        }
        if is_binary && type_oid != 26 && type_oid != 3802 {
            let again = binary::decode(type_oid, &kind, &out).map(|value| format!("{value:?}"));
            assert_eq!(again, Ok(format!("{value:?}")), "what was read can be written and read");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Nearly valid messages: a real tag, and a length that usually fits the body.
    fn message() -> impl Strategy<Value = Vec<u8>> {
        let tag = prop::sample::select(b"QPBDECSHXdcfpFz".to_vec());
        let body = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..64),
            // Small numbers for Bind: names, formats, counts and lengths that usually fit.
            prop::collection::vec(prop::sample::select(vec![0_u8, 0, 0, 0, 1, 1, 2, 4, 8, 255]), 0..64),
        ];
        (tag, body, -2..3_i32).prop_map(|(tag, body, lie)| {
            let length = i32::try_from(body.len()).unwrap() + 4 + if lie.abs() == 2 { lie } else { 0 };
            [&[tag][..], &length.to_be_bytes(), &body].concat()
        })
    }

    fn startup_message() -> impl Strategy<Value = Vec<u8>> {
        let code =
            prop::sample::select(vec![196_608_i32, 196_610, 80_877_102, 80_877_103, 80_877_104, 131_072, 0]);
        let text = prop::sample::select(vec![
            "user",
            "ann",
            "database",
            "options",
            "-c a=b",
            "_pq_.x",
            "",
            "replication",
        ]);
        (code, prop::collection::vec(text, 0..8), prop::collection::vec(any::<u8>(), 0..8), 0..4_i32)
            .prop_map(|(code, words, garbage, lie)| {
                let mut body = code.to_be_bytes().to_vec();
                words.iter().for_each(|word| body.extend(word.bytes().chain([0])));
                if lie > 1 {
                    body.push(0);
                } else {
                    body.extend(garbage);
                }
                let length = i32::try_from(body.len()).unwrap() + 4 - i32::from(lie == 1);
                [&length.to_be_bytes()[..], &body].concat()
            })
    }

    /// Goal: no input of the committed corpus breaks the decoders. Method: every prefix of every
    /// file.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "files of the source tree")]
    fn corpus_is_harmless() {
        type Body = fn(&[u8]);
        let targets: [(&str, Body); 2] = [("pg_startup", startup), ("pg_messages", messages)];
        for (target, body) in targets {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
            let files: Vec<_> =
                std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert!(files.len() >= 4);
            for file in files {
                let bytes = std::fs::read(&file).unwrap();
                (0..=bytes.len()).for_each(|length| body(&bytes[..length]));
            }
        }
    }

    proptest! {
        #![proptest_config(crate::test_config::cases(2000))]

        /// Goal: no bytes make the server panic or hang, before log-in or after. Method: random
        /// bytes.
        #[test]
        fn any_bytes_are_harmless(data in prop::collection::vec(any::<u8>(), 0..512)) {
            startup(&data);
            messages(&data);
        }

        /// Goal: the same for nearly valid messages, which get further.
        #[test]
        fn near_messages_are_harmless(
            first in prop::collection::vec(startup_message(), 0..4),
            rest in prop::collection::vec(message(), 0..12),
        ) {
            let rest = rest.concat();
            startup(&[first.concat(), rest.clone()].concat());
            messages(&rest);
        }
    }
}
