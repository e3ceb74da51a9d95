//! Builds a configuration from the arguments.

use std::sync::Arc;

use cairn_sim::Config;
use cairn_sim::config::Mode;
use cairn_sim::import::{Imported, import_kv, import_rocksdb};
use cairn_sim::json::in_words;
use cairn_sim::traffic::Traffic;
use cairn_trace::Trace;
use cairn_vfs::Fs;
use serde_json::Value;

use super::profiles;
use crate::args::sim::ConfigArgs;
use crate::bench::read_text;
use crate::error::{Error, Result};
use crate::input::name_of;

/// The hint where settings are listed.
const LISTED: &str = "; `cairn sim run --show-config` lists them";

/// A configuration, with notes for the user.
pub struct Setup {
    /// The validated configuration.
    pub config: Config,
    /// Lines for standard error.
    pub notes: Vec<String>,
    /// One of the notes: the flaw of the workload's trace, which a report repeats.
    pub flaw: Option<String>,
}

/// Builds the configuration.
pub fn setup(fs: &Arc<dyn Fs>, args: &ConfigArgs) -> Result<Setup> {
    let (mut notes, mut flaw) = (Vec::new(), None);
    let mut config = match &args.config {
        Some(path) => Config::from_json(&read_text(fs, path)?, &name_of(path))?,
        None => Config::default(),
    };
    if let Some(path) = &args.options {
        let imported = import_rocksdb(&read_text(fs, path)?, &args.family, &path.display().to_string())?;
        config.options = take(imported, &mut notes);
    }
    if let Some(path) = &args.kv_options {
        let imported = import_kv(&read_text(fs, path)?, &path.display().to_string())?;
        config.options = take(imported, &mut notes);
    }
    if let Some(name) = &args.hardware {
        profiles::apply_hardware(&mut config, &profiles::hardware(fs, "--hardware", name)?);
    }
    if let Some(name) = &args.workload {
        config.workload = profiles::workload(fs, name)?.workload;
    }
    if let Some(path) = &args.trace {
        let trace = Trace::open(&**fs, path)?;
        flaw = trace.ending().flaw().map(|flaw| format!("{}: {flaw}", path.display()));
        notes.extend(flaw.clone());
        notes.extend(super::trace::apply(&trace, &mut config)?);
    }
    if let Some(rate) = &args.rate {
        config.workload.traffic = match rate.as_str() {
            "max" => Traffic::Unlimited,
            text => {
                let mb_per_sec = text
                    .parse()
                    .map_err(|_| Error::usage(format!("--rate {text}: expected MB a second, or max")))?;
                Traffic::Constant { mb_per_sec }
            }
        };
    }
    config.workload.keys = args.keys.unwrap_or(config.workload.keys);
    config.duration_secs = args.seconds.unwrap_or(config.duration_secs);
    config.options.block_cache_size = args.cache_size.unwrap_or(config.options.block_cache_size);
    config.seed = args.seed.unwrap_or(config.seed);
    for change in &args.set {
        let (path, value) = change
            .split_once('=')
            .ok_or_else(|| Error::usage(format!("--set {change}: expected PATH=VALUE")))?;
        config = with("--set", &config, path, &value_of(value))?;
    }
    timeless(&config, args, &mut notes)?;
    config.check().map_err(|error| blamed(error, args))?;
    notes.extend(config.coarse());
    Ok(Setup { config, notes, flaw })
}

/// Errors: an option about time is given for a run that has none.
fn timeless(config: &Config, args: &ConfigArgs, notes: &mut Vec<String>) -> Result<()> {
    if config.mode != Mode::Paced {
        return Ok(());
    }
    for (is_typed, option) in [(args.seconds.is_some(), "--seconds"), (args.rate.is_some(), "--rate")] {
        if is_typed {
            return Err(Error::usage(format!(
                "{option}: a run with mode=paced has no time, and goes by its writes; expected mode=timed"
            )));
        }
    }
    if config.options.ttl > 0 {
        notes.push("options.ttl is ignored: a run with mode=paced has no time".to_owned());
    }
    Ok(())
}

/// Converts the error of a configuration, naming the option that set the faulty setting.
fn blamed(error: cairn_sim::Error, args: &ConfigArgs) -> Error {
    let cairn_sim::Error::Option { name, .. } = &error else { return error.into() };
    let typed = [
        (args.keys.is_some(), "workload.keys", "--keys"),
        (args.seconds.is_some(), "duration_secs", "--seconds"),
        (args.cache_size.is_some(), "block_cache_size", "--cache-size"),
        (args.rate.is_some(), "mb_per_sec", "--rate"),
    ];
    match typed.into_iter().find(|(is_typed, setting, _)| *is_typed && name.ends_with(setting)) {
        Some((_, _, option)) => Error::usage(format!("{option}: {error}")),
        None => error.into(),
    }
}

fn take(imported: Imported, notes: &mut Vec<String>) -> cairn_sim::Options {
    notes.extend(imported.notes);
    imported.options
}

/// Parses a value: a number, a size with a unit, true or false, JSON, or a word.
pub fn value_of(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let has_unit =
        text.ends_with(|c: char| c.is_ascii_alphabetic()) && text.starts_with(|c: char| c.is_ascii_digit());
    match crate::args::bytes::parse_bytes(text) {
        Ok(bytes) if has_unit => bytes.into(),
        _ => Value::String(text.to_owned()),
    }
}

/// Returns the configuration with one setting changed, as `option` requests. Errors name the option
/// and the setting.
pub fn with(option: &str, config: &Config, path: &str, value: &Value) -> Result<Config> {
    // Avoid converting millions of trace keys to JSON, unless they are what changes.
    let is_of_trace = path == "workload" || path.starts_with("workload.distribution");
    let light = if is_of_trace { config.clone() } else { config.without_trace() };
    let mut whole = serde_json::to_value(light).map_err(|error| Error::usage(error.to_string()))?;
    let pointer = format!("/{}", path.replace('.', "/"));
    // Another kind has other settings, so drop those of the former one.
    if let Some(outer) = pointer.strip_suffix("/kind")
        && let Some(fields) = whole.pointer_mut(outer).and_then(Value::as_object_mut)
        && fields.get("kind").is_some_and(|kind| kind != value)
    {
        fields.retain(|name, _| name == "kind");
    }
    match whole.pointer_mut(&pointer) {
        Some(slot) => *slot = value.clone(),
        // The setting is absent: it is optional, or belongs to another kind of distribution or
        // traffic.
        None => {
            let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", &pointer));
            let parent = whole.pointer_mut(parent).and_then(Value::as_object_mut);
            let parent =
                parent.ok_or_else(|| Error::usage(format!("{option} {path}: no such setting{LISTED}")))?;
            parent.insert(name.to_owned(), value.clone());
        }
    }
    let changed = serde_json::from_value(whole).map_err(|error| {
        let is_size =
            value.as_str().is_some_and(|text| text.starts_with(|first: char| first.is_ascii_digit()));
        let what = in_words(&error.to_string());
        let hint = match what.starts_with("unknown setting ") {
            true => LISTED,
            false if is_size => "; units of sizes are B, KiB, MiB, GiB and TiB",
            false => "",
        };
        Error::usage(format!("{option} {path}={value}: {what}{hint}"))
    });
    changed.map(|changed: Config| if is_of_trace { changed } else { changed.with_trace_of(config) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: changing another setting keeps a trace, and the trace itself can be changed. Method:
    /// both.
    #[test]
    fn existing_trace_is_not_overwritten() {
        let mut config = Config::default();
        config.workload.distribution =
            cairn_sim::Distribution::Trace { keys: Arc::new(vec![3, 1, 2]), deletes: Arc::new(vec![1]) };
        let changed = with("--set", &config, "workload.value_bytes", &value_of("50")).unwrap();
        assert_eq!(changed.workload.value_bytes, 50);
        assert_eq!(changed.workload.distribution, config.workload.distribution);
        let changed = with("--set", &config, "workload.distribution.keys", &value_of("[5,4]")).unwrap();
        let cairn_sim::Distribution::Trace { keys, .. } = changed.workload.distribution else { panic!() };
        assert_eq!(*keys, [5, 4]);
    }

    /// Goal: a setting that the kind does not have is refused, and a kind without settings can be
    /// chosen by its name alone. Method: both for keys and for traffic.
    #[test]
    fn kinds_have_their_own_settings() {
        let config = Config::default();
        let error = with("--set", &config, "workload.distribution.theta", &value_of("1.2")).unwrap_err();
        let said =
            "--set workload.distribution.theta=1.2: unknown setting `theta`, this kind has no settings";
        assert!(error.to_string().starts_with(said), "{error}");
        let closed = with("--set", &config, "workload.traffic.kind", &value_of("unlimited")).unwrap();
        assert_eq!(closed.workload.traffic, Traffic::Unlimited);
        let error = with("--set", &closed, "workload.traffic.mb_per_sec", &value_of("50")).unwrap_err();
        assert!(error.to_string().contains("unknown setting `mb_per_sec`"), "{error}");
        let same = with("--set", &config, "workload.traffic.kind", &value_of("constant")).unwrap();
        assert_eq!(same, config);
    }

    /// Goal: settings are found by path, values are parsed in human notation, and errors name the
    /// setting.
    #[test]
    fn settings_have_paths() {
        let config = Config::default();
        let changed = with("--set", &config, "options.write_buffer_size", &value_of("16MiB")).unwrap();
        assert_eq!(changed.options.write_buffer_size, 16 << 20);
        let changed =
            with("--set", &config, "workload.distribution", &value_of("{\"kind\":\"sequential\"}")).unwrap();
        assert_eq!(changed.workload.distribution, cairn_sim::Distribution::Sequential);
        let changed = with("--set", &config, "options.bottommost_compression", &value_of("zstd")).unwrap();
        assert!(changed.options.bottommost_compression.is_some());
        for (path, value) in
            [("options.write_bufer", "1"), ("nothing.at.all", "1"), ("seed", "x"), ("seed", "-1")]
        {
            let error = with("--set", &config, path, &value_of(value)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--set {path}")), "{error}");
        }
    }
}
