//! Circles in a graph that have no vertex in common.

use std::collections::VecDeque;

/// How many circles without a common vertex were found, always taking a shortest one next. `next` are the edges out of
/// each vertex.
pub(super) fn disjoint(next: &[Vec<usize>]) -> usize {
    let mut is_left = vec![true; next.len()];
    let mut count = 0;
    // A shortest circle only grows when vertices go, so that each length is left behind for good.
    let mut length = 1;
    while length <= next.len() {
        let found = (0..next.len())
            .filter(|&from| is_left[from])
            .find_map(|from| circle(next, &is_left, from, length));
        match found {
            Some(circle) => {
                count += 1;
                circle.into_iter().for_each(|vertex| is_left[vertex] = false);
            }
            None => length += 1,
        }
    }
    count
}

/// A circle through `from` of at most `length` vertices.
fn circle(next: &[Vec<usize>], is_left: &[bool], from: usize, length: usize) -> Option<Vec<usize>> {
    let mut before: Vec<Option<usize>> = vec![None; next.len()];
    let mut open = VecDeque::from([(from, 1)]);
    while let Some((vertex, depth)) = open.pop_front() {
        for &after in next[vertex].iter().filter(|&&after| is_left[after]) {
            if after == from {
                let mut circle = vec![vertex];
                while let Some(earlier) = circle.last().and_then(|&last| before[last]) {
                    circle.push(earlier);
                }
                return Some(circle);
            }
            if before[after].is_none() && depth < length {
                before[after] = Some(vertex);
                open.push_back((after, depth + 1));
            }
        }
    }
    None
}
