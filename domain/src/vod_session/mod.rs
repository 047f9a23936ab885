//! What the one upstream connection of a viewer of a film does next.
//!
//! A session is one viewer of one file. Its requests are *readers*, each with a range; they share one connection to the
//! provider, which reads one range after another. The session decides and keeps the bytes that were read; its caller
//! opens, reads and closes the connection, and reports what came of it. Time is an argument.
//!
//! ```text
//!             ┌──────── Step::Open ───────► opened ─┐
//!   no connection                                reading ──► Step::Read ──► received
//!             └◄─ closed, cut, failed ◄─ Step::Close ─┘
//!   no slot ◄─ Step::Release: nobody needed the connection for a while, or another viewer waits for the slot
//! ```
//!
//! - A new reader that needs the provider gets the connection. Older ones continue from what was read ahead for them, and
//!   get the connection back when the newer one has everything or ends.
//! - A reader that had the connection does not take it back from another one that reads on. It gets it if the other one
//!   does not read for a while, and each such return takes longer than the one before, so that two readers that go on at
//!   distant offsets do not make the provider see one connection after another.
//! - A connection that is at most [`READ_ON_BYTES`] short of the needed byte reads on; otherwise it is closed before the
//!   next one is opened.
//! - After a cut, the connection is opened again at the next byte, with growing pauses and a bounded number of attempts.

#[cfg(test)]
mod model;
mod pieces;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};

pub use self::pieces::Pieces;

/// Maximum number of bytes that a session keeps, read ahead and already passed on together.
pub const HELD_BYTES_MAX: usize = 512 << 10;
/// Maximum number of bytes of one piece that is passed to [`FileSession::received`].
pub const PIECE_BYTES_MAX: usize = 64 << 10;
/// Maximum distance to the needed byte over which an open connection reads on instead of a new one being opened.
pub const READ_ON_BYTES: u64 = 1 << 20;
/// How long the connection is kept after nobody needs it, for the next range.
pub const KEEP: Duration = Duration::from_secs(3);
/// Time without a read after which a player counts as paused, so that its connection yields to a waiting viewer.
pub const PAUSED_AFTER: Duration = Duration::from_secs(15);

/// Maximum number of bytes kept for readers that do not have the connection and need it for the rest.
const OTHERS_BYTES_MAX: usize = 128 << 10;
/// Maximum number of bytes kept for readers that need nothing more. The rest is for the reader with the connection.
const COMPLETE_BYTES_MAX: usize = HELD_BYTES_MAX - 2 * PIECE_BYTES_MAX;
/// Time without a read after which a reader that has all it wants for now gives the connection to one that waits. It
/// doubles each time, up to [`PAUSED_AFTER`], until a new request comes.
const STALLED_AFTER: Duration = Duration::from_secs(2);
/// Maximum number of attempts in a row that bring less than [`PROGRESS_BYTES`].
const ATTEMPTS_MAX: u32 = 6;
/// A connection that brought this much was worth it: the attempts count from zero again.
const PROGRESS_BYTES: u64 = 64 << 10;
/// Pauses before the attempts after a failure; the last one is also for all that follow.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// Bytes of the file that are known apart from the session, such as its beginning and its end. They may be forgotten at
/// any time.
pub trait KnownBytes {
    /// Returns known bytes from this position on.
    fn piece(&self, at: u64) -> Option<Bytes>;

    /// Returns the first position after `at` that is not known; `at` itself if that is unknown.
    fn known_until(&self, at: u64) -> u64;
}

/// A file of which nothing is known.
impl KnownBytes for () {
    fn piece(&self, _: u64) -> Option<Bytes> {
        None
    }

    fn known_until(&self, at: u64) -> u64 {
        at
    }
}

/// The number of a reader; a later one has a higher number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReaderId(u64);

/// The next thing that the caller does with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Open a connection that begins at this byte, or continue to open it. The caller reports `opened` or `failed`.
    Open { at: u64 },
    /// Read from the connection. The caller reports `received` or `cut`.
    Read,
    /// Close the connection, or the attempt to open it, and keep the slot. The caller reports `closed`.
    Close,
    /// Close the connection, if one is open, and return the slot. The caller reports `released`.
    Release,
    /// Nothing, until this time or until something changes.
    Wait(Option<Instant>),
}

/// The result of a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The next bytes.
    Piece(Bytes),
    /// The next bytes have not arrived.
    Wait,
    /// The range is complete.
    End,
    /// The rest will not arrive.
    Failed(Failure),
}

/// Why a reader gets no more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The provider now has another file at the address.
    Changed,
    /// The connection could not be opened, or not again.
    Lost,
    /// Somebody ended the session.
    Ended,
}

#[derive(Debug)]
struct Reader {
    start: u64,
    /// The next byte to pass on.
    at: u64,
    end: u64,
    /// The client asked for the next byte, which has not arrived.
    is_waiting: bool,
    last_read: Instant,
    failure: Option<Failure>,
}

impl Reader {
    /// Returns whether the client waits for a byte that is not at hand. `missing` is the first one that is not.
    fn is_starved(&self, missing: u64) -> bool {
        self.is_waiting && missing <= self.at
    }

    fn is_paused(&self, missing: u64, now: Instant) -> bool {
        !self.is_starved(missing) && now.saturating_duration_since(self.last_read) >= PAUSED_AFTER
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    None,
    Opening {
        at: u64,
    },
    /// The next byte of the connection is `at`. It has brought `n_bytes`.
    Open {
        at: u64,
        n_bytes: u64,
    },
    /// The caller was asked to close it.
    Closing,
}

/// One viewer of one file.
#[derive(Debug)]
pub struct FileSession {
    /// Length of the file, once a connection has told it.
    length: Option<u64>,
    readers: BTreeMap<ReaderId, Reader>,
    last_reader: u64,
    held: Pieces,
    /// Reading has stopped until there is room again.
    is_full: bool,
    /// The reader that has the connection, or had it last.
    holder: Option<ReaderId>,
    /// The newest reader that has had the connection.
    newest_holder: Option<ReaderId>,
    /// Current form of [`STALLED_AFTER`].
    stalled_after: Duration,
    connection: Connection,
    /// The connection reads a file that nobody wants any more.
    is_replaced: bool,
    /// Time without a read of anybody after which the slot is returned, if it is.
    released_after: Option<Duration>,
    has_slot: bool,
    /// Another viewer waits for the slot and gets it.
    is_yielding: bool,
    /// Since when no reader needs the connection.
    unneeded_since: Option<Instant>,
    /// Attempts in a row that failed.
    n_failures: u32,
    /// No attempt before this time.
    next_attempt: Option<Instant>,
}

impl FileSession {
    /// Creates a session without readers. The length of the file may be known from before.
    pub fn new(length: Option<u64>, now: Instant) -> Self {
        Self {
            length,
            readers: BTreeMap::new(),
            last_reader: 0,
            held: Pieces::default(),
            is_full: false,
            holder: None,
            newest_holder: None,
            stalled_after: STALLED_AFTER,
            connection: Connection::None,
            is_replaced: false,
            released_after: None,
            has_slot: false,
            is_yielding: false,
            unneeded_since: Some(now),
            n_failures: 0,
            next_attempt: None,
        }
    }

    /// Returns the slot when nobody has read for this time. It is opened again when somebody does.
    pub fn released_after(self, pause: Duration) -> Self {
        Self { released_after: Some(pause), ..self }
    }

    /// Returns the length of the file, once a connection has told it.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Returns the number of bytes that the session keeps.
    pub fn held_bytes(&self) -> usize {
        self.held.n_bytes()
    }

    /// Returns the position of the newest reader.
    pub fn position(&self) -> Option<u64> {
        self.readers.values().next_back().map(|it| it.at)
    }

    /// Returns when a reader last asked for bytes.
    pub fn last_read(&self) -> Option<Instant> {
        self.readers.values().map(|it| it.last_read).max()
    }

    /// Returns whether a reader has passed on bytes, so that the rest of the file has to be the same one.
    pub fn has_delivered(&self) -> bool {
        self.readers.values().any(|it| it.failure.is_none() && it.at > it.start)
    }

    /// Returns the next byte of the open connection.
    pub fn connection_at(&self) -> Option<u64> {
        match self.connection {
            Connection::Open { at, .. } => Some(at),
            _ => None,
        }
    }

    /// Returns whether the session has neither readers nor a connection or a slot.
    pub fn is_unused(&self) -> bool {
        self.readers.is_empty() && self.connection == Connection::None && !self.has_slot
    }

    /// Returns whether the session has a slot of an account.
    pub fn has_slot(&self) -> bool {
        self.has_slot
    }

    /// Adds a reader of these bytes. While the length of the file is unknown, the end may be too high.
    pub fn open(&mut self, range: Range<u64>, now: Instant) -> ReaderId {
        self.last_reader += 1;
        let id = ReaderId(self.last_reader);
        let end = self.length.map_or(range.end, |it| range.end.min(it));
        let reader = Reader {
            start: range.start,
            at: range.start,
            end,
            is_waiting: true,
            last_read: now,
            failure: None,
        };
        self.readers.insert(id, reader);
        self.stalled_after = STALLED_AFTER;
        // A new request is worth an attempt at once.
        if self.n_failures > 0 && self.readers.len() == 1 {
            (self.n_failures, self.next_attempt) = (0, None);
        }
        id
    }

    /// Removes a reader: its client has everything, or went away.
    pub fn close(&mut self, reader: ReaderId) {
        self.readers.remove(&reader);
    }

    /// Returns the next bytes for a reader.
    pub fn read(&mut self, id: ReaderId, known: &impl KnownBytes, now: Instant) -> Read {
        let Some(reader) = self.readers.get_mut(&id) else { return Read::End };
        reader.last_read = now;
        reader.is_waiting = false;
        if reader.at >= reader.end {
            return Read::End;
        }
        // What is held now is of another file.
        if let Some(failure @ (Failure::Changed | Failure::Ended)) = reader.failure {
            return Read::Failed(failure);
        }
        // Bytes that have arrived are passed on even if no more will.
        match self.held.piece(reader.at).or_else(|| known.piece(reader.at)) {
            Some(mut piece) if self.length.is_some() => {
                let left = usize::try_from(reader.end - reader.at).unwrap_or(usize::MAX);
                piece.truncate(left);
                reader.at += piece.len() as u64;
                Read::Piece(piece)
            }
            _ => match reader.failure {
                Some(failure) => Read::Failed(failure),
                None => {
                    reader.is_waiting = true;
                    Read::Wait
                }
            },
        }
    }

    /// Returns whether a reader would get a piece, its end or a failure at once.
    pub fn is_ready(&self, id: ReaderId, known: &impl KnownBytes) -> bool {
        let Some(reader) = self.readers.get(&id) else { return true };
        let has_bytes =
            || self.held.end_of_run(reader.at) > reader.at || known.known_until(reader.at) > reader.at;
        reader.failure.is_some() || self.length.is_some() && (reader.at >= reader.end || has_bytes())
    }

    /// Returns whether a reader is sure to get more than what is known already: it needs no more, or the session has a
    /// slot.
    pub fn is_supplied(&self, id: ReaderId, known: &impl KnownBytes) -> bool {
        let is_complete = |it: &Reader| self.missing(it, known) >= it.end;
        self.has_slot || self.readers.get(&id).is_none_or(is_complete)
    }

    /// Returns the first bytes of the file, if they are at hand.
    pub fn first_bytes(&self, known: &impl KnownBytes) -> Option<Bytes> {
        self.held.piece(0).or_else(|| known.piece(0))
    }

    /// Returns whether the connection waits for more room and for nothing else, so that [`FileSession::next`] need not be
    /// asked.
    pub fn is_full(&self, known: &impl KnownBytes, now: Instant) -> bool {
        let Connection::Open { at, .. } = self.connection else { return false };
        let needed = self.needed(known, now).filter(|it| serves(at, it.missing));
        self.is_full && needed.is_some_and(|it| !self.has_room(&it, known))
    }

    /// Returns why a reader gets no more than what has arrived, if it is so.
    pub fn failure_of(&self, id: ReaderId) -> Option<Failure> {
        self.readers.get(&id).and_then(|it| it.failure)
    }

    /// Returns what to do next.
    pub fn next(&mut self, known: &impl KnownBytes, now: Instant) -> Step {
        if self.is_replaced && matches!(self.connection, Connection::Opening { .. } | Connection::Open { .. })
        {
            self.connection = Connection::Closing;
            return Step::Close;
        }
        if self.has_slot && self.connection != Connection::Closing && self.is_abandoned(known, now) {
            self.connection = Connection::Closing;
            return Step::Release;
        }
        self.choose_holder(known, now);
        let needed = self.needed(known, now);
        match needed {
            Some(_) => self.unneeded_since = None,
            None => {
                self.unneeded_since.get_or_insert(now);
            }
        }
        let release = self.unneeded_since.map(|it| it + KEEP);
        match self.connection {
            Connection::Closing => Step::Wait(None),
            _ if self.is_yielding => {
                self.connection = Connection::Closing;
                Step::Release
            }
            Connection::None => match needed {
                Some(Need { missing, is_urgent: true, .. }) => match self.next_attempt.filter(|it| *it > now)
                {
                    Some(at) => Step::Wait(Some(at)),
                    None => {
                        self.connection = Connection::Opening { at: missing };
                        Step::Open { at: missing }
                    }
                },
                // A paused player that reads again wakes the session.
                Some(_) => self.wait(None, now),
                None if !self.has_slot => self.wait(None, now),
                None if release.is_some_and(|it| it <= now) => {
                    self.connection = Connection::Closing;
                    Step::Release
                }
                None => self.wait(release, now),
            },
            Connection::Opening { at } => match needed {
                Some(it) if serves(at, it.missing) => Step::Open { at },
                // It may be of use as long as nothing else is needed.
                Some(it) if !it.is_urgent => Step::Open { at },
                _ => {
                    self.connection = Connection::Closing;
                    Step::Close
                }
            },
            Connection::Open { at, .. } => match needed {
                Some(it) if !serves(at, it.missing) => {
                    // A reader that has enough for now keeps the connection until it is sure to need another one.
                    if !it.is_urgent {
                        return self.wait(None, now);
                    }
                    self.connection = Connection::Closing;
                    Step::Close
                }
                Some(it) => {
                    self.is_full = !self.has_room(&it, known);
                    if self.is_full { self.wait(None, now) } else { Step::Read }
                }
                None if release.is_some_and(|it| it <= now) => {
                    self.connection = Connection::Closing;
                    Step::Release
                }
                None => self.wait(release, now),
            },
        }
    }

    /// Returns whether readers have the slot only because they have paused for too long.
    fn is_abandoned(&self, known: &impl KnownBytes, now: Instant) -> bool {
        let Some(pause) = self.released_after else { return false };
        let has_gone = |it: &Reader| {
            !it.is_starved(self.missing(it, known)) && now.saturating_duration_since(it.last_read) >= pause
        };
        !self.readers.is_empty() && self.readers.values().all(has_gone)
    }

    /// Waits until `at`, or until a reader has been idle for so long that something changes.
    fn wait(&self, at: Option<Instant>, now: Instant) -> Step {
        let idle = self.readers.values().filter(|it| it.failure.is_none());
        let pauses = [Some(self.stalled_after), Some(PAUSED_AFTER), self.released_after];
        let changes = idle.flat_map(|it| pauses.into_iter().flatten().map(|pause| it.last_read + pause));
        Step::Wait(changes.filter(|it| *it > now).chain(at).min())
    }

    /// A slot was granted, and the connection is being opened.
    pub fn granted(&mut self) {
        self.has_slot = true;
    }

    /// A connection begins at this byte of a file of this length.
    pub fn opened(&mut self, at: u64, length: u64) {
        self.length = Some(length);
        for reader in self.readers.values_mut() {
            reader.end = reader.end.min(length);
        }
        self.has_slot = true;
        self.connection = Connection::Open { at, n_bytes: 0 };
    }

    /// The connection brought these bytes, at most [`PIECE_BYTES_MAX`].
    pub fn received(&mut self, bytes: Bytes, known: &impl KnownBytes, now: Instant) {
        let Connection::Open { at, n_bytes } = self.connection else { return };
        if self.is_replaced {
            return;
        }
        let n_new = bytes.len() as u64;
        if n_bytes + n_new >= PROGRESS_BYTES {
            (self.n_failures, self.next_attempt) = (0, None);
        }
        self.connection = Connection::Open { at: at + n_new, n_bytes: n_bytes + n_new };
        self.choose_holder(known, now);
        let needed = self.needed(known, now);
        self.make_room(bytes.len(), needed.as_ref(), known);
        // Without room nobody with the connection needs it.
        if self.held.n_bytes() + bytes.len() <= HELD_BYTES_MAX {
            self.held.insert(at, bytes);
        }
        // Whether a client that has been notified still waits, its next read shows. Otherwise a client that never reads
        // would get the connection again each time that its bytes are dropped for another one.
        for reader in self.readers.values_mut().filter(|it| it.is_waiting) {
            if self.held.end_of_run(reader.at) > reader.at {
                (reader.is_waiting, reader.last_read) = (false, now);
            }
        }
        if self.length.is_some_and(|it| at + n_new >= it) {
            // Everything was read; what is still open is closed before the next attempt.
            self.n_failures = 0;
        }
    }

    /// Returns an empty buffer for the next bytes, in which bytes were that have been dropped.
    pub fn take_spare(&mut self) -> Option<BytesMut> {
        self.held.take_spare()
    }

    /// The connection ended by itself. Call it also at the end of the file.
    pub fn cut(&mut self, now: Instant) {
        let at_end = match self.connection {
            Connection::Open { at, .. } => self.length == Some(at),
            _ => false,
        };
        self.connection = Connection::None;
        if !std::mem::take(&mut self.is_replaced) && !at_end {
            self.count_failure(now);
        }
    }

    /// The connection could not be opened. `can_retry` is false if no further attempt can help.
    pub fn failed(&mut self, keeps_slot: bool, can_retry: bool, now: Instant) {
        self.connection = Connection::None;
        self.has_slot = keeps_slot;
        if can_retry {
            self.count_failure(now);
        } else {
            self.fail_all(Failure::Lost);
        }
    }

    /// The connection that was to be closed is gone; the slot is kept if there was one.
    pub fn closed(&mut self, has_slot: bool) {
        self.connection = Connection::None;
        self.is_replaced = false;
        self.has_slot = has_slot;
    }

    /// The connection is gone, and the slot returned.
    pub fn released(&mut self) {
        self.connection = Connection::None;
        self.is_replaced = false;
        (self.has_slot, self.is_yielding) = (false, false);
    }

    /// The provider has another file at the address: nothing that was read counts any more. Readers get no more bytes.
    /// The connection has to be closed by the caller.
    pub fn changed(&mut self) {
        self.length = None;
        self.held.clear();
        self.connection = Connection::None;
        self.fail_all(Failure::Changed);
    }

    /// The viewer wants another file: ends all readers, and forgets everything. The connection is closed before the next one
    /// is opened, with the same slot.
    pub fn replace(&mut self) {
        self.length = None;
        self.held.clear();
        self.fail_all(Failure::Ended);
        (self.n_failures, self.next_attempt) = (0, None);
        self.is_replaced = self.connection != Connection::None;
    }

    /// Returns whether the connection reads a file that nobody wants any more.
    pub fn is_replaced(&self) -> bool {
        self.is_replaced
    }

    /// Ends all readers.
    pub fn end(&mut self) {
        self.held.clear();
        self.fail_all(Failure::Ended);
    }

    /// Returns whether the slot may go to another viewer: nobody needs the connection, or all who do have paused.
    pub fn may_yield(&self, known: &impl KnownBytes, now: Instant) -> bool {
        let live = self.readers.values().filter(|it| it.failure.is_none());
        let mut needing = live.map(|it| (it, self.missing(it, known))).filter(|it| it.1 < it.0.end);
        needing.all(|(it, missing)| it.is_paused(missing, now))
    }

    /// Gives the slot to another viewer. Readers continue from what was read ahead, and ask for a slot again.
    pub fn give_way(&mut self) {
        self.is_yielding = self.has_slot;
    }

    fn count_failure(&mut self, now: Instant) {
        self.n_failures += 1;
        if self.n_failures > ATTEMPTS_MAX {
            (self.n_failures, self.next_attempt) = (0, None);
            return self.fail_all(Failure::Lost);
        }
        let pause = PAUSES[(self.n_failures as usize - 1).min(PAUSES.len() - 1)];
        self.next_attempt = Some(now + pause);
    }

    fn fail_all(&mut self, failure: Failure) {
        for reader in self.readers.values_mut() {
            reader.failure.get_or_insert(failure);
            reader.is_waiting = false;
        }
    }

    /// Returns the first byte that a reader lacks, of those that it has not passed on.
    fn missing(&self, reader: &Reader, known: &impl KnownBytes) -> u64 {
        let mut at = reader.at;
        if self.length.is_none() {
            return at;
        }
        loop {
            let next = known.known_until(self.held.end_of_run(at));
            if next <= at || next >= reader.end {
                return next.min(reader.end);
            }
            at = next;
        }
    }

    /// Chooses the reader that the connection is for.
    fn choose_holder(&mut self, known: &impl KnownBytes, now: Instant) {
        if self.readers.len() <= 1 {
            self.holder = self.readers.keys().next().copied().or(self.holder);
            self.newest_holder = self.newest_holder.max(self.holder);
            return;
        }
        let needs = self.needs(known, now);
        let holder = needs.iter().find(|it| Some(it.reader) == self.holder);
        let new = needs.first().filter(|it| Some(it.reader) > self.newest_holder && it.is_urgent);
        let starved = || needs.iter().find(|it| it.is_starved);
        let chosen = match (new, holder) {
            (Some(new), _) => Some(new),
            (None, Some(holder)) if holder.is_urgent => Some(holder),
            (None, Some(holder)) => match starved() {
                Some(starved) => {
                    self.stalled_after = (self.stalled_after * 2).min(PAUSED_AFTER);
                    Some(starved)
                }
                None => Some(holder),
            },
            (None, None) => needs.iter().find(|it| it.is_urgent).or(needs.first()),
        };
        // Without a need the last one stays, so that it is asked first when it needs more.
        if let Some(chosen) = chosen {
            self.holder = Some(chosen.reader);
            self.newest_holder = self.newest_holder.max(self.holder);
        }
    }

    /// Returns what the reader with the connection needs.
    fn needed(&self, known: &impl KnownBytes, now: Instant) -> Option<Need> {
        let holder = self.holder?;
        self.need(holder, self.readers.get(&holder)?, known, now)
    }

    /// Returns what each reader needs, the newest one first.
    fn needs(&self, known: &impl KnownBytes, now: Instant) -> Vec<Need> {
        self.readers.iter().rev().filter_map(|it| self.need(*it.0, it.1, known, now)).collect()
    }

    fn need(&self, id: ReaderId, reader: &Reader, known: &impl KnownBytes, now: Instant) -> Option<Need> {
        if reader.failure.is_some() {
            return None;
        }
        let missing = self.missing(reader, known);
        let is_starved = reader.is_starved(missing);
        let has_stalled = now.saturating_duration_since(reader.last_read) >= self.stalled_after;
        let is_urgent = is_starved || !has_stalled;
        let need = Need { reader: id, at: reader.at, missing, is_urgent, is_starved };
        (missing < reader.end).then_some(need)
    }

    /// Returns whether the connection is to read more. It stops when another piece has no room, and goes on when half of
    /// the room is free, so that it reads several pieces at a time.
    fn has_room(&self, need: &Need, known: &impl KnownBytes) -> bool {
        let of_reader = (need.missing - need.at) as usize;
        let n_ahead = self.held.within(need.at..need.missing).min(of_reader);
        let room = HELD_BYTES_MAX - self.kept_for_others(need, known);
        n_ahead <= if self.is_full { room / 2 } else { room - PIECE_BYTES_MAX }
    }

    /// Returns the number of bytes that others need of those that are not for the reader with the connection.
    fn kept_for_others(&self, need: &Need, known: &impl KnownBytes) -> usize {
        if self.readers.len() <= 1 {
            return 0;
        }
        let apart = |part: Range<u64>| {
            self.held.within(part.start..part.end.min(need.at))
                + self.held.within(part.start.max(need.missing)..part.end)
        };
        // A reader that has everything keeps it: otherwise it would need the connection again.
        let n_complete: usize = self.others_ahead(need, true, known).map(apart).sum();
        let n_waiting: usize = self.others_ahead(need, false, known).map(apart).sum();
        (n_complete + n_waiting.min(OTHERS_BYTES_MAX)).clamp(OTHERS_BYTES_MAX, COMPLETE_BYTES_MAX)
    }

    fn others(&self, need: &Need) -> impl Iterator<Item = &Reader> {
        let holder = need.reader;
        let others = self.readers.iter().filter(move |it| *it.0 != holder && it.1.failure.is_none());
        others.map(|it| it.1)
    }

    /// Returns the parts that were read ahead for readers without the connection: those that have everything, or those
    /// that need it for the rest.
    fn others_ahead<'a>(
        &'a self,
        need: &'a Need,
        are_complete: bool,
        known: &'a impl KnownBytes,
    ) -> impl Iterator<Item = Range<u64>> + 'a {
        let parts = self.others(need).map(|it| (it, it.at..self.missing(it, known)));
        let parts = parts.filter(move |(it, part)| (part.end >= it.end) == are_complete);
        parts.map(|it| it.1).filter(|it| it.start < it.end)
    }

    /// Drops bytes until `n_bytes` more have room: first those that every reader has passed, then those that are furthest
    /// ahead of readers without the connection; the parts of readers that need nothing more come last.
    fn make_room(&mut self, n_bytes: usize, need: Option<&Need>, known: &impl KnownBytes) {
        if self.held.n_bytes() + n_bytes <= HELD_BYTES_MAX {
            return;
        }
        let is_live = |it: &&Reader| it.failure.is_none();
        let ahead: Vec<_> =
            self.readers.values().filter(is_live).map(|it| it.at..self.missing(it, known)).collect();
        let target = HELD_BYTES_MAX.saturating_sub(n_bytes);
        self.held.drop_outside(&ahead, target);
        let Some(need) = need else { return };
        let own = need.at..need.missing;
        for are_complete in [false, true] {
            let parts: Vec<_> = self.others_ahead(need, are_complete, known).collect();
            for part in parts {
                if self.held.n_bytes() <= target {
                    return;
                }
                self.held.drop_from_end(part, &own, target);
            }
        }
    }
}

/// The need of the reader that has the connection.
#[derive(Debug, Clone, Copy)]
struct Need {
    reader: ReaderId,
    /// The next byte that the reader passes on.
    at: u64,
    /// The first byte that it lacks.
    missing: u64,
    /// The reader waits, or reads regularly.
    is_urgent: bool,
    /// The reader waits for the missing byte.
    is_starved: bool,
}

/// Returns whether a connection that is at this byte reaches the missing one soon.
fn serves(at: u64, missing: u64) -> bool {
    at <= missing && missing - at <= READ_ON_BYTES
}
