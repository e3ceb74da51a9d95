//! Man pages and shell completions, generated from the same definitions as the help.
//!
//! The text after the options in `--help` has three parts, told apart by how paragraphs begin:
//! examples (`Example` or `Examples`), notes, and a sentence that begins with `Exit codes:`. Each
//! gets a section of the man page.

use std::path::Path;
use std::sync::Arc;

use cairn_vfs::Fs;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Cli;
use crate::args::manual::{CompletionsArgs, ENVIRONMENT, EXIT_CODES, ManArgs};
use crate::bench::write_file;
use crate::error::{Error, Result};
use crate::output::{Outcome, Output, counted};

/// The name of the program.
const NAME: &str = "cairn";

/// The beginning of the sentence about a command's own exit codes.
const OWN_CODES: &str = "Exit codes:";

/// Prints the completion script of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), NAME, &mut script);
    let mut out = Output::new();
    out.bytes(&script)?;
    out.finish()?;
    Ok(Outcome::Done)
}

/// Prints the first man page, or writes all of them to a directory.
pub fn man(fs: &Arc<dyn Fs>, args: &ManArgs) -> Result<Outcome> {
    let pages = pages()?;
    let mut out = Output::new();
    match &args.dir {
        None => pages.iter().take(1).try_for_each(|page| out.bytes(&page.text))?,
        Some(dir) => {
            for page in &pages {
                write_file(fs, &dir.join(Path::new(&page.name).with_extension("1")), &page.text)?;
            }
            out.line(format!("{}: {}", dir.display(), counted(pages.len() as u64, "page", "pages")))?;
        }
    }
    out.finish()?;
    Ok(Outcome::Done)
}

/// A man page.
#[derive(Debug)]
pub struct Page {
    /// The name, such as `cairn-kv-get`.
    pub name: String,
    /// The roff source.
    pub text: Vec<u8>,
}

/// Generates a page for `cairn` and each of its commands, except hidden ones.
pub fn pages() -> Result<Vec<Page>> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    collect(&root, NAME, None, &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, name: &str, above: Option<&str>, pages: &mut Vec<Page>) -> Result<()> {
    let text = page(command, above).map_err(|error| Error::usage(format!("the page of {name}: {error}")))?;
    pages.push(Page { name: name.to_owned(), text });
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        collect(below, &format!("{name}-{}", below.get_name()), Some(name), pages)?;
    }
    Ok(())
}

fn page(command: &Command, above: Option<&str>) -> std::io::Result<Vec<u8>> {
    let man = Man::new(command.clone()).manual("Cairn");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    text.extend(sections(command, above).into_bytes());
    Ok(text)
}

/// Returns the sections after the options: notes, exit codes, environment, examples, the parent
/// page.
fn sections(command: &Command, above: Option<&str>) -> String {
    let after_help = AfterHelp::of(command);
    let mut text = String::new();
    if !after_help.notes.is_empty() {
        text += ".SH NOTES\n";
        text += &after_help
            .notes
            .iter()
            .map(|note| format!(".nf\n{}\n.fi\n", escaped(note)))
            .collect::<Vec<_>>()
            .join(".PP\n");
    }
    text += ".SH \"EXIT STATUS\"\n";
    for (code, what) in EXIT_CODES {
        text += &format!(".TP\n{code}\n{}\n", escaped(what));
    }
    if let Some(codes) = &after_help.exit_codes {
        text += &format!(".PP\nHere: {}\n", escaped(codes));
    }
    if above.is_none() {
        text += ".SH ENVIRONMENT\n";
        for (name, what) in ENVIRONMENT {
            text += &format!(".TP\n{name}\n{}\n", escaped(what));
        }
    }
    if let Some(examples) = &after_help.examples {
        text += &format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", escaped(examples));
    }
    if let Some(above) = above {
        text += &format!(".SH \"SEE ALSO\"\n{}(1)\n", escaped(above));
    }
    text
}

/// The text after the options of a command's help, split into its parts.
#[derive(Debug, Default)]
pub struct AfterHelp {
    /// Command lines, each indented by two blanks.
    pub examples: Option<String>,
    /// The paragraphs that are notes.
    pub notes: Vec<String>,
    /// The meaning of the exit codes for this command.
    pub exit_codes: Option<String>,
}

impl AfterHelp {
    /// Splits the help of a command.
    pub fn of(command: &Command) -> AfterHelp {
        let whole = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut after_help = AfterHelp::default();
        for paragraph in whole.split("\n\n").map(str::trim_end).filter(|paragraph| !paragraph.is_empty()) {
            let examples = paragraph.strip_prefix("Examples:\n").or(paragraph.strip_prefix("Example:\n"));
            if let Some(examples) = examples {
                after_help.examples = Some(examples.to_owned());
                continue;
            }
            let (note, codes) =
                paragraph.find(OWN_CODES).map_or((paragraph, ""), |at| paragraph.split_at(at));
            if !note.trim().is_empty() {
                after_help.notes.push(note.trim_end().to_owned());
            }
            if let Some(codes) = codes.strip_prefix(OWN_CODES) {
                after_help.exit_codes = Some(codes.split_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
        after_help
    }
}

/// Escapes text for roff: backslashes, hyphens (so that they can be copied), and lines that begin
/// with a control character.
fn escaped(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = escaped
        .lines()
        .map(|line| if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the text after the options reaches its sections, and none of it is interpreted as a
    /// roff request. Method: a command with all parts, including a backslash, a hyphen and a line
    /// that begins with a dot.
    #[test]
    fn help_after_the_options_is_kept() {
        let help =
            "Examples:\n  a --b 'c\\n'\n\nSome words\n.of a note. Exit codes: 0 yes, 2 no.\n\nAnother.";
        let text = sections(&Command::new("a").after_help(help), Some("above"));
        let expected = [
            ".SH NOTES\n.nf\nSome words\n\\&.of a note.\n.fi\n.PP\n.nf\nAnother.\n.fi\n.SH \"EXIT STATUS\"",
            ".PP\nHere: 0 yes, 2 no.\n",
            ".SH EXAMPLES\n.nf\n  a \\-\\-b 'c\\en'\n.fi\n.SH \"SEE ALSO\"\nabove(1)\n",
        ];
        for part in expected {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }
}
