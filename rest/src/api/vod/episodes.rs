//! `/api/vod/episodes/` and the episodes of a series.

use std::collections::HashMap;

use domain::ids::{AccountId, EpisodeId};
use domain::vod::{Episode, Title, TitleId, TitleKind};
use http::StatusCode;
use resource_derive::Query;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;
use services::titles::{SeenTitles, reading};
use storage::Models;

use super::titles::find;
use super::view::{EpisodeView, VodLookup, unknown};
use crate::context::RestCall;
use crate::list::{Page, Paging, Search, WholeOrPages};

/// 20 episodes per page by default, at most 100.
type Pages = Paging<20, 100>;

/// Filters of the list of episodes. Without a series, episodes of all series that the caller may see are listed.
#[derive(Debug, Query)]
struct EpisodeFilters {
    /// Part of the name, regardless of case.
    #[field(chars_max = 255)]
    name: Option<Search>,
    /// Id of the series.
    series: Option<u32>,
    /// Ids of playlist accounts, separated by commas.
    #[field(items_max = 1000)]
    m3u_account: Option<Vec<AccountId>>,
    /// Season; 0 contains specials.
    season_number: Option<u32>,
    /// Number in the season.
    episode_number: Option<u32>,
    /// Part of the name or the plot, regardless of case.
    #[field(chars_max = 255)]
    search: Option<Search>,
}

pub(super) fn routes() -> Vec<Route> {
    const LIST: &str = "Lists episodes that are known. Those of a series are loaded when it is opened.";
    const OF_SERIES: &str =
        "Lists the episodes of a series, and loads them first if they are missing or old.";
    vec![
        Route::get("/api/vod/episodes/", STREAMER, LIST, list),
        Route::get("/api/vod/episodes/{id}/", STREAMER, "Returns an episode.", retrieve),
        Route::get("/api/vod/series/{id}/episodes/", STREAMER, OF_SERIES, episodes_of_series)
            .refuses(StatusCode::NOT_FOUND, "The series does not exist."),
    ]
}

/// An episode with its series.
type Found = (Title, Episode);

async fn list(call: Call, (filters, paging): (EpisodeFilters, Pages)) -> Result<Page<EpisodeView>, Refusal> {
    let (offset, limit) = paging.window();
    let (models, seen) = (call.rest().models.clone(), call.seen_titles());
    let (count, found) = reading(move || find_all(&models, &seen, &filters, offset, limit)).await?;
    let lookup = VodLookup::load(&call);
    paging.envelope(&call, count, found.iter().map(|(series, it)| lookup.episode(series, it)).collect())
}

/// Returns the number of episodes that match, and those of a window, by series, season and number.
fn find_all(
    models: &Models,
    seen: &SeenTitles,
    filters: &EpisodeFilters,
    offset: usize,
    limit: usize,
) -> Result<(usize, Vec<Found>), storage::Error> {
    let titles = &models.vod;
    let mut matching: Vec<(TitleId, u32, u32, EpisodeId)> = Vec::new();
    let mut take = |it: &Episode| {
        if matches(filters, it) {
            matching.push((it.series, it.season, it.number, it.id));
        }
    };
    match filters.series {
        Some(number) => {
            let series = TitleId::series(number).map(|it| titles.get(it)).transpose()?.flatten();
            if let Some(series) = series {
                titles.episodes_of(series.id)?.iter().for_each(take);
            }
        }
        None => models.store.collection::<Episode>().for_each(|it| take(&it))?,
    }
    let mut series: HashMap<TitleId, Option<Title>> = HashMap::new();
    for (id, ..) in &matching {
        if !series.contains_key(id) {
            series.insert(*id, titles.get(*id)?.filter(|it| seen.lists(it)));
        }
    }
    matching.retain(|it| series.get(&it.0).is_some_and(Option::is_some));
    matching.sort_unstable();
    let count = matching.len();
    let mut found = Vec::new();
    for (id, _, _, episode) in matching.into_iter().skip(offset).take(limit) {
        if let (Some(Some(series)), Some(episode)) = (series.get(&id), titles.episode(episode)?) {
            found.push((series.clone(), episode));
        }
    }
    Ok((count, found))
}

fn matches(filters: &EpisodeFilters, episode: &Episode) -> bool {
    let plot = || episode.first(|it| it.description.as_deref()).unwrap_or_default();
    filters.season_number.is_none_or(|it| it == episode.season)
        && filters.episode_number.is_none_or(|it| it == episode.number)
        && filters
            .m3u_account
            .as_ref()
            .is_none_or(|it| episode.offers.iter().any(|offer| it.contains(&offer.account)))
        && filters.name.as_ref().is_none_or(|it| it.matches(&episode.name()))
        && filters.search.as_ref().is_none_or(|it| it.matches(&episode.name()) || it.matches(plot()))
}

async fn retrieve(call: Call) -> Result<EpisodeView, Refusal> {
    let (series, episode) = find_episode(&call, call.id()?).await?;
    Ok(VodLookup::load(&call).episode(&series, &episode))
}

/// Returns the episode with this id, and its series, if the caller sees it.
pub(super) async fn find_episode(call: &Call, id: u32) -> Result<Found, Refusal> {
    let titles = call.rest().models.vod.clone();
    let found = reading(move || {
        let Some(episode) = titles.episode(EpisodeId(id))? else { return Ok(None) };
        Ok(titles.get(episode.series)?.map(|it| (it, episode)))
    });
    let seen = call.seen_titles();
    let found = found.await?.filter(|it| seen.lists(&it.0));
    found.ok_or_else(|| Refusal::not_found("No Episode matches the given query."))
}

async fn episodes_of_series(call: Call, paging: WholeOrPages) -> Result<Page<EpisodeView>, Refusal> {
    let series = find(&call, TitleKind::Series).await?;
    let (opened, episodes) = call.rest().imports.titles.open_series(series).await?;
    // A refresh may have changed what the caller sees.
    let seen = call.seen_titles();
    if !seen.lists(&opened.title) {
        return Err(unknown(TitleKind::Series));
    }
    let lookup = VodLookup::load(&call);
    paging.render_with(&call, &episodes, |it| lookup.episode(&opened.title, it))
}
