//! Squishy bin packing: how many devices, and which models share one.

use downbeat_sched::{Delays, LatencyProfile, ModelId, Span};

use super::Headroom;

/// What a model without traffic is planned for, so that its first request finds a place.
pub(super) const LEAST_RPS: f64 = 0.1;

/// A model with the rate to plan for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load<'a> {
    pub(super) model: ModelId,
    pub(super) profile: &'a LatencyProfile,
    pub(super) slo: Span,
    pub(super) delays: Delays,
    pub(super) rps: f64,
}

/// What each device runs in its cycle.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) devices: Vec<Vec<Share>>,
}

/// A model's turn in a device's cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) model: ModelId,
    /// Requests per turn.
    pub(super) batch: u32,
    /// The part of the model's rate that this device is to carry.
    pub(super) rps: f64,
}

/// A device in the making.
#[derive(Clone, Debug)]
struct Bin<'a> {
    loads: Vec<(Load<'a>, Share)>,
    /// The longest cycle that every model on it tolerates.
    duty_s: f64,
    /// The time that one cycle's batches run.
    run_s: f64,
}

impl Bin<'_> {
    fn occupancy(&self) -> f64 {
        self.run_s / self.duty_s
    }
}

impl<'a> Load<'a> {
    /// A device that carries `rps` of it and nothing else.
    fn alone(self, rps: f64, largest: u32) -> Bin<'a> {
        let (batch, duty_s) = self.residual(rps, largest);
        let share = Share { model: self.model, batch, rps };
        Bin { loads: vec![(self, share)], duty_s, run_s: self.run_s(batch) }
    }

    fn run_s(&self, batch: u32) -> f64 {
        self.profile.latency(batch).as_secs_f64()
    }

    /// What the network leaves of the SLO.
    fn budget_s(&self, batch: u32) -> f64 {
        (self.slo - self.delays.lead(batch)).as_secs_f64()
    }

    /// The largest b with 2 l(b) within the SLO: a request waits for one whole batch and runs in the next. 1 at least.
    fn saturating_batch(&self) -> u32 {
        let fits = |batch: u32| 2.0 * self.run_s(batch) <= self.budget_s(batch);
        (1..=self.profile.max_batch()).take_while(|&batch| fits(batch)).last().unwrap_or(1)
    }

    /// The largest b that the rate fills in time, (b - 1) / w + l(b) <= s, and the longest duty cycle with it.
    fn residual(&self, rps: f64, largest: u32) -> (u32, f64) {
        let fits = |batch: u32| f64::from(batch - 1) / rps + self.run_s(batch) <= self.budget_s(batch);
        let batch = (1..=largest).take_while(|&batch| fits(batch)).last().unwrap_or(1);
        let tolerated = self.budget_s(batch) - self.run_s(batch);
        // A model that not even a device of its own serves in time (2 l(1) > s) still gets one: some arrive in luck.
        (batch, tolerated.min(f64::from(batch) / rps).max(self.run_s(batch)))
    }
}

/// A plan for at most `devices` devices.
pub(super) fn fit(loads: &[Load<'_>], devices: usize, headroom: Headroom) -> Plan {
    let packed = |factor: f64| pack(loads, factor, devices).filter(|bins| bins.len() <= devices);
    let wanted = headroom.most();
    let bins = packed(wanted).unwrap_or_else(|| {
        // The number of devices is not quite monotone in the rates, so this finds *a* limit; it suffices.
        let (mut low, mut high) = (1e-12_f64, wanted);
        let mut best = None;
        for _ in 0..40 {
            let middle = (low * high).sqrt();
            match packed(middle) {
                Some(bins) => (low, best) = (middle, Some(bins)),
                None => high = middle,
            }
        }
        best.unwrap_or_else(|| squeeze(pack_rest(loads), devices))
    });
    Plan { devices: bins.into_iter().map(shares).collect() }
}

/// Every model on `spread` neighbouring devices, in the batches of a whole device: a placement by hand instead of a
/// plan.
pub(super) fn spread(loads: &[Load<'_>], devices: usize, spread: u32) -> Plan {
    let mut plan = Plan { devices: vec![Vec::new(); devices] };
    for (place, load) in loads.iter().enumerate() {
        let copies = (spread as usize).min(devices);
        let rps = load.rps.max(LEAST_RPS) / copies as f64;
        let share = Share { model: load.model, batch: load.saturating_batch(), rps };
        (place..place + copies).for_each(|device| plan.devices[device % devices].push(share));
    }
    plan
}

fn shares(bin: Bin<'_>) -> Vec<Share> {
    bin.loads.into_iter().map(|(_, share)| share).collect()
}

/// Packs all loads, scaled by `factor`, into as few devices as best fit finds; `None` once whole devices alone are more
/// than `devices`, before any more of them are made.
fn pack<'a>(loads: &[Load<'a>], factor: f64, devices: usize) -> Option<Vec<Bin<'a>>> {
    let mut saturated = Vec::new();
    let mut residual = Vec::new();
    for load in loads.iter().filter(|load| load.run_s(1) <= load.budget_s(1)) {
        let rps = (load.rps * factor).max(LEAST_RPS);
        let batch = load.saturating_batch();
        let run_s = load.run_s(batch);
        let throughput = f64::from(batch) / run_s;
        let whole = (rps / throughput).floor();
        if saturated.len() as f64 + whole > devices as f64 {
            return None;
        }
        let share = Share { model: load.model, batch, rps: throughput };
        for _ in 0..whole as usize {
            saturated.push(Bin { loads: vec![(*load, share)], duty_s: run_s, run_s });
        }
        let rest = rps - whole * throughput;
        if rest > 1e-3 * throughput || whole == 0.0 {
            residual.push(load.alone(rest, batch));
        }
    }
    saturated.extend(merge(residual));
    Some(saturated)
}

/// One bin per load, each for next to no traffic: what is left to arrange where no traffic fits.
fn pack_rest<'a>(loads: &[Load<'a>]) -> Vec<Bin<'a>> {
    let servable = loads.iter().filter(|load| load.run_s(1) <= load.budget_s(1));
    servable.map(|load| load.alone(LEAST_RPS, 1)).collect()
}

/// Merges devices that each carry one model's residual load: the fullest first, each into where it fits tightest.
fn merge(mut residual: Vec<Bin<'_>>) -> Vec<Bin<'_>> {
    residual.sort_by(|a, b| b.occupancy().total_cmp(&a.occupancy()));
    let mut packed: Vec<Bin<'_>> = Vec::new();
    for bin in residual {
        let mut best: Option<(usize, Bin<'_>)> = None;
        for (place, other) in packed.iter().enumerate() {
            if let Some(both) = merged(other, &bin)
                && best.as_ref().is_none_or(|(_, so_far)| both.occupancy() > so_far.occupancy())
            {
                best = Some((place, both));
            }
        }
        match best {
            Some((place, both)) => packed[place] = both,
            None => packed.push(bin),
        }
    }
    packed
}

/// Two devices' loads on one: the shorter duty cycle rules, every batch shrinks ("squishes") to what arrives in it,
/// and all of them must run within it.
fn merged<'a>(one: &Bin<'a>, other: &Bin<'a>) -> Option<Bin<'a>> {
    let duty_s = one.duty_s.min(other.duty_s);
    let mut loads = Vec::with_capacity(one.loads.len() + other.loads.len());
    let mut run_s = 0.0;
    for (load, share) in one.loads.iter().chain(&other.loads) {
        // A hair above a whole number is rounding, not another request.
        let batch = ((duty_s * share.rps - 1e-3).ceil() as u32).clamp(1, load.profile.max_batch());
        run_s += load.run_s(batch);
        loads.push((*load, Share { batch, ..*share }));
    }
    (run_s <= duty_s).then_some(Bin { loads, duty_s, run_s })
}

/// Puts the bins beyond `devices` on top of others, the fullest first, each where the cycle then is shortest for what
/// its most impatient model can wait.
fn squeeze(mut bins: Vec<Bin<'_>>, devices: usize) -> Vec<Bin<'_>> {
    bins.sort_by(|a, b| b.occupancy().total_cmp(&a.occupancy()));
    let rest = bins.split_off(devices.max(1).min(bins.len()));
    for bin in rest {
        let pressure = |into: &Bin<'_>| (into.run_s + bin.run_s) / into.duty_s.min(bin.duty_s);
        if let Some(into) = bins.iter_mut().min_by(|a, b| pressure(a).total_cmp(&pressure(b))) {
            into.duty_s = into.duty_s.min(bin.duty_s);
            into.run_s += bin.run_s;
            into.loads.extend(bin.loads);
        }
    }
    bins
}
