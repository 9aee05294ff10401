//! Shards and matchmakers connected with each other, before they run.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};

use downbeat_sched::{ID_LIMIT, Matchmaker, Rule, Shard, Span};

use crate::bell::Bell;
use crate::control::{Control, Domain};
use crate::desk::{Colleague, Command, Desk};
use crate::host::{DomainId, Host};
use crate::matchmaking::{Link, Matchmaking};
use crate::posting::Cells;
use crate::pressure_table::PressureTable;
use crate::ring::ring;
use crate::seat::{Seat, Wires};
use crate::settings::{MOST_THREADS, RuntimeError, Settings};
use crate::sync::Arc;

/// Orders or reports on their way between one shard and one matchmaker.
const ON_THE_WAY: usize = 8_192;

/// All parts of a runtime, connected with each other, with what wakes each.
pub(crate) struct Assembly<H> {
    pub(crate) desks: Vec<(Desk<H>, Arc<Bell>)>,
    pub(crate) matchmakers: Vec<(Matchmaking, Arc<Bell>)>,
    pub(crate) control: Control,
}

/// A shard's desk before all its seats are there.
struct Prepared {
    colleague: Colleague,
    commands: Receiver<Command>,
    seats: Vec<Seat>,
}

impl<H: Host> Assembly<H> {
    /// So many shards, each with a host, and a matchmaker for each domain.
    pub(crate) fn new(
        rule: Rule,
        settings: &Settings,
        shards: usize,
        hosts: impl FnOnce(&Control) -> Vec<H>,
    ) -> Result<Self, RuntimeError> {
        let domains = settings.domains;
        if shards == 0 || domains == 0 || shards.max(domains.into()) > MOST_THREADS {
            return Err(RuntimeError::Threads { shards, domains });
        }
        let cells = Arc::new(Cells::new(settings.models.min(ID_LIMIT)));
        let mut desks: Vec<Prepared> = (0..shards).map(|_| Prepared::new(Arc::default())).collect();
        let connect = |domain| connect(DomainId(domain), rule, settings, Arc::default(), &cells, &mut desks);
        let (matchmakers, known): (Vec<_>, Vec<_>) = (0..domains).map(connect).unzip();
        let matchmakers = matchmakers
            .into_iter()
            .zip(&known)
            .map(|(part, known)| (part, Arc::clone(&known.bell)))
            .collect();
        let colleagues: Vec<_> = desks.iter().map(|desk| desk.colleague.clone()).collect();
        let control = Control::new(colleagues.clone(), known, Arc::clone(&cells));
        let hosts = hosts(&control);
        if hosts.len() != shards {
            return Err(RuntimeError::Hosts { hosts: hosts.len(), shards });
        }
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
                    settings.grace,
                );
                (desk, colleague.bell)
            })
            .collect();
        Ok(Assembly { desks, matchmakers, control })
    }
}

/// Makes the matchmaker of a domain, and a seat in the domain for each shard.
fn connect(
    domain: DomainId,
    rule: Rule,
    settings: &Settings,
    bell: Arc<Bell>,
    cells: &Arc<Cells>,
    desks: &mut [Prepared],
) -> (Matchmaking, Domain) {
    // Only where one can be late, and the other does not know.
    let slack = if settings.grace > Span::ZERO {
        Span::from_nanos(settings.notice.as_nanos() / 2)
    } else {
        Span::ZERO
    };
    let table = Arc::new(PressureTable::new());
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
            table: Arc::clone(&table),
            cells: Arc::clone(cells),
        };
        let mut shard = Shard::new(settings.delays, rule.margin, index.into(), shards);
        shard.suppress_updates(settings.notice);
        desk.seats.push(Seat::new(domain, index, shard, wires, slack));
    }
    let mut matchmaker = Matchmaker::new(rule, settings.delays);
    matchmaker.reserve(cells.len() as usize, settings.gpus.min(ID_LIMIT) as usize);
    let (commands, received) = mpsc::channel();
    let part = Matchmaking::new(matchmaker, links, Arc::clone(cells), Arc::clone(&table), received);
    (part, Domain { commands, bell, table })
}

impl Prepared {
    fn new(bell: Arc<Bell>) -> Self {
        let (sender, commands) = mpsc::channel();
        Prepared { colleague: Colleague::new(sender, bell), commands, seats: Vec::new() }
    }
}
