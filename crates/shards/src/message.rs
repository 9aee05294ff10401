//! What shards and matchmakers tell each other, packed into words.

use downbeat_sched::{BatchId, ClassId, GpuId, Grant, ModelId, Release, Sent, Span, Time};

use crate::ring::Words;

/// From a matchmaker to a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// A device for one of its models, and when that was decided.
    Grant(Grant, Time),
    /// A batch that it sent was lost with its device.
    Lost(BatchId),
}

/// From a shard to a matchmaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// A grant was carried out.
    Sent { gpu: GpuId, life: u32, sent: Sent, finish_at: Time },
    /// Nothing came of a grant.
    Declined { gpu: GpuId, life: u32 },
    /// A device finished a batch.
    Finished { gpu: GpuId, batch: BatchId, at: Time },
}

/// A model whose mailbox has something new, from a shard to a matchmaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dirty(pub(crate) ModelId);

fn halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn low(word: u64) -> u32 {
    word as u32
}

fn high(word: u64) -> u32 {
    (word >> 32) as u32
}

impl Words for Order {
    type Packed = [u64; 4];

    fn pack(self) -> [u64; 4] {
        match self {
            Order::Lost(batch) => [0, batch.0, 0, 0],
            Order::Grant(Grant { model, gpu, life, class, free_at, reason }, at) => {
                let reason = Release::ALL.iter().position(|&other| other == reason).unwrap_or(0) as u32;
                let kind = 1 | reason << 8 | u32::from(class.0) << 16;
                [halves(kind, life), halves(model.0, gpu.0), free_at.as_nanos(), at.as_nanos()]
            }
        }
    }

    fn unpack(words: [u64; 4]) -> Order {
        let kind = low(words[0]);
        if kind & 1 == 0 {
            return Order::Lost(BatchId(words[1]));
        }
        let grant = Grant {
            model: ModelId(low(words[1])),
            gpu: GpuId(high(words[1])),
            life: high(words[0]),
            class: ClassId((kind >> 16) as u16),
            free_at: Time::from_nanos(words[2]),
            reason: Release::ALL.get((kind >> 8 & 0xff) as usize).copied().unwrap_or(Release::Window),
        };
        Order::Grant(grant, Time::from_nanos(words[3]))
    }
}

impl Words for Report {
    type Packed = [u64; 6];

    fn pack(self) -> [u64; 6] {
        match self {
            Report::Sent { gpu, life, sent: Sent { batch, ready_at, latency }, finish_at } => {
                let times = [ready_at.as_nanos(), latency.as_nanos(), finish_at.as_nanos()];
                [0, halves(gpu.0, life), batch.0, times[0], times[1], times[2]]
            }
            Report::Declined { gpu, life } => [1, halves(gpu.0, life), 0, 0, 0, 0],
            Report::Finished { gpu, batch, at } => [2, halves(gpu.0, 0), batch.0, at.as_nanos(), 0, 0],
        }
    }

    fn unpack(words: [u64; 6]) -> Report {
        let (gpu, life, batch) = (GpuId(low(words[1])), high(words[1]), BatchId(words[2]));
        let at = |index: usize| Time::from_nanos(words[index]);
        match words[0] {
            0 => {
                let sent = Sent { batch, ready_at: at(3), latency: Span::from_nanos(words[4]) };
                Report::Sent { gpu, life, sent, finish_at: at(5) }
            }
            1 => Report::Declined { gpu, life },
            _ => Report::Finished { gpu, batch, at: at(3) },
        }
    }
}

impl Words for Dirty {
    type Packed = [u64; 1];

    fn pack(self) -> [u64; 1] {
        [self.0.0.into()]
    }

    fn unpack([model]: [u64; 1]) -> Dirty {
        Dirty(ModelId(low(model)))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use downbeat_sched::*;

    use super::{Dirty, Order, Report, Words};

    #[test]
    fn what_is_packed_comes_out_the_same() {
        let (gpu, life, batch) = (GpuId(u32::MAX - 1), 77, BatchId(u64::MAX - 3));
        let at = Time::from_nanos(1 << 61);
        for reason in Release::ALL {
            let grant = Grant { model: ModelId(1 << 21), gpu, life, class: ClassId(63), free_at: at, reason };
            let order = Order::Grant(grant, at + Span::from_nanos(5));
            assert_eq!(Order::unpack(order.pack()), order);
        }
        assert_eq!(Order::unpack(Order::Lost(batch).pack()), Order::Lost(batch));
        let sent = Sent { batch, ready_at: at, latency: Span::from_nanos(9) };
        for report in [
            Report::Sent { gpu, life, sent, finish_at: at + Span::from_nanos(1) },
            Report::Declined { gpu, life },
            Report::Finished { gpu, batch, at },
        ] {
            assert_eq!(Report::unpack(report.pack()), report);
        }
        assert_eq!(Dirty::unpack(Dirty(ModelId(5)).pack()), Dirty(ModelId(5)));
    }
}
