//! Users of a gateway, and the credentials that they show.

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

/// A user, with a password for players and an API key.
pub struct Person {
    pub id: UserId,
    pub name: String,
    pub password: String,
    pub api_key: String,
}

/// Keeps a user who may watch, and may do what `change` says.
pub async fn person(gateway: &TestGateway, name: &str, change: impl FnOnce(&mut User)) -> Person {
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
        .expect("a user can be kept");
    Person { id, name: name.to_owned(), password, api_key }
}

/// Changes a user who is there.
pub async fn changed(
    gateway: &TestGateway,
    person: &Person,
    change: impl FnOnce(&mut User) + Send + 'static,
) {
    let id = person.id.0;
    let change = move |write: &mut Write<'_>| {
        let mut user = write.get::<User>(id)?.expect("the user is there");
        change(&mut user);
        write.put(&user)
    };
    gateway.change(change).await;
}

pub async fn deleted(gateway: &TestGateway, person: &Person) {
    let id = person.id.0;
    gateway.change(move |write| write.remove::<User>(id).map(drop)).await;
}

impl Person {
    /// `/{user}/{password}/{file}`, as players write it.
    pub fn path(&self, file: &str) -> String {
        let part = |it: &str| utf8_percent_encode(it, NON_ALPHANUMERIC).to_string();
        format!("/{}/{}/{file}", part(&self.name), part(&self.password))
    }

    /// The same below `/live`.
    pub fn live(&self, file: &str) -> String {
        format!("/live{}", self.path(file))
    }

    /// `/live/…` for a channel by its name, as a device of this kind asks for it.
    pub fn asks(&self, gateway: &TestGateway, channel: &str, device: &str) -> Request {
        let file = format!("{}.ts", gateway.channel(channel).id);
        Request::get(self.live(&file)).header("User-Agent", device)
    }

    /// An access token.
    pub fn token(&self, gateway: &TestGateway) -> String {
        self.token_for(gateway, 600)
    }

    /// An access token that is good for so many seconds.
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

/// The keys of the installation under test.
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
