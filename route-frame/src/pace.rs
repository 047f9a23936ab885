//! Slows down users who write more often than people do. Each write waits for the disk, and everything that follows the
//! store has to work for it.

use std::collections::HashMap;
use std::time::Duration;

use domain::ids::UserId;
use domain::user::{User, UserLevel};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Number of writes that are not delayed.
const BURST: u32 = 60;
/// Interval at which further writes are not delayed: nobody clicks four times a second for long.
const INTERVAL: Duration = Duration::from_millis(250);
/// Maximum delay of a write.
const DELAY_MAX: Duration = Duration::from_secs(5);
/// Number of users from which those who have not written for a while are forgotten.
const USERS_BEFORE_PURGE: usize = 1_000;

/// Counts the recent writes of each user.
#[derive(Default)]
pub struct WritePace {
    /// Time at which each user has as many writes left as at the start. Bounded by the number of users.
    recovered: Mutex<HashMap<UserId, Instant>>,
}

impl WritePace {
    /// Counts a write, and waits if the user has made too many. Admins never wait.
    pub(super) async fn wait(&self, user: &User) {
        if user.may(UserLevel::Admin) {
            return;
        }
        let delay = self.delay(user.id);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Counts a write and returns its delay.
    fn delay(&self, user: UserId) -> Duration {
        let now = Instant::now();
        let mut recovered = self.recovered.lock();
        if recovered.len() >= USERS_BEFORE_PURGE {
            recovered.retain(|_, until| now < *until);
        }
        let until = recovered.entry(user).or_insert(now);
        let next = (*until).max(now) + INTERVAL;
        let undelayed = now + INTERVAL * BURST;
        // More than the maximum is not remembered.
        *until = next.min(undelayed + DELAY_MAX);
        until.saturating_duration_since(undelayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(pace: &WritePace, user: u32, n: u32) -> Vec<u128> {
        (0..n).map(|_| pace.delay(UserId(user)).as_millis()).collect()
    }

    /// Holds T-load.1.
    #[tokio::test(start_paused = true)]
    async fn excess_writes_are_delayed_by_at_most_five_seconds() {
        let pace = WritePace::default();
        assert_eq!(delays(&pace, 1, BURST), [0; BURST as usize]);
        assert_eq!(delays(&pace, 1, 4), [250, 500, 750, 1000]);
        assert_eq!(delays(&pace, 1, 18)[14..], [4_750, 5_000, 5_000, 5_000]);
        assert_eq!(delays(&pace, 2, 1), [0], "another user");
        tokio::time::advance(DELAY_MAX + INTERVAL).await;
        assert_eq!(delays(&pace, 1, 2), [0, 250], "four writes a second");
        tokio::time::advance(INTERVAL * 2 * BURST).await;
        assert_eq!(delays(&pace, 1, BURST + 1)[BURST as usize - 1..], [0, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn admins_are_never_delayed() {
        let pace = WritePace::default();
        let admin = User::new(UserId(1), "admin", UserLevel::Admin, 0);
        let begun = Instant::now();
        for _ in 0..100 {
            pace.wait(&admin).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn users_who_stopped_writing_are_forgotten() {
        let pace = WritePace::default();
        for n in 0..USERS_BEFORE_PURGE {
            delays(&pace, n as u32, 1);
        }
        tokio::time::advance(INTERVAL * 2).await;
        delays(&pace, 5, 1);
        assert_eq!(pace.recovered.lock().len(), 1);
    }
}
