//! `/api/vod/progress/`: the films and episodes that the caller has watched, and where the caller stopped.

use actors::now_ms;
use domain::ids::EpisodeId;
use domain::vod::progress::ProgressReport;
use domain::vod::{Episode, Title, TitleFavorites, TitleKind, WatchProgress, WatchedId, WatchedItem};
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::{NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::titles::{SeenTitles, reading};
use storage::Models;
use uuid::Uuid;

use super::episodes::find_episode;
use super::titles::find;
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Page, Paging};

/// 24 rows per page by default, at most 100.
type Pages = Paging<24, 100>;

choice!(
    /// Kinds of what is watched.
    enum WatchedKind {
        Movie = "movie",
        Episode = "episode",
    }
);

/// The progress of the caller in a film or an episode.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "WatchProgress")]
pub(crate) struct ProgressView {
    /// Whether it is a film or an episode.
    content_type: Named<WatchedKind>,
    /// Id of the film or the episode.
    #[field(example = "7")]
    id: u32,
    /// Identifier in its address.
    uuid: Uuid,
    /// Name of the film or the episode.
    #[field(example = "Metropolis")]
    name: String,
    /// Id of the series; `null` for a film.
    series_id: Option<u32>,
    /// Name of the series; `null` for a film.
    series_name: Option<String>,
    /// Season; `null` for a film.
    season_number: Option<u32>,
    /// Number in the season; `null` for a film.
    episode_number: Option<u32>,
    /// Where to continue, in seconds; 0 is the beginning.
    #[field(example = "1200")]
    position_secs: u32,
    /// Length in seconds; `null` if unknown.
    #[field(example = "9180")]
    duration_secs: Option<u32>,
    /// Whether it was watched to its end.
    watched: bool,
    /// How often it was watched to its end.
    play_count: u32,
    /// When a player last reported it; `null` if none did.
    updated_at: Option<Time>,
}

/// The progress that a player reports.
#[derive(Clone, Debug, Default, Body)]
#[resource(name = "WatchProgressEdit")]
pub(crate) struct ProgressEdit {
    /// Position in seconds. From 90 percent of the length on, the film counts as watched.
    #[field(example = "1200")]
    position_secs: Option<u32>,
    /// Length in seconds; by default the one that is known.
    #[field(example = "9180")]
    duration_secs: Option<u32>,
    /// `true` marks it as watched, `false` as not watched, whatever the position is.
    watched: Option<bool>,
}

/// Filters of the list.
#[derive(Debug, Query)]
struct ProgressFilters {
    /// Kind of the rows.
    content_type: Option<Named<WatchedKind>>,
    /// `true` for those that were begun and not ended, `false` for the others.
    in_progress: Option<bool>,
}

pub(super) fn routes() -> Vec<Route> {
    const LIST: &str = "Lists the films and episodes that the caller has watched, the latest first.";
    const GET: &str = "Returns how far the caller has watched it.";
    const SET: &str = "Sets how far the caller has watched it. A player repeats it while it plays.";
    const FORGET: &str = "Removes the progress of the caller.";
    const MOVIE: &str = "/api/vod/movies/{id}/progress/";
    const EPISODE: &str = "/api/vod/episodes/{id}/progress/";
    let known = |route: Route| route.refuses(StatusCode::NOT_FOUND, "It does not exist.");
    vec![
        Route::get("/api/vod/progress/", STREAMER, LIST, list),
        known(Route::get(MOVIE, STREAMER, GET, movie)),
        known(Route::put(MOVIE, STREAMER, SET, set_movie)),
        known(Route::delete(MOVIE, STREAMER, FORGET, forget_movie)),
        known(Route::get(EPISODE, STREAMER, GET, episode)),
        known(Route::put(EPISODE, STREAMER, SET, set_episode)),
        known(Route::delete(EPISODE, STREAMER, FORGET, forget_episode)),
    ]
}

/// A film, or an episode with its series.
enum Watched {
    Movie(Box<Title>),
    Episode(Box<Title>, Box<Episode>),
}

impl Watched {
    /// Returns its id, and those of titles that were merged into it.
    fn ids(&self) -> Vec<WatchedId> {
        match self {
            Self::Movie(film) => {
                let merged = film.aliases.iter().map(|it| it.id);
                std::iter::once(film.id).chain(merged).map(WatchedId::Movie).collect()
            }
            Self::Episode(_, episode) => {
                let merged = episode.aliases.iter().map(|it| it.id);
                std::iter::once(episode.id).chain(merged).map(WatchedId::Episode).collect()
            }
        }
    }

    /// Returns the length that accounts state, in seconds.
    fn duration_secs(&self) -> Option<u32> {
        match self {
            Self::Movie(film) => film.duration_secs(),
            Self::Episode(_, episode) => episode.first(|it| it.duration_secs),
        }
    }

    fn view(&self, item: Option<&WatchedItem>) -> ProgressView {
        let (kind, id, uuid, name) = match self {
            Self::Movie(film) => (WatchedKind::Movie, film.id.number(), film.uuid, film.name().to_owned()),
            Self::Episode(_, it) => (WatchedKind::Episode, it.id.0, it.uuid, it.name()),
        };
        let episode = match self {
            Self::Movie(_) => None,
            Self::Episode(series, episode) => Some((series, episode)),
        };
        ProgressView {
            content_type: Named(kind),
            id,
            uuid,
            name,
            series_id: episode.map(|it| it.0.id.number()),
            series_name: episode.map(|it| it.0.name().to_owned()),
            season_number: episode.map(|it| it.1.season),
            episode_number: episode.map(|it| it.1.number),
            position_secs: item.map_or(0, |it| it.position_secs),
            duration_secs: item.and_then(|it| it.duration_secs).or_else(|| self.duration_secs()),
            watched: item.is_some_and(|it| it.is_watched),
            play_count: item.map_or(0, |it| it.n_watched),
            updated_at: item.map(|it| Time(it.at)),
        }
    }
}

async fn list(
    call: Call,
    (filters, paging): (ProgressFilters, Pages),
) -> Result<Page<ProgressView>, Refusal> {
    let (progress, models, seen) = (own_progress(&call)?, call.rest().models.clone(), call.seen_titles());
    let rows = reading(move || {
        let mut rows = Vec::new();
        for item in progress.items.iter().rev().filter(|it| filters.select(it)) {
            rows.extend(read(&models, &seen, item.id)?.map(|it| it.view(Some(item))));
        }
        Ok(rows)
    });
    paging.page_from(&call, rows.await?)
}

impl ProgressFilters {
    fn select(&self, item: &WatchedItem) -> bool {
        let kind = match item.id {
            WatchedId::Movie(_) => WatchedKind::Movie,
            WatchedId::Episode(_) => WatchedKind::Episode,
        };
        self.content_type.as_ref().is_none_or(|it| it.0 == kind)
            && self.in_progress.is_none_or(|it| it == item.is_in_progress())
    }
}

fn own_progress(call: &Call) -> Result<WatchProgress, Refusal> {
    let owner = call.user()?.id;
    let records = call.rest().models.title_favorites.load();
    Ok(records.get(owner.0).map(|it| it.progress.clone()).unwrap_or_default())
}

/// Reads what is watched. `None` if it is gone, or if the user may no longer see it.
fn read(models: &Models, seen: &SeenTitles, id: WatchedId) -> Result<Option<Watched>, storage::Error> {
    Ok(match id {
        WatchedId::Movie(id) => {
            models.vod.get(id)?.filter(|it| seen.lists(it)).map(|it| Watched::Movie(Box::new(it)))
        }
        WatchedId::Episode(EpisodeId(id)) => {
            let Some(episode) = models.vod.episode(EpisodeId(id))? else { return Ok(None) };
            let series = models.vod.get(episode.series)?.filter(|it| seen.lists(it));
            series.map(|it| Watched::Episode(Box::new(it), Box::new(episode)))
        }
    })
}

async fn find_movie(call: &Call) -> Result<Watched, Refusal> {
    Ok(Watched::Movie(Box::new(find(call, TitleKind::Movie).await?)))
}

async fn find_one_episode(call: &Call) -> Result<Watched, Refusal> {
    let (series, episode) = find_episode(call, call.id()?).await?;
    Ok(Watched::Episode(Box::new(series), Box::new(episode)))
}

async fn movie(call: Call) -> Result<ProgressView, Refusal> {
    let progress = own_progress(&call)?;
    Ok(show(&progress, &find_movie(&call).await?))
}

async fn episode(call: Call) -> Result<ProgressView, Refusal> {
    let progress = own_progress(&call)?;
    Ok(show(&progress, &find_one_episode(&call).await?))
}

fn show(progress: &WatchProgress, watched: &Watched) -> ProgressView {
    watched.view(progress.find(&watched.ids()))
}

async fn set_movie(call: Call, edit: ProgressEdit) -> Result<ProgressView, Refusal> {
    set(&call, find_movie(&call).await?, edit).await
}

async fn set_episode(call: Call, edit: ProgressEdit) -> Result<ProgressView, Refusal> {
    set(&call, find_one_episode(&call).await?, edit).await
}

async fn set(call: &Call, watched: Watched, edit: ProgressEdit) -> Result<ProgressView, Refusal> {
    if edit.position_secs.is_none() && edit.watched.is_none() {
        return Err(Refusal::field("position_secs", "Send position_secs or watched."));
    }
    let report = ProgressReport {
        position_secs: edit.position_secs,
        duration_secs: edit.duration_secs.filter(|it| *it > 0).or_else(|| watched.duration_secs()),
        is_watched: edit.watched,
    };
    let owner = call.user()?.id;
    call.write(move |write| {
        let stored = write.get::<TitleFavorites>(owner.0)?;
        let mut record = stored.unwrap_or_else(|| TitleFavorites::new(owner));
        record.progress.report(&watched.ids(), report, now_ms());
        write.put(&record)?;
        Ok(show(&record.progress, &watched))
    })
    .await
}

async fn forget_movie(call: Call) -> Result<NoContent, Refusal> {
    forget(&call, &find_movie(&call).await?).await
}

async fn forget_episode(call: Call) -> Result<NoContent, Refusal> {
    forget(&call, &find_one_episode(&call).await?).await
}

/// Forgets it. A repeated request has the same result.
async fn forget(call: &Call, watched: &Watched) -> Result<NoContent, Refusal> {
    let (owner, ids) = (call.user()?.id, watched.ids());
    call.write(move |write| {
        if let Some(mut record) = write.get::<TitleFavorites>(owner.0)?
            && record.progress.forget(&ids)
        {
            write.put(&record)?;
        }
        Ok(NoContent)
    })
    .await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Rest;
    use crate::title_testing::put_titles;

    const FILM: &str = "/api/vod/movies/1/progress/";
    const EPISODE: &str = "/api/vod/episodes/2/progress/";

    #[tokio::test]
    async fn each_user_continues_where_the_user_stopped() {
        let rest = Rest::start().await;
        put_titles(&rest).await;
        let none = rest.streamer("GET", FILM, Value::Null).await.body;
        assert_eq!((&none["position_secs"], &none["updated_at"]), (&json!(0), &Value::Null));
        assert_eq!(none["duration_secs"], json!(9180));
        let at = json!({ "position_secs": 1200 });
        let set = rest.streamer("PUT", FILM, at).await;
        assert_eq!((set.status, &set.body["position_secs"]), (200, &json!(1200)), "{}", set.text);
        let set =
            rest.streamer("PUT", EPISODE, json!({ "position_secs": 2300, "duration_secs": 2400 })).await;
        assert_eq!(
            (&set.body["watched"], &set.body["play_count"]),
            (&json!(true), &json!(1)),
            "{}",
            set.text
        );
        assert_eq!((&set.body["series_name"], &set.body["episode_number"]), (&json!("Andor"), &json!(2)));
        let names = async |query: &str| {
            let answer = rest.streamer("GET", &format!("/api/vod/progress/{query}"), Value::Null).await;
            let rows = answer.body["results"].as_array().unwrap().clone();
            rows.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("").await, ["That Would Be Me", "Metropolis"]);
        assert_eq!(names("?in_progress=true").await, ["Metropolis"]);
        assert_eq!(names("?content_type=episode").await, ["That Would Be Me"]);
        assert_eq!(rest.admin("GET", "/api/vod/progress/", Value::Null).await.body["count"], json!(0));
        let marked = rest.streamer("PUT", EPISODE, json!({ "watched": false })).await;
        assert_eq!((&marked.body["watched"], &marked.body["play_count"]), (&json!(false), &json!(0)));
        for _ in 0..2 {
            assert_eq!(rest.streamer("DELETE", FILM, Value::Null).await.status, 204);
        }
        assert_eq!(names("").await, ["That Would Be Me"]);
    }

    #[tokio::test]
    async fn invalid_progress_is_refused_and_unseen_titles_are_unknown() {
        let rest = Rest::start().await;
        put_titles(&rest).await;
        for body in [json!({}), json!({ "duration_secs": 5 }), json!({ "position_secs": -1 })] {
            assert_eq!(rest.streamer("PUT", FILM, body.clone()).await.status, 400, "{body}");
        }
        // Film 3 is hidden.
        for path in
            ["/api/vod/movies/3/progress/", "/api/vod/movies/99/progress/", "/api/vod/episodes/99/progress/"]
        {
            let answer = rest.streamer("PUT", path, json!({ "position_secs": 5 })).await;
            assert_eq!(answer.status, 404, "{path}");
        }
        let hidden = "/api/vod/movies/3/progress/";
        assert_eq!(rest.admin("PUT", hidden, json!({ "position_secs": 5 })).await.status, 200);
        assert_eq!(rest.admin("GET", "/api/vod/progress/", Value::Null).await.body["count"], json!(1));
    }
}
