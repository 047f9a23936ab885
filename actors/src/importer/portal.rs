//! Imports the live channels of a portal.
//!
//! Questions one after the other: the subscription, the genres, all channels, and the channels of genres that the portal
//! lists only to those who ask for them. A portal that does not list all channels at once is asked for its pages, slowly.
//! The import makes no link.

use std::sync::Arc;

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, ProfileId};
use domain::panel::{LoginState, ProfileInfo};
use domain::portal::{PortalError, PortalList, PortalPlace, PortalQuestion, expiry_of, read_genres};
use domain::source_url::SourceUrl;
use media::spawn_blocking;
use storage::Models;
use tokio::time::sleep;
use tracing::debug;

use super::error::ImportError;
use super::job::{ImportSummary, Job};
use super::portal_channels::{ChannelsReader, ReaderParts};
use super::run;
use crate::addresses::AccountAddresses;
use crate::fetch::Fetch;
use crate::playlist::{self, PlaylistSource};
use crate::portals::{PAGE_PAUSE, Pages, PortalClient, PortalFailure, PortalRequest};

/// Maximum number of genres whose channels are asked for one genre at a time.
const GENRES_ASKED_MAX: usize = 20;

/// Fetches the channels of a portal and imports them.
pub(super) async fn work(fetch: &Fetch, job: Job, place: PortalPlace) -> Result<ImportSummary, ImportError> {
    let account = job.account.clone();
    let default = account.default_profile().ok_or(ImportError::AccountChanged)?;
    let located = PortalPlace {
        server: job.located(&place.server),
        endpoint: place.endpoint.as_ref().map(|it| job.located(it)),
    };
    forget_devices(fetch, &job.models);
    let client = PortalClient::new(fetch, &account, default, located).ok_or_else(no_device)?;
    let stop = job.stop.clone();
    let importing = async {
        let endpoint = check_with(&client, &job.models, (&*account, default.id), job.options.now()).await?;
        let genres = client.ask(&PortalQuestion::Genres).await.map_err(import_error)?;
        let parts = ReaderParts { genres: read_genres(&genres), server: place.server.clone(), endpoint };
        list_channels(fetch, &job, &client, Arc::new(parts)).await
    };
    let reader = stop.run_until_cancelled(importing).await.ok_or(ImportError::Stopped)??;
    if reader.n_entries == 0 {
        return Err(ImportError::Panel("the portal lists no channels to this device".to_owned()));
    }
    let worked = spawn_blocking(move || run::import_list(&job, &reader.into_list()?, None)).await;
    worked.unwrap_or(Err(ImportError::Panicked))
}

/// Forgets the sessions of devices that no account has any more.
fn forget_devices(fetch: &Fetch, models: &Models) {
    let accounts = models.accounts.load();
    fetch.portals().retain(|account: AccountId, profile: ProfileId| {
        accounts.get(account.0).is_some_and(|it| it.profiles.iter().any(|it| it.id == profile))
    });
}

/// Reads all channels of a portal.
async fn list_channels(
    fetch: &Fetch,
    job: &Job,
    client: &PortalClient,
    parts: Arc<ReaderParts>,
) -> Result<ChannelsReader, ImportError> {
    let request = client.request(&PortalQuestion::AllChannels).await.map_err(import_error)?;
    let (reader, end) = match list_at_once(fetch, job, &request, parts.clone()).await? {
        (_, Err(error)) if error.is_unauthorized() => {
            client.list_refused(&request).await.map_err(import_error)?;
            let request = client.request(&PortalQuestion::AllChannels).await.map_err(import_error)?;
            list_at_once(fetch, job, &request, parts.clone()).await?
        }
        listed => listed,
    };
    let mut reader = match end {
        Ok(_) if reader.n_entries > 0 => reader,
        Err(error) if error.is_unauthorized() => return Err(ImportError::Panel(error.to_string())),
        end => {
            debug!(account.id = %job.account.id, "a portal does not list all channels at once: {end:?}");
            let mut reader = ChannelsReader::new(job.clone(), parts.clone());
            read_pages(client, &mut reader, "*").await?;
            reader
        }
    };
    let censored = parts.genres.iter().filter(|it| it.1.is_censored).map(|it| it.0);
    for genre in censored.take(GENRES_ASKED_MAX) {
        sleep(PAGE_PAUSE).await;
        read_pages(client, &mut reader, genre).await?;
    }
    Ok(reader)
}

/// Reads the list of all channels while it arrives.
async fn list_at_once(
    fetch: &Fetch,
    job: &Job,
    request: &PortalRequest,
    parts: Arc<ReaderParts>,
) -> Result<(ChannelsReader, Result<PortalList, PortalError>), ImportError> {
    let source = PlaylistSource::Url(request.url.clone(), request.headers.clone(), request.reach);
    let (of_reader, of_parts) = (job.clone(), parts.clone());
    let (fed, read) = playlist::feed(fetch, source, &job.stop, move |bytes| {
        let mut reader = ChannelsReader::new(of_reader, of_parts);
        let end = reader.read(bytes)?;
        Ok::<_, ImportError>((reader, end))
    })
    .await;
    match fed.map_err(PortalFailure::from) {
        Ok(()) => read.unwrap_or(Err(ImportError::Panicked)),
        Err(failure) if failure.is_unauthorized() => {
            Ok((ChannelsReader::new(job.clone(), parts), Err(PortalError::Unauthorized)))
        }
        // The server has answered, so its pages may be there.
        Err(PortalFailure::Fetch(error)) if error.is_answer() => {
            debug!(account.id = %job.account.id, "failed to read all channels of a portal: {error}");
            Ok((ChannelsReader::new(job.clone(), parts), Err(PortalError::Nothing)))
        }
        Err(failure) => Err(import_error(failure)),
    }
}

/// Reads the pages of a genre, one after the other.
async fn read_pages(
    client: &PortalClient,
    reader: &mut ChannelsReader,
    genre: &str,
) -> Result<(), ImportError> {
    let mut pages = Pages::new(client, reader.entries_max());
    while !reader.is_full()
        && let Some(js) =
            pages.next(|page| PortalQuestion::Page { genre, page }).await.map_err(import_error)?
    {
        let n_before = reader.n_entries;
        reader.add_page(&js)?;
        pages.read(reader.n_entries - n_before);
    }
    Ok(())
}

/// Asks the portal of an account about the device of a profile, and stores the answer or the error.
///
/// # Errors
/// The portal refuses the device, or does not answer like one.
pub(super) async fn check(
    models: &Models,
    fetch: &Fetch,
    account: &Account,
    profile: &AccountProfile,
    now: i64,
) -> Result<(), ImportError> {
    let addresses = AccountAddresses::new(models.clone());
    let located = addresses.portal_place(account).ok_or(ImportError::AccountChanged)?;
    let client = PortalClient::new(fetch, account, profile, located).ok_or_else(no_device)?;
    check_with(&client, models, (account, profile.id), now).await.map(drop)
}

/// Asks about a device. Returns the entry point that has answered.
async fn check_with(
    client: &PortalClient,
    models: &Models,
    (account, profile): (&Account, ProfileId),
    now: i64,
) -> Result<SourceUrl, ImportError> {
    let asked = client.ask(&PortalQuestion::MainInfo).await.map(|it| expiry_of(&it));
    let (endpoint, expires_at) = match (asked, client.endpoint().await) {
        (Ok(expires_at), Some(endpoint)) => (endpoint, expires_at),
        // Some portals do not know the question.
        (Err(failure), Some(endpoint)) if !failure.is_refusal() => (endpoint, None),
        (Err(failure), _) => {
            store(models, (account, profile), now, Err(&failure)).await?;
            return Err(import_error(failure));
        }
        (Ok(_), None) => return Err(ImportError::AccountChanged),
    };
    store(models, (account, profile), now, Ok((&endpoint, expires_at))).await?;
    Ok(endpoint)
}

fn no_device() -> ImportError {
    ImportError::Panel("the profile of the account has no MAC address".to_owned())
}

/// Stores what the portal says about the device: the entry point that has answered, the end of the subscription, and whether
/// the device is refused. Nothing is stored if the account has changed since.
async fn store(
    models: &Models,
    (account, profile): (&Account, ProfileId),
    now: i64,
    said: Result<(&SourceUrl, Option<i64>), &PortalFailure>,
) -> Result<(), ImportError> {
    let Some(then) = account.list.portal().cloned() else { return Ok(()) };
    let id = account.id;
    // Another server of the account is found again, and the entry point of the first one stays known.
    let is_of_place = |it: &&SourceUrl| it.expose().starts_with(then.server.expose());
    let endpoint = said.ok().map(|it| it.0).filter(is_of_place).cloned();
    let said = said.map(|it| it.1).map_err(|it| (it.is_refusal(), it.to_string()));
    let done = models.store.write(move |write| {
        let Some(mut account) = write.get::<Account>(id.0)? else { return Ok(()) };
        if account.list.portal() != Some(&then) {
            return Ok(());
        }
        let before = account.clone();
        if let Some(endpoint) = endpoint {
            account.list = PlaylistLocation::Portal(PortalPlace { endpoint: Some(endpoint), ..then });
        }
        let known = write.get::<ProfileInfo>(profile.0)?;
        let mut info = known.unwrap_or_else(|| ProfileInfo::new(profile, id));
        info.tried_at = now;
        match said {
            Ok(expires_at) => {
                if let Some(profile) = account.profiles.iter_mut().find(|it| it.id == profile)
                    && expires_at.is_some()
                {
                    profile.expires_at = expires_at;
                }
                (info.state, info.answered_at, info.error) = (LoginState::Active, Some(now), String::new());
            }
            Err((is_refused, reason)) => {
                info.state = if is_refused { LoginState::Refused } else { info.state };
                info.error = reason;
            }
        }
        if account != before {
            write.put(&account)?;
        }
        write.put(&info)
    });
    let done: Result<(), storage::Error> = done.await;
    Ok(done?)
}

fn import_error(failure: PortalFailure) -> ImportError {
    match failure {
        PortalFailure::Fetch(error) => ImportError::Fetch(error),
        failure => ImportError::Panel(failure.to_string()),
    }
}
