//! MIG-serving's slow algorithm (arXiv 2109.11067, section 5.3): Monte-Carlo tree search for the fewest GPUs.
//!
//! A node is the vector of completion rates, an edge one more GPU, and the goal the shortest way to where every demand
//! is met. A node's children are the best ten GPUs composed of five random services that lack something; what lies
//! below a node is judged by completing it at random, from remembered pools of good GPUs by coarse type of the
//! completion vector.
//!
//! Where this departs: a tree over hundreds of GPUs is never searched deep, so that each begins from the best
//! deployment so far with some of its GPUs taken away, all of them at first and few in the end; playouts score GPUs by
//! several tastes (`taste.rs`), not by the published one alone; and a playout is cut short when it cannot be as good as
//! the best plan.

use super::Greedy;
use super::chromosome::{Chromosome, ROUNDING};
use super::deployment::{Deployment, Filled};
use super::greedy::{over_limit, sequence};
use super::rollout::Rollout;
use super::taste::Worth;
use crate::problem::Problem;
use crate::solver::{Progress, Run, Solved, Solver, Unsolved};

/// The slow planner.
pub struct Mcts;

/// The shares of the GPUs that are taken away, in turn.
const TAKEN_AWAY: [f64; 7] = [1.0, 0.75, 0.5, 0.25, 0.12, 0.06, 0.03];
/// Trees of each share that are searched without a better plan.
const TREES: u32 = 4;
/// Playouts without a better plan after which a tree is left.
const PATIENCE: u32 = 40;
/// How much playouts elsewhere are worth against going where it was best.
const EXPLORATION: f64 = 0.02;
/// A node is expanded when it has been passed so often.
const EXPAND_AFTER: u32 = 2;

impl Solver for Mcts {
    fn name(&self) -> &'static str {
        "mcts"
    }

    fn about(&self) -> &'static str {
        "MIG-serving's slow algorithm: Monte-Carlo tree search"
    }

    fn solve(&self, problem: &Problem, run: &Run<'_>) -> Result<Solved, Unsolved> {
        let greedy = Greedy.solve(problem, run)?;
        let worth = Worth::of(problem, run);
        let first = Chromosome { gpus: sequence(problem, run) };
        let mut search = Search {
            problem,
            worth: &worth,
            rollout: Rollout::new(problem, &worth, run),
            kept: Chromosome { gpus: Vec::new() },
            root: Deployment::new(problem),
            nodes: Vec::new(),
            fitness: first.fitness(problem, &worth),
            best: first,
        };
        let mut best = greedy.allocation;
        for share in TAKEN_AWAY {
            let mut idle = 0;
            while idle < TREES && !(run.stop)() && best.cost(problem) > greedy.bound.cost * (1.0 + 1e-9) {
                let before = search.fitness;
                search.tree(share, run);
                idle = if search.fitness < before - ROUNDING { 0 } else { idle + 1 };
                let found = search.best.allocation(problem);
                if found.cost(problem) < best.cost(problem) - 1e-9 {
                    best = found;
                    let cost = best.cost(problem);
                    (run.on_progress)(&Progress { phase: "mcts", cost, bound: greedy.bound.cost });
                }
            }
        }
        match over_limit(problem, &best) {
            Some(infeasible) => Err(infeasible.into()),
            None => Ok(Solved { allocation: best, bound: greedy.bound, notes: Vec::new() }),
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
    worth: &'a Worth,
    rollout: Rollout<'a>,
    /// What the tree begins from.
    kept: Chromosome,
    /// Where that stands.
    root: Deployment<'a>,
    nodes: Vec<Node>,
    best: Chromosome,
    /// The best one's.
    fitness: f64,
}

impl Search<'_> {
    /// Searches from the best deployment without a share of its GPUs, until nothing better is found.
    fn tree(&mut self, share: f64, run: &Run<'_>) {
        let erased = (self.best.gpus.len() as f64 * share).ceil().max(2.0) as usize;
        (self.kept, self.root) = self.best.erase(self.problem, erased, &mut self.rollout.random);
        self.nodes = vec![Node::default()];
        let mut idle = 0;
        while idle < PATIENCE && !(run.stop)() {
            let before = self.fitness;
            self.playout();
            idle = if self.fitness < before - ROUNDING { 0 } else { idle + 1 };
        }
    }

    /// Down the tree, one step beyond it, and to the end at random.
    fn playout(&mut self) {
        let mut state = self.root.clone();
        let mut found = self.kept.clone();
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
            found.gpus.push(gpu);
            at = next;
            path.push(at);
        }
        let best = self.best.cost(self.problem);
        // As good as the best is worth knowing, too: it says where to look.
        let cost = match self.rollout.complete(&mut state, best) {
            Some(added) => {
                found.gpus.extend(added);
                let found = found.compacted(self.problem, self.worth, &mut self.rollout.random);
                let fitness = found.fitness(self.problem, self.worth);
                // Of equals the younger stays, so that the next tree begins elsewhere.
                if fitness < self.fitness + ROUNDING {
                    self.best = found;
                    self.fitness = fitness;
                }
                fitness
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
