//! The short validation that is part of every test run: a few paced cases against the real stores.

use super::*;

/// Maximum error of a predicted write amplification. The stores are smaller than those of the quick
/// form.
const LIMIT: f64 = 0.04;

fn validated(names: &[&str]) -> Vec<Comparison> {
    let opener = Opener::new(&Options::default(), crate::catalog::installed()).unwrap();
    let parent = std::env::temp_dir();
    let all = cases(true).into_iter().chain(held_out_cases(true));
    let chosen = all.filter(|case| names.contains(&case.name.as_str()));
    let all: Vec<Comparison> = chosen
        .map(|mut case| {
            // A third of the quick form's keys and sizes.
            let options = &mut case.config.options;
            for size in [
                &mut options.write_buffer_size,
                &mut options.target_file_size_base,
                &mut options.max_bytes_for_level_base,
                &mut options.compaction_options_fifo.max_table_files_size,
                &mut options.kv.level_zero_bytes,
                &mut case.config.workload.keys,
                &mut case.config.writes_per_flush,
            ] {
                *size /= 3;
            }
            // One overwrite per key, for a run of a few seconds.
            case.config.writes = case.config.workload.keys;
            one(&case, &opener, &parent, &Stop::default()).unwrap()
        })
        .collect();
    assert_eq!(all.len(), names.len());
    all
}

fn check(comparisons: &[Comparison]) {
    for comparison in comparisons {
        let of = |quantity| comparison.verdict(quantity).copied();
        let write = of(Quantity::WriteAmplification).unwrap();
        assert!(write.error.abs() < LIMIT, "{}: {write:?}", comparison.case);
        if let Some(space) = of(Quantity::SpaceAmplification) {
            assert!(space.error.abs() < 0.03, "{}: {space:?}", comparison.case);
        }
    }
}

/// Goal: the model of Cairn's kv behaves like kv. Method: a paced run, whose byte counts do not
/// depend on the machine.
#[test]
fn kv_does_what_its_model_says() {
    check(&validated(&["kv leveled", "kv lazy leveled", "kv universal"]));
}

/// Goal: the model was not fitted to the cases that check it. Method: a paced run with sizes and a
/// ratio with which no rule was developed.
#[test]
fn kv_does_what_its_model_says_of_what_is_held_out() {
    let all = validated(&["held kv lazy memtable 2x, ratio 3", "held kv fifo"]);
    check(&all);
    assert!(all.iter().all(|comparison| comparison.held_out));
}

/// Goal: options select the cases. Method: the usual list, the held-out cases, a word and a part;
/// and names that do not exist.
#[test]
fn options_choose_cases() {
    let names = |options: Options| {
        let chosen = chosen(&options).map_err(|error| error.to_string())?;
        Ok::<_, String>(chosen.into_iter().map(|case| case.name).collect::<Vec<_>>())
    };
    let of = |cases: Vec<Case>| cases.into_iter().map(|case| case.name).collect::<Vec<_>>();
    let held_out = || Options { quick: true, held_out: true, ..Options::default() };
    assert_eq!(names(Options::default()).unwrap(), of(cases(false)));
    assert_eq!(names(held_out()).unwrap(), of(held_out_cases(true)));
    let fifo = ["held fifo large", "held fifo that compacts", "held kv fifo"];
    assert_eq!(names(Options { only: Some("fifo".to_owned()), ..held_out() }).unwrap(), fifo);
    let part = Options { only: Some("fifo".to_owned()), part: Some("2/2".parse().unwrap()), ..held_out() };
    assert_eq!(names(part).unwrap(), fifo[1..2]);
    let error = names(Options { only: Some("leveled uniform".to_owned()), ..held_out() }).unwrap_err();
    assert!(error.contains("held one range") && !error.contains("small memtables"), "{error}");
    assert!(names(Options { timed: true, ..held_out() }).is_err());
}

/// Goal: the model of RocksDB behaves like RocksDB, and a changed setting has an effect in the same
/// direction. Method: paced runs of two distributions, and of files sorted by the age of their
/// writes. Without the library the test says so and ends, or fails if `CAIRN_REQUIRE_ROCKSDB` is
/// set.
#[cfg(feature = "peers")]
#[test]
fn rocksdb_does_what_its_model_says() {
    if let Err(error) = crate::peers::rocksdb::measured::Library::find(None) {
        assert!(std::env::var_os("CAIRN_REQUIRE_ROCKSDB").is_none(), "{error}");
        return;
    }
    let all = validated(&["leveled uniform", "zipfian", "oldest first"]);
    check(&all);
    let signs = compare::signs(&all);
    assert!(signs.len() == 2 && signs.iter().all(Sign::holds), "{signs:?}");
}
