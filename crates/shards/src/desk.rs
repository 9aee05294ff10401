//! The thread of a shard.

use std::sync::mpsc::{Receiver, Sender};

use downbeat_sched::{
    ClassId, Grant, LatencyProfile, ModelId, ModelSpec, Moving, Outcome, Request, Span, Time,
};

use crate::bell::Bell;
use crate::host::{DomainId, Host, Inlet};
use crate::message::Order;
use crate::posting::{Cell, Cells};
use crate::rhythm::{Rhythm, forgiven};
use crate::seat::Seat;
use crate::sync::{Arc, AtomicBool, Ordering, fence};

/// What a shard's thread is told by others than its host and its matchmakers.
pub(crate) enum Command {
    Add {
        domain: DomainId,
        model: ModelId,
        spec: Box<ModelSpec>,
        /// Nobody has it, or knows where it was.
        fresh: bool,
    },
    Remove {
        model: ModelId,
    },
    Drain {
        model: ModelId,
    },
    SetProfile {
        model: ModelId,
        class: ClassId,
        profile: LatencyProfile,
    },
    /// Give a model to another shard.
    GiveAway {
        model: ModelId,
        to: u16,
    },
    /// Take in a model that another shard gave away.
    Adopt {
        domain: DomainId,
        model: ModelId,
        moving: Moving,
    },
    /// A request that came to the shard on which its model was before.
    Arrived(Request),
    Cancelled(Request),
    /// A request to be queued again, whose batch was started by the shard on which its model was before.
    Requeue(Request),
    /// A grant that came to the shard on which its model was before.
    Grant {
        domain: DomainId,
        grant: Grant,
        at: Time,
    },
    Stop,
}

/// Commands carried out in one turn, so that models can come and go at any rate and nobody else waits for long.
const COMMANDS: usize = 32;

/// Orders carried out in one turn, for the same reason.
const ORDERS: usize = 64;

/// A shard's thread: its seats in all domains, and its host.
pub(crate) struct Desk<H> {
    pub(crate) host: H,
    pub(crate) seats: Vec<Seat>,
    /// By model: where it is.
    homes: Vec<Home>,
    inlet: Inlet,
    cells: Arc<Cells>,
    commands: Receiver<Command>,
    called: Arc<AtomicBool>,
    colleagues: Vec<Colleague>,
    grace: Span,
}

/// Another shard's thread.
pub(crate) struct Colleague {
    commands: Sender<Command>,
    /// Whether there may be a command: cheaper to look at in every turn than the channel.
    pub(crate) called: Arc<AtomicBool>,
    pub(crate) bell: Arc<Bell>,
}

impl Clone for Colleague {
    fn clone(&self) -> Self {
        Colleague {
            commands: self.commands.clone(),
            called: Arc::clone(&self.called),
            bell: Arc::clone(&self.bell),
        }
    }
}

impl Colleague {
    pub(crate) fn new(commands: Sender<Command>, bell: Arc<Bell>) -> Self {
        Colleague { commands, called: Arc::default(), bell }
    }

    pub(crate) fn tell(&self, command: Command) {
        // It only fails when that thread has ended, with everything else.
        if self.commands.send(command).is_ok() {
            self.called.store(true, Ordering::Release);
            self.bell.ring();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Home {
    Unknown,
    /// Here, at the seat with this number.
    Here(u16),
    /// With the colleague of this number.
    Away(u16),
}

impl<H: Host> Desk<H> {
    pub(crate) fn new(
        host: H,
        seats: Vec<Seat>,
        cells: Arc<Cells>,
        commands: Receiver<Command>,
        called: Arc<AtomicBool>,
        colleagues: Vec<Colleague>,
        grace: Span,
    ) -> Self {
        let homes = vec![Home::Unknown; cells.len() as usize];
        Desk { host, seats, homes, inlet: Inlet::default(), cells, commands, called, colleagues, grace }
    }

    /// Runs until it is told to stop.
    pub(crate) fn run(mut self, mut rhythm: Rhythm) -> H {
        loop {
            let (now, due) = rhythm.now_and_due(|_| self.wake_at());
            if let Some(due) = due {
                // First what was granted while this thread was away, or its requests would be given up.
                self.carry_out_orders(now);
                self.settle(due);
            }
            let Some(worked) = self.turn(now) else { return self.host };
            rhythm.pause(worked, || self.wake_at());
        }
    }

    /// When there will be something to do even if nobody rings.
    pub(crate) fn wake_at(&self) -> Time {
        let seats = self.seats.iter().map(Seat::wake_at).min();
        seats.unwrap_or(Time::NEVER).min(self.host.wake_at())
    }

    /// Does what there is to do; says whether there was anything, `None` to stop.
    pub(crate) fn turn(&mut self, now: Time) -> Option<bool> {
        let mut worked = false;
        if self.called.load(Ordering::Acquire) {
            worked = true;
            if !self.obey(now) {
                return None;
            }
        }
        worked |= self.carry_out_orders(now);
        worked |= self.take_in(now);
        worked |= self.settle(now);
        Some(worked)
    }

    /// Carries out what the matchmakers say.
    #[inline]
    pub(crate) fn carry_out_orders(&mut self, now: Time) -> bool {
        let mut worked = false;
        for seat in 0..self.seats.len() {
            for _ in 0..ORDERS {
                let Some(order) = self.seats[seat].next_order() else { break };
                self.order(now, seat, &order);
                worked = true;
            }
        }
        worked
    }

    /// Makes all offers that are due.
    #[inline]
    pub(crate) fn settle(&mut self, now: Time) -> bool {
        let mut worked = false;
        for seat in &mut self.seats {
            worked |= seat.settle(now, &mut self.host);
        }
        worked
    }

    /// Carries out some commands; `false` to stop.
    #[inline(never)]
    fn obey(&mut self, now: Time) -> bool {
        // Before looking, so that whoever sends one after this is seen in the next turn.
        self.called.store(false, Ordering::Release);
        fence(Ordering::SeqCst);
        for _ in 0..COMMANDS {
            match self.commands.try_recv() {
                Ok(Command::Stop) => return false,
                Ok(command) => self.command(now, command),
                Err(_) => return true,
            }
        }
        self.called.store(true, Ordering::Release);
        true
    }

    /// Takes in what has happened around the shard.
    #[inline]
    fn take_in(&mut self, now: Time) -> bool {
        self.host.poll(now, &mut self.inlet);
        let Inlet { arrived, cancelled, finished } = &self.inlet;
        if arrived.is_empty() && cancelled.is_empty() && finished.is_empty() {
            return false;
        }
        for at in 0..self.inlet.finished.len() {
            let finished = self.inlet.finished[at];
            if let Some(seat) = self.seats.get_mut(usize::from(finished.domain.0)) {
                seat.finish(now, &finished, &mut self.host);
            }
        }
        for at in 0..self.inlet.arrived.len() {
            let request = self.inlet.arrived[at];
            self.arrived(now, &request);
        }
        for at in 0..self.inlet.cancelled.len() {
            let request = self.inlet.cancelled[at];
            self.cancelled(now, &request);
        }
        self.inlet.finished.clear();
        self.inlet.arrived.clear();
        self.inlet.cancelled.clear();
        true
    }

    #[inline]
    fn arrived(&mut self, now: Time, request: &Request) {
        if let Home::Here(seat) = self.home(request.model)
            && let Ok(()) = self.seats[usize::from(seat)].arrive(now, request)
        {
            return;
        }
        self.refused(now, request);
    }

    /// A request that could not be queued just so. Nothing has changed by trying.
    #[cold]
    fn refused(&mut self, now: Time, request: &Request) {
        let arrived = match self.home(request.model) {
            Home::Here(seat) => self.seats[usize::from(seat)].arrive(now, request),
            Home::Away(to) => return self.colleagues[usize::from(to)].tell(Command::Arrived(*request)),
            Home::Unknown => match self.cells.get(request.model).and_then(Cell::route) {
                // On its way here, perhaps: behind what brings it.
                Some(to) => return self.colleagues[usize::from(to)].tell(Command::Arrived(*request)),
                None => Err(Outcome::UnknownModel),
            },
        };
        if let Err(outcome) = arrived {
            self.host.answer(now, request.model, request.id, outcome);
        }
    }

    fn cancelled(&mut self, now: Time, request: &Request) {
        // It may run in a batch that was started here, even if its model is elsewhere by now.
        let waited = self.seats.iter_mut().any(|seat| seat.cancel(request));
        if waited {
            self.host.answer(now, request.model, request.id, Outcome::Cancelled);
            return;
        }
        let elsewhere = match self.home(request.model) {
            Home::Here(_) => None,
            Home::Away(to) => Some(to),
            Home::Unknown => self.cells.get(request.model).and_then(Cell::route),
        };
        if let Some(to) = elsewhere {
            self.colleagues[usize::from(to)].tell(Command::Cancelled(*request));
        }
    }

    fn requeue(&mut self, now: Time, request: &Request) {
        match self.home(request.model) {
            Home::Here(seat) if self.seats[usize::from(seat)].requeue(request) => {}
            Home::Away(to) => self.colleagues[usize::from(to)].tell(Command::Requeue(*request)),
            _ => self.host.answer(now, request.model, request.id, Outcome::Removed),
        }
    }

    fn order(&mut self, now: Time, seat: usize, order: &Order) {
        match *order {
            Order::Grant(grant, at) => self.grant(now, seat, &grant, at),
            Order::Lost(batch) => {
                let mut homeless = Vec::new();
                self.seats[seat].lose(now, batch, &mut self.host, |request| homeless.push(*request));
                homeless.iter().for_each(|request| self.requeue(now, request));
            }
        }
    }

    fn grant(&mut self, now: Time, seat: usize, grant: &Grant, at: Time) {
        if let Home::Away(to) = self.home(grant.model) {
            let domain = self.seats[seat].domain;
            return self.colleagues[usize::from(to)].tell(Command::Grant { domain, grant: *grant, at });
        }
        let at = if self.grace == Span::ZERO { now } else { forgiven(at.min(now), now, self.grace) };
        self.seats[seat].carry_out(now, at, grant, &mut self.host);
    }

    fn command(&mut self, now: Time, command: Command) {
        match command {
            Command::Add { domain, model, spec, fresh } => match self.home(model) {
                Home::Away(to) if !fresh => {
                    self.colleagues[usize::from(to)].tell(Command::Add { domain, model, spec, fresh });
                }
                _ => {
                    if let Some(seat) = self.seats.get_mut(usize::from(domain.0)) {
                        seat.add(model, *spec);
                        self.homes[model.0 as usize] = Home::Here(domain.0);
                    }
                    self.cells.of(model).carry_out();
                }
            },
            Command::Remove { model } => match self.home(model) {
                Home::Away(to) => self.colleagues[usize::from(to)].tell(Command::Remove { model }),
                home => {
                    if let Home::Here(seat) = home {
                        self.seats[usize::from(seat)].remove(now, model, &mut self.host);
                        self.homes[model.0 as usize] = Home::Unknown;
                    }
                    self.cells.of(model).carry_out();
                }
            },
            Command::Drain { model } => match self.home(model) {
                Home::Away(to) => self.colleagues[usize::from(to)].tell(Command::Drain { model }),
                home => {
                    if let Home::Here(seat) = home {
                        self.seats[usize::from(seat)].drain(model);
                    }
                    self.cells.of(model).carry_out();
                }
            },
            Command::SetProfile { model, class, profile } => match self.home(model) {
                Home::Away(to) => {
                    self.colleagues[usize::from(to)].tell(Command::SetProfile { model, class, profile });
                }
                home => {
                    if let Home::Here(seat) = home {
                        self.seats[usize::from(seat)].set_profile(model, class, profile);
                    }
                    self.cells.of(model).carry_out();
                }
            },
            Command::GiveAway { model, to } => match self.home(model) {
                Home::Here(seat) => {
                    let seat = &mut self.seats[usize::from(seat)];
                    if let Some(moving) = seat.give_away(model) {
                        self.homes[model.0 as usize] = Home::Away(to);
                        let domain = seat.domain;
                        self.colleagues[usize::from(to)].tell(Command::Adopt { domain, model, moving });
                    } else {
                        self.cells.of(model).carry_out();
                    }
                }
                Home::Away(now_at) => {
                    self.colleagues[usize::from(now_at)].tell(Command::GiveAway { model, to });
                }
                Home::Unknown => self.cells.of(model).carry_out(),
            },
            Command::Adopt { domain, model, moving } => {
                self.homes[model.0 as usize] = Home::Here(domain.0);
                self.seats[usize::from(domain.0)].adopt(model, moving);
                self.cells.of(model).carry_out();
            }
            Command::Arrived(request) => self.arrived(now, &request),
            Command::Cancelled(request) => self.cancelled(now, &request),
            Command::Requeue(request) => self.requeue(now, &request),
            Command::Grant { domain, grant, at } => self.grant(now, usize::from(domain.0), &grant, at),
            Command::Stop => {}
        }
    }

    #[inline]
    fn home(&self, model: ModelId) -> Home {
        self.homes.get(model.0 as usize).copied().unwrap_or(Home::Unknown)
    }
}
