//! Stations that send audio frames without a container. Their frames are packed as a transport stream.

mod converted;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

pub(super) use self::converted::ConvertedSource;
use crate::error::{Cause, UpstreamError};
use crate::radio::{FrameReader, RadioPacker};
use crate::source::body::FilteredBody;

/// The source is lost after so many bytes without a frame.
const SKIPPED_BYTES_MAX: usize = 64 << 10;
/// The usual silence after everything has played that was received: stations send blocks of up to some seconds.
const SILENCE: Duration = Duration::from_secs(2);

/// A station that is read.
pub(super) struct RadioSource {
    body: FilteredBody,
    frames: FrameReader,
    packer: RadioPacker,
    packets: BytesMut,
}

impl RadioSource {
    /// Creates the source of a body whose first bytes are in `frames` already.
    pub(super) fn new(body: FilteredBody, frames: FrameReader) -> Self {
        Self { body, frames, packer: RadioPacker::default(), packets: BytesMut::new() }
    }

    /// Returns the next packets; `None` at the end of the body. Cancel-safe.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        loop {
            while let Some((header, frame)) = self.frames.next_frame() {
                self.packer.frame(&header, &frame, &mut self.packets);
            }
            if !self.packets.is_empty() {
                return Ok(Some(self.packets.split().freeze()));
            }
            if self.frames.n_skipped() > SKIPPED_BYTES_MAX {
                return Err(Cause::SyncLost.into());
            }
            let Some(bytes) = self.body.read().await? else { return Ok(None) };
            self.frames.push(&bytes);
        }
    }

    /// Returns the silence that is usual after everything has played that was received.
    pub(super) fn usual_silence(&self) -> Duration {
        SILENCE
    }

    /// Returns the last title, once; an empty one ends the title before.
    pub(super) fn take_title(&mut self) -> Option<Arc<str>> {
        self.body.take_title()
    }
}
