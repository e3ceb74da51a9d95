//! `cairn bench pool`: one run of the suite for buffer pools, in the guide's layout, as a report
//! and as JSON.

use std::path::Path;
use std::sync::Arc;

use cairn_bench::catalog::installed;
use cairn_bench::core::results::Run;
use cairn_bench::core::run_files;
use cairn_bench::report::summary;
use cairn_bench::suites::pool::trace::{Replayed, Size};
use cairn_bench::suites::pool::{self, Options, tables, text, trace};
use cairn_pool::PolicyKind;
use cairn_vfs::Fs;

use super::outcome::{Measured, Shown, chosen, conclude, measure};
use super::write_file;
use crate::args::pool::{BenchPoolArgs, RenderArgs};
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, note};

/// Runs the suite, stores the results and prints them.
pub fn run(fs: &Arc<dyn Fs>, args: &BenchPoolArgs) -> Result<Outcome> {
    if !args.trace.is_empty() {
        return replay(fs, args);
    }
    if let Some(platform) = &args.platform {
        tables::check_platform(platform)?;
    }
    let options = options(args)?;
    options.check()?;
    chosen(&args.run, args.filter.as_deref(), !pool::plan(&options).is_empty())?;
    let run = measure(fs, &args.run, |bar, stop| pool::run(&options, installed(), bar, stop))?;
    let text = |run: &Run| {
        let shown = format!("{}\n{}", text::to_text(run), super::settings(run));
        let Some(platform) = &args.platform else { return Ok(shown) };
        keep_raw(fs, args, platform, run, &shown)?;
        Ok(format!("{shown}raw results: {}\n", tables::raw_run(&args.docs, platform).display()))
    };
    let nothing = "nothing was measured; the notes above say why".to_owned();
    conclude(fs, &args.run, run, &Shown { nothing, json: &text::to_json, text: &text })
}

/// Replays traces; prints, stores and reports the results.
fn replay(fs: &Arc<dyn Fs>, args: &BenchPoolArgs) -> Result<Outcome> {
    let policies = policies(&args.policies, &PolicyKind::ALL)?;
    if policies.is_empty() {
        return Err(Error::usage("no policies: expected at least one to replay with"));
    }
    let sizes: Vec<Size> = match args.sizes.as_slice() {
        [] => Size::USUAL.to_vec(),
        sizes => sizes.iter().map(|word| Size::parse(word)).collect::<cairn_bench::Result<_>>()?,
    };
    // Read all traces before replaying the first, so that a mistake in the last one shows at once.
    let traces: Vec<_> =
        args.trace.iter().map(|path| Ok((path, trace::read(&**fs, path)?))).collect::<Result<_>>()?;
    run_files::check_writable(&**fs, &args.run.results)?;
    let flaws: Vec<Option<String>> =
        args.trace.iter().map(|path| trace::flaw(&**fs, path)).collect::<cairn_bench::Result<_>>()?;
    for (path, flaw) in args.trace.iter().zip(&flaws) {
        flaw.iter().for_each(|flaw| note(&format!("{}: {flaw}", path.display())));
    }
    let replayed: Vec<Replayed> = traces
        .iter()
        .zip(flaws)
        .map(|((path, requests), flaw)| Replayed { flaw, ..trace::replay(path, requests, &policies, &sizes) })
        .collect();
    let run = trace::to_run(&replayed, &policies);
    let nothing = "the traces have no requests".to_owned();
    let text = |_: &Run| Ok(trace::to_text(&replayed));
    let shown = Shown { nothing, json: &|_| trace::to_json(&replayed), text: &text };
    conclude(fs, &args.run, Measured::whole(run), &shown)
}

/// Stores a run as the raw results of a platform.
fn keep_raw(fs: &Arc<dyn Fs>, args: &BenchPoolArgs, platform: &str, run: &Run, shown: &str) -> Result<()> {
    let mut json = serde_json::to_vec(run)
        .map_err(|error| Error::usage(format!("the run cannot be written as JSON: {error}")))?;
    json.push(b'\n');
    write_file(fs, &tables::raw_run(&args.docs, platform), &json)?;
    write_file(fs, &tables::raw_log(&args.docs, platform), shown.as_bytes())
}

/// Writes the documentation's tables of replacement policies from raw results.
pub fn render(fs: &Arc<dyn Fs>, args: &RenderArgs) -> Result<Outcome> {
    let docs = &args.docs;
    let platforms = if args.platforms.is_empty() { collected(fs, docs)? } else { args.platforms.clone() };
    let mut out = Output::new();
    for platform in &platforms {
        tables::check_platform(platform)?;
        let run = run_files::load(&**fs, &tables::raw_run(docs, platform))?;
        let target = docs.join(tables::PAGE);
        let page = super::read_text(fs, &target)?;
        let filled =
            summary::replace_between_markers(&page, &tables::marker(platform), &tables::summary(&run))
                .map_err(|error| Error::Input {
                    input: target.display().to_string(),
                    place: None,
                    what: error.to_string(),
                })?;
        let own = tables::page(docs, platform);
        write_file(fs, &own, tables::platform_page(&run, platform).as_bytes())?;
        if filled != page {
            write_file(fs, &target, filled.as_bytes())?;
        }
        out.line(own.display())?;
        out.line(target.display())?;
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// Returns the platforms with raw results.
fn collected(fs: &Arc<dyn Fs>, docs: &Path) -> Result<Vec<String>> {
    let dir = docs.join(tables::DIR).join("raw");
    let none = || {
        Error::usage(format!("no raw results in {}: cairn bench pool --collect makes some", dir.display()))
    };
    if !fs.exists(&dir)? {
        return Err(none());
    }
    let names = fs.read_dir(&dir)?;
    let names = names.iter().filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    let platforms: Vec<String> =
        names.filter(|name| fs.exists(&tables::raw_run(docs, name)).unwrap_or(false)).collect();
    if platforms.is_empty() { Err(none()) } else { Ok(platforms) }
}

/// Converts the arguments to the options of the suite.
fn options(args: &BenchPoolArgs) -> Result<Options> {
    let defaults = Options::with_all(&installed().pages);
    Ok(Options {
        iterations: args.iterations,
        buffers: args.buffers,
        filter: args.filter.clone(),
        for_dashboard: args.run.json,
        policies: policies(&args.policies, if args.collect { &PolicyKind::ALL } else { &defaults.policies })?,
        peers: peers(&args.peers)?,
        page_size: usize::try_from(args.page_size).unwrap_or(usize::MAX),
        rounds: args.rounds.min(args.iterations),
        seed: args.seed,
        direct: args.direct,
        threads: args.threads.clone(),
        probes: if args.run.no_probes { None } else { defaults.probes },
        work_dir: args.run.work_dir.clone().unwrap_or(defaults.work_dir.clone()),
        ..defaults
    })
}

/// Returns the policies with these names, without duplicates; `otherwise` if there are no names.
fn policies(names: &[String], otherwise: &[PolicyKind]) -> Result<Vec<PolicyKind>> {
    if names.is_empty() {
        return Ok(otherwise.to_vec());
    }
    let mut policies: Vec<PolicyKind> = Vec::new();
    for name in names {
        let named = match name.as_str() {
            "all" => PolicyKind::ALL.to_vec(),
            "none" => Vec::new(),
            name => vec![name.parse().map_err(|error| Error::usage(format!("{error}, or all, or none")))?],
        };
        policies.extend(named);
    }
    let mut seen = Vec::new();
    policies.retain(|policy| {
        !seen.contains(policy) && {
            seen.push(*policy);
            true
        }
    });
    Ok(policies)
}

fn peers(names: &[String]) -> Result<Vec<String>> {
    let mut peers: Vec<String> = Vec::new();
    for name in names {
        let named = match name.as_str() {
            "all" => installed().pages.peer_names().into_iter().map(str::to_owned).collect(),
            "none" => Vec::new(),
            name => {
                installed().pages.check(name)?;
                vec![name.to_owned()]
            }
        };
        peers.extend(named.into_iter().filter(|name: &String| !peers.contains(name)).collect::<Vec<_>>());
    }
    Ok(peers)
}
