//! Tokens: signed statements that somebody is a user, for a while.

use std::fmt;

use domain::ids::UserId;
use domain::user::User;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::hs256;

/// How long an access token is good, in seconds. A stolen one is worth little, a program refreshes it unseen.
pub(crate) const ACCESS_SECONDS: i64 = 30 * 60;
/// How long a refresh token is good, in seconds: so long may a program sleep before it needs the password again.
pub(crate) const REFRESH_SECONDS: i64 = 24 * 60 * 60;
/// Bytes of a token, at most. Ours have some 300; more is not looked at.
const TOKEN_BYTES_MAX: usize = 4096;

/// The two tokens of a login.
pub(crate) struct Tokens {
    pub(crate) access: String,
    pub(crate) refresh: String,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(…)")
    }
}

/// What a token may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Use {
    /// To be let in.
    Access,
    /// To get an access token.
    Refresh,
}

/// What a good token says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) user: UserId,
    pub(super) generation: u32,
}

/// Why a token is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Not signed by us, not readable, or not for this use.
    Invalid,
    Expired,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    token_type: Use,
    /// Seconds since 1970. From this second on the token is not good any more.
    exp: i64,
    iat: i64,
    jti: String,
    /// The id as text, as programs for this interface know it.
    user_id: String,
    /// The user's, when the token was made.
    generation: u32,
}

/// Signs tokens and reads those that were signed by the same key.
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
        // Compared in `read`, with the time that is given there.
        validation.validate_exp = false;
        Self { encode: EncodingKey::from_secret(key), decode: DecodingKey::from_secret(key), validation }
    }

    /// Both tokens of a user who logs in now, in seconds since 1970.
    pub(super) fn both(&self, user: &User, now: i64) -> Tokens {
        Tokens { access: self.sign(user, Use::Access, now), refresh: self.sign(user, Use::Refresh, now) }
    }

    pub(super) fn sign(&self, user: &User, token_type: Use, now: i64) -> String {
        let seconds = match token_type {
            Use::Access => ACCESS_SECONDS,
            Use::Refresh => REFRESH_SECONDS,
        };
        let claims = Claims {
            token_type,
            exp: now.saturating_add(seconds),
            iat: now,
            jti: Uuid::new_v4().simple().to_string(),
            user_id: user.id.0.to_string(),
            generation: user.generation,
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encode)
            .expect("numbers and texts are JSON, and our key signs HS256")
    }

    /// Whom a token speaks of, if it is one of ours, for this use and still good.
    pub(super) fn read(&self, token: &str, wanted: Use, now: i64) -> Result<Subject, Fault> {
        let claims = self.claims(token)?;
        if claims.token_type != wanted {
            return Err(Fault::Invalid);
        }
        if claims.exp <= now {
            return Err(Fault::Expired);
        }
        let user = claims.user_id.parse().map_err(|_| Fault::Invalid)?;
        Ok(Subject { user: UserId(user), generation: claims.generation })
    }

    /// From which second on a token of ours is not good any more, whatever it is for.
    pub(super) fn ends_at(&self, token: &str) -> Option<i64> {
        self.claims(token).ok().map(|it| it.exp)
    }

    fn claims(&self, token: &str) -> Result<Claims, Fault> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Fault::Invalid);
        }
        let read = jsonwebtoken::decode::<Claims>(token, &self.decode, &self.validation);
        read.map(|it| it.claims).map_err(|_| Fault::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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

    /// A token with any head and body, signed by `sign`.
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
    fn a_token_is_good_to_its_last_second_and_not_one_longer() {
        let signer = Signer::new(&KEY);
        let tokens = signer.both(&user(), NOW);
        let subject = Ok(Subject { user: UserId(42), generation: 3 });
        for (token, wanted, seconds) in
            [(&tokens.access, Use::Access, ACCESS_SECONDS), (&tokens.refresh, Use::Refresh, REFRESH_SECONDS)]
        {
            assert_eq!(signer.read(token, wanted, NOW), subject);
            assert_eq!(signer.read(token, wanted, NOW + seconds - 1), subject);
            assert_eq!(signer.read(token, wanted, NOW + seconds), Err(Fault::Expired));
        }
    }

    #[test]
    fn a_refresh_token_lets_nobody_in_and_an_access_token_refreshes_nothing() {
        let signer = Signer::new(&KEY);
        let tokens = signer.both(&user(), NOW);
        assert_eq!(signer.read(&tokens.refresh, Use::Access, NOW), Err(Fault::Invalid));
        assert_eq!(signer.read(&tokens.access, Use::Refresh, NOW), Err(Fault::Invalid));
    }

    #[test]
    fn a_token_that_is_not_ours_is_refused_whatever_it_says() {
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
        assert!(signer.read(&forge(&head, &body(), hs256(KEY)), Use::Access, NOW).is_ok(), "the forge works");
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
            assert_eq!(signer.read(&token, Use::Access, NOW), Err(Fault::Invalid), "{what}");
        }
    }
}
