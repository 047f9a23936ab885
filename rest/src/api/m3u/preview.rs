//! `/api/m3u/accounts/{id}/refresh-preview/`: what a refresh would do, for admins who choose the keys by which streams are
//! recognised.

use actors::{ImportError, PreviewError, PreviewedChange, PreviewedStream, RefreshPreview};
use domain::account::Account;
use domain::ids::StreamId;
use domain::portal::shown_address;
use domain::stream_identity::IdentityKey;
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::edit::identity_keys_of;
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::text_code::TextCodeView;

/// Options of a preview.
#[derive(Clone, Debug, Body)]
pub(crate) struct RefreshPreviewOptions {
    /// Keys in the order in which they are compared; those of the account by default.
    #[field(items_max = 6, example = "[\"guide_id\", \"address\"]")]
    identity_keys: Option<Vec<Named<IdentityKey>>>,
}

/// The effects of a refresh.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RefreshPreviewView {
    /// Keys in the order in which they were compared.
    identity_keys: Vec<Named<IdentityKey>>,
    /// Number of entries of the list.
    #[field(example = "687")]
    entries: u64,
    /// Number of streams that would not change.
    #[field(example = "0")]
    streams_unchanged: u64,
    /// Number of streams that would change.
    #[field(example = "687")]
    streams_updated: u64,
    /// Number of streams that would get another address. They are also in `streams_updated`.
    #[field(example = "687")]
    streams_moved: u64,
    /// Number of new streams.
    #[field(example = "0")]
    streams_created: u64,
    /// Number of streams that the list no longer contains.
    #[field(example = "0")]
    streams_stale: u64,
    /// Number of streams that would be removed.
    #[field(example = "0")]
    streams_deleted: u64,
    /// Number of entries that filters and disabled groups leave out.
    #[field(example = "0")]
    entries_left_out: u64,
    /// Number of streams that several entries could be, so that none is.
    #[field(example = "0")]
    streams_ambiguous: u64,
    /// Number of streams that each key recognises.
    recognised_by: Vec<RecognisedView>,
    /// Why the refresh would wait for a confirmation; `null` if it would not.
    needs_confirmation: Option<String>,
    /// The code of `needs_confirmation`, if it has one.
    needs_confirmation_code: Option<TextCodeView>,
    /// At most 200 new, 200 changed and 200 missing streams.
    changes: Vec<PreviewedChangeView>,
}

/// The number of streams that a key recognises.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RecognisedView {
    /// The key.
    #[field(example = "guide_id")]
    key: Named<IdentityKey>,
    /// Number of streams.
    #[field(example = "687")]
    streams: u64,
}

/// A stream that would change.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PreviewedChangeView {
    /// The change of the stream.
    #[field(example = "updated")]
    change: Named<ChangeKind>,
    /// Id of the stream; `null` for a new one.
    #[field(example = "7")]
    stream_id: Option<StreamId>,
    /// Key that recognises it; `null` for a new one and for one that is missing.
    #[field(example = "guide_id")]
    recognised_by: Option<Named<IdentityKey>>,
    /// Present name of the provider.
    #[field(example = "News")]
    name_before: Option<String>,
    /// Name in the list.
    #[field(example = "News")]
    name: Option<String>,
    /// Host of the present URL.
    #[field(example = "one.example")]
    host_before: Option<String>,
    /// Host of the URL in the list.
    #[field(example = "two.example")]
    host: Option<String>,
    /// Present URL.
    url_before: Option<String>,
    /// URL in the list.
    url: Option<String>,
}

choice!(
    /// The change of a stream.
    enum ChangeKind {
        Created = "created",
        Updated = "updated",
        Missing = "missing",
    }
);

const PREVIEW: &str = "/api/m3u/accounts/{id}/refresh-preview/";

pub(super) fn routes() -> Vec<Route> {
    const SUMMARY: &str = "Returns what a refresh of an account would do, without changing a stream.";
    vec![
        Route::post(PREVIEW, ADMIN, SUMMARY, preview)
            .refuses(StatusCode::BAD_REQUEST, "The account has no list, or the list cannot be read.")
            .refuses(StatusCode::SERVICE_UNAVAILABLE, "Another preview is being made."),
    ]
}

async fn preview(call: Call, body: RefreshPreviewOptions) -> Result<RefreshPreviewView, Refusal> {
    let account = call.rest().models.accounts.load().get(call.id()?).cloned();
    let account = account.ok_or_else(Refusal::unknown::<Account>)?;
    let mut errors = FieldErrors::default();
    let keys = body.identity_keys.map(|it| identity_keys_of(it, &mut errors));
    let keys = errors.or(keys)?;
    let is_admin = call.is_admin();
    match call.rest().imports.previews.preview(account.id, keys).await {
        Ok(preview) => Ok(view(preview, is_admin)),
        Err(error) => Err(refusal(&error)),
    }
}

fn refusal(error: &PreviewError) -> Refusal {
    match error {
        PreviewError::Busy => {
            Refusal::unavailable("Another preview is being made; try again when it is done.").retry_soon()
        }
        PreviewError::Import(ImportError::NoSuchAccount) => Refusal::unknown::<Account>(),
        error => Refusal::bad_request(crate::api::text::sentence(error)),
    }
}

fn view(preview: RefreshPreview, is_admin: bool) -> RefreshPreviewView {
    let counts = preview.counts;
    RefreshPreviewView {
        identity_keys: preview.recognised.iter().map(|it| Named(it.0)).collect(),
        entries: preview.n_entries,
        streams_unchanged: counts.n_same,
        streams_updated: counts.n_changed,
        streams_moved: counts.n_moved,
        streams_created: counts.n_new,
        streams_stale: preview.n_stale,
        streams_deleted: preview.n_removed,
        entries_left_out: preview.n_left_out,
        streams_ambiguous: preview.n_contested,
        recognised_by: preview
            .recognised
            .into_iter()
            .map(|(key, streams)| RecognisedView { key: Named(key), streams })
            .collect(),
        needs_confirmation_code: preview.refusal.as_deref().and_then(TextCodeView::find),
        needs_confirmation: preview.refusal,
        changes: preview.changes.into_iter().map(|it| change(it, is_admin)).collect(),
    }
}

fn change(change: PreviewedChange, is_admin: bool) -> PreviewedChangeView {
    let PreviewedChange { stream, key, before, after } = change;
    let kind = match (stream, &after) {
        (None, _) => ChangeKind::Created,
        (Some(_), Some(_)) => ChangeKind::Updated,
        (Some(_), None) => ChangeKind::Missing,
    };
    let name = |it: &Option<PreviewedStream>| it.as_ref().map(|it| it.name.clone());
    let host = |it: &Option<PreviewedStream>| Some(it.as_ref()?.url.host()?.to_owned());
    let url =
        |it: &Option<PreviewedStream>| it.as_ref().filter(|_| is_admin).map(|it| shown_address(&it.url));
    PreviewedChangeView {
        change: Named(kind),
        stream_id: stream,
        recognised_by: key.map(Named),
        name_before: name(&before),
        name: name(&after),
        host_before: host(&before),
        host: host(&after),
        url_before: url(&before),
        url: url(&after),
    }
}

#[cfg(test)]
mod tests {
    use domain::account::{AccountProfile, PlaylistLocation};
    use domain::ids::{AccountId, ProfileId};
    use domain::source_url::SourceUrl;
    use domain::stream::{Stream, StreamProperties};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Rest, SECRET};

    const ACCOUNT: u32 = 7;

    fn stream(id: u32, name: &str, guide_id: Option<&str>, url: &str) -> Stream {
        let mut provider = StreamProperties::new(name, SourceUrl::new(url));
        provider.tvg_id = guide_id.map(str::to_owned);
        Stream::new(StreamId(id), AccountId(ACCOUNT), provider, 0)
    }

    #[tokio::test]
    async fn a_preview_shows_what_a_refresh_would_do_and_changes_nothing() {
        let rest = Rest::start().await;
        let file = rest.data_dir().join("list.m3u");
        let list = format!(
            "#EXTM3U\n#EXTINF:-1 tvg-id=\"news\",News\nhttp://two.example/a/{SECRET}\n\
             #EXTINF:-1,Sport\nhttp://two.example/b/{SECRET}\n#EXTINF:-1,New\nhttp://two.example/c\n"
        );
        std::fs::write(&file, list).unwrap();
        let profile = AccountProfile::default_of(ProfileId(ACCOUNT), "Default", 1);
        let list = PlaylistLocation::File(file.to_str().unwrap().to_owned());
        rest.put([Account::new(AccountId(ACCOUNT), "a", list, profile, 0)]).await;
        let streams = [
            stream(701, "News", Some("news"), "http://one.example/1"),
            stream(702, "Sport", None, "http://one.example/2"),
            stream(703, "Film", None, "http://one.example/3"),
        ];
        rest.put(streams.clone()).await;
        let path = format!("/api/m3u/accounts/{ACCOUNT}/refresh-preview/");
        let shown = rest.admin("POST", &path, json!({})).await;
        assert_eq!(shown.status, 200, "{}", shown.text);
        let numbers = ["entries", "streams_updated", "streams_moved", "streams_created", "streams_stale"];
        assert_eq!(numbers.map(|it| shown.body[it].as_u64().unwrap()), [3, 2, 2, 1, 1]);
        let message = shown.body["needs_confirmation"].as_str().unwrap();
        assert!(
            message.starts_with("Only 1 of the 3 known streams"),
            "a name alone proves nothing: {message}"
        );
        let changes = shown.body["changes"].as_array().unwrap();
        assert_eq!(
            changes[0],
            json!({
                "change": "updated", "stream_id": 701, "recognised_by": "guide_id", "name_before": "News",
                "name": "News", "host_before": "one.example", "host": "two.example",
                "url_before": "http://one.example/1", "url": format!("http://two.example/a/{SECRET}"),
            })
        );
        let values = |field: &str| changes.iter().map(|it| it[field].clone()).collect::<Vec<_>>();
        assert_eq!(values("recognised_by"), [json!("guide_id"), json!("name"), Value::Null, Value::Null]);
        assert_eq!(values("change"), ["updated", "updated", "created", "missing"]);

        // With another order, and without the name.
        let keys = json!({ "identity_keys": ["guide_id", "address"] });
        let shown = rest.admin("POST", &path, keys).await.body;
        assert_eq!(shown["identity_keys"], json!(["guide_id", "address"]));
        assert_eq!(
            shown["recognised_by"],
            json!([{ "key": "guide_id", "streams": 1 }, { "key": "address", "streams": 0 }])
        );
        let stored = rest.models.store.clone();
        let stored = media::spawn_blocking(move || {
            [701, 702, 703].map(|id| stored.collection::<Stream>().get(id).unwrap().unwrap())
        });
        assert_eq!(stored.await.unwrap(), streams);
        assert!(rest.models.refreshes.load().get(ACCOUNT).is_none());
        assert_eq!(rest.standard("POST", &path, json!({})).await.status, 403);
        for keys in [json!(["name"]), json!(["address", "address"]), json!(["colour"])] {
            let refused = rest.admin("POST", &path, json!({ "identity_keys": keys })).await;
            assert_eq!(refused.status, 400, "{}", refused.text);
            let one = format!("/api/m3u/accounts/{ACCOUNT}/");
            let refused = rest.admin("PATCH", &one, json!({ "identity_keys": keys })).await;
            assert_eq!(refused.status, 400, "{}", refused.text);
        }
    }

    #[tokio::test]
    async fn films_that_become_titles_are_not_left_out() {
        let rest = Rest::start().await;
        let file = rest.data_dir().join("list.m3u");
        let list = "#EXTM3U\n#EXTINF:-1,News\nhttp://h/1\n#EXTINF:-1,Film\nhttp://h/movie/u/p/5.mkv\n";
        std::fs::write(&file, list).unwrap();
        let profile = AccountProfile::default_of(ProfileId(ACCOUNT), "Default", 1);
        let list = PlaylistLocation::File(file.to_str().unwrap().to_owned());
        let account = Account::new(AccountId(ACCOUNT), "a", list, profile, 0);
        rest.put([Account { enable_vod: true, ..account }]).await;
        let path = format!("/api/m3u/accounts/{ACCOUNT}/refresh-preview/");
        let shown = rest.admin("POST", &path, json!({})).await;
        let numbers = ["entries", "streams_created", "entries_left_out"];
        assert_eq!(numbers.map(|it| shown.body[it].as_u64()), [Some(2), Some(1), Some(0)], "{}", shown.text);
    }

    #[tokio::test]
    async fn an_account_keeps_its_order_of_keys_and_an_empty_one_restores_the_default() {
        let rest = Rest::start().await;
        let made = rest.admin("POST", "/api/m3u/accounts/", json!({ "name": "keys" })).await.body;
        let one = format!("/api/m3u/accounts/{}/", made["id"]);
        let default = json!(["panel_id", "address", "bare_address", "guide_id", "name_and_group", "name"]);
        assert_eq!(made["identity_keys"], default);
        let keys = json!(["guide_id", "address"]);
        let changed = rest.admin("PATCH", &one, json!({ "identity_keys": keys })).await;
        assert_eq!(changed.body["identity_keys"], keys, "{}", changed.text);
        let changed = rest.admin("PATCH", &one, json!({ "identity_keys": [] })).await.body;
        assert_eq!(changed["identity_keys"], default);
        assert!(rest.models.accounts.load().iter().all(|it| it.identity_keys.is_empty()));
    }
}
