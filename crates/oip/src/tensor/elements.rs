//! The elements of BYTES tensors.

/// Walks over the elements of a BYTES tensor's content. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

/// The content ends inside an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content ends inside an element")]
pub struct Truncated;

impl<'a> Elements<'a> {
    /// The elements of this content.
    pub fn new(content: &'a [u8]) -> Elements<'a> {
        Elements { rest: content }
    }

    /// The content that was not walked over yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], Truncated>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let split = self.rest.split_first_chunk().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
        });
        let Some((element, rest)) = split else {
            self.rest = &[];
            return Some(Err(Truncated));
        };
        self.rest = rest;
        Some(Ok(element))
    }
}

/// Appends an element. What does not fit the length's 32 bits is cut off: no message is that long.
pub(crate) fn push(content: &mut Vec<u8>, element: &[u8]) {
    let length = u32::try_from(element.len()).unwrap_or(u32::MAX);
    content.extend_from_slice(&length.to_le_bytes());
    content.extend_from_slice(&element[..length as usize]);
}
