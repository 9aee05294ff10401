//! States in which nothing can be spared, and the moves between them.

use super::seats::{SeatIndex, Seats};
use crate::case::{Case, Rate};

/// Seats that are taken, in order. No service can spare any of them.
pub(super) type Bare = Vec<SeatIndex>;

/// Makes bare states from others.
pub(super) struct Moves<'a> {
    pub(super) seats: &'a Seats,
    pub(super) case: &'a Case,
    /// States that may still be made, equal ones included; none when [`tries`](Self::tries) are used up.
    pub(super) left: usize,
    /// Sets of seats that may still be looked at, most of which serve too little.
    pub(super) tries: usize,
}

impl Moves<'_> {
    fn rates(&self, state: &[SeatIndex]) -> Vec<Rate> {
        let mut rates = vec![0; self.case.services.len()];
        for seat in state.iter().map(|&seat| &self.seats.all[usize::from(seat)]) {
            rates[seat.service] += seat.rate;
        }
        rates
    }

    /// Without everything that can be spared; what is not wanted where it is goes first.
    pub(super) fn bare(&self, mut state: Bare) -> Bare {
        for (service, rate) in self.rates(&state).into_iter().enumerate() {
            self.spare(&mut state, service, rate - self.case.floors[service]);
        }
        state.sort_unstable();
        state
    }

    /// Takes from a service what it can spare.
    fn spare(&self, state: &mut Bare, service: usize, mut credit: Rate) {
        for wanted in [false, true] {
            state.retain(|&seat| {
                let seat = &self.seats.all[usize::from(seat)];
                let spared = seat.service == service && seat.is_wanted == wanted && seat.rate <= credit;
                credit -= if spared { seat.rate } else { 0 };
                !spared
            });
        }
    }

    /// Every bare state that is one move away.
    pub(super) fn of(&mut self, state: &Bare) -> Vec<Bare> {
        let rates = self.rates(state);
        let mut moves = Vec::new();
        for (service, rate) in rates.into_iter().enumerate() {
            let rooms = self.rooms(state, service);
            let credit = rate - self.case.floors[service];
            for &gone in state.iter().filter(|&&seat| self.seats.all[usize::from(seat)].service == service) {
                let need = self.seats.all[usize::from(gone)].rate - credit;
                self.pay(state, gone, need, &rooms, &mut Vec::new(), &mut moves);
            }
        }
        moves
    }

    /// Every seat that a service could take now.
    fn rooms(&self, state: &Bare, service: usize) -> Vec<SeatIndex> {
        let all = self.seats.by_service[service].iter().copied();
        all.filter(|&seat| self.seats.fits(state.iter().copied(), seat)).collect()
    }

    /// The states after `gone` has left and a smallest set of `rooms` that serves `need` has been taken, for every such
    /// set.
    fn pay(
        &mut self,
        state: &Bare,
        gone: SeatIndex,
        need: Rate,
        rooms: &[SeatIndex],
        taken: &mut Vec<SeatIndex>,
        moves: &mut Vec<Bare>,
    ) {
        let seats = self.seats;
        let rate = |seat: &SeatIndex| seats.all[usize::from(*seat)].rate;
        let paid: Rate = taken.iter().map(rate).sum();
        if paid >= need {
            if taken.iter().all(|seat| paid - rate(seat) < need) {
                self.left -= 1;
                let mut next: Bare = Vec::with_capacity(state.len() + taken.len());
                next.extend(state.iter().copied().filter(|&seat| seat != gone));
                next.extend(taken.iter().copied());
                next.sort_unstable();
                // The other services could spare nothing before.
                self.spare(&mut next, seats.all[usize::from(gone)].service, paid - need);
                moves.push(next);
            }
            return;
        }
        for (index, &seat) in rooms.iter().enumerate() {
            if self.left == 0 {
                return;
            }
            self.tries = self.tries.saturating_sub(1);
            if self.tries == 0 {
                self.left = 0;
                return;
            }
            if taken.is_empty() || seats.fits(state.iter().chain(taken.iter()).copied(), seat) {
                taken.push(seat);
                self.pay(state, gone, need, &rooms[index + 1..], taken, moves);
                taken.pop();
            }
        }
    }
}
