use super::*;

#[test]
fn the_servers_own_table_is_read_back() {
    for reason in Reason::ALL {
        assert_eq!(reason_of_http(reason.http_status()), Some(reason));
        // Two reasons share a code; what they are called is what counts.
        if reason != Reason::TooBig {
            assert_eq!(reason_of_grpc(reason.grpc_code()), Some(reason));
        }
    }
}

#[test]
fn other_answers_are_somebodys_fault() {
    assert_eq!(reason_of_http(200), None);
    assert_eq!(reason_of_http(422), Some(Reason::Invalid));
    assert_eq!(reason_of_http(502), Some(Reason::Failed));
    assert_eq!(reason_of_http(302), Some(Reason::Failed));
    assert_eq!(reason_of_grpc(0), None);
    assert_eq!(reason_of_grpc(2), Some(Reason::Failed));
}
