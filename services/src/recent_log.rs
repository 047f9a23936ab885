//! The newest lines of the log, in memory, for admins.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use actors::now_ms;
use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::log_text::Escaped;

/// Number of lines that are kept.
pub const LINES_MAX: usize = 2_000;
/// Maximum length of a line, in bytes; the rest is cut off.
const LINE_BYTES_MAX: usize = 2_000;

/// A line of the log.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// Increases with each line.
    pub id: u64,
    /// Milliseconds since 1970.
    pub at: i64,
    pub level: Level,
    /// The module that wrote it.
    pub target: &'static str,
    /// The message with its values.
    pub text: String,
}

/// The newest lines. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct RecentLog(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<Arc<LogLine>>,
    last_id: u64,
}

impl RecentLog {
    /// Returns the lines that a filter accepts, the newest first, and at most `limit`.
    pub fn newest(&self, limit: usize, mut filter: impl FnMut(&LogLine) -> bool) -> Vec<Arc<LogLine>> {
        let lines = self.0.lock();
        lines.lines.iter().rev().filter(|it| filter(it)).take(limit).cloned().collect()
    }

    fn add(&self, level: Level, target: &'static str, text: String) {
        let mut lines = self.0.lock();
        lines.last_id += 1;
        let line = LogLine { id: lines.last_id, at: now_ms(), level, target, text };
        if lines.lines.len() == LINES_MAX {
            lines.lines.pop_front();
        }
        lines.lines.push_back(Arc::new(line));
    }
}

/// Collects the lines that the filter of the log lets through.
pub struct RecentLogLayer {
    pub log: RecentLog,
    /// Returns whether a line of this module and level is collected. Libraries may print addresses with credentials.
    pub is_collected: fn(&str, Level) -> bool,
}

impl<S: Subscriber> Layer<S> for RecentLogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (target, level) = (event.metadata().target(), *event.metadata().level());
        if (self.is_collected)(target, level) {
            let mut text = LineText::default();
            event.record(&mut text);
            self.log.add(level, target, text.message + &text.values);
        }
    }
}

/// The message of an event, followed by its other fields.
#[derive(Default)]
struct LineText {
    message: String,
    values: String,
}

/// Writes to a text until it has the maximum length.
struct Limited<'a>(&'a mut String);

impl fmt::Write for Limited<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LINE_BYTES_MAX.saturating_sub(self.0.len());
        let end = (0..=room.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or_default();
        self.0.push_str(&text[..end]);
        Ok(())
    }
}

impl Visit for LineText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a text cannot fail.
        let _ = match field.name() {
            "message" => write!(Escaped(Limited(&mut self.message)), "{value:?}"),
            name => write!(Escaped(Limited(&mut self.values)), " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use tracing::{debug, info, warn};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn the_newest_lines_are_kept_with_their_values_up_to_a_length() {
        let log = RecentLog::default();
        let is_collected = |_: &str, level: Level| level <= Level::INFO;
        let layer = RecentLogLayer { log: log.clone(), is_collected };
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            (0..LINES_MAX).for_each(|n| info!(n, "counting"));
            debug!("too detailed");
            warn!(channel = %"News", cause = ?"timeout", "failed to open {}", "ä".repeat(LINE_BYTES_MAX));
        });
        let lines = log.newest(usize::MAX, |_| true);
        assert_eq!(lines.len(), LINES_MAX);
        assert_eq!(lines[LINES_MAX - 1].text, "counting n=1", "the first line is gone");
        assert_eq!((lines[0].id, lines[0].level), (LINES_MAX as u64 + 1, Level::WARN));
        assert!(lines[0].text.starts_with("failed to open ä"), "{}", lines[0].text);
        assert!(lines[0].text.ends_with(" channel=News cause=\"timeout\""), "{}", lines[0].text);
        assert!(lines[0].text.len() < 2 * LINE_BYTES_MAX + 100);
        assert_eq!(log.newest(3, |it| it.level == Level::INFO).len(), 3);
    }
}
