//! Entry point: parses arguments, starts logging and the gateway, waits for a signal, and drains.

use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use headwater::config::{Args, Command, load};
use headwater::{Runtimes, commands, demo, play, raise_file_limit, telemetry};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::AbortOnDropHandle;

/// This binary, also after an update has replaced the file.
const OWN_BINARY: &str = "/proc/self/exe";

fn main() -> ExitCode {
    // First of all, so that the process is small: it becomes a program, or watches programs.
    if let Some(code) = headwater::run_mode(std::env::args_os()) {
        return code;
    }
    run().unwrap_or_else(|error| {
        play::say_error(&format!("headwater: {error:#}"));
        ExitCode::FAILURE
    })
}

fn run() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let mut loaded = load(&args, std::env::vars_os())?;
    loaded.config.programs.launcher = Some(OWN_BINARY.into());
    loaded.config.plugins.is_safe_mode = matches!(args.command, Command::Serve { safe_mode: true });
    let log_level = telemetry::start(&loaded.config.log);

    if let Some(done) = commands::run(&args.command, &loaded) {
        return done;
    }
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
        let config = loaded.config.clone();
        let started = async {
            anyhow::Ok(match args.command {
                Command::Play { .. } => (play::run(config, runtimes).await?, None),
                Command::Demo { source_listen } => {
                    let (gateway, source) = demo::run(config, source_listen, runtimes).await?;
                    (gateway, Some(source))
                }
                // `serve`; every other command has already run above.
                _ => (commands::serve(config, runtimes).await?, None),
            })
        };
        let (gateway, _source) = tokio::select! {
            started = started => started?,
            _ = signalled() => return Ok(Ended::With(ExitCode::SUCCESS)),
        };
        gateway.show_log(log_level.recent.clone());
        let follower = tokio::spawn(log_level.clone().follow(gateway.models().clone()));
        let _follower = AbortOnDropHandle::new(follower);
        // A restored back-up is used from the next start.
        let ended = tokio::select! {
            _ = signalled() => Ended::With(ExitCode::SUCCESS),
            () = gateway.restart_requested() => Ended::ToRestart,
        };
        tokio::select! {
            _ = gateway.stop() => anyhow::Ok(ended),
            code = signalled() => Ok(Ended::With(ExitCode::from(code))),
        }
    });
    // Tasks that still run must not delay the exit.
    work.shutdown_background();
    packets.shutdown_background();
    match ended? {
        Ended::With(code) => Ok(code),
        Ended::ToRestart => Err(restart()).context("failed to restart"),
    }
}

/// The reason why the gateway has stopped.
enum Ended {
    With(ExitCode),
    ToRestart,
}

/// Replaces this process by a new one of the same binary and arguments, so that no task, lock or file of this one is
/// left. Returns only if that fails.
fn restart() -> std::io::Error {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    std::process::Command::new(OWN_BINARY).arg0(name).args(arguments).exec()
}

fn runtime(name: &'static str) -> std::io::Result<Runtime> {
    Builder::new_multi_thread().thread_name(name).enable_all().build()
}
