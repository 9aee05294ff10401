//! Which instances, put somewhere else, let those in the way be spared?

use std::collections::BTreeMap;

use super::Goal;
use crate::case::{KindIndex, Rate};
use crate::sequence::state::State;

impl State {
    /// Lists of kinds whose instances pay for what is in the way, the shortest first. Of each service either the
    /// blockers themselves, or kinds that are wanted anyway: one large instance may do for several small ones.
    pub(super) fn covers(&self, goal: &Goal) -> Vec<Vec<KindIndex>> {
        let mut needs: BTreeMap<usize, (Rate, Vec<KindIndex>)> = BTreeMap::new();
        for blocker in &goal.blockers {
            let (rate, kinds) = needs.entry(self.case.service(blocker.kind)).or_default();
            *rate += self.case.rate(blocker.kind);
            kinds.push(blocker.kind);
        }
        // For each service: the same instances elsewhere, the fewest, the smallest.
        let mut lists: [Vec<KindIndex>; 3] = Default::default();
        for (service, (rate, mut blockers)) in needs {
            let need = rate.saturating_sub(self.credit(service));
            if need == 0 {
                continue;
            }
            blockers.sort_by_key(|&kind| std::cmp::Reverse(self.case.rate(kind)));
            let same = self.enough(need, &blockers);
            let mut options = vec![same.clone()];
            for kind in 0..self.case.kinds.len() {
                let copies = self.wanted[kind] as usize;
                if self.case.service(kind) == service && copies > 0 {
                    let all = vec![kind; copies.min(blockers.len())];
                    let some = self.enough(need, &all);
                    if some.iter().map(|&kind| self.case.rate(kind)).sum::<Rate>() >= need {
                        options.push(some);
                    }
                }
            }
            let units =
                |list: &Vec<KindIndex>| list.iter().map(|&kind| u32::from(self.size(kind))).sum::<u32>();
            let fewest =
                options.iter().min_by_key(|list| (list.len(), units(list))).cloned().unwrap_or_default();
            let smallest =
                options.iter().min_by_key(|list| (units(list), list.len())).cloned().unwrap_or_default();
            for (list, option) in lists.iter_mut().zip([fewest, smallest, same]) {
                list.extend(option);
            }
        }
        for list in &mut lists {
            list.sort_unstable();
        }
        let mut lists = lists.to_vec();
        lists.sort_by_key(|list| (list.len(), list.clone()));
        lists.dedup();
        lists
    }

    /// As many of `kinds`, from the first, as serve `need`.
    fn enough(&self, need: Rate, kinds: &[KindIndex]) -> Vec<KindIndex> {
        let mut sum = 0;
        let mut taken = Vec::new();
        for &kind in kinds {
            if sum >= need {
                break;
            }
            sum += self.case.rate(kind);
            taken.push(kind);
        }
        taken
    }
}
