//! Sections of several runs on one page: ids that were unique on a page of their own get the run's
//! name in front.

use std::collections::BTreeSet;

/// Attributes that name ids, several of them with blanks between; `href` only where it begins with
/// `#`.
const ATTRIBUTES: [&str; 4] = [" id=\"", " href=\"#", " aria-labelledby=\"", " aria-describedby=\""];

/// `markup` with `name-` before each of its own ids, where they are given and where they are
/// referred to. Ids of the page around it stay.
///
/// The markup is this module's neighbours': attributes are in double quotes, and text has no bare
/// quote ([`escape`](super::html::escape)), so what looks like an attribute is one.
pub(super) fn within(name: &str, markup: &str) -> String {
    let own = ids(markup);
    let mut out = String::with_capacity(markup.len() + 16 * own.len());
    let mut rest = markup;
    while let Some((at, attribute)) = next(rest) {
        let (before, after) = rest.split_at(at + attribute.len());
        let Some((value, end)) = after.split_once('"') else { break };
        out.push_str(before);
        let named = |word: &str| if own.contains(word) { format!("{name}-{word}") } else { word.to_owned() };
        let words = value.split(' ').map(named);
        out.push_str(&words.collect::<Vec<_>>().join(" "));
        out.push('"');
        rest = end;
    }
    out.push_str(rest);
    out
}

fn ids(markup: &str) -> BTreeSet<&str> {
    let id = |(at, start): (usize, &str)| Some(markup.get(at + start.len()..)?.split_once('"')?.0);
    markup.match_indices(" id=\"").filter_map(id).collect()
}

/// The first of the attributes, and where it begins.
fn next(markup: &str) -> Option<(usize, &'static str)> {
    // All of them begin with a blank, and an attribute's value is passed over as a whole.
    markup.match_indices(' ').find_map(|(at, _)| {
        let rest = markup.get(at..)?;
        ATTRIBUTES.into_iter().find(|attribute| rest.starts_with(attribute)).map(|attribute| (at, attribute))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: own ids get the name wherever they stand, the page's and text that looks like markup
    /// do not.
    #[test]
    fn own_ids_are_named() {
        let markup = "<section id=\"size\"><a href=\"#size\">x</a><use href=\"#m1\"/><svg aria-labelledby=\"s-t s-d m2\">\
                      <title id=\"s-t\"> id=&quot;size&quot;</title><desc id=\"s-d\">#size</desc></svg></section>";
        let expected = "<section id=\"kv-size\"><a href=\"#kv-size\">x</a><use href=\"#m1\"/><svg aria-labelledby=\"kv-s-t kv-s-d m2\">\
                        <title id=\"kv-s-t\"> id=&quot;size&quot;</title><desc id=\"kv-s-d\">#size</desc></svg></section>";
        assert_eq!(within("kv", markup), expected);
        assert_eq!(within("kv", ""), "");
        assert_eq!(within("kv", "<p id=\"a"), "<p id=\"a");
    }
}
