//! `headwater import`: a playlist into the store, while no gateway runs on it.

use std::path::{Path, absolute};
use std::process::ExitCode;
use std::time::SystemTime;

use actors::{Fetch, FetchLimits, ImportError, ImportOptions, Imported};
use anyhow::{Context, bail, ensure};
use domain::account::{Account, AccountProfile, List, REFRESH_INTERVAL_HOURS, Refresh};
use domain::ids::AccountId;
use domain::source_url::SourceUrl;
use storage::records::next_profile_id;
use storage::{Models, Store};

use crate::config::{Config, ImportList, ListSource};
use crate::data::DataFolder;
use crate::play::{account_name, counted, printable, say, say_error};

/// Makes an account of the list, or finds the one that has it, and does what a refresh does.
pub(super) fn import(config: &Config, wanted: &ImportList) -> anyhow::Result<ExitCode> {
    let list = list_of(&wanted.list)?;
    crate::install_tls();
    let limits = FetchLimits {
        bytes_max: config.limits.playlist_bytes_max,
        total_timeout: config.limits.playlist_timeout,
        ..FetchLimits::default()
    };
    let fetch = Fetch::new(limits).context("failed to prepare for fetching")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_name("import").enable_all().build()?;

    let store = DataFolder::new(&config.data_dir).open()?;
    let models = Models::of(store.clone())?;
    let (account, is_new) = account_for(&models, wanted, list)?;
    let options = ImportOptions { confirm: wanted.confirm, ..ImportOptions::default() };
    let done = runtime.block_on(actors::import(&models, &fetch, account.id, options, |_| {}));
    if is_new && done.is_err() {
        // Nobody asked for an account whose list does not come.
        forget(&store, account.id)?;
    }
    store.close();
    Ok(match done {
        Ok(imported) => {
            say(&report(&wanted.list, &account, &imported));
            ExitCode::SUCCESS
        }
        Err(error) => {
            let hint = match &error {
                ImportError::Shrunken { .. } => "\nTo take it nevertheless, add --confirm.",
                _ => "",
            };
            let sentence = printable(&error.sentence());
            say_error(&format!("headwater: nothing taken from {}: {sentence}{hint}", wanted.list));
            ExitCode::FAILURE
        }
    })
}

/// The list as an account remembers it: a file by its whole path, because the gateway may run in another folder.
fn list_of(source: &ListSource) -> anyhow::Result<List> {
    Ok(match source {
        ListSource::Url(url) => List::Url(SourceUrl::new(url.expose())),
        ListSource::File(path) => List::File(text_of(path)?),
    })
}

fn text_of(path: &Path) -> anyhow::Result<String> {
    let path = absolute(path).with_context(|| format!("failed to find {}", path.display()))?;
    let text = path.to_str().with_context(|| format!("the path {} is no text", path.display()))?;
    Ok(text.to_owned())
}

/// The account of this name, or without a name the one with this list; a new one where there is none. Says whether
/// it is new.
fn account_for(models: &Models, wanted: &ImportList, list: List) -> anyhow::Result<(Account, bool)> {
    let accounts = models.accounts.load();
    let name = wanted.account.clone().unwrap_or_else(|| account_name(&wanted.list));
    ensure!(
        !name.trim().is_empty() && name.chars().count() <= 255,
        "an account has a name of 255 characters at most"
    );
    let named = accounts.one_by("name", &name);
    let found = match &wanted.account {
        Some(_) => named,
        None => accounts.iter().find(|it| it.list == list),
    };
    if let Some(found) = found {
        ensure!(!found.is_custom(), "the account \"{name}\" is the one of streams made by hand");
        ensure!(found.is_active, "the account \"{}\" is not active", found.name);
    } else if named.is_some() {
        bail!("there is an account \"{name}\" with another list; name the one that is meant with --account");
    }
    let found = found.map(|it| it.id.0);
    let max_streams = wanted.max_streams;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_millis() as i64);
    let account = models.store.write_blocking(move |write| {
        let mut account = match found.map(|id| write.get::<Account>(id)).transpose()?.flatten() {
            Some(account) => account,
            None => {
                let id = next_profile_id(write)?;
                let profile = AccountProfile::default_of(id, "Default", 0);
                let mut account = Account::new(AccountId(id.0), name, List::None, profile, now);
                account.schedule.interval_hours = REFRESH_INTERVAL_HOURS;
                account
            }
        };
        let before = account.clone();
        account.list = list;
        if let Some((profile, max_streams)) =
            account.profiles.iter_mut().find(|it| it.is_default).zip(max_streams)
        {
            profile.max_streams = max_streams;
        }
        if found.is_none() || account != before {
            account.updated_at = now;
            write.put(&account)?;
        }
        Ok::<_, storage::Error>(account)
    })?;
    Ok((account, found.is_none()))
}

fn forget(store: &Store, account: AccountId) -> Result<(), storage::Error> {
    store.write_blocking(move |write| {
        write.remove::<Refresh>(account.0)?;
        write.remove::<Account>(account.0).map(drop)
    })
}

/// What was found and lost, and what became of it.
fn report(list: &ListSource, account: &Account, imported: &Imported) -> String {
    let Imported { n_entries, n_new, n_changed, n_stale, n_removed, problems, n_problems } = imported;
    let entries = usize::try_from(*n_entries).unwrap_or(usize::MAX);
    let mut text = format!("{list}: {}\n", counted(entries, "entry"));
    for problem in problems {
        text += &format!("  line {}: {}\n", problem.line, printable(&problem.text));
    }
    if let more @ 1.. = n_problems.saturating_sub(problems.len() as u64) {
        text += &format!("  and {more} more\n");
    }
    text + &format!(
        "account \"{}\": {n_new} new, {n_changed} changed, {n_stale} no longer listed, {n_removed} removed",
        printable(&account.name)
    )
}
