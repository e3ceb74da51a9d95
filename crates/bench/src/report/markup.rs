//! A strict reader of the report's own markup, for tests. It rejects the errors that browsers
//! repair.

use std::collections::BTreeSet;

/// One start tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The tag's name, as written.
    pub(crate) name: String,
    /// Attributes, in order.
    pub(crate) attributes: Vec<(String, String)>,
    /// True inside a `<script type="text/html">`, whose content is text until it is shown.
    pub(crate) inert: bool,
}

impl Tag {
    /// Returns the value of an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A parsed page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// All start tags, in order.
    pub(crate) tags: Vec<Tag>,
    /// The text between tags without scripts and styles, each piece on a line of its own.
    pub(crate) text: String,
    /// The contents of the script elements.
    pub(crate) scripts: Vec<String>,
}

const VOID: [&str; 5] = ["meta", "link", "input", "br", "hr"];
const SHAPES: [&str; 6] = ["line", "circle", "rect", "path", "use", "svg"];

/// Parses a page. Panics if tags do not nest, an attribute is not quoted, or text contains a bare
/// `<` or `&`.
pub(crate) fn parse(html: &str) -> Page {
    let mut rest = html.strip_prefix("<!doctype html>\n").expect("doctype");
    let mut page = Page::default();
    let mut open: Vec<String> = Vec::new();
    while let Some(start) = rest.find('<') {
        take_text(&mut page, &rest[..start]);
        rest = &rest[start..];
        let end = tag_end(rest);
        let (tag, after) = (&rest[1..end], &rest[end + 1..]);
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "closing tag out of order, open: {open:?}");
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = tag.split([' ', '\n']).next().unwrap_or_default().to_owned();
        let inert = open.iter().any(|name| name == "script");
        let tag = Tag { attributes: attributes(&tag[name.len()..]), name: name.clone(), inert };
        let is_markup = tag.get("type") == Some("text/html");
        // To a browser, the content of such an element is text that ends at the first closing tag
        // of its kind, so the element must not contain another one.
        let nested =
            open.iter().any(|other| other == &name && ["script", "noscript"].contains(&other.as_str()));
        assert!(!nested, "<{name}> in a <{name}>");
        page.tags.push(tag);
        if closed {
            assert!(SHAPES.contains(&name.as_str()), "<{name}/> does not close itself in HTML");
        } else if (name == "script" && !is_markup) || name == "style" {
            assert!(!inert, "<{name}> in markup that is kept as text");
            let close = format!("</{name}>");
            let length = rest.find(&close).expect("closed script");
            if name == "script" {
                page.scripts.push(rest[..length].to_owned());
            }
            rest = &rest[length + close.len()..];
        } else if !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    take_text(&mut page, rest);
    assert!(open.is_empty(), "left open: {open:?}");
    page
}

/// Returns the end of the tag at the start of `text`: the first `>` outside quotes.
fn tag_end(text: &str) -> usize {
    let mut quoted = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return index,
            b'<' if index > 0 => panic!("< inside a tag: {}", text.chars().take(80).collect::<String>()),
            _ => {}
        }
    }
    panic!("tag without end");
}

fn attributes(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "attribute name {name:?}");
        rest = after;
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix("=\"") {
            let end = after.find('"').expect("closing quote");
            value = unescape(&after[..end]);
            rest = &after[end + 1..];
        } else {
            assert!(!rest.starts_with('='), "unquoted attribute {name}");
        }
        assert!(!out.iter().any(|(other, _)| other == name), "attribute {name} twice");
        out.push((name.to_owned(), value));
        rest = rest.trim_start();
    }
    out
}

fn take_text(page: &mut Page, text: &str) {
    assert!(!text.contains('>'), "bare > in text: {text:?}");
    if !text.trim().is_empty() {
        page.text += &unescape(text);
        page.text.push('\n');
    }
}

fn unescape(text: &str) -> String {
    let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;", "&#10;"];
    for (index, _) in text.match_indices('&') {
        assert!(known.iter().any(|entity| text[index..].starts_with(entity)), "bare & in {text:?}");
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&#10;", "\n")
        .replace("&amp;", "&")
}

/// Panics unless ids are unique (inert markup may repeat the ids of the markup that it replaces),
/// links lead to ids on the page, nothing is fetched, every chart has a description, and every
/// coordinate is a number.
pub(crate) fn check(page: &Page) {
    let live = || page.tags.iter().filter(|tag| !tag.inert);
    let mut ids = BTreeSet::new();
    for id in live().filter_map(|tag| tag.get("id")) {
        assert!(ids.insert(id.to_owned()), "id {id} twice");
    }
    for tag in &page.tags {
        if let Some(link) = tag.get("href").filter(|link| *link != "data:,") {
            let target = link.strip_prefix('#').unwrap_or_else(|| panic!("{} leads away: {link}", tag.name));
            assert!(ids.contains(target), "nothing has the id {target}");
        }
        for name in ["src", "srcset", "action", "xlink:href", "onclick", "onload", "onerror"] {
            assert_eq!(tag.get(name), None, "{} has {name}", tag.name);
        }
        for (name, value) in &tag.attributes {
            if matches!(
                name.as_str(),
                "x" | "y" | "x1" | "x2" | "y1" | "y2" | "cx" | "cy" | "r" | "width" | "height" | "d"
            ) {
                let plain = |c: char| {
                    c.is_ascii_digit() || "%.- ".contains(c) || (name == "d" && "MLHVhvZz".contains(c))
                };
                let is_meta = tag.name == "meta";
                assert!(
                    is_meta || (!value.is_empty() && value.chars().all(plain)),
                    "{} {name}={value:?}",
                    tag.name
                );
            }
        }
        if tag.name == "svg" && tag.get("role") == Some("img") {
            assert!(tag.get("aria-labelledby").is_some(), "a chart without title");
        }
    }
    for tag in live().filter(|tag| tag.get("role") == Some("img")) {
        for id in tag.get("aria-labelledby").unwrap_or_default().split(' ') {
            assert!(ids.contains(id), "no title or description {id}");
        }
    }
    for line in page.text.lines() {
        assert!(!line.contains("NaN") && !line.contains("inf "), "a figure that is none is shown: {line:?}");
    }
}
