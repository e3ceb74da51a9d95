//! `cairn sql serve` and `cairn sql passwd`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use cairn_server::{Level, Limits, Log, Observer, Passwords, Server, Verifier, is_name};
use cairn_vfs::Fs;

use crate::args::shell::{PasswdArgs, ServeArgs};
use crate::error::{Error, Result};
use crate::interrupt::{IsRepeated, end_now, on_end_request};
use crate::output::Outcome;
use crate::recording;

use super::open::open;

const PORT: u16 = 5432;

/// Serves a database until Ctrl-C or SIGTERM.
pub fn serve(fs: &Arc<dyn Fs>, args: &ServeArgs) -> Result<Outcome> {
    let database = open(fs, Some(&args.database), &args.open)?;
    let least = if args.verbose { Level::Debug } else { Level::Warning };
    let log = Log::new(move |level, line| {
        if level >= least {
            say(format_args!("{level}: {line}"));
        }
    });
    let recorder = recording::begin("cairn sql serve");
    let observer = recorder.clone().map_or_else(Observer::default, |recorder| {
        Observer::new(move |sql, rows| recorder.statement(sql, rows))
    });
    let mut builder = Server::builder(database)
        .limits(limits(args))
        .log(log)
        .observer(observer)
        .trust_socket(args.trust_socket);
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let default = (args.listen.is_empty() && args.socket.is_empty()).then_some(default);
    for address in args.listen.iter().copied().chain(default) {
        builder = builder.listen(address);
    }
    for directory in &args.socket {
        builder = builder.socket(directory, args.socket_port);
    }
    if let (Some(certificate), Some(key)) = (&args.tls_cert, &args.tls_key) {
        builder = builder.tls_files(certificate, key);
    } else if !args.tls_self_made.is_empty() {
        builder = builder.tls_self_made(args.tls_self_made.clone());
    }
    if let Some(path) = &args.password_file {
        builder = builder.password_file(path);
    }
    let server = builder.open_to_everybody(args.open_to_everybody).bind()?;
    let stop = server.shutdown_handle();
    on_end_request(move |IsRepeated(again)| {
        if again {
            // Nothing is lost: committed transactions are in the log, as after a kill.
            end_now();
        }
        stop.shutdown();
    })?;
    for address in server.local_addresses() {
        say(format_args!("listening on {address}: psql -h {} -p {}", address.ip(), address.port()));
    }
    for path in server.socket_paths() {
        let directory = path.parent().unwrap_or(path).display();
        say(format_args!("listening on {}: psql -h {directory} -p {}", path.display(), args.socket_port));
    }
    let ran = server.run();
    recording::end(recorder.as_ref());
    ran?;
    Ok(Outcome::Done)
}

fn limits(args: &ServeArgs) -> Limits {
    let mut limits = Limits::default();
    limits.connections_max = args.max_connections;
    limits.message_bytes_max = usize::try_from(args.max_message).unwrap_or(usize::MAX);
    limits.statement_bytes_max = usize::try_from(args.max_statement).unwrap_or(usize::MAX);
    limits.authentication_timeout = args.authentication_timeout;
    limits.idle_in_transaction_timeout = args.idle_in_transaction_timeout;
    limits.idle_session_timeout = args.idle_session_timeout;
    limits.shutdown_grace = args.grace;
    limits
}

fn say(line: std::fmt::Arguments<'_>) {
    // Nothing can be done if standard error is closed.
    let _ = writeln!(io::stderr(), "{line}");
}

/// Sets the password of a user.
pub fn passwd(fs: &Arc<dyn Fs>, args: &PasswdArgs) -> Result<Outcome> {
    if !is_name(&args.user) {
        return Err(Error::usage(format!("{:?} is not a valid user name", args.user)));
    }
    let mut passwords =
        if fs.exists(&args.file)? { Passwords::read(fs.as_ref(), &args.file)? } else { Passwords::default() };
    if args.remove {
        let was_there = passwords.remove(&args.user);
        if was_there {
            passwords.write(&args.file)?;
        }
        return Ok(Outcome::found(was_there));
    }
    let password = read_password(&args.user)?;
    if password.is_empty() {
        return Err(Error::usage("an empty password is refused"));
    }
    let verifier = Verifier::new(&password).map_err(|error| Error::usage(error.to_string()))?;
    passwords.set(&args.user, verifier);
    passwords.write(&args.file)?;
    Ok(Outcome::Done)
}

/// Reads a password from standard input; on a terminal twice and without echo.
fn read_password(user: &str) -> Result<String> {
    if io::stdin().is_terminal() {
        let first = super::editor::hidden(&format!("Password for {user}: "))?;
        if super::editor::hidden("Repeat password: ")? != first {
            return Err(Error::usage("the two passwords are not the same"));
        }
        return Ok(first);
    }
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(Error::Stdin)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}
