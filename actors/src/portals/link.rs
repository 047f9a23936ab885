//! Links to live channels, and what tells a portal that a device plays one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::portal::{PortalError, PortalQuestion, PortalStreamAddress, read_link};
use media::Permit;
use media::error::{Cause, UpstreamError};
use media::source::{AddressFuture, AddressMaker};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::client::{PortalClient, PortalFailure};
use super::session::DeviceSession;

/// Longest wait for a link, with a new handshake.
const LINK_TIMEOUT: Duration = Duration::from_secs(20);

/// Makes the link of a channel for one opening.
pub struct PortalLink {
    client: PortalClient,
    address: PortalStreamAddress,
    /// Where the questions are asked: not on the threads that move packets.
    runtime: Handle,
}

impl PortalLink {
    /// Prepares a link. Nothing is asked before the stream is opened. Must be called on the runtime that asks.
    pub(crate) fn new(client: PortalClient, address: PortalStreamAddress) -> Self {
        Self { client, address, runtime: Handle::current() }
    }

    /// Adds to a permit that the device plays while the connection is open.
    pub(crate) fn held_by(self: Arc<Self>, permit: Box<dyn Permit>) -> Box<dyn Permit> {
        Box::new(DevicePermit { playing: None, link: self, permit })
    }

    #[cfg(test)]
    pub(super) fn session(&self) -> Arc<DeviceSession> {
        self.client.session().clone()
    }

    async fn make(client: PortalClient, address: PortalStreamAddress) -> Result<String, PortalFailure> {
        let link = match address.needs_link {
            true => {
                let answer = client.ask(&PortalQuestion::Link { cmd: &address.cmd }).await?;
                read_link(&answer, client.server()).map_err(|error| match error {
                    PortalError::NoLink(reason) => PortalError::NoLink(client.redacted(&reason)),
                    error => error,
                })
            }
            false => address.link(),
        };
        let link = link.map_err(PortalFailure::Portal)?;
        if !client.may_read(&link) {
            let why = format!("the gateway cannot read its kind ({})", link.scheme());
            return Err(PortalFailure::Portal(PortalError::NoLink(why)));
        }
        Ok(link.expose().to_owned())
    }
}

impl AddressMaker for PortalLink {
    fn address(&self) -> AddressFuture<'_> {
        let making = Self::make(self.client.clone(), self.address.clone());
        let making = async move { timeout(LINK_TIMEOUT, making).await };
        let making = AbortOnDropHandle::new(self.runtime.spawn(making));
        Box::pin(async move {
            match making.await {
                Ok(Ok(Ok(link))) => Ok(link),
                Ok(Ok(Err(failure))) => Err(upstream_error(failure)),
                Ok(Err(_)) => Err(Cause::Portal("the portal gave no link in time".to_owned()).into()),
                Err(_) => Err(Cause::Panicked.into()),
            }
        })
    }
}

/// Returns the error of an opening that got no link.
fn upstream_error(failure: PortalFailure) -> UpstreamError {
    let text = match &failure {
        PortalFailure::Fetch(error) => format!("the portal gave no link: {}", error.with_causes()),
        PortalFailure::Portal(error @ PortalError::NoLink(_)) => error.to_string(),
        PortalFailure::Portal(_) | PortalFailure::Waits(_) => failure.to_string(),
    };
    Cause::Portal(text).into()
}

/// The permit of a connection to a link.
struct DevicePermit {
    /// Dropped first: the device plays no longer than its connection is open.
    playing: Option<Playing>,
    link: Arc<PortalLink>,
    permit: Box<dyn Permit>,
}

impl Permit for DevicePermit {
    fn delivers(&mut self) {
        let link = &self.link;
        self.playing.get_or_insert_with(|| Playing::begin(&link.client, &link.runtime));
        self.permit.delivers();
    }

    fn closing(&mut self) {
        self.playing = None;
        self.permit.closing();
    }
}

/// A stream that plays with a device.
struct Playing(Arc<DeviceSession>);

impl Playing {
    fn begin(client: &PortalClient, runtime: &Handle) -> Self {
        let session = client.session().clone();
        session.n_playing.fetch_add(1, Ordering::Relaxed);
        let is_watched = std::mem::replace(&mut *session.is_watched.lock(), true);
        if !is_watched {
            runtime.spawn(watch(client.clone()));
        }
        Self(session)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.0.n_playing.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells the portal that the device is on, as long as something plays with it. A portal that does not answer is told again.
async fn watch(client: PortalClient) {
    let session = client.session().clone();
    loop {
        {
            let mut is_watched = session.is_watched.lock();
            if session.n_playing.load(Ordering::Relaxed) == 0 {
                *is_watched = false;
                return;
            }
        }
        if let Err(failure) = client.ask(&PortalQuestion::Events { is_playing: true }).await {
            debug!("failed to tell a portal that a device is on: {failure}");
        }
        sleep(session.watchdog_interval()).await;
    }
}
