//! Terminal input: line editing with history and completion, and passwords without echo.

use std::cell::RefCell;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::rc::Rc;

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use crate::error::{Error, Result};
use crate::interrupt::{self, Unfinished};

use super::source::Source;

/// The number of lines of history.
const HISTORY_LINES: usize = 10_000;

/// The current names of tables, columns and commands.
pub type Names = Rc<RefCell<Vec<String>>>;

struct Assistant {
    names: Names,
    files: FilenameCompleter,
}

impl Helper for Assistant {}
impl Highlighter for Assistant {}
impl Validator for Assistant {}

impl Hinter for Assistant {
    type Hint = String;
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..at).unwrap_or(line);
        let takes_file = [".read ", ".import ", ".output ", ".backup ", "\\i ", "\\o "];
        if takes_file.iter().any(|command| typed.starts_with(command)) {
            return self.files.complete(line, at, context);
        }
        Ok(candidates(typed, &self.names.borrow()))
    }
}

/// Returns where the word before the cursor begins, and its completions. Words in capitals are
/// completed in capitals.
fn candidates(typed: &str, names: &[String]) -> (usize, Vec<Pair>) {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '\\');
    let start = typed.rfind(|c| !is_part(c)).map_or(0, |at| at + typed.get(at..).map_or(1, first_bytes));
    let word = typed.get(start..).unwrap_or_default();
    // After `table.`, complete the column.
    let is_command = start == 0 && word.starts_with(['.', '\\']);
    let start = if is_command { start } else { word.rfind('.').map_or(start, |at| start + at + 1) };
    let word = typed.get(start..).unwrap_or_default();
    if word.is_empty() {
        return (start, Vec::new());
    }
    let in_capitals = word.chars().all(|c| !c.is_lowercase());
    let folded = word.to_lowercase();
    let fits = |name: &&String| name.to_lowercase().starts_with(&folded);
    let shown = |name: &String| {
        let is_keyword = cairn_sql::RESERVED_WORDS.contains(&name.as_str())
            || super::keywords::OTHERS.contains(&name.as_str());
        let text = if in_capitals && is_keyword { name.to_uppercase() } else { name.clone() };
        Pair { display: text.clone(), replacement: text }
    };
    (start, names.iter().filter(fits).map(shown).collect())
}

fn first_bytes(text: &str) -> usize {
    text.chars().next().map_or(1, char::len_utf8)
}

/// Line input from a user at a terminal.
pub struct Terminal {
    /// Restores the terminal's mode if a signal ends the command.
    _as_it_was: Option<Unfinished>,
    editor: Editor<Assistant, DefaultHistory>,
    history: Option<PathBuf>,
    prompt: String,
    /// The lines of the current statement, which become one history entry.
    open: String,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("history", &self.history).finish_non_exhaustive()
    }
}

impl Terminal {
    /// Opens the terminal and loads the history. `prompt` is the name of the database.
    pub fn new(prompt: String, names: Names) -> Result<Terminal> {
        let refuse = |error: ReadlineError| Error::usage(format!("the terminal cannot be used: {error}"));
        let config = Config::builder()
            .max_history_size(HISTORY_LINES)
            .and_then(|builder| builder.history_ignore_dups(true))
            .map_err(refuse)?
            .completion_type(CompletionType::List)
            .build();
        // If a signal ended the command during line editing, the terminal would be left without
        // echo and line breaks.
        let as_it_was = tcgetattr(io::stdin()).ok().map(|before| {
            interrupt::unfinished(move || _ = tcsetattr(io::stdin(), OptionalActions::Now, &before))
        });
        let _as_it_was = as_it_was.transpose()?;
        let mut editor = Editor::with_config(config).map_err(refuse)?;
        editor.set_helper(Some(Assistant { names, files: FilenameCompleter::new() }));
        let history = std::env::var_os("CAIRN_HISTORY")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cairn_history")));
        if let Some(path) = &history {
            // Fails on the first start, when there is no history yet.
            let _ = editor.load_history(path);
        }
        Ok(Terminal { _as_it_was, editor, history, prompt, open: String::new() })
    }
}

impl Source for Terminal {
    fn line(&mut self, mark: char) -> Result<Option<String>> {
        if mark == '=' {
            let entry = std::mem::take(&mut self.open);
            if !entry.trim().is_empty() {
                // Continue even if the history cannot be saved.
                let _ = self.editor.add_history_entry(entry.trim());
                let _ = self.history.as_ref().map(|path| self.editor.append_history(path));
            }
        }
        match self.editor.readline(&format!("{}{mark}> ", self.prompt)) {
            Ok(line) => {
                self.open.push_str(&line);
                self.open.push('\n');
                Ok(Some(line))
            }
            Err(ReadlineError::Eof) => Ok(None),
            Err(ReadlineError::Interrupted) => {
                self.open.clear();
                Err(Error::Interrupted("the typed text is discarded".to_owned()))
            }
            Err(error) => Err(Error::usage(format!("the terminal cannot be read: {error}"))),
        }
    }

    fn place(&self) -> Option<String> {
        None
    }
}

/// Reads a line without echo.
pub fn hidden(prompt: &str) -> Result<String> {
    let stdin = io::stdin();
    // Nothing can be done if standard error is closed.
    let _ = write!(io::stderr(), "{prompt}");
    let before = tcgetattr(&stdin).map_err(|error| Error::Stdin(error.into()))?;
    let as_it_was = before.clone();
    let unfinished = interrupt::unfinished(move || {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &as_it_was);
        let _ = writeln!(io::stderr());
    })?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Flush, &silent).map_err(|error| Error::Stdin(error.into()))?;
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    let _ = tcsetattr(&stdin, OptionalActions::Flush, &before);
    drop(unfinished);
    let _ = writeln!(io::stderr());
    read.map_err(Error::Stdin)?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the word before the cursor is completed, including a column after its table; keywords
    /// follow the case of the typed word.
    #[test]
    fn words_are_completed() {
        let names = ["select", "accounts", "balance", ".tables", "\\dt", "Žluť"].map(str::to_owned);
        for (typed, start, expected) in [
            ("SEL", 0, &["SELECT"][..]),
            ("sel", 0, &["select"]),
            ("select acc", 7, &["accounts"]),
            ("select accounts.bal", 16, &["balance"]),
            (".ta", 0, &[".tables"]),
            ("\\d", 0, &["\\dt"]),
            ("é,žl", 3, &["Žluť"]),
            ("", 0, &[]),
        ] {
            let (at, pairs) = candidates(typed, &names);
            let found: Vec<_> = pairs.iter().map(|pair| pair.replacement.as_str()).collect();
            assert_eq!((at, found.as_slice()), (start, expected), "{typed}");
        }
    }
}
