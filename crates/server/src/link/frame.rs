//! Frames: a header that is a message, and a payload that is not.

use std::io::{self, Read, Write};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use prost::Message;

/// The longest header that is taken. The largest one lists the files of a model.
const HEADER_MAX: u32 = 16 << 20;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("the connection was closed")]
    Closed,
    #[error("nothing was heard for {0:?}")]
    Silent(Duration),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a message that is not understood: {0}")]
    Message(#[from] prost::DecodeError),
    #[error("a frame of {header} + {payload} bytes, of which at most {HEADER_MAX} + {payload_max} are taken")]
    TooLong { header: u32, payload: u64, payload_max: u64 },
}

/// A message as it came in.
#[derive(Debug)]
pub(crate) struct Frame<M> {
    pub(crate) message: M,
    pub(crate) payload: Bytes,
}

/// Writes a message and its payload, which is the parts one after the other.
pub(crate) fn write<'a>(
    to: &mut impl Write,
    message: &impl Message,
    payload: impl Iterator<Item = &'a [u8]> + Clone,
) -> io::Result<()> {
    let header = message.encode_to_vec();
    let header_len = u32::try_from(header.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let payload_len: u64 = payload.clone().map(|part| part.len() as u64).sum();
    to.write_all(&header_len.to_le_bytes())?;
    to.write_all(&payload_len.to_le_bytes())?;
    to.write_all(&header)?;
    for part in payload {
        to.write_all(part)?;
    }
    to.flush()
}

/// Reads a message whose payload is at most `payload_max` bytes long.
pub(crate) fn read<M: Message + Default>(
    from: &mut impl Read,
    payload_max: u64,
) -> Result<Frame<M>, LinkError> {
    let mut lengths = [0; 12];
    if let Err(error) = from.read_exact(&mut lengths) {
        return Err(match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => LinkError::Closed,
            _ => LinkError::Io(error),
        });
    }
    let (header, payload) = lengths.split_at(4);
    let header = u32::from_le_bytes(header.try_into().unwrap_or_default());
    let payload = u64::from_le_bytes(payload.try_into().unwrap_or_default());
    if header > HEADER_MAX || payload > payload_max {
        return Err(LinkError::TooLong { header, payload, payload_max });
    }
    let header = read_bytes(from, header.into())?;
    let payload = read_bytes(from, payload)?;
    Ok(Frame { message: M::decode(header)?, payload })
}

/// Memory is taken as the bytes come in: a length that is a lie costs nothing.
fn read_bytes(from: &mut impl Read, length: u64) -> io::Result<Bytes> {
    const STEP: u64 = 16 << 20;
    let mut bytes = BytesMut::with_capacity(length.min(STEP) as usize);
    while (bytes.len() as u64) < length {
        let at = bytes.len();
        bytes.resize(at + (length - at as u64).min(STEP) as usize, 0);
        from.read_exact(&mut bytes[at..])?;
    }
    Ok(bytes.freeze())
}
