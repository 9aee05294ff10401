//! Shards and matchmakers connected with each other, before they run.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};

use downbeat_sched::{ID_LIMIT, Matchmaker, Policy, Shard};

use crate::bell::Bell;
use crate::board::Board;
use crate::desk::{Colleague, Command, Desk};
use crate::host::{DomainId, Host};
use crate::matchmaking::{self, Link, Matchmaking};
use crate::posting::Cells;
use crate::ring::ring;
use crate::seat::{Seat, Wires};
use crate::settings::{MOST_THREADS, RuntimeError, Settings};
use crate::sync::Arc;

/// Orders or reports on their way between one shard and one matchmaker.
const ON_THE_WAY: usize = 8_192;

/// All parts of a runtime, connected with each other.
pub(crate) struct Assembly<P: Policy, H> {
    pub(crate) desks: Vec<(Desk<P, H>, Colleague<P>)>,
    pub(crate) matchmakers: Vec<Ready<P>>,
    pub(crate) cells: Arc<Cells>,
}

/// A matchmaker, with what others know of it.
pub(crate) struct Ready<P: Policy> {
    pub(crate) part: Matchmaking<P>,
    pub(crate) commands: Sender<matchmaking::Command>,
    pub(crate) bell: Arc<Bell>,
    pub(crate) board: Arc<Board>,
}

/// A shard's desk before all its seats are there.
struct Prepared<P: Policy> {
    colleague: Colleague<P>,
    commands: Receiver<Command<P>>,
    seats: Vec<Seat<P>>,
}

impl<P: Policy, H: Host> Assembly<P, H> {
    /// A shard for each host, a matchmaker for each domain.
    pub(crate) fn new(policy: &P, settings: &Settings, hosts: Vec<H>) -> Result<Self, RuntimeError> {
        let shards = hosts.len();
        let domains = settings.domains;
        if shards == 0 || domains == 0 || shards.max(domains.into()) > MOST_THREADS {
            return Err(RuntimeError::Threads { shards, domains });
        }
        let cells = Arc::new(Cells::new(settings.models.min(ID_LIMIT)));
        let mut desks: Vec<Prepared<P>> = (0..shards).map(|_| Prepared::new()).collect();
        let matchmakers = (0..domains)
            .map(|domain| connect(DomainId(domain), policy, settings, &cells, &mut desks))
            .collect();
        let colleagues: Vec<_> = desks.iter().map(|desk| desk.colleague.clone()).collect();
        let desks = hosts
            .into_iter()
            .zip(desks)
            .map(|(host, Prepared { colleague, commands, seats })| {
                let desk = Desk::new(
                    host,
                    seats,
                    Arc::clone(&cells),
                    commands,
                    Arc::clone(&colleague.called),
                    colleagues.clone(),
                );
                (desk, colleague)
            })
            .collect();
        Ok(Assembly { desks, matchmakers, cells })
    }
}

/// Makes the matchmaker of a domain, and a seat in the domain for each shard.
fn connect<P: Policy>(
    domain: DomainId,
    policy: &P,
    settings: &Settings,
    cells: &Arc<Cells>,
    desks: &mut [Prepared<P>],
) -> Ready<P> {
    let bell = Arc::new(Bell::default());
    let board = Arc::new(Board::new());
    let shards = desks.len() as u32;
    let mut links = Vec::new();
    for (index, desk) in (0u16..).zip(desks) {
        let (orders_in, orders_out) = ring(ON_THE_WAY);
        let (reports_in, reports_out) = ring(ON_THE_WAY);
        let (dirty_in, dirty_out) = ring(cells.len().max(1) as usize);
        links.push(Link {
            orders: orders_in,
            reports: reports_out,
            dirty: dirty_out,
            bell: Arc::clone(&desk.colleague.bell),
            held: VecDeque::new(),
            news: false,
        });
        let wires = Wires {
            orders: orders_out,
            reports: reports_in,
            dirty: dirty_in,
            bell: Arc::clone(&bell),
            board: Arc::clone(&board),
            cells: Arc::clone(cells),
        };
        let mut shard = Shard::new(settings.delays, index.into(), shards);
        shard.be_brief(settings.notice);
        desk.seats.push(Seat::new(domain, index, shard, policy.clone(), wires));
    }
    let mut matchmaker = Matchmaker::new(policy.clone(), settings.delays);
    matchmaker.reserve(cells.len() as usize, settings.gpus.min(ID_LIMIT) as usize);
    let (commands, received) = mpsc::channel();
    let part = Matchmaking::new(matchmaker, links, Arc::clone(cells), Arc::clone(&board), received);
    Ready { part, commands, bell, board }
}

impl<P: Policy> Prepared<P> {
    fn new() -> Self {
        let (sender, commands) = mpsc::channel();
        Prepared { colleague: Colleague::new(sender), commands, seats: Vec::new() }
    }
}
