//! The server of each account that is in use; see [`domain::account_addresses`].
//!
//! Live channels, films, refreshes and guides report servers that are dead. The change is stored at once, so that it
//! survives a restart, and live channels load their plans again as after any other commit. Until it is stored, it counts
//! for those that share this value.
//!
//! The form of the addresses of a panel's live streams is found out and stored in the same way: a stream that the panel does
//! not serve in the form in use is asked for in the others, once a day for each account.
//!
//! A node of a cluster that does not write the configuration keeps what it has learnt in memory, and passes it on to the one
//! that does; the newest of both counts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::account::Account;
use domain::account_addresses::{
    AddressRecord, FORMS_PERIOD_MS, HostFailure, HostRequest, addresses_of, at_address,
};
use domain::ids::AccountId;
use domain::panel::{LiveForm, PanelLogin};
use domain::plan::{Candidate, TrialAddresses};
use domain::portal::PortalPlace;
use domain::source_url::SourceUrl;
use media::error::{Cause, UpstreamError};
use media::source::OtherAddresses;
use parking_lot::Mutex;
use storage::{Models, Write};
use tokio::sync::watch;
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
    /// Changes that this node of a cluster may not store; at most one record for each account.
    learnt: watch::Sender<BTreeMap<AccountId, AddressRecord>>,
    /// The form in which live streams of a panel played last, and when, in milliseconds since 1970; one for each account.
    played: Arc<Mutex<HashMap<AccountId, (LiveForm, i64)>>>,
    /// The accounts of which a stream is asked for in other forms now.
    searching: Arc<Mutex<HashSet<AccountId>>>,
}

impl AccountAddresses {
    /// Uses the records of a store.
    pub(crate) fn new(models: Models) -> Self {
        Self { models: Some(models), ..Self::default() }
    }

    /// Returns what this node of a cluster has learnt and may not store, and follows it.
    pub fn learnt(&self) -> watch::Receiver<BTreeMap<AccountId, AddressRecord>> {
        self.learnt.subscribe()
    }

    /// Forgets what the node that writes the configuration has taken, unless something newer was learnt meanwhile.
    pub fn forget(&self, taken: &[AddressRecord]) {
        self.learnt.send_if_modified(|learnt| {
            let before = learnt.len();
            learnt.retain(|_, it| !taken.contains(it));
            learnt.len() != before
        });
    }

    /// Stores what a node of a cluster has learnt, as the node that writes the configuration. What is known already, or more
    /// newly, stays.
    ///
    /// # Errors
    /// The store cannot be written, or this node does not write the configuration.
    pub async fn take(&self, learnt: Vec<AddressRecord>) -> Result<(), storage::Error> {
        let Some(models) = &self.models else { return Ok(()) };
        let taking = models.store.write(move |write: &mut Write<'_>| {
            for record in learnt {
                let id = record.account.0;
                let stored = write.get::<AddressRecord>(id)?;
                let merged = match stored.clone() {
                    Some(stored) => stored.merge(record),
                    None => record,
                };
                if stored.as_ref() != Some(&merged) && write.get::<Account>(id)?.is_some() {
                    write.put(&merged)?;
                }
            }
            Ok(())
        });
        taking.await
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

    /// Returns the portal of an account at the server in use.
    pub(crate) fn portal_place(&self, account: &Account) -> Option<PortalPlace> {
        let PortalPlace { server, endpoint } = account.list.portal()?;
        Some(PortalPlace {
            server: self.place(account, server),
            endpoint: endpoint.as_ref().map(|it| self.place(account, it)),
        })
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

    /// Returns the form of the addresses of live streams of a panel account.
    pub(crate) fn live_form(&self, account: &Account) -> LiveForm {
        let login = self.models.as_ref().and_then(|models| {
            let infos = models.profile_infos.load();
            LiveForm::from_login(&infos.get(account.default_profile()?.id.0)?.user_info)
        });
        LiveForm::in_force(account.live_form, self.record(account.id).live_form, login).0
    }

    /// Returns how a trial uses the addresses of an account.
    pub(crate) fn for_trial(&self, account: &Account) -> TrialAddresses {
        TrialAddresses { active: self.active(account), live_form: self.live_form(account) }
    }

    /// Returns the other forms of the address of a candidate, if they may be tried.
    pub(crate) fn other_forms(&self, candidate: &Candidate) -> Option<Arc<dyn OtherAddresses>> {
        Some(Arc::new(OtherForms {
            addresses: self.clone(),
            account: candidate.pool.account,
            url: candidate.url.clone(),
            form: candidate.live_form?,
            is_searching: AtomicBool::new(false),
        }))
    }

    /// Returns the forms to try for a stream that the panel does not serve in this form, in this order, and whether this is a
    /// search, which the caller ends. They are tried once a day, and only while no stream of the account plays in the form in
    /// force: a stream that is off air is refused as well.
    fn forms_to_try(&self, account: AccountId, refused: LiveForm) -> (Vec<LiveForm>, bool) {
        let account = self.account(account).filter(|it| it.live_form.is_none());
        let Some(account) = account else { return (Vec::new(), false) };
        let in_force = self.live_form(&account);
        if in_force != refused {
            // Another stream has found it since the plan was made.
            return (vec![in_force], false);
        }
        let now = now_ms();
        let played = self.played.lock().get(&account.id).copied();
        let plays = played.is_some_and(|(form, at)| {
            form == refused && (0..FORMS_PERIOD_MS).contains(&now.saturating_sub(at))
        });
        // Two streams never search at the same time.
        if plays || !self.searching.lock().insert(account.id) {
            return (Vec::new(), false);
        }
        if !self.record(account.id).may_try_forms(now) {
            self.searching.lock().remove(&account.id);
            return (Vec::new(), false);
        }
        info!(
            account.id = %account.id,
            "the panel of account \"{}\" does not serve an address with {refused}, trying others", account.name
        );
        (refused.others().collect(), true)
    }

    /// Notes that a stream of an account plays in no other form.
    fn no_form_found(&self, account: AccountId) {
        let (account, now) = (self.account(account), now_ms());
        if let Some(account) = account {
            self.change(&account, move |it| {
                it.forms_tried(now);
                true
            });
        }
    }

    fn account(&self, id: AccountId) -> Option<Arc<Account>> {
        self.models.as_ref()?.accounts.load().get(id.0).cloned()
    }

    /// Notes that a live stream of an account plays in this form.
    fn played_in_form(&self, account: AccountId, form: LiveForm) {
        let Some(account) = self.account(account) else { return };
        let now = now_ms();
        self.played.lock().insert(account.id, (form, now));
        if self.live_form(&account) == form {
            return;
        }
        self.change(&account, move |it| {
            it.form_found(form, now);
            true
        });
        info!(
            account.id = %account.id,
            "live streams of account \"{}\" are asked for at addresses with {form} from now on", account.name
        );
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
        let stored = stored.map(|it| AddressRecord::clone(&it));
        let learnt = self.learnt.borrow().get(&account).cloned();
        let newest = [stored, learnt].into_iter().flatten().reduce(AddressRecord::merge);
        newest.unwrap_or_else(|| AddressRecord::new(account))
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
        let (pending, learnt) = (self.pending.clone(), self.learnt.clone());
        crate::tasks::spawn(async move {
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
            let mut pending = pending.lock();
            match written {
                Ok(()) => {}
                Err(storage::Error::NotWriter) => {
                    if let Some((record, _)) = pending.get(&id) {
                        learnt.send_modify(|it| drop(it.insert(id, record.clone())));
                    }
                }
                Err(error) => {
                    warn!(account.id = %id, "failed to store the address that an account uses: {error}");
                }
            }
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

/// The other forms of the address of a live stream of a panel.
struct OtherForms {
    addresses: AccountAddresses,
    account: AccountId,
    url: SourceUrl,
    /// The form of `url`.
    form: LiveForm,
    /// This opening tries other forms, and has not ended.
    is_searching: AtomicBool,
}

impl OtherAddresses for OtherForms {
    fn after_refusal(&self) -> Vec<String> {
        let (forms, is_search) = self.addresses.forms_to_try(self.account, self.form);
        self.is_searching.store(is_search, Ordering::Relaxed);
        forms.into_iter().filter_map(|it| Some(it.applied_to(&self.url)?.expose().to_owned())).collect()
    }

    fn opened(&self, url: &str) {
        if let Some(form) = LiveForm::from_url(&SourceUrl::new(url)) {
            self.addresses.played_in_form(self.account, form);
        }
    }

    fn failed(&self) {
        if self.is_searching.load(Ordering::Relaxed) {
            self.addresses.no_form_found(self.account);
        }
    }
}

/// A search that is broken off, because the viewer has left for example, does not count.
impl Drop for OtherForms {
    fn drop(&mut self) {
        if *self.is_searching.get_mut() {
            self.addresses.searching.lock().remove(&self.account);
        }
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
        Cause::Tls(_) | Cause::Certificate(_) => HostFailure::Tls,
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

#[cfg(test)]
mod tests {
    use domain::account::{AccountProfile, PlaylistLocation};
    use domain::account_addresses::AddressFailure;
    use domain::ids::ProfileId;
    use domain::secret::Secret;
    use storage::Store;
    use tokio::task::spawn_blocking;
    use uuid::Uuid;

    use super::*;

    const ID: AccountId = AccountId(1);

    /// A store with an account of two servers.
    async fn models() -> Models {
        let models = spawn_blocking(|| {
            let models = Models::new(Store::temporary(storage::records::schema()).unwrap()).unwrap();
            let profile = AccountProfile::default_of(ProfileId(1), "Home", 1);
            let list = PlaylistLocation::Url(SourceUrl::new("http://a.example/list.m3u"));
            let further_addresses = vec![SourceUrl::new("http://b.example")];
            let account = Account { further_addresses, ..Account::new(ID, "Home", list, profile, 0) };
            models.store.write_blocking(move |write| write.put(&account)).unwrap();
            models
        });
        models.await.unwrap()
    }

    async fn role(models: &Models, change: fn(&Store) -> storage::Result<()>) {
        let store = models.store.clone();
        spawn_blocking(move || change(&store)).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_form_is_found_out_once_a_day_and_not_beside_a_stream_that_plays() {
        use LiveForm::{M3u8, NoExtension, Ts};

        let models = models().await;
        let login = PanelLogin {
            server: SourceUrl::new("http://a.example"),
            username: "u".to_owned(),
            password: Secret::new("p"),
        };
        let account = models.accounts.load().get(1).cloned().unwrap();
        let account = Account { list: PlaylistLocation::Panel(login), ..Account::clone(&account) };
        let store = |account: Account| models.store.write(move |write: &mut Write<'_>| write.put(&account));
        let stored: Result<(), storage::Error> = store(account.clone()).await;
        stored.unwrap();
        let opening = |addresses: &AccountAddresses, form: LiveForm| {
            let url = form.applied_to(&SourceUrl::new("http://a.example/live/u/p/7")).unwrap();
            let (addresses, is_searching) = (addresses.clone(), AtomicBool::new(false));
            OtherForms { addresses, account: ID, url, form, is_searching }
        };
        const NOTHING: [&str; 0] = [];
        let others = ["http://a.example/live/u/p/7", "http://a.example/live/u/p/7.m3u8"];
        // A stream plays in the form in force; another one is off air.
        let addresses = AccountAddresses::new(models.clone());
        opening(&addresses, Ts).opened("http://a.example/live/u/p/7.ts");
        assert_eq!(opening(&addresses, Ts).after_refusal(), NOTHING);
        assert!(models.account_addresses.load().is_empty());

        // After a restart nothing has played. Two streams are refused at the same time.
        let addresses = AccountAddresses::new(models.clone());
        let search = opening(&addresses, Ts);
        assert_eq!(search.after_refusal(), others);
        assert_eq!(opening(&addresses, Ts).after_refusal(), NOTHING);
        // The viewer leaves, so the next one tries it.
        drop(search);
        let search = opening(&addresses, Ts);
        assert_eq!(search.after_refusal(), others);
        search.failed();
        drop(search);
        assert_eq!(opening(&addresses, Ts).after_refusal(), NOTHING, "tried today");
        let record = || models.account_addresses.load().get(1).cloned();
        let until = async |is_it: &dyn Fn(&AddressRecord) -> bool| {
            while !record().is_some_and(|it| is_it(&it)) {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        until(&|it| it.forms_tried_at != 0).await;
        let addresses = AccountAddresses::new(models.clone());
        assert_eq!(opening(&addresses, Ts).after_refusal(), NOTHING, "after a restart as well");

        // A day later.
        addresses.change(&account, |it| {
            it.forms_tried(1);
            true
        });
        let search = opening(&addresses, Ts);
        assert_eq!(search.after_refusal(), others);
        search.opened(others[0]);
        drop(search);
        assert_eq!(addresses.live_form(&account), NoExtension, "before it is stored");
        assert_eq!(opening(&addresses, Ts).after_refusal(), others[..1], "its plan is older");
        assert_eq!(opening(&addresses, NoExtension).after_refusal(), NOTHING);
        until(&|it| it.live_form == Some(NoExtension)).await;
        let addresses = AccountAddresses::new(models.clone());
        assert_eq!(addresses.live_form(&account), NoExtension);
        assert_eq!(opening(&addresses, NoExtension).after_refusal(), NOTHING, "tried today");
        assert_eq!(addresses.active(&account), None, "the server in use is another matter");

        // An admin chose a form.
        let chosen = Account { live_form: Some(M3u8), ..account };
        let stored: Result<(), storage::Error> = store(chosen.clone()).await;
        stored.unwrap();
        assert_eq!(addresses.live_form(&chosen), M3u8);
        assert_eq!(opening(&addresses, M3u8).after_refusal(), NOTHING);
    }

    #[tokio::test]
    async fn what_a_node_learns_that_does_not_write_counts_there_and_reaches_the_one_that_does() {
        let (of_node, of_writer) = (models().await, models().await);
        let (node, writer) =
            (AccountAddresses::new(of_node.clone()), AccountAddresses::new(of_writer.clone()));
        role(&of_node, |store| store.begin_log(Uuid::new_v4(), 0).map(drop)).await;
        let account = of_node.accounts.load().get(1).cloned().unwrap();
        let first = addresses_of(&account)[0].clone();
        let second = addresses_of(&account)[1].clone();
        let mut learnt = node.learnt();
        assert!(node.failed(&account, &first, "connect"));
        learnt.wait_for(|it| !it.is_empty()).await.unwrap();
        assert_eq!(node.active(&account), Some(second.clone()));
        assert!(of_node.account_addresses.load().is_empty());

        let passed: Vec<_> = node.learnt().borrow().values().cloned().collect();
        writer.take(passed.clone()).await.unwrap();
        let stored = of_writer.store.collection::<AddressRecord>().get(1).unwrap().unwrap();
        assert_eq!(stored.active, Some(second));
        // An older one changes nothing, nor does one of an account that was deleted.
        let older = AddressRecord { changed_at: 5, ..AddressRecord::new(ID) };
        let failures = vec![AddressFailure { address: first, at: i64::MAX }];
        let unknown = AddressRecord { failures, ..AddressRecord::new(AccountId(7)) };
        writer.take(vec![older, unknown]).await.unwrap();
        assert_eq!(of_writer.store.collection::<AddressRecord>().all().unwrap(), [stored]);
        node.forget(&passed);
        assert!(node.learnt().borrow().is_empty());
        // It may not take anything itself.
        assert!(matches!(node.take(passed).await, Err(storage::Error::NotWriter)));
    }
}
