//! Puts in the colons that the text format lets people leave out and that our parser wants.
//!
//! The format makes the colon between a field and a list of messages optional, and nearly every `config.pbtxt` leaves
//! it out: `input [ { ... } ]`. The parser knows that only for single messages.

/// A text with colons put in.
pub(super) struct Explicit {
    /// The text.
    pub(super) text: String,
    /// Where colons were put in, in bytes of the new text, ascending.
    colons: Vec<usize>,
}

/// What the last token was, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    Word,
    Other,
}

impl Explicit {
    /// The text with a colon before every list that follows a name.
    pub(super) fn new(source: &str) -> Explicit {
        let mut explicit = Explicit { text: String::with_capacity(source.len() + 16), colons: Vec::new() };
        let mut last = Token::Other;
        let mut rest = source;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '#' => rest.find('\n').unwrap_or(rest.len()),
                '"' | '\'' => string_length(rest, first),
                _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                _ => first.len_utf8(),
            };
            if first == '[' && last == Token::Word {
                explicit.colons.push(explicit.text.len());
                explicit.text.push(':');
            }
            if first != '#' && !first.is_whitespace() {
                last = if is_word(first) && !first.is_ascii_digit() { Token::Word } else { Token::Other };
            }
            explicit.text.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        explicit
    }

    /// Where a byte of the new text was in the old one.
    pub(super) fn original(&self, offset: usize) -> usize {
        offset - self.colons.partition_point(|&colon| colon < offset)
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The length of the string at the beginning of `text`, with its quotes; up to the end where it is not closed.
fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return index + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
