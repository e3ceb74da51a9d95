//! Puts sections of several runs on one page: ids that are unique only within a run's own page get
//! the run's name as a prefix.

use std::collections::BTreeSet;

/// Attributes that contain ids, separated by spaces if there are several. `href` counts only if it
/// begins with `#`.
const ATTRIBUTES: [&str; 4] = [" id=\"", " href=\"#", " aria-labelledby=\"", " aria-describedby=\""];

/// Returns `markup` with `name-` before each id that it defines, both in definitions and in
/// references. Ids of the surrounding page stay unchanged.
///
/// The markup comes from this module's siblings: attributes are in double quotes, and text contains
/// no bare quote ([`escape`](super::html::escape)), so everything that looks like an attribute is
/// one.
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

/// Returns the first of the attributes, and its position.
fn next(markup: &str) -> Option<(usize, &'static str)> {
    // All of the attributes begin with a space, and the value of an attribute is skipped as a
    // whole.
    markup.match_indices(' ').find_map(|(at, _)| {
        let rest = markup.get(at..)?;
        ATTRIBUTES.into_iter().find(|attribute| rest.starts_with(attribute)).map(|attribute| (at, attribute))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: ids of the markup get the prefix wherever they occur; ids of the page and text that
    /// looks like markup do not.
    #[test]
    fn ids_of_the_markup_get_the_prefix() {
        let markup = "<section id=\"size\"><a href=\"#size\">x</a><use href=\"#m1\"/><svg aria-labelledby=\"s-t s-d m2\">\
                      <title id=\"s-t\"> id=&quot;size&quot;</title><desc id=\"s-d\">#size</desc></svg></section>";
        let expected = "<section id=\"kv-size\"><a href=\"#kv-size\">x</a><use href=\"#m1\"/><svg aria-labelledby=\"kv-s-t kv-s-d m2\">\
                        <title id=\"kv-s-t\"> id=&quot;size&quot;</title><desc id=\"kv-s-d\">#size</desc></svg></section>";
        assert_eq!(within("kv", markup), expected);
        assert_eq!(within("kv", ""), "");
        assert_eq!(within("kv", "<p id=\"a"), "<p id=\"a");
    }
}
