//! A scripted client that shows the messages it receives, and a server for it.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cairn_server::{Builder, Limits, Observer, Server, Shutdown};
use cairn_sql::Database;
use cairn_vfs::{MemFs, thread};
use tempfile::TempDir;

/// A statement that takes far too long to wait for: it checks 27 000 million combinations.
pub const SLOW: &str = "SELECT count(*) FROM big x, big y, big z WHERE x.a + y.a > z.a * 2";

/// A server with a database in memory, on a socket file in a temporary directory. Dropping it ends
/// the server.
pub struct Host {
    folder: TempDir,
    pub database: Database,
    pub stop: Shutdown,
    running: Option<thread::JoinHandle<Result<(), cairn_server::Error>>>,
}

impl Host {
    pub fn new() -> Host {
        Host::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Host {
        Host::observed_by(limits, Observer::default())
    }

    pub fn observed_by(limits: Limits, observer: Observer) -> Host {
        Host::made_by(|builder, _| builder.limits(limits).observer(observer))
    }

    /// Starts a server. `make` configures the builder, and receives the temporary directory.
    pub fn made_by(make: impl FnOnce(Builder, &Path) -> Builder) -> Host {
        let database = Database::builder().fs(Arc::new(MemFs::new())).open("test.db").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let builder = Server::builder(database.clone()).socket(folder.path(), 1);
        let server = make(builder, folder.path()).bind().unwrap();
        let stop = server.shutdown_handle();
        let running = Some(thread::spawn("server", move || server.run()).unwrap());
        Host { folder, database, stop, running }
    }

    /// Creates the table of [`SLOW`], with 3000 rows.
    pub fn fill(&self) {
        let mut connection = self.database.connect();
        connection.execute("CREATE TABLE big (a int)", &[]).unwrap();
        let rows: Vec<String> = (0..3000).map(|number| format!("({number})")).collect();
        connection.execute(&format!("INSERT INTO big VALUES {}", rows.join(", ")), &[]).unwrap();
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join(".s.PGSQL.1")
    }

    /// Opens a connection that has not sent anything.
    pub fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.path()).unwrap();
        // So that no test waits forever.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client { stream, process: 0, secret: 0, settings: Vec::new() }
    }

    /// Opens a session.
    pub fn session(&self) -> Client {
        let mut client = self.connect();
        client.send_raw(&startup(&[("user", "ann"), ("database", "test")]));
        let told = client.until_ready();
        assert!(told.starts_with("R 0\n"), "{told}");
        client
    }

    /// Ends the server and returns the result of its run.
    pub fn end(mut self) -> Result<(), cairn_server::Error> {
        self.stop.shutdown();
        self.running.take().unwrap().join().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.shutdown();
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

/// Builds a startup message.
pub fn startup(settings: &[(&str, &str)]) -> Vec<u8> {
    let mut body = 196_608_i32.to_be_bytes().to_vec();
    for (name, value) in settings {
        body.extend(name.bytes().chain([0]).chain(value.bytes()).chain([0]));
    }
    body.push(0);
    untagged(&body)
}

pub fn untagged(body: &[u8]) -> Vec<u8> {
    [&(body.len() as i32 + 4).to_be_bytes()[..], body].concat()
}

pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &untagged(body)].concat()
}

pub fn text(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

pub fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &text(sql))
}

pub fn parse(name: &str, sql: &str, types: &[u32]) -> Vec<u8> {
    let count = (types.len() as u16).to_be_bytes();
    let types: Vec<u8> = types.iter().flat_map(|oid| oid.to_be_bytes()).collect();
    message(b'P', &[&text(name)[..], &text(sql), &count, &types].concat())
}

/// Builds a Bind message, with parameters and results as text, or as binary with `is_binary`.
pub fn bind(portal: &str, statement: &str, is_binary: bool, values: &[Option<&[u8]>]) -> Vec<u8> {
    let format = u16::from(is_binary).to_be_bytes();
    let mut body = [&text(portal)[..], &text(statement), &[0, 1], &format].concat();
    body.extend((values.len() as u16).to_be_bytes());
    for value in values {
        match value {
            None => body.extend((-1_i32).to_be_bytes()),
            Some(value) => {
                body.extend((value.len() as i32).to_be_bytes());
                body.extend(*value);
            }
        }
    }
    body.extend([0, 1]);
    body.extend(format);
    message(b'B', &body)
}

pub fn describe(kind: u8, name: &str) -> Vec<u8> {
    message(b'D', &[&[kind][..], &text(name)].concat())
}

pub fn close(kind: u8, name: &str) -> Vec<u8> {
    message(b'C', &[&[kind][..], &text(name)].concat())
}

pub fn execute(portal: &str, rows: i32) -> Vec<u8> {
    message(b'E', &[&text(portal)[..], &rows.to_be_bytes()].concat())
}

pub fn sync() -> Vec<u8> {
    message(b'S', &[])
}

pub fn flush() -> Vec<u8> {
    message(b'H', &[])
}

/// A connection.
pub struct Client {
    pub stream: UnixStream,
    pub process: i32,
    pub secret: i32,
    /// Reported settings that no test has taken yet, in order: `name=value`.
    pub settings: Vec<String>,
}

impl Client {
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub fn send(&mut self, messages: &[Vec<u8>]) {
        self.send_raw(&messages.concat());
    }

    /// Receives the next message; `None` when the server has closed the connection.
    pub fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        if self.stream.read_exact(&mut header).is_err() {
            return None;
        }
        let length = i32::from_be_bytes(header[1..].try_into().unwrap());
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body).ok()?;
        Some((header[0], body))
    }

    /// Receives messages up to one with this tag, or up to the end, and returns a line for each.
    /// Settings are left out.
    pub fn until(&mut self, last: u8) -> String {
        let mut told = String::new();
        while let Some((tag, body)) = self.receive() {
            if tag == b'K' {
                self.process = i32::from_be_bytes(body[..4].try_into().unwrap());
                self.secret = i32::from_be_bytes(body[4..].try_into().unwrap());
            } else if tag == b'S' {
                let text = String::from_utf8_lossy(&body);
                self.settings.push(text.trim_end_matches('\0').replacen('\0', "=", 1));
            } else {
                writeln!(told, "{}", show(tag, &body)).unwrap();
            }
            if tag == last {
                return told;
            }
        }
        told + "end\n"
    }

    pub fn until_ready(&mut self) -> String {
        self.until(b'Z')
    }

    /// Sends messages and returns the answer.
    pub fn ask(&mut self, messages: &[Vec<u8>]) -> String {
        self.send(messages);
        self.until_ready()
    }

    /// Sends a message to a server that may be gone, and returns the answer.
    pub fn try_ask(&mut self, message: &[u8]) -> String {
        match self.stream.write_all(message) {
            Ok(()) => self.until_ready(),
            Err(_) => "end\n".to_owned(),
        }
    }

    /// Runs statements.
    pub fn query(&mut self, sql: &str) -> String {
        self.ask(&[query(sql)])
    }

    /// Waits until the server has closed the connection.
    pub fn until_end(&mut self) -> String {
        self.until(0)
    }
}

/// Formats a message as a line: its tag and its essential contents.
fn show(tag: u8, body: &[u8]) -> String {
    let strings = |body: &[u8]| String::from_utf8_lossy(body).trim_end_matches('\0').replace('\0', " ");
    let number = |at: usize| i32::from_be_bytes(body[at..at + 4].try_into().unwrap());
    let tag_name = char::from(tag);
    match tag {
        b'R' => format!("R {}", number(0)),
        b'Z' => format!("Z {}", char::from(body[0])),
        b'C' => format!("C {}", strings(body)),
        b'E' | b'N' => {
            let fields = body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
            let shown: Vec<String> = fields
                .filter(|field| matches!(field[0], b'S' | b'C'))
                .map(|field| String::from_utf8_lossy(&field[1..]).into_owned())
                .collect();
            format!("{tag_name} {}", shown.join(" "))
        }
        b'T' => {
            let count = u16::from_be_bytes([body[0], body[1]]);
            let mut names = Vec::new();
            let mut rest = &body[2..];
            for _ in 0..count {
                let end = rest.iter().position(|byte| *byte == 0).unwrap();
                let oid = u32::from_be_bytes(rest[end + 7..end + 11].try_into().unwrap());
                names.push(format!("{}:{oid}", String::from_utf8_lossy(&rest[..end])));
                rest = &rest[end + 19..];
            }
            format!("T {}", names.join(" "))
        }
        b't' => format!(
            "t {}",
            body[2..]
                .chunks(4)
                .map(|oid| u32::from_be_bytes(oid.try_into().unwrap()).to_string())
                .collect::<Vec<_>>()
                .join(" ")
        ),
        b'D' => {
            let mut rest = &body[2..];
            let mut values = Vec::new();
            while let Some((length, after)) = rest.split_first_chunk::<4>() {
                let length = i32::from_be_bytes(*length);
                let (value, after) = after.split_at(usize::try_from(length).unwrap_or(0));
                values.push(match (length, std::str::from_utf8(value)) {
                    (-1, _) => "NULL".to_owned(),
                    (_, Ok(text)) if !text.contains(char::is_control) => text.to_owned(),
                    _ => value.iter().map(|byte| format!("{byte:02x}")).collect(),
                });
                rest = after;
            }
            format!("D {}", values.join("|"))
        }
        b'd' => format!("d {}", strings(body).trim_end()),
        _ => tag_name.to_string(),
    }
}
