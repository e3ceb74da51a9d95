//! A private PostgreSQL server: a cluster of its own in a directory, reached by a Unix socket only,
//! ended with the lab.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cairn_vfs::{Clock, Fs, StdFs, SystemClock};
use rustix::process::{Pid, Signal};

use super::fail;
use crate::error::Result;
use crate::process::{self, Stop};
use crate::scratch::Scratch;
use crate::suite_sql::Address;

/// The version that figures are published against.
const MAJOR: &str = "15";

/// Where Debian has the programs of that version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Who runs the server where the lab is run by root, which PostgreSQL refuses.
const USER: &str = "postgres";

/// Sockets have it in their names; each cluster has a directory of its own.
const PORT: u16 = 5432;

/// Where a cluster can be that [`USER`] can reach, when the work directory is not.
const OPEN_TO_ALL: &str = "/var/tmp";

/// How long the server may take to come up, or to end.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// The programs of a version of PostgreSQL.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    dir: PathBuf,
    as_root: bool,
}

impl Programs {
    /// Looks in `CAIRN_POSTGRES_BIN`, else where Debian has them. Errors: they are not there.
    pub(super) fn find() -> Result<Programs> {
        let dir = env::var_os("CAIRN_POSTGRES_BIN")
            .map_or_else(|| Path::new(DEBIAN).join(MAJOR).join("bin"), PathBuf::from);
        let fs = StdFs::new();
        for program in ["initdb", "postgres"] {
            if !fs.exists(&dir.join(program))? {
                return Err(fail(format!(
                    "no {program} in {}; install postgresql-{MAJOR}, or set CAIRN_POSTGRES_BIN",
                    dir.display()
                )));
            }
        }
        Ok(Programs { dir, as_root: rustix::process::geteuid().is_root() })
    }

    /// `postgres --version`
    pub(super) fn version(&self) -> Result<String> {
        let mut postgres = self.client("postgres");
        postgres.arg("--version");
        let said = process::run(postgres, b"", &Stop::default())?;
        Ok(said.trim().trim_start_matches("postgres (PostgreSQL) ").to_owned())
    }

    /// A program of theirs, by a user whom it accepts.
    fn as_user(&self, program: &str, more: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        if self.as_root {
            command.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--init-groups".to_owned()]);
        }
        command.args(more).arg(self.dir.join(program)).env_remove("PGDATA").current_dir("/");
        command
    }

    /// A program of the client's, such as pgbench.
    pub(super) fn client(&self, program: &str) -> Command {
        Command::new(self.dir.join(program))
    }
}

/// A running server. Ends when this is dropped, and when the lab is killed.
#[derive(Debug)]
pub(super) struct Cluster {
    server: Child,
    dir: PathBuf,
    programs: Programs,
    settings: Vec<(String, String)>,
    /// Where the cluster is when the directory that was asked for is closed to its user.
    _elsewhere: Option<Scratch>,
}

impl Cluster {
    /// Makes an empty cluster in `dir` and starts its server with some settings.
    pub(super) fn start(programs: &Programs, dir: &Path, settings: &[(&str, String)]) -> Result<Cluster> {
        let (dir, elsewhere) = programs.place(dir)?;
        let data = dir.join("data");
        let mut init = programs.as_user("initdb", &[]);
        init.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        init.arg(format!("--username={USER}")).arg("-D").arg(&data);
        process::run(init, b"", &Stop::default())?;
        let settings: Vec<(String, String)> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let server = Cluster::launch(programs, &dir, &settings)?;
        Ok(Cluster { server, dir, programs: programs.clone(), settings, _elsewhere: elsewhere })
    }

    fn launch(programs: &Programs, dir: &Path, settings: &[(String, String)]) -> Result<Child> {
        let mut command = programs.as_user("postgres", &["--pdeathsig=INT"]);
        command.arg("-D").arg(dir.join("data")).arg("-k").arg(dir).args(["-c", "listen_addresses="]);
        for (name, value) in settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.args(["-c", "logging_collector=off", "-c", "log_min_messages=fatal"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The terminal's Ctrl-C is for the lab, which ends the server itself.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().map_err(|error| fail(format!("the server cannot be started: {error}")))
    }

    /// Where its files are.
    pub(super) fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Ends the server, does something with its files, and starts it again, also where that failed.
    /// To be waited for.
    pub(super) fn restart(&mut self, between: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        self.stop()?;
        let done = between(&self.data_dir());
        self.server = Cluster::launch(&self.programs, &self.dir, &self.settings)?;
        done
    }

    /// How a client reaches it.
    pub(super) fn address(&self) -> Address {
        let host = self.dir.display().to_string();
        Address { host, port: PORT, user: USER.to_owned(), database: USER.to_owned() }
    }

    /// Tries `connect` until it does what it should. Errors: its last one, when the server has
    /// ended or time is up.
    pub(super) fn wait_for<T>(&mut self, connect: &dyn Fn(&Address) -> Result<T>) -> Result<T> {
        let (clock, address) = (SystemClock::new(), self.address());
        let until = clock.now() + PATIENCE;
        loop {
            match connect(&address) {
                Ok(done) => return Ok(done),
                Err(error) => {
                    let ended = self.server.try_wait().map_err(fail)?;
                    if let Some(status) = ended {
                        return Err(fail(format!("the server ended with {status}: {error}")));
                    }
                    if clock.now() > until {
                        return Err(error);
                    }
                }
            }
            clock.sleep(POLL);
        }
    }

    /// Ends the server as a shutdown does: connections are cut, everything is written. Errors: it
    /// did not end well.
    pub(super) fn stop(&mut self) -> Result<()> {
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), None) = (pid, self.server.try_wait().map_err(fail)?) {
            // Fails only where it has ended by itself.
            let _ = rustix::process::kill_process(pid, Signal::INT);
        }
        let (clock, mut patience) = (SystemClock::new(), PATIENCE);
        loop {
            if let Some(status) = self.server.try_wait().map_err(fail)? {
                return if status.success() { Ok(()) } else { Err(fail(format!("it ended with {status}"))) };
            }
            if patience.is_zero() {
                self.server.kill().map_err(fail)?;
                return Err(fail("it did not end when it was told to"));
            }
            clock.sleep(POLL);
            patience = patience.saturating_sub(POLL);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Whoever wants to know calls `stop`.
        let _ = self.stop();
    }
}

impl Programs {
    /// A directory that the server's user owns: `dir`, or one that he can reach.
    fn place(&self, dir: &Path) -> Result<(PathBuf, Option<Scratch>)> {
        if !self.as_root {
            return Ok((dir.to_owned(), None));
        }
        if self.reaches(dir) {
            self.give(dir)?;
            return Ok((dir.to_owned(), None));
        }
        let elsewhere = Scratch::in_dir(Path::new(OPEN_TO_ALL), crate::suite_sql::NAME)?;
        self.give(elsewhere.path())?;
        Ok((elsewhere.path().to_owned(), Some(elsewhere)))
    }

    fn reaches(&self, dir: &Path) -> bool {
        let mut test = Command::new("setpriv");
        test.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--init-groups".to_owned()]);
        test.args([OsStr::new("test"), OsStr::new("-x"), dir.as_os_str()]);
        test.status().is_ok_and(|status| status.success())
    }

    fn give(&self, dir: &Path) -> Result<()> {
        let mut chown = Command::new("chown");
        chown.arg(USER).arg(dir);
        process::run(chown, b"", &Stop::default()).map(drop)
    }
}
