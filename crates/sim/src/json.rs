//! JSON whose errors name line and setting.

use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// Parses JSON. Errors: [`Error::Parse`] with the line, and the setting that the place belongs to.
pub fn parse<T: DeserializeOwned>(text: &str, file: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line().max(1), error.column());
        let message = error.to_string();
        let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what).to_owned();
        let what = match setting_before(text, line, column) {
            Some(name) if !what.contains(&format!("`{name}`")) => format!("{name}: {what}"),
            _ => what,
        };
        Error::parse(file, line, what)
    })
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
    use crate::config::Config;

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
