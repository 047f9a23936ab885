//! `/api/m3u/accounts/{id}/guides/preview/`: what the guides that a playlist names would give.

use std::time::Duration;

use actors::{GuideMatches, GuidePreview, guide_matches};
use domain::account::Account;
use domain::egress::{Reach, reach_of_account};
use domain::source_url::SourceUrl;
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use tokio::time::{Instant, timeout_at};

use crate::context::RestCall;

/// Maximum number of guides of one request: each is fetched.
const URLS_MAX: usize = 10;
/// Maximum time of one request. Guides that were not read by then are not read.
const REQUEST_MAX: Duration = Duration::from_secs(5 * 60);

const PREVIEW: &str = "/api/m3u/accounts/{id}/guides/preview/";

/// Guides that the playlist of an account names.
#[derive(Clone, Debug, Body)]
pub(crate) struct GuideChoice {
    /// Addresses from `epg_urls` of the account.
    #[field(items_max = URLS_MAX, example = "[\"http://guide.example/guide.xml.gz\"]")]
    urls: Option<Vec<String>>,
}

/// The results of reading guides.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct GuideOffersView {
    /// One row for each address, in the order of the request.
    results: Vec<GuideOfferView>,
}

/// The channels that one guide would serve.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct GuideOfferView {
    /// Address of the guide.
    url: String,
    /// Reason why it cannot be read; `null` if it can.
    error: Option<String>,
    /// Number of channels of the guide.
    #[field(example = "300")]
    channels_count: usize,
    /// Number of channels with the id of one of them.
    #[field(example = "40")]
    same_id_count: usize,
    /// Number of channels that matching would link with one of them, those with the same id included.
    #[field(example = "55")]
    matches_count: usize,
    /// Number of those that have no guide now.
    #[field(example = "12")]
    new_matches_count: usize,
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Counts the channels that guides would match which the playlist of an account names. Nothing is added.";
    vec![
        Route::post(PREVIEW, ADMIN, summary, preview)
            .refuses(StatusCode::BAD_REQUEST, "The playlist does not name one of the guides."),
    ]
}

async fn preview(call: Call, choice: GuideChoice) -> Result<GuideOffersView, Refusal> {
    let id = call.id()?;
    let account = call.rest().models.accounts.load().get(id).cloned();
    let account = account.ok_or_else(Refusal::unknown::<Account>)?;
    let urls = choice.urls.ok_or_else(|| FieldErrors::required("urls"))?;
    let urls: Vec<SourceUrl> = urls.into_iter().map(SourceUrl::new).collect();
    check_named(&account, &urls)?;
    // The provider wrote these addresses.
    let reach = reach_of_account(&account, call.rest().models.refreshes.load().get(id).map(|it| &**it));
    let deadline = Instant::now() + REQUEST_MAX;
    let mut results = Vec::with_capacity(urls.len());
    for url in urls {
        results.push(offer(&call, url, reach, deadline).await?);
    }
    Ok(GuideOffersView { results })
}

fn check_named(account: &Account, urls: &[SourceUrl]) -> Result<(), Refusal> {
    match urls.iter().position(|it| !account.guide_urls.contains(it)) {
        Some(at) => {
            Err(Refusal::field("urls", format!("Item {}: The playlist does not name this guide.", at + 1)))
        }
        None => Ok(()),
    }
}

async fn offer(
    call: &Call,
    url: SourceUrl,
    reach: Reach,
    deadline: Instant,
) -> Result<GuideOfferView, Refusal> {
    let read = timeout_at(deadline, call.rest().guide.guide_refreshes.preview(url.clone(), reach)).await;
    let (found, error) = match read {
        Ok(Ok(found)) => (found, None),
        Ok(Err(error)) => (GuidePreview::default(), Some(error.sentence())),
        Err(_) => {
            let message = "The request took too long, and this guide was not read. Send it again.";
            (GuidePreview::default(), Some(message.to_owned()))
        }
    };
    let (models, n_channels) = (call.rest().models.clone(), found.channels.len());
    let matches = run_blocking("match channels", move || guide_matches(&models, &found)).await?;
    let GuideMatches { n_same_id, n_matches, n_new } = matches;
    Ok(GuideOfferView {
        url: url.expose().to_owned(),
        error,
        channels_count: n_channels,
        same_id_count: n_same_id,
        matches_count: n_matches,
        new_matches_count: n_new,
    })
}

#[cfg(test)]
mod tests {
    use domain::account::{AccountProfile, PlaylistLocation};
    use domain::channel::Channel;
    use domain::guide::source::GuideSourceKind;
    use domain::ids::{AccountId, ChannelId, ProfileId};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::guide_testing::{guide_source, put_guide};
    use crate::testing::Rest;

    #[tokio::test]
    async fn a_guide_is_shown_with_the_channels_that_it_would_serve() {
        let rest = Rest::start().await;
        let channel = |id: u32, name: &str, tvg_id: Option<&str>| {
            let tvg_id = tvg_id.map(str::to_owned);
            Channel { tvg_id, ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), name, 0) }
        };
        rest.put([
            channel(1, "x", Some("news.uk")),
            channel(2, "UK: Film Four", None),
            channel(3, "y", Some("SPORT.uk")),
            channel(4, "Nothing", None),
        ])
        .await;
        put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "news.uk", vec![])]).await;
        let mut guide = GuidePreview::default();
        let named = |key: &str, name: &str| (key.to_owned(), vec![name.to_owned()]);
        guide.channels =
            vec![named("news.uk", "News"), named("film4.uk", "Film 4"), named("sport.uk", "Sport")];
        let found = guide_matches(&rest.models, &guide);
        assert_eq!(found, GuideMatches { n_same_id: 2, n_matches: 3, n_new: 2 });
        assert_eq!(guide_matches(&rest.models, &GuidePreview::default()), GuideMatches::default());
    }

    #[tokio::test]
    async fn only_guides_that_the_playlist_names_are_read_and_only_for_admins() {
        let rest = Rest::start().await;
        let (url, other) = ("http://guide.example/a.xml?key=secret", "http://guide.example/b.xml");
        let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
        let mut account = Account::new(AccountId(2), "list", PlaylistLocation::None, profile, 0);
        account.guide_urls = vec![SourceUrl::new(url)];
        rest.put([account]).await;
        let path = PREVIEW.replace("{id}", "2");
        let shown = rest.admin("POST", &path, json!({ "urls": [url] })).await;
        assert_eq!((shown.status, &shown.body["results"][0]["url"]), (200, &json!(url)), "{}", shown.text);
        assert!(shown.body["results"][0]["error"].is_string(), "this gateway reads no guides");
        for body in [json!({}), json!({ "urls": [other] }), json!({ "urls": vec![url; URLS_MAX + 1] })] {
            let refused = rest.admin("POST", &path, body.clone()).await;
            assert_eq!((refused.status, refused.body["urls"].is_array()), (400, true), "{body}");
        }
        assert_eq!(rest.standard("POST", &path, json!({ "urls": [url] })).await.status, 403);
        let unknown = rest.admin("POST", &PREVIEW.replace("{id}", "9"), json!({ "urls": [url] })).await;
        assert_eq!(
            (unknown.status, unknown.body),
            (404, json!({ "detail": "No M3UAccount matches the given query." }))
        );
        assert_eq!(
            rest.admin("GET", "/api/epg/sources/", Value::Null).await.body,
            json!([]),
            "nothing is added"
        );
    }
}
