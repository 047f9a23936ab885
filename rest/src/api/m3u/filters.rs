//! `/api/m3u/accounts/{id}/filters/`: which entries of a playlist are imported.

use std::sync::Arc;

use actors::now_ms;
use domain::account::Account;
use domain::playlist::filters::{FILTER_CHARS_MAX, FILTERS_MAX, FilterField, StreamFilter, StreamFilters};
use domain::stream::Stream;
use domain::user::UserLevel;
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::field::Field;
use route_frame::input::Element;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::Readable;
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::built_in::{LOCKED, find_unlocked};
use super::refresh::refresh_if_possible;
use super::text::Exact;
use crate::api::channels::streams::blocking;
use crate::api::text::sentence;
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{set, set_fields};

/// A filter of an account. The first filter that matches an entry of the playlist decides whether it is imported;
/// entries that no filter matches are imported. A change applies at the next refresh.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "M3UFilter", new = NewM3UFilter, edit = M3UFilterEdit)]
pub(crate) struct M3UFilterView {
    /// Assigned by the gateway; unique in the account and never reused.
    #[field(example = "1")]
    id: u32,
    /// The value of the provider that is examined, before rules change it.
    #[field(required, example = "name")]
    filter_type: Named<FilterField>,
    /// Regular expression, which may match anywhere in the value. Visible to admins only.
    #[field(required, chars_max = FILTER_CHARS_MAX, example = "^UK: ")]
    regex_pattern: Exact,
    /// Whether matching entries are left out; otherwise they are imported.
    #[field(edit)]
    exclude: bool,
    /// Filters with a smaller number are applied first; equal ones in the order of their ids.
    #[field(edit, example = "0")]
    order: i32,
    /// `case_sensitive` is `true` unless it is `false`. Other properties are data of clients.
    #[field(edit)]
    custom_properties: Option<Map<String, Value>>,
}

choice!(FilterField { Group = "group", Name = "name", Url = "url" });

/// Filters to try.
#[derive(Clone, Debug, Body)]
struct FilterTrial {
    /// The filters in their order; `null` or left out: those of the account.
    #[field(items_max = FILTERS_MAX)]
    filters: Option<Option<Vec<M3UFilterView>>>,
}

/// The effect of filters on the streams of the account.
#[derive(Clone, Debug, Serialize, View)]
struct M3UFilterPreviewView {
    /// Number of examined streams: those that are stored. Entries that the present filters leave out are unknown.
    #[field(example = "1200")]
    total: usize,
    /// Number of streams that would stay.
    #[field(example = "300")]
    kept: usize,
    /// Number of streams that would be left out.
    #[field(example = "900")]
    left_out: usize,
    /// Names of some streams that would stay.
    kept_names: Vec<String>,
    /// Names of some streams that would be left out.
    left_out_names: Vec<String>,
}

const LIST: &str = "/api/m3u/accounts/{id}/filters/";
const ONE: &str = "/api/m3u/accounts/{id}/filters/{filter_id}/";
const PREVIEW: &str = "/api/m3u/accounts/{id}/filters/preview/";

/// Maximum number of names of each kind in a preview.
const NAMES_MAX: usize = 20;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists the filters of an account in their order.", list),
        Route::post(LIST, ADMIN, "Creates a filter, which applies at the next refresh.", create)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::post(PREVIEW, ADMIN, "Returns the effect of filters on the stored streams.", preview)
            .with_properties_body()
            .that_reads(),
        Route::get(ONE, STANDARD, "Returns a filter.", retrieve),
        Route::put(ONE, ADMIN, "Updates a filter, which applies at the next refresh.", update)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::patch(ONE, ADMIN, "Partially updates a filter, which applies at the next refresh.", update)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::delete(ONE, ADMIN, "Deletes a filter. The next refresh imports without it.", delete)
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<M3UFilterView>, Refusal> {
    let (account, is_admin) = (account_of(&call)?, is_admin(&call)?);
    let mut filters: Vec<_> = account.filters.iter().collect();
    filters.sort_by_key(|it| (it.order, it.id));
    paging.render_with(&call, &filters, |it| view(it, is_admin))
}

async fn retrieve(call: Call) -> Result<M3UFilterView, Refusal> {
    let (account, id) = (account_of(&call)?, call.id_of("filter_id")?);
    let filter = account.filters.iter().find(|it| it.id == id).ok_or_else(unknown)?;
    Ok(view(filter, is_admin(&call)?))
}

async fn create(call: Call, new: NewM3UFilter) -> Result<Created<M3UFilterView>, Refusal> {
    let filter = change(&call, move |account| {
        if account.filters.len() >= FILTERS_MAX {
            let message = format!("An account can have at most {FILTERS_MAX} filters.");
            return Err(Refusal::bad_request(message));
        }
        account.last_filter_id += 1;
        let NewM3UFilter { filter_type, regex_pattern, exclude, order, custom_properties } = new;
        let filter = StreamFilter {
            id: account.last_filter_id,
            field: filter_type.0,
            pattern: regex_pattern.0,
            exclude: exclude.unwrap_or(false),
            order: order.unwrap_or(0),
            custom_properties: custom_properties.flatten().unwrap_or_default(),
        };
        check(&filter)?;
        account.filters.push(filter.clone());
        Ok(filter)
    });
    Ok(Created(view(&filter.await?, true)))
}

async fn update(call: Call, edit: M3UFilterEdit) -> Result<M3UFilterView, Refusal> {
    let id = call.id_of("filter_id")?;
    let filter = change(&call, move |account| {
        let filter = account.filters.iter_mut().find(|it| it.id == id).ok_or_else(unknown)?;
        set(&mut filter.field, edit.filter_type.map(|it| it.0));
        set(&mut filter.pattern, edit.regex_pattern.map(|it| it.0));
        set_fields!(filter from edit: exclude, order, custom_properties);
        check(filter)?;
        Ok(filter.clone())
    });
    Ok(view(&filter.await?, true))
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id_of("filter_id")?;
    let removed = change(&call, move |account| {
        let at = account.filters.iter().position(|it| it.id == id).ok_or_else(unknown)?;
        Ok(account.filters.remove(at))
    });
    removed.await.map(|_| NoContent)
}

fn check(filter: &StreamFilter) -> Result<(), Refusal> {
    let compiled = filter.compile().map_err(|error| Refusal::field("regex_pattern", sentence(error)));
    compiled.map(drop)
}

/// Changes the filters of the account. A running refresh starts again, because it
/// uses the filters of its beginning.
async fn change<F>(call: &Call, edit: F) -> Result<StreamFilter, Refusal>
where
    F: FnOnce(&mut Account) -> Result<StreamFilter, Refusal> + Send + 'static,
{
    let id = call.id()?;
    let (account, filter) = call
        .write(move |write| {
            let mut account = find_unlocked(write, id)?;
            let filter = edit(&mut account)?;
            account.updated_at = now_ms();
            write.put(&account)?;
            Ok((account, filter))
        })
        .await?;
    refresh_if_possible(call, &account, false).await;
    Ok(filter)
}

async fn preview(call: Call, trial: FilterTrial) -> Result<M3UFilterPreviewView, Refusal> {
    let account = account_of(&call)?;
    let filters = match trial.filters.flatten() {
        Some(views) => views.into_iter().map(M3UFilterView::into_filter).collect(),
        None => account.filters.clone(),
    };
    let filters =
        StreamFilters::new(&filters).map_err(|(_, error)| Refusal::field("filters", sentence(error)))?;
    let context = Arc::clone(call.rest());
    blocking(move || {
        let mut preview = M3UFilterPreviewView {
            total: 0,
            kept: 0,
            left_out: 0,
            kept_names: Vec::new(),
            left_out_names: Vec::new(),
        };
        let streams = context.models.store.collection::<Stream>();
        streams.for_each_of(u64::from(account.id.0), |stream: Stream| {
            preview.total += 1;
            let (count, names) = match filters.keep(&stream.provider) {
                true => (&mut preview.kept, &mut preview.kept_names),
                false => (&mut preview.left_out, &mut preview.left_out_names),
            };
            *count += 1;
            if names.len() < NAMES_MAX {
                names.push(stream.name().to_owned());
            }
        })?;
        Ok(preview)
    })
    .await
}

impl M3UFilterView {
    fn into_filter(self) -> StreamFilter {
        StreamFilter {
            id: self.id,
            field: self.filter_type.0,
            pattern: self.regex_pattern.0,
            exclude: self.exclude,
            order: self.order,
            custom_properties: self.custom_properties.unwrap_or_default(),
        }
    }
}

impl Readable for M3UFilterView {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        let new = NewM3UFilter::read_element(value, false).map_err(FieldErrors::first_message)?;
        Ok(M3UFilterView {
            id: 0,
            filter_type: new.filter_type,
            regex_pattern: new.regex_pattern,
            exclude: new.exclude.unwrap_or(false),
            order: new.order.unwrap_or(0),
            custom_properties: new.custom_properties.flatten(),
        })
    }
}

/// Returns the view of a filter. Its pattern may contain a login.
pub(super) fn view(filter: &StreamFilter, is_admin: bool) -> M3UFilterView {
    let shown = |text: &str| if is_admin { text.to_owned() } else { String::new() };
    M3UFilterView {
        id: filter.id,
        filter_type: Named(filter.field),
        regex_pattern: Exact(shown(&filter.pattern)),
        exclude: filter.exclude,
        order: filter.order,
        custom_properties: Some(if is_admin { filter.custom_properties.clone() } else { Map::new() }),
    }
}

fn is_admin(call: &Call) -> Result<bool, Refusal> {
    Ok(call.identity()?.may(UserLevel::Admin))
}

fn account_of(call: &Call) -> Result<Arc<Account>, Refusal> {
    let accounts = call.rest().models.accounts.load();
    accounts.get(call.id()?).cloned().ok_or_else(Refusal::unknown::<Account>)
}

fn unknown() -> Refusal {
    Refusal::not_found("No M3UFilter matches the given query.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Rest, SECRET};

    async fn account(rest: &Rest) -> String {
        let made = rest.admin("POST", "/api/m3u/accounts/", json!({ "name": "a" })).await;
        format!("/api/m3u/accounts/{}/filters/", made.body["id"])
    }

    #[tokio::test]
    async fn a_filter_is_created_read_changed_and_deleted() {
        let rest = Rest::start().await;
        let path = account(&rest).await;
        let new = json!({ "filter_type": "name", "regex_pattern": format!("^{SECRET}"), "exclude": true, "order": 1 });
        let made = rest.admin("POST", &path, new).await;
        let shown = json!({ "id": 1, "filter_type": "name", "regex_pattern": format!("^{SECRET}"), "exclude": true,
            "order": 1, "custom_properties": {} });
        assert_eq!((made.status, &made.body), (201, &shown));
        let second = rest.admin("POST", &path, json!({ "filter_type": "group", "regex_pattern": "a" })).await;
        assert_eq!((&second.body["id"], &second.body["exclude"]), (&json!(2), &json!(false)));
        // In the order of application, and without patterns below the level of admins.
        let listed = rest.standard("GET", &path, Value::Null).await;
        let ids: Vec<_> = listed.body["results"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(ids, [2, 1]);
        assert_eq!(listed.body["results"][1]["regex_pattern"], "");
        let of_account = rest.admin("GET", &path.replace("filters/", ""), Value::Null).await.body;
        assert_eq!(of_account["filters"].as_array().unwrap().len(), 2);

        let one = format!("{path}1/");
        let changed = rest.admin("PATCH", &one, json!({ "regex_pattern": "b" })).await;
        assert_eq!((changed.status, &changed.body["regex_pattern"]), (200, &json!("b")));
        assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
        assert_eq!(rest.admin("GET", &one, Value::Null).await.status, 404);
        let third = rest.admin("POST", &path, json!({ "filter_type": "url", "regex_pattern": "c" })).await;
        assert_eq!(third.body["id"], 3, "an id is never used again");
    }

    #[tokio::test]
    async fn an_invalid_filter_is_refused_by_field() {
        let rest = Rest::start().await;
        let path = account(&rest).await;
        for (body, field) in [
            (json!({ "filter_type": "name", "regex_pattern": "(unclosed" }), "regex_pattern"),
            (json!({ "filter_type": "name", "regex_pattern": "" }), "regex_pattern"),
            (json!({ "filter_type": "name", "regex_pattern": "a".repeat(201) }), "regex_pattern"),
            (json!({ "filter_type": "logo", "regex_pattern": "a" }), "filter_type"),
            (json!({ "regex_pattern": "a" }), "filter_type"),
        ] {
            let refused = rest.admin("POST", &path, body.clone()).await;
            assert_eq!(refused.status, 400, "{body}");
            assert!(refused.body[field].is_array(), "{body}: {}", refused.text);
        }
        let body = json!({ "filter_type": "name", "regex_pattern": "a" });
        let locked = rest.admin("POST", "/api/m3u/accounts/1/filters/", body).await;
        assert_eq!((locked.status, locked.body), (400, json!({ "detail": LOCKED })));
    }

    #[tokio::test]
    async fn a_preview_counts_the_stored_streams_that_filters_would_keep() {
        let rest = Rest::start().await;
        let path = account(&rest).await;
        let id = rest.models.accounts.load().iter().find(|it| it.name == "a").unwrap().id;
        let stream = |n: u32, name: &str| {
            let properties = domain::stream::StreamProperties::new(
                name,
                domain::source_url::SourceUrl::new("http://provider.example/1"),
            );
            Stream::new(domain::ids::StreamId(n), id, properties, 0)
        };
        rest.put([stream(1, "News"), stream(2, "Film"), stream(3, "World News")]).await;
        let filters = json!([
            { "filter_type": "name", "regex_pattern": "News" },
            { "filter_type": "name", "regex_pattern": ".", "exclude": true },
        ]);
        let seen = rest.admin("POST", &format!("{path}preview/"), json!({ "filters": filters })).await;
        let expected = json!({ "total": 3, "kept": 2, "left_out": 1, "kept_names": ["News", "World News"],
            "left_out_names": ["Film"] });
        assert_eq!((seen.status, seen.body), (200, expected));
        let own = rest.admin("POST", &format!("{path}preview/"), Value::Null).await;
        assert_eq!(own.body["kept"], 3, "the account has no filters");
        let bad = json!({ "filters": [{ "filter_type": "name", "regex_pattern": "(" }] });
        assert_eq!(rest.admin("POST", &format!("{path}preview/"), bad).await.status, 400);
    }
}
