//! A network between a server and a worker that a test can break.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

/// How the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Weather {
    /// All comes through at once.
    Fine,
    /// Nothing comes through, and nobody is told.
    Silent,
    /// Everything takes 20 ms longer, 64 KiB at a time.
    Slow,
    /// Connections break, and new ones too.
    Broken,
}

/// Passes connections on to a server, as well as the weather allows.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    weather: Arc<AtomicU8>,
}

impl Proxy {
    pub(crate) fn start(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let weather = Arc::new(AtomicU8::new(Weather::Fine as u8));
        let shared = Arc::clone(&weather);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(to) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let weather = Arc::clone(&shared);
                    thread::spawn(move || carry(&from, &to, &weather));
                }
            }
        });
        Proxy { address, weather }
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.weather.store(weather as u8, Ordering::Relaxed);
    }
}

fn carry(mut from: &TcpStream, mut to: &TcpStream, weather: &AtomicU8) {
    const LOOK: Duration = Duration::from_millis(20);
    let is = |which: Weather| weather.load(Ordering::Relaxed) == which as u8;
    from.set_read_timeout(Some(LOOK)).unwrap();
    to.set_nodelay(true).unwrap();
    let mut bytes = vec![0; 64 << 10];
    loop {
        while is(Weather::Silent) {
            thread::sleep(LOOK);
        }
        let read = match from.read(&mut bytes) {
            Ok(read) if read > 0 && !is(Weather::Broken) => read,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && !is(Weather::Broken) => continue,
            _ => break,
        };
        if is(Weather::Slow) {
            thread::sleep(LOOK);
        }
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    // Both ends are to know.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
