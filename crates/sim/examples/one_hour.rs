//! One virtual hour of a leveled store at 100 MB/s, to measure the cost of a run. `cargo run
//! --release -p cairn-sim --example one_hour`.

use cairn_sim::traffic::Traffic;
use cairn_sim::{Config, Results, Simulation};

fn main() -> Result<(), cairn_sim::Error> {
    let mut config = Config { name: "an hour at 100 MB/s".to_owned(), ..Config::default() };
    config.workload.keys = 100_000_000;
    config.workload.traffic = Traffic::Constant { mb_per_sec: 100.0 };
    config.options.max_background_jobs = 8;
    config.hardware.disk.read_mb_per_sec = 3000.0;
    config.hardware.disk.write_mb_per_sec = 3000.0;
    let results: Results = Simulation::run(&config)?;
    println!(
        "{:.1} MB/s, write amplification {:.2}, space amplification {:.3}, stalled {:.1} %, {} events, sample {}",
        results.user_mb_per_sec,
        results.write_amplification,
        results.space_amplification,
        100.0 * (results.stopped + results.delayed),
        results.events,
        results.sample,
    );
    Ok(())
}
