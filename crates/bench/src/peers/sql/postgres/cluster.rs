//! A private PostgreSQL server: a cluster in a directory of its own, accessible only by a Unix
//! socket, which ends with the lab.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cairn_vfs::{Clock, Fs, StdFs, SystemClock};
use rustix::process::{Pid, Signal};

use super::failure::fail;
use crate::core::error::Result;
use crate::core::process::{self, Stop};
use crate::core::scratch::Scratch;
use crate::stores::sql::Address;

/// The version for published figures.
const MAJOR: &str = "15";

/// Directory of the programs on Debian.
const DEBIAN: &str = "/usr/lib/postgresql";

/// User that runs the server if the lab runs as root, which PostgreSQL refuses.
const USER: &str = "postgres";

/// Port number in the names of sockets. Each cluster has a directory of its own.
const PORT: u16 = 5432;

/// Parent directory for a cluster if [`USER`] cannot access the work directory.
const OPEN_TO_ALL: &str = "/var/tmp";

/// Timeout for the start and the shutdown of the server.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// The programs of one version of PostgreSQL.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    dir: PathBuf,
    as_root: bool,
}

impl Programs {
    /// Looks in `CAIRN_POSTGRES_BIN`, else in Debian's directory. Errors: the programs are not
    /// there.
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

    /// Returns the version that `postgres --version` prints.
    pub(super) fn version(&self) -> Result<String> {
        let mut postgres = self.client("postgres");
        postgres.arg("--version");
        let said = process::run(postgres, b"", &Stop::default())?;
        Ok(said.trim().trim_start_matches("postgres (PostgreSQL) ").to_owned())
    }

    /// Returns a command that runs one of the server's programs as a user that it accepts.
    fn as_user(&self, program: &str, more: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        if self.as_root {
            command.args([format!("--reuid={USER}"), format!("--regid={USER}"), "--init-groups".to_owned()]);
        }
        command.args(more).arg(self.dir.join(program)).env_remove("PGDATA").current_dir("/");
        command
    }

    /// Returns a command for a client program, such as pgbench.
    pub(super) fn client(&self, program: &str) -> Command {
        Command::new(self.dir.join(program))
    }
}

/// A running server. It ends when this is dropped, and when the lab is killed.
#[derive(Debug)]
pub(super) struct Cluster {
    server: Child,
    dir: PathBuf,
    programs: Programs,
    settings: Vec<(String, String)>,
    /// Directory of the cluster if its user cannot access the requested one.
    _elsewhere: Option<Scratch>,
}

impl Cluster {
    /// Creates an empty cluster in `dir` and starts its server with `settings`.
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
        // Ctrl-C in the terminal is meant for the lab, which stops the server itself.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().map_err(|error| fail(format!("the server cannot be started: {error}")))
    }

    /// Returns the directory of its files.
    pub(super) fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Stops the server, calls `between` with the directory of its files, and starts it again, even
    /// if `between` failed. The caller waits for the server with [`Cluster::wait_for`].
    pub(super) fn restart(&mut self, between: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
        self.stop()?;
        let done = between(&self.data_dir());
        self.server = Cluster::launch(&self.programs, &self.dir, &self.settings)?;
        done
    }

    /// Returns the address for clients.
    pub(super) fn address(&self) -> Address {
        let host = self.dir.display().to_string();
        Address { host, port: PORT, user: USER.to_owned(), database: USER.to_owned() }
    }

    /// Retries `connect` until it succeeds. Errors: the last error of `connect`, if the server has
    /// ended or the time is up.
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

    /// Shuts the server down: disconnects clients and writes all data. Errors: the shutdown failed
    /// or timed out.
    pub(super) fn stop(&mut self) -> Result<()> {
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), None) = (pid, self.server.try_wait().map_err(fail)?) {
            // Fails only if the server has already ended.
            let _ = rustix::process::kill_process(pid, Signal::INT);
        }
        let (clock, mut patience) = (SystemClock::new(), PATIENCE);
        loop {
            if let Some(status) = self.server.try_wait().map_err(fail)? {
                return if status.success() { Ok(()) } else { Err(fail(format!("it ended with {status}"))) };
            }
            if patience.is_zero() {
                self.server.kill().map_err(fail)?;
                return Err(fail("it did not stop when asked to"));
            }
            clock.sleep(POLL);
            patience = patience.saturating_sub(POLL);
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Errors are dropped here; `stop` reports them.
        let _ = self.stop();
    }
}

impl Programs {
    /// Returns a directory that the server's user owns: `dir`, or another one if that user cannot
    /// access it.
    fn place(&self, dir: &Path) -> Result<(PathBuf, Option<Scratch>)> {
        if !self.as_root {
            return Ok((dir.to_owned(), None));
        }
        if self.reaches(dir) {
            self.give(dir)?;
            return Ok((dir.to_owned(), None));
        }
        let elsewhere = Scratch::in_dir(Path::new(OPEN_TO_ALL), crate::stores::sql::LABEL)?;
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
