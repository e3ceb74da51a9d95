//! The contenders, and the report's information about each.

use super::options::Options;
use crate::core::progress::Progress;
use crate::core::recorder::Recorder;
use crate::core::results::Contender;
use crate::core::results::SPARKEY_JAVA;
use crate::core::settings::Settings;
use crate::stores::ConstantStore;
use crate::stores::catalog::Selection;
use crate::stores::java::{Construction, JavaLibrary, JavaReader};

/// The stores, Java, and the list of contenders, which grows as Java's readers are found.
pub(super) struct Contenders<'a> {
    pub(super) stores: Vec<Box<dyn ConstantStore>>,
    pub(super) java: Option<&'a dyn JavaLibrary>,
    known: Vec<Contender>,
}

impl<'a> Contenders<'a> {
    pub(super) fn new(
        selection: Selection<dyn ConstantStore>,
        java: std::result::Result<&'a dyn JavaLibrary, &Contender>,
        options: &Options,
    ) -> Self {
        let mut known: Vec<Contender> =
            selection.stores.iter().flat_map(|store| contenders_of(&**store)).collect();
        known.extend(selection.skipped);
        match java {
            Ok(java) => known.extend(Construction::ALL.map(|construction| java_builder(java, construction))),
            Err(skipped) => known.push(skipped.clone()),
        }
        // A filter that excludes a store also excludes the reason that it could not run.
        if let Some(filter) = options.effective_filter() {
            known.retain(|contender| contender.skipped.is_none() || contender.name.contains(filter));
        }
        Contenders { stores: selection.stores, java: java.ok(), known }
    }

    /// Tells the user which contenders cannot run.
    pub(super) fn note_skipped(&self, progress: &dyn Progress) {
        self.known.iter().filter_map(Contender::why_left_out).for_each(|line| progress.note(&line));
    }

    /// Returns the contenders that take part.
    pub(super) fn names(&self) -> Vec<String> {
        let present = self.known.iter().filter(|contender| contender.skipped.is_none());
        present.map(|contender| contender.name.clone()).collect()
    }

    /// Adds a reader that Java offers, once.
    pub(super) fn add_java_reader(&mut self, java: &dyn JavaLibrary, reader: &JavaReader, options: &Options) {
        let name = reader.contender();
        if self.known.iter().any(|contender| contender.name == name) {
            return;
        }
        self.known.push(Contender {
            name,
            family: SPARKEY_JAVA.to_owned(),
            version: java.version().to_owned(),
            ours: false,
            settings: reader.settings(options.fresh_reads, options.java.keys_max_compressed),
            skipped: None,
        });
    }

    /// Returns all contenders that have a measurement, or a reason for having none.
    pub(super) fn finish(&self, recorder: &Recorder) -> Vec<Contender> {
        let mut listed = Vec::new();
        for mut contender in self.known.iter().cloned() {
            let reason = recorder.explain(&contender.name, &mut contender.settings);
            contender.skipped = reason.or(contender.skipped);
            if contender.skipped.is_none() && !recorder.has_figures(&contender.name) {
                continue;
            }
            listed.push(contender);
        }
        listed
    }
}

/// Returns the contender that builds and those that read. They are one if a store has only one way
/// to read and gives it the store's own name.
fn contenders_of(store: &dyn ConstantStore) -> Vec<Contender> {
    let contender = |name: &str, settings: Settings| Contender {
        name: name.to_owned(),
        family: store.family().to_owned(),
        version: store.version(),
        ours: store.ours(),
        settings,
        skipped: None,
    };
    let build: Settings =
        store.build_settings().into_iter().map(|(name, value)| (format!("build: {name}"), value)).collect();
    let variants = store.variants();
    let mut contenders = Vec::new();
    if variants.iter().all(|variant| variant.name != store.name()) {
        contenders.push(contender(store.name(), build.clone()));
    }
    for variant in variants {
        let mut settings = build.clone();
        settings.extend(variant.settings);
        contenders.push(contender(&variant.name, settings));
    }
    contenders
}

fn java_builder(java: &dyn JavaLibrary, construction: Construction) -> Contender {
    Contender {
        name: construction.contender().to_owned(),
        family: SPARKEY_JAVA.to_owned(),
        version: java.version().to_owned(),
        ours: false,
        settings: java.build_settings(construction),
        skipped: None,
    }
}
