//! Where processor time goes, as Linux tells it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Ticks of the kernel's accounting; 100 a second on every Linux.
const TICK_MS: f64 = 10.0;

/// The processor time of a process and its children, in milliseconds, by the name of their threads. Empty where it
/// cannot be known.
pub(crate) fn by_thread(process: u32) -> BTreeMap<String, f64> {
    let mut times = BTreeMap::new();
    add(process, &mut times);
    times
}

fn add(process: u32, times: &mut BTreeMap<String, f64>) {
    let folder = PathBuf::from(format!("/proc/{process}/task"));
    for thread in fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Ok(stat) = fs::read_to_string(thread.path().join("stat"))
            && let Some((name, ms)) = name_and_time(&stat)
        {
            *times.entry(name).or_default() += ms;
        }
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            add(child, times);
        }
    }
}

/// The name of a thread without its number, and its processor time.
fn name_and_time(stat: &str) -> Option<(String, f64)> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
    let mut times = rest.split(' ').skip(11).map_while(|field| field.parse::<f64>().ok());
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
    Some((name.to_owned(), (times.next()? + times.next()?) * TICK_MS))
}
