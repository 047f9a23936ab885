//! Player secrets: texts that players send in place of the player password.
//!
//! They are derived and not stored, so every user has one, and it stays the same until the counter of the user changes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::secret::{Secret, ServerKeys};
use domain::user::User;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Number of bytes of a secret: as text 24 characters, which need no escaping in an address.
const SECRET_BYTES: usize = 18;
/// Separates the key from the other uses of the server key that it is derived from.
const PURPOSE: &[u8] = b"key of player secrets";

/// Derives the secrets of all users.
pub(super) struct PlayerSecrets {
    key: [u8; 32],
}

impl PlayerSecrets {
    /// Uses the key that stays when the key of the tokens is replaced: like API keys, the secrets are stored in players.
    pub(super) fn new(keys: &ServerKeys) -> Self {
        Self { key: digest(&keys.lookup, &[PURPOSE]) }
    }

    /// Returns the secret of a user. The time of creation is a part of it, because the id may be used again after a
    /// back-up was restored.
    pub(super) fn secret(&self, user: &User) -> Secret {
        let parts: [&[u8]; 3] = [
            &user.id.0.to_be_bytes(),
            &user.joined_at.to_be_bytes(),
            &user.player_secret_counter.to_be_bytes(),
        ];
        Secret::new(URL_SAFE_NO_PAD.encode(&digest(&self.key, &parts)[..SECRET_BYTES]))
    }
}

fn digest(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().fold(mac, |mac, part| mac.chain_update(part)).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use domain::ids::UserId;
    use domain::user::UserLevel;

    use super::*;

    fn secrets(lookup: u8) -> PlayerSecrets {
        PlayerSecrets::new(&ServerKeys { tokens: [1; 32], lookup: [lookup; 32] })
    }

    #[test]
    fn a_secret_is_stable_and_differs_by_installation_user_creation_and_counter() {
        let anna = User::new(UserId(1), "anna", UserLevel::Streamer, 5);
        let secret = secrets(2).secret(&anna);
        assert_eq!(secret.expose().len(), 24);
        assert!(secret.expose().bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)));
        let renamed = User { username: "maria".to_owned(), level: UserLevel::Admin, ..anna.clone() };
        assert_eq!(secrets(2).secret(&renamed), secret);
        let mut revoked = anna.clone();
        revoked.revoke_player_secret();
        for other in [
            secrets(3).secret(&anna),
            secrets(2).secret(&User { id: UserId(2), ..anna.clone() }),
            secrets(2).secret(&User { joined_at: 6, ..anna }),
            secrets(2).secret(&revoked),
        ] {
            assert_ne!(other, secret);
        }
    }
}
