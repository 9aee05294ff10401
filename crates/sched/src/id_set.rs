//! A set of small numbers that knows its smallest.

/// A set of small dense numbers, of which the smallest is found in as many steps as the number has digits to the base
/// of 64: three for fifty thousand.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdSet {
    /// A bit for every number; above it a bit for every word that is not zero, and so on up to a single word.
    levels: Vec<Vec<u64>>,
    len: usize,
}

const BITS: u32 = 6;
const LOW: u32 = (1 << BITS) - 1;

impl IdSet {
    /// The smallest number.
    pub(crate) fn first(&self) -> Option<u32> {
        let top = *self.levels.last()?.first()?;
        if top == 0 {
            return None;
        }
        let down = |at: u32, level: &Vec<u64>| at << BITS | level[at as usize].trailing_zeros();
        Some(self.levels.iter().rev().fold(0, down))
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn contains(&self, number: u32) -> bool {
        let word = self.levels.first().and_then(|level| level.get((number >> BITS) as usize));
        word.is_some_and(|word| word >> (number & LOW) & 1 == 1)
    }

    /// Puts a number in.
    pub(crate) fn insert(&mut self, mut number: u32) {
        if self.levels.first().is_none_or(|level| level.len() <= (number >> BITS) as usize) {
            self.reach(number);
        }
        let word = &mut self.levels[0][(number >> BITS) as usize];
        let (was, bit) = (*word, 1 << (number & LOW));
        *word |= bit;
        self.len += usize::from(was & bit == 0);
        if was != 0 {
            return;
        }
        for level in &mut self.levels[1..] {
            number >>= BITS;
            let word = &mut level[(number >> BITS) as usize];
            let was = *word;
            *word |= 1 << (number & LOW);
            if was != 0 {
                return;
            }
        }
    }

    /// Takes a number out; `false` where it was not in.
    pub(crate) fn remove(&mut self, mut number: u32) -> bool {
        if !self.contains(number) {
            return false;
        }
        self.len -= 1;
        for level in &mut self.levels {
            let word = &mut level[(number >> BITS) as usize];
            *word &= !(1 << (number & LOW));
            if *word != 0 {
                break;
            }
            number >>= BITS;
        }
        true
    }

    /// Makes room for a number.
    #[cold]
    fn reach(&mut self, number: u32) {
        let mut words = (number >> BITS) as usize + 1;
        let mut level = 0;
        loop {
            if self.levels.len() == level {
                // A new top stands for what was the top until now.
                let below = self.levels.last().and_then(|top| top.first()).copied().unwrap_or(0);
                self.levels.push(vec![u64::from(below != 0)]);
            }
            if self.levels[level].len() < words {
                self.levels[level].resize(words, 0);
            }
            if words == 1 && level + 1 >= self.levels.len() {
                return;
            }
            words = words.div_ceil(1 << BITS);
            level += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::IdSet;

    proptest! {
        #[test]
        fn an_id_set_knows_its_smallest_like_a_sorted_set(
            steps in prop::collection::vec((any::<bool>(), prop_oneof![0u32..10, 0u32..5_000, 0u32..300_000]), 0..300)
        ) {
            let mut ids = IdSet::default();
            let mut set = BTreeSet::new();
            for (insert, id) in steps {
                if insert {
                    ids.insert(id);
                    set.insert(id);
                } else {
                    prop_assert_eq!(ids.remove(id), set.remove(&id));
                }
                prop_assert_eq!(ids.first(), set.first().copied());
                prop_assert_eq!(ids.len(), set.len());
            }
            while let Some(first) = set.pop_first() {
                prop_assert_eq!(ids.first(), Some(first));
                prop_assert!(ids.remove(first));
            }
            prop_assert_eq!(ids.first(), None);
        }
    }
}
