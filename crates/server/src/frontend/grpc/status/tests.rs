use super::*;

fn read(text: &'static str) -> Option<Duration> {
    let mut metadata = MetadataMap::new();
    metadata.insert("grpc-timeout", text.parse().unwrap());
    timeout(&metadata)
}

#[test]
fn a_timeout_has_one_of_six_units() {
    assert_eq!(read("2H"), Some(Duration::from_secs(7200)));
    assert_eq!(read("2M"), Some(Duration::from_secs(120)));
    assert_eq!(read("2S"), Some(Duration::from_secs(2)));
    assert_eq!(read("2m"), Some(Duration::from_millis(2)));
    assert_eq!(read("2u"), Some(Duration::from_micros(2)));
    assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
}

#[test]
fn what_is_no_timeout_is_none() {
    for text in ["", "S", "5", "5x", "-5S", "999999999S", "1.5S"] {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(timeout(&MetadataMap::new()), None);
}
