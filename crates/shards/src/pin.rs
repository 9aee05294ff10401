//! Threads bound to processors.

use rustix::thread::CpuSet;

/// The processors that this process may use, in order, if threads are to be bound to them at all.
pub(crate) fn processors(pin: bool) -> impl Iterator<Item = usize> {
    let allowed = if pin { rustix::thread::sched_getaffinity(None).ok() } else { None };
    allowed.into_iter().flat_map(|set| (0..CpuSet::MAX_CPU).filter(move |&cpu| set.is_set(cpu)))
}

/// Binds the calling thread to a processor. Where that is not possible, it goes where the kernel puts it.
pub(crate) fn bind(processor: Option<usize>) {
    if let Some(processor) = processor {
        let mut set = CpuSet::new();
        set.set(processor);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }
}
