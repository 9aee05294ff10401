use flate2::write::DeflateEncoder;
use proptest::prelude::*;

use super::*;

#[test]
fn the_best_liked_encoding_is_taken() {
    for (header, expected) in [
        ("gzip", Some(Encoding::Gzip)),
        ("deflate", Some(Encoding::Deflate)),
        ("gzip, deflate, br", Some(Encoding::Gzip)),
        ("deflate;q=0.9, gzip;q=0.5", Some(Encoding::Deflate)),
        ("gzip;q=0", None),
        ("identity", None),
        ("", None),
    ] {
        assert_eq!(Encoding::accepted(header), expected, "{header}");
    }
}

#[test]
fn a_bomb_is_refused_at_the_limit() {
    let zeros = vec![0; 1 << 20];
    for encoding in [Encoding::Gzip, Encoding::Deflate] {
        let packed = encoding.encode([&zeros[..]]).unwrap();
        assert!(packed.len() < 10_000);
        assert_eq!(encoding.decode(&packed, zeros.len()).unwrap().len(), zeros.len());
        assert_eq!(encoding.decode(&packed, zeros.len() - 1).unwrap_err().reason, Reason::TooBig);
    }
}

#[test]
fn deflate_without_the_zlib_header_is_understood() {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(b"hello").unwrap();
    let bare = encoder.finish().unwrap();
    assert_eq!(Encoding::Deflate.decode(&bare, 100).unwrap(), b"hello");
}

#[test]
fn a_body_that_is_cut_off_is_refused() {
    let packed = Encoding::Gzip.encode([&b"hello"[..]]).unwrap();
    let failure = Encoding::Gzip.decode(&packed[..packed.len() - 4], 100).unwrap_err();
    assert_eq!(failure.reason, Reason::Invalid);
    assert!(failure.message.starts_with("the body is not valid gzip"), "{failure}");
}

#[test]
fn other_encodings_are_refused_by_name() {
    assert_eq!(Encoding::of_content("identity"), Ok(None));
    let failure = Encoding::of_content("br").unwrap_err();
    assert_eq!(failure.reason, Reason::Unimplemented);
    assert!(failure.message.contains("'br'"));
}

proptest! {
    #[test]
    fn what_was_packed_is_unpacked(
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..4),
        gzip in any::<bool>(),
    ) {
        let encoding = if gzip { Encoding::Gzip } else { Encoding::Deflate };
        let packed = encoding.encode(parts.iter().map(Vec::as_slice)).unwrap();
        prop_assert_eq!(encoding.decode(&packed, 1000).unwrap(), parts.concat());
    }

    #[test]
    fn arbitrary_bodies_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Encoding::Gzip.decode(&body, 1000);
        let _ = Encoding::Deflate.decode(&body, 1000);
    }
}

#[test]
fn nothing_is_unpacked_without_room_for_it() {
    let packed = Encoding::Gzip.encode([&vec![0; 20 << 20][..]]).unwrap();
    let mut asked = 0;
    let unpacked = Encoding::Gzip
        .decode_within(&packed, usize::MAX, &mut |more| {
            asked += more;
            Ok(())
        })
        .unwrap();
    assert!((20 << 20..=24 << 20).contains(&asked), "{asked}");
    assert_eq!(unpacked.len(), 20 << 20);

    let mut left: u64 = 1 << 20;
    let refused = Encoding::Gzip.decode_within(&packed, usize::MAX, &mut |more| {
        left = left.checked_sub(more).ok_or_else(|| Failure::new(Reason::Overloaded, "no room"))?;
        Ok(())
    });
    assert_eq!(refused.unwrap_err().reason, Reason::Overloaded);
}
