//! A client of the REST API.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::{Request, Response, fetch};
use super::gateway::TestGateway;

/// An API client with its credentials.
#[derive(Debug, Clone)]
pub struct Api {
    address: SocketAddr,
    credentials: Option<(&'static str, String)>,
}

/// A response of the API. The body is `null` if there is none or if it is not JSON.
#[derive(Debug, Clone)]
pub struct ApiReply {
    pub status: u16,
    pub body: Value,
    pub answer: Response,
}

/// The credentials of the first admin.
pub const ADMIN: &str = "root";
pub const PASSWORD: &str = "correct horse";

impl Api {
    /// Returns a client without credentials, on the player port, as clients know one host and one port.
    pub fn stranger(gateway: &TestGateway) -> Api {
        Api::stranger_at(gateway.address)
    }

    /// Returns a client without credentials, on a given port.
    pub fn stranger_at(address: SocketAddr) -> Api {
        Api { address, credentials: None }
    }

    /// Creates the first admin of a new gateway.
    pub async fn first_admin(gateway: &TestGateway) -> Api {
        Api::stranger(gateway).become_first_admin().await
    }

    /// Creates the first admin, or logs in as the existing one.
    pub async fn become_first_admin(&self) -> Api {
        let first = json!({ "username": ADMIN, "password": PASSWORD });
        let made = self.post("/api/accounts/initialize-superuser/", first).await;
        assert_eq!((made.status, &made.body["superuser_exists"]), (200, &json!(true)), "{made:?}");
        self.login(ADMIN, PASSWORD).await
    }

    /// Returns the same client, logged in.
    pub async fn login(&self, username: &str, password: &str) -> Api {
        let reply = self.token(username, password).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        self.bearer(reply.text("access"))
    }

    /// Requests tokens.
    pub async fn token(&self, username: &str, password: &str) -> ApiReply {
        let login = json!({ "username": username, "password": password });
        self.without_credentials().post("/api/accounts/token/", login).await
    }

    /// Returns the same client without credentials.
    pub fn without_credentials(&self) -> Api {
        Api { credentials: None, ..self.clone() }
    }

    /// Returns the same client with a token.
    pub fn bearer(&self, token: &str) -> Api {
        Api { credentials: Some(("Authorization", format!("Bearer {token}"))), ..self.clone() }
    }

    /// Returns the same client with an API key.
    pub fn key(&self, key: &str) -> Api {
        Api { credentials: Some(("X-API-Key", key.to_owned())), ..self.clone() }
    }

    /// Returns the same client on another port.
    pub fn at(&self, address: SocketAddr) -> Api {
        Api { address, ..self.clone() }
    }

    pub async fn get(&self, path: &str) -> ApiReply {
        self.ask(Request::get(path)).await
    }

    /// Returns the id of the first record of a list, with pages or without.
    pub async fn first_id(&self, path: &str) -> Option<u64> {
        let list = self.get(path).await.body;
        list["results"].as_array().or(list.as_array())?.first()?["id"].as_u64()
    }

    pub async fn post(&self, path: &str, body: Value) -> ApiReply {
        self.send("POST", path, body).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> ApiReply {
        self.send("PATCH", path, body).await
    }

    pub async fn delete(&self, path: &str) -> ApiReply {
        self.ask(Request::get(path).method("DELETE")).await
    }

    pub async fn send(&self, method: &'static str, path: &str, body: Value) -> ApiReply {
        self.ask(Request::get(path).method(method).body("application/json", body.to_string())).await
    }

    pub async fn ask(&self, request: Request) -> ApiReply {
        let request = match &self.credentials {
            Some((name, value)) => request.header(name, value),
            None => request,
        };
        let answer = fetch(self.address, request).await;
        let body = serde_json::from_slice(&answer.bytes).unwrap_or(Value::Null);
        ApiReply { status: answer.status(), body, answer }
    }
}

impl ApiReply {
    /// Returns a string in the body.
    #[track_caller]
    pub fn text(&self, key: &str) -> &str {
        self.body[key].as_str().unwrap_or_else(|| panic!("no string {key} in {}", self.body))
    }
}
