//! Chooses a function or an operator by the types of its arguments, by PostgreSQL's rules
//! ("Function Type Resolution" in its manual).

use super::casts;
use super::kind::{Category, Kind};

/// A function or an operator that may be chosen.
pub(super) trait Candidate: Copy {
    /// Returns the type of an argument; `None` if it does not have so many.
    fn parameter(self, at: usize) -> Option<Kind>;
}

/// Returns the best of several candidates for arguments of these types; the type of an untyped
/// literal is `None`. Returns `None` if no candidate fits, or if several fit equally well because
/// the type of a literal is open.
///
/// If several candidates fit arguments with types equally well, which PostgreSQL refuses, the first
/// is chosen.
pub(super) fn best<C: Candidate>(candidates: impl Iterator<Item = C>, given: &[Option<Kind>]) -> Option<C> {
    let fitting = narrowed(candidates, given);
    if fitting.len() > 1 && given.contains(&None) {
        return by_category(&fitting, given).or_else(|| as_the_others(&fitting, given));
    }
    fitting.first().copied()
}

/// Returns the best of several candidates for arguments of these types; `None` if no candidate
/// fits, or if several fit equally well.
pub(super) fn only<C: Candidate>(candidates: impl Iterator<Item = C>, given: &[Kind]) -> Option<C> {
    let given: Vec<Option<Kind>> = given.iter().copied().map(Some).collect();
    match *narrowed(candidates, &given) {
        [only] => Some(only),
        _ => None,
    }
}

/// Returns the candidates that fit these arguments best by the types that are known: first by the
/// number of arguments of exactly the candidate's type, then by those of preferred types.
fn narrowed<C: Candidate>(candidates: impl Iterator<Item = C>, given: &[Option<Kind>]) -> Vec<C> {
    let mut fitting: Vec<C> = candidates.filter(|candidate| fits(*candidate, given)).collect();
    let is_exact = |candidate: C| count(candidate, given, false) == given.len();
    if let Some(exact) = fitting.iter().copied().find(|candidate| is_exact(*candidate)) {
        return vec![exact];
    }
    for with_preferred in [false, true] {
        if fitting.len() > 1 {
            keep_most(&mut fitting, |candidate| count(candidate, given, with_preferred));
        }
    }
    fitting
}

/// Whether each argument has the type of the candidate, or is cast to it implicitly.
fn fits<C: Candidate>(candidate: C, given: &[Option<Kind>]) -> bool {
    given.iter().enumerate().all(|(at, given)| {
        candidate
            .parameter(at)
            .is_some_and(|parameter| given.is_none_or(|given| casts::is_implicit(given, parameter)))
    })
}

fn keep_most<C: Candidate>(candidates: &mut Vec<C>, count: impl Fn(C) -> usize) {
    let most = candidates.iter().map(|candidate| count(*candidate)).max().unwrap_or(0);
    candidates.retain(|candidate| count(*candidate) == most);
}

/// Returns the number of arguments of the candidate's own type, or of those whose category has that
/// type as its preferred one.
fn count<C: Candidate>(candidate: C, given: &[Option<Kind>], with_preferred: bool) -> usize {
    let is_counted = |(at, given): (usize, &Option<Kind>)| match (candidate.parameter(at), given) {
        (Some(parameter), Some(given)) => {
            let is_preferred =
                || with_preferred && parameter.is_preferred() && parameter.category() == given.category();
            parameter == *given || is_preferred()
        }
        _ => false,
    };
    given.iter().enumerate().filter(|argument| is_counted(*argument)).count()
}

/// Chooses a category for each untyped literal, strings if a candidate has one there, and in it the
/// preferred type. Returns the only candidate with these.
fn by_category<C: Candidate>(candidates: &[C], given: &[Option<Kind>]) -> Option<C> {
    let mut wanted: Vec<(usize, Category, bool)> = Vec::new();
    for (at, _) in given.iter().enumerate().filter(|(_, given)| given.is_none()) {
        let kinds: Vec<Kind> = candidates.iter().filter_map(|candidate| candidate.parameter(at)).collect();
        let first = kinds.first()?.category();
        let category = match kinds.iter().any(|kind| kind.category() == Category::String) {
            true => Category::String,
            false if kinds.iter().all(|kind| kind.category() == first) => first,
            false => return None,
        };
        let has_preferred = kinds.iter().any(|kind| kind.category() == category && kind.is_preferred());
        wanted.push((at, category, has_preferred));
    }
    let is_wanted = |candidate: &C| {
        wanted.iter().all(|(at, category, preferred)| {
            candidate
                .parameter(*at)
                .is_some_and(|kind| kind.category() == *category && (!preferred || kind.is_preferred()))
        })
    };
    let mut found = candidates.iter().copied().filter(|candidate| is_wanted(candidate));
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// If all arguments with types have the same, gives it to the untyped literals. Returns the only
/// candidate that fits then.
fn as_the_others<C: Candidate>(candidates: &[C], given: &[Option<Kind>]) -> Option<C> {
    let mut known = given.iter().copied().flatten();
    let kind = known.next()?;
    if known.any(|other| other != kind) {
        return None;
    }
    let all = vec![Some(kind); given.len()];
    let mut found = candidates.iter().copied().filter(|candidate| fits(*candidate, &all));
    let only = found.next()?;
    found.next().is_none().then_some(only)
}
