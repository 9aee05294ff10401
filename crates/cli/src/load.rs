//! `downbeat load`

mod arguments;
mod live;
mod text;

use std::fmt;
use std::num::NonZero;
use std::thread;

use anyhow::bail;
use downbeat_load::{Control, GoodputSettings, Load, LoadReport, Loader, Protocol, load_page};

use crate::output::{self, Format, PageFile};
pub(crate) use arguments::Arguments;
use live::Live;

/// HTTP/1.1 has one request at a time on a connection; gRPC many.
const HTTP_CONNECTIONS: usize = 512;
const GRPC_CONNECTIONS: usize = 4;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let page = arguments.html.as_deref().map(PageFile::check).transpose()?;
    let Some(rate_rps) = arguments.rate.or_else(|| arguments.arrival.own_rate_rps()) else {
        bail!("--rate is missing: how many requests per second (only a trace has a rate of its own)");
    };
    let load = load(arguments)?;
    if arguments.find_goodput && load.models.iter().any(|model| model.slo.is_none()) {
        bail!("--find-goodput needs an SLO for every model: --slo-ms, or slo_ms in --model");
    }
    // Half of the cores, since a server that is tried out is often on the same host.
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads.unwrap_or(cores.div_ceil(2)).max(1))
        .enable_all()
        .build()?;
    let report = runtime.block_on(make(arguments, load, rate_rps))?;
    // What was not answered is not waited for.
    runtime.shutdown_background();
    let result = match arguments.format {
        Format::Json => {
            // Programs that read the numbers may not read the notes.
            report.notes.iter().for_each(|note| output::warn(note));
            serde_json::to_string_pretty(&report)?
        }
        Format::Text => text::text(&report),
    };
    output::deliver(&result, arguments.format, page.map(|page| (page, || load_page(&report))))?;
    if report.completed == 0 && report.offered > 0 {
        return Err(NoResult(report.offered).into());
    }
    Ok(())
}

/// A load of which nothing came back: whoever waits for the end of the command must not take it for a success.
#[derive(Debug)]
pub(crate) struct NoResult(u64);

impl fmt::Display for NoResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "none of {} requests was answered with a result", self.0)
    }
}

impl std::error::Error for NoResult {}

async fn make(arguments: &Arguments, load: Load, rate_rps: f64) -> anyhow::Result<LoadReport> {
    let loader = Loader::prepare(load).await?;
    let control = Control::default();
    let on_signal = control.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            on_signal.stop();
        }
    });
    let mut live = Live::start();
    let report = if arguments.find_goodput {
        let settings = GoodputSettings {
            first_rps: rate_rps,
            precision: arguments.precision,
            highest_rps: arguments.highest_rate,
            tries: arguments.tries,
        };
        loader.find_goodput(settings, &control, &mut |rate, progress| live.probe(rate, progress)).await
    } else {
        loader.run(rate_rps, &control, &mut |progress| live.show(progress)).await
    };
    live.end();
    Ok(report)
}

fn load(arguments: &Arguments) -> anyhow::Result<Load> {
    let rest = arguments.rest()?;
    let mut models = Vec::new();
    for spec in &arguments.models {
        let model = spec.clone().or(&rest);
        if models.contains(&model) {
            bail!("--model {}: it is there twice; give it a weight instead", model.name);
        }
        models.push(model);
    }
    let connections = arguments.connections.unwrap_or(match arguments.url.protocol {
        Protocol::Http => HTTP_CONNECTIONS,
        Protocol::Grpc => GRPC_CONNECTIONS,
    });
    Ok(Load {
        target: arguments.url.clone(),
        models,
        arrival: arguments.arrival.clone(),
        seed: arguments.seed,
        warmup: arguments.warmup,
        duration: arguments.duration,
        rarest_requests: arguments.min_requests,
        patience: arguments.patience,
        connections,
        waiting_max: arguments.max_waiting,
        tensors: arguments.tensors.into(),
        shapes: arguments.shapes(),
        data: arguments.data.clone(),
    })
}
