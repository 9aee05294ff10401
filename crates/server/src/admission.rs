//! How much may be in the server at once.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use downbeat_oip::{Failure, Reason};

/// Counts the bytes of the requests and answers that are in the server, and lets no request in beyond what it was told
/// to: bodies while they come in, what they are unpacked to and read as, and answers until they are written.
#[derive(Clone, Debug)]
pub struct Admission {
    bytes: Arc<AtomicU64>,
    bytes_max: u64,
}

/// A request's place in the server, given back when the last who shares it drops it.
#[derive(Debug)]
pub struct Permit {
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    admission: Admission,
    held: Mutex<u64>,
}

impl Admission {
    /// Lets in so many bytes at once.
    pub fn new(bytes_max: u64) -> Admission {
        Admission { bytes: Arc::default(), bytes_max }
    }

    /// How many bytes are in the server.
    #[cfg(test)]
    pub(crate) fn held(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn admit(&self, bytes: u64) -> Result<Permit, Failure> {
        let permit = self.permit();
        permit.hold(bytes)?;
        Ok(permit)
    }

    /// A place that takes no room yet.
    pub(crate) fn permit(&self) -> Permit {
        Permit { place: Arc::new(Place { admission: self.clone(), held: Mutex::new(0) }) }
    }
}

impl Default for Permit {
    /// A place where there is always room.
    fn default() -> Permit {
        Admission::new(u64::MAX).permit()
    }
}

impl Permit {
    /// The same place: it is taken as long as either is there.
    pub(crate) fn share(&self) -> Permit {
        Permit { place: Arc::clone(&self.place) }
    }

    /// Takes room for so many bytes instead of what it had. Where there is none, it keeps what it had.
    pub(crate) fn hold(&self, bytes: u64) -> Result<(), Failure> {
        self.change(|_| bytes)
    }

    /// Takes room for so many bytes more. Where there is none, it keeps what it had.
    pub(crate) fn hold_more(&self, bytes: u64) -> Result<(), Failure> {
        self.change(|held| held.saturating_add(bytes))
    }

    /// Holds so many bytes, whether there is room or not. For answers, which are there already: one that was computed
    /// is not thrown away, but while there are too many, nothing new comes in.
    pub(crate) fn insist(&self, bytes: u64) {
        let mut held = self.place.held.lock().unwrap_or_else(PoisonError::into_inner);
        let all = &self.place.admission.bytes;
        all.fetch_add(bytes, Ordering::Relaxed);
        all.fetch_sub(*held, Ordering::Relaxed);
        *held = bytes;
    }

    fn change(&self, to: impl FnOnce(u64) -> u64) -> Result<(), Failure> {
        let mut held = self.place.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Admission { bytes: all, bytes_max } = &self.place.admission;
        let bytes = to(*held);
        if bytes <= *held {
            all.fetch_sub(*held - bytes, Ordering::Relaxed);
        } else {
            let more = bytes - *held;
            // Added only where it fits: what is refused must not keep others out meanwhile.
            let fits = |all: u64| all.checked_add(more).filter(|all| all <= bytes_max);
            if all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
                let limit = bytes_max >> 20;
                let message = format!(
                    "the server holds {limit} MiB of requests and answers, its limit (pending_max_mib), or would with this one"
                );
                return Err(Failure::new(Reason::Overloaded, message));
            }
        }
        *held = bytes;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.admission.bytes.fetch_sub(*held, Ordering::Relaxed);
    }
}
