use super::is_log_level;

#[test]
fn a_word_that_is_no_level_is_not_taken_for_a_module() {
    for level in ["info", "WARN", "off", "info,downbeat_server=debug", "downbeat_server::link=trace"] {
        assert!(is_log_level(level), "{level}");
    }
    for level in ["bananas", "", "info,", "info,bananas", "downbeat_server=loud"] {
        assert!(!is_log_level(level), "{level}");
    }
}
