//! Links to what a portal plays, and what tells a portal that a device plays one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::portal::{
    PortalError, PortalMedia, PortalQuestion, PortalStreamAddress, ProgrammeSearch, SearchStep, TitleModule,
    file_command, link_in, read_link,
};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
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

/// Makes the link of a channel, a part of its past, or a title for one opening.
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
        let link = match &address.media {
            PortalMedia::Archive { at } => {
                let id = programme_at(&client, &address.id, *at).await?;
                let cmd = Secret::new(format!("auto /media/{id}.mpg"));
                asked(&client, &PortalQuestion::ArchiveLink { cmd: &cmd }).await
            }
            PortalMedia::Film { has_files: true } => file_link(&client, &address.id, None).await,
            PortalMedia::Episode { season, episode } => {
                file_link(&client, &address.id, Some((season, episode))).await
            }
            PortalMedia::Numbered { number, .. } => {
                let (cmd, number) = (&address.cmd, Some(*number));
                asked(&client, &PortalQuestion::TitleLink { cmd, number }).await
            }
            PortalMedia::Film { .. } if address.needs_link => {
                asked(&client, &PortalQuestion::TitleLink { cmd: &address.cmd, number: None }).await
            }
            PortalMedia::Channel if address.needs_link => {
                asked(&client, &PortalQuestion::Link { cmd: &address.cmd }).await
            }
            PortalMedia::Channel | PortalMedia::Film { .. } | PortalMedia::Series(_) => {
                address.link().map_err(PortalFailure::Portal)
            }
        };
        let link = link?;
        if !client.may_read(&link) {
            return Err(no_link(format!("the gateway cannot read its kind ({})", link.scheme())));
        }
        Ok(link.expose().to_owned())
    }
}

/// Returns the link in the answer to a question.
async fn asked(client: &PortalClient, question: &PortalQuestion<'_>) -> Result<SourceUrl, PortalFailure> {
    let answer = client.ask(question).await?;
    read_link(&answer, client.server()).map_err(|error| match error {
        PortalError::NoLink(reason) => no_link(client.redacted(&reason)),
        error => PortalFailure::Portal(error),
    })
}

/// Returns the link of the first file of a film, or of this episode of this season of a series.
async fn file_link(
    client: &PortalClient,
    title: &str,
    episode: Option<(&String, &String)>,
) -> Result<SourceUrl, PortalFailure> {
    let (season, episode) = episode.map(|it| (it.0.as_str(), it.1.as_str())).unzip();
    let module = TitleModule::Vod;
    let files = client.ask(&PortalQuestion::Parts { module, title, season, episode, page: 1 }).await?;
    match file_command(&files) {
        Some((cmd, true)) => asked(client, &PortalQuestion::TitleLink { cmd: &cmd, number: None }).await,
        Some((cmd, false)) => link_in(cmd.expose()).ok_or_else(|| no_link("its file has none".to_owned())),
        None => Err(no_link("it lists no file of the title".to_owned())),
    }
}

/// Returns the id of the programme of a channel at a time, in seconds since 1970.
async fn programme_at(client: &PortalClient, channel: &str, at: i64) -> Result<String, PortalFailure> {
    let missing = || no_link("it has no programme at this time".to_owned());
    let mut search = ProgrammeSearch::new(at, &client.zone()).ok_or_else(missing)?;
    loop {
        let (date, page) = search.question();
        let answer = client.ask(&PortalQuestion::Day { channel, date: &date, page }).await?;
        match search.read(&answer) {
            SearchStep::Found(id) => return Ok(id),
            SearchStep::Ask => {}
            SearchStep::Missing => return Err(missing()),
        }
    }
}

fn no_link(reason: String) -> PortalFailure {
    PortalFailure::Portal(PortalError::NoLink(reason))
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
