//! What an autoscaler answers.

use std::fmt;

use serde::Serialize;

/// The number of devices that there should be, and the numbers behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// Devices that there should be, those that are coming included.
    pub wanted: u32,
    /// Devices that take work now.
    pub gpus: u32,
    /// Devices that were asked for and are not there yet.
    pub coming: u32,
    /// What decided.
    pub reason: Reason,
    /// Devices that the traffic needs, lately.
    pub needed: f64,
    /// Devices that are wanted beyond that, for what varies.
    pub reserve: f64,
    /// Devices that were wanted, reserve included, at the worst moment of the calm time.
    pub needed_most: f64,
    /// Devices that the traffic is expected to want when one that is asked for now would be there; `None` without a
    /// forecast.
    pub needed_ahead: Option<f64>,
    /// Devices' worth of time that was used, over the calm time. Information only: where spare devices are used to answer
    /// sooner, it says nothing about load.
    pub busy: f64,
    /// Whole devices that had next to nothing to do over the calm time. Information only, as `busy` is.
    pub idle: u32,
    /// The share of requests that were late, dropped or refused, lately.
    pub bad_rate: f64,
    /// Requests a second, lately.
    pub rate_rps: f64,
    /// Rows in a batch, lately.
    pub mean_batch: f64,
    /// The reason in words and numbers.
    pub explanation: String,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Up: requests are lost.
    Overload,
    /// Up: the traffic needs more than there is, though nobody has seen it yet.
    Need,
    /// Up: the traffic will need more by the time it can be there.
    Forecast,
    /// Down: fewer were enough at every moment lately.
    Unneeded,
    /// To the limits, from outside of them.
    Limit,
    /// Stay: there is what is needed.
    Steady,
    /// Stay: some could be given back, but the last change is not long enough ago.
    CoolDown,
    /// Stay: so few have been tried at this load, and were too few.
    TriedBefore,
    /// Stay: more would be needed than there may be.
    AtMax,
    /// Stay: requests are lost although the traffic needs less than half of the devices. More would not help.
    LostOtherwise,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Overload => "overload",
            Reason::Need => "need",
            Reason::Forecast => "forecast",
            Reason::Unneeded => "unneeded",
            Reason::Limit => "limit",
            Reason::Steady => "steady",
            Reason::CoolDown => "cool-down",
            Reason::TriedBefore => "tried before",
            Reason::AtMax => "at max",
            Reason::LostOtherwise => "lost otherwise",
        })
    }
}

impl Decision {
    /// Whether it asks for a change.
    pub fn is_change(&self) -> bool {
        self.wanted != self.gpus + self.coming
    }

    /// Fills in the explanation.
    pub(crate) fn explained(mut self) -> Decision {
        let verb = match self.wanted.cmp(&(self.gpus + self.coming)) {
            std::cmp::Ordering::Less => "down to",
            std::cmp::Ordering::Equal => "stay at",
            std::cmp::Ordering::Greater => "up to",
        };
        let coming = if self.coming > 0 { format!(" and {} coming", self.coming) } else { String::new() };
        self.explanation = format!(
            "{verb} {} (now {}{coming}): {}. {:.0} requests/s need {:.2} GPUs in the largest batches that are in time; \
             with {:.2} in reserve {:.2} are wanted. {:.2} % of the requests were bad.",
            counted(self.wanted, "GPU"),
            self.gpus,
            self.why(),
            self.rate_rps,
            self.needed,
            self.reserve,
            self.needed + self.reserve,
            100.0 * self.bad_rate,
        );
        self
    }

    fn why(&self) -> String {
        let gpus = f64::from(self.gpus);
        match self.reason {
            Reason::Overload => format!(
                "{:.1} % of the requests were bad, which asks for {gpus} * {:.3} / {:.3} = {:.1} more",
                100.0 * self.bad_rate,
                self.bad_rate,
                1.0 - self.bad_rate,
                gpus * self.bad_rate / (1.0 - self.bad_rate).max(1e-3)
            ),
            Reason::Need => "the traffic wants more than there is".to_owned(),
            Reason::Forecast => format!(
                "{:.2} are expected to be wanted by the time they can be there",
                self.needed_ahead.unwrap_or_default()
            ),
            Reason::Unneeded => {
                format!("even at the worst moment lately {:.2} were enough", self.needed_most)
            }
            Reason::Limit => "that is the limit".to_owned(),
            Reason::Steady => "that is what the traffic wants".to_owned(),
            Reason::CoolDown => {
                format!("{:.2} would do, but the last change is too recent", self.needed_most)
            }
            Reason::TriedBefore => "fewer were tried at this load, and were too few".to_owned(),
            Reason::AtMax => "more are wanted than there may be".to_owned(),
            Reason::LostOtherwise => format!(
                "{:.1} % of the requests were bad, but the traffic needs only {:.2} GPUs: more would not help",
                100.0 * self.bad_rate,
                self.needed
            ),
        }
    }
}

/// So many, in words.
fn counted(number: u32, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
