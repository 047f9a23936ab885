//! The handle of a pump, and the state that it shares with the pump.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::groups::GroupLength;
use crate::node::RingPosition;
use crate::pump::clock::{ClockMonitor, ClockReading};
use crate::pump::message::Lack;
use crate::source::Source;
use crate::ts::picture::PictureSize;
use crate::ts::tables::Tables;

/// Selects the source of a pump. When the last handle is dropped, the pump ends.
#[derive(Clone)]
pub struct PumpHandle {
    shared: Arc<PumpShared>,
    /// Dropped last: its `Drop` ends the pump.
    _alive: Arc<Alive>,
}

impl PumpHandle {
    pub(super) fn new(shared: Arc<PumpShared>) -> Self {
        Self { _alive: Arc::new(Alive(shared.clone())), shared }
    }

    /// Follows this source from now on and drops all others. Never waits.
    ///
    /// If sources are given faster than the pump takes them, only the last is followed. The others are closed
    /// without a message, as is a source given to a pump that has ended.
    pub fn follow(&self, attempt: u64, stream: impl Into<KnownStream>, source: Source) {
        self.shared.send(PumpCommand::Follow(attempt, stream.into(), Box::new(source)));
    }

    /// Reads this source beside the followed one, without writing any of it, until the output can continue with it.
    /// Replaces a source that is read in this way. `needs`: it is ready only when it has shown this part, because the
    /// source that plays lacks it. Never waits.
    pub fn prepare(&self, attempt: u64, stream: impl Into<KnownStream>, needs: Option<Lack>, source: Source) {
        self.shared.send(PumpCommand::Prepare(attempt, stream.into(), needs, Box::new(source)));
    }

    /// Follows the prepared source from now on and drops the one before. Has no effect if that source was lost. Never
    /// waits.
    pub fn follow_prepared(&self, attempt: u64) {
        self.shared.send(PumpCommand::FollowPrepared(attempt));
    }

    /// Drops the prepared source. Never waits.
    pub fn drop_prepared(&self) {
        self.shared.send(PumpCommand::DropPrepared);
    }

    /// Drops the followed source and follows none. Never waits.
    pub fn release(&self) {
        self.shared.send(PumpCommand::Release);
    }

    /// Fills gaps from now on, even if the ring mirrors that of another process: this process continues it. Never waits.
    pub fn fill_gaps(&self) {
        self.shared.send(PumpCommand::FillGaps);
    }

    /// Returns the last chunk that the ring has from another process, under its number there. Later chunks may be of other
    /// sources.
    pub fn adopted(&self) -> Option<RingPosition> {
        self.shared.adopted.lock().map(|it| it.position)
    }

    /// Returns the last chunk of the ring, if it is from another process and has its number there.
    pub fn mirrored(&self) -> Option<RingPosition> {
        self.shared.adopted.lock().filter(|it| it.is_last).map(|it| it.position)
    }

    /// Returns how the programme clock of the current source compares with the wall clock; `None` before its
    /// first clock reference.
    pub fn clock(&self) -> Option<ClockReading> {
        self.shared.clock.lock().as_ref().and_then(|it| it.reading(Instant::now()))
    }

    /// Returns the tables of the current source as it sent them, which name its codecs.
    pub fn tables(&self) -> Option<Arc<Tables>> {
        self.shared.tables.lock().clone()
    }

    /// Returns the picture size of the current source, once it is known.
    pub fn picture(&self) -> Option<PictureSize> {
        *self.shared.picture.lock()
    }

    /// Returns the frames per second of the current source, once they are known.
    pub fn frame_rate(&self) -> Option<f64> {
        *self.shared.frame_rate.lock()
    }

    /// Returns what the current source shows of the stream with this key; nothing if it is of another stream.
    pub fn seen(&self, key: u64) -> SeenOfStream {
        self.shared.seen.lock().filter(|it| it.0 == key).map_or_else(SeenOfStream::default, |it| it.1)
    }

    /// Returns the title that the current source sent last, if it is a radio station that sends titles.
    pub fn title(&self) -> Option<Arc<str>> {
        self.shared.title.lock().clone().filter(|it| !it.is_empty())
    }
}

struct Alive(Arc<PumpShared>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.mailbox.lock().has_no_handle = true;
        self.0.changed.notify_one();
    }
}

/// The stream of a source, and what earlier plays of it have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownStream {
    /// Sources with the same key are of the same stream: what is learned of one holds for the next.
    pub key: u64,
    /// The distance of its random-access points. What the pump has learned itself comes before it.
    pub group: GroupLength,
}

impl From<u64> for KnownStream {
    fn from(key: u64) -> Self {
        Self { key, group: GroupLength::Unknown }
    }
}

/// The properties that a source shows of its stream while it plays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenOfStream {
    /// The distance of its random-access points.
    pub group: GroupLength,
    /// Whether its pictures have differed in the last seconds. False while that is not measured.
    pub moves: bool,
}

/// A command to a pump.
pub(super) enum PumpCommand {
    /// Attempt, stream and source.
    Follow(u64, KnownStream, Box<Source>),
    /// The same, and what the source must show.
    Prepare(u64, KnownStream, Option<Lack>, Box<Source>),
    FollowPrepared(u64),
    DropPrepared,
    Release,
    FillGaps,
}

/// The last chunk of another process.
#[derive(Clone, Copy)]
struct AdoptedChunk {
    position: RingPosition,
    is_last: bool,
}

/// The state that the handles share with the pump.
#[derive(Default)]
pub(super) struct PumpShared {
    mailbox: Mutex<Mailbox>,
    changed: Notify,
    clock: Mutex<Option<ClockMonitor>>,
    tables: Mutex<Option<Arc<Tables>>>,
    picture: Mutex<Option<PictureSize>>,
    frame_rate: Mutex<Option<f64>>,
    title: Mutex<Option<Arc<str>>>,
    /// The key of the stream of the current source, and what was seen of it.
    seen: Mutex<Option<(u64, SeenOfStream)>>,
    adopted: Mutex<Option<AdoptedChunk>>,
}

/// A mailbox for one command about each of the two sources. A newer command replaces an older one, because each defines
/// completely what to do with its source.
#[derive(Default)]
struct Mailbox {
    /// About the followed source; carried out first.
    followed: Option<PumpCommand>,
    /// About the source that is read beside it.
    prepared: Option<PumpCommand>,
    fills_gaps: bool,
    has_no_handle: bool,
    has_no_pump: bool,
}

impl Mailbox {
    /// Adds a command. Returns those that it replaces.
    fn put(&mut self, command: PumpCommand) -> [Option<PumpCommand>; 2] {
        match command {
            PumpCommand::Follow(..) => [self.followed.replace(command), self.prepared.take()],
            PumpCommand::Release => [self.followed.replace(command), None],
            PumpCommand::FollowPrepared(attempt) => match self.prepared.take() {
                // The pump has not taken the source yet.
                Some(PumpCommand::Prepare(it, stream, _, source)) if it == attempt => {
                    [self.followed.replace(PumpCommand::Follow(attempt, stream, source)), None]
                }
                other => [self.followed.replace(command), other],
            },
            PumpCommand::Prepare(..) | PumpCommand::DropPrepared => [self.prepared.replace(command), None],
            PumpCommand::FillGaps => {
                self.fills_gaps = true;
                [None, None]
            }
        }
    }
}

impl PumpShared {
    fn send(&self, command: PumpCommand) {
        // A replaced command is dropped outside the lock, because closing a source calls other code.
        let replaced = {
            let mut mailbox = self.mailbox.lock();
            if mailbox.has_no_pump { [Some(command), None] } else { mailbox.put(command) }
        };
        drop(replaced);
        self.changed.notify_one();
    }
}

/// The pump's side. Its `Drop` ensures that no source is left in the mailbox of a dead pump.
pub(super) struct CommandReceiver(Arc<PumpShared>);

impl CommandReceiver {
    pub(super) fn new(shared: Arc<PumpShared>) -> Self {
        Self(shared)
    }

    /// Returns the next command; `None` when no handle is left.
    pub(super) async fn next_command(&self) -> Option<PumpCommand> {
        loop {
            {
                let mut mailbox = self.0.mailbox.lock();
                // The end first: a command that is still in the mailbox is dropped with the pump.
                if mailbox.has_no_handle {
                    return None;
                }
                let Mailbox { followed, prepared, fills_gaps, .. } = &mut *mailbox;
                if let Some(command) = followed.take().or_else(|| prepared.take()) {
                    return Some(command);
                }
                // Last, because the release before it begins the gap.
                if std::mem::take(fills_gaps) {
                    return Some(PumpCommand::FillGaps);
                }
            }
            self.0.changed.notified().await;
        }
    }

    pub(super) fn start_clock(&self, clock: ClockMonitor) {
        *self.0.clock.lock() = Some(clock);
    }

    /// Ends the measurement of the followed source, and returns what measured it.
    pub(super) fn stop_clock(&self) -> Option<ClockMonitor> {
        *self.0.tables.lock() = None;
        *self.0.picture.lock() = None;
        *self.0.frame_rate.lock() = None;
        *self.0.title.lock() = None;
        *self.0.seen.lock() = None;
        self.0.clock.lock().take()
    }

    /// Passes what measures the followed source to `look`.
    pub(super) fn look_at_clock<T>(&self, look: impl FnOnce(Option<&ClockMonitor>) -> T) -> T {
        look(self.0.clock.lock().as_ref())
    }

    pub(super) fn record_pcr(&self, pcr: u64, is_break: bool, now: Instant) {
        if let Some(clock) = self.0.clock.lock().as_mut() {
            clock.pcr(pcr, is_break, now);
        }
    }

    /// Returns the time after the last data within which the next data of this source is due.
    pub(super) fn silence_to_expect(&self) -> Duration {
        self.0.clock.lock().as_ref().map_or(Duration::ZERO, ClockMonitor::silence_to_expect)
    }

    /// Records that the source is not read until then.
    pub(super) fn pause(&self, until: Instant) {
        if let Some(clock) = self.0.clock.lock().as_mut() {
            clock.pause(until);
        }
    }

    pub(super) fn set_title(&self, title: Arc<str>) {
        *self.0.title.lock() = Some(title);
    }

    pub(super) fn set_seen(&self, key: u64, seen: SeenOfStream) {
        *self.0.seen.lock() = Some((key, seen));
    }

    pub(super) fn set_frame_rate(&self, rate: f64) {
        *self.0.frame_rate.lock() = Some(rate);
    }

    pub(super) fn set_picture(&self, size: PictureSize) {
        *self.0.picture.lock() = Some(size);
    }

    /// Records that the last chunk is one of another process.
    pub(super) fn set_adopted(&self, position: RingPosition) {
        *self.0.adopted.lock() = Some(AdoptedChunk { position, is_last: true });
    }

    /// Records that chunks of this process follow.
    pub(super) fn diverged(&self) {
        if let Some(adopted) = self.0.adopted.lock().as_mut() {
            adopted.is_last = false;
        }
    }

    pub(super) fn set_tables(&self, tables: Option<&Tables>) {
        *self.0.tables.lock() = tables.map(|it| Arc::new(it.clone()));
    }
}

impl Drop for CommandReceiver {
    fn drop(&mut self) {
        let replaced = {
            let mut mailbox = self.0.mailbox.lock();
            mailbox.has_no_pump = true;
            (mailbox.followed.take(), mailbox.prepared.take())
        };
        drop(replaced);
        self.stop_clock();
    }
}
