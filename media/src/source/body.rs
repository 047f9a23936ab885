//! The body of a response without what servers put around and between the bytes of a stream: titles and compression.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::error::{Cause, UpstreamError};
use crate::radio::IcyCutter;
use crate::source::http::HttpUpstream;
use crate::source::unpack::Unpacker;

/// Removes titles and compression from the bytes of a body.
#[derive(Default)]
pub(super) struct BodyFilter {
    cutter: Option<IcyCutter>,
    unpacker: Option<Unpacker>,
    /// Bytes without titles that are not unpacked yet, or that nobody has taken.
    ready: VecDeque<Bytes>,
}

impl BodyFilter {
    /// Cuts titles out of all bytes from now on.
    pub(super) fn cut_titles(&mut self, interval: usize) {
        self.cutter = Some(IcyCutter::new(interval));
    }

    /// Unpacks all bytes from now on, and before them those that were taken already.
    pub(super) fn unpack(&mut self, taken: VecDeque<Bytes>) {
        self.unpacker = Some(Unpacker::new());
        let rest = std::mem::replace(&mut self.ready, taken);
        self.ready.extend(rest);
    }

    /// Returns whether the bytes are those of the body.
    pub(super) fn is_empty(&self) -> bool {
        self.cutter.is_none() && self.unpacker.is_none() && self.ready.is_empty()
    }

    /// Takes the next bytes of the body.
    pub(super) fn push(&mut self, bytes: Bytes) {
        let Some(cutter) = &mut self.cutter else { return self.ready.push_back(bytes) };
        // One piece again, because a station may send very short ones between its titles.
        let mut audio = BytesMut::new();
        cutter.push(bytes, |it| audio.extend_from_slice(&it));
        if !audio.is_empty() {
            self.ready.push_back(audio.freeze());
        }
    }

    /// The body has ended.
    pub(super) fn end(&mut self) {
        if let Some(unpacker) = &mut self.unpacker {
            unpacker.end();
        }
    }

    /// Returns the next bytes of the stream; `None` until more are taken.
    ///
    /// # Errors
    /// The bytes cannot be unpacked.
    pub(super) fn next_piece(&mut self) -> Result<Option<Bytes>, Cause> {
        let Some(unpacker) = &mut self.unpacker else { return Ok(self.ready.pop_front()) };
        loop {
            if let Some(bytes) = unpacker.next_piece()? {
                return Ok(Some(bytes));
            }
            let Some(packed) = self.ready.pop_front() else { return Ok(None) };
            unpacker.push(packed);
        }
    }

    /// Returns the last title, once; an empty one ends the title before.
    pub(super) fn take_title(&mut self) -> Option<Arc<str>> {
        self.cutter.as_mut()?.take_title()
    }
}

/// A connection whose body passes through a filter.
pub(super) struct FilteredBody {
    http: HttpUpstream,
    filter: BodyFilter,
}

impl FilteredBody {
    pub(super) fn new(http: HttpUpstream, filter: BodyFilter) -> Self {
        Self { http, filter }
    }

    /// Returns the next bytes; `None` at the end of the body. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        loop {
            if let Some(bytes) = self.filter.next_piece()? {
                return Ok(Some(bytes));
            }
            match self.http.read().await? {
                Some(bytes) => self.filter.push(bytes),
                None => {
                    self.filter.end();
                    return Ok(self.filter.next_piece()?);
                }
            }
        }
    }

    /// Records that the connection delivers payload.
    pub(super) fn delivers(&mut self) {
        self.http.delivers();
    }

    /// Returns the last title, once; an empty one ends the title before.
    pub(super) fn take_title(&mut self) -> Option<Arc<str>> {
        self.filter.take_title()
    }
}
