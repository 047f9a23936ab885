//! The lists of all repositories together: fetched at the same time, and from one that does not answer only after a pause.

use std::collections::HashMap;
use std::time::Duration;

use actors::now_ms;
use domain::plugin::PluginKey;
use domain::plugin::repository::{OfferedPlugin, PluginRepository};
use futures_util::StreamExt;
use futures_util::stream::iter;
use parking_lot::Mutex;

use super::repositories::Repositories;

/// Maximum number of lists that are fetched at the same time.
const FETCHES_MAX: usize = 8;
/// Maximum time for one of them, while somebody waits for all.
const FETCH_TIMEOUT: Duration = Duration::from_secs(15);
/// Age from which on a list is fetched again, in milliseconds: six hours.
const AGE_MAX_MS: i64 = 6 * 3_600_000;
/// Time after which a repository that did not answer is asked again, in milliseconds: five minutes.
const PAUSE_MS: i64 = 5 * 60_000;

/// A plugin that a repository offers.
#[derive(Clone, Debug)]
pub struct Offer {
    pub repository: PluginRepository,
    pub plugin: OfferedPlugin,
    /// The installed plugin that came from it.
    pub installed: Option<PluginKey>,
}

/// The repositories whose lists could not be fetched, with the time of that in milliseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Failures {
    at: Mutex<HashMap<u32, i64>>,
    /// Held while lists are fetched, so that a second request waits for them instead of asking, too.
    fetching: tokio::sync::Mutex<()>,
}

impl Failures {
    /// Notes whether the list of a repository could be fetched now.
    pub(super) fn note(&self, id: u32, is_failed: bool) {
        match is_failed {
            true => drop(self.at.lock().insert(id, now_ms())),
            false => self.forget(id),
        }
    }

    pub(super) fn forget(&self, id: u32) {
        self.at.lock().remove(&id);
    }

    /// Returns whether the list of a repository, fetched at this time, is to be fetched at another one.
    fn is_due(&self, id: u32, fetched_at: Option<i64>, now: i64) -> bool {
        let is_within = |since: Option<i64>, age: i64| since.is_some_and(|it| (0..age).contains(&(now - it)));
        !is_within(fetched_at, AGE_MAX_MS) && !is_within(self.at.lock().get(&id).copied(), PAUSE_MS)
    }
}

impl Repositories {
    /// Lists the plugins of all repositories, in the order in which these were added. Lists that are missing or old are
    /// fetched; a repository that does not answer has those of its earlier list.
    pub async fn offers(&self) -> Vec<Offer> {
        let fetching = self.failures.fetching.lock().await;
        let now = now_ms();
        let is_due = |it: &u32| self.failures.is_due(*it, self.fetched_at(*it), now);
        let due: Vec<u32> = self.stored().repositories.iter().map(|it| it.id).filter(is_due).collect();
        // Errors are noted with the repositories.
        let fetches: Vec<_> = due.into_iter().map(|it| self.refresh_within(it, FETCH_TIMEOUT)).collect();
        iter(fetches).buffer_unordered(FETCHES_MAX).for_each(|_| std::future::ready(())).await;
        drop(fetching);
        let stored = self.stored();
        let mut offers = Vec::new();
        for repository in &stored.repositories {
            offers.extend(self.plugins(repository.id).into_iter().map(|plugin| Offer {
                repository: repository.clone(),
                installed: stored.installed_as(repository.id, &plugin.slug).cloned(),
                plugin,
            }));
        }
        offers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_fetched_when_it_is_missing_or_old_and_after_a_failure_only_after_a_pause() {
        let now = now_ms();
        let check = |fetched_at: Option<i64>, failed_at: Option<i64>, expected: bool| {
            let failures = Failures::default();
            failures.at.lock().extend(failed_at.map(|it| (1, it)));
            assert_eq!(failures.is_due(1, fetched_at, now), expected, "{fetched_at:?} {failed_at:?}");
            assert!(failures.is_due(2, None, now), "others do not wait");
        };
        check(None, None, true);
        check(Some(now), None, false);
        check(Some(now - AGE_MAX_MS), None, true);
        check(None, Some(now), false);
        check(Some(now - AGE_MAX_MS), Some(now - PAUSE_MS + 1), false);
        check(Some(now - AGE_MAX_MS), Some(now - PAUSE_MS), true);
        // The clock of the machine was ahead.
        check(Some(now + 1_000), None, true);
        check(None, Some(now + 1_000), true);
    }

    #[test]
    fn an_answer_ends_the_pause() {
        let failures = Failures::default();
        failures.note(1, true);
        assert!(!failures.is_due(1, None, now_ms()));
        failures.note(1, false);
        assert!(failures.is_due(1, None, now_ms()));
    }
}
