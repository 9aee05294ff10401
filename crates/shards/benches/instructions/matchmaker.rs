//! A matchmaker alone: candidates that grow until they are granted a device.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use downbeat_sched::{
    BatchId, Candidate, ClassId, Delays, GpuId, Grant, LatencyProfile, Matchmaker, ModelId, Need, Priority,
    Rule, Sent, Span, Time,
};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const DELAYS: Delays = Delays { control: Span::from_micros(100), data: Span::from_micros(50) };

/// The sizes that a model posts until its batch is granted a device.
const SIZES: [u32; 5] = [1, 5, 20, 60, 80];

/// The devices that are kept busy.
const BUSY: f64 = 0.7;

/// A matchmaker, models that post and devices that finish.
pub(crate) struct Matching {
    matchmaker: Matchmaker,
    profile: LatencyProfile,
    /// When each model posts next, and which of its sizes.
    posts: BinaryHeap<Reverse<(u64, u32, usize)>>,
    running: BinaryHeap<Reverse<(Time, GpuId, BatchId)>>,
    need: Need,
    between_posts_ns: u64,
    posted: u64,
    granted: u64,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Nothing,
    Candidates,
    Grants,
}

impl Matching {
    /// So many models on so many devices, after some time.
    pub(crate) fn warm(models: u32, gpus: u32) -> Matching {
        let mut matchmaker = Matchmaker::new(Rule::ADAPTIVE, DELAYS);
        for gpu in (0..gpus).map(GpuId) {
            matchmaker.join(gpu, ClassId(0), Time::ZERO);
        }
        let profile = LatencyProfile::linear(1.082, 5.204, 128).expect("valid coefficients");
        let batches_per_s = BUSY * f64::from(gpus) / profile.latency(80).as_secs_f64();
        let between_batches_ns = 1e9 * f64::from(models) / batches_per_s;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut phase = || (random.random::<f64>() * between_batches_ns) as u64;
        let mut matching = Matching {
            matchmaker,
            profile,
            posts: (0..models).map(|model| Reverse((phase(), model, 0))).collect(),
            running: BinaryHeap::new(),
            need: Need::new(BUSY * f64::from(gpus) / f64::from(models), 0.0),
            between_posts_ns: (between_batches_ns / SIZES.len() as f64) as u64,
            posted: 0,
            granted: 0,
        };
        let warm = 2 * u64::from(gpus.max(models));
        while matching.granted < warm {
            matching.step(Counted::Nothing);
        }
        matching
    }

    pub(crate) fn run_candidates(&mut self, count: u64) {
        let end = self.posted + count;
        while self.posted < end {
            self.step(Counted::Candidates);
        }
    }

    pub(crate) fn run_grants(&mut self, count: u64) {
        let end = self.granted + count;
        while self.granted < end {
            self.step(Counted::Grants);
        }
    }

    /// One model posts; the matchmaker looks; devices finish.
    fn step(&mut self, counted: Counted) {
        let Some(Reverse((now_ns, model, step))) = self.posts.pop() else { return };
        let now = Time::from_nanos(now_ns);
        self.posts.push(Reverse((now_ns + self.between_posts_ns, model, (step + 1) % SIZES.len())));
        while let Some(&Reverse((at, gpu, batch))) = self.running.peek()
            && at <= now
        {
            self.running.pop();
            match counted {
                Counted::Grants => counted_grant_finish(&mut self.matchmaker, gpu, batch, at),
                _ => drop(self.matchmaker.finished(gpu, batch, at)),
            }
        }
        let candidate = self.candidate(now, step);
        match counted {
            Counted::Candidates => counted_post(&mut self.matchmaker, ModelId(model), self.need, candidate),
            _ => post(&mut self.matchmaker, ModelId(model), self.need, candidate),
        }
        self.posted += 1;
        // With the last size the window is open.
        if step + 1 == SIZES.len() {
            while let Some(grant) = self.grant(now, counted) {
                self.send(now, &grant, counted);
            }
        }
    }

    fn grant(&mut self, now: Time, counted: Counted) -> Option<Grant> {
        match counted {
            Counted::Grants => counted_grant(&mut self.matchmaker, now),
            _ => self.matchmaker.grant(now),
        }
    }

    /// The candidate whose window opens with its last size.
    fn candidate(&self, now: Time, step: usize) -> Candidate {
        let left = Span::from_nanos(self.between_posts_ns * (SIZES.len() - 1 - step) as u64);
        let deadline = now + left + self.profile.latency(81);
        let size = SIZES[step];
        Candidate {
            class: ClassId(0),
            size,
            frontrun: deadline - self.profile.latency(size + 1),
            latest: deadline - self.profile.latency(size),
            latency: self.profile.latency(size),
            priority: Priority(1),
            full: false,
            drains: false,
            loss_permille: 0,
        }
    }

    fn send(&mut self, now: Time, grant: &Grant, counted: Counted) {
        let batch = BatchId(self.granted);
        self.granted += 1;
        let (ready_at, latency) = (now + DELAYS.lead(80), self.profile.latency(80));
        let finish_at = ready_at.max(grant.free_at) + latency;
        let sent = Sent { batch, ready_at, latency };
        match counted {
            Counted::Grants => counted_grant_send(&mut self.matchmaker, grant, sent, finish_at),
            _ => drop(self.matchmaker.sent(grant.gpu, grant.life, sent, finish_at)),
        }
        self.running.push(Reverse((finish_at, grant.gpu, batch)));
    }
}

fn post(matchmaker: &mut Matchmaker, model: ModelId, need: Need, candidate: Candidate) {
    matchmaker.set_need(model, ClassId(0), need);
    matchmaker.post(model, &[candidate]);
}

#[inline(never)]
fn counted_post(matchmaker: &mut Matchmaker, model: ModelId, need: Need, candidate: Candidate) {
    post(matchmaker, model, need, candidate);
}

#[inline(never)]
fn counted_grant(matchmaker: &mut Matchmaker, now: Time) -> Option<Grant> {
    matchmaker.grant(now)
}

#[inline(never)]
fn counted_grant_send(matchmaker: &mut Matchmaker, grant: &Grant, sent: Sent, finish_at: Time) {
    matchmaker.sent(grant.gpu, grant.life, sent, finish_at);
}

#[inline(never)]
fn counted_grant_finish(matchmaker: &mut Matchmaker, gpu: GpuId, batch: BatchId, at: Time) {
    matchmaker.finished(gpu, batch, at);
}
