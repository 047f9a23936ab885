//! `headwater import`: imports a playlist into the store, writes only the differences, and makes channels of streams that
//! no channel has.

mod channels;
mod preview;

use std::process::ExitCode;

use actors::{ImportError, ImportOptions, ImportSummary, import, now_ms};
use anyhow::{Context, anyhow, bail};
use config::{Config, DataFolder, ListSource, NewImport};
use domain::account::{Account, AccountProfile, PlaylistLocation, REFRESH_INTERVAL_HOURS, RefreshRecord};
use domain::ids::AccountId;
use domain::stream::Stream;
use node::tls::install_tls;
use services::http_client::fetch;
use services::open_store::open_store;
use storage::records::next_profile_id;
use storage::{Models, Write};
use tokio::runtime::Builder;

use crate::play::{NO_SCHEME, account_name};
use crate::terminal::{printable, say};

/// Error while choosing the account of a list.
#[derive(Debug, thiserror::Error)]
enum AccountError {
    #[error("account {0} has another list; choose a new account, or confirm this one, with --account")]
    OtherList(String),
    #[error("account {0} is for custom streams and has no list")]
    Custom(String),
    #[error(transparent)]
    Store(#[from] storage::Error),
}

/// Imports a list into its account, or into a new account. A new account is removed again if the import fails.
pub(super) fn run(config: &Config, new: &NewImport) -> anyhow::Result<ExitCode> {
    let source = ListSource::from(new.list.as_str());
    let list = list_of(&source)?;
    if new.dry_run {
        return preview::print(config, new, &source);
    }
    let store = open_store(&DataFolder::new(&config.data_dir))?;
    let (account, is_new) = {
        let (name, max_streams) = (new.account.clone(), new.max_streams);
        let default_name = account_name(&source);
        store.write_blocking(move |write| {
            let mut account = account_for(write, &list, name, default_name)?;
            let is_new = write.get::<Account>(account.id.0)?.is_none();
            account.list = list;
            if let Some(max_streams) = max_streams
                && let Some(profile) = account.profiles.iter_mut().find(|it| it.is_default)
            {
                profile.max_streams = max_streams;
            }
            write.put(&account)?;
            Ok::<_, AccountError>((account, is_new))
        })?
    };
    let models = Models::new(store.clone())?;
    let imported = import_list(config, &models, account.id, new.confirm)
        .and_then(|imported| imported.map_err(|error| anyhow!("{source}: {error}")));
    if imported.is_err() && is_new {
        let id = account.id.0;
        store.write_blocking(move |write| {
            write.remove_owner::<Stream>(u64::from(id));
            write.remove::<RefreshRecord>(id)?;
            write.remove::<Account>(id).map(drop)
        })?;
    }
    let imported = imported?;
    say(&text(&source, &account, &imported));
    if !new.no_channels {
        say(&channels::make(&models, account.id, &new.groups)?);
    }
    drop(models);
    store.close();
    Ok(ExitCode::SUCCESS)
}

fn import_list(
    config: &Config,
    models: &Models,
    account: AccountId,
    confirm: bool,
) -> anyhow::Result<Result<ImportSummary, ImportError>> {
    install_tls();
    let fetch = fetch(config).context("failed to set up the HTTP client")?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let options = ImportOptions { confirm, ..ImportOptions::default() };
    Ok(runtime.block_on(import(models, &fetch, account, options, |_| {})))
}

/// Returns the account for a list: the named account, else the account of this list, else a new one.
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

/// Stores a file by its absolute path, because the gateway may be started from another folder.
fn list_of(source: &ListSource) -> anyhow::Result<PlaylistLocation> {
    Ok(match source {
        ListSource::Url(url) => PlaylistLocation::Url(url.clone()),
        ListSource::File(path) => {
            let whole = std::path::absolute(path)?;
            // Do not create an account for a mistyped path.
            std::fs::metadata(&whole).with_context(|| format!("failed to read {}", whole.display()))?;
            let text =
                whole.to_str().with_context(|| format!("the path {} is not valid UTF-8", whole.display()))?;
            PlaylistLocation::File(text.to_owned())
        }
        ListSource::NoScheme(_) => bail!("failed to read {source}: {NO_SCHEME}"),
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
