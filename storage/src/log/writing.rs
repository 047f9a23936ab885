//! The writer thread's side of the log.

use super::compose::{Composer, compose, is_shared};
use super::link::LogWriter;
use super::position::{Applied, LogPosition, POSITION_ID};
use super::{Append, CommitLog, LogRead, LogRole, LogStatus};
use crate::error::{Error, Result};
use crate::record::{Record, Sharing, decode, encode};
use crate::write::overlay::Overlay;
use crate::write::writer::Writer;

/// Attempts to append one entry while the outcome stays unknown.
const APPEND_TRIES: u32 = 3;

impl Writer {
    /// Returns the position of the store, if it belongs to a log.
    pub(crate) fn log_position(&self) -> Result<Option<LogPosition>> {
        let Some(type_number) = self.shared.schema.position(LogPosition::COLLECTION) else { return Ok(None) };
        let at = self.shared.state.read().directories[type_number].singles.get(&POSITION_ID).copied();
        at.map(|at| decode(&self.shared.single(type_number, POSITION_ID, at.version)?)).transpose()
    }

    /// Follows the position on the disk: a store that has one refuses writes to shared records until its log is attached.
    pub(crate) fn load_log(&mut self) -> Result<()> {
        match (self.log_position()?, &mut self.log) {
            (None, log) => *log = None,
            (Some(position), log) => {
                let log =
                    log.get_or_insert(LogWriter { link: None, role: LogRole::Follower, tail: position });
                if log.role == LogRole::Writer {
                    log.role = LogRole::Follower;
                }
            }
        }
        self.publish_log_status();
        Ok(())
    }

    /// Returns the error of a write to shared records, unless this node writes them.
    pub(crate) fn shared_refusal(&self) -> Option<Error> {
        match &self.log.as_ref()?.role {
            LogRole::Writer => None,
            LogRole::Follower => Some(Error::NotWriter),
            LogRole::ReadOnly(why) => Some(Error::LogBroken(why.clone())),
        }
    }

    /// Does the same for the records of a collection.
    pub(crate) fn refusal_for(&self, type_number: usize) -> Option<Error> {
        let is_shared = self.shared.record_type(type_number).sharing != Sharing::Local;
        is_shared.then(|| self.shared_refusal()).flatten()
    }

    /// Changes the role. A node that stops writing cancels its bulk writes of shared records.
    pub(crate) fn set_role(&mut self, role: LogRole, tail: Option<LogPosition>) {
        let Some(log) = &mut self.log else { return };
        if log.role != role {
            match &role {
                LogRole::ReadOnly(_) => tracing::error!("the shared configuration is {role}"),
                _ => tracing::info!("this node is now a {role} of the shared configuration"),
            }
        }
        log.tail = tail.unwrap_or(log.tail);
        if role != LogRole::Writer {
            let shared = &self.shared;
            let is_cancelled = |type_number: usize| shared.record_type(type_number).sharing != Sharing::Local;
            let open = self.stages.values_mut().filter(|it| !it.is_applied && is_cancelled(it.type_number));
            open.for_each(|it| it.is_cancelled = true);
        }
        log.role = role;
        self.publish_log_status();
    }

    /// Publishes role and position after each change.
    pub(crate) fn publish_log_status(&self) {
        if self.log.is_none() && self.shared.log_status.borrow().is_none() {
            return;
        }
        let position = self.log_position().ok().flatten();
        let status = self.log.as_ref().zip(position);
        let status = status.map(|(log, position)| LogStatus { role: log.role.clone(), position });
        self.shared.log_status.send_if_modified(|it| std::mem::replace(it, status.clone()) != status);
    }

    /// Appends the shared changes of a write to the log, before they are committed here, and adds the new position to
    /// them. A store without a log does nothing.
    ///
    /// # Errors
    /// If this node does not write, or not any more: the log contains nothing of the write then. Or if the outcome is
    /// unknown.
    pub(crate) fn log_commit(&mut self, overlay: &mut Overlay) -> Result<()> {
        if let Some(Applied { before, after }) = overlay.applied {
            let is_next = self.log.as_ref().is_some_and(|it| it.role == LogRole::Follower)
                && self.log_position()? == Some(before);
            return if is_next { self.put_position(overlay, after) } else { Err(Error::Interrupted) };
        }
        if self.log.is_none() || !is_shared(&self.shared, overlay) {
            return Ok(());
        }
        if let Some(refusal) = self.shared_refusal() {
            return Err(refusal);
        }
        let Some(LogWriter { link: Some(link), tail, .. }) = &self.log else { return Err(Error::NotWriter) };
        let mut append_entry = |expected, entry: &[u8]| append(&*link.log, expected, entry);
        let mut composer = Composer::new(&link.keys, *tail, &mut append_entry);
        let appended = compose(&self.shared, overlay, &mut composer).and_then(|()| composer.finish());
        match appended {
            Ok(position) => {
                self.set_role(LogRole::Writer, Some(position));
                self.put_position(overlay, position)
            }
            Err(error) => {
                // What the log ends with is not known here.
                self.set_role(LogRole::Follower, None);
                Err(error)
            }
        }
    }

    fn put_position(&self, overlay: &mut Overlay, position: LogPosition) -> Result<()> {
        let type_number = self.shared.schema.number(LogPosition::COLLECTION);
        overlay.singles.insert((type_number, POSITION_ID), Some(encode(&position)?.into()));
        Ok(())
    }

    /// Called after a commit that failed: the log may be ahead of the disk, so this node has to catch up first.
    pub(crate) fn log_failed(&mut self) {
        if self.log.as_ref().is_some_and(|it| it.role == LogRole::Writer) {
            self.set_role(LogRole::Follower, None);
        }
    }
}

/// Appends an entry, and finds out whether it is in the log if the answer does not say so.
fn append(log: &dyn CommitLog, expected: u64, entry: &[u8]) -> Result<()> {
    for attempt in 0..APPEND_TRIES {
        match log.append(expected, entry) {
            Append::Appended => return Ok(()),
            // Nothing of this entry was on its way before.
            Append::Conflict if attempt == 0 => return Err(Error::NotWriter),
            Append::Conflict | Append::Unknown => match log.read(expected + 1) {
                Ok(LogRead::Entry(found)) if found == entry => return Ok(()),
                // An attempt that arrives late will be refused.
                Ok(LogRead::Entry(_) | LogRead::Removed) => return Err(Error::NotWriter),
                Ok(LogRead::End) | Err(_) => {}
            },
        }
    }
    Err(Error::LogUnknown)
}
