//! `/api/core/audit/`: the changes by admins.

use domain::audit::AuditEntry;
use domain::ids::UserId;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;

use crate::context::RestCall;
use crate::list::{Page, Paging};

/// A change by an admin. The newest 10,000 are kept.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct AuditEntryView {
    /// Increases with each change.
    #[field(example = "7")]
    id: u32,
    /// When the change was made.
    timestamp: Time,
    /// Id of the admin; 0 for a plugin.
    user_id: UserId,
    /// Name of the admin at that time; of a plugin, its key after `plugin:`.
    #[field(example = "anna")]
    username: String,
    /// Address of the client.
    #[field(example = "192.168.1.5")]
    client_ip: String,
    /// Program of the client.
    user_agent: String,
    /// Method of the request.
    #[field(example = "PATCH")]
    method: String,
    /// Path of the request, with the names of its parameters in braces.
    #[field(example = "/api/channels/channels/{id}/")]
    path: String,
    /// Names of the fields that were sent. Values are not kept.
    fields: Vec<String>,
    /// The first changed records, as collection and id.
    #[field(example = "[\"channels/7\"]")]
    records: Vec<String>,
    /// Number of changed records.
    #[field(example = "1")]
    record_count: u32,
}

/// 50 entries per page by default, at most 1,000.
type Pages = Paging<50, 1_000>;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/audit/", ADMIN, "Lists changes by admins, the newest first.", list)]
}

async fn list(call: Call, paging: Pages) -> Result<Page<AuditEntryView>, Refusal> {
    let (offset, limit) = paging.window();
    let store = call.rest().models.store.clone();
    let read = run_blocking("read the audit trail", move || {
        let entries = store.collection::<AuditEntry>();
        let ids = entries.ids();
        let on_page = ids.iter().rev().skip(offset).take(limit);
        // An entry may have been removed since.
        let found: Result<Vec<_>, storage::Error> =
            on_page.filter_map(|id| entries.get(*id).transpose()).collect();
        found.map(|it| (ids.len(), it))
    });
    let (count, entries) = read.await??;
    paging.envelope(&call, count, entries.into_iter().map(view).collect())
}

fn view(entry: AuditEntry) -> AuditEntryView {
    AuditEntryView {
        id: entry.id,
        timestamp: Time(entry.at),
        user_id: entry.user,
        username: entry.username,
        client_ip: entry.address.to_string(),
        user_agent: entry.user_agent,
        method: entry.method,
        path: entry.path,
        fields: entry.fields,
        records: entry.records.into_iter().map(|(collection, id)| format!("{collection}/{id}")).collect(),
        record_count: entry.n_records,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::{ADMIN, Rest, SECRET, STANDARD};

    /// Holds T-acc.9.
    #[tokio::test]
    async fn changes_by_admins_are_recorded_with_who_what_when_and_where_and_without_values() {
        let rest = Rest::start().await;
        let group =
            rest.admin("POST", "/api/channels/groups/", json!({ "name": "News" })).await.body["id"].clone();
        let path = format!("/api/accounts/users/{STANDARD}/");
        let edit = json!({ "first_name": SECRET, "custom_properties": { "xc_password": SECRET } });
        assert_eq!(rest.admin("PATCH", &path, edit).await.status, 200);
        // Neither refused requests, nor those that change nothing, nor changes of other users.
        rest.admin("POST", "/api/channels/groups/", json!({ "name": "" })).await;
        rest.admin("PATCH", &path, json!({ "first_name": SECRET })).await;
        rest.standard("PATCH", "/api/accounts/users/me/", json!({ "last_name": "B" })).await;

        let page = rest.admin("GET", "/api/core/audit/?page_size=1", Value::Null).await.body;
        assert_eq!((&page["count"], page["results"].as_array().map(Vec::len)), (&json!(2), Some(1)));
        let all = rest.admin("GET", "/api/core/audit/", Value::Null).await;
        assert!(!all.text.contains(SECRET), "{}", all.text);
        let said = |at: usize, fields: &[&str]| -> Vec<Value> {
            fields.iter().map(|field| all.body["results"][at][*field].clone()).collect()
        };
        let what = ["method", "path", "fields", "records", "record_count"];
        assert_eq!(
            said(0, &what),
            [
                json!("PATCH"),
                json!("/api/accounts/users/{id}/"),
                json!(["first_name", "custom_properties"]),
                json!([format!("users/{STANDARD}")]),
                json!(1)
            ]
        );
        let made = json!([format!("groups/{group}")]);
        assert_eq!(
            said(1, &what),
            [json!("POST"), json!("/api/channels/groups/"), json!(["name"]), made, json!(1)]
        );
        assert_eq!(
            said(0, &["user_id", "username", "client_ip"]),
            [json!(ADMIN), json!("administrator"), json!("192.0.2.7")]
        );
        assert!(said(0, &["timestamp"])[0].as_str().unwrap() >= said(1, &["timestamp"])[0].as_str().unwrap());
        assert_eq!(rest.standard("GET", "/api/core/audit/", Value::Null).await.status, 403);
    }
}
