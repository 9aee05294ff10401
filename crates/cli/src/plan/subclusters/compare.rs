//! `downbeat plan subclusters compare`

use std::path::PathBuf;

use clap::Args;
use downbeat_day::subclusters::{Contender, compare};
use downbeat_subclusters::{Epoch, Method, Problem, solve};

use super::super::{SearchArguments, spinner};
use super::Session;
use crate::output::{self, Format};

/// Compare with one cluster per model, a random division and one that balances rates
///
/// All divisions are sized in the simulator and replayed with other arrivals, so that GPUs are those that each really
/// needs.
#[derive(Args)]
pub(super) struct Arguments {
    /// The problem, a TOML file
    #[arg(value_name = "FILE")]
    problem: PathBuf,
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments, search: &SearchArguments) -> anyhow::Result<()> {
    let mut problem = Problem::load(&arguments.problem)?;
    // Others may need more than there are: that is for the table to say.
    problem.gpus = None;
    let session = Session::begin(search)?;
    let spinner = spinner("dividing");
    let solution =
        session.search(&problem, &spinner, |run| solve(&problem, Epoch::default(), Method::Auto, run))?;
    spinner.set_message("sizing every division in the simulator");
    let compared = compare(&problem, &solution, session.seed, &session.backend, &|| spinner.tick());
    spinner.finish_and_clear();
    let compared = compared?;
    output::print(&match arguments.format {
        Format::Json => serde_json::to_string_pretty(&compared)?,
        Format::Text => {
            let row = |contender: &Contender| {
                vec![
                    contender.name.to_owned(),
                    contender.subclusters.to_string(),
                    contender.gpus.to_string(),
                    format!("{:+.1} %", contender.more * 100.0),
                    contender.estimated_gpus.to_string(),
                    format!("{} of {}", contender.models_in_slo, contender.models),
                ]
            };
            let header = ["division", "sub-clusters", "GPUs", "more", "by the estimate", "models in SLO"];
            let title = format!("{}: {} models\n\n", compared.problem, problem.models.len());
            title + &output::table(&header, compared.contenders.iter().map(row))
        }
    })
}
