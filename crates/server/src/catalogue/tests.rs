use downbeat_oip::Reason;

use super::{Catalogue, State};

#[test]
fn a_model_that_is_to_be_loaded_is_not_unknown() {
    let catalogue = Catalogue::default();
    catalogue.set("m", 0, State::Loading, "");
    for version in ["", "1", "7"] {
        let failure = catalogue.find("m", version).unwrap_err();
        assert_eq!(failure.reason, Reason::Unavailable, "{version}");
        assert!(failure.message.contains("LOADING"), "{failure}");
    }
    assert_eq!(catalogue.find("m", "x").unwrap_err().reason, Reason::Unknown);
    assert_eq!(catalogue.find("other", "").unwrap_err().reason, Reason::Unknown);
    // As soon as its versions are known, others are not there.
    catalogue.set("m", 1, State::Loading, "");
    assert_eq!(catalogue.find("m", "1").unwrap_err().reason, Reason::Unavailable);
    assert_eq!(catalogue.find("m", "7").unwrap_err().reason, Reason::Unknown);
}
