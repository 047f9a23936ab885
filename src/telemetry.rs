//! Logs: one line per life-cycle event, as text for people or as JSON for programs; and how much of it is said, which
//! an admin may change while the gateway runs.

use std::io::IsTerminal;

use domain::core_settings::{SYSTEM_SETTINGS, log_level};
use domain::setting::CoreSetting;
use storage::{ChangeMessage, Models, Record};
use tracing::{info, warn};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::config::{Log, LogFormat};

/// The level of the log of this process.
#[derive(Clone, Debug)]
pub struct LogLevel {
    /// What file, environment and arguments say.
    base: String,
    /// `None` where the log is somebody else's.
    filter: Option<reload::Handle<Targets, Registry>>,
}

/// Sends the log of this process to standard error. Only the first call in a process has an effect.
///
/// Without a word about them, libraries may only warn: their debug lines are about their affairs, and some would
/// print addresses.
pub fn start(log: &Log) -> LogLevel {
    let (filter, handle) = reload::Layer::new(of_config(&log.level));
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_ansi(false).boxed(),
    };
    let started = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
    LogLevel { base: log.level.clone(), filter: started.is_ok().then_some(handle) }
}

impl LogLevel {
    /// Has the log follow what the core settings say, until the store closes.
    pub async fn follow(self, models: Models) {
        let mut changes = models.store.changes();
        let mut set = None;
        loop {
            let settings = models.settings.load();
            let value = settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value);
            let wanted = log_level(value).map(str::to_owned);
            drop(settings);
            if wanted != set {
                self.apply(wanted.as_deref());
                set = wanted;
            }
            loop {
                match changes.next().await {
                    ChangeMessage::Changed(change) if change.of(CoreSetting::COLLECTION).is_none() => {}
                    ChangeMessage::Changed(_) | ChangeMessage::Lagged => break,
                    ChangeMessage::Closed => return,
                }
            }
        }
    }

    /// The level that an admin set, or the one below it.
    fn apply(&self, wanted: Option<&str>) {
        let Some(filter) = &self.filter else { return };
        let targets = match wanted.map(of_admin) {
            Some(Ok(targets)) => targets,
            None => of_config(&self.base),
            // It was good once, for another version.
            Some(Err(reason)) => {
                warn!("the log level of the core settings is left out: it {reason}");
                of_config(&self.base)
            }
        };
        let tell = || match wanted {
            Some(level) => info!(level, "the core settings set the log level"),
            None => info!(level = self.base, "the log level is that of the configuration again"),
        };
        // By whichever of the two levels says it.
        let is_told = tracing::enabled!(tracing::Level::INFO);
        if is_told {
            tell();
        }
        if let Err(error) = filter.reload(targets) {
            warn!("failed to change the log level: {error}");
        } else if !is_told {
            tell();
        }
    }
}

/// What is wrong with a log level that an admin sets, if something is; goes on after its name.
pub(crate) fn wrong_level(level: &str) -> Option<String> {
    if level.len() > LEVEL_BYTES_MAX {
        return Some(format!("is longer than {LEVEL_BYTES_MAX} characters"));
    }
    of_admin(level).err()
}

/// What the configuration says, which has been checked. Whoever can write it may have anything logged.
fn of_config(level: &str) -> Targets {
    let targets = level.parse().unwrap_or_else(|_| Targets::new().with_default(tracing::Level::INFO));
    quiet_libraries(targets, level)
}

/// Longest level that an admin sets. Each line of the log is held against all of its parts.
const LEVEL_BYTES_MAX: usize = 1000;

/// Our own rooms, as lines of the log name them.
const OURS: [&str; 5] = ["headwater", "actors", "domain", "media", "storage"];

/// What an admin says from afar, in the same form. It is about our own lines alone, which have no secrets in them: of a
/// library no more is told than its warnings, and none can be named.
fn of_admin(level: &str) -> Result<Targets, String> {
    let targets: Targets = level.parse().map_err(|error| format!("cannot be used: {error}"))?;
    let is_ours = |name: &str| {
        OURS.iter().any(|it| name.strip_prefix(it).is_some_and(|it| it.is_empty() || it.starts_with("::")))
    };
    if let Some((name, _)) = targets.iter().find(|it| !is_ours(it.0)) {
        let ours = OURS.join(", ");
        return Err(format!("names \"{name}\", which is neither a level nor a part of the gateway ({ours})"));
    }
    let default = targets.default_level().unwrap_or(LevelFilter::OFF);
    let named: Vec<String> = targets.iter().map(|it| it.0.to_owned()).collect();
    let unnamed = OURS.into_iter().filter(|it| !named.iter().any(|name| name == it));
    let targets = targets.with_default(default.min(LevelFilter::WARN));
    Ok(unnamed.fold(targets, |targets, it| targets.with_target(it, default)))
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

    #[test]
    fn what_an_admin_sets_is_about_our_own_lines_alone() {
        let tells = |level: &str, target: &str, at: Level| of_admin(level).unwrap().would_enable(target, &at);
        assert!(tells("debug", "media::pump", Level::DEBUG));
        assert!(tells("warn,actors::channel=trace", "actors::channel::actor", Level::TRACE));
        assert!(!tells("warn,actors::channel=trace", "actors::slots", Level::INFO));
        assert!(tells("info,headwater=debug", "media", Level::INFO));
        assert!(!tells("info,headwater=debug", "media", Level::DEBUG));
        for library in ["hyper::proto", "sled", "one::that::comes::later"] {
            assert!(!tells("trace", library, Level::INFO), "{library}");
            assert!(tells("trace", library, Level::WARN), "{library}");
            assert!(!tells("error", library, Level::WARN), "{library}");
        }
        assert!(!tells("off", "headwater", Level::ERROR));
    }

    #[test]
    fn a_level_that_an_admin_cannot_set_is_refused_with_the_reason() {
        for (level, part) in [
            ("loud=very", "cannot be used"),
            ("debug,hyper=trace", "\"hyper\""),
            ("debug,actorsmith=trace", "\"actorsmith\""),
            ("verbose", "\"verbose\", which is neither a level"),
            ("info,=debug", "neither a level"),
        ] {
            assert!(
                wrong_level(level).unwrap_or_default().contains(part),
                "{level}: {:?}",
                wrong_level(level)
            );
        }
        assert!(wrong_level(&"actors=info,".repeat(1000)).unwrap().contains("longer"));
        assert_eq!(wrong_level("debug"), None);
    }
}
