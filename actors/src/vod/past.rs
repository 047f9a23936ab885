//! The past of a channel, read by the gateway itself.
//!
//! Unlike a viewer, it takes only a connection that is free and that nobody waits for, and it gives the connection back as
//! soon as anybody else asks for it.

use domain::plan::TitleCandidate;
use media::error::{Cause, UpstreamError};
use tokio::time::timeout;
use uuid::Uuid;

use super::source::{FileSource, SourceEvent};
use super::{STALL_TIMEOUT, Vod, VodRefusal};
use crate::plans::Target;
use crate::slots::Asking;

/// Reads one part of the past after the other.
pub(crate) struct PastReader {
    source: FileSource,
    /// The part has no length, or is a playlist of segments.
    is_stream: bool,
}

/// An event of an open part.
pub(crate) enum PastEvent {
    Bytes(bytes::Bytes),
    /// The part is complete.
    End,
    Lost(UpstreamError),
    /// Somebody else needs the connection.
    Needed,
}

impl Vod {
    /// Returns a reader of the past of this channel.
    pub(crate) fn past_reader(&self, channel: Uuid) -> PastReader {
        let (env, counter) = (self.shared.env.clone(), self.shared.counter.clone());
        PastReader { source: FileSource::new(env, counter, Target::Archive(channel)), is_stream: false }
    }
}

impl PastReader {
    /// Opens the first of these parts that can be opened, and returns it. After an error, or if the future is dropped,
    /// [`Self::close`] is needed.
    pub(crate) async fn open(
        &mut self,
        candidates: &[TitleCandidate],
    ) -> Result<Option<TitleCandidate>, VodRefusal> {
        self.is_stream = false;
        match self.source.open(candidates, None, 0, Asking::Beside, || {}).await {
            Ok(opened) => Ok(Some(opened.candidate)),
            Err(failure) if failure.is_stream => {
                let opened = self.source.open_stream(candidates, Asking::Beside, || {}).await;
                self.is_stream = true;
                opened.map(Some).map_err(|it| it.why)
            }
            Err(failure) => match failure.why {
                VodRefusal::Full(_) => Ok(None),
                why => Err(why),
            },
        }
    }

    /// Returns what the open part brings next. Cancel-safe.
    pub(crate) async fn next(&mut self) -> PastEvent {
        let next = async {
            match self.is_stream {
                true => self.source.next_of_stream(true).await,
                false => self.source.next(true).await,
            }
        };
        match timeout(STALL_TIMEOUT, next).await {
            Ok(SourceEvent::Read(Ok(Some(bytes)))) => PastEvent::Bytes(bytes),
            Ok(SourceEvent::Read(Ok(None))) => PastEvent::End,
            Ok(SourceEvent::Read(Err(error))) => PastEvent::Lost(error),
            Ok(SourceEvent::Message(_)) => PastEvent::Needed,
            Ok(SourceEvent::Revoked) => PastEvent::Lost(UpstreamError::new(Cause::Revoked)),
            Err(_) => PastEvent::Lost(UpstreamError::new(Cause::Stall)),
        }
    }

    /// Closes the connection and gives its slot back.
    pub(crate) fn close(&mut self) {
        self.source.release();
    }
}
