//! Logs: one line per life-cycle event, as text for people or as JSON for programs.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{Log, LogFormat};

/// Sends the log of this process to standard error. Only the first call in a process has an effect.
///
/// Without a word about them, libraries may only warn: their debug lines are about their affairs, and some would
/// print addresses.
pub fn start(log: &Log) {
    let targets =
        log.level.parse::<Targets>().unwrap_or_else(|_| Targets::new().with_default(tracing::Level::INFO));
    let targets = quiet_libraries(targets, &log.level);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_ansi(false).boxed(),
    };
    let started = tracing_subscriber::registry().with(lines.with_filter(targets)).try_init();
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

/// Libraries that log at debug level about every connection or message.
const LIBRARIES: [&str; 7] = ["hyper", "hyper_util", "warp", "ractor", "rustls", "reqwest", "h2"];

fn quiet_libraries(targets: Targets, level: &str) -> Targets {
    let most = targets.default_level().unwrap_or(LevelFilter::OFF).min(LevelFilter::WARN);
    let unnamed = LIBRARIES.into_iter().filter(|it| !level.contains(&format!("{it}=")));
    unnamed.fold(targets, |targets, it| targets.with_target(it, most))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn libraries_are_quiet_unless_they_are_named() {
        let tells = |level: &str, target: &str, at: Level| {
            quiet_libraries(level.parse().unwrap(), level).would_enable(target, &at)
        };
        assert!(tells("debug", "media::pump", Level::DEBUG));
        assert!(!tells("debug", "hyper::proto", Level::DEBUG));
        assert!(tells("debug", "hyper::proto", Level::WARN));
        assert!(tells("debug,hyper=trace", "hyper::proto", Level::DEBUG));
        assert!(!tells("info", "media::pump", Level::DEBUG));
        assert!(!tells("error", "hyper::proto", Level::WARN));
    }
}
