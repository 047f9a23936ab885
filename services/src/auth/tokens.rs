//! JSON web tokens that identify a user for a limited time.

use std::fmt;

use domain::ids::UserId;
use domain::login::{DeviceLogin, REFRESH_SECONDS};
use domain::user::User;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::hs256;

/// Lifetime of an access token, in seconds. It is short, because programs can refresh it and a stolen one soon expires.
pub(crate) const ACCESS_SECONDS: i64 = 30 * 60;
/// Lifetime of a token that plays one film or episode, in seconds: longer than any film with its pauses, because players
/// seek with the address that they began with.
pub(crate) const PLAY_SECONDS: i64 = 6 * 60 * 60;
/// Maximum length of a token, in bytes. Valid ones have about 300.
const TOKEN_BYTES_MAX: usize = 4096;

/// The two tokens of a login.
pub struct Tokens {
    pub access: String,
    pub refresh: String,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

/// Purpose of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TokenUse {
    /// Authenticates requests.
    Access,
    /// Obtains new access tokens.
    Refresh,
    /// Plays one film or episode, and nothing else. In addresses, which players and proxies store.
    Play,
}

/// Identity in a valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) user: UserId,
    pub(super) generation: u32,
    /// Key of the login; `None` without a login that all nodes know.
    pub(super) login: Option<Uuid>,
    /// The film or episode that the token plays.
    pub(super) title: Option<Uuid>,
}

/// Reason why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenError {
    /// Wrong signature, malformed, or for another purpose.
    Invalid,
    Expired,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    token_type: TokenUse,
    /// Expiry in seconds since 1970. The token is invalid from this second on.
    exp: i64,
    iat: i64,
    jti: String,
    /// User id as text, which API clients expect.
    user_id: String,
    /// Generation of the user when the token was issued.
    generation: u32,
    /// Key of the login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sid: Option<Uuid>,
    /// The film or episode that the token plays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<Uuid>,
}

/// Signs tokens, and verifies those signed with the same key.
pub(super) struct Signer {
    encode: EncodingKey,
    decode: DecodingKey,
    validation: Validation,
}

impl Signer {
    pub(super) fn new(key: &[u8; 32]) -> Self {
        hs256::install();
        let mut validation = Validation::new(Algorithm::HS256);
        validation.leeway = 0;
        // `read` checks the expiry against the time it is given.
        validation.validate_exp = false;
        Self { encode: EncodingKey::from_secret(key), decode: DecodingKey::from_secret(key), validation }
    }

    /// Creates both tokens of a login. `now` is in seconds since 1970.
    pub(super) fn both(&self, user: &User, login: Option<&DeviceLogin>, now: i64) -> Tokens {
        Tokens {
            access: self.sign(user, login, TokenUse::Access, None, now),
            refresh: self.sign(user, login, TokenUse::Refresh, None, now),
        }
    }

    /// Creates a token that plays one film or episode. It ends with the login, if there is one.
    pub(super) fn play(&self, user: &User, login: Option<&DeviceLogin>, title: Uuid, now: i64) -> String {
        self.sign(user, login, TokenUse::Play, Some(title), now)
    }

    fn sign(
        &self,
        user: &User,
        login: Option<&DeviceLogin>,
        token_type: TokenUse,
        title: Option<Uuid>,
        now: i64,
    ) -> String {
        let seconds = match token_type {
            TokenUse::Access => ACCESS_SECONDS,
            TokenUse::Refresh => REFRESH_SECONDS,
            TokenUse::Play => PLAY_SECONDS,
        };
        let claims = Claims {
            token_type,
            exp: now.saturating_add(seconds),
            iat: now,
            jti: Uuid::new_v4().simple().to_string(),
            user_id: user.id.0.to_string(),
            generation: user.generation,
            sid: login.map(|it| it.key),
            title,
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encode)
            .expect("the claims are valid JSON, and the key is valid for HS256")
    }

    /// Verifies a token for the given purpose and returns its subject.
    pub(super) fn read(&self, token: &str, wanted: TokenUse, now: i64) -> Result<Subject, TokenError> {
        let claims = self.claims(token)?;
        if claims.token_type != wanted {
            return Err(TokenError::Invalid);
        }
        if claims.exp <= now {
            return Err(TokenError::Expired);
        }
        let user = claims.user_id.parse().map_err(|_| TokenError::Invalid)?;
        Ok(Subject {
            user: UserId(user),
            generation: claims.generation,
            login: claims.sid,
            title: claims.title,
        })
    }

    /// Returns the expiry of a token with a valid signature, in seconds since 1970.
    pub(super) fn expiry(&self, token: &str) -> Option<i64> {
        self.claims(token).ok().map(|it| it.exp)
    }

    fn claims(&self, token: &str) -> Result<Claims, TokenError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::Invalid);
        }
        let read = jsonwebtoken::decode::<Claims>(token, &self.decode, &self.validation);
        read.map(|it| it.claims).map_err(|_| TokenError::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use domain::ids::DeviceLoginId;
    use domain::user::UserLevel;
    use hmac::{Hmac, KeyInit, Mac};
    use serde_json::{Value, json};
    use sha2::{Sha256, Sha512};

    use super::*;

    const NOW: i64 = 1_800_000_000;
    const KEY: [u8; 32] = [7; 32];

    fn user() -> User {
        User { generation: 3, ..User::new(UserId(42), "anna", UserLevel::Standard, 0) }
    }

    fn login() -> DeviceLogin {
        DeviceLogin {
            id: DeviceLoginId(1),
            user: UserId(42),
            key: Uuid::from_u128(5),
            generation: 3,
            created_at: 0,
            used_at: 0,
            address: Ipv4Addr::LOCALHOST.into(),
            agent: String::new(),
            browser: None,
        }
    }

    /// Forges a token with any header and claims, signed by `sign`.
    fn forge(head: &Value, body: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
        let part = |it: &Value| URL_SAFE_NO_PAD.encode(it.to_string());
        let message = format!("{}.{}", part(head), part(body));
        let signature = URL_SAFE_NO_PAD.encode(sign(message.as_bytes()));
        format!("{message}.{signature}")
    }

    fn hs256(key: [u8; 32]) -> impl Fn(&[u8]) -> Vec<u8> {
        move |message| {
            Hmac::<Sha256>::new_from_slice(&key)
                .unwrap()
                .chain_update(message)
                .finalize()
                .into_bytes()
                .to_vec()
        }
    }

    fn body() -> Value {
        json!({ "token_type": "access", "exp": NOW + 60, "iat": NOW, "jti": "x", "user_id": "42", "generation": 3 })
    }

    #[test]
    fn a_token_is_valid_to_its_last_second_and_no_longer() {
        let signer = Signer::new(&KEY);
        let login = login();
        let tokens = signer.both(&user(), Some(&login), NOW);
        let subject = Ok(Subject { user: UserId(42), generation: 3, login: Some(login.key), title: None });
        for (token, wanted, seconds) in [
            (&tokens.access, TokenUse::Access, ACCESS_SECONDS),
            (&tokens.refresh, TokenUse::Refresh, REFRESH_SECONDS),
        ] {
            assert_eq!(signer.read(token, wanted, NOW), subject);
            assert_eq!(signer.read(token, wanted, NOW + seconds - 1), subject);
            assert_eq!(signer.read(token, wanted, NOW + seconds), Err(TokenError::Expired));
        }
    }

    #[test]
    fn a_token_is_only_valid_for_its_own_purpose() {
        let signer = Signer::new(&KEY);
        let tokens = signer.both(&user(), None, NOW);
        assert_eq!(signer.read(&tokens.refresh, TokenUse::Access, NOW), Err(TokenError::Invalid));
        assert_eq!(signer.read(&tokens.access, TokenUse::Refresh, NOW), Err(TokenError::Invalid));
        let play = signer.play(&user(), None, Uuid::from_u128(9), NOW);
        for other in [TokenUse::Access, TokenUse::Refresh] {
            assert_eq!(signer.read(&play, other, NOW), Err(TokenError::Invalid));
        }
        assert_eq!(signer.read(&tokens.access, TokenUse::Play, NOW), Err(TokenError::Invalid));
        let title = |now| signer.read(&play, TokenUse::Play, now).map(|it| it.title);
        assert_eq!(title(NOW + PLAY_SECONDS - 1), Ok(Some(Uuid::from_u128(9))));
        assert_eq!(title(NOW + PLAY_SECONDS), Err(TokenError::Expired));
    }

    #[test]
    fn a_forged_token_is_rejected() {
        let signer = Signer::new(&KEY);
        let head = json!({ "alg": "HS256", "typ": "JWT" });
        let hs512 = |message: &[u8]| {
            Hmac::<Sha512>::new_from_slice(&KEY)
                .unwrap()
                .chain_update(message)
                .finalize()
                .into_bytes()
                .to_vec()
        };
        let without = |key: &str| {
            let mut body = body();
            body.as_object_mut().unwrap().remove(key);
            body
        };
        let with = |key: &str, value: Value| {
            let mut body = body();
            body[key] = value;
            body
        };
        assert!(
            signer.read(&forge(&head, &body(), hs256(KEY)), TokenUse::Access, NOW).is_ok(),
            "the helper produces valid tokens"
        );
        let good = forge(&head, &body(), hs256(KEY));
        let swapped = {
            let other = forge(&head, &with("user_id", json!("1")), hs256(KEY));
            let (message, _) = other.rsplit_once('.').unwrap();
            let (_, signature) = good.rsplit_once('.').unwrap();
            format!("{message}.{signature}")
        };
        let cases = [
            ("another key", forge(&head, &body(), hs256([8; 32]))),
            ("HS512 under our key", forge(&json!({ "alg": "HS512" }), &body(), hs512)),
            ("HS512 in words only", forge(&json!({ "alg": "HS512" }), &body(), hs256(KEY))),
            ("no signature", forge(&json!({ "alg": "none" }), &body(), |_| Vec::new())),
            ("none in another case", forge(&json!({ "alg": "nOnE" }), &body(), hs256(KEY))),
            ("an algorithm with public keys", forge(&json!({ "alg": "RS256" }), &body(), hs256(KEY))),
            ("no algorithm", forge(&json!({ "typ": "JWT" }), &body(), hs256(KEY))),
            ("somebody else's signature", swapped),
            ("no expiry", forge(&head, &without("exp"), hs256(KEY))),
            ("an expiry in words", forge(&head, &with("exp", json!("tomorrow")), hs256(KEY))),
            ("a login in words", forge(&head, &with("sid", json!("mine")), hs256(KEY))),
            ("no user", forge(&head, &without("user_id"), hs256(KEY))),
            ("a user below zero", forge(&head, &with("user_id", json!("-1")), hs256(KEY))),
            ("no generation", forge(&head, &without("generation"), hs256(KEY))),
            ("no use", forge(&head, &without("token_type"), hs256(KEY))),
            ("an unknown use", forge(&head, &with("token_type", json!("sliding")), hs256(KEY))),
            ("cut off", good[..good.len() - 4].to_owned()),
            ("two parts", good.rsplit_once('.').unwrap().0.to_owned()),
            ("four parts", format!("{good}.x")),
            ("nothing", String::new()),
            ("dots", "..".to_owned()),
            ("no token", "nope".to_owned()),
            ("no ASCII", "ä.ö.ü".to_owned()),
            ("too long", format!("{}.{}", "a".repeat(TOKEN_BYTES_MAX), good)),
        ];
        for (what, token) in cases {
            assert_eq!(signer.read(&token, TokenUse::Access, NOW), Err(TokenError::Invalid), "{what}");
        }
    }
}
