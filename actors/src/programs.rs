//! Programs that make a short transport stream without any provider, such as a clip with a text. They run like those of
//! stream profiles, confined and with the same limits, one at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use media::Permit;
use media::error::Cause;
use media::source::{self, OpenRequest, ProgramOutput, Upstream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::channel::LiveEnv;

/// Maximum time of a program, including its start.
const TIME_MAX: Duration = Duration::from_secs(20);
/// Maximum size of its output, in bytes.
const BYTES_MAX: usize = 4 << 20;

/// The handle for such programs, shared between clones.
#[derive(Clone)]
pub struct Programs {
    env: Arc<LiveEnv>,
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

/// No provider counts the program.
struct NoPermit;

impl Permit for NoPermit {
    fn delivers(&mut self) {}

    fn closing(&mut self) {}
}

impl Programs {
    /// Creates the handle. Programs end when `stop` is cancelled.
    pub(crate) fn new(env: Arc<LiveEnv>, stop: CancellationToken) -> Self {
        Self { env, places: Arc::new(Semaphore::new(1)), stop }
    }

    /// Runs a program, its name or absolute path and then its arguments, and returns its output: at most 4 MiB, after at
    /// most 20 s. Dropping the future ends the program.
    ///
    /// # Errors
    /// The reason why there is no complete output.
    pub async fn output_of(&self, command: Vec<String>) -> Result<Bytes, String> {
        let runtime: &Handle = &self.env.packets;
        let upstream = self.env.upstream();
        let run = async {
            let _place = self.places.acquire().await.map_err(|_| "the gateway is stopping".to_owned())?;
            let running = AbortOnDropHandle::new(runtime.spawn(read(command, upstream)));
            running.await.map_err(|_| "a bug: the reading of a program panicked".to_owned())?
        };
        tokio::select! {
            output = timeout(TIME_MAX, run) => output.map_err(|_| "the program took too long".to_owned())?,
            () = self.stop.cancelled() => Err("the gateway is stopping".to_owned()),
        }
    }
}

/// Reads everything that a program writes.
async fn read(command: Vec<String>, upstream: Upstream) -> Result<Bytes, String> {
    let request = OpenRequest { command: Some(command), ..OpenRequest::default() };
    let mut log = ProgramOutput::default();
    let opened = source::open_with_output(request, Box::new(NoPermit), upstream, &mut log).await;
    let mut source = opened.map_err(|error| match log.lines.last() {
        Some(line) => format!("{error}: {line}"),
        None => error.to_string(),
    })?;
    let mut output = BytesMut::new();
    loop {
        match source.read().await {
            Ok(bytes) if output.len() + bytes.len() > BYTES_MAX => return Err("too much output".to_owned()),
            Ok(bytes) => output.extend_from_slice(&bytes),
            Err(error) => match error.cause() {
                Cause::Exited(how) if how.starts_with("with status 0") => return Ok(output.freeze()),
                _ => return Err(error.to_string()),
            },
        }
    }
}
