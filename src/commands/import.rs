//! `headwater import`: a playlist into the store, as the difference to what is there.

use std::process::ExitCode;

use actors::{ImportOptions, ImportSummary, import, now_ms};
use anyhow::{Context, anyhow};
use domain::account::{Account, AccountProfile, PlaylistLocation, REFRESH_INTERVAL_HOURS};
use domain::ids::AccountId;
use storage::records::next_profile_id;
use storage::{Models, Write};
use tokio::runtime::Builder;

use crate::config::{Config, ListSource, NewImport};
use crate::data::DataFolder;
use crate::gateway::fetch;
use crate::play::{account_name, printable, say};

/// Why there is no account for a list.
#[derive(Debug, thiserror::Error)]
enum AccountError {
    #[error("account {0} has another list; name a new account, or this one, with --account")]
    OtherList(String),
    #[error("account {0} is for streams that are made by hand, and has no list")]
    Custom(String),
    #[error(transparent)]
    Store(#[from] storage::Error),
}

/// Imports a list for the account that has it, or for one that is made. The account stays also where the list did not
/// come: it is refreshed later.
pub(super) fn run(config: &Config, new: &NewImport) -> anyhow::Result<ExitCode> {
    let source = ListSource::from(new.list.as_str());
    let list = list_of(&source)?;
    let store = DataFolder::new(&config.data_dir).open()?;
    let account = {
        let (name, max_streams) = (new.account.clone(), new.max_streams);
        let default_name = account_name(&source);
        store.write_blocking(move |write| {
            let mut account = account_for(write, &list, name, default_name)?;
            account.list = list;
            if let Some(max_streams) = max_streams
                && let Some(profile) = account.profiles.iter_mut().find(|it| it.is_default)
            {
                profile.max_streams = max_streams;
            }
            write.put(&account)?;
            Ok::<_, AccountError>(account)
        })?
    };
    crate::install_tls();
    let fetch = fetch(config).context("failed to prepare for fetching")?;
    let models = Models::of(store.clone())?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let options = ImportOptions { confirm: new.confirm, ..ImportOptions::default() };
    let done = runtime.block_on(import(&models, &fetch, account.id, options, |_| {}));
    let imported = done.map_err(|error| anyhow!("{source}: {error}"))?;
    store.close();
    say(&text(&source, &account, &imported));
    Ok(ExitCode::SUCCESS)
}

/// The account of a list: the one that is named, else the one that has the list, else a new one.
fn account_for(
    write: &mut Write<'_>,
    list: &PlaylistLocation,
    name: Option<String>,
    default_name: String,
) -> Result<Account, AccountError> {
    let accounts = write.all::<Account>()?;
    let is_named = name.is_some();
    let with_name = |name: &str| accounts.iter().find(|it| it.name == name).cloned();
    let found = match &name {
        Some(name) => with_name(name),
        None => accounts.iter().find(|it| it.list == *list).cloned().or_else(|| with_name(&default_name)),
    };
    match found {
        Some(account) if account.is_custom() => Err(AccountError::Custom(account.name)),
        Some(account) if is_named || account.list == *list => Ok(account),
        Some(account) => Err(AccountError::OtherList(account.name)),
        None => {
            let id = next_profile_id(write)?;
            let profile = AccountProfile::default_of(id, "Default", 0);
            let name = name.unwrap_or(default_name);
            let mut account = Account::new(AccountId(id.0), name, list.clone(), profile, now_ms());
            account.schedule.interval_hours = REFRESH_INTERVAL_HOURS;
            Ok(account)
        }
    }
}

/// A file is named by its whole path: the gateway may be started from another folder.
fn list_of(source: &ListSource) -> anyhow::Result<PlaylistLocation> {
    Ok(match source {
        ListSource::Url(url) => PlaylistLocation::Url(url.clone()),
        ListSource::File(path) => {
            let whole = std::path::absolute(path)?;
            // No account for a slip of the pen.
            std::fs::metadata(&whole).with_context(|| format!("failed to read {}", whole.display()))?;
            let text = whole.to_str().with_context(|| format!("{} is no text", whole.display()))?;
            PlaylistLocation::File(text.to_owned())
        }
    })
}

fn text(source: &ListSource, account: &Account, imported: &ImportSummary) -> String {
    let mut text = format!("{source}, account {}: {}", printable(&account.name), imported.sentence());
    for problem in &imported.problems {
        text += &format!("\n  line {}: {}", problem.line, printable(&problem.text));
    }
    if let more @ 1.. = imported.n_problems.saturating_sub(imported.problems.len() as u64) {
        text += &format!("\n  and {more} more");
    }
    text
}
