//! Paths that are missing, of the wrong kind, or already in use. Every command reports them in the
//! same words.

use crate::support::Scratch;

/// The object that a command expects at a path.
#[derive(Clone, Copy)]
enum Expects {
    /// A file, with the message for a file of another kind.
    File(&'static str),
    /// A directory, with the message for a directory of another kind.
    Directory(&'static str),
    /// Either, with the messages for an unsuitable directory and for a file of another kind.
    Either(&'static str, &'static str),
}
use Expects::{Directory, Either, File};

/// Commands that read `PLACE`, their expectations, and the hint after the message for a missing
/// one.
#[rustfmt::skip]
const COMMANDS: &[(&str, Expects, &str)] = &[
    ("hash get PLACE k", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash mget PLACE k", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash scan PLACE", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash info PLACE", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash verify PLACE", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash append PLACE in.csv", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash delete PLACE k", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash index PLACE", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash rewrite PLACE", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash convert PLACE o.cairn", File("is not a constant store: it does not begin with CAIRNTBL"), ""),
    ("hash build PLACE --format csv -o o.cairn", File(", line 1: not text: expected a header line in UTF-8 that names the columns"), ""),
    ("kv load s PLACE --format csv --key k", File(", line 1: not text: expected a header line in UTF-8 that names the columns"), ""),
    ("kv get PLACE k", Directory("there is no store in PLACE"), ""),
    ("kv put PLACE k v", Directory("there is no store in PLACE; --create creates it"), "; --create creates it"),
    ("kv delete PLACE k", Directory("there is no store in PLACE"), ""),
    ("kv scan PLACE", Directory("there is no store in PLACE"), ""),
    ("kv batch PLACE", Directory("there is no store in PLACE; --create creates it"), "; --create creates it"),
    ("kv load PLACE in.csv --key k", Directory("there is no store in PLACE; --create creates it"), "; --create creates it"),
    ("kv dump PLACE --format csv", Directory("there is no store in PLACE"), ""),
    ("kv stats PLACE", Directory("there is no store in PLACE"), ""),
    ("kv compact PLACE", Directory("there is no store in PLACE"), ""),
    ("kv checkpoint PLACE copy", Directory("there is no store in PLACE"), ""),
    ("kv verify PLACE", Directory("there is no store in PLACE"), ""),
    ("kv repair PLACE", Directory("there is no store in PLACE"), ""),
    ("kv backup create PLACE b", Directory("there is no store in PLACE"), ""),
    ("kv backup list PLACE", Directory("there are no backups in PLACE"), ""),
    ("kv backup verify PLACE", Directory("there are no backups in PLACE"), ""),
    ("kv backup purge PLACE --keep 1", Directory("there are no backups in PLACE"), ""),
    ("kv restore PLACE copy", Directory("there are no backups in PLACE"), ""),
    ("trace stats PLACE", File("is not a trace: it does not begin with CAIRNTRC"), ""),
    ("trace dump PLACE", File("is not a trace: it does not begin with CAIRNTRC"), ""),
    ("bench replay PLACE --dbs cairn", File("is not a trace: it does not begin with CAIRNTRC"), ""),
    ("sim run --trace PLACE", File("is not a trace: it does not begin with CAIRNTRC"), ""),
    ("sim run PLACE", File(": not text: expected UTF-8"), ""),
    ("sim run --options PLACE", File(": not text: expected UTF-8"), ""),
    ("sim run --kv-options PLACE", File(": not text: expected UTF-8"), ""),
    ("sim sweep PLACE --vary seed=1,2", File(": not text: expected UTF-8"), ""),
    ("sim optimize PLACE --vary seed=1,2", File(": not text: expected UTF-8"), ""),
    ("advise PLACE", File(": not text: expected UTF-8"), ""),
    ("bench kv --ycsb-file PLACE", File(": not text: expected UTF-8"), ""),
    ("bench compare PLACE", Either("PLACE: there is no stored run in it", "is not a stored run: not text: expected UTF-8"), ""),
    ("bench record PLACE", Either("PLACE: there is no stored run in it", "is not a stored run: not text: expected UTF-8"), ""),
    ("bench readme --run PLACE", Either("PLACE: there is no stored run in it", "is not a stored run: not text: expected UTF-8"), ""),
    ("bench history --history PLACE", Directory("the history: there is no store in PLACE"), ": `cairn bench record` begins a history"),
    ("bench hash --data PLACE --key k", File(", line 1: not text: expected a header line in UTF-8 that names the columns"), ""),
];

/// The commands on databases, if they are built.
#[cfg(feature = "sql")]
#[rustfmt::skip]
const SQL: &[(&str, Expects, &str)] = &[
    ("sql PLACE --read-only -c VALUES(1)", File("is not a database: expected an empty file or a database file"), ""),
    ("sql verify PLACE", File("is not a database: expected an empty file or a database file"), ""),
    ("sql backup PLACE copy.db", File("is not a database: expected an empty file or a database file"), ""),
    ("sql vacuum PLACE", File("is not a database: expected an empty file or a database file"), ""),
    ("sql dump PLACE", File("is not a database: expected an empty file or a database file"), ""),
];
#[cfg(not(feature = "sql"))]
const SQL: &[(&str, Expects, &str)] = &[];

/// Returns bytes that no command recognizes, long enough that no header is reported as too short.
fn foreign() -> Vec<u8> {
    let mut bytes = vec![0xff; 9_500];
    bytes.extend(0..=255);
    bytes
}

/// Goal: every command that reads a path reports a missing one, a directory, a file and a file of
/// another kind in the same words, in one line, with exit code 1, and creates or changes nothing.
/// Method: each of them in place of the object that the command reads.
#[test]
fn missing_inputs_are_reported_in_the_same_words() {
    let scratch = Scratch::new();
    scratch.write("in.csv", "k,v\na,1\n");
    scratch.run("kv put s k v --create").ended(0);
    std::fs::create_dir(scratch.path("dir")).unwrap();
    scratch.write("foreign", foreign());
    let before = scratch.names();
    let mut wrong = Vec::new();
    for (command, expects, hint) in COMMANDS.iter().chain(SQL) {
        for place in ["nowhere", "dir", "foreign"] {
            let line = command.replace("PLACE", place);
            let ran = scratch.run(&line);
            let expected = match (place, expects) {
                ("nowhere", _) => format!("error: nowhere does not exist{hint}\n"),
                ("dir", File(_)) => "error: dir is a directory, expected a file\n".to_owned(),
                ("dir", Directory(told) | Either(told, _)) => {
                    format!("error: {}\n", told.replace("PLACE", "dir"))
                }
                (_, File(told) | Either(_, told)) if told.starts_with([',', ':']) => {
                    format!("error: foreign{told}\n")
                }
                (_, File(told) | Either(_, told)) => format!("error: foreign {told}\n"),
                (_, Directory(_)) => "error: foreign is a file, expected a directory\n".to_owned(),
            };
            if ran.code != 1 || ran.err != expected || !ran.out.is_empty() {
                wrong.push(format!("{line}: exit code {}\n  {expected}  {}", ran.code, ran.err));
            }
            if scratch.names() != before {
                wrong.push(format!("{line} left {:?}", scratch.names()));
            }
        }
    }
    assert_eq!(scratch.read("foreign"), foreign());
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Goal: empty and short files are reported like long ones of another kind, and no maintenance
/// command turns an empty file into a database.
#[test]
fn length_does_not_matter() {
    let scratch = Scratch::new();
    for (name, content) in [("empty", &b""[..]), ("short", b"name,capital\n"), ("long", &[b'x'; 9_500])] {
        scratch.write(name, content);
        scratch
            .run(&format!("hash get {name} k"))
            .failed(&[&format!("error: {name} is not a constant store: it does not begin with CAIRNTBL")]);
        scratch
            .run(&format!("trace stats {name}"))
            .failed(&[&format!("error: {name} is not a trace: it does not begin with CAIRNTRC")]);
        scratch
            .run(&format!("bench record {name} --history h"))
            .failed(&[&format!("error: {name} is not a stored run: line 1: ")]);
        #[cfg(feature = "sql")]
        for command in ["verify", "vacuum", "dump"] {
            scratch
                .run(&format!("sql {command} {name}"))
                .failed(&[&format!("error: {name} is no"), " database: "]);
        }
        assert_eq!(scratch.read(name), content);
    }
    assert_eq!(scratch.names(), ["empty", "long", "short"]);
}

/// Goal: a file where a directory should be created, and a missing parent directory of an output
/// file, are reported in the same words.
#[test]
fn existing_outputs_are_reported_in_the_same_words() {
    let scratch = Scratch::new();
    scratch.write("in.csv", "k,v\na,1\n");
    scratch.write("file", "text");
    scratch.run("kv put s k v --create").ended(0);
    for command in ["kv backup create s file", "kv checkpoint s file", "kv put file k v --create"] {
        scratch.run(command).failed(&["error: file is a file, expected a directory\n"]);
    }
    for command in ["hash build in.csv -o no/x.cairn --key k", "kv dump s --format csv -o no/x.csv"] {
        scratch.run(command).failed(&["error: no does not exist\n"]);
    }
    for command in ["trace import in.csv -o file", "trace record -o file -- true"] {
        scratch.run(command).failed(&["error: file already exists: choose another name, or remove it\n"]);
    }
    #[cfg(feature = "sql")]
    {
        scratch.run("sql a.db -c VALUES(1)").ended(0);
        scratch
            .run("sql backup a.db file")
            .failed(&["error: file already exists: choose another name, or remove it\n"]);
    }
}

/// Goal: the local page does not serve places that are missing or not stores, but may serve a
/// results directory that does not exist yet. Method: each place in turn; valid places with an
/// address that cannot be bound.
#[cfg(feature = "ui")]
#[test]
fn missing_places_are_not_served() {
    let scratch = Scratch::new();
    scratch.write("text.txt", "text");
    std::fs::create_dir(scratch.path("dir")).unwrap();
    for (line, told) in [
        ("nowhere", "error: nowhere does not exist\n"),
        (
            "text.txt",
            "error: text.txt is not a store: expected a kv, hash or sql store, a Sparkey pair, or a folder with stores\n",
        ),
        ("dir nowhere", "error: nowhere does not exist\n"),
        ("--results text.txt", "error: text.txt is a file, expected a directory\n"),
        ("--history text.txt", "error: text.txt is a file, expected a directory\n"),
        ("--watch dir", "error: dir is a directory, expected a file\n"),
    ] {
        scratch.run(&format!("ui {line} --port 0")).failed(&[told]);
    }
    // This machine does not have the address, so all earlier checks have passed.
    let ran = scratch.run("ui dir --watch nowhere --results new --listen 192.0.2.1 --port 0").ended(1);
    assert!(ran.err.starts_with("note: nowhere does not exist yet: "), "{}", ran.err);
    assert!(ran.err.contains("192.0.2.1"), "{}", ran.err);
}
