//! Applies the rules that clean names to what is stored, when they change, and previews them.

use std::sync::Arc;

use actors::{clean_channel_names, now_ms, renamed_channels};
use domain::ids::AccountId;
use domain::name_cleaning::{NameCleaner, NameKind};
use domain::setting::CoreSetting;
use domain::vod::Title;
use media::spawn_blocking;
use storage::{ChangeMessage, Changes, Models, Record};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A name that rules change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedName {
    pub kind: NameKind,
    /// Id of the film, the series or the channel.
    pub id: u32,
    /// The account that names it.
    pub account: AccountId,
    pub provider_name: String,
    /// The name that people see now.
    pub before: String,
    /// The name that they would see.
    pub after: String,
}

/// Changed names of a list, and how many the whole list has.
#[derive(Debug, Default)]
pub struct ChangedNames {
    offset: usize,
    limit: usize,
    pub count: usize,
    /// From the offset on, up to the limit.
    pub names: Vec<ChangedName>,
}

impl ChangedNames {
    fn add(&mut self, name: impl FnOnce() -> ChangedName) {
        if self.count >= self.offset && self.names.len() < self.limit {
            self.names.push(name());
        }
        self.count += 1;
    }
}

/// Returns the names of this kind, or of every kind, that are another one by these rules: titles first, then channels.
/// Names that an admin edited or a catalogue completed stay, so they are not among them. Reads all titles, and blocks.
///
/// # Errors
/// The store fails.
pub fn changed_names(
    models: &Models,
    cleaner: &Arc<NameCleaner>,
    kind: Option<NameKind>,
    (offset, limit): (usize, usize),
) -> Result<ChangedNames, storage::Error> {
    let mut changed = ChangedNames { offset, limit, ..ChangedNames::default() };
    let is_wanted = |it: NameKind| kind.is_none_or(|kind| kind == it);
    if kind != Some(NameKind::Channel) {
        models.vod.for_each(|title| {
            let kind = NameKind::from(title.id.kind());
            if is_wanted(kind) {
                add_title(&mut changed, &title, kind, cleaner);
            }
        })?;
    }
    if is_wanted(NameKind::Channel) {
        renamed_channels(models, cleaner, &mut |it| {
            changed.add(|| ChangedName {
                kind: NameKind::Channel,
                id: it.id.0,
                account: it.auto.account,
                provider_name: it.provider_name,
                before: it.before,
                after: it.after,
            });
        })?;
    }
    Ok(changed)
}

fn add_title(changed: &mut ChangedNames, title: &Title, kind: NameKind, cleaner: &NameCleaner) {
    let completed = title.completed(|it| Some(&*it.name).filter(|it| !it.is_empty()));
    if title.edits.name.is_some() || completed.is_some() {
        return;
    }
    let Some(named) = title.relations.iter().find(|it| !it.provider_name().is_empty()) else { return };
    let cleaned = cleaner.clean(kind, named.account, &named.facts.name);
    let after = cleaned.as_deref().unwrap_or_else(|| named.provider_name());
    if after != title.name() {
        changed.add(|| ChangedName {
            kind,
            id: title.id.number(),
            account: named.account,
            provider_name: named.provider_name().to_owned(),
            before: title.name().to_owned(),
            after: after.to_owned(),
        });
    }
}

/// Cleans the stored names whenever the rules change. In a cluster, the node that writes the configuration does it. Runs
/// until it is dropped or the store is closed.
pub async fn follow(models: Models) {
    let stop = CancellationToken::new();
    let _stop_when_dropped = stop.clone().drop_guard();
    let mut changes = models.store.changes();
    let mut known = models.name_cleaner();
    while settings_changed(&mut changes).await {
        let present = models.name_cleaner();
        if present.is_same(&known) {
            continue;
        }
        known = present;
        if models.store.writes_shared() {
            let (models, stop) = (models.clone(), stop.clone());
            let cleaned = spawn_blocking(move || clean(&models, &stop)).await;
            report(cleaned.unwrap_or_else(|error| Err(error.to_string())));
        }
    }
}

fn report(cleaned: Result<(u64, u64), String>) {
    match cleaned {
        Ok((titles, channels)) => info!(titles, channels, "applied the rules of names"),
        Err(reason) => warn!("failed to apply the rules of names; the next refreshes do it: {reason}"),
    }
}

fn clean(models: &Models, stop: &CancellationToken) -> Result<(u64, u64), String> {
    let titles = models.vod.clean_names(now_ms(), &|| stop.is_cancelled()).map_err(|it| it.to_string())?;
    let channels = clean_channel_names(models).map_err(|it| it.to_string())?;
    Ok((titles, channels))
}

/// Waits until a core setting changes. Returns false if the store was closed.
async fn settings_changed(changes: &mut Changes) -> bool {
    loop {
        match changes.next().await {
            ChangeMessage::Changed(change) if change.ids(CoreSetting::COLLECTION).is_none() => {}
            ChangeMessage::Changed(_) | ChangeMessage::Lagged => return true,
            ChangeMessage::Closed => return false,
        }
    }
}
