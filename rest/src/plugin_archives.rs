//! Plugins of a cluster: all full nodes have their code, and the node that writes the configuration runs them.
//!
//! ```text
//!   installed at the node that writes ─▶ packed ─▶ object store ─▶ `Plugin::archive`
//!                                                                      │ log
//!   other nodes: the archive is not that of the folder ◀──────────────┘  fetched, installed, not run
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use domain::plugin::{Plugin, PluginKey};
use media::spawn_blocking;
use node::uploads::{fetch_upload, share_upload_file};
use services::files::Folder;
use storage::plugin_files::ArchiveError;
use storage::{ChangeMessage, Record, Write};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};
use uuid::Uuid;

use crate::context::RestContext;

/// Pauses after a failure: the first one, and the longest.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Shares the code of an installed plugin with the other nodes of the cluster, and names its archive in its record. Does
/// nothing without a cluster. The caller lets nobody install meanwhile.
///
/// # Errors
/// The archive cannot be made or shared; it is tried again later.
pub(crate) async fn share_plugin(context: &Arc<RestContext>, key: &PluginKey) -> Result<(), String> {
    if context.nodes.node().is_none() {
        return Ok(());
    }
    let name = format!("{}.zip", Uuid::new_v4());
    let (owned, of_key, of_name) = (Arc::clone(context), key.clone(), name.clone());
    let packing = spawn_blocking(move || {
        let files = &owned.plugins.installed.files;
        owned.files.create(Folder::Plugins, &of_name, |file| files.pack(&of_key, file))
    });
    let text = |error: &dyn std::fmt::Display| error.to_string();
    packing.await.map_err(|it| text(&it))?.map_err(|it| text(&it))?;
    let shared = name_archive(context, key, &name).await;
    let (owned, of_key, is_shared) = (Arc::clone(context), key.clone(), shared.is_ok());
    let noting = spawn_blocking(move || {
        if is_shared {
            owned.plugins.installed.files.set_archive(&of_key, Some(&name))
        } else {
            owned.files.remove(Folder::Plugins, &name)
        }
    });
    // Without the note, the archive is installed over the same folder.
    let _ = noting.await;
    shared
}

/// Shares an archive, and names it in the record of its plugin. Removes the file of the former one.
async fn name_archive(context: &Arc<RestContext>, key: &PluginKey, name: &str) -> Result<(), String> {
    share_upload_file(&context.nodes, Folder::Plugins, name).await?;
    let (of_key, of_name) = (key.clone(), name.to_owned());
    let writing = context.models.store.write(move |write: &mut Write<'_>| {
        let Some(mut plugin) = write.by::<Plugin>("key", of_key.as_str())?.into_iter().next() else {
            return Ok(None);
        };
        let former = plugin.archive.replace(of_name);
        write.put(&plugin)?;
        Ok::<_, storage::Error>(former)
    });
    let former = writing.await.map_err(|it| it.to_string())?;
    if let Some(former) = former {
        let owned = Arc::clone(context);
        // What stays takes some room.
        let _ = spawn_blocking(move || owned.files.remove(Folder::Plugins, &former)).await;
    }
    Ok(())
}

/// Lets the plugins of this node of a cluster be those of all, and run here while this node writes the configuration. Runs
/// until the store is closed.
pub async fn follow_cluster(context: Arc<RestContext>) {
    let store = context.models.store.clone();
    let (mut changes, mut status) = (store.changes(), store.log_status());
    // All plugins had a process or none until now.
    let (mut ran, mut pause) = (false, RETRY_PAUSE);
    let mut reported = BTreeSet::new();
    loop {
        let writes = store.writes_shared();
        status.mark_unchanged();
        let mut changed = BTreeSet::new();
        if std::mem::replace(&mut ran, writes) != writes {
            changed.extend(context.models.plugins.load().iter().map(|it| it.key.clone()));
        }
        let is_complete = synchronise(&context, writes, &mut changed, &mut reported).await;
        if !changed.is_empty() {
            reload(&context, changed);
        }
        let until = Instant::now() + pause;
        pause = if is_complete { RETRY_PAUSE } else { (pause * 2).min(RETRY_PAUSE_MAX) };
        loop {
            tokio::select! {
                message = changes.next() => match message {
                    ChangeMessage::Closed => return,
                    ChangeMessage::Changed(it) if it.ids(Plugin::COLLECTION).is_none() => {}
                    ChangeMessage::Changed(_) | ChangeMessage::Lagged => break,
                },
                changed = status.changed() => match changed {
                    Err(_) => return,
                    Ok(()) if store.writes_shared() != ran => break,
                    Ok(()) => {}
                },
                () = sleep_until(until), if !is_complete => break,
            }
        }
    }
}

/// Makes folders and archives agree. Adds the plugins whose folder has changed. Returns whether nothing is left to do.
async fn synchronise(
    context: &Arc<RestContext>,
    writes: bool,
    changed: &mut BTreeSet<PluginKey>,
    reported: &mut BTreeSet<String>,
) -> bool {
    // Not while one is installed.
    let _one = context.plugins.installed.changes.lock().await;
    let records = context.models.plugins.load();
    let mut is_complete = true;
    let mut failed = |key: &PluginKey, error: String| {
        if reported.insert(format!("{key}: {error}")) {
            warn!(plugin.key = %key, "failed to share a plugin with the other nodes, trying again: {error}");
        }
        false
    };
    for record in records.iter() {
        let (key, owned, of_key) = (&record.key, Arc::clone(context), record.key.clone());
        let read = spawn_blocking(move || {
            let files = &owned.plugins.installed.files;
            (files.archive(&of_key), files.manifest(&of_key).ok().map(|it| it.version))
        });
        let Ok((archive, version)) = read.await else { continue };
        match &record.archive {
            Some(wanted) if archive.as_ref() != Some(wanted) => match install(context, key, wanted).await {
                Ok(()) => drop(changed.insert(key.clone())),
                Err(error) => is_complete &= failed(key, error),
            },
            // From before the cluster, or put into the folder by hand. Not another version, which is not the one that the
            // others are to have.
            None if writes && version.is_some_and(|it| record.version.is_empty() || it == record.version) => {
                if let Err(error) = share_plugin(context, key).await {
                    is_complete &= failed(key, error);
                }
            }
            _ => {}
        }
    }
    if !writes {
        let owned = Arc::clone(context);
        let known: BTreeMap<_, _> = records.iter().map(|it| (it.key.clone(), ())).collect();
        // A folder that was put there by hand stays.
        let removing = spawn_blocking(move || {
            let files = &owned.plugins.installed.files;
            let is_gone = |it: &PluginKey| !known.contains_key(it) && files.archive(it).is_some();
            files.list()?.iter().filter(|it| is_gone(it)).try_for_each(|it| files.remove(it))
        });
        if let Ok(Err(error)) = removing.await {
            warn!("failed to remove the folder of a plugin that was deleted: {error}");
        }
    }
    if is_complete {
        reported.clear();
    }
    is_complete
}

/// Installs the archive of another node.
async fn install(context: &Arc<RestContext>, key: &PluginKey, name: &str) -> Result<(), String> {
    fetch_upload(&context.nodes, Folder::Plugins, name).await;
    let (context, of_key, name) = (Arc::clone(context), key.clone(), name.to_owned());
    let installing = spawn_blocking(move || {
        let archive = File::open(context.files.path(Folder::Plugins, &name)?)?;
        let files = &context.plugins.installed.files;
        let staged = files.stage(archive, &name)?;
        if staged.key != of_key {
            return Err(io::Error::other("the archive is that of another plugin").into());
        }
        staged.install()?;
        files.drop_old(&of_key)?;
        files.set_archive(&of_key, Some(&name))?;
        Ok::<_, ArchiveError>(())
    });
    installing.await.map_err(|it| it.to_string())?.map_err(|it| it.to_string())?;
    info!(plugin.key = %key, "installed a plugin of the cluster");
    Ok(())
}

/// Starts or ends the processes of plugins, as their records and the role of this node say. An error is the state of the
/// plugin.
fn reload(context: &Arc<RestContext>, keys: BTreeSet<PluginKey>) {
    let context = Arc::clone(context);
    // Not here: a start takes long, and this node may cease to write meanwhile, which ends it.
    actors::spawn(async move {
        context.operation.integrations.plugin_installed();
        let mut reloads = JoinSet::new();
        for key in keys {
            let handle = context.plugins.processes.handle.clone();
            reloads.spawn(async move { handle.reload(&key).await });
        }
        reloads.join_all().await;
    });
}
