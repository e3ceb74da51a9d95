//! Every command ends within a second of the first signal, whatever it waits for.

use std::collections::BTreeMap;

use crate::support::Scratch;

/// The input for which a command may wait forever.
enum Waits {
    /// None: the command only works, and a signal's default action ends it.
    Works,
    /// Standard input, with these arguments.
    Input(&'static str),
    /// It serves or measures until it is told to end, which has its own tests.
    Serves,
}

/// All commands. A new one must be added with the input that it waits for.
fn waits() -> BTreeMap<&'static str, Waits> {
    use Waits::{Input, Serves, Works};
    BTreeMap::from([
        ("advise", Input("-")),
        ("bench all", Serves),
        ("bench compare", Works),
        ("bench counts", Works),
        ("bench hash", Serves),
        ("bench history", Works),
        ("bench index", Serves),
        ("bench kv", Serves),
        ("bench pool", Serves),
        ("bench readme", Works),
        ("bench record", Works),
        ("bench render", Works),
        ("bench replay", Serves),
        ("bench report", Works),
        ("bench sql", Serves),
        ("completions", Works),
        ("hash append", Input("s.cairn - --format csv --key k --value v")),
        ("hash bench", Serves),
        ("hash build", Input("- --format csv -o new.cairn --key k --value v")),
        ("hash convert", Works),
        ("hash delete", Works),
        ("hash get", Works),
        ("hash index", Works),
        ("hash info", Works),
        ("hash mget", Input("s.cairn --keys -")),
        ("hash rewrite", Works),
        ("hash scan", Works),
        ("hash verify", Works),
        ("kv batch", Input("s -")),
        ("kv load", Input("s - --format csv --key k --value v")),
        ("kv put", Input("s a --value-file -")),
        ("man", Works),
        ("sim calibrate", Input("--db-bench - -o profile.json")),
        ("sim optimize", Input("- --vary options.write_buffer_size=1MiB,4MiB")),
        ("sim profiles", Works),
        ("sim run", Input("-")),
        ("sim sweep", Input("- --vary options.write_buffer_size=1MiB,4MiB")),
        ("sim ui", Serves),
        ("sim validate", Serves),
        ("sql", Input("my.db")),
        ("sql backup", Works),
        ("sql dump", Works),
        ("sql passwd", Input("users.txt alice")),
        ("sql serve", Serves),
        ("sql vacuum", Works),
        ("sql verify", Works),
        ("trace dump", Works),
        ("trace import", Input("- --format csv -o t")),
        ("trace record", Works),
        ("trace stats", Works),
        ("ui", Serves),
    ])
}

/// Collects the commands below one, as listed by its help; itself if it lists none.
fn commands(scratch: &Scratch, path: &str, found: &mut Vec<String>) {
    let help = scratch.run(&format!("{path} --help")).ended(0).text();
    let listed =
        help.split_once("Commands:\n").map(|(_, list)| list.split("\n\n").next().unwrap_or_default());
    let names = listed.into_iter().flat_map(str::lines).filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    let names: Vec<String> = names.collect();
    // The shell is a command itself and also has subcommands.
    if names.is_empty() || path == "sql" {
        found.push(path.to_owned());
    }
    for name in names {
        commands(scratch, format!("{path} {name}").trim(), found);
    }
}

/// Creates a store of each kind.
fn stores() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("a.csv", "k,v\na,1\n");
    scratch.run("hash build a.csv -o s.cairn --key k --value v").ended(0);
    scratch.run("kv put s a 1 --create").ended(0);
    scratch
}

/// Runs a command with a silent pipe as its input, and sends it a signal once it waits. Returns the
/// exit code and the milliseconds that it took to end.
fn ended_by(scratch: &Scratch, command: &str, signal: &str) -> (i32, u64) {
    let ran = scratch.shell(&format!(
        "set -m; rm -f idle; mkfifo idle; exec 3<>idle
        cairn {command} < idle > /dev/null 2>&1 3>&- & pid=$!
        for try in $(seq 300); do
            kill -0 $pid 2>/dev/null || break
            if grep -q '^State:.S' /proc/$pid/status && ls -l /proc/$pid/fd 2>/dev/null | grep -q idle; then break; fi
            sleep 0.01
        done
        sleep 0.1; before=$(date +%s%N); kill -{signal} $pid
        wait $pid; code=$?; echo $(( ($(date +%s%N) - before) / 1000000 )); exit $code"
    ));
    let millis = ran.text().trim().parse().unwrap_or_else(|_| panic!("{command}: {}", ran.err));
    (ran.code, millis)
}

/// Goal: a command that waits for input ends at the first signal with 128 + the signal, and leaves
/// no new files; no command is forgotten. Method: the tree of commands according to their help,
/// each of which must be listed with the input that it waits for; those that read standard input
/// get a silent pipe. A hang would last forever, so the limit is a second plus a margin for a busy
/// machine.
#[test]
fn commands_that_wait_for_input_end_at_once() {
    let scratch = stores();
    let mut found = Vec::new();
    commands(&scratch, "", &mut found);
    let waits = waits();
    for command in &found {
        // Other commands of these groups never wait for input.
        let is_known = waits.contains_key(command.as_str())
            || ["kv ", "kv backup "].iter().any(|group| command.starts_with(group));
        assert!(is_known, "{command}: say in this test what it waits for");
    }
    let names = |scratch: &Scratch| -> Vec<String> {
        let is_beside =
            |name: &String| name == "idle" || name.starts_with("my.db") || name.ends_with(".lock");
        scratch.names().into_iter().filter(|name| !is_beside(name)).collect()
    };
    let before = names(&scratch);
    // Each command gets one of the signals; with CAIRN_SOAK, all of them.
    let signals = [("TERM", 143), ("INT", 130), ("HUP", 129)];
    let soaks = std::env::var_os("CAIRN_SOAK").is_some_and(|value| value != "0");
    let mut chosen = (0..).map(|turn| match soaks {
        true => signals.to_vec(),
        false => vec![signals[turn % signals.len()]],
    });
    for (command, arguments) in waits.iter().filter_map(|(command, waits)| match waits {
        Waits::Input(arguments) => Some((command, arguments)),
        Waits::Works | Waits::Serves => None,
    }) {
        assert!(found.iter().any(|found| found == command), "{command} is no command");
        for (signal, code) in chosen.next().into_iter().flatten() {
            let (ended, millis) = ended_by(&scratch, &format!("{command} {arguments}"), signal);
            assert_eq!(ended, code, "{command} at SIG{signal}");
            assert!(millis < 5_000, "{command} at SIG{signal}: {millis} ms");
        }
        assert_eq!(names(&scratch), before, "{command}");
    }
    scratch.run("kv verify s").ended(0);
    scratch.run("hash verify s.cairn").ended(0);
}

/// Goal: opening a pipe without a writer is interrupted too, and so is a recording whose program
/// continues: it gets the signal forwarded. Method: a named pipe without a writer; a program that
/// waits, while only the command gets the first signal.
#[test]
fn signals_end_reads_of_pipes() {
    let scratch = stores();
    scratch.shell("mkfifo nobody").ended(0);
    for command in [
        "kv load s nobody --format csv",
        "hash build nobody --format csv -o new.cairn",
        "trace import nobody -o t",
    ] {
        for (signal, code) in [("TERM", 143), ("INT", 130)] {
            let (ended, millis) = ended_by(&scratch, command, signal);
            assert_eq!(ended, code, "{command} at SIG{signal}");
            assert!(millis < 5_000, "{command} at SIG{signal}: {millis} ms");
        }
    }
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let (ended, millis) = ended_by(&scratch, "trace record -o r -- sleep 1000", signal);
        assert_eq!(ended, code, "record at SIG{signal}");
        assert!(millis < 5_000, "record at SIG{signal}: {millis} ms");
    }
}
