//! `/api/vod/favorites/`: the favourite films and series of the caller.

use actors::now_ms;
use domain::vod::{TitleFavorites, TitleId, TitleKind};
use http::StatusCode;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::{NoContent, Route};
use server::reply::Refusal;
use services::titles::reading;

use super::titles::{find, with_counts};
use super::view::TitleView;
use crate::context::RestCall;
use crate::list::{Page, Paging};

/// 24 titles per page by default, at most 100.
type Pages = Paging<24, 100>;

pub(super) fn routes() -> Vec<Route> {
    const ADD: &str = "Adds a title to the favourites of the caller.";
    const REMOVE: &str = "Removes a title from the favourites of the caller.";
    let known = |route: Route| {
        route
            .refuses(StatusCode::NOT_FOUND, "The title does not exist.")
            .refuses(StatusCode::BAD_REQUEST, "The favourites are full.")
    };
    vec![
        Route::get(
            "/api/vod/favorites/",
            STREAMER,
            "Lists the favourite films and series of the caller, the latest first.",
            list,
        ),
        known(Route::put("/api/vod/movies/{id}/favorite/", STREAMER, ADD, add_movie)),
        known(Route::put("/api/vod/series/{id}/favorite/", STREAMER, ADD, add_series)),
        known(Route::delete("/api/vod/movies/{id}/favorite/", STREAMER, REMOVE, remove_movie)),
        known(Route::delete("/api/vod/series/{id}/favorite/", STREAMER, REMOVE, remove_series)),
    ]
}

async fn list(call: Call, paging: Pages) -> Result<Page<TitleView>, Refusal> {
    let owner = call.user()?.id;
    let favorites = call.rest().models.title_favorites.load();
    let ids: Vec<TitleId> = favorites.get(owner.0).map(|it| it.titles.clone()).unwrap_or_default();
    let (titles, seen) = (call.rest().models.vod.clone(), call.seen_titles());
    let found = reading(move || {
        let mut found: Vec<domain::vod::Title> = Vec::new();
        for id in ids.into_iter().rev() {
            // Two favourites may have been merged.
            let title = titles.get(id)?.filter(|it| seen.lists(it));
            found.extend(title.filter(|it| found.iter().all(|of| of.id != it.id)));
        }
        Ok(found)
    });
    let found = found.await?;
    let lookup = with_counts(&call, &found).await?;
    paging.render_with(&call, &found, |it| lookup.title(it))
}

async fn add_movie(call: Call) -> Result<NoContent, Refusal> {
    set(&call, TitleKind::Movie, true).await
}

async fn add_series(call: Call) -> Result<NoContent, Refusal> {
    set(&call, TitleKind::Series, true).await
}

async fn remove_movie(call: Call) -> Result<NoContent, Refusal> {
    set(&call, TitleKind::Movie, false).await
}

async fn remove_series(call: Call) -> Result<NoContent, Refusal> {
    set(&call, TitleKind::Series, false).await
}

/// Adds a title or removes it. A repeated request has the same result.
async fn set(call: &Call, kind: TitleKind, is_favorite: bool) -> Result<NoContent, Refusal> {
    let (title, owner) = (find(call, kind).await?, call.user()?.id);
    call.write(move |write| {
        let stored = write.get::<TitleFavorites>(owner.0)?;
        let mut favorites = stored.unwrap_or_else(|| TitleFavorites::new(owner));
        // Those of titles that were merged into it, too.
        let ids = std::iter::once(title.id).chain(title.aliases.iter().map(|it| it.id));
        let is_changed = match is_favorite {
            true if favorites.is_full() && !favorites.titles.contains(&title.id) => {
                return Err(Refusal::bad_request("The favourites are full. Remove some first."));
            }
            true => favorites.add(title.id),
            false => ids.filter(|id| favorites.remove(*id)).count() > 0,
        };
        if is_changed {
            favorites.updated_at = now_ms();
            write.put(&favorites)?;
        }
        Ok(NoContent)
    })
    .await
}
