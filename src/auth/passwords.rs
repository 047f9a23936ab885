//! Passwords: slow hashes, few at a time, and the memory of those that were good.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use domain::secret::Secret;
use domain::user::User;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::Mutex;
use sha2::Sha256;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::keys::random;

/// Passwords that are hashed at one time; each takes a core for some 40 ms, and 19 MiB.
const AT_ONCE: usize = 2;
/// Passwords that wait for that. The last of them waits a second or two.
const WAITING_MAX: usize = 64;
/// Bytes of a password, at most; longer ones are wrong.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;
/// Good logins that are remembered at one time.
const REMEMBERED_MAX: usize = 4096;

/// Verified where there is no user, so that an answer takes as long as where there is one. Nobody knows the password.
const DUMMY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$oowYFA8B2OsIlkLOmMMvyg$ofQA08edRwV+BAlMj9GOoQHjIn+JI3cvarnCcFMTEdg";

/// The hash of a password, in PHC form. Takes some 40 ms of a core; blocks.
pub fn hash_password(password: &str) -> Secret {
    let hash = Argon2::default()
        .hash_password(password.as_bytes())
        .expect("the system has randomness, and a password is shorter than four gigabytes");
    Secret::new(hash.to_string())
}

/// More passwords wait to be looked at than may.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// Hashes and compares, on threads that may block.
pub(super) struct Passwords {
    working: Arc<Semaphore>,
    waiting: Semaphore,
    good: Mutex<HashMap<[u8; 32], Instant>>,
    remember_for: Duration,
    /// Made for this process; without it nothing can be learned from what is remembered.
    memory_key: [u8; 32],
}

impl Passwords {
    /// `remember_for` of zero remembers nothing.
    pub(super) fn new(remember_for: Duration) -> Self {
        Self {
            working: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Semaphore::new(WAITING_MAX),
            good: Mutex::new(HashMap::new()),
            remember_for,
            memory_key: random(),
        }
    }

    pub(super) async fn hash(&self, password: String) -> Result<Secret, TooMany> {
        self.work(move || hash_password(&password)).await
    }

    /// Is this the password of that user? As much work for nobody, and for a user without a password, whom none fits.
    pub(super) async fn verify(&self, user: Option<&User>, password: &str) -> Result<bool, TooMany> {
        let real = user.and_then(|it| it.password.as_ref());
        let can_fit = real.is_some() && password.len() <= PASSWORD_BYTES_MAX;
        let hash = real.filter(|_| can_fit).cloned().unwrap_or_else(|| Secret::new(DUMMY));
        let password = if can_fit { password } else { "" }.to_owned();
        let fits = self.work(move || verify(&hash, &password)).await?;
        Ok(fits && can_fit)
    }

    /// Are these two passwords the same one? The time it takes tells neither of them, nor their lengths. An empty one
    /// is no password.
    pub(super) fn equal(&self, one: &str, other: &str) -> bool {
        let mac =
            |text: &str| Hmac::<Sha256>::new_from_slice(&self.memory_key).map(|it| it.chain_update(text));
        let (Ok(one_mac), Ok(other_mac)) = (mac(one), mac(other)) else { return false };
        let is_same = one_mac.verify(&other_mac.finalize().into_bytes()).is_ok();
        is_same && !one.is_empty()
    }

    /// Was this password found good for that user not long ago, and is the user's password the same since?
    pub(super) fn remembers(&self, user: &User, password: &str) -> bool {
        let Some(digest) = self.digest(user, password) else { return false };
        self.good.lock().get(&digest).is_some_and(|until| Instant::now() < *until)
    }

    /// This password is good.
    pub(super) fn remember(&self, user: &User, password: &str) {
        if self.remember_for.is_zero() {
            return;
        }
        let Some(digest) = self.digest(user, password) else { return };
        let now = Instant::now();
        let mut good = self.good.lock();
        if good.len() >= REMEMBERED_MAX {
            good.retain(|_, until| now < *until);
        }
        // Still full: nobody is turned away for that, the next login is slow again.
        if good.len() < REMEMBERED_MAX {
            good.insert(digest, now + self.remember_for);
        }
    }

    /// Changes with the user's password, so that a login with the old one is not found any more.
    fn digest(&self, user: &User, password: &str) -> Option<[u8; 32]> {
        let hash = user.password.as_ref()?.expose();
        let digest = Hmac::<Sha256>::new_from_slice(&self.memory_key)
            .ok()?
            .chain_update(user.id.0.to_be_bytes())
            .chain_update(user.generation.to_be_bytes())
            .chain_update((hash.len() as u64).to_be_bytes())
            .chain_update(hash)
            .chain_update(password);
        Some(digest.finalize().into_bytes().into())
    }

    /// Runs on a thread that may block, when it is its turn.
    async fn work<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Result<R, TooMany> {
        let turn = self.turn().await?;
        // The turn ends with the work, not with the caller, who may have hung up.
        let task = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(turn);
            result
        });
        // A panic has been logged by then; to the caller it is work that was not done.
        task.await.map_err(|_| TooMany)
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, TooMany> {
        if let Ok(turn) = Arc::clone(&self.working).try_acquire_owned() {
            return Ok(turn);
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| TooMany)?;
        Arc::clone(&self.working).acquire_owned().await.map_err(|_| TooMany)
    }
}

/// A hash that cannot be read fits no password.
fn verify(hash: &Secret, password: &str) -> bool {
    PasswordHash::new(hash.expose())
        .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use domain::ids::UserId;
    use domain::user::UserLevel;

    use super::*;

    fn user(password: &str) -> User {
        User {
            password: Some(hash_password(password)),
            ..User::new(UserId(1), "anna", UserLevel::Streamer, 0)
        }
    }

    #[tokio::test]
    async fn a_password_fits_its_own_hash_only() {
        let passwords = Passwords::new(Duration::ZERO);
        let anna = user("right");
        let nobody = User { password: None, ..anna.clone() };
        let broken = User { password: Some(Secret::new("plain text")), ..anna.clone() };
        let long = user(&"x".repeat(PASSWORD_BYTES_MAX + 1));
        for (user, password, fits) in [
            (Some(&anna), "right", true),
            (Some(&anna), "wrong", false),
            (Some(&anna), "", false),
            (None, "right", false),
            (None, "", false),
            (Some(&nobody), "", false),
            (Some(&broken), "plain text", false),
            (Some(&long), &"x".repeat(PASSWORD_BYTES_MAX + 1), false),
        ] {
            assert_eq!(passwords.verify(user, password).await, Ok(fits), "{password:.20}");
        }
    }

    #[test]
    fn an_unknown_user_is_as_much_work_as_one_who_is_known() {
        let real = hash_password("right");
        let work = |hash: &str| hash.rsplitn(3, '$').nth(2).map(str::to_owned);
        assert_eq!(work(DUMMY), work(real.expose()));
        assert!(PasswordHash::new(DUMMY).is_ok());
    }

    #[tokio::test]
    async fn only_so_many_passwords_wait() {
        let passwords = Passwords::new(Duration::ZERO);
        let _turns: Vec<_> =
            (0..AT_ONCE).map(|_| passwords.working.clone().try_acquire_owned().unwrap()).collect();
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(passwords.turn())).collect();
        for it in &mut waiting {
            assert!(futures_util::poll!(it.as_mut()).is_pending());
        }
        assert_eq!(passwords.verify(None, "x").await, Err(TooMany));
        waiting.pop();
        assert!(futures_util::poll!(Box::pin(passwords.turn())).is_pending(), "there is room again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_login_is_remembered_for_a_while_and_forgotten_when_the_password_changes() {
        let passwords = Passwords::new(Duration::from_secs(60));
        let anna = user("right");
        assert!(!passwords.remembers(&anna, "right"));
        passwords.remember(&anna, "right");
        assert!(passwords.remembers(&anna, "right"));
        for other in [
            User { id: UserId(2), ..anna.clone() },
            User { generation: 1, ..anna.clone() },
            user("right"),
            User { password: None, ..anna.clone() },
        ] {
            assert!(!passwords.remembers(&other, "right"));
        }
        assert!(!passwords.remembers(&anna, "wrong"));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(!passwords.remembers(&anna, "right"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded_and_makes_room_with_time() {
        let passwords = Passwords::new(Duration::from_secs(60));
        let anna = user("right");
        for n in 0..REMEMBERED_MAX + 10 {
            passwords.remember(&anna, &n.to_string());
        }
        assert_eq!(passwords.good.lock().len(), REMEMBERED_MAX);
        tokio::time::advance(Duration::from_secs(60)).await;
        passwords.remember(&anna, "right");
        assert_eq!(passwords.good.lock().len(), 1);
    }
}
