//! A program that speaks the REST interface.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::{Answer, Request, fetch};
use super::gateway::TestGateway;

/// Somebody who calls, with what they show of themselves.
#[derive(Debug, Clone)]
pub struct Api {
    address: SocketAddr,
    credentials: Option<(&'static str, String)>,
}

/// What was answered. The body is `null` where there is none, or none that is JSON.
#[derive(Debug, Clone)]
pub struct Said {
    pub status: u16,
    pub body: Value,
    pub answer: Answer,
}

/// What tests log in with.
pub const ADMIN: &str = "root";
pub const PASSWORD: &str = "correct horse";

impl Api {
    /// Somebody without credentials, at the port of players: clients know one host and one port.
    pub fn stranger(gateway: &TestGateway) -> Api {
        Api::stranger_at(gateway.address)
    }

    /// Somebody without credentials, at a port.
    pub fn stranger_at(address: SocketAddr) -> Api {
        Api { address, credentials: None }
    }

    /// The first admin of a gateway that has none.
    pub async fn first_admin(gateway: &TestGateway) -> Api {
        Api::stranger(gateway).become_first_admin().await
    }

    /// Makes the first admin, or logs in as the one there is.
    pub async fn become_first_admin(&self) -> Api {
        let first = json!({ "username": ADMIN, "password": PASSWORD });
        let made = self.post("/api/accounts/initialize-superuser/", first).await;
        assert_eq!((made.status, &made.body["superuser_exists"]), (200, &json!(true)), "{made:?}");
        self.login(ADMIN, PASSWORD).await
    }

    /// The same program after it logged in.
    pub async fn login(&self, username: &str, password: &str) -> Api {
        let said = self.token(username, password).await;
        assert_eq!(said.status, 200, "{said:?}");
        self.bearer(said.text("access"))
    }

    /// Asks for tokens.
    pub async fn token(&self, username: &str, password: &str) -> Said {
        let login = json!({ "username": username, "password": password });
        Api { credentials: None, ..self.clone() }.post("/api/accounts/token/", login).await
    }

    /// The same program with a token.
    pub fn bearer(&self, token: &str) -> Api {
        Api { credentials: Some(("Authorization", format!("Bearer {token}"))), ..self.clone() }
    }

    /// The same program with an API key.
    pub fn key(&self, key: &str) -> Api {
        Api { credentials: Some(("X-API-Key", key.to_owned())), ..self.clone() }
    }

    /// The same program at another port.
    pub fn at(&self, address: SocketAddr) -> Api {
        Api { address, ..self.clone() }
    }

    pub async fn get(&self, path: &str) -> Said {
        self.ask(Request::get(path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Said {
        self.send("POST", path, body).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Said {
        self.send("PATCH", path, body).await
    }

    pub async fn delete(&self, path: &str) -> Said {
        self.ask(Request::get(path).method("DELETE")).await
    }

    pub async fn send(&self, method: &'static str, path: &str, body: Value) -> Said {
        self.ask(Request::get(path).method(method).body("application/json", body.to_string())).await
    }

    pub async fn ask(&self, request: Request) -> Said {
        let request = match &self.credentials {
            Some((name, value)) => request.header(name, value),
            None => request,
        };
        let answer = fetch(self.address, request).await;
        let body = serde_json::from_slice(&answer.bytes).unwrap_or(Value::Null);
        Said { status: answer.status(), body, answer }
    }
}

impl Said {
    /// A text in the body.
    #[track_caller]
    pub fn text(&self, key: &str) -> &str {
        self.body[key].as_str().unwrap_or_else(|| panic!("no text {key} in {}", self.body))
    }
}
