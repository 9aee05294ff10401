//! MIG-serving's slow algorithm (arXiv 2109.11067, section 5.3): Monte-Carlo tree search for the fewest GPUs.
//!
//! A node is the vector of completion rates, an edge one more GPU, and the goal the shortest way to where every demand is met. A node's children
//! are the best ten GPUs composed of five random services that lack something; what lies below a node is judged by completing it
//! at random, from remembered pools of good GPUs by coarse type of the completion vector.
//!
//! Where this departs: the search begins from greedy's deployment with its last GPUs taken away, few of them at first and all in the end, because a tree over
//! hundreds of GPUs is never searched deep; and a playout is cut short when it cannot beat the best plan.

use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Greedy;
use super::deployment::{Deployment, Filled};
use super::greedy::{over_limit, sequence, tidy};
use super::rollout::Rollout;
use crate::problem::Problem;
use crate::solver::{Allocation, Progress, Run, Solved, Solver, Unsolved};

/// The slow planner.
pub struct Mcts;

/// The shares of greedy's GPUs that are taken away, in turn.
const TAKEN_AWAY: [f64; 5] = [0.1, 0.2, 0.4, 0.7, 1.0];
/// Playouts without a better plan after which a search ends.
const PATIENCE: u32 = 200;
/// How much playouts elsewhere are worth against going where it was best.
const EXPLORATION: f64 = 0.02;
/// A node is expanded when it has been passed so often.
const EXPAND_AFTER: u32 = 2;

impl Solver for Mcts {
    fn name(&self) -> &'static str {
        "mcts"
    }

    fn about(&self) -> &'static str {
        "MIG-serving's slow algorithm: Monte-Carlo tree search from greedy's plan"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        let greedy = Greedy.solve(problem, run)?;
        let taken = sequence(problem);
        let mut search = Search {
            problem,
            rollout: Rollout::new(Xoshiro256PlusPlus::seed_from_u64(run.seed)),
            root: Deployment::new(problem),
            nodes: Vec::new(),
            best: greedy.allocation,
        };
        for share in TAKEN_AWAY {
            let kept = taken.len() - (taken.len() as f64 * share).ceil() as usize;
            search.root = Deployment::new(problem);
            for gpu in &taken[..kept] {
                search.root.add(gpu);
            }
            search.nodes = vec![Node::default()];
            let mut idle = 0;
            while idle < PATIENCE && !(run.stop)() {
                let before = search.best.cost(problem);
                if before <= greedy.bound.cost * (1.0 + 1e-9) {
                    break;
                }
                search.playout();
                let cost = search.best.cost(problem);
                idle = if cost < before { 0 } else { idle + 1 };
                if cost < before {
                    (run.on_progress)(&Progress { phase: "mcts", cost, bound: greedy.bound.cost });
                }
            }
        }
        match over_limit(problem, &search.best) {
            Some(infeasible) => Err(infeasible.into()),
            None => Ok(Solved { allocation: search.best, bound: greedy.bound, notes: Vec::new() }),
        }
    }
}

/// A state that was reached: how often, and the cheapest plan found below it.
struct Node {
    visits: u32,
    least_cost: f64,
    children: Vec<(Filled, usize)>,
}

impl Default for Node {
    fn default() -> Node {
        Node { visits: 0, least_cost: f64::INFINITY, children: Vec::new() }
    }
}

struct Search<'a> {
    problem: &'a Problem,
    rollout: Rollout,
    /// Where the tree begins.
    root: Deployment<'a>,
    nodes: Vec<Node>,
    best: Allocation,
}

impl Search<'_> {
    /// Down the tree, one step beyond it, and to the end at random.
    fn playout(&mut self) {
        let mut state = self.root.clone();
        let mut path = vec![0];
        let mut at = 0;
        while state.is_lacking() {
            if self.nodes[at].children.is_empty() {
                if self.nodes[at].visits < EXPAND_AFTER {
                    break;
                }
                self.expand(at, &state);
            }
            let Some(&(_, next)) = self.choose(at) else { break };
            let gpu =
                self.nodes[at].children.iter().find(|(_, node)| *node == next).map(|(gpu, _)| gpu.clone());
            let Some(gpu) = gpu else { break };
            state.add(&gpu);
            at = next;
            path.push(at);
        }
        let best = self.best.cost(self.problem);
        // As good as the best is worth knowing, too: it says where to look.
        let cost = match self.rollout.complete(&mut state, best) {
            Some(_) => {
                let mut found = state.into_allocation();
                tidy(self.problem, &mut found);
                let cost = found.cost(self.problem);
                if cost < best - 1e-9 {
                    self.best = found;
                }
                cost
            }
            None => best * 1.05,
        };
        for node in path {
            self.nodes[node].visits += 1;
            self.nodes[node].least_cost = self.nodes[node].least_cost.min(cost);
        }
    }

    fn expand(&mut self, node: usize, state: &Deployment<'_>) {
        let unsatisfied = state.unsatisfied();
        for gpu in self.rollout.compose(state) {
            let gpu = state.fill_up(gpu, &unsatisfied);
            self.nodes.push(Node::default());
            let child = self.nodes.len() - 1;
            self.nodes[node].children.push((gpu, child));
        }
    }

    /// The child that is best, or has been seen too little to know.
    fn choose(&self, node: usize) -> Option<&(Filled, usize)> {
        let all = f64::from(self.nodes[node].visits.max(1)).ln();
        let best = self.best.cost(self.problem);
        let value = |child: &Node| {
            if child.visits == 0 {
                return f64::INFINITY;
            }
            -child.least_cost / best + EXPLORATION * (all / f64::from(child.visits)).sqrt()
        };
        let children = &self.nodes[node].children;
        children.iter().max_by(|a, b| value(&self.nodes[a.1]).total_cmp(&value(&self.nodes[b.1])))
    }
}
