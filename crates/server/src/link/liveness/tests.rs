use std::net::TcpListener;

use super::*;

#[test]
fn the_system_watches_over_a_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    notice_death(&stream).unwrap();
    assert!(sockopt::socket_keepalive(&stream).unwrap());
    assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), IDLE);
    assert_eq!(sockopt::tcp_user_timeout(&stream).unwrap(), 20_000);
}
