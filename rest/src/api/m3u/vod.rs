//! `/api/m3u/accounts/{id}/refresh-vod/`: refreshes of the films and series of panels, and which categories an account
//! imports.

use actors::{VodPhase, VodRefreshStart, VodRefreshStatus};
use domain::account::{Account, RefreshOutcome};
use domain::ids::{AccountId, VodCategoryId};
use domain::vod::{AccountCategory, KindSync, VodSync};
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::input::Element;
use route_frame::route::{Accepted, Route};
use route_frame::value::{Readable, Shape, Time};
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;
use storage::records::category_link_key;
use uuid::Uuid;

use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::record::set;
use crate::text_code::TextCodeView;

/// The settings of one category of films or series. Fields that are left out stay.
#[derive(Clone, Debug, Body)]
pub(crate) struct CategorySetting {
    /// Id of the category.
    #[field(example = "3")]
    pub(super) id: VodCategoryId,
    /// Whether titles of the category are imported.
    enabled: Option<bool>,
    /// Data of clients.
    custom_properties: Option<Option<Map<String, Value>>>,
}

impl Shape for CategorySetting {
    const KIND: Kind = Kind::Record(&CategorySetting::RECORD);
}

impl Readable for CategorySetting {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Self::read_element(value, false).map_err(FieldErrors::first_message)
    }
}

/// Options of a refresh.
#[derive(Debug, Query)]
struct Options {
    /// Accepts lists from which most known titles are missing.
    confirm: Option<bool>,
}

/// Options of a refresh.
#[derive(Clone, Debug, Body)]
struct VodRefreshOptions {
    /// Accepts lists from which most known titles are missing.
    confirm: Option<bool>,
}

/// A refresh of films and series that was started.
#[derive(Clone, Debug, Serialize, View)]
struct VodRefreshStartedView {
    /// Always `true`; the outcome is reported later.
    success: bool,
    /// Message for people.
    #[field(example = "The refresh of the films and series of \"Provider\" has started.")]
    message: String,
    /// Id of the account.
    #[field(example = "2")]
    account: AccountId,
    /// Id of this refresh.
    task_id: Uuid,
}

/// Progress of the refresh of the films and series of an account, and the results of the last one.
#[derive(Clone, Debug, Serialize, View)]
struct VodRefreshView {
    /// Id of the account.
    #[field(example = "2")]
    account: AccountId,
    /// Id of the running refresh, or of the last one since the start of the gateway.
    task_id: Option<Uuid>,
    /// Current phase; `done` after the end, `null` if there was no refresh since the start of the gateway.
    #[field(example = "movies")]
    phase: Option<Named<VodPhase>>,
    /// Number of films and series read so far.
    #[field(example = "125000")]
    titles: u64,
    /// Number of new ones.
    #[field(example = "12")]
    titles_created: u64,
    /// Number of changed ones.
    #[field(example = "3")]
    titles_updated: u64,
    /// Number of those that are missing from the new lists.
    #[field(example = "1")]
    titles_gone: u64,
    /// Outcome of the refresh. `pending_confirmation`: most known titles are missing from a list, and nothing was changed.
    /// `null` during a refresh.
    #[field(example = "success")]
    outcome: Option<Named<RefreshOutcome>>,
    /// The outcome for people, without credentials.
    message: Option<String>,
    /// The code of `message`, if it has one.
    message_code: Option<TextCodeView>,
    /// Result of the last refresh of the films, for people.
    movies_message: Option<String>,
    /// When the last successful refresh of the films ended.
    movies_good_at: Option<Time>,
    /// Number of films that it found.
    #[field(example = "125000")]
    movies: u64,
    /// Result of the last refresh of the series, for people.
    series_message: Option<String>,
    /// When the last successful refresh of the series ended.
    series_good_at: Option<Time>,
    /// Number of series that it found.
    #[field(example = "20000")]
    series: u64,
    /// Number of series whose episodes are still to be loaded in the background.
    #[field(example = "0")]
    episodes_left: usize,
}

choice!(VodPhase {
    Waiting = "waiting",
    Categories = "categories",
    Movies = "movies",
    Series = "series",
    Done = "done",
});

const REFRESH: &str = "/api/m3u/accounts/{id}/refresh-vod/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            REFRESH,
            STANDARD,
            "Returns the progress of the refresh of the films and series of an account.",
            retrieve,
        ),
        Route::post(REFRESH, ADMIN, "Refreshes the films and series of a panel account.", refresh).refuses(
            StatusCode::BAD_REQUEST,
            "The account has no panel, is inactive, or its films and series are not wanted.",
        ),
    ]
}

async fn refresh(
    call: Call,
    (options, body): (Options, VodRefreshOptions),
) -> Result<Accepted<VodRefreshStartedView>, Refusal> {
    let confirm = options.confirm == Some(true) || body.confirm == Some(true);
    let accounts = call.rest().models.accounts.load();
    let account = accounts.get(call.id()?).ok_or_else(Refusal::unknown::<Account>)?;
    match start_refresh(&call, account, confirm) {
        Ok((message, task_id)) => {
            Ok(Accepted(VodRefreshStartedView { success: true, message, account: account.id, task_id }))
        }
        Err(reason) => Err(Refusal::bad_request(reason)),
    }
}

/// Starts the refresh of the films and series of an account; returns a message and the id of the refresh, or the reason
/// why there is none.
pub(in crate::api) fn start_refresh(
    call: &Call,
    account: &Account,
    confirm: bool,
) -> Result<(String, Uuid), &'static str> {
    let name = &account.name;
    match call.rest().imports.vod_importer.refresh(account.id, confirm) {
        VodRefreshStart::Started { job } => {
            Ok((format!("The refresh of the films and series of \"{name}\" has started."), job))
        }
        VodRefreshStart::AlreadyRunning { job } => {
            Ok((format!("The refresh of the films and series of \"{name}\" is already running."), job))
        }
        VodRefreshStart::NoSuchAccount => Err("The account was deleted."),
        VodRefreshStart::Inactive => Err("The account is not active."),
        VodRefreshStart::NoPanel => Err(
            "Only accounts of the types XC and STALKER have films and series of their own; those of a playlist come with its refresh.",
        ),
        VodRefreshStart::NotWanted => Err("The account does not import films and series; set enable_vod."),
    }
}

async fn retrieve(call: Call) -> Result<VodRefreshView, Refusal> {
    let id = call.id()?;
    let account = AccountId(id);
    // In this order, because a refresh that has ended in memory is in the store already.
    let progress = call.rest().imports.vod_importer.progress_of(account);
    if call.rest().models.accounts.load().get(id).is_none() {
        return Err(Refusal::unknown::<Account>());
    }
    let loads = call.rest().imports.vod_importer.episode_loads();
    let episodes_left = loads.iter().find(|it| it.account == account).map_or(0, |it| it.n_left);
    let syncs = call.rest().models.vod_syncs.load();
    Ok(view(account, progress, syncs.get(id).map(|it| &**it), episodes_left))
}

fn view(
    account: AccountId,
    progress: Option<VodRefreshStatus>,
    sync: Option<&VodSync>,
    episodes_left: usize,
) -> VodRefreshView {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let (movies, series) = (sync.and_then(|it| it.movies.as_ref()), sync.and_then(|it| it.series.as_ref()));
    let message_of = |it: Option<&KindSync>| it.and_then(|it| text(&it.message));
    let good_at = |it: Option<&KindSync>| it.and_then(|it| it.good_at).map(Time);
    VodRefreshView {
        account,
        task_id: progress.as_ref().map(|it| it.job),
        phase: progress.as_ref().map(|it| Named(it.phase)),
        titles: progress.as_ref().map_or(0, |it| it.n_titles),
        titles_created: progress.as_ref().map_or(0, |it| it.n_new),
        titles_updated: progress.as_ref().map_or(0, |it| it.n_changed),
        titles_gone: progress.as_ref().map_or(0, |it| it.n_gone),
        outcome: progress.as_ref().and_then(|it| it.outcome).map(Named),
        message: progress.as_ref().and_then(|it| text(&it.message)),
        message_code: progress.as_ref().and_then(|it| TextCodeView::find(&it.message)),
        movies_message: message_of(movies),
        movies_good_at: good_at(movies),
        movies: movies.map_or(0, |it| it.n_good),
        series_message: message_of(series),
        series_good_at: good_at(series),
        series: series.map_or(0, |it| it.n_good),
        episodes_left,
    }
}

/// Changes the settings of one category of an account, or returns the reason why they are invalid.
pub(super) fn change_category(
    write: &mut Write<'_>,
    account: AccountId,
    setting: CategorySetting,
) -> Result<Result<(), String>, Refusal> {
    let key = category_link_key(account, setting.id);
    let Some(mut link) = write.by::<AccountCategory>("link", key)?.pop() else {
        return Ok(Err("the account has no such category".to_owned()));
    };
    let before = link.clone();
    set(&mut link.enabled, setting.enabled);
    set(&mut link.custom_properties, setting.custom_properties.map(Option::unwrap_or_default));
    if link != before {
        write.put(&link)?;
    }
    Ok(Ok(()))
}

/// Starts what a change of an account means for its films and series.
pub(super) async fn after_change(call: &Call, before: Option<&Account>, now: &Account) {
    let wants = |it: &Account| it.is_active && it.enable_vod;
    let is_new = wants(now) && before.is_none_or(|it| !wants(it) || it.list != now.list);
    let lists_titles = now.list.lists_titles();
    if before.is_some_and(|it| it.list != now.list) {
        call.rest().imports.vod_importer.has_new_panel(now.id);
    }
    // A new account, or one with a new panel, is refreshed as a whole, and its films and series follow.
    if is_new && lists_titles && before.is_some_and(|it| it.list == now.list && it.is_active == now.is_active)
    {
        call.rest().imports.vod_importer.refresh(now.id, false);
    }
    if before.is_some_and(|it| it.load_all_episodes != now.load_all_episodes) {
        call.rest().imports.vod_importer.changed(now.id).await;
    }
}

/// Returns whether films and episodes of a playlist become titles, or streams again.
pub(super) fn moves_entries(before: &Account, now: &Account) -> bool {
    before.enable_vod != now.enable_vod && !now.list.lists_titles()
}

#[cfg(test)]
mod tests {
    use domain::account::{AccountProfile, PlaylistLocation};
    use domain::ids::ProfileId;
    use domain::vod::{TitleKind, VodCategory};
    use serde_json::json;

    use super::*;
    use crate::testing::Rest;

    async fn with_category() -> Rest {
        let rest = Rest::start().await;
        let profile = AccountProfile::default_of(ProfileId(40), "Default", 0);
        rest.put([Account::new(AccountId(40), "Provider", PlaylistLocation::None, profile, 0)]).await;
        let (id, kind) = (VodCategoryId(50), TitleKind::Movie);
        rest.put([VodCategory { id, name: "Action".to_owned(), kind }]).await;
        rest.put([AccountCategory {
            id: 60,
            account: AccountId(40),
            category: id,
            kind,
            provider_ids: vec!["21".to_owned()],
            enabled: false,
            custom_properties: Map::new(),
            last_seen: None,
        }])
        .await;
        rest
    }

    fn link(rest: &Rest) -> AccountCategory {
        (**rest.models.vod_account_categories.load().get(60).unwrap()).clone()
    }

    #[tokio::test]
    async fn categories_of_an_account_are_enabled_by_their_ids() {
        let rest = with_category().await;
        let path = "/api/m3u/accounts/40/group-settings/";
        let settings_body = |settings: Value| json!({ "category_settings": settings });
        let changed = settings_body(json!([{ "id": 50, "enabled": true, "custom_properties": { "a": 1 } }]));
        assert_eq!(rest.admin("PATCH", path, changed).await.status, 200);
        assert_eq!((link(&rest).enabled, &link(&rest).custom_properties["a"]), (true, &json!(1)));
        let kept = settings_body(json!([{ "id": 50, "enabled": false }]));
        assert_eq!(rest.admin("PATCH", path, kept).await.status, 200);
        assert_eq!((link(&rest).enabled, &link(&rest).custom_properties["a"]), (false, &json!(1)));
        // A refused change changes nothing.
        let refused = settings_body(json!([{ "id": 50, "enabled": true }, { "id": 51, "enabled": true }]));
        let refused = rest.admin("PATCH", path, refused).await;
        let message = refused.body["category_settings"][0].as_str().unwrap_or_default().to_owned();
        assert_eq!(
            (refused.status, message.as_str()),
            (400, "Item 2: Category 51: the account has no such category.")
        );
        assert!(!link(&rest).enabled);
    }

    #[tokio::test]
    async fn setting_enable_vod_leaves_new_categories_off_unless_they_are_asked_for() {
        let rest = Rest::start().await;
        let fields = ["enable_vod", "auto_enable_new_groups_vod", "auto_enable_new_groups_series"];
        for (name, more, expected) in [
            ("a", json!({}), json!([false, true, true])),
            ("b", json!({ "enable_vod": true }), json!([true, false, false])),
            (
                "c",
                json!({ "enable_vod": true, "auto_enable_new_groups_vod": true }),
                json!([true, true, false]),
            ),
        ] {
            let mut body = json!({ "name": name });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let made = rest.admin("POST", "/api/m3u/accounts/", body).await;
            assert_eq!(made.status, 201, "{}", made.text);
            assert_eq!(json!(fields.map(|it| made.body[it].clone())), expected, "{name}");
        }
        let id = rest.admin("GET", "/api/m3u/accounts/?search=a", Value::Null).await;
        let id =
            id.body["results"].as_array().unwrap().iter().find(|it| it["name"] == "a").unwrap()["id"].clone();
        let path = format!("/api/m3u/accounts/{id}/");
        let seen = async |change: Value| {
            let changed = rest.admin("PATCH", &path, change).await;
            json!(fields.map(|it| changed.body[it].clone()))
        };
        assert_eq!(seen(json!({ "enable_vod": true })).await, json!([true, false, false]));
        assert_eq!(seen(json!({ "auto_enable_new_groups_series": true })).await, json!([true, false, true]));
        assert_eq!(seen(json!({ "enable_vod": true })).await, json!([true, false, true]), "nothing new");
    }

    #[tokio::test]
    async fn the_results_of_the_last_refresh_are_shown_and_an_unknown_account_is_not() {
        let rest = with_category().await;
        let sync = KindSync {
            outcome: RefreshOutcome::Success,
            message: "Fine.".to_owned(),
            tried_at: 5,
            good_at: Some(5),
            n_good: 9,
            earlier: Default::default(),
        };
        rest.put([VodSync { account: AccountId(40), movies: Some(sync), series: None }]).await;
        let seen = rest.standard("GET", "/api/m3u/accounts/40/refresh-vod/", Value::Null).await;
        assert_eq!(
            (seen.status, &seen.body["movies"], &seen.body["movies_message"]),
            (200, &json!(9), &json!("Fine."))
        );
        assert_eq!((&seen.body["phase"], &seen.body["series"]), (&Value::Null, &json!(0)));
        for method in ["GET", "POST"] {
            let unknown = rest.admin(method, "/api/m3u/accounts/99/refresh-vod/", json!({})).await;
            assert_eq!(unknown.status, 404, "{}", unknown.text);
        }
        assert_eq!(rest.standard("POST", "/api/m3u/accounts/40/refresh-vod/", json!({})).await.status, 403);
    }
}
