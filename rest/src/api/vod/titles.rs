//! `/api/vod/movies/`, `/api/vod/series/` and `/api/vod/all/`: lists of films and series, and one of them.

use domain::vod::{Title, TitleId, TitleKind};
use http::StatusCode;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use server::reply::Refusal;
use services::titles::reading;

use super::filters::{TitleFilters, TitlesFound};
use super::view::{MovieView, SeriesView, TitleView, VodLookup, unknown};
use crate::context::RestCall;
use crate::list::{Page, Paging};

/// 20 titles per page by default, at most 100.
type Pages = Paging<20, 100>;
/// 24 titles per page by default, at most 100.
type MixedPages = Paging<24, 100>;

pub(super) fn routes() -> Vec<Route> {
    const LATE: &str = "The index is not up to date yet.";
    vec![
        Route::get("/api/vod/movies/", STREAMER, "Lists the films that the caller may see.", movies)
            .refuses(StatusCode::SERVICE_UNAVAILABLE, LATE),
        Route::get("/api/vod/movies/{id}/", STREAMER, "Returns a film.", movie),
        Route::get("/api/vod/series/", STREAMER, "Lists the series that the caller may see.", series)
            .refuses(StatusCode::SERVICE_UNAVAILABLE, LATE),
        Route::get("/api/vod/series/{id}/", STREAMER, "Returns a series.", one_series),
        Route::get("/api/vod/all/", STREAMER, "Lists the films and series that the caller may see.", all)
            .refuses(StatusCode::SERVICE_UNAVAILABLE, LATE),
    ]
}

async fn movies(call: Call, (filters, paging): (TitleFilters, Pages)) -> Result<Page<MovieView>, Refusal> {
    let (offset, limit) = paging.window();
    let TitlesFound { count, titles } =
        filters.wanted(&call, &[TitleKind::Movie]).find(&call, offset, limit).await?;
    let lookup = VodLookup::load(&call);
    paging.envelope(&call, count, titles.iter().map(|it| lookup.movie(it)).collect())
}

async fn series(call: Call, (filters, paging): (TitleFilters, Pages)) -> Result<Page<SeriesView>, Refusal> {
    let (offset, limit) = paging.window();
    let TitlesFound { count, titles } =
        filters.wanted(&call, &[TitleKind::Series]).find(&call, offset, limit).await?;
    let lookup = with_counts(&call, &titles).await?;
    paging.envelope(&call, count, titles.iter().map(|it| lookup.series(it)).collect())
}

async fn all(call: Call, (filters, paging): (TitleFilters, MixedPages)) -> Result<Page<TitleView>, Refusal> {
    let (offset, limit) = paging.window();
    let TitlesFound { count, titles } =
        filters.wanted(&call, &TitleKind::ALL).find(&call, offset, limit).await?;
    let lookup = with_counts(&call, &titles).await?;
    paging.envelope(&call, count, titles.iter().map(|it| lookup.title(it)).collect())
}

/// Returns what views depend on, with the numbers of episodes of these series.
pub(super) async fn with_counts(call: &Call, titles: &[Title]) -> Result<VodLookup, Refusal> {
    let vod = call.rest().models.vod.clone();
    let series: Vec<TitleId> =
        titles.iter().map(|it| it.id).filter(|it| it.kind() == TitleKind::Series).collect();
    let counts = reading(move || series.into_iter().map(|it| Ok((it, vod.episodes_of(it)?.len()))).collect());
    Ok(VodLookup { episode_counts: counts.await?, ..VodLookup::load(call) })
}

async fn movie(call: Call) -> Result<MovieView, Refusal> {
    let title = find(&call, TitleKind::Movie).await?;
    Ok(VodLookup::load(&call).movie(&title))
}

async fn one_series(call: Call) -> Result<SeriesView, Refusal> {
    let title = find(&call, TitleKind::Series).await?;
    series_view(&call, &title).await
}

pub(super) async fn series_view(call: &Call, title: &Title) -> Result<SeriesView, Refusal> {
    Ok(with_counts(call, std::slice::from_ref(title)).await?.series(title))
}

/// Returns the title of this kind with the id of the path, or the one that it was merged into, if the caller sees it.
pub(super) async fn find(call: &Call, kind: TitleKind) -> Result<Title, Refusal> {
    find_id(call, kind, call.id()?).await
}

pub(super) async fn find_id(call: &Call, kind: TitleKind, number: u32) -> Result<Title, Refusal> {
    let id = TitleId::new(kind, number).ok_or_else(|| unknown(kind))?;
    let titles = call.rest().models.vod.clone();
    let found = reading(move || titles.get(id)).await?;
    let seen = call.seen_titles();
    found.filter(|it| seen.lists(it)).ok_or_else(|| unknown(kind))
}
