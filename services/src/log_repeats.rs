//! Leaves out lines of the log that repeat a cause which many parts of the gateway meet at the same time.
//!
//! On a full disk each writer fails again and again. The cause and its end are also in the health, the events and the metrics.

use std::fmt::{self, Write};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Time in which one line of a cause is logged.
const PERIOD: Duration = Duration::from_secs(60);
/// Texts that name a full disk, in lower case: those of the gateway, and those of Linux for `ENOSPC` and `EDQUOT`.
const DISK_FULL: [&str; 6] = [
    "disk is full",
    "disk is almost full",
    "disk of the recordings is almost full",
    "not enough room on the disk",
    "no space left on device",
    "quota exceeded",
];
/// Maximum size of the text in which the cause is looked for, in bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// Gives events to a layer, but of the warnings and errors about a full disk only one in a minute.
///
/// A filter of this layer could not do that: one that decides by the values of an event would leave its decision for the
/// next event, whose filters were not asked because they are always the same.
pub(crate) struct WithoutRepeats<L> {
    layer: L,
    logged_at: Mutex<Option<Instant>>,
}

impl<L> WithoutRepeats<L> {
    pub(crate) fn new(layer: L) -> Self {
        Self { layer, logged_at: Mutex::default() }
    }

    fn is_logged(&self, event: &Event<'_>) -> bool {
        if *event.metadata().level() > Level::WARN {
            return true;
        }
        let mut text = LowerText::default();
        event.record(&mut text);
        if !DISK_FULL.iter().any(|it| text.0.contains(it)) {
            return true;
        }
        let (mut logged_at, now) = (self.logged_at.lock(), Instant::now());
        let is_due = logged_at.is_none_or(|it| now.duration_since(it) >= PERIOD);
        if is_due {
            *logged_at = Some(now);
        }
        is_due
    }
}

impl<S: Subscriber, L: Layer<S>> Layer<S> for WithoutRepeats<L> {
    fn on_layer(&mut self, subscriber: &mut S) {
        self.layer.on_layer(subscriber);
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.layer.on_new_span(attributes, id, context);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        self.layer.on_record(id, values, context);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if self.is_logged(event) {
            self.layer.on_event(event, context);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.layer.on_enter(id, context);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.layer.on_exit(id, context);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        self.layer.on_close(id, context);
    }
}

/// The values of an event in lower case, up to the maximum size.
#[derive(Default)]
struct LowerText(String);

impl Write for LowerText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for it in text.chars() {
            if self.0.len() >= TEXT_BYTES_MAX {
                return Err(fmt::Error);
            }
            self.0.push(it.to_ascii_lowercase());
        }
        Ok(())
    }
}

impl Visit for LowerText {
    fn record_debug(&mut self, _: &Field, value: &dyn fmt::Debug) {
        // An error means that the text has its maximum size.
        let _ = write!(self, "{value:?} ");
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::time::advance;
    use tracing::{error, info, warn};
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;
    use crate::recent_log::{RecentLog, RecentLogLayer};

    // 66 lines in 20 s while a recording ran on a full disk.
    #[tokio::test(start_paused = true)]
    async fn a_full_disk_is_one_line_in_a_minute_whatever_writes() {
        let recent = RecentLog::default();
        let layer = RecentLogLayer { log: recent.clone(), is_collected: |_, _| true };
        let filter = Targets::new().with_default(Level::INFO);
        let subscriber = tracing_subscriber::registry().with(WithoutRepeats::new(layer).with_filter(filter));
        let guard = tracing::subscriber::set_default(subscriber);
        let full = io::Error::from_raw_os_error(28);
        let quota = io::Error::from_raw_os_error(122);
        let write_all = || {
            error!("the store refuses writes: not enough room on the disk to write: 1 byte needed");
            warn!(recording.id = 1, "a recording ends early: the disk is full");
            warn!("failed to write the index of a recording: {full}");
            warn!(cause = %quota, "failed to write a file");
            warn!("a recording ends early: the disk of the recordings is almost full");
            info!("nothing is saved, because the disk is full");
            warn!("the provider does not answer");
        };
        let texts = |log: &RecentLog| log.newest(100, |_| true).len();
        write_all();
        assert_eq!(texts(&recent), 3, "the first one, and those that are not repeated");
        write_all();
        assert_eq!(texts(&recent), 5);
        advance(PERIOD).await;
        write_all();
        assert_eq!(texts(&recent), 8);
        drop(guard);
    }
}
