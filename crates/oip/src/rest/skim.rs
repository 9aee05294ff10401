//! How much memory JSON takes once it is read, known before.

#[cfg(test)]
mod tests;

/// The most that a value, a name or a comma of JSON can come to: an entry of a map with its key, or half an output.
const TOKEN_BYTES: u64 = 128;

/// The most that a request takes when its JSON is read, without the content of its tensors: arrays under `data` are not
/// read with the rest. The JSON need not be well-formed.
pub(super) fn skim(json: &str) -> u64 {
    let bytes = json.as_bytes();
    let (mut at, mut tokens, mut text) = (0, 1, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let length = string_length(&bytes[at..]);
                let is_data = &bytes[at..at + length] == b"\"data\"";
                at += length;
                text += length as u64;
                if is_data {
                    at += data_length(&bytes[at..]);
                }
                continue;
            }
            b',' | b':' | b'{' | b'[' => tokens += 1,
            _ => {}
        }
        at += 1;
    }
    tokens * TOKEN_BYTES + text
}

/// The length of the string at the start, with its quotes.
pub(super) fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of what follows a name, up to the end of its array; 0 where that is no array.
fn data_length(bytes: &[u8]) -> usize {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b':');
    let start = bytes.iter().take_while(|byte| is_space(byte)).count();
    if bytes.get(start) != Some(&b'[') {
        return 0;
    }
    let (mut at, mut depth) = (start, 0u32);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += string_length(&bytes[at..]);
                continue;
            }
            b'[' => depth += 1,
            b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}
