//! Logging: one line per life-cycle event, as text or as JSON. An admin can change the log level while the gateway
//! runs.

use std::io::IsTerminal;

use config::{Log, LogFormat, configured_targets, is_own_module, set_targets};
use domain::core_settings::{SYSTEM_SETTINGS, log_level};
use domain::setting::CoreSetting;
use jiff::Zoned;
use storage::{Models, Record};
use tracing::{Level, info, warn};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::log_repeats::WithoutRepeats;
use crate::log_text::EscapedFields;
use crate::recent_log::{RecentLog, RecentLogLayer};

/// The log level of this process.
#[derive(Clone, Debug)]
pub struct LogLevel {
    /// Level from the configuration.
    base: String,
    /// `None` if another part of the process had already set up logging.
    filter: Option<reload::Handle<Targets, Registry>>,
    /// The newest lines.
    pub recent: RecentLog,
}

/// Logs to standard error. Only the first call in a process has an effect.
///
/// Libraries that the level does not name log warnings at most: their debug lines are noise, and some would print URLs.
pub fn start(log: &Log) -> LogLevel {
    let (filter, handle) = reload::Layer::new(configured_targets(&log.level));
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.with_timer(LocalTime).fmt_fields(EscapedFields).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_ansi(false).boxed(),
    };
    let recent = RecentLog::default();
    let is_collected = |target: &str, level: Level| level <= Level::WARN || is_own_module(target);
    let lines = lines.and_then(RecentLogLayer { log: recent.clone(), is_collected });
    let lines = WithoutRepeats::new(lines).with_filter(filter);
    let started = tracing_subscriber::registry().with(lines).try_init();
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
    LogLevel { base: log.level.clone(), filter: started.is_ok().then_some(handle), recent }
}

/// The local time with its offset from UTC, for people. Lines in JSON have UTC, for programs.
struct LocalTime;

impl FormatTime for LocalTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%.3f%:z"))
    }
}

impl LogLevel {
    /// Applies the log level of the core settings and follows its changes, until the store closes.
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
            if !changes.next_in(CoreSetting::COLLECTION).await {
                return;
            }
        }
    }

    /// Applies the level that an admin set, or the configured level without one.
    fn apply(&self, wanted: Option<&str>) {
        let Some(filter) = &self.filter else { return };
        let targets = match wanted.map(set_targets) {
            Some(Ok(targets)) => targets,
            None => configured_targets(&self.base),
            // Another version accepted it.
            Some(Err(reason)) => {
                warn!("ignoring the log level of the core settings: it {reason}");
                configured_targets(&self.base)
            }
        };
        let log_change = || match wanted {
            Some(level) => info!(level, "log level set by the core settings"),
            None => info!(level = self.base, "log level reset to the configuration"),
        };
        // Log the change under whichever of the two levels shows it.
        let is_logged = tracing::enabled!(Level::INFO);
        if is_logged {
            log_change();
        }
        if let Err(error) = filter.reload(targets) {
            warn!("failed to change the log level: {error}");
        } else if !is_logged {
            log_change();
        }
    }
}
