//! The form of lists.

use domain::clients::ARRAY_LISTS;
use http::Method;
use route_frame::field::Kind;
use route_frame::route::{AnswerShape, Route};
use serde_json::Value;

use super::routes;
use crate::testing::{ADMIN, Rest};

/// Returns the routes of the API that read lists.
fn lists() -> Vec<Route> {
    let is_list = |it: &Route| matches!(it.answer, AnswerShape::Page(_) | AnswerShape::ArrayOrPage(_));
    routes().into_iter().filter(|it| it.method == Method::GET && is_list(it)).collect()
}

#[test]
fn every_list_of_records_has_pages() {
    // Files of tuners have the form that tuner clients read.
    let is_listed = |it: &&Route| it.path.starts_with("/api/") && !it.path.ends_with(".json");
    for route in routes().iter().filter(|it| it.method == Method::GET).filter(is_listed) {
        let is_bare = matches!(route.answer, AnswerShape::One(Kind::List(Kind::Record(_))));
        assert!(!is_bare, "{} has no pages", route.path);
    }
    for list in lists() {
        let has = |name: &str| list.inputs.query.iter().any(|it| it.name == name);
        assert!(has("page") && has("page_size"), "{}", list.path);
    }
    for row in ARRAY_LISTS {
        assert!(lists().iter().any(|it| it.path == row.path), "{} is not a list", row.path);
        assert!(!row.client.is_empty() && row.evidence.ends_with('.'), "{row:?}");
    }
}

#[tokio::test]
async fn a_list_is_an_array_only_for_the_clients_that_read_one_and_without_a_page() {
    let rest = Rest::start().await;
    let bearer = rest.bearer(ADMIN);
    let is_array = async |path: String, agent: &str| {
        let headers = [("authorization", bearer.as_str()), ("user-agent", agent)];
        let (_, body) = rest.send_bytes("GET", &path, &headers).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(body.is_array() || body["results"].is_array(), "{path}: {body}");
        body.is_array()
    };
    let mut n_arrays = 0;
    for list in lists().iter().filter(|it| !it.path.contains('{') && !it.path.contains("search")) {
        let of = |is_meant: fn(bool) -> bool| {
            ARRAY_LISTS.iter().any(|it| it.path == list.path && is_meant(it.without_agent))
        };
        let (for_all, for_some) = (of(|it| !it), of(|_| true));
        let path = list.path.to_owned();
        assert_eq!(is_array(path.clone(), "curl/8.5").await, for_all, "{path}");
        assert_eq!(is_array(path.clone(), "").await, for_some, "{path} without a user agent");
        for query in ["page=1", "page_size=10", "page=1&page_size=10"] {
            assert!(!is_array(format!("{path}?{query}"), "").await, "{path}?{query}");
        }
        n_arrays += u32::from(for_some);
    }
    assert!(n_arrays >= 9, "{n_arrays}");
}
