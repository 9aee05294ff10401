//! How results leave: as text, as JSON, as a page.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// For programs: one JSON object.
    Json,
}

/// Writes to standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        stdout.write_all(b"\n")?;
    }
    Ok(stdout.flush()?)
}

/// Writes a warning to standard error.
pub(crate) fn warn(text: &str) {
    // Nothing can be done if even this cannot be written.
    let _ = writeln!(io::stderr(), "warning: {text}");
}

/// A plain table: the first column to the left, numbers to the right.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table.add_rows(rows);
    for column in table.column_iter_mut() {
        let alignment = if column.index == 0 { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(alignment);
    }
    table.trim_fmt()
}

/// Prints a result and writes its page, the latter even where nobody reads the former to its end.
pub(crate) fn deliver(
    result: &str,
    format: Format,
    page: Option<(PageFile, impl FnOnce() -> String)>,
) -> anyhow::Result<()> {
    let printed = print(result);
    let Some((file, draw)) = page else { return printed };
    file.write(&draw())?;
    printed?;
    match format {
        Format::Json => Ok(()),
        Format::Text => print(&format!("\nPictures: {}", file.path.display())),
    }
}

/// What is to be known before the numbers are believed, a line each.
pub(crate) fn notes(notes: &[String]) -> String {
    notes.iter().map(|note| format!("Note: {note}\n")).collect()
}

/// A file that is written when the work is done, and not touched before: a run that is stopped half-way leaves what was
/// there.
pub(crate) struct PageFile {
    /// As it was given.
    path: PathBuf,
    target: Target,
}

/// Where a page really goes.
enum Target {
    /// To a plain file, there already or not: replaced in one go. Links to it have been followed, and stay.
    File(PathBuf),
    /// To something else, such as a pipe or a terminal: written into.
    Stream(PathBuf),
}

impl PageFile {
    /// Checks that the file can be written later, before any time is spent.
    pub(crate) fn check(path: &Path) -> anyhow::Result<PageFile> {
        let page = PageFile { path: path.to_owned(), target: target_of(path) };
        if path.is_dir() {
            bail!("--html {}: this is a folder; name a file in it", path.display());
        }
        let Target::File(target) = &page.target else { return Ok(page) };
        let folder = folder_of(target);
        if !folder.is_dir() {
            bail!("--html {}: there is no folder {}; create it first", path.display(), folder.display());
        }
        let tried =
            if target.exists() { fs::OpenOptions::new().append(true).open(target).map(drop) } else { Ok(()) };
        tried
            .and_then(|()| write_draft(target, ""))
            .and_then(fs::remove_file)
            .with_context(|| page.failure())?;
        Ok(page)
    }

    /// Writes the file in one go.
    fn write(&self, page: &str) -> anyhow::Result<()> {
        let written = match &self.target {
            Target::Stream(stream) => fs::write(stream, page),
            Target::File(target) => write_draft(target, page).and_then(|draft| {
                // If the draft cannot be removed either, the error that matters is the first one.
                fs::rename(&draft, target).inspect_err(|_| drop(fs::remove_file(&draft)))
            }),
        };
        written.with_context(|| self.failure())
    }

    fn failure(&self) -> String {
        format!("--html {}: cannot write", self.path.display())
    }
}

fn target_of(path: &Path) -> Target {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Target::Stream(path.to_owned()),
        Ok(_) => Target::File(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())),
        // A link may name a file that is not there yet.
        Err(_) => match fs::read_link(path) {
            Ok(next) => Target::File(folder_of(path).join(next)),
            Err(_) => Target::File(path.to_owned()),
        },
    }
}

/// Writes a file next to `target`, to be renamed to it; leaves none where that fails.
fn write_draft(target: &Path, page: &str) -> io::Result<PathBuf> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder_of(target).join(format!(".{name}.{}.tmp", std::process::id()));
    match fs::write(&draft, page) {
        Ok(()) => Ok(draft),
        Err(error) => {
            // It may not exist.
            let _ = fs::remove_file(&draft);
            Err(error)
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
