//! `headwater import-from`: moves a household from another service to this gateway.
//!
//! Reading order: `export.rs` (a database export) or `interface.rs` (the REST interface), both into `gathered.rs`; the
//! conversion is in [`import_from`]; `resolve.rs` (ids of streams), `pictures.rs` (of users), `titles.rs`, `write.rs`.

mod credentials;
mod export;
mod gathered;
mod interface;
mod pictures;
mod resolve;
mod spool;
mod titles;
mod write;

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use actors::{check_cron, check_time_zone, now_ms};
use anyhow::{Context, bail};
use config::{Config, DataFolder, NetworkRules, NewImportFrom};
use domain::account::Account;
use domain::account_group::AccountGroup;
use domain::core_settings::SettingChecks;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::source::GuideSource;
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::secret::ServerKeys;
use domain::server_group::ServerGroup;
use domain::setting::CoreSetting;
use domain::source_url::SourceUrl;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::user::User;
use domain::user_agent::UserAgent;
use domain::vod::uuid_of;
use import_from::{Existing, Foundation, Report, Rules, UnusedIds};
use services::auth::{SERVER_KEYS, stored_api_key};
use services::files::{Files, Folder};
use services::open_store::open_store;
use storage::records::{next_profile_id, schema};
use storage::{Error, Store};
use uuid::Uuid;

use self::gathered::Gathered;
use self::write::NewRecords;
use crate::control::is_running;
use crate::terminal::{printable, say};

/// Reads the source, and writes what it contains unless this is a dry run. Prints a report.
pub(super) fn run(config: &Config, new: &NewImportFrom) -> anyhow::Result<ExitCode> {
    let folder = DataFolder::new(&config.data_dir);
    // Before the source is read, which may take minutes.
    if is_running(&folder) {
        let root = folder.root().display();
        bail!("a gateway is running on {root}; stop the gateway, and run this again. Nothing was changed");
    }
    let store = open(&folder, new.dry_run)?;
    let mut gathered = Gathered::new()?;
    let url = SourceUrl::new(new.source.as_str());
    if url.is_http() {
        let credentials = credentials::find(&url, new)?;
        interface::read(&url, &credentials, &mut gathered)?;
    } else {
        export::read(Path::new(&new.source), &mut gathered)?;
    }
    gathered.finish()?;
    let report = import(config, &store, gathered, new.dry_run)?;
    store.close();
    let title = if new.dry_run { "Nothing was written. An import would do this:" } else { "Imported:" };
    say(title);
    for line in report.to_string().lines() {
        say(&printable(line));
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the store. A dry run without a store gets a temporary one.
fn open(folder: &DataFolder, is_dry_run: bool) -> anyhow::Result<Store> {
    if is_dry_run && !folder.store().exists() {
        let store = Store::temporary(schema())?;
        storage::seed(&store)?;
        return Ok(store);
    }
    open_store(folder).context("import-from needs the store for itself; stop the gateway if it is running")
}

fn import(config: &Config, store: &Store, gathered: Gathered, is_dry_run: bool) -> anyhow::Result<Report> {
    let Gathered { household, streams, mut report, images, pictures: fetched, .. } = gathered;
    let existing = existing(store)?;
    let (profiles, agents) = (&existing.stream_profiles, &existing.user_agents);
    let rules = Rules {
        settings: SettingChecks {
            base: &config.engine,
            has_stream_profile: &|id| profiles.iter().any(|it| it.id == id),
            has_time_zone: &|zone| check_time_zone(zone).is_ok(),
            log_level_error: &|_| None,
            // Not imported: the address of the other service.
            public_url_error: &|_| None,
            has_user_agent: &|id| agents.iter().any(|it| it.id == id),
            has_output_profile: &|_| false,
            cron_error: &|expression| check_cron(expression).err(),
            network_errors: &|value| {
                let (_, wrong) = NetworkRules::new(config, Some(value));
                wrong.into_iter().map(|it| (it.member, it.reason)).collect()
            },
        },
        check_cron: &check_cron,
        now: now_ms(),
    };
    let foundation = Foundation::new(&household, &existing, &rules, &mut report);
    let mut streams = streams.finish()?;
    let resolved = resolve::resolve(store, &mut streams, &foundation, &existing, &mut report)?;
    let mut dependents = foundation.dependents(&household, &existing, &resolved.ids, &rules, &mut report);
    let new_pictures = pictures::settle(&mut dependents.users, &fetched, &mut report);
    let random = |id| uuid_of(id, Uuid::new_v4().as_u128());
    let planned = foundation.titles(&household, &titles::known(store)?, now_ms(), &random, &mut report);
    if is_dry_run {
        return Ok(report);
    }
    let keys = store.collection::<ServerKeys>().get(SERVER_KEYS)?.context("the store has no keys")?;
    let mut users = Vec::with_capacity(dependents.users.len());
    for planned in &dependents.users {
        let api_key = planned.api_key.as_ref().and_then(|it| stored_api_key(&keys, it));
        users.push(User { api_key, ..planned.user.clone() });
    }
    let files = Files::new(&config.data_dir);
    save_logos(&files, &foundation, images.path())?;
    pictures::save(&files, images.path(), &new_pictures)?;
    write::write(store, NewRecords { foundation, dependents, users }, &mut streams, &resolved)?;
    titles::write(store, planned)?;
    Ok(report)
}

/// Saves the fetched files of new logos. What is left after a failure is removed with the next unused files.
fn save_logos(files: &Files, foundation: &Foundation, fetched: &Path) -> anyhow::Result<()> {
    for name in foundation.logos.iter().filter_map(|it| it.file.as_deref()) {
        let file = File::open(fetched.join(name)).context("failed to read a temporary file")?;
        files.save(Folder::Logos, name, file).context("failed to save a logo")?;
    }
    Ok(())
}

/// Reads the records with which those of the source may conflict.
fn existing(store: &Store) -> anyhow::Result<Existing> {
    Ok(Existing {
        groups: store.collection::<Group>().all()?,
        stream_profiles: store.collection::<StreamProfile>().all()?,
        server_groups: store.collection::<ServerGroup>().all()?,
        accounts: store.collection::<Account>().all()?,
        logos: store.collection::<Logo>().all()?,
        channels: store.collection().all()?,
        lineups: store.collection::<Lineup>().all()?,
        users: store.collection::<User>().all()?,
        settings: store.collection::<CoreSetting>().all()?,
        user_agents: store.collection::<UserAgent>().all()?,
        guide_sources: store.collection::<GuideSource>().all()?,
        guide_channels: store.collection::<GuideChannel>().all()?,
        unused: unused_ids(store)?,
    })
}

/// Why a write that only looks ends.
enum Looked {
    Ids(UnusedIds),
    Failed(Error),
}

impl From<Error> for Looked {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns the first ids that no record ever had. Only a write knows them, so this one takes ids and is discarded.
fn unused_ids(store: &Store) -> anyhow::Result<UnusedIds> {
    let looked = store.write_blocking(|write| {
        Err::<(), _>(Looked::Ids(UnusedIds {
            group: write.next_id::<Group>()?,
            stream_profile: write.next_id::<StreamProfile>()?,
            server_group: write.next_id::<ServerGroup>()?,
            account_group: write.next_id::<AccountGroup>()?,
            account: next_profile_id(write)?.0,
            stream: write.next_id::<Stream>()?,
            logo: write.next_id::<Logo>()?,
            guide_source: write.next_id::<GuideSource>()?,
            guide_channel: write.next_id::<GuideChannel>()?,
            channel: write.next_id::<domain::channel::Channel>()?,
            lineup: write.next_id::<Lineup>()?,
            user: write.next_id::<User>()?,
            setting: write.next_id::<CoreSetting>()?,
            user_agent: write.next_id::<UserAgent>()?,
        }))
    });
    match looked {
        Err(Looked::Ids(ids)) => Ok(ids),
        Err(Looked::Failed(error)) => Err(error.into()),
        Ok(()) => bail!("the store kept a write that was discarded"),
    }
}
