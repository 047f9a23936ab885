//! Loads the details of one film, and those of one series with its episodes.

use std::sync::Arc;
use std::time::Duration;

use domain::account::Account;
use domain::egress::Reach;
use domain::panel::VodQuestion;
use domain::panel::vod::{MOVIE_INFO_BYTES_MAX, SERIES_INFO_BYTES_MAX, read_movie_info, read_series_info};
use domain::vod::{Relation, Title, TitleKind};
use storage::FoundEpisodes;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::error::VodError;
use super::queue::Offer;
use super::sync::{blocking, check_account};
use super::{Parts, TitleServer, land, portal};
use crate::fetch::FetchLimits;

/// Time for which details are not asked for again, in milliseconds.
pub(super) const DETAILS_TIME_MS: i64 = 24 * 60 * 60 * 1000;

/// Maximum time for an answer about a title, and between two parts of it.
const ANSWER_TIME: Duration = Duration::from_secs(60);
const READ_TIME: Duration = Duration::from_secs(20);

/// Returns whether what is stored of a title need not be loaded: its details are young, and its episodes those that the
/// provider's list announces.
pub(super) fn is_fresh(kind: TitleKind, relation: &Relation, now: i64) -> bool {
    // A clock that was set back must not keep old details.
    let is_young = |at: i64| (0..DETAILS_TIME_MS).contains(&now.saturating_sub(at));
    match kind {
        TitleKind::Movie => relation.details_at.is_some_and(is_young),
        TitleKind::Series => {
            // A panel that states no time of the last change is asked again every day.
            let is_known = relation.last_modified.is_some() && relation.episodes_of.is_some();
            !relation.needs_episodes() && (is_known || relation.episodes_at.is_some_and(is_young))
        }
    }
}

/// Returns a title with the relation that is meant.
pub(super) fn find(parts: &Parts, offer: Offer) -> Result<Option<(Title, Relation)>, VodError> {
    let Some(title) = parts.models.vod.get(offer.title)? else { return Ok(None) };
    let relation = title.relations.iter().find(|it| it.id == offer.relation).cloned();
    Ok(relation.map(|it| (title, it)))
}

/// Asks the panel or portal about a title, and stores the answer.
pub(super) async fn load(
    parts: &Arc<Parts>,
    account: &Arc<Account>,
    server: &TitleServer,
    (title, relation): (Title, Relation),
    stop: &CancellationToken,
) -> Result<(), VodError> {
    let login = match server {
        TitleServer::Panel(login) => login,
        TitleServer::Portal(client) => {
            return portal::load_episodes(parts, account, client, relation, stop).await;
        }
    };
    let id = relation.provider_id.as_str();
    let (question, bytes_max) = match title.id.kind() {
        TitleKind::Movie => (VodQuestion::MovieInfo { id }, MOVIE_INFO_BYTES_MAX),
        TitleKind::Series => (VodQuestion::SeriesInfo { id }, SERIES_INFO_BYTES_MAX),
    };
    let limits = parts.fetch.limits();
    let limits = FetchLimits {
        bytes_max: limits.bytes_max.min(bytes_max as u64),
        total_timeout: limits.total_timeout.min(ANSWER_TIME),
        read_timeout: limits.read_timeout.min(READ_TIME),
        ..limits
    };
    let asking = async {
        let _turn = parts.fetch.turn(account.id).await;
        let reach = Reach::typed(account.allowed_networks);
        let fetch = parts.fetch.for_account(account).within(limits);
        let body = fetch.get(login.vod_url(question).expose(), &account.headers, reach).await?;
        body.whole().await
    };
    let answered = stop.run_until_cancelled(asking).await.ok_or(VodError::Stopped)?;
    let bytes = answered.map_err(VodError::Fetch)?;
    let (parts, account) = (parts.clone(), account.clone());
    blocking(move || {
        let now = (parts.now)();
        match title.id.kind() {
            TitleKind::Movie => {
                let info = read_movie_info(&bytes).map_err(VodError::Title)?;
                check_account(&parts.models, &account)?;
                land::details(&parts.models, relation.id, info.into_details(), now)
            }
            TitleKind::Series => {
                let info = read_series_info(&bytes).map_err(VodError::Title)?;
                check_account(&parts.models, &account)?;
                if info.skipped.total() > 0 {
                    info!(
                        account.id = %account.id,
                        "episodes of \"{}\" at account \"{}\": {}", title.name(), account.name, info.skipped
                    );
                }
                land::details(&parts.models, relation.id, info.details(), now)?;
                let episodes = info.episodes.into_iter().map(|it| it.into_found()).collect();
                let found = FoundEpisodes { relation: relation.id, episodes };
                land::episodes(&parts.models, &account, vec![found], now)
            }
        }
    })
    .await
}
