//! JSON parsing whose errors name the line and the setting, in the user's words instead of the
//! names of Rust types.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny};
use serde_path_to_error::{Path, Segment};

use crate::error::{Error, Result};

/// The parser's messages for invalid JSON, and their wording for users.
const SYNTAX: [(&str, &str); 9] = [
    ("EOF while parsing an object", "the text ends within an object"),
    ("EOF while parsing a list", "the text ends within a list"),
    ("EOF while parsing a string", "unterminated string"),
    ("EOF while parsing a value", "the text ends where a value is expected"),
    ("expected value", "expected a value"),
    ("expected ident", "expected true, false or null"),
    ("key must be a string", "expected a name in double quotes"),
    ("trailing characters", "expected the end of the text"),
    ("trailing comma", "a comma with nothing after it"),
];

/// Parses JSON. Errors: [`Error::Parse`] with the line and the path of the setting at that place.
pub fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<T> {
    parse_at(text).map_err(|(line, what)| Error::parse(file, line, what))
}

/// Parses like [`parse`], for callers with an error type of their own. Errors: the line, counted
/// from 1, and a message.
pub fn parse_at<T: DeserializeOwned>(text: &str) -> std::result::Result<T, (usize, String)> {
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut parser)
        .map_err(|error| located(error.inner(), &path_text(error.path())))?;
    parser.end().map_err(|error| located(&error, ""))?;
    Ok(value)
}

/// Returns the line of an error and a message that begins with the path of the setting.
fn located(error: &serde_json::Error, path: &str) -> (usize, String) {
    let message = error.to_string();
    let words = in_words(message.rsplit_once(" at line ").map_or(message.as_str(), |(words, _)| words));
    // At the end of the text, the setting read last has nothing to do with the error.
    let path = if error.is_eof() { "" } else { path };
    // The message already names the setting, so its path need not.
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let path = if words.contains(&format!("`{name}`")) { parent } else { path };
    (error.line().max(1), if path.is_empty() { words } else { format!("{path}: {words}") })
}

/// Writes a path as in `workload.mix.read` or `stores[1]`.
fn path_text(path: &Path) -> String {
    let mut text = String::new();
    for segment in path.iter() {
        match segment {
            Segment::Seq { index } => text += &format!("[{index}]"),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                text += if text.is_empty() { "" } else { "." };
                text += name;
            }
            Segment::Unknown => {}
        }
    }
    text
}

/// Returns the line of the setting with this path, such as `workload.mix.read` or `stores[1]`, or
/// `None` if the text does not contain it.
pub fn line_of(text: &str, path: &str) -> Option<usize> {
    // `[1]` becomes a step of its own; no name of a setting has brackets.
    let path = path.replace('[', ".[");
    let steps: Vec<&str> = path.split('.').filter(|step| !step.is_empty()).collect();
    let is_found = Cell::new(false);
    let search = Search { steps: &steps, is_found: &is_found };
    let stopped = search.deserialize(&mut serde_json::Deserializer::from_str(text)).err()?;
    is_found.get().then(|| stopped.line())
}

/// Walks to a setting, and stops the parser there with an error, which knows the line.
#[derive(Clone, Copy)]
struct Search<'s> {
    steps: &'s [&'s str],
    is_found: &'s Cell<bool>,
}

impl<'s> Search<'s> {
    /// Returns the search within the value that is reached by `step`, or `None` if the path does
    /// not lead there.
    fn within(self, step: &str) -> Option<Search<'s>> {
        let (first, steps) = self.steps.split_first()?;
        (*first == step).then_some(Search { steps, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> std::result::Result<(), D::Error> {
        if self.steps.is_empty() {
            self.is_found.set(true);
            return Err(de::Error::custom("the setting is here"));
        }
        value.deserialize_any(self)
    }
}

impl<'de> de::Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list, where the path goes on")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match self.within(&name) {
                Some(search) => map.next_value_seed(search)?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        for index in 0.. {
            let is_there = match self.within(&format!("[{index}]")) {
                Some(search) => list.next_element_seed(search)?.is_some(),
                None => list.next_element::<IgnoredAny>()?.is_some(),
            };
            if !is_there {
                break;
            }
        }
        Ok(())
    }
}

/// Rewords a message of the parser for users.
pub fn in_words(message: &str) -> String {
    if let Some((_, words)) = SYNTAX.iter().find(|(said, _)| *said == message) {
        return (*words).to_owned();
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return format!("{name} is missing");
    }
    if let Some(name) = message.strip_prefix("duplicate field ") {
        return format!("{name} is given twice");
    }
    if let Some((_, expected)) =
        message.strip_prefix("invalid length ").and_then(|wrong| wrong.split_once(", expected "))
    {
        return format!("found a list, expected {}", expected_words(expected));
    }
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
        Some((found, expected)) => {
            format!("found {}, expected {}", found_words(found), expected_words(expected))
        }
        None => match message.strip_prefix("unknown field ") {
            Some(field) => {
                format!(
                    "unknown setting {}",
                    few(field).replace("there are no fields", "this kind has no settings")
                )
            }
            None => message.replace("unknown variant ", "unknown name "),
        },
    }
}

/// Reads a variant without settings. Serde would ignore settings of such a variant in spite of
/// `deny_unknown_fields`.
pub(crate) fn no_settings<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<(), D::Error> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct NoSettings {}
    NoSettings::deserialize(deserializer).map(|NoSettings {}| ())
}

/// An error about an unknown setting lists all known ones only up to this many.
const NAMED_MAX: usize = 12;

/// Shortens a parser's list of known names. A long list is cut down to the names spelt similarly.
fn few(message: &str) -> String {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((name, known)) = names.split_first().filter(|(_, known)| known.len() > NAMED_MAX) else {
        return message.to_owned();
    };
    let mut near: Vec<(usize, &str)> = known.iter().map(|known| (steps(name, known), *known)).collect();
    near.sort_unstable();
    let most = (name.len() / 3).max(1);
    let near: Vec<String> = near
        .iter()
        .filter(|(steps, _)| *steps <= most)
        .take(3)
        .map(|(_, known)| format!("`{known}`"))
        .collect();
    match near.is_empty() {
        true => format!("`{name}`, expected one of {}", known.len()),
        false => format!("`{name}`, expected {} or another of {}", near.join(", "), known.len()),
    }
}

/// Returns the edit distance of two names (Levenshtein).
fn steps(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.chars().enumerate() {
        let mut before = at;
        let mut left = at + 1;
        let mut next = vec![left];
        for (known, above) in to.iter().zip(row.iter().skip(1)) {
            left = (before + usize::from(*known != letter)).min(left + 1).min(above + 1);
            next.push(left);
            before = *above;
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

fn found_words(found: &str) -> String {
    let quoted =
        ["integer `", "floating point `", "boolean `"].iter().find_map(|kind| found.strip_prefix(kind));
    match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit" => "null".to_owned(),
        _ => match (quoted, found.strip_prefix("string ")) {
            (Some(value), _) => value.trim_end_matches('`').to_owned(),
            (_, Some(text)) => format!("the string {text}"),
            _ => found.to_owned(),
        },
    }
}

fn expected_words(expected: &str) -> String {
    let words = match expected {
        "u64" | "usize" => "a whole number from 0",
        "u32" => "a whole number from 0 to 4294967295",
        "u16" => "a whole number from 0 to 65535",
        "u8" => "a whole number from 0 to 255",
        "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text",
        "a sequence" => "a list",
        "string or map" => "a name, or an object",
        "path string" => "a path",
        _ if expected.starts_with("unit variant ") => "a name",
        _ if [
            "struct ",
            "tuple struct ",
            "enum ",
            "internally tagged enum ",
            "adjacently tagged enum ",
            "a map",
            "map",
        ]
        .iter()
        .any(|it| expected.starts_with(it)) =>
        {
            "an object with settings"
        }
        other => other,
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    /// Goal: errors do not show names of Rust types. Method: each kind of mistake, as the parser
    /// reports it.
    #[test]
    fn errors_are_in_words() {
        for (message, words) in [
            (
                "invalid type: string \"1PiB\", expected u64",
                "found the string \"1PiB\", expected a whole number from 0",
            ),
            (
                "invalid type: floating point `1.5`, expected u32",
                "found 1.5, expected a whole number from 0 to 4294967295",
            ),
            ("invalid value: integer `-1`, expected u64", "found -1, expected a whole number from 0"),
            ("invalid type: sequence, expected f64", "found a list, expected a number"),
            (
                "invalid type: integer `5`, expected struct Options",
                "found 5, expected an object with settings",
            ),
            ("invalid type: map, expected a boolean", "found an object, expected true or false"),
            ("unknown variant `a`, expected `b` or `c`", "unknown name `a`, expected `b` or `c`"),
            ("missing field `kind`", "`kind` is missing"),
            ("duplicate field `seed`", "`seed` is given twice"),
            (
                "invalid length 0, expected struct Options with 3 elements",
                "found a list, expected an object with settings",
            ),
            ("EOF while parsing an object", "the text ends within an object"),
        ] {
            assert_eq!(in_words(message), words);
        }
        let error = Config::from_json("{\"options\": 5}", "run.json").unwrap_err().to_string();
        assert!(error.contains("options: found 5, expected an object"), "{error}");
    }

    /// Goal: an unknown setting is answered with the known ones that are spelt similarly. Method:
    /// names that are nearly right, and one that is not.
    #[test]
    fn near_settings_are_named() {
        assert_eq!(["", "keys", "kyes", "kes"].map(|name| steps(name, "keys")), [4, 0, 2, 1]);
        for (text, said) in [
            (
                "write_bufer_size",
                "unknown setting `write_bufer_size`, expected `write_buffer_size` or another of ",
            ),
            ("nope", "unknown setting `nope`, expected one of "),
        ] {
            let error =
                Config::from_json(&format!("{{\"options\": {{\"{text}\": 1}}}}"), "run.json").unwrap_err();
            let error = error.to_string();
            assert!(error.contains(said) && error.len() < 150, "{error}");
        }
    }

    /// Goal: errors name the line and the setting. Method: bad values of several kinds, an unknown
    /// key, broken JSON.
    #[test]
    fn errors_name_line_and_setting() {
        let cases = [
            (
                "{\n \"options\": {\n  \"write_buffer_size\": -1\n }\n}",
                3,
                "options.write_buffer_size: found -1",
            ),
            ("{\n \"seed\": 1,\n \"sead\": 2\n}", 3, "unknown setting `sead`"),
            ("{\n \"options\": {\"ttl\": 1, \"tll\": 2}\n}", 2, "options: unknown setting `tll`"),
            ("{\n \"duration_secs\": \"long\"\n}", 2, "duration_secs: found the string \"long\""),
            ("{\n \"workload\": {\"keys\": 1e400}\n}", 2, "workload.keys: "),
            ("{\n \"workload\": {\"traffic\": {}\n}\n}", 2, "workload.traffic: `kind` is missing"),
            (
                "{\n \"workload\": {\"distribution\":\n {\"kind\": \"uniform\", \"theta\": 1.2}}}",
                3,
                "workload.distribution: unknown setting `theta`, this kind has no settings",
            ),
            ("{\n \"seed\": 1\n", 3, "the text ends within an object"),
            ("5", 1, "found 5, expected an object with settings"),
            ("{\"seed\": 1,\n\"seed\": 2}", 2, "`seed` is given twice"),
        ];
        for (text, line, what) in cases {
            let error = Config::from_json(text, "run.json").unwrap_err().to_string();
            assert!(error.starts_with(&format!("run.json, line {line}: {what}")), "{error}");
        }
    }

    /// Goal: a setting has the right path and line, whatever the strings before it contain. Method:
    /// quotes, colons and brackets within strings, lists, closed objects, a list in a list.
    #[test]
    fn settings_have_paths_and_lines() {
        let text = "{\"a\": \"{\\\"x\\\": [\",\n \"b\": {\"c\": 1},\n \"d\": [{\"e\": 2}, {\n\"f\": 3}, 4, [5,\n6]]\n}";
        serde_json::from_str::<serde_json::Value>(text).unwrap();
        let lines = ["a", "b", "b.c", "d[0].e", "d[1].f", "d[2]", "d[3][1]", "c", "d[4]"]
            .map(|path| line_of(text, path));
        let expected = [Some(1), Some(2), Some(2), Some(3), Some(4), Some(4), Some(5), None, None];
        assert_eq!(lines, expected);
        #[derive(Debug, serde::Deserialize)]
        #[allow(dead_code)]
        struct Wanted {
            a: String,
            b: std::collections::BTreeMap<String, u8>,
            d: Vec<std::collections::BTreeMap<String, u8>>,
        }
        for (from, to, path, line) in [
            ("1", "-1", "b.c", 2),
            ("2", "true", "d[0].e", 3),
            ("3", "\"\"", "d[1].f", 4),
            ("0", "0", "d[2]", 4),
        ] {
            let (found, error) = parse_at::<Wanted>(&text.replace(from, to)).unwrap_err();
            assert!(error.starts_with(&format!("{path}: found ")) && found == line, "{found}: {error}");
        }
    }
}
