//! Entry point: parses arguments, starts logging and the gateway, waits for a signal, and drains.

use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use config::{Args, Command, load};
use headwater::handover::{
    self, BesideEnd, Invocation, Listeners, Prepared, RestartRequest, TakeOver, serve_beside,
};
use headwater::{Drained, Gateway, Runtimes, commands, demo, play, raise_file_limit, terminal};
use media::run_mode;
use node::tell_end;
use services::telemetry;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// With many viewers, a core waits most for memory: the state of each viewer is touched once per chunk. See decision 30.
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// This binary, also after an update has replaced the file.
const OWN_BINARY: &str = "/proc/self/exe";

/// A service manager may signal all processes of a service at once. A parent passes its signal on, so that a process which
/// took over gets two; within this time they count as one.
const SAME_SIGNAL_TIME: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // First of all, so that the process is small: it becomes a program, or watches programs.
    if let Some(code) = run_mode(std::env::args_os(), tell_end) {
        return code;
    }
    if handover::is_parent(std::env::args_os()) {
        return handover::run_parent();
    }
    run().unwrap_or_else(|error| {
        terminal::say_error(&format!("headwater: {error:#}"));
        ExitCode::FAILURE
    })
}

fn run() -> anyhow::Result<ExitCode> {
    let args = Args::from_command_line();
    if !matches!(args.command, Command::Serve { take_over: true, .. }) {
        return run_command(args, None);
    }
    let (take_over, listeners) = TakeOver::begin()?;
    let take_over = Arc::new(take_over);
    let ended = run_command(args, Some((Arc::clone(&take_over), listeners)));
    ended.inspect_err(|error| take_over.failed(error))
}

/// Runs a command; `from` is the gateway from which `serve` takes over.
fn run_command(args: Args, from: Option<(Arc<TakeOver>, Listeners)>) -> anyhow::Result<ExitCode> {
    let mut loaded = load(&args, std::env::vars_os())?;
    loaded.config.programs.launcher = Some(OWN_BINARY.into());
    loaded.config.plugins.is_safe_mode = matches!(args.command, Command::Serve { safe_mode: true, .. });
    let log_level = telemetry::start(&loaded.config.log);

    if let Some(done) = commands::run(&args.command, &loaded) {
        return done;
    }
    // Now, because an update may replace the file of the program later.
    let invocation = Invocation::from_this_process();
    let has_parent = from.is_some();
    let is_served = matches!(args.command, Command::Serve { .. });
    // Only a gateway needs many files.
    loaded.log_warnings(raise_file_limit());

    let packets = runtime("packets")?;
    let work = runtime("work")?;
    let runtimes = Runtimes { packets: packets.handle().clone(), work: work.handle().clone() };
    let ended = work.block_on(async {
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        // The exit code that a shell reports for a program killed by the signal.
        let mut signalled = async move || tokio::select! { _ = term.recv() => 143_u8, _ = int.recv() => 130 };
        // Without a store, a new process would lose what this one knows: the signal ends it, as it does by default.
        let mut restart = if is_served { Some(signal(SignalKind::user_defined2())?) } else { None };
        let config = loaded.config.clone();
        let started = async {
            anyhow::Ok(match &args.command {
                Command::Play { .. } => (play::run(config, runtimes).await?, None),
                Command::Demo { source_listen } => {
                    let (gateway, source) = demo::run(config, *source_listen, runtimes).await?;
                    (gateway, Some(source))
                }
                // `serve`; every other command has already run above.
                _ => {
                    let join = match &args.command {
                        Command::Serve { join, .. } => join.as_deref(),
                        _ => None,
                    };
                    (commands::serve(config, runtimes, from, join).await?, None)
                }
            })
        };
        let (gateway, _source) = tokio::select! {
            started = started => started?,
            _ = signalled() => return Ok(Ended::With(ExitCode::SUCCESS)),
        };
        gateway.show_log(log_level.recent.clone());
        let follower = actors::spawn(log_level.clone().follow(gateway.models().clone()));
        let _follower = AbortOnDropHandle::new(follower);
        // A restored back-up is used from the next start.
        let ended = loop {
            let request = tokio::select! {
                _ = signalled() => break Ended::With(ExitCode::SUCCESS),
                () = gateway.restart_requested() => break Ended::ToRestart,
                reason = gateway.unfit_for_cluster() => {
                    terminal::say_error(&format!("headwater: {reason}"));
                    break Ended::With(ExitCode::FAILURE);
                }
                request = gateway.handover_requested() => Some(request),
                () = received(restart.as_mut()) => None,
            };
            tokio::select! {
                _ = signalled() => break Ended::With(ExitCode::SUCCESS),
                prepared = prepare(&gateway, &invocation) => match prepared {
                    Ok(prepared) => {
                        reply(request, Ok(())).await;
                        break Ended::HandedOver(Box::new(prepared));
                    }
                    Err(error) => {
                        tracing::error!("failed to restart, so this process continues: {error:#}");
                        reply(request, Err(format!("{error:#}"))).await;
                    }
                },
            }
        };
        let drain_time = gateway.drain_time();
        let stopping = async {
            let (serves_on, is_member) = (drain_time > Duration::ZERO, gateway.is_in_cluster());
            match &ended {
                Ended::HandedOver(prepared) if serves_on && prepared.may_serve_beside(is_member) => {
                    match gateway.drain().await {
                        Drained::Serving(draining) => Some(draining),
                        Drained::Ended(_) => None,
                    }
                }
                Ended::HandedOver(_) => {
                    gateway.stop_for_successor().await;
                    None
                }
                Ended::With(_) | Ended::ToRestart => {
                    gateway.stop().await;
                    None
                }
            }
        };
        let began = Instant::now();
        let second_signal = async {
            loop {
                let code = signalled().await;
                if !has_parent || began.elapsed() > SAME_SIGNAL_TIME {
                    return code;
                }
            }
        };
        let stopped = tokio::select! {
            draining = stopping => Ok(draining),
            code = second_signal => Err(code),
        };
        anyhow::Ok(match (stopped, ended) {
            (Err(code), _) => Ended::With(ExitCode::from(code)),
            (Ok(Some(draining)), Ended::HandedOver(prepared)) => {
                match serve_beside(*prepared, *draining, drain_time, packets.handle()).await? {
                    BesideEnd::Leave(prepared) => Ended::HandedOver(prepared),
                    BesideEnd::Ended(code) => Ended::With(code),
                }
            }
            (Ok(_), ended) => ended,
        })
    });
    // Tasks that still run must not delay the exit.
    work.shutdown_background();
    packets.shutdown_background();
    match ended? {
        Ended::With(code) => Ok(code),
        Ended::ToRestart => Err(restart_binary()).context("failed to restart"),
        Ended::HandedOver(prepared) => Err(prepared.leave(OWN_BINARY)).context("failed to hand over"),
    }
}

/// Starts the process that takes over, and waits until it is prepared.
async fn prepare(gateway: &Gateway, invocation: &anyhow::Result<Invocation>) -> anyhow::Result<Prepared> {
    let invocation = match invocation {
        Ok(invocation) => invocation.clone(),
        Err(error) => anyhow::bail!("{error:#}"),
    };
    gateway.check_restart().map_err(anyhow::Error::msg)?;
    let listeners = gateway.listeners().context("failed to copy the listening sockets")?;
    tracing::info!("a new process is started, which takes over");
    media::spawn_blocking(move || handover::prepare(invocation, listeners)).await?
}

/// Waits for the signal; for ever without one.
async fn received(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

async fn reply(request: Option<RestartRequest>, outcome: Result<(), String>) {
    if let Some(request) = request {
        request.reply(outcome).await;
    }
}

/// The reason why the gateway has stopped.
enum Ended {
    With(ExitCode),
    ToRestart,
    HandedOver(Box<Prepared>),
}

/// Replaces this process by a new one of the same binary and arguments, so that no task, lock or file of this one is
/// left. Returns only if that fails.
fn restart_binary() -> std::io::Error {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    std::process::Command::new(OWN_BINARY).arg0(name).args(arguments).exec()
}

fn runtime(name: &'static str) -> std::io::Result<Runtime> {
    Builder::new_multi_thread().thread_name(name).enable_all().build()
}
