//! Log levels: which words they may contain, and what each shows.

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// Returns the problem with a log level that an admin sets, if any. The text continues a sentence after the level.
pub fn wrong_level(level: &str) -> Option<String> {
    if level.len() > LEVEL_BYTES_MAX {
        return Some(format!("is longer than {LEVEL_BYTES_MAX} characters"));
    }
    set_targets(level).err()
}

/// Returns the problem with a configured level, if any. The text continues a sentence after the name of the setting.
///
/// The library takes any other word for the name of a crate, and would log nothing else: `warning` would
/// silence errors.
pub(crate) fn wrong_configured_level(level: &str) -> Option<String> {
    const LEVELS: &str = "off, error, warn, info, debug or trace";
    if let Err(error) = level.parse::<Targets>() {
        return Some(format!("is not a valid log level: {error}; use {LEVELS}"));
    }
    let is_known = |word: &str| {
        let name = word.split("::").next().unwrap_or_default();
        word.parse::<LevelFilter>().is_ok() || CRATES.into_iter().chain(LIBRARIES).any(|it| it == name)
    };
    let mut words = level.split(',').map(str::trim).filter(|it| !it.is_empty()).peekable();
    if words.peek().is_none() {
        return Some(format!("is empty; use {LEVELS}"));
    }
    let unknown = words.find(|it| !it.contains('=') && !is_known(it))?;
    Some(format!("contains \"{unknown}\", which is not a log level; use {LEVELS}"))
}

/// Parses the configured level, which has been validated. The operator may enable any log line.
pub fn configured_targets(level: &str) -> Targets {
    let targets = level.parse().unwrap_or_else(|_| Targets::new().with_default(Level::INFO));
    quiet_libraries(with_parts(targets), level)
}

/// Maximum length of a level that an admin sets, because each log line is compared with all of its parts.
const LEVEL_BYTES_MAX: usize = 1000;

/// The crates of this project, by their log targets.
const CRATES: [&str; 14] = [
    "headwater",
    "actors",
    "cluster",
    "config",
    "domain",
    "media",
    "node",
    "player",
    "push",
    "rest",
    "route_frame",
    "server",
    "services",
    "storage",
];

/// Crates that were once parts of `headwater`: a level for it applies to them, unless they have their own.
const PARTS_OF_HEADWATER: [&str; 8] =
    ["config", "node", "player", "push", "rest", "route_frame", "server", "services"];

/// Applies a level for `headwater` to the crates that were parts of it.
fn with_parts(targets: Targets) -> Targets {
    let level_of =
        |targets: &Targets, name: &str| targets.iter().find(|it| it.0 == name).map(|(_, level)| level);
    let Some(level) = level_of(&targets, "headwater") else { return targets };
    let unnamed = PARTS_OF_HEADWATER.into_iter().filter(|it| level_of(&targets, it).is_none());
    let unnamed: Vec<&str> = unnamed.collect();
    unnamed.into_iter().fold(targets, |targets, it| targets.with_target(it, level))
}

/// Returns whether a log target is a module of this project, whose log lines contain no secrets.
pub fn is_own_module(target: &str) -> bool {
    CRATES.iter().any(|it| target.strip_prefix(it).is_some_and(|it| it.is_empty() || it.starts_with("::")))
}

/// Parses a level that an admin sets over the API. It applies only to the crates of this project, whose log lines
/// contain no secrets. Libraries log warnings at most and cannot be named.
pub fn set_targets(level: &str) -> Result<Targets, String> {
    let targets: Targets = level.parse().map_err(|error| format!("cannot be used: {error}"))?;
    if let Some((name, _)) = targets.iter().find(|it| !is_own_module(it.0)) {
        let ours = CRATES.join(", ");
        return Err(format!(
            "names \"{name}\", which is neither a log level nor a crate of the gateway ({ours})"
        ));
    }
    let targets = with_parts(targets);
    let default = targets.default_level().unwrap_or(LevelFilter::OFF);
    let named: Vec<String> = targets.iter().map(|it| it.0.to_owned()).collect();
    let unnamed = CRATES.into_iter().filter(|it| !named.iter().any(|name| name == it));
    let targets = targets.with_default(default.min(LevelFilter::WARN)).with_target(SILENT, LevelFilter::OFF);
    Ok(unnamed.fold(targets, |targets, it| targets.with_target(it, default)))
}

/// Libraries that log at debug level about every connection or message.
const LIBRARIES: [&str; 7] = ["hyper", "hyper_util", "warp", "ractor", "rustls", "reqwest", "h2"];

/// Logs each end of a connection as several errors; `cluster` logs it once, with what to do.
const SILENT: &str = "async_nats";

fn quiet_libraries(targets: Targets, level: &str) -> Targets {
    let most = targets.default_level().unwrap_or(LevelFilter::OFF).min(LevelFilter::WARN);
    let unnamed = LIBRARIES.into_iter().filter(|it| !level.contains(&format!("{it}=")));
    let targets = unnamed.fold(targets, |targets, it| targets.with_target(it, most));
    if level.contains(SILENT) { targets } else { targets.with_target(SILENT, LevelFilter::OFF) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_log_only_warnings_unless_the_level_names_them() {
        let is_enabled = |level: &str, target: &str, at: Level| {
            quiet_libraries(level.parse().unwrap(), level).would_enable(target, &at)
        };
        assert!(is_enabled("debug", "media::pump", Level::DEBUG));
        assert!(!is_enabled("debug", "hyper::proto", Level::DEBUG));
        assert!(is_enabled("debug", "hyper::proto", Level::WARN));
        assert!(is_enabled("debug,hyper=trace", "hyper::proto", Level::DEBUG));
        assert!(!is_enabled("info", "media::pump", Level::DEBUG));
        assert!(!is_enabled("error", "hyper::proto", Level::WARN));
        assert!(!is_enabled("debug", "async_nats::connector", Level::ERROR));
        assert!(is_enabled("debug,async_nats=info", "async_nats::connector", Level::INFO));
    }

    #[test]
    fn a_level_from_an_admin_applies_to_this_project_alone() {
        let is_enabled =
            |level: &str, target: &str, at: Level| set_targets(level).unwrap().would_enable(target, &at);
        assert!(is_enabled("debug", "media::pump", Level::DEBUG));
        assert!(is_enabled("warn,actors::channel=trace", "actors::channel::actor", Level::TRACE));
        assert!(!is_enabled("warn,actors::channel=trace", "actors::slots", Level::INFO));
        assert!(is_enabled("info,headwater=debug", "media", Level::INFO));
        assert!(!is_enabled("info,headwater=debug", "media", Level::DEBUG));
        assert!(is_enabled("info,headwater=debug", "server::accept", Level::DEBUG));
        assert!(!is_enabled("info,headwater=debug,server=info", "server::accept", Level::DEBUG));
        for library in ["hyper::proto", "sled", "one::that::comes::later"] {
            assert!(!is_enabled("trace", library, Level::INFO), "{library}");
            assert!(is_enabled("trace", library, Level::WARN), "{library}");
            assert!(!is_enabled("error", library, Level::WARN), "{library}");
        }
        assert!(!is_enabled("off", "headwater", Level::ERROR));
    }

    #[test]
    fn an_invalid_level_from_an_admin_is_refused_with_the_reason() {
        for (level, part) in [
            ("loud=very", "cannot be used"),
            ("debug,hyper=trace", "\"hyper\""),
            ("debug,actorsmith=trace", "\"actorsmith\""),
            ("verbose", "\"verbose\", which is neither a log level"),
            ("info,=debug", "neither a log level"),
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
