//! JSON whose errors name line and setting, in the words of who wrote it and not of the program's types.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Parses JSON. Errors: [`Error::Parse`] with the line, and the setting that the place belongs to.
pub fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line().max(1), error.column());
        let message = error.to_string();
        let what = in_words(message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what));
        let what = match setting_before(text, line, column) {
            Some(name) if !what.contains(&format!("`{name}`")) => format!("{name}: {what}"),
            _ => what,
        };
        Error::parse(file, line, what)
    })
}

/// What a parser says of a value, in a user's words.
pub fn in_words(message: &str) -> String {
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    match wrong.and_then(|wrong| wrong.rsplit_once(", expected ")) {
        Some((found, expected)) => {
            format!("found {}, expected {}", found_words(found), expected_words(expected))
        }
        None => {
            message.replace("unknown variant ", "unknown name ").replace("unknown field ", "unknown setting ")
        }
    }
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
            (_, Some(text)) => format!("the text {text}"),
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
        _ if ["struct ", "enum ", "internally tagged enum ", "a map"]
            .iter()
            .any(|it| expected.starts_with(it)) =>
        {
            "an object with settings"
        }
        other => other,
    };
    words.to_owned()
}

/// The last key of an object that begins before the place.
fn setting_before(text: &str, line: usize, column: usize) -> Option<String> {
    let start: usize = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let rest = text.get(start..)?;
    let end = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
    let head = text.get(..start + end)?;
    let colon = head.rfind("\":").or_else(|| head.rfind("\" :"))?;
    let name = head.get(..colon)?;
    Some(name.get(name.rfind('"')? + 1..)?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::in_words;
    use crate::config::Config;

    /// Goal: nobody has to know the program's types. Method: each kind of mistake, as the parser tells it.
    #[test]
    fn errors_are_in_words() {
        for (message, words) in [
            (
                "invalid type: string \"1PiB\", expected u64",
                "found the text \"1PiB\", expected a whole number from 0",
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
        ] {
            assert_eq!(in_words(message), words);
        }
        let error = Config::from_json("{\"options\": 5}", "run.json").unwrap_err().to_string();
        assert!(error.contains("options: found 5, expected an object"), "{error}");
    }

    /// Goal: what is wrong is named with its line. Method: bad values of several kinds, an unknown key, broken JSON.
    #[test]
    fn errors_name_line_and_setting() {
        let cases = [
            ("{\n \"options\": {\n  \"write_buffer_size\": -1\n }\n}", 3, "write_buffer_size"),
            ("{\n \"seed\": 1,\n \"sead\": 2\n}", 3, "sead"),
            ("{\n \"duration_secs\": \"long\"\n}", 2, "duration_secs"),
            ("{\n \"workload\": {\"keys\": 1e400}\n}", 2, "keys"),
            ("{\n \"seed\": 1\n", 2, ""),
        ];
        for (text, line, name) in cases {
            let error = Config::from_json(text, "run.json").unwrap_err().to_string();
            assert!(error.starts_with(&format!("run.json, line {line}")) || name.is_empty(), "{error}");
            assert!(error.contains(name), "{error}");
        }
    }
}
