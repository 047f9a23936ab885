//! The server of each account that is in use; see [`domain::account_addresses`].
//!
//! Live channels, films, refreshes and guides report servers that are dead. The change is stored at once, so that it
//! survives a restart, and live channels load their plans again as after any other commit. Until it is stored, it counts
//! for those that share this value.

use std::collections::HashMap;
use std::sync::Arc;

use domain::account::Account;
use domain::account_addresses::{AddressRecord, HostFailure, HostRequest, addresses_of, at_address};
use domain::ids::AccountId;
use domain::panel::PanelLogin;
use domain::source_url::SourceUrl;
use media::error::{Cause, UpstreamError};
use parking_lot::Mutex;
use storage::{Models, Write};
use tracing::{info, warn};

use crate::clock::now_ms;
use crate::fetch::FetchError;

/// The servers of accounts that are in use. Cheap to clone.
#[derive(Clone, Default)]
pub struct AccountAddresses {
    /// `None` in tests without a store; every account uses its first address then.
    models: Option<Models>,
    /// Changes that are not stored yet, with the number of writes that carry them.
    pending: Arc<Mutex<HashMap<AccountId, (AddressRecord, usize)>>>,
}

impl AccountAddresses {
    /// Uses the records of a store.
    pub(crate) fn new(models: Models) -> Self {
        Self { models: Some(models), pending: Arc::default() }
    }

    /// Returns the address that an account uses instead of its first one.
    pub fn active(&self, account: &Account) -> Option<SourceUrl> {
        if account.further_addresses.is_empty() {
            return None;
        }
        let addresses = addresses_of(account);
        let record = self.record(account.id);
        record.in_use(&addresses).filter(|it| Some(*it) != addresses.first()).cloned()
    }

    /// Returns an address of the provider as it is at the server in use.
    pub(crate) fn place(&self, account: &Account, url: &SourceUrl) -> SourceUrl {
        // Most accounts have one address.
        if account.further_addresses.is_empty() {
            return url.clone();
        }
        let addresses = addresses_of(account);
        let record = self.record(account.id);
        record.in_use(&addresses).map_or_else(|| url.clone(), |it| at_address(url, &addresses, it))
    }

    /// Returns a login at the panel at the server in use.
    pub(crate) fn login(&self, account: &Account, login: &PanelLogin) -> PanelLogin {
        PanelLogin { server: self.place(account, &login.server), ..login.clone() }
    }

    /// Returns whether an account uses this address.
    pub(crate) fn uses(&self, account: &Account, address: &SourceUrl) -> bool {
        self.record(account.id).in_use(&addresses_of(account)) == Some(address)
    }

    /// Returns the address that an account uses, if it has several.
    pub(crate) fn in_use(&self, account: &Account) -> Option<SourceUrl> {
        self.record(account.id).in_use(&addresses_of(account)).cloned()
    }

    /// Returns the address that a refresh of an account asks first; `None` for the only one.
    pub(crate) fn for_refresh(&self, account: &Account) -> Option<SourceUrl> {
        if account.further_addresses.is_empty() {
            return None;
        }
        let addresses = addresses_of(account);
        self.record(account.id).for_refresh(&addresses, now_ms()).cloned()
    }

    /// Notes that a stream or film at `url` failed. Returns whether the account has changed to another address.
    pub(crate) fn stream_failed(&self, account: AccountId, url: &SourceUrl, error: &UpstreamError) -> bool {
        let failure = host_failure(error);
        let Some(models) = &self.models else { return false };
        let accounts = models.accounts.load();
        let Some(account) = accounts.get(account.0).filter(|it| !it.further_addresses.is_empty()) else {
            return false;
        };
        failure.is_host_dead(HostRequest::Stream) && self.failed(account, url, error.label())
    }

    /// Notes that the request for a list at `url` failed. Returns whether the account uses another address than this one.
    pub(crate) fn list_failed(&self, account: &Account, url: &SourceUrl, error: &FetchError) -> bool {
        if account.further_addresses.is_empty() {
            return false;
        }
        let failure = error.host_failure(url.host().unwrap_or_default());
        if !failure.is_host_dead(HostRequest::List) {
            return false;
        }
        self.failed(account, url, label(failure));
        let addresses = addresses_of(account);
        self.record(account.id).in_use(&addresses) != base_of(url, &addresses)
    }

    /// Notes that the request for a guide at `url` failed. Returns whether the guide is at another address now.
    pub(crate) fn guide_failed(&self, account: &Account, url: &SourceUrl, error: &FetchError) -> bool {
        if account.further_addresses.is_empty() {
            return false;
        }
        let failure = error.host_failure(url.host().unwrap_or_default());
        if failure.is_host_dead(HostRequest::Stream) {
            self.failed(account, url, label(failure));
        }
        self.place(account, url) != *url
    }

    /// Notes that a refresh has asked an address that is not in use, and that no list came from it.
    pub(crate) fn trial_failed(&self, account: &Account, address: &SourceUrl) {
        self.failed(account, address, label(HostFailure::Other));
    }

    /// Notes that the server at `address` has answered a refresh.
    pub(crate) fn answered(&self, account: &Account, address: &SourceUrl) {
        let addresses = addresses_of(account);
        let (used, now) = (address.clone(), now_ms());
        let returns = self.change(account, move |it| it.answered(&addresses, &used, now));
        if returns {
            info!(account.id = %account.id, "account \"{}\" uses its first address again", account.name);
        }
    }

    fn failed(&self, account: &Account, url: &SourceUrl, cause: &'static str) -> bool {
        let addresses = addresses_of(account);
        let Some(used) = base_of(url, &addresses).cloned() else { return false };
        let (all, now) = (addresses.clone(), now_ms());
        let is_changed = self.change(account, move |it| it.failed(&all, &used, cause, now));
        if is_changed && let Some(active) = self.record(account.id).in_use(&addresses) {
            warn!(
                account.id = %account.id, cause,
                "the server of account \"{}\" is dead, changing to its address {active}", account.name
            );
        }
        is_changed
    }

    fn record(&self, account: AccountId) -> AddressRecord {
        let pending = self.pending.lock().get(&account).map(|it| it.0.clone());
        pending.unwrap_or_else(|| self.stored(account))
    }

    fn stored(&self, account: AccountId) -> AddressRecord {
        let stored = self.models.as_ref().and_then(|it| it.account_addresses.load().get(account.0).cloned());
        stored.map_or_else(|| AddressRecord::new(account), |it| (*it).clone())
    }

    /// Applies a change to the record of an account, here at once and in the store soon. Returns what the change returned.
    fn change(
        &self,
        account: &Account,
        change: impl Fn(&mut AddressRecord) -> bool + Send + 'static,
    ) -> bool {
        let Some(models) = self.models.clone() else { return false };
        let id = account.id;
        let is_changed = {
            let mut pending = self.pending.lock();
            let (before, n_writes) = pending.get(&id).cloned().unwrap_or_else(|| (self.stored(id), 0));
            let mut record = before.clone();
            let is_changed = change(&mut record);
            if record == before {
                return is_changed;
            }
            pending.insert(id, (record, n_writes + 1));
            is_changed
        };
        let pending = self.pending.clone();
        tokio::spawn(async move {
            let written = models.store.write(move |write: &mut Write<'_>| {
                if write.get::<Account>(id.0)?.is_none() {
                    return Ok(());
                }
                // Others may have written since; each change is applied to what is stored.
                let mut stored = write.get(id.0)?.unwrap_or_else(|| AddressRecord::new(id));
                change(&mut stored);
                write.put(&stored)
            });
            let written: Result<(), storage::Error> = written.await;
            if let Err(error) = written {
                warn!(account.id = %id, "failed to store the address that an account uses: {error}");
            }
            let mut pending = pending.lock();
            if let Some((_, n_writes)) = pending.get_mut(&id) {
                *n_writes -= 1;
                if *n_writes == 0 {
                    pending.remove(&id);
                }
            }
        });
        is_changed
    }
}

/// Returns the address of an account that `url` is at.
fn base_of<'a>(url: &SourceUrl, addresses: &'a [SourceUrl]) -> Option<&'a SourceUrl> {
    let is_at = |base: &&SourceUrl| at_address(url, addresses, base) == *url;
    let same_host = addresses.iter().filter(|it| is_host_of(it, url));
    same_host.into_iter().find(is_at)
}

fn is_host_of(base: &SourceUrl, url: &SourceUrl) -> bool {
    base.host().zip(url.host()).is_some_and(|(base, host)| base.eq_ignore_ascii_case(host))
}

fn host_failure(error: &UpstreamError) -> HostFailure {
    if error.is_behind_redirect() {
        return HostFailure::Other;
    }
    match error.cause() {
        Cause::Dns => HostFailure::NoAddress,
        Cause::Connect(_) => HostFailure::NoConnection,
        Cause::ConnectTimeout => HostFailure::TimedOut,
        Cause::Tls(_) => HostFailure::Tls,
        Cause::ProxyTarget(_) => HostFailure::NotReachedByProxy,
        Cause::Status(status) => HostFailure::Status(*status),
        _ => HostFailure::Other,
    }
}

/// Returns the label of a failure, as that of an upstream error.
fn label(failure: HostFailure) -> &'static str {
    match failure {
        HostFailure::NoAddress => "dns",
        HostFailure::NoConnection => "connect",
        HostFailure::TimedOut => "connect_timeout",
        HostFailure::Tls => "tls",
        HostFailure::NotReachedByProxy => "proxy_target",
        HostFailure::Status(_) => "status",
        HostFailure::Other => "other",
    }
}
