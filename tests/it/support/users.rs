//! Users of a gateway and their credentials.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::ids::UserId;
use domain::secret::{Secret, ServerKeys};
use domain::user::{ApiKey, User, UserLevel};
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;
use storage::Write;

use super::client::Request;
use super::gateway::TestGateway;

/// A user with a player password and an API key.
pub struct TestUser {
    pub id: UserId,
    pub name: String,
    pub password: String,
    pub api_key: String,
}

/// Creates a user, modified by `change`.
pub async fn create_user(gateway: &TestGateway, name: &str, change: impl FnOnce(&mut User)) -> TestUser {
    let password = format!("pw+of/{name} 100%");
    let api_key = format!("key-of-{name}");
    let digest = signed(&keys(gateway).lookup, api_key.as_bytes());
    let mut user = User {
        player_password: Some(Secret::new(&password)),
        api_key: Some(ApiKey { key: Secret::new(&api_key), digest }),
        ..User::new(UserId(0), name, UserLevel::Streamer, 0)
    };
    change(&mut user);
    let id = gateway
        .models()
        .store
        .write(move |write| {
            user.id = UserId(write.next_id::<User>()?);
            write.put(&user)?;
            Ok::<_, storage::Error>(user.id)
        })
        .await
        .expect("the user is stored");
    TestUser { id, name: name.to_owned(), password, api_key }
}

/// Changes an existing user.
pub async fn change_user(
    gateway: &TestGateway,
    person: &TestUser,
    change: impl FnOnce(&mut User) + Send + 'static,
) {
    let id = person.id.0;
    let change = move |write: &mut Write<'_>| {
        let mut user = write.get::<User>(id)?.expect("the user exists");
        change(&mut user);
        write.put(&user)
    };
    gateway.change(change).await;
}

pub async fn delete_user(gateway: &TestGateway, person: &TestUser) {
    let id = person.id.0;
    gateway.change(move |write| write.remove::<User>(id).map(drop)).await;
}

impl TestUser {
    /// Returns `/{user}/{password}/{file}`, as players request it.
    pub fn path(&self, file: &str) -> String {
        let part = |it: &str| utf8_percent_encode(it, NON_ALPHANUMERIC).to_string();
        format!("/{}/{}/{file}", part(&self.name), part(&self.password))
    }

    /// Returns the same path below `/live`.
    pub fn live(&self, file: &str) -> String {
        format!("/live{}", self.path(file))
    }

    /// Returns a request for `/live/…` of a channel, sent by this device.
    pub fn asks(&self, gateway: &TestGateway, channel: &str, device: &str) -> Request {
        let file = format!("{}.ts", gateway.channel(channel).id);
        Request::get(self.live(&file)).header("User-Agent", device)
    }

    /// Returns an access token.
    pub fn token(&self, gateway: &TestGateway) -> String {
        self.token_for(gateway, 600)
    }

    /// Returns an access token with this lifetime in seconds.
    pub fn token_for(&self, gateway: &TestGateway, seconds: u64) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_secs();
        let claims = serde_json::json!({
            "token_type": "access", "exp": now + seconds, "iat": now, "jti": "0", "user_id": self.id.to_string(),
            "generation": 0,
        });
        let part = |it: &serde_json::Value| URL_SAFE_NO_PAD.encode(it.to_string());
        let message =
            format!("{}.{}", part(&serde_json::json!({ "alg": "HS256", "typ": "JWT" })), part(&claims));
        let signature = URL_SAFE_NO_PAD.encode(signed(&keys(gateway).tokens, message.as_bytes()));
        format!("{message}.{signature}")
    }
}

/// Returns the keys of the installation under test.
fn keys(gateway: &TestGateway) -> ServerKeys {
    gateway
        .models()
        .store
        .collection::<ServerKeys>()
        .get(1)
        .expect("the store can be read")
        .expect("it has keys")
}

fn signed(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.chain_update(message).finalize().into_bytes().into()
}
