//! The resources whose records have entity tags: the path of one record, and the collection in the store.

use domain::account::Account;
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::source::GuideSource;
use domain::integration::Integration;
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::output_profile::OutputProfile;
use domain::personal_playlist::PersonalPlaylist;
use domain::recording::Recording;
use domain::server_group::ServerGroup;
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::tuner::TunerDevice;
use domain::user::User;
use domain::user_agent::UserAgent;
use domain::user_group::UserGroup;
use route_frame::route::Route;
use storage::Record;

/// The path with the parameter `{id}`, and the collection of its records.
const RECORDS: [(&str, &str); 18] = [
    ("/api/accounts/groups/{id}/", UserGroup::COLLECTION),
    ("/api/accounts/users/{id}/", User::COLLECTION),
    ("/api/channels/channels/{id}/", Channel::COLLECTION),
    ("/api/channels/groups/{id}/", Group::COLLECTION),
    ("/api/channels/logos/{id}/", Logo::COLLECTION),
    ("/api/channels/playlists/{id}/", PersonalPlaylist::COLLECTION),
    ("/api/channels/profiles/{id}/", Lineup::COLLECTION),
    ("/api/channels/recordings/{id}/", Recording::COLLECTION),
    ("/api/channels/streams/{id}/", Stream::COLLECTION),
    ("/api/connect/integrations/{id}/", Integration::COLLECTION),
    ("/api/core/outputprofiles/{id}/", OutputProfile::COLLECTION),
    ("/api/core/settings/{id}/", CoreSetting::COLLECTION),
    ("/api/core/streamprofiles/{id}/", StreamProfile::COLLECTION),
    ("/api/core/useragents/{id}/", UserAgent::COLLECTION),
    ("/api/epg/sources/{id}/", GuideSource::COLLECTION),
    ("/api/hdhr/devices/{id}/", TunerDevice::COLLECTION),
    ("/api/m3u/accounts/{id}/", Account::COLLECTION),
    ("/api/m3u/server-groups/{id}/", ServerGroup::COLLECTION),
];

/// Declares the record of a route, if it has one.
pub(crate) fn with_record(route: Route) -> Route {
    match RECORDS.iter().find(|it| it.0 == route.path) {
        Some((_, collection)) => route.about_record(collection),
        None => route,
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{ADMIN, Answer, Rest};

    fn tag(answer: &Answer) -> String {
        answer.headers["etag"].to_str().unwrap().to_owned()
    }

    #[test]
    fn every_path_with_records_is_read_and_changed() {
        let routes = crate::routes();
        for (path, _) in RECORDS {
            for method in [Method::GET, Method::PATCH] {
                assert!(routes.iter().any(|it| it.path == path && it.method == method), "{method} {path}");
            }
        }
    }

    #[tokio::test]
    async fn a_record_that_changed_since_it_was_read_is_not_overwritten() {
        let rest = Rest::start().await;
        let made = rest.admin("POST", "/api/channels/channels/", json!({ "name": "one" })).await;
        let path = format!("/api/channels/channels/{}/", made.body["id"]);
        let bearer = rest.bearer(ADMIN);
        let send = async |method: &str, condition: &str, body: Value| {
            let headers = [("authorization", &*bearer), ("if-match", condition)];
            let text = if body.is_null() { String::new() } else { body.to_string() };
            rest.send(method, &path, &headers, text).await
        };
        let first = tag(&rest.admin("GET", &path, Value::Null).await);
        assert_eq!(tag(&rest.admin("GET", &path, Value::Null).await), first, "it has not changed");

        let changed = send("PATCH", &first, json!({ "name": "two" })).await;
        assert_eq!((changed.status, &changed.body["name"]), (200, &json!("two")), "{}", changed.text);
        let second = tag(&changed);
        assert_ne!(second, first);
        assert_eq!(tag(&rest.admin("GET", &path, Value::Null).await), second);

        for method in ["PATCH", "PUT"] {
            let refused = send(method, &first, json!({ "name": "three" })).await;
            assert_eq!((refused.status, &refused.body["name"]), (412, &json!("two")), "{}", refused.text);
        }
        assert_eq!(send("DELETE", &first, Value::Null).await.status, 412);
        let weak = send("PATCH", &format!("\"x\", W/{second}"), json!({ "name": "four" })).await;
        assert_eq!(weak.status, 200, "{}", weak.text);
        assert_eq!(send("PATCH", "*", json!({ "name": "five" })).await.status, 200);
        let without = rest.admin("PATCH", &path, json!({ "name": "six" })).await;
        assert_eq!((without.status, &without.body["name"]), (200, &json!("six")));
        assert_eq!(send("DELETE", &tag(&without), Value::Null).await.status, 204);
        assert_eq!(send("PATCH", "*", json!({ "name": "gone" })).await.status, 404);
    }
}
