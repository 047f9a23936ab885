//! An import in this process, without the rest of the gateway, and its measurement.

use std::time::Instant;

use actors::{Fetch, FetchLimits, ImportOptions, ImportSummary, import};
use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, ProfileId};
use serde_json::{Value, json};
use storage::{Models, Store};
use tokio::runtime::Runtime;

use super::memory::peak_resident_bytes;

pub(crate) const MIB: f64 = 1024.0 * 1024.0;
const ACCOUNT: AccountId = AccountId(2);

/// A new store with one account, and what imports it.
pub(crate) struct Importing {
    pub(crate) models: Models,
    fetch: Fetch,
    runtime: Runtime,
}

impl Importing {
    pub(crate) fn new(list: PlaylistLocation) -> Importing {
        headwater::install_tls();
        let store = Store::temporary(storage::records::schema()).expect("a store");
        storage::seed(&store).expect("a store");
        let profile = AccountProfile::default_of(ProfileId(2), "default", 0);
        let account = Account::new(ACCOUNT, "bench", list, profile, 0);
        store.write_blocking(move |write| write.put(&account)).expect("an account");
        let models = Models::new(store).expect("models");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let fetch = Fetch::new(FetchLimits::default()).expect("a client");
        println!("before: peak memory {:.0} MiB", peak_resident_bytes() as f64 / MIB);
        Importing { models, fetch, runtime: runtime.expect("a runtime") }
    }

    /// Imports once, and prints and returns the duration and the peak memory.
    pub(crate) fn run(&self, what: &str) -> (ImportSummary, Value) {
        let started = Instant::now();
        let options = ImportOptions::default();
        let done = self.runtime.block_on(import(&self.models, &self.fetch, ACCOUNT, options, |_| {}));
        let seconds = started.elapsed().as_secs_f64();
        let imported = done.expect("the list is valid");
        assert_eq!(imported.n_problems, 0);
        let peak = peak_resident_bytes() as f64 / MIB;
        let ImportSummary { n_entries, n_new, n_changed, .. } = imported;
        println!(
            "{what:>20}: {seconds:.2} s, {n_entries} entries, {n_new} new, {n_changed} changed, peak memory {peak:.0} MiB"
        );
        let result =
            json!({ "seconds": seconds, "n_new": n_new, "n_changed": n_changed, "peak_resident_mib": peak });
        (imported, result)
    }
}

/// Returns the number after an option of the command line.
pub(crate) fn option(name: &str, default: u64) -> u64 {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|it| it == name);
    at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
}
