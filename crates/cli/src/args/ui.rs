//! Arguments of `cairn ui`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::history::HistoryAt;
use super::number;

/// `cairn ui`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cairn ui
  cairn ui places users.cairn app.db
  cairn ui /var/lib/stores --allow-run
  cairn bench kv 2> kv.log & cairn ui --watch kv.log

The printed address contains a token: anyone who has it may look. The server listens on this machine
only and changes nothing; with --allow-run, the page can start benchmarks. Stores are opened again
for each view, never for writing.

Exit codes: 0 ended by Ctrl-C, 1 error.")]
pub struct UiArgs {
    /// Stores to inspect: kv directories, hash and sql files, Sparkey pairs; or directories that
    /// contain some
    #[arg(value_name = "STORE")]
    pub stores: Vec<PathBuf>,
    /// Directory with stored runs
    #[arg(long, value_name = "DIR", default_value = cairn_bench::core::run_files::RESULTS_DIR)]
    pub results: PathBuf,
    #[command(flatten)]
    pub at: HistoryAt,
    /// Let the page start benchmarks on this machine
    #[arg(long)]
    pub allow_run: bool,
    /// File with the standard error of a run, to be watched
    #[arg(long, value_name = "FILE")]
    pub watch: Option<PathBuf>,
    /// The port; 0 for a free one
    #[arg(long, default_value_t = 8088, value_parser = number::whole::<u16>)]
    pub port: u16,
    /// The address to listen on; any but this machine's own lets the network in
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = number::address)]
    pub listen: IpAddr,
    /// Additional host name by which the page may be requested; may be given several times
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
}
