//! Devices and models that come and go while the load runs.

use downbeat_sched::{ClassId, GpuId, LatencyProfile, ModelId, ModelSpec, Span, Time};

use super::{Load, LoadError, sleep_until};
use crate::clock::Clock;
use crate::control::Control;

/// Models that come and go, besides those with traffic.
pub(super) const PASSING_MODELS: u32 = 64;

impl Load {
    /// Lets devices and models come and go until then, so many times a second: one in turn leaves, fails or is removed,
    /// and comes back. How late everything else runs meanwhile is what the benchmark measures anyway.
    pub(super) fn come_and_go(
        &self,
        control: &Control,
        clock: &Clock,
        profile: &LatencyProfile,
        until: Time,
    ) -> Result<(), LoadError> {
        let pause = Span::from_secs_f64(1.0 / self.churn);
        let mut next = clock.now();
        for turn in 0_u32.. {
            next = next + pause;
            if next > until {
                break;
            }
            sleep_until(clock, next);
            let gpu = GpuId(turn % self.gpus);
            let domain = self.domain_of(gpu.0);
            match turn % 3 {
                0 => control.leave(domain, gpu, || ())?,
                1 => control.fail(domain, vec![gpu])?,
                _ => {
                    let model = ModelId(self.models + turn % PASSING_MODELS);
                    control.remove_model(model);
                    let spec = ModelSpec::new([(ClassId(0), profile.clone())]);
                    control.add_model(self.domain_of(model.0), model, spec, 0.0)?;
                    continue;
                }
            }
            control.join(domain, gpu, ClassId(0))?;
        }
        Ok(())
    }
}
