//! Stations whose sound a program converts. The program connects nowhere: it gets the body of the one connection.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use crate::error::{Cause, UpstreamError};
use crate::permit::Permit;
use crate::rendition::{ProgramInput, program_input};
use crate::source::body::FilteredBody;
use crate::source::process::ProcessSource;
use crate::source::upstream::Upstream;

/// A station that is read, and the program that converts it.
pub(in crate::source) struct ConvertedSource {
    body: FilteredBody,
    /// Bytes that the program has not taken yet.
    pending: Bytes,
    /// `None` after the last bytes, or when the program does not read any longer.
    input: Option<ProgramInput>,
    program: Box<ProcessSource>,
    /// Why the body ended. The program has the last seconds of it then.
    end: Option<UpstreamError>,
}

/// The fate of some bytes.
enum Fed {
    Taken,
    /// The program does not read any longer, and will say why.
    Refused,
}

/// The program needs no permit, because the connection has that of the account.
struct NoPermit;

impl Permit for NoPermit {
    fn delivers(&mut self) {}

    fn closing(&mut self) {}
}

impl ConvertedSource {
    /// Starts the program for a body whose first bytes were read already.
    pub(in crate::source) async fn start(
        command: &[String],
        body: FilteredBody,
        early: VecDeque<Bytes>,
        upstream: &Upstream,
    ) -> Result<Self, UpstreamError> {
        let (input, for_program) = program_input().map_err(|error| Cause::Program(error.to_string()))?;
        let Upstream { closer, launcher, .. } = upstream.clone();
        let permit = Box::new(NoPermit);
        let starting = ProcessSource::start(command, "", Some(for_program), permit, closer, launcher);
        let program = Box::new(starting.await?);
        let pending = early.iter().fold(BytesMut::new(), |mut all, it| {
            all.extend_from_slice(it);
            all
        });
        Ok(Self { body, pending: pending.freeze(), input: Some(input), program, end: None })
    }

    /// Returns the next output of the program. Cancel-safe.
    ///
    /// # Errors
    /// Why the body ended, or why the program did.
    pub(in crate::source) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        loop {
            let Self { body, pending, input, program, end } = self;
            let fed = tokio::select! {
                biased;
                read = program.read() => return read.map_err(|error| end.clone().unwrap_or(error)),
                fed = feed(body, pending, input) => fed,
            };
            match fed {
                Ok(Fed::Taken) => continue,
                Ok(Fed::Refused) => {}
                Err(error) => *end = Some(error),
            }
            *input = None;
        }
    }

    /// Returns the program.
    pub(in crate::source) fn program(&self) -> &ProcessSource {
        &self.program
    }

    /// Records that the station plays.
    pub(in crate::source) fn delivers(&mut self) {
        self.body.delivers();
    }

    /// Returns whether the body has ended where it was to end.
    pub(in crate::source) fn has_ended(&self) -> bool {
        self.end.as_ref().is_some_and(|it| *it.cause() == Cause::Ended)
    }

    /// Returns the last title, once; an empty one ends the title before.
    pub(in crate::source) fn take_title(&mut self) -> Option<Arc<str>> {
        self.body.take_title()
    }
}

/// Gives some bytes to the program. Waits for ever if it has no input. Cancel-safe.
async fn feed(
    body: &mut FilteredBody,
    pending: &mut Bytes,
    input: &mut Option<ProgramInput>,
) -> Result<Fed, UpstreamError> {
    let Some(input) = input else { std::future::pending().await };
    if pending.is_empty() {
        *pending = body.read().await?.ok_or(Cause::Ended)?;
    }
    Ok(match input.write(pending).await {
        Ok(n) if n > 0 || pending.is_empty() => {
            pending.advance(n);
            Fed::Taken
        }
        _ => Fed::Refused,
    })
}
