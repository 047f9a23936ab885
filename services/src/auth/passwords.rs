//! Passwords: slow hashes, few at a time, and a cache of verified passwords.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use argon2::PasswordVerifier;
use argon2::password_hash::phc::PasswordHash;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::django_hash::DjangoHash;
use domain::secret::Secret;
use domain::user::User;
use hmac::{Hmac, KeyInit, Mac};
use media::spawn_blocking;
use parking_lot::Mutex;
use sha2::Sha256;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::hash_memory::HashMemory;
use super::keys::random;

/// Maximum number of passwords hashed at the same time that are not from known devices: half of the cores, at most this
/// many. Each takes one core for about 40 ms, and 19 MiB, which are kept for the next one. One more is hashed for known
/// devices.
const HASHING_NEW_MAX: usize = 4;
/// Maximum number of passwords waiting to be hashed, in each lane but [`Lane::Delayed`]: all apps of a large installation
/// that start at the same moment. With one core, the last of them waits for about 40 s.
const WAITING_MAX: usize = 1024;
/// The same for [`Lane::Delayed`].
const WAITING_DELAYED_MAX: usize = 64;
/// Longest wait. Most apps show an error after a refusal and none while they wait.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);
/// Maximum length of a password, in bytes. Longer ones are wrong.
pub const PASSWORD_BYTES_MAX: usize = 1024;
/// Length of the hash in a hash of Django, in bytes.
const DJANGO_HASH_BYTES: usize = 32;
/// Maximum number of cached logins.
const CACHED_MAX: usize = 4096;

/// Verified for unknown users, so that the response takes as long as for known ones. The password is not known.
const DUMMY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$oowYFA8B2OsIlkLOmMMvyg$ofQA08edRwV+BAlMj9GOoQHjIn+JI3cvarnCcFMTEdg";

/// Hashes a password and returns the hash in PHC format. Blocks for about 40 ms.
pub fn hash_password(password: &str) -> Secret {
    hash_in(&HashMemory::new(0), password)
}

fn hash_in(memory: &HashMemory, password: &str) -> Secret {
    let hash = memory.hash(password.as_bytes());
    let hash =
        hash.expect("the system provides random bytes and memory, and a password is shorter than 4 GiB");
    Secret::new(hash.to_string())
}

/// A queue of passwords to be hashed. Each has its own places, so that guessing leaves those of the others free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Logins from devices from which the user has logged in before, and new passwords of users.
    Known,
    /// Logins from other devices.
    New,
    /// Those of them that were delayed, because logins of the same name or from the same address failed.
    Delayed,
}

/// Too many passwords are waiting to be hashed, or this one has waited too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// Allows to hash one password.
struct Permit {
    _working: OwnedSemaphorePermit,
    _of_new: Option<OwnedSemaphorePermit>,
}

/// Hashes and verifies passwords on blocking threads.
pub(super) struct Passwords {
    working: Arc<Semaphore>,
    /// Leaves a core to known devices, and to playback while nobody but guessers logs in.
    working_new: Arc<Semaphore>,
    waiting_known: Semaphore,
    waiting_new: Semaphore,
    waiting_delayed: Semaphore,
    memory: Arc<HashMemory>,
    verified: Mutex<HashMap<[u8; 32], Instant>>,
    cache_for: Duration,
    /// Random key of this process. Without it, the cached digests reveal nothing.
    cache_key: [u8; 32],
}

impl Passwords {
    /// A `cache_for` of zero disables the cache.
    pub(super) fn new(cache_for: Duration) -> Self {
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with(cache_for, (n_cores / 2).clamp(1, HASHING_NEW_MAX))
    }

    /// Hashes this many passwords at the same time for devices that are not known.
    fn with(cache_for: Duration, n_new: usize) -> Self {
        Self {
            working: Arc::new(Semaphore::new(n_new + 1)),
            working_new: Arc::new(Semaphore::new(n_new)),
            waiting_known: Semaphore::new(WAITING_MAX),
            waiting_new: Semaphore::new(WAITING_MAX),
            waiting_delayed: Semaphore::new(WAITING_DELAYED_MAX),
            memory: Arc::new(HashMemory::new(n_new + 1)),
            verified: Mutex::new(HashMap::new()),
            cache_for,
            cache_key: random(),
        }
    }

    pub(super) async fn hash(&self, password: String) -> Result<Secret, TooMany> {
        let memory = Arc::clone(&self.memory);
        self.work(Lane::Known, move || hash_in(&memory, &password)).await
    }

    /// Returns true if this is the password of the user. An unknown user, or one without a password, takes equally long
    /// and always fails.
    pub(super) async fn verify(
        &self,
        lane: Lane,
        user: Option<&User>,
        password: &str,
    ) -> Result<bool, TooMany> {
        let real = user.and_then(|it| it.password.as_ref());
        let can_fit = real.is_some() && password.len() <= PASSWORD_BYTES_MAX;
        let hash = real.filter(|_| can_fit).cloned().unwrap_or_else(|| Secret::new(DUMMY));
        let password = if can_fit { password } else { "" }.to_owned();
        let memory = Arc::clone(&self.memory);
        let fits = self.work(lane, move || verify(&memory, &hash, &password)).await?;
        Ok(fits && can_fit)
    }

    /// Compares two passwords in constant time, so that the duration reveals neither of them nor their lengths. Empty
    /// passwords never match.
    pub(super) fn equal(&self, one: &str, other: &str) -> bool {
        let mac =
            |text: &str| Hmac::<Sha256>::new_from_slice(&self.cache_key).map(|it| it.chain_update(text));
        let (Ok(one_mac), Ok(other_mac)) = (mac(one), mac(other)) else { return false };
        let is_same = one_mac.verify(&other_mac.finalize().into_bytes()).is_ok();
        is_same && !one.is_empty()
    }

    /// Returns true if this password was recently verified and the password of the user has not changed since.
    pub(super) fn is_cached(&self, user: &User, password: &str) -> bool {
        let Some(digest) = self.digest(user, password) else { return false };
        self.verified.lock().get(&digest).is_some_and(|until| Instant::now() < *until)
    }

    /// Caches a verified password.
    pub(super) fn cache(&self, user: &User, password: &str) {
        if self.cache_for.is_zero() {
            return;
        }
        let Some(digest) = self.digest(user, password) else { return };
        let now = Instant::now();
        let mut verified = self.verified.lock();
        if verified.len() >= CACHED_MAX {
            verified.retain(|_, until| now < *until);
        }
        // If the cache is still full, the next login is only slower.
        if verified.len() < CACHED_MAX {
            verified.insert(digest, now + self.cache_for);
        }
    }

    /// Includes the stored hash, so that a login with the old password is no longer found after a change.
    fn digest(&self, user: &User, password: &str) -> Option<[u8; 32]> {
        let hash = user.password.as_ref()?.expose();
        let digest = Hmac::<Sha256>::new_from_slice(&self.cache_key)
            .ok()?
            .chain_update(user.id.0.to_be_bytes())
            .chain_update(user.generation.to_be_bytes())
            .chain_update((hash.len() as u64).to_be_bytes())
            .chain_update(hash)
            .chain_update(password);
        Some(digest.finalize().into_bytes().into())
    }

    /// Runs `work` on a blocking thread, after waiting for a permit.
    async fn work<R: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, TooMany> {
        let permit = self.permit(lane).await?;
        // The permit is held until the work ends, even if the caller disconnects.
        let task = spawn_blocking(move || {
            let result = work();
            drop(permit);
            result
        });
        // A panic has been logged already.
        task.await.map_err(|_| TooMany)
    }

    async fn permit(&self, lane: Lane) -> Result<Permit, TooMany> {
        let waiting = match lane {
            Lane::Known => &self.waiting_known,
            Lane::New => &self.waiting_new,
            Lane::Delayed => &self.waiting_delayed,
        };
        let _waiting = waiting.try_acquire().map_err(|_| TooMany)?;
        let acquire = async |of: &Arc<Semaphore>| Arc::clone(of).acquire_owned().await.map_err(|_| TooMany);
        let permit = async {
            let of_new = match lane {
                Lane::Known => None,
                Lane::New | Lane::Delayed => Some(acquire(&self.working_new).await?),
            };
            Ok(Permit { _working: acquire(&self.working).await?, _of_new: of_new })
        };
        timeout(WAIT_MAX, permit).await.unwrap_or(Err(TooMany))
    }
}

/// An unreadable hash matches no password.
fn verify(memory: &HashMemory, hash: &Secret, password: &str) -> bool {
    if let Some(hash) = DjangoHash::parse(hash.expose()) {
        return verify_django(hash, password);
    }
    PasswordHash::new(hash.expose())
        .is_ok_and(|hash| memory.verify_password(password.as_bytes(), &hash).is_ok())
}

/// Verifies a password against an imported hash.
fn verify_django(hash: DjangoHash<'_>, password: &str) -> bool {
    let Ok(expected) = STANDARD.decode(hash.hash) else { return false };
    let mut derived = [0; DJANGO_HASH_BYTES];
    pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), hash.salt.as_bytes(), hash.iterations, &mut derived);
    // Takes the same time wherever they differ.
    let difference = derived.iter().zip(&expected).fold(0, |all, (one, other)| all | (one ^ other));
    expected.len() == derived.len() && difference == 0
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
    async fn a_password_matches_only_its_own_hash() {
        let passwords = Passwords::new(Duration::ZERO);
        let anna = user("right");
        let without_password = User { password: None, ..anna.clone() };
        let broken = User { password: Some(Secret::new("plain text")), ..anna.clone() };
        let long = user(&"x".repeat(PASSWORD_BYTES_MAX + 1));
        for (user, password, fits) in [
            (Some(&anna), "right", true),
            (Some(&anna), "wrong", false),
            (Some(&anna), "", false),
            (None, "right", false),
            (None, "", false),
            (Some(&without_password), "", false),
            (Some(&broken), "plain text", false),
            (Some(&long), &"x".repeat(PASSWORD_BYTES_MAX + 1), false),
        ] {
            assert_eq!(passwords.verify(Lane::New, user, password).await, Ok(fits), "{password:.20}");
        }
    }

    // Computed with Python's hashlib.
    #[test]
    fn a_password_that_was_hashed_by_django_is_verified() {
        let verify = |hash: &str, password| verify(&HashMemory::new(0), &Secret::new(hash), password);
        let hash = "pbkdf2_sha256$1000$NaCl5alt$MlmomxqXGQhInoXk/NqysBBV10xayKUH0R/SXYbKjEA=";
        assert!(verify(hash, "correct horse"));
        for (hash, password) in [
            (hash.to_owned(), "wrong"),
            (hash.to_owned(), ""),
            (hash.replace("$1000$", "$1001$"), "correct horse"),
            (hash.replace("NaCl", "nacl"), "correct horse"),
            (hash.replace('=', ""), "correct horse"),
            ("pbkdf2_sha256$1000$NaCl5alt$AAAA".to_owned(), "correct horse"),
            ("pbkdf2_sha256$4000000000$NaCl5alt$AAAA".to_owned(), "correct horse"),
        ] {
            assert!(!verify(&hash, password), "{hash} {password}");
        }
    }

    #[test]
    fn an_unknown_user_costs_as_much_work_as_a_known_one() {
        let real = hash_password("right");
        let work = |hash: &str| hash.rsplitn(3, '$').nth(2).map(str::to_owned);
        assert_eq!(work(DUMMY), work(real.expose()));
        assert!(PasswordHash::new(DUMMY).is_ok());
    }

    /// Each failed login took 19 MiB for good, until every thread that can hash had its own: 375 MiB after twenty of them.
    /// Holds T-guess.1.
    #[tokio::test(flavor = "multi_thread")]
    async fn passwords_are_hashed_in_the_same_memory_again() {
        let passwords = Arc::new(Passwords::with(Duration::ZERO, 1));
        let anna = Arc::new(user("right"));
        let tasks = (0..30).map(|n| {
            let (passwords, anna) = (Arc::clone(&passwords), Arc::clone(&anna));
            tokio::spawn(async move {
                match n % 5 {
                    0 => drop(passwords.hash(n.to_string()).await.unwrap()),
                    1 => assert_eq!(passwords.verify(Lane::Known, Some(&anna), "right").await, Ok(true)),
                    2 => assert_eq!(passwords.verify(Lane::Delayed, None, "wrong").await, Ok(false)),
                    _ => assert_eq!(passwords.verify(Lane::New, Some(&anna), "wrong").await, Ok(false)),
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let n_made = passwords.memory.n_made();
        assert!((1..=2).contains(&n_made), "{n_made} areas of memory for two passwords at the same time");
    }

    #[tokio::test]
    async fn the_number_of_waiting_passwords_is_limited() {
        let passwords = Passwords::new(Duration::ZERO);
        let n_working = passwords.working.available_permits() as u32;
        let _permits = passwords.working.clone().try_acquire_many_owned(n_working).unwrap();
        for (lane, places) in [
            (Lane::Delayed, WAITING_DELAYED_MAX),
            // Each lane has places of its own.
            (Lane::New, WAITING_MAX),
            (Lane::Known, WAITING_MAX),
        ] {
            let mut waiting: Vec<_> = (0..places).map(|_| Box::pin(passwords.permit(lane))).collect();
            for it in &mut waiting {
                assert!(futures_util::poll!(it.as_mut()).is_pending(), "{lane:?}");
            }
            assert_eq!(passwords.verify(lane, None, "x").await, Err(TooMany), "{lane:?}");
            waiting.pop();
            let next = Box::pin(passwords.permit(lane));
            assert!(futures_util::poll!(next).is_pending(), "a waiting place of {lane:?} is free again");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let passwords = Passwords::new(Duration::ZERO);
        let n_working = passwords.working.available_permits() as u32;
        let _permits = passwords.working.clone().try_acquire_many_owned(n_working).unwrap();
        let begun = Instant::now();
        assert_eq!(passwords.verify(Lane::New, None, "x").await, Err(TooMany));
        assert_eq!(begun.elapsed(), WAIT_MAX);
    }

    /// Holds T-guess.2.
    #[tokio::test]
    async fn known_devices_wait_for_one_guess_at_most() {
        let passwords = Passwords::with(Duration::ZERO, 1);
        let guess = passwords.permit(Lane::New).await;
        let mut next = Box::pin(passwords.permit(Lane::New));
        assert!(guess.is_ok() && futures_util::poll!(next.as_mut()).is_pending());
        assert!(passwords.permit(Lane::Known).await.is_ok());
        drop(guess);
        assert!(next.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_verified_password_is_cached_until_it_expires_or_the_password_changes() {
        let passwords = Passwords::new(Duration::from_secs(60));
        let anna = user("right");
        assert!(!passwords.is_cached(&anna, "right"));
        passwords.cache(&anna, "right");
        assert!(passwords.is_cached(&anna, "right"));
        for other in [
            User { id: UserId(2), ..anna.clone() },
            User { generation: 1, ..anna.clone() },
            user("right"),
            User { password: None, ..anna.clone() },
        ] {
            assert!(!passwords.is_cached(&other, "right"));
        }
        assert!(!passwords.is_cached(&anna, "wrong"));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(!passwords.is_cached(&anna, "right"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_cache_is_bounded_and_drops_expired_entries() {
        let passwords = Passwords::new(Duration::from_secs(60));
        let anna = user("right");
        for n in 0..CACHED_MAX + 10 {
            passwords.cache(&anna, &n.to_string());
        }
        assert_eq!(passwords.verified.lock().len(), CACHED_MAX);
        tokio::time::advance(Duration::from_secs(60)).await;
        passwords.cache(&anna, "right");
        assert_eq!(passwords.verified.lock().len(), 1);
    }
}
