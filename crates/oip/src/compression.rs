//! Compressed bodies.

#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::{Failure, Reason, Room};

/// Room is asked for in steps: as much as is unpacked already, from this much to that.
const STEP_BYTES: [usize; 2] = [16 << 10, 4 << 20];

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `gzip`.
    Gzip,
    /// `deflate`, which HTTP uses for the zlib format.
    Deflate,
}

impl Encoding {
    /// Its name in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Deflate => "deflate",
        }
    }

    /// What a `Content-Encoding` names; `None` for `identity`.
    pub fn of_content(name: &str) -> Result<Option<Encoding>, Failure> {
        match name.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Encoding::Gzip)),
            "deflate" => Ok(Some(Encoding::Deflate)),
            other => Err(Failure::new(
                Reason::Unimplemented,
                format!("Content-Encoding '{other}' is not supported: use gzip, deflate or none"),
            )),
        }
    }

    /// The encoding that an `Accept-Encoding` likes best, gzip where it does not mind; `None` if it names neither.
    pub fn accepted(header: &str) -> Option<Encoding> {
        let weight = |name: &str| {
            header
                .split(',')
                .filter_map(|item| {
                    let (item_name, parameters) = item.split_once(';').unwrap_or((item, ""));
                    item_name.trim().eq_ignore_ascii_case(name).then(|| {
                        let quality = parameters.trim().strip_prefix("q=");
                        quality.map_or(Some(1.0), |quality| quality.parse::<f32>().ok()).unwrap_or(0.0)
                    })
                })
                .fold(0.0, f32::max)
        };
        let (gzip, deflate) = (weight("gzip"), weight("deflate"));
        if gzip > 0.0 && gzip >= deflate {
            Some(Encoding::Gzip)
        } else {
            (deflate > 0.0).then_some(Encoding::Deflate)
        }
    }

    /// Unpacks a body, but not more than `limit` bytes: a small body can stand for a very large one.
    pub fn decode(self, body: &[u8], limit: usize) -> Result<Vec<u8>, Failure> {
        self.decode_within(body, limit, &mut |_| Ok(()))
    }

    /// Unpacks a body, but not more than `limit` bytes, and asks for [`Room`] before it takes any.
    pub fn decode_within(self, body: &[u8], limit: usize, room: &mut Room<'_>) -> Result<Vec<u8>, Failure> {
        match self {
            Encoding::Gzip => self.read(MultiGzDecoder::new(body), limit, room),
            Encoding::Deflate if has_zlib_header(body) => self.read(ZlibDecoder::new(body), limit, room),
            Encoding::Deflate => self.read(DeflateDecoder::new(body), limit, room),
        }
    }

    /// Packs the parts of a body, quickly rather than tightly.
    pub fn encode<'a>(self, parts: impl IntoIterator<Item = &'a [u8]>) -> io::Result<Vec<u8>> {
        match self {
            Encoding::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                parts.into_iter().try_for_each(|part| encoder.write_all(part))?;
                encoder.finish()
            }
            Encoding::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                parts.into_iter().try_for_each(|part| encoder.write_all(part))?;
                encoder.finish()
            }
        }
    }

    fn read(self, mut decoder: impl Read, limit: usize, room: &mut Room<'_>) -> Result<Vec<u8>, Failure> {
        let mut unpacked = Vec::new();
        let [mut step, longest] = STEP_BYTES;
        loop {
            // One byte more than allowed tells a body at the limit from one beyond it.
            let more = step.min((limit - unpacked.len()).saturating_add(1));
            room(more as u64)?;
            unpacked.reserve_exact(more);
            let read = decoder.by_ref().take(more as u64).read_to_end(&mut unpacked).map_err(|error| {
                Failure::new(Reason::Invalid, format!("the body is not valid {}: {error}", self.name()))
            })?;
            if unpacked.len() > limit {
                return Err(Failure::new(
                    Reason::TooBig,
                    format!(
                        "the body is larger than {limit} bytes when unpacked, which is the server's limit"
                    ),
                ));
            }
            if read < more {
                return Ok(unpacked);
            }
            step = unpacked.len().min(longest);
        }
    }
}

/// Some clients send bare deflate data under the name `deflate`; the zlib format starts with a header that has a check.
fn has_zlib_header(body: &[u8]) -> bool {
    matches!(body, [method, flags, ..] if method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31))
}
