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

/// A file that is written when the work is done, and not touched before: a run that is stopped half-way leaves what was
/// there.
pub(crate) struct PageFile {
    path: PathBuf,
}

impl PageFile {
    /// Checks that the file can be written later, before any time is spent.
    pub(crate) fn check(path: &Path) -> anyhow::Result<PageFile> {
        if path.is_dir() {
            bail!("--html {}: this is a folder; name a file in it", path.display());
        }
        let folder = folder_of(path);
        if !folder.is_dir() {
            bail!("--html {}: there is no folder {}; create it first", path.display(), folder.display());
        }
        Ok(PageFile { path: path.to_owned() })
    }

    /// Writes the file in one go.
    pub(crate) fn write(&self, page: &str) -> anyhow::Result<()> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let draft = folder_of(&self.path).join(format!(".{name}.{}.tmp", std::process::id()));
        let written = fs::write(&draft, page).and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            // The draft may not exist; the error that matters is the first one.
            let _ = fs::remove_file(&draft);
        }
        written.with_context(|| format!("--html {}: cannot write", self.path.display()))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
