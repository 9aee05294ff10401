//! A file as a buffer that seeks over what its reader skips.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use bytes::Buf;

/// How much is read at once. Headers are small, and what lies between them is skipped.
const WINDOW_BYTES: usize = 16 * 1024;

/// A file as a [`Buf`]: at any time a small window of it is in memory, and advancing past the window seeks.
pub(super) struct SeekingBuf {
    file: File,
    /// Bytes from the start of the window to the end of the file.
    remaining: u64,
    window: Vec<u8>,
    /// How much of the window was consumed; less than its length unless the file is at its end.
    consumed: usize,
    /// A `Buf` cannot fail: a failed read ends the buffer and is kept here.
    failure: Option<io::Error>,
}

impl SeekingBuf {
    pub(super) fn new(file: File) -> io::Result<SeekingBuf> {
        let remaining = file.metadata()?.len();
        let mut buf = SeekingBuf { file, remaining, window: Vec::new(), consumed: 0, failure: None };
        buf.fill();
        Ok(buf)
    }

    /// Whether all that was asked for could be read.
    pub(super) fn into_result(self) -> io::Result<()> {
        self.failure.map_or(Ok(()), Err)
    }

    fn fill(&mut self) {
        self.consumed = 0;
        self.window.resize(WINDOW_BYTES.min(usize::try_from(self.remaining).unwrap_or(WINDOW_BYTES)), 0);
        if let Err(error) = self.file.read_exact(&mut self.window) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: io::Error) {
        self.failure = Some(error);
        self.window.clear();
        self.consumed = 0;
        self.remaining = 0;
    }
}

impl Buf for SeekingBuf {
    fn remaining(&self) -> usize {
        usize::try_from(self.remaining - self.consumed as u64).unwrap_or(usize::MAX)
    }

    fn chunk(&self) -> &[u8] {
        &self.window[self.consumed..]
    }

    fn advance(&mut self, count: usize) {
        let count = count.min(self.remaining());
        let left = self.window.len() - self.consumed;
        if count < left {
            self.consumed += count;
            return;
        }
        self.remaining -= (self.consumed + count) as u64;
        match self.file.seek(SeekFrom::Current((count - left) as i64)) {
            Ok(_) => self.fill(),
            Err(error) => self.fail(error),
        }
    }
}
