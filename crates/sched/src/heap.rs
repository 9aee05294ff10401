//! A priority queue whose entries can be moved and taken out by index.

/// A binary min-heap over small dense indices (models, GPUs), each present at most once.
///
/// Changing or removing the key of any index costs O(log n): windows move with every arrival, so the matchmaker needs
/// more than push and pop. Equal keys come out in the order of their indices, which keeps replays identical.
#[derive(Clone, Debug)]
pub(crate) struct KeyedHeap<K> {
    heap: Vec<(K, u32)>,
    /// Where each index stands in `heap`; `ABSENT` where it does not.
    position: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl<K> Default for KeyedHeap<K> {
    fn default() -> Self {
        KeyedHeap { heap: Vec::new(), position: Vec::new() }
    }
}

impl<K: Ord + Copy> KeyedHeap<K> {
    /// The smallest key and its index.
    pub(crate) fn peek(&self) -> Option<(K, u32)> {
        self.heap.first().copied()
    }

    /// The second smallest key and its index.
    #[inline]
    pub(crate) fn peek_second(&self) -> Option<(K, u32)> {
        match *self.heap {
            [] | [_] => None,
            [_, second] => Some(second),
            [_, left, right, ..] => Some(left.min(right)),
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Takes all entries out.
    pub(crate) fn clear(&mut self) {
        for (_, index) in self.heap.drain(..) {
            self.position[index as usize] = ABSENT;
        }
    }

    /// Whether `index` is present.
    pub(crate) fn contains(&self, index: u32) -> bool {
        self.position.get(index as usize).is_some_and(|&at| at != ABSENT)
    }

    /// Gives `index` this key, whether it was present or not.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, key: K) {
        if self.position.len() <= index as usize {
            self.reach(index);
        }
        let at = self.position[index as usize] as usize;
        if at == ABSENT as usize {
            self.position[index as usize] = self.heap.len() as u32;
            self.heap.push((key, index));
            self.rise(self.heap.len() - 1);
        } else {
            let earlier = key < self.heap[at].0;
            self.heap[at].0 = key;
            if earlier { self.rise(at) } else { self.sink(at) }
        }
    }

    #[cold]
    fn reach(&mut self, index: u32) {
        self.position.resize(index as usize + 1, ABSENT);
    }

    /// Takes `index` out; `false` where it was not present.
    pub(crate) fn remove(&mut self, index: u32) -> bool {
        if !self.contains(index) {
            return false;
        }
        let at = self.position[index as usize] as usize;
        self.position[index as usize] = ABSENT;
        if let Some(last) = self.heap.pop()
            && at < self.heap.len()
        {
            self.refill(at, last);
        }
        true
    }

    /// Fills a hole with an entry from the end. It most likely belongs near the end, so that comparing it with both
    /// children on the way down would be in vain: the smaller child moves up all the way, and the entry rises from the
    /// bottom.
    fn refill(&mut self, hole: usize, entry: (K, u32)) {
        let mut at = hole;
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < self.heap.len() {
                child += usize::from(self.heap[child + 1] < self.heap[child]);
            } else if child >= self.heap.len() {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
        self.rise(at);
    }

    #[inline]
    fn rise(&mut self, at: usize) {
        if at > 0 && self.heap[at] < self.heap[(at - 1) / 2] {
            self.rise_far(at);
        }
    }

    fn rise_far(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= entry {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if entry <= self.heap[child] {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }

    fn place(&mut self, at: usize, entry: (K, u32)) {
        self.heap[at] = entry;
        self.position[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::KeyedHeap;

    proptest! {
        #[test]
        fn a_keyed_heap_always_shows_the_smallest_key_like_a_sorted_map(
            steps in prop::collection::vec((0u32..20, prop::option::of(0u8..50)), 0..400)
        ) {
            let mut heap = KeyedHeap::default();
            let mut model = BTreeMap::new();
            for (index, key) in steps {
                match key {
                    Some(key) => {
                        heap.set(index, key);
                        model.insert(index, key);
                    }
                    None => prop_assert_eq!(heap.remove(index), model.remove(&index).is_some()),
                }
                let smallest = model.iter().map(|(&index, &key)| (key, index)).min();
                prop_assert_eq!(heap.peek(), smallest);
                let second = model.iter().map(|(&index, &key)| (key, index)).filter(|&entry| Some(entry) != smallest).min();
                prop_assert_eq!(heap.peek_second(), second);
                prop_assert_eq!(heap.contains(index), model.contains_key(&index));
            }
        }
    }
}
