//! `/api/core/names/preview/`: the names that rules would change.

use std::sync::Arc;

use domain::core_settings::NAME_SETTINGS;
use domain::ids::AccountId;
use domain::name_cleaning::{NameCleaner, NameCleaning, NameKind};
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::name_cleaning::{ChangedName, changed_names};
use services::titles::reading;

use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Page, Paging};

/// 50 names per page by default, at most 500.
type Pages = Paging<50, 500>;

choice!(NameKind {
    Movie = "movie",
    Series = "series",
    Channel = "channel",
});

/// Rules of names to try.
#[derive(Clone, Debug, Body)]
pub(crate) struct NamePreview {
    /// Kind of the names; all by default.
    kind: Option<Option<Named<NameKind>>>,
    /// Members of the name settings that replace stored ones for the preview.
    #[field(example = "{\"clean_movies\": true}")]
    value: Option<Map<String, Value>>,
}

/// A name that rules change.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ChangedName")]
pub(crate) struct ChangedNameView {
    /// Kind of the name.
    kind: Named<NameKind>,
    /// Id of the film, the series or the channel.
    #[field(example = "7")]
    id: u32,
    /// Id of the account that names it.
    account: AccountId,
    /// Name as the provider writes it.
    #[field(example = "EN - Metropolis [4K]")]
    provider_name: String,
    /// Name that people see now.
    #[field(example = "EN - Metropolis [4K]")]
    before: String,
    /// Name that they would see.
    #[field(example = "Metropolis")]
    after: String,
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Lists the names that rules would change, without changing them.";
    vec![Route::post("/api/core/names/preview/", ADMIN, summary, preview).that_reads()]
}

async fn preview(call: Call, (sent, paging): (NamePreview, Pages)) -> Result<Page<ChangedNameView>, Refusal> {
    let models = call.rest().models.clone();
    let settings = models.settings.load();
    let stored = settings.one_by("key", NAME_SETTINGS).map(|it| &it.value);
    let rules = changed_rules(NameCleaning::from_setting(stored), sent.value.unwrap_or_default())?;
    let kind = sent.kind.flatten().map(|it| it.0);
    let (cleaner, window) = (Arc::new(NameCleaner::new(rules)), paging.window());
    let changed = reading(move || changed_names(&models, &cleaner, kind, window)).await?;
    paging.envelope(&call, changed.count, changed.names.into_iter().map(view).collect())
}

/// Returns the settings with these members.
fn changed_rules(mut rules: NameCleaning, members: Map<String, Value>) -> Result<NameCleaning, Refusal> {
    let mut errors = FieldErrors::default();
    for (name, value) in &members {
        if let Err(reason) = rules.set(name, value) {
            errors.add(name.clone(), format!("{name} {}.", reason.trim_end_matches('.')));
        }
    }
    Ok(errors.or(rules)?)
}

fn view(name: ChangedName) -> ChangedNameView {
    let ChangedName { kind, id, account, provider_name, before, after } = name;
    ChangedNameView { kind: Named(kind), id, account, provider_name, before, after }
}

#[cfg(test)]
mod tests {
    use domain::account_group::AccountGroup;
    use domain::auto_sync::auto_channel_uuid;
    use domain::channel::{AutoChannel, Channel, SyncedValues};
    use domain::group::Group;
    use domain::ids::{AccountGroupId, ChannelId, GroupId, StreamId};
    use domain::source_url::SourceUrl;
    use domain::stream::{Stream, StreamProperties};
    use domain::vod::TitleId;
    use media::spawn_blocking;
    use serde_json::json;

    use super::*;
    use crate::testing::Rest;
    use crate::title_testing::put_titles;

    const PATH: &str = "/api/core/names/preview/";

    async fn put_film(rest: &Rest, name: &'static str) {
        put_titles(rest).await;
        let film = TitleId::movie(1).unwrap();
        let mut title = rest.models.vod.get(film).unwrap().unwrap();
        for relation in &mut title.relations {
            relation.facts.name = name.to_owned();
        }
        rest.put([title]).await;
    }

    #[tokio::test]
    async fn rules_are_tried_without_changing_a_name_and_page_by_page() {
        let rest = Rest::start().await;
        put_film(&rest, "EN - Metropolis [4K]").await;
        let version = rest.models.store.version();
        let none = rest.admin("POST", PATH, json!({})).await;
        assert_eq!((none.status, &none.body["count"]), (200, &json!(0)), "{}", none.text);
        let tried = json!({ "value": { "clean_movies": true } });
        let answer = rest.admin("POST", PATH, tried.clone()).await;
        let row = json!({
            "kind": "movie", "id": 1, "account": 12, "provider_name": "EN - Metropolis [4K]",
            "before": "EN - Metropolis [4K]", "after": "Metropolis",
        });
        assert_eq!((&answer.body["count"], &answer.body["results"][0]), (&json!(1), &row), "{}", answer.text);
        let series = json!({ "kind": "series", "value": { "clean_movies": true } });
        assert_eq!(rest.admin("POST", PATH, series).await.body["count"], json!(0));
        let all = json!({ "value": { "patterns": ["^ => x "] } });
        let first = rest.admin("POST", &format!("{PATH}?page_size=1"), all.clone()).await.body;
        let second = rest.admin("POST", &format!("{PATH}?page=2&page_size=1"), all).await.body;
        assert_eq!((first["results"].as_array().unwrap().len(), &first["count"]), (1, &second["count"]));
        assert_ne!(first["results"], second["results"]);
        assert_eq!(rest.models.store.version(), version);
        assert_eq!(rest.standard("POST", PATH, tried).await.status, 403);
    }

    #[tokio::test]
    async fn an_invalid_rule_is_named_with_its_reason() {
        let rest = Rest::start().await;
        let value = json!({ "clean_movies": 1, "patterns": ["a => b", "(?=a) => "], "other": 1 });
        let refused = rest.admin("POST", PATH, json!({ "value": value })).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        let patterns = refused.body["patterns"][0].as_str().unwrap();
        assert!(patterns.contains("pattern 2: look-ahead"), "{patterns}");
        assert!(refused.body["clean_movies"].is_array() && refused.body["other"].is_array());
    }

    #[tokio::test]
    async fn names_are_cleaned_when_the_rules_change_and_an_edit_stays() {
        let rest = Rest::start().await;
        put_film(&rest, "EN - Metropolis [4K]").await;
        let film = TitleId::movie(1).unwrap();
        let name = || rest.models.vod.get(film).unwrap().unwrap().name().to_owned();
        let set = async |value: Value| {
            let path = "/api/core/settings/12/";
            let answer = rest.admin("PATCH", path, json!({ "value": value })).await;
            assert_eq!(answer.status, 200, "{}", answer.text);
            let models = rest.models.clone();
            spawn_blocking(move || models.vod.clean_names(1, &|| false).unwrap()).await.unwrap();
        };
        set(json!({ "clean_movies": true })).await;
        assert_eq!(name(), "Metropolis");
        let relations = rest.admin("GET", "/api/vod/movies/1/providers/", Value::Null).await;
        assert!(relations.text.contains("EN - Metropolis [4K]"), "{}", relations.text);
        let edited = rest.admin("PATCH", "/api/vod/movies/1/", json!({ "name": "My film" })).await;
        assert_eq!(edited.body["name"], json!("My film"), "{}", edited.text);
        set(json!({ "clean_movies": false })).await;
        assert_eq!(name(), "My film");
        rest.admin("PATCH", "/api/vod/movies/1/", json!({ "name": null })).await;
        assert_eq!(name(), "EN - Metropolis [4K]");
    }

    /// Stores the channel that a refresh made of a stream with this name.
    async fn put_channel(rest: &Rest, name: &str) {
        let (account, group) = (AccountId(12), GroupId(7));
        rest.put([Group::new(group, "News")]).await;
        let link = AccountGroup::new(AccountGroupId(1), account, group, true);
        rest.put([AccountGroup { auto_channel_sync: true, ..link }]).await;
        let provider = StreamProperties::new(name, SourceUrl::new("http://provider.example/1"));
        rest.put([Stream::new(StreamId(1), account, provider, 0)]).await;
        let synced = SyncedValues {
            name: name.to_owned(),
            number: None,
            group: Some(group),
            logo: None,
            tvg_id: None,
            stream_profile: None,
            guide_channel: None,
            guide_station: None,
        };
        let auto = AutoChannel { account, group, stream: StreamId(1), synced, is_detached: false };
        let uuid = auto_channel_uuid(&auto);
        rest.put([Channel::automatic(ChannelId(1), uuid, auto, 0)]).await;
    }

    /// Applies the rules, and returns how many channels got another name.
    async fn clean_channels(rest: &Rest) -> u64 {
        let models = rest.models.clone();
        spawn_blocking(move || actors::clean_channel_names(&models).unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn channels_of_refreshes_follow_the_rules_and_named_ones_stay() {
        let rest = Rest::start().await;
        put_titles(&rest).await;
        put_channel(&rest, "UK: BBC One FHD").await;
        let tried = json!({ "kind": "channel", "value": { "clean_channels": true } });
        let answer = rest.admin("POST", PATH, tried).await;
        assert_eq!(answer.body["results"][0]["after"], json!("BBC One"), "{}", answer.text);
        let body = json!({ "value": { "clean_channels": true } });
        assert_eq!(rest.admin("PATCH", "/api/core/settings/12/", body).await.status, 200);
        assert_eq!(clean_channels(&rest).await, 1);
        let channel = rest.admin("GET", "/api/channels/channels/1/", Value::Null).await;
        assert_eq!(channel.body["name"], json!("BBC One"), "{}", channel.text);
        let named = rest.admin("PATCH", "/api/channels/channels/1/", json!({ "name": "One" })).await;
        assert_eq!(named.status, 200, "{}", named.text);
        let body = json!({ "value": { "clean_channels": false } });
        assert_eq!(rest.admin("PATCH", "/api/core/settings/12/", body).await.status, 200);
        assert_eq!(clean_channels(&rest).await, 0);
        let channel = rest.admin("GET", "/api/channels/channels/1/", Value::Null).await;
        assert_eq!(channel.body["name"], json!("One"));
    }
}
