//! The local page's server: access control, paths, reports of damage, and side effects.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::Value;

use crate::support::Scratch;

/// The timeout for any expected event.
const WAIT: Duration = Duration::from_secs(20);

/// A server over a scratch directory.
struct Server {
    child: Child,
    address: String,
    token: String,
}

impl Server {
    fn start(scratch: &Scratch, arguments: &str) -> Server {
        Server::start_as(scratch, &format!("ui {arguments}"))
    }

    /// Starts `cairn ui`, or `cairn sim ui`, which has no token.
    fn start_as(scratch: &Scratch, line: &str) -> Server {
        Server::of(scratch.command(&format!("{line} --port 0")))
    }

    fn of(mut command: Command) -> Server {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().next().unwrap().strip_prefix("http://").unwrap();
        let (address, token) = url.split_once("/?token=").unwrap_or((url, ""));
        Server { address: address.to_owned(), token: token.to_owned(), child }
    }

    /// Requests the frames of a simulation with a million flushes between two frames, and returns
    /// once it runs.
    fn begin_simulation(&self, path: &str) -> TcpStream {
        // Few keys, because each flush of a few writes must contain some tracked ones.
        let workload = "%7B%22keys%22:1000,%22traffic%22:%7B%22kind%22:%22unlimited%22%7D%7D";
        let options = "%7B%22write_buffer_size%22:4096,%22target_file_size_base%22:4096,\
                       %22max_bytes_for_level_base%22:4096,%22block_size%22:256%7D";
        let config =
            format!("%7B%22duration_secs%22:2592000,%22workload%22:{workload},%22options%22:{options}%7D");
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "GET {path}?config={config} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.address, self.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
        self.wait_for_simulations(path, 1);
        stream
    }

    /// Waits until `count` simulations run below a path, according to the server's metrics.
    #[track_caller]
    fn wait_for_simulations(&self, path: &str, count: usize) {
        let line = format!("\ncairn_sim_running {count}\n");
        let metrics = format!("GET {}", path.replace("/api/stream", "/metrics"));
        let bearer = format!("Bearer {}", self.token);
        let start = Instant::now();
        loop {
            let (status, _, text) = self.send(&metrics, &[("Authorization", &bearer)], "");
            assert_eq!(status, 200, "{text}");
            if text.contains(&line) {
                return;
            }
            assert!(start.elapsed() < WAIT, "not within {WAIT:?}: {count} simulations, {text}");
        }
    }

    /// Starts a benchmark and returns its process id.
    fn begin_benchmark(&self) -> u32 {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("Authorization", bearer.as_str()), ("x-cairn", "test")];
        let (status, _, said) = self.send("POST /api/jobs", &headers, r#"{"suite":"pool"}"#);
        assert_eq!(status, 200, "{said}");
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        std::fs::read_to_string(children).unwrap().trim().parse().unwrap()
    }

    /// Ends the server with a signal, as Ctrl-C and service managers do. Returns how long it took.
    fn end(&mut self, signal: &str) -> Duration {
        self.end_by(signal, &self.child.id().to_string())
    }

    /// Sends a signal that ends the server to a process or group. Returns how long it took.
    fn end_by(&mut self, signal: &str, to: &str) -> Duration {
        let process = Process::of(self.child.id());
        let start = Instant::now();
        kill(signal, to);
        assert!(process.ends(), "the server goes on for {WAIT:?}");
        let took = start.elapsed();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        took
    }

    /// Sends a request and returns status, headers and body of the response.
    fn send(&self, head: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut request =
            format!("{head} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if headers.iter().all(|(name, _)| *name != "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_ascii_lowercase(), body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let bearer = format!("Bearer {}", self.token);
        let (status, _, body) = self.send(&format!("GET {path}"), &[("Authorization", &bearer)], "");
        (status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a key-value store, a folder with a constant store, a damaged one and another file, and a
/// store next to them that is not named on the command line.
fn stores() -> Scratch {
    let scratch = Scratch::new();
    let rows = (0..3_000).fold("key,value\n".to_owned(), |csv, n| csv + &format!("key{n:05},value {n}\n"));
    scratch.write("a.csv", &rows);
    scratch.run("kv load places a.csv --key key --value value --create --durability memory").ended(0);
    std::fs::create_dir(scratch.path("folder")).unwrap();
    scratch.run("hash build a.csv -o folder/a.cairn --key key --value value").ended(0);
    scratch.run("hash build a.csv -o secret.cairn --key key --value value").ended(0);
    let mut bytes = scratch.read("folder/a.cairn");
    bytes[50] ^= 1;
    scratch.write("folder/damaged.cairn", &bytes);
    scratch.write("folder/notes.txt", "no store");
    std::os::unix::fs::symlink(scratch.path("secret.cairn"), scratch.path("folder/link.cairn")).unwrap();
    scratch
}

/// Goal: no request is answered without the token or with another site's host name, and requests
/// with side effects also need a header. Method: every route in each way; tokens that are nearly
/// right; the cookie that the first opening sets.
#[test]
fn requests_need_the_token() {
    let scratch = stores();
    let server = Server::start(&scratch, "places");
    let bearer = format!("Bearer {}", server.token);
    let (most, last) = server.token.split_at(server.token.len() - 1);
    let nearly = format!("Bearer {most}{}", if last == "0" { "1" } else { "0" });
    for path in [
        "/",
        "/app.js",
        "/api/start",
        "/api/inspect?place=0",
        "/api/jobs",
        "/report?run=a",
        "/sim/",
        "/sim/api/start",
        "/no",
    ] {
        let get = format!("GET {path}");
        assert_eq!(server.send(&get, &[], "").0, 401, "{path}");
        assert_eq!(server.send(&get, &[("Authorization", &nearly)], "").0, 401, "{path}");
        for host in ["evil.example", "localhost.evil.example", ""] {
            assert_eq!(server.send(&get, &[("Authorization", &bearer), ("Host", host)], "").0, 403, "{path}");
        }
    }
    let (status, head, _) = server.send(&format!("GET /?token={}", server.token), &[], "");
    assert_eq!(status, 200);
    for part in
        ["set-cookie: cairn-ui-", "httponly; samesite=strict", "default-src 'none'", "nosniff", "no-referrer"]
    {
        assert!(head.contains(part), "{part}: {head}");
    }
    let port = server.address.rsplit(':').next().unwrap();
    let cookie = format!("other=1; cairn-ui-{port}={}", server.token);
    assert_eq!(server.send("GET /api/start", &[("Cookie", &cookie)], "").0, 200);
    assert_eq!(server.send("POST /api/jobs", &[("Cookie", &cookie)], "{}").0, 403);
    assert_eq!(server.send("POST /sim/api/export", &[("Cookie", &cookie)], "{}").0, 403);
}

/// Goal: pages of other sites cannot start simulations on either server; programs can, and links
/// from anywhere lead to the page. Method: requests as forms, images and scripts of another site
/// send them, and as our page and programs do.
#[test]
fn other_sites_cannot_start_simulations() {
    let scratch = Scratch::new();
    for (line, below) in [("sim ui", ""), ("ui", "/sim")] {
        let server = Server::start_as(&scratch, line);
        let bearer = format!("Bearer {}", server.token);
        let ask = |head: &str, headers: &[(&str, &str)], body: &str| {
            let (method, path) = head.split_once(' ').unwrap();
            let headers = [&[("Authorization", bearer.as_str())], headers].concat();
            let (status, _, said) = server.send(&format!("{method} {below}{path}"), &headers, body);
            (status, said)
        };
        let (ours, text) = (("x-cairn", "test"), ("Content-Type", "text/plain"));
        let site = |site: &'static str| ("Sec-Fetch-Site", site);
        let sweep = r#"{"config":{"duration_secs":60},"vary":["seed=1"]}"#;
        for (path, body) in [("sweep", sweep), ("export", r#"{"config":{}}"#), ("import", "")] {
            let head = format!("POST /api/{path}");
            for headers in [&[text][..], &[text, site("cross-site")], &[ours, site("same-site")]] {
                let (status, said) = ask(&head, headers, body);
                let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{head}: {said:?}"));
                assert!(status == 403 && said["error"].is_string(), "{line}, {head}, {headers:?}: {said}");
            }
        }
        for headers in [&[ours][..], &[ours, text, site("same-origin")]] {
            assert_eq!(ask("POST /api/sweep", headers, sweep).0, 200, "{line}, {headers:?}");
        }
        let stream = "GET /api/stream?config=%7B%22duration_secs%22:60%7D";
        for (head, from, status) in [
            (stream, "cross-site", 403),
            (stream, "same-site", 403),
            (stream, "same-origin", 200),
            ("GET /api/start", "cross-site", 403),
            ("GET /api/start", "none", 200),
            ("GET /", "cross-site", 200),
        ] {
            assert_eq!(ask(head, &[site(from)], "").0, status, "{line}, {head}, {from}");
        }
        assert_eq!(ask(stream, &[], "").0, 200, "{line}");
    }
}

/// Goal: only named places can be inspected. Method: names that lead out of the folder, a link, a
/// file that is not named, runs outside of the results directory.
#[test]
fn paths_cannot_leave_a_folder() {
    let scratch = stores();
    scratch.write("a.json", "{}");
    let server = Server::start(&scratch, "places folder --results runs");
    let (_, places) = server.get("/api/places");
    let entries: Vec<&str> =
        places[1]["entries"].as_array().unwrap().iter().map(|it| it["entry"].as_str().unwrap()).collect();
    assert_eq!(entries, ["a.cairn", "damaged.cairn"]);
    for entry in ["../secret.cairn", "..", ".", "link.cairn", "%2Fetc%2Fpasswd", "a.cairn%2F..", "%00"] {
        let (status, said) = server.get(&format!("/api/inspect?place=1&entry={entry}"));
        assert_eq!((status, said["error"].is_string()), (404, true), "{entry}");
    }
    assert_eq!(server.get("/api/inspect?place=0&entry=CURRENT").0, 400);
    for (path, status) in
        [("/api/inspect?place=2", 404), ("/api/inspect?place=-1", 400), ("/api/inspect", 400)]
    {
        assert_eq!(server.get(path).0, status, "{path}");
    }
    for run in ["../a.json", "a.json", "%2Fetc%2Fpasswd", "stored/../../a.json"] {
        assert_eq!(server.get(&format!("/report?run={run}")).0, 404, "{run}");
    }
}

/// Goal: stores are shown, damage is reported with file and offset, and nothing is modified.
/// Method: every view of each store, and all files' bytes before and after.
#[test]
fn inspection_does_not_change_stores() {
    let scratch = stores();
    let before = files(&scratch);
    let server = Server::start(&scratch, "places folder");
    let (status, store) = server.get("/api/inspect?place=0");
    assert_eq!(
        (status, &store["kind"], &store["open_elsewhere"]),
        (200, &"kv".into(), &Value::Bool(false)),
        "{store}"
    );
    let files_of = store["keyspaces"][0]["files"].as_array().unwrap();
    let number = files_of[0]["number"].as_u64().unwrap();
    let (_, blocks) = server.get(&format!("/api/inspect/blocks?place=0&space=default&table={number}"));
    assert_eq!(blocks["blocks"][0]["first"]["text"], "key00000");
    let (_, entries) = server.get("/api/inspect/entries?place=0&space=default&key=key01000");
    assert_eq!(entries["entries"][0]["value"]["text"], "value 1000");
    assert!(entries["next"].is_string());
    let (_, store) = server.get("/api/inspect?place=1&entry=a.cairn");
    assert!(store["generations"][0]["fill"]["share"].as_f64().unwrap() > 0.3, "{store}");
    let (_, found) = server.get("/api/inspect/get?place=1&entry=a.cairn&hex=6b65793030303037");
    assert_eq!(found["value"]["text"], "value 7");
    assert_eq!(server.get("/api/inspect/get?place=1&entry=a.cairn&hex=6").0, 400);
    let (status, said) = server.get("/api/inspect?place=1&entry=damaged.cairn");
    assert_eq!((status, &said["kind"], said["offset"].is_u64()), (422, &"corruption".into(), true), "{said}");
    assert!(said["file"].as_str().unwrap().ends_with("damaged.cairn"));
    for place in ["place=0", "place=1&entry=a.cairn"] {
        assert_eq!(server.get(&format!("/api/inspect/verify?{place}")).1["sound"], true);
    }
    drop(server);
    assert!(files(&scratch) == before, "something was written");
}

/// Returns every file of the stores with its bytes.
fn files(scratch: &Scratch) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for dir in ["places", "folder"] {
        let entries = std::fs::read_dir(scratch.path(dir)).unwrap();
        for path in entries.map(|entry| entry.unwrap().path()) {
            all.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
    all.sort();
    all
}

/// Goal: nothing can be started without permission, and with it only suites of the list. Method:
/// requests to start something, with and without permission.
#[test]
fn runs_need_permission() {
    let scratch = Scratch::new();
    let post = |server: &Server, body: &str| {
        let bearer = format!("Bearer {}", server.token);
        let headers = [("Authorization", bearer.as_str()), ("x-cairn", "test")];
        let (status, _, said) = server.send("POST /api/jobs", &headers, body);
        let said: Value = serde_json::from_str(&said).unwrap();
        (status, said["error"].as_str().unwrap().to_owned())
    };
    let looking = Server::start(&scratch, "");
    assert_eq!(post(&looking, r#"{"suite":"hash"}"#).0, 403);
    let running = Server::start(&scratch, "--allow-run");
    for (body, expected) in [
        ("", "the request, line 1: the text ends where a value is expected"),
        ("[]", "the request, line 1: found a list, expected an object with settings"),
        ("{}", "the request, line 1: `suite` is missing"),
        (r#"{"suite":5}"#, "the request, line 1: suite: found 5, expected a text"),
        (r#"{"suite":"record"}"#, "suite: found the string \"record\", expected one of hash, kv, "),
        (r#"{"suite":"kv","word":"--work-dir=/"}"#, "\"--work-dir=/\" is not a list"),
        (
            "{\"suite\":\"hash\",\n\"seconds\":\"9\"}",
            "line 2: seconds: found the string \"9\", expected a whole number",
        ),
        (r#"{"suite":"hash","more":1}"#, "line 1: unknown setting `more`, expected one of `suite`, "),
    ] {
        let (status, said) = post(&running, body);
        assert!(status == 400 && said.contains(expected), "{body}: {said}");
    }
    assert_eq!(running.get("/api/jobs").1, Value::Array(Vec::new()));
}

/// Sends a signal to a process, or to a group, which is given as a negative number.
fn kill(signal: &str, to: &str) {
    assert!(Command::new("kill").args([signal, "--", to]).status().unwrap().success(), "{signal} {to}");
}

/// A handle of a process, which stays valid after the process has ended.
struct Process(OwnedFd);

impl Process {
    /// Opens a running process.
    fn of(id: u32) -> Process {
        let id = Pid::from_raw(id.try_into().unwrap()).unwrap();
        Process(pidfd_open(id, PidfdFlags::empty()).unwrap())
    }

    /// Waits for its end, without waiting for it as its parent would. Returns false after a
    /// timeout.
    fn ends(&self) -> bool {
        let limit = WAIT.try_into().unwrap();
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit)).unwrap() == 1
    }
}

/// Goal: a closed page causes no further work, and ending the server does not wait for a
/// simulation. Method: both servers, a run that would take minutes, with its page closed and open,
/// each signal.
#[test]
fn shutdown_does_not_wait_for_a_simulation() {
    let scratch = Scratch::new();
    for (line, path, signal) in [("sim ui", "/api/stream", "-INT"), ("ui", "/sim/api/stream", "-TERM")] {
        let mut server = Server::start_as(&scratch, line);
        drop(server.begin_simulation(path));
        server.wait_for_simulations(path, 0);
        let _page = server.begin_simulation(path);
        let took = server.end(signal);
        assert!(took < Duration::from_secs(1), "{line}: {took:?}");
    }
}

/// Goal: a benchmark that the page has started ends with the server. Method: a stopped one, which
/// cannot react to a request to end; its process afterwards. A request to end, and a closed
/// terminal.
#[test]
fn no_benchmark_outlives_the_server() {
    let scratch = Scratch::new();
    for signal in ["-TERM", "-HUP"] {
        let mut server = Server::start(&scratch, "--allow-run");
        let job = server.begin_benchmark();
        let process = Process::of(job);
        kill("-STOP", &job.to_string());
        let took = server.end(signal);
        assert!(took < Duration::from_secs(2), "{signal}: {took:?}");
        assert!(process.ends(), "{signal}: the benchmark goes on for {WAIT:?}");
    }
}

/// Goal: a benchmark that the page has started gets Ctrl-C only once, through the server: a second
/// one would end it without results. Method: the process group of a benchmark; Ctrl-C to the
/// server's group, as from a terminal.
#[test]
fn benchmark_started_by_the_page_ignores_ctrl_c_of_the_terminal() {
    let scratch = Scratch::new();
    let mut command = scratch.command("ui --allow-run --port 0");
    command.process_group(0);
    let mut server = Server::of(command);
    let job = server.begin_benchmark();
    let process = Process::of(job);
    let stat = std::fs::read_to_string(format!("/proc/{job}/stat")).unwrap();
    // The fields after the name: state, parent, group.
    let group = stat.rsplit(") ").next().unwrap().split(' ').nth(2).unwrap().to_owned();
    assert_eq!(group, job.to_string());
    server.end_by("-INT", &format!("-{}", server.child.id()));
    assert!(process.ends(), "the benchmark goes on for {WAIT:?}");
}

/// Goal: under `nohup` the server survives its terminal. Method: the signal mask of a server that
/// was started so.
#[test]
fn sighup_stays_ignored_under_nohup() {
    let scratch = Scratch::new();
    let typed = scratch.command("ui --allow-run --port 0");
    let mut command = Command::new("nohup");
    command.arg(typed.get_program()).args(typed.get_args()).current_dir(scratch.path(""));
    // Otherwise nohup prints a message about the terminal first.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let server = Server::of(command);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "{status}");
}

/// Goal: runs in the directories of runs over all suites are listed and have reports. Method: a
/// stored run in such a directory.
#[test]
fn runs_over_all_suites_are_listed() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.path("runs/all-20260101T000000Z/suites")).unwrap();
    let run = serde_json::json!({
        "schema": 1, "suite": "kv", "started": "2026-01-01T00:00:00Z", "mode": "quick", "seed": 1, "machine": [], "probes": [],
        "contenders": [], "data": "a test", "measurements": [], "stopped": false,
    });
    scratch.write("runs/all-20260101T000000Z/suites/kv.json", run.to_string());
    let server = Server::start(&scratch, "--results runs");
    let (_, listed) = server.get("/api/runs");
    let name = "all-20260101T000000Z/suites/kv.json";
    assert_eq!(listed["runs"][0]["run"], name, "{listed}");
    assert_eq!(server.get(&format!("/report?run={}", name.replace('/', "%2F"))).0, 200);
}

/// Goal: every refusal can be parsed by a script. Method: invalid queries, missing pages and
/// methods, requests without the token, without the header and with another host name, and requests
/// that a kind of store does not support.
#[test]
fn refusals_are_json() {
    let scratch = stores();
    let server = Server::start(&scratch, "places folder");
    let bearer = format!("Bearer {}", server.token);
    let known = [("Authorization", bearer.as_str())];
    let elsewhere = [("Authorization", bearer.as_str()), ("Host", "evil.example")];
    for (head, headers, status) in [
        ("GET /api/inspect", &known[..], 400),
        ("GET /api/inspect?place=-1", &known[..], 400),
        ("GET /api/jobs/events?id=x", &known[..], 400),
        ("GET /sim/api/stream", &known[..], 400),
        ("GET /api/inspect?place=0", &[], 401),
        ("GET /api/inspect?place=0", &elsewhere[..], 403),
        ("POST /api/jobs", &known[..], 403),
        ("PUT /api/runs", &[("x-cairn", "test"), known[0]], 405),
        ("GET /no", &known[..], 404),
    ] {
        let (found, head_of, body) = server.send(head, headers, "");
        assert_eq!(found, status, "{head}: {body}");
        let said: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("{head}: {body:?}"));
        assert!(said["error"].as_str().is_some_and(|said| !said.ends_with('\n')), "{head}: {said}");
        assert!(head_of.contains("application/json"), "{head}: {head_of}");
    }
    let (_, said) = server.get("/api/inspect/get?place=1&hex=61");
    assert_eq!(said["error"], "a place of the kind \"folder\" has no lookups by key");
}
