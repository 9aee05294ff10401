use proptest::prelude::*;

use super::cycles::disjoint;

/// Whether a graph without some of its vertices has a circle: peel off what has no edge left.
fn has_circle(next: &[Vec<usize>], gone: u32) -> bool {
    let mut left: Vec<usize> = (0..next.len()).filter(|vertex| gone >> vertex & 1 == 0).collect();
    loop {
        let kept: Vec<usize> =
            left.iter().copied().filter(|&vertex| next[vertex].iter().any(|to| left.contains(to))).collect();
        if kept.len() == left.len() {
            return !left.is_empty();
        }
        left = kept;
    }
}

proptest! {
    /// Whoever breaks all circles by taking vertices away takes at least one from each of those that have none in
    /// common.
    #[test]
    fn there_are_never_more_disjoint_circles_than_vertices_that_break_all(
        edges in prop::collection::vec((0usize..8, 0usize..8), 0..24)
    ) {
        let mut next = vec![Vec::new(); 8];
        for (from, to) in edges {
            next[from].push(to);
        }
        let fewest = (0u32..1 << 8).filter(|&gone| !has_circle(&next, gone)).map(u32::count_ones).min();
        let found = disjoint(&next);
        prop_assert!(found <= fewest.unwrap() as usize);
        prop_assert_eq!(found == 0, fewest == Some(0), "one circle is always found where there is any");
    }
}
