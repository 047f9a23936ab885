//! The interface without sockets, over a store of the moment: for tests of resources.
//!
//! ```text
//! let rest = Rest::start().await;
//! let made = rest.admin("POST", "/api/channels/groups/", json!({ "name": "News" })).await;
//! assert_eq!((made.status, &made.body["name"]), (201, &json!("News")));
//! ```

use std::sync::Arc;

use bytes::Bytes;
use domain::ids::UserId;
use domain::user::{Level, User};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use media::door::Connection;
use serde_json::Value;
use storage::{Models, Record, Store};
use tower_service::Service;
use warp::Filter;

use super::{RestParts, filter};
use crate::auth::Auth;
use crate::http::Routes;
use crate::http::accept::LocalAddr;
use crate::http::reply::Refusal;

/// Bytes of a body, at most.
pub(crate) const BODY_BYTES_MAX: usize = 100_000;

/// The interface, its store, and a user of each level.
pub(crate) struct Rest {
    pub(crate) models: Models,
    routes: Routes,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// `null` where there is none.
    pub(crate) body: Value,
}

impl Rest {
    pub(crate) async fn start() -> Rest {
        let models = tokio::task::spawn_blocking(|| {
            let store = Store::temporary(storage::records::schema())?;
            storage::begin(&store)?;
            Models::of(store)
        });
        let models = models.await.unwrap().unwrap();
        let parts = RestParts {
            models: models.clone(),
            authenticate: Arc::new(authenticate),
            auth: Auth::silent(&models),
            body_bytes_max: BODY_BYTES_MAX,
        };
        Rest { models, routes: filter(parts) }
    }

    /// Puts records there without asking anybody.
    pub(crate) async fn put<T: Record>(&self, records: impl IntoIterator<Item = T>) {
        let records: Vec<T> = records.into_iter().collect();
        let written = self.models.store.write(move |write| records.iter().try_for_each(|it| write.put(it)));
        written.await.unwrap();
    }

    /// Asks as an admin, with a body unless it is `null`.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: Value) -> Answer {
        self.ask(method, path, &[("authorization", "level 10")], body).await
    }

    /// Asks as a user of level 1.
    pub(crate) async fn standard(&self, method: &str, path: &str, body: Value) -> Answer {
        self.ask(method, path, &[("authorization", "level 1")], body).await
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, headers, text.into()).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        let peer = "192.0.2.7:4711".parse().unwrap();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .extension(Arc::new(Connection::new(1, peer)))
            .extension(LocalAddr("192.0.2.1:9191".parse().unwrap()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).unwrap();
        let mut service = warp::service(self.routes.clone().map(|it| it));
        let (head, body) = service.call(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let body = if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() };
        Answer { status: head.status.as_u16(), headers: head.headers, text, body }
    }
}

/// `Authorization: level 10` is an admin, and so on; `level 7` is wrong.
fn authenticate(headers: &HeaderMap) -> Result<Option<Arc<User>>, Refusal> {
    let Some(shown) = headers.get("authorization") else { return Ok(None) };
    let number = shown.to_str().ok().and_then(|it| it.strip_prefix("level ")?.parse().ok());
    let level = number.and_then(Level::of).ok_or_else(Refusal::no_credentials)?;
    Ok(Some(Arc::new(User::new(UserId(1), "somebody", level, 0))))
}
