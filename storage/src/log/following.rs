//! Following the log, and the life of a store in a cluster.

use std::sync::Arc;

use tokio::sync::watch;
use uuid::Uuid;

use super::apply::CommitReader;
use super::compose::SLICES_MAX;
use super::entry::{EntryKind, LogEntry, log_of};
use super::keys::LogKeys;
use super::link::LogLink;
use super::position::{Applied, EntryHash, LogPosition};
use super::{CommitLog, LogRead, LogRole, LogStatus};
use crate::error::{Error, Result};
use crate::store::Store;
use crate::write::writer::Writer;

/// The part of the log that was read.
struct Reading {
    /// The last entry.
    tail: LogPosition,
    /// The entry before the slices of a commit that is not complete.
    run: Option<LogPosition>,
}

impl Store {
    /// Makes this store the first of a new log that begins after this sequence: its present records are what the log
    /// continues. The store then refuses writes to shared records until it [becomes the writer](Store::become_writer).
    /// Blocks.
    ///
    /// # Errors
    /// If this is an edge node, which has only a part of the records, or if the disk fails.
    pub fn begin_log(&self, log: Uuid, after: u64) -> Result<LogPosition> {
        let position = LogPosition::beginning(log, after);
        self.run(move |writer| {
            let is_edge = writer.log.as_ref().and_then(|it| it.link.as_ref());
            if is_edge.is_some_and(|it| it.keys.provider.is_none()) {
                return Err(Error::Key("an edge node does not have all records".to_owned()));
            }
            writer.set_role(LogRole::Follower, None);
            writer.write_now(|write| write.put(&position))?;
            writer.load_log()?;
            // A log that was read-only is replaced.
            writer.set_role(LogRole::Follower, Some(position));
            Ok(position)
        })
    }

    /// Returns to the position before [`Store::begin_log`], because the new log did not begin. Blocks.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn resume_log(&self, position: LogPosition) -> Result<()> {
        self.run(move |writer| {
            writer.set_role(LogRole::Follower, None);
            writer.write_now(|write| write.put(&position))?;
            writer.load_log()
        })
    }

    /// Checks that the log still has the last commit of this store, as a node has to that writes and so reads nothing. If it
    /// does not, the node writes no more. Blocks.
    ///
    /// # Errors
    /// As for [`Store::catch_up`].
    pub fn check_log(&self) -> Result<LogPosition> {
        let _one_at_a_time = self.shared().following.lock();
        let (link, position) = self.run(|writer| {
            let link = writer.log.as_ref().and_then(|it| it.link.clone()).ok_or(Error::NoLog)?;
            Ok((link, writer.log_position()?.ok_or(Error::NoLog)?))
        })?;
        self.check_position(&link, &position).map(|()| position).inspect_err(|error| {
            if matches!(error, Error::LogReplaced) {
                // A store that cannot change its role is closed.
                let _ = self.stop_writing();
            }
        })
    }

    /// Makes this a store without a log, which keeps all its records. Blocks.
    pub fn leave_log(&self) -> Result<()> {
        self.run(|writer| {
            writer.set_role(LogRole::Follower, None);
            writer.write_now(|write| write.remove::<LogPosition>(super::POSITION_ID).map(drop))?;
            writer.load_log()
        })
    }

    /// Connects the store with its log, as a follower. Replaces an earlier connection, and ends a read-only state, which
    /// [`Store::catch_up`] may find again. Blocks.
    ///
    /// # Errors
    /// If the store has no position in a log.
    pub fn attach_log(&self, log: Arc<dyn CommitLog>, keys: LogKeys) -> Result<()> {
        self.run(move |writer| {
            writer.log.as_mut().ok_or(Error::NoLog)?.link = Some(LogLink { log, keys });
            writer.set_role(LogRole::Follower, None);
            Ok(())
        })
    }

    /// Replaces the data keys, after a rotation. The role stays. Blocks.
    ///
    /// # Errors
    /// If no log is attached.
    pub fn set_log_keys(&self, keys: LogKeys) -> Result<()> {
        self.run(move |writer| {
            writer.log.as_mut().and_then(|it| it.link.as_mut()).ok_or(Error::NoLog)?.keys = keys;
            Ok(())
        })
    }

    /// Returns role and position, and follows them; `None` without a log. A change of the position is visible after the
    /// views have it, and before the write is answered.
    pub fn log_status(&self) -> watch::Receiver<Option<LogStatus>> {
        self.shared().log_status.subscribe()
    }

    /// Returns whether writes to shared records are accepted: the store has no log, or this node writes it. Work that
    /// nobody has asked for, such as a refresh by schedule, belongs to that node.
    pub fn writes_shared(&self) -> bool {
        self.shared().log_status.borrow().as_ref().is_none_or(|it| it.role == LogRole::Writer)
    }

    /// Applies all entries that the log has beyond the position of this store. Returns the new position. Blocks as long as
    /// that takes.
    ///
    /// # Errors
    /// [`Error::LogBehind`] if the log no longer has the next entry, and [`Error::LogReplaced`] if another log has begun:
    /// this node has to begin with a snapshot.
    /// [`Error::LogBroken`] if the log does not continue what this store contains: then shared records are read-only.
    /// [`Error::LogUnreachable`] and others: what was applied so far stays, and the next call continues.
    pub fn catch_up(&self) -> Result<LogPosition> {
        let _one_at_a_time = self.shared().following.lock();
        self.follow().map(|it| it.0)
    }

    /// Catches up and makes this node the writer. Whether it may be is the caller's decision; if two nodes believe it, the
    /// appends of one of them fail, and it becomes a follower. Blocks.
    ///
    /// # Errors
    /// As for [`Store::catch_up`]; and on an edge node.
    pub fn become_writer(&self) -> Result<LogPosition> {
        let _one_at_a_time = self.shared().following.lock();
        let (position, tail) = self.follow()?;
        self.run(move |writer| {
            let log = writer.log.as_ref().ok_or(Error::NoLog)?;
            if log.link.as_ref().is_none_or(|it| it.keys.provider.is_none()) {
                return Err(Error::NotWriter);
            }
            if writer.log_position()? != Some(position) {
                return Err(Error::Interrupted);
            }
            writer.set_role(LogRole::Writer, Some(tail));
            Ok(position)
        })
    }

    /// Makes the writer a follower. Writes that were answered are in the log. Blocks.
    pub fn stop_writing(&self) -> Result<()> {
        self.run(|writer| {
            if writer.log.as_ref().is_some_and(|it| it.role == LogRole::Writer) {
                writer.set_role(LogRole::Follower, None);
            }
            Ok(())
        })
    }

    /// Applies entries until the end of the log. Returns the position, and the last entry.
    fn follow(&self) -> Result<(LogPosition, LogPosition)> {
        let (link, mut position, written, broken) = self.run(|writer| {
            let log = writer.log.as_ref().ok_or(Error::NoLog)?;
            let link = log.link.clone().ok_or(Error::NoLog)?;
            let written = (log.role == LogRole::Writer).then_some(log.tail);
            let broken = match &log.role {
                LogRole::ReadOnly(why) => Some(why.clone()),
                LogRole::Writer | LogRole::Follower => None,
            };
            Ok((link, writer.log_position()?.ok_or(Error::NoLog)?, written, broken))
        })?;
        if let Some(why) = broken {
            let last = link.log.last().map_err(Error::LogUnreachable)?;
            check_same_log(&link, &position, last)?;
            return Err(Error::LogBroken(why));
        }
        // The writer has applied what it appended.
        if let Some(tail) = written {
            return Ok((position, tail));
        }
        self.check_position(&link, &position)?;
        let mut reading = Reading { tail: position, run: None };
        loop {
            let read = link.log.read(reading.tail.sequence + 1).map_err(Error::LogUnreachable)?;
            let bytes = match read {
                LogRead::Entry(bytes) => bytes,
                LogRead::End => return Ok((position, reading.tail)),
                LogRead::Removed => return Err(Error::LogBehind(position.sequence)),
            };
            if let Some(applied) = self.read_entry(&link, position, &mut reading, &bytes)? {
                position = applied;
            }
        }
    }

    /// Checks that the log still has the last commit of this store.
    fn check_position(&self, link: &LogLink, position: &LogPosition) -> Result<()> {
        let last = link.log.last().map_err(Error::LogUnreachable)?;
        // First: a new log has begun because of what is wrong with this one.
        check_same_log(link, position, last)?;
        if last < position.sequence {
            let sequence = position.sequence;
            return Err(self.make_read_only(format!(
                "the log of the cluster ends at entry {last}, and this node has entry {sequence}"
            )));
        }
        match link.log.read(position.sequence).map_err(Error::LogUnreachable)? {
            LogRead::Entry(bytes) if !position.is_beginning() && EntryHash::new(&bytes) != position.hash => {
                let sequence = position.sequence;
                Err(self
                    .make_read_only(format!("entry {sequence} of the log is not the one that this node has")))
            }
            _ => Ok(()),
        }
    }

    /// Verifies the next entry, and applies the commit that it completes. Returns the new position then.
    fn read_entry(
        &self,
        link: &LogLink,
        position: LogPosition,
        reading: &mut Reading,
        bytes: &[u8],
    ) -> Result<Option<LogPosition>> {
        let before = reading.tail;
        let sequence = before.sequence + 1;
        let broken = |what: &str| self.make_read_only(format!("entry {sequence} of the log {what}"));
        let entry = match LogEntry::parse(bytes) {
            Ok(entry) if entry.follows(&before) => entry,
            Ok(entry) if entry.header.log != before.log => return Err(Error::LogReplaced),
            Ok(_) => return Err(broken("does not continue the one before")),
            Err(Error::TooNew { found, .. }) => {
                return Err(Error::LogTooNew(format!("entries of format {found}")));
            }
            Err(Error::LogBroken(what)) => return Err(broken(&format!("is damaged: {what}"))),
            Err(error) => return Err(error),
        };
        let after = LogPosition { sequence, hash: EntryHash::new(bytes), ..before };
        reading.tail = after;
        let begun = reading.run.filter(|it| it.sequence + 1 == entry.header.run);
        let is_first = entry.header.run == sequence;
        match entry.header.kind {
            EntryKind::Slice if is_first => reading.run = Some(before),
            EntryKind::Slice if begun.is_some_and(|it| sequence - it.sequence < SLICES_MAX) => {}
            EntryKind::Commit if is_first || begun.is_some() => {
                reading.run = None;
                let applied = Applied { before: position, after };
                let done = self.apply_commit(link, begun, &entry, applied);
                return match done {
                    Ok(()) => Ok(Some(after)),
                    Err(Error::LogBroken(what)) => Err(broken(&format!("is damaged: {what}"))),
                    Err(error) => Err(error),
                };
            }
            _ => return Err(broken("continues a commit that it does not follow")),
        }
        Ok(None)
    }

    /// Applies a commit. Its slices, which begin after `begun`, are read again, so that they need no memory until it is
    /// complete.
    fn apply_commit(
        &self,
        link: &LogLink,
        begun: Option<LogPosition>,
        last: &LogEntry,
        applied: Applied,
    ) -> Result<()> {
        let mut commit = CommitReader::new(self);
        if let Some(mut tail) = begun.filter(|_| last.header.run < last.header.sequence) {
            while tail.sequence + 1 < last.header.sequence {
                let sequence = tail.sequence + 1;
                let LogRead::Entry(bytes) = link.log.read(sequence).map_err(Error::LogUnreachable)? else {
                    return Err(Error::LogBehind(applied.before.sequence));
                };
                let entry = LogEntry::parse(&bytes)?;
                if !entry.follows(&tail) {
                    return Err(Error::LogBroken(format!("entry {sequence} has changed")));
                }
                commit.add(&entry, &link.keys)?;
                tail = LogPosition { sequence, hash: EntryHash::new(&bytes), ..tail };
            }
            if !last.follows(&tail) {
                return Err(Error::LogBroken("its slices have changed".to_owned()));
            }
        }
        commit.add(last, &link.keys)?;
        commit.commit(applied)
    }

    /// Makes the shared records read-only, and returns the error that says so.
    fn make_read_only(&self, why: String) -> Error {
        let reason = why.clone();
        let done = self.run(move |writer| {
            writer.set_role(LogRole::ReadOnly(reason), None);
            Ok(())
        });
        done.err().unwrap_or(Error::LogBroken(why))
    }

    /// Runs a function on the writer's thread, between other jobs. Blocks.
    pub(crate) fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.writer().request(|reply| {
            crate::write::writer::Job::Run(Box::new(move |writer| drop(reply.send(work(writer)))))
        })
    }
}

/// Fails if the last entry is one of another log, and this store has not begun a new one after it.
fn check_same_log(link: &LogLink, position: &LogPosition, last: u64) -> Result<()> {
    if position.is_beginning() && last <= position.sequence {
        return Ok(());
    }
    match link.log.read(last).map_err(Error::LogUnreachable)? {
        LogRead::Entry(bytes) if log_of(&bytes).is_some_and(|it| it != position.log) => {
            Err(Error::LogReplaced)
        }
        _ => Ok(()),
    }
}
