//! The pictures of films, series and episodes, as copies of the gateway like those of logos; and `/api/vod/vodlogos/`.
//!
//! Players and media servers fetch pictures without credentials. Every title has one at once: a placeholder, where the
//! gateway has no copy or none yet.

use domain::egress::{AllowedNetworks, Distance, Reach};
use domain::ids::{AccountId, EpisodeId};
use domain::vod::{Title, TitleId, TitleKind};
use http::StatusCode;
use resource_derive::Query;
use route_frame::access::{Access, STREAMER};
use route_frame::call::Call;
use route_frame::route::Route;
use serde_json::Value;
use server::reply::Refusal;
use services::logo_cache::ImageWay;
use services::titles::{Properties, reading};

use super::filters::{TitleFilters, TitlesFound};
use super::titles::find_id;
use super::view::{VodLogoView, VodLookup, unknown};
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::images::{Image, PictureName};
use crate::list::{Page, Paging};

/// 100 pictures per page by default, at most 1,000.
type Pages = Paging<100, 1000>;

choice!(
    enum PictureKind {
        Main = "movie_image",
        Backdrop = "backdrop",
    }
);

/// Selects a picture of a title.
#[derive(Debug, Query)]
struct WhichPicture {
    /// The main picture by default.
    kind: Option<Named<PictureKind>>,
    /// Position among the background pictures, from 0.
    #[field(at_most = 100)]
    index: Option<usize>,
}

impl WhichPicture {
    /// Returns the position of the background picture; `None` for the main picture.
    fn backdrop(&self) -> Option<usize> {
        match self.kind.as_ref().map(|it| it.0) {
            None | Some(PictureKind::Main) => None,
            Some(PictureKind::Backdrop) => Some(self.index.unwrap_or_default()),
        }
    }
}

pub(super) fn routes() -> Vec<Route> {
    const OF_TITLE: &str = "Returns a picture of a title, or a placeholder while there is none.";
    const OF_EPISODE: &str = "Returns the picture of an episode, or a placeholder while there is none.";
    const CACHED: &str = "The client has the current image.";
    const UNKNOWN: &str = "The title does not exist.";
    let open = |route: Route| {
        route
            .refuses(StatusCode::NOT_MODIFIED, CACHED)
            .refuses(StatusCode::NOT_FOUND, UNKNOWN)
            .for_any_origin()
    };
    vec![
        open(Route::get("/api/vod/movies/{id}/image/", Access::Anyone, OF_TITLE, picture_of_movie)),
        open(Route::get("/api/vod/series/{id}/image/", Access::Anyone, OF_TITLE, picture_of_series)),
        open(Route::get("/api/vod/episodes/{id}/image/", Access::Anyone, OF_EPISODE, picture_of_episode)),
        open(Route::get("/api/vod/movies/{id}/image/{version}/", Access::Anyone, OF_TITLE, movie_version)),
        open(Route::get("/api/vod/series/{id}/image/{version}/", Access::Anyone, OF_TITLE, series_version)),
        open(Route::get(
            "/api/vod/episodes/{id}/image/{version}/",
            Access::Anyone,
            OF_EPISODE,
            episode_version,
        )),
        open(Route::get("/api/vod/vodlogos/{id}/cache/", Access::Anyone, OF_TITLE, picture_of_logo)),
        Route::get(
            "/api/vod/vodlogos/",
            STREAMER,
            "Lists the pictures of titles that the caller may see.",
            logos,
        ),
        Route::get("/api/vod/vodlogos/{id}/", STREAMER, "Returns the picture of a title.", logo),
    ]
}

async fn picture_of_movie(call: Call, which: WhichPicture) -> Result<Image, Refusal> {
    let id = TitleId::movie(call.id()?);
    picture_of_title(&call, id, TitleKind::Movie, which.backdrop(), None).await
}

async fn picture_of_series(call: Call, which: WhichPicture) -> Result<Image, Refusal> {
    let id = TitleId::series(call.id()?);
    picture_of_title(&call, id, TitleKind::Series, which.backdrop(), None).await
}

async fn movie_version(call: Call) -> Result<Image, Refusal> {
    let (id, name) = (TitleId::movie(call.id()?), PictureName::from_call(&call)?);
    picture_of_title(&call, id, TitleKind::Movie, name.backdrop, Some(&name)).await
}

async fn series_version(call: Call) -> Result<Image, Refusal> {
    let (id, name) = (TitleId::series(call.id()?), PictureName::from_call(&call)?);
    picture_of_title(&call, id, TitleKind::Series, name.backdrop, Some(&name)).await
}

async fn picture_of_logo(call: Call) -> Result<Image, Refusal> {
    let id = TitleId::from_key(call.id()?);
    picture_of_title(&call, Some(id), id.kind(), None, None).await
}

/// Returns the main picture of a title, or the background picture at this position.
async fn picture_of_title(
    call: &Call,
    id: Option<TitleId>,
    kind: TitleKind,
    backdrop: Option<usize>,
    name: Option<&PictureName>,
) -> Result<Image, Refusal> {
    let id = id.ok_or_else(|| unknown(kind))?;
    let titles = call.rest().models.vod.clone();
    let picture = reading(move || {
        let Some(title) = titles.get(id)? else { return Ok(None) };
        let url = match backdrop {
            None => title.logo().map(str::to_owned),
            Some(n) => {
                let opened = title.relations.first().map(|it| titles.details(it.id)).transpose()?.flatten();
                let properties = Properties::from_title(&title, opened.as_ref());
                let found = properties.backdrops();
                let lists_only = Properties::from_title(&title, None);
                // Addresses of lists count the pictures of lists, and those of one title all of its pictures.
                found.get(n).or(lists_only.backdrops().get(n)).map(|it| (*it).to_owned())
            }
        };
        Ok(Some(url.map(|it| {
            let named = named_by(&title, &it);
            (it, named)
        })))
    });
    let picture = picture.await?.ok_or_else(|| unknown(kind))?;
    Ok(image(call, picture, name).await)
}

async fn picture_of_episode(call: Call) -> Result<Image, Refusal> {
    show_episode(&call, None).await
}

async fn episode_version(call: Call) -> Result<Image, Refusal> {
    show_episode(&call, Some(&PictureName::from_call(&call)?)).await
}

async fn show_episode(call: &Call, name: Option<&PictureName>) -> Result<Image, Refusal> {
    let (titles, id) = (call.rest().models.vod.clone(), EpisodeId(call.id()?));
    let episode = reading(move || titles.episode(id)).await?;
    let episode = episode.ok_or_else(|| Refusal::not_found("No Episode matches the given query."))?;
    let picture = episode.first(|it| it.logo.clone());
    let is_completed = episode.completion.as_ref().is_some_and(|it| it.logo.is_some());
    let named = match episode.offers.iter().find(|it| it.facts.logo.is_some()) {
        _ if is_completed => NamedBy::Catalogue,
        Some(offer) => NamedBy::Account(offer.account),
        None => NamedBy::Admin,
    };
    Ok(image(call, picture.map(|it| (it, named)), name).await)
}

/// The side that named a picture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NamedBy {
    Admin,
    /// The catalogue that completes titles.
    Catalogue,
    Account(AccountId),
}

/// Returns who named a picture of a title.
fn named_by(title: &Title, url: &str) -> NamedBy {
    let is_completed = title.completion.as_ref().is_some_and(|it| {
        let backdrops = it.properties.get("backdrop_path").and_then(Value::as_array);
        let is_backdrop = backdrops.is_some_and(|all| all.iter().any(|it| it.as_str() == Some(url)));
        is_backdrop || it.facts.as_ref().is_some_and(|it| it.logo.as_deref() == Some(url))
    });
    if is_completed {
        return NamedBy::Catalogue;
    }
    if title.edits.logo.is_some() {
        return NamedBy::Admin;
    }
    let named = title.relations.iter().find(|it| it.first(|it| it.logo.as_ref()).is_some());
    named.map_or(NamedBy::Admin, |it| NamedBy::Account(it.account))
}

/// Returns the copy of a picture. `name` is that of the requested version.
async fn image(call: &Call, picture: Option<(String, NamedBy)>, name: Option<&PictureName>) -> Image {
    let Some((url, named)) = picture else { return Image::placeholder(&call.headers) };
    let bytes = call.rest().pictures.logo_cache.get(&url, way(call, named)).await;
    let is_present = name.is_some_and(|it| it.is_version_of(&url));
    let image = bytes.and_then(|it| Image::new(it, &call.headers)).map(|it| it.kept_long(is_present));
    image.unwrap_or_else(|| Image::placeholder(&call.headers))
}

/// Returns the way to a picture: no nearer than the list or the catalogue that named it.
fn way(call: &Call, named: NamedBy) -> ImageWay {
    let models = &call.rest().models;
    match named {
        NamedBy::Account(account) => ImageWay::from_account(models, account),
        NamedBy::Catalogue if !models.completion_settings().is_mirror() => {
            Reach::named_by(Distance::Public, AllowedNetworks::OfPlaylist).into()
        }
        NamedBy::Catalogue | NamedBy::Admin => Reach::default().into(),
    }
}

async fn logos(call: Call, (filters, paging): (TitleFilters, Pages)) -> Result<Page<VodLogoView>, Refusal> {
    let (offset, limit) = paging.window();
    let wanted = filters.wanted(&call, &TitleKind::ALL).with_picture();
    let TitlesFound { count, titles } = wanted.find(&call, offset, limit).await?;
    let lookup = VodLookup::load(&call);
    paging.envelope(&call, count, titles.iter().filter_map(|it| lookup.logo(it)).collect())
}

async fn logo(call: Call) -> Result<VodLogoView, Refusal> {
    let id = TitleId::from_key(call.id()?);
    let unknown = || Refusal::not_found("No VODLogo matches the given query.");
    let title = find_id(&call, id.kind(), id.number()).await.map_err(|_| unknown())?;
    VodLookup::load(&call).logo(&title).ok_or_else(unknown)
}
