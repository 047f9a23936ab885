//! Conditions of the gateway that an admin should know: failing playlists, expiring accounts, a full disk, a store that
//! refuses changes. Each says what to do.

use actors::{
    ClusterView, ConfigurationView, IntegrationStatus, NodeState, NodeView, PluginStatus, RecordingRoom,
    SnapshotView, now_ms,
};
use domain::account::{Account, AccountProfile, RefreshOutcome};
use domain::account_addresses::{AddressRecord, addresses_of};
use domain::guide::source::GuideSource;
use domain::guide::state::{GuideState, GuideStatus};
use domain::integration::Integration;
use domain::plugin::{Plugin, PluginState};
use domain::time::iso_millis;
use node::versions;
use server::refusals::refused_writes;
use services::disk_space::{DISK_BYTES_LOW, DiskSpace};
use storage::Models;
use storage::guide::GuideFiles;
use storage::log::LogRole;

use crate::context::RestContext;
use crate::machine_conditions::{confinement_conditions, connection_conditions};
use crate::wait_conditions::wait_condition;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// An account is reported this long before it expires, in milliseconds.
pub const EXPIRY_NOTICE_MS: i64 = 7 * DAY_MS;
/// A guide source that fails is reported if its last success is longer ago than this, in milliseconds.
const GUIDE_FAILING_MS: i64 = DAY_MS;

/// A clock of another node that differs by as much is reported, in milliseconds.
const CLOCK_OFFSET_MS_MAX: u64 = 1000;

/// How urgent a condition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    Warning,
    Error,
}

/// The kind of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionKind {
    StoreStopped,
    StoreDamaged,
    GuideDamaged,
    GuideUnscheduled,
    DiskLow,
    RecordingsDiskLow,
    RecordingsUnmounted,
    SourceFailing,
    BackupFailed,
    RestorePending,
    AccountExpiring,
    AccountExpired,
    AccountAddress,
    AccountCertificate,
    IntegrationPaused,
    PluginFailed,
    PluginConfinement,
    ConnectionsLimit,
    ClusterEngine,
    ClusterNode,
    StreamlinkMissing,
}

impl ConditionKind {
    /// Returns whether every user is told, and not only admins.
    pub(crate) fn is_for_all_users(self) -> bool {
        self == Self::RestorePending
    }
}

/// Something that an admin should know or do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// The same as long as the condition lasts, and different for another one.
    pub(crate) key: String,
    pub(crate) kind: ConditionKind,
    pub(crate) severity: Severity,
    pub(crate) title: String,
    /// A sentence about what happened. Without credentials.
    pub(crate) message: String,
    /// A sentence about the remedy.
    pub(crate) advice: String,
}

/// Returns the present conditions, the most urgent first. Blocks.
pub(crate) fn conditions(context: &RestContext) -> Vec<Condition> {
    let RestContext { models, config, .. } = context;
    let backups = &context.operation.backups;
    let now = now_ms();
    let mut found = Vec::new();
    found.extend(store_conditions(models));
    found.extend(backups.schedule_failure().map(backup_condition));
    found.extend(backups.is_restore_pending().then(restore_condition));
    found.extend(DiskSpace::read(&config.data_dir).and_then(disk_condition));
    found.extend(recordings_condition(&context.recordings.recorder.room()));
    found.extend(guide_conditions(models, &context.guide.guides.files));
    let (refreshes, addresses) = (models.refreshes.load(), models.account_addresses.load());
    for account in models.accounts.load().iter().filter(|it| it.is_active) {
        if let Some(refresh) = refreshes.get(account.id.0) {
            found.extend(source_condition(account, refresh.outcome, &refresh.message));
        }
        found.extend(addresses.get(account.id.0).and_then(|it| address_condition(account, it)));
        found.extend((!account.certificates.verify).then(|| certificate_condition(account)));
        found.extend(account.active_profiles().filter_map(|it| expiry_condition(account, it, now)));
    }
    if !context.live.plans.conditions().has_streamlink {
        found.extend(page_condition(models.streams.load().n_pages()));
    }
    let states = models.guide_states.load();
    for source in models.guide_sources.load().iter().filter(|it| it.is_active) {
        let state = states.get(source.id.0);
        found.extend(state.and_then(|it| guide_condition(source, it, now)));
    }
    found.extend(schedule_condition(models.guide_sources.load().iter().map(|it| &**it)));
    let integrations = models.integrations.load();
    for status in context.operation.integrations.statuses() {
        let integration = integrations.get(status.id.0).filter(|it| it.is_enabled);
        found.extend(integration.and_then(|it| integration_condition(it, &status)));
    }
    for plugin in models.plugins.load().iter().filter(|it| it.is_enabled) {
        let status = context.plugins.processes.handle.state(&plugin.key);
        found.extend(status.and_then(|it| plugin_condition(plugin, &it)));
    }
    found.extend(confinement_conditions(context));
    found.extend(connection_conditions(&context.operation.admission.limited_addresses()));
    if let Some(cluster) = context.nodes.cluster.get() {
        let mut view = ClusterView::clone(&cluster.view());
        view.nodes.retain(|it| !context.nodes.node().is_some_and(|own| own.has_removed(it)));
        found.extend(cluster_conditions(&view));
        let of_node = context.nodes.node().map(|it| it.trust.valid_nodes());
        let finalizable = of_node.and_then(|it| versions::finalizable(&view, &it));
        found.extend(finalizable.map(finalize_condition));
    }
    if let Some(node) = context.nodes.node() {
        let role = node.configuration.status().map(|it| it.role);
        found.extend(configuration_condition(role.as_ref(), &node.configuration.view()));
        let give_up_after = context.nodes.system.upgrade().map(|it| it.live_settings().load().give_up_after);
        let accounts = models.accounts.load();
        found.extend(give_up_after.and_then(|it| wait_condition(accounts.iter().map(|it| &**it), it)));
        found.extend(log_condition(&node.configuration.snapshots()));
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.severity));
    found
}

fn cluster_conditions(view: &ClusterView) -> Vec<Condition> {
    let mut found = Vec::new();
    if let Some(reason) = &view.disconnected {
        found.push(Condition {
            key: "cluster_engine".to_owned(),
            kind: ConditionKind::ClusterEngine,
            severity: Severity::Error,
            title: "The NATS servers of the cluster cannot be reached".to_owned(),
            message: format!("This node does not take part in the cluster: {reason}."),
            advice: "Start the servers, or correct the table [cluster] of the configuration. `headwater cluster check` says \
                     more."
                .to_owned(),
        });
    }
    found.extend(view.problem.as_ref().map(|problem| Condition {
        key: "cluster_name".to_owned(),
        kind: ConditionKind::ClusterNode,
        severity: Severity::Error,
        title: "This node cannot be a member of the cluster".to_owned(),
        message: problem.clone(),
        advice: "Give each node a name of its own, and restart it.".to_owned(),
    }));
    let expired = view.nodes.iter().filter(|it| it.state == NodeState::Expired);
    found.extend(expired.map(|it| Condition {
        key: format!("cluster_node:{}:{}", it.id.0, it.incarnation.map_or(0, |it| it.0)),
        kind: ConditionKind::ClusterNode,
        severity: Severity::Warning,
        title: format!("The node \"{}\" no longer answers", it.info.name),
        message: format!(
            "The node \"{}\" has not renewed its membership for 20 s, or its guard says that its gateway has ended.",
            it.info.name
        ),
        advice: "Start it, or stop it properly before it is switched off for long.".to_owned(),
    }));
    found.extend(view.nodes.iter().filter_map(clock_condition));
    found
}

fn clock_condition(node: &NodeView) -> Option<Condition> {
    let offset_ms = node.clock_offset_ms.filter(|it| it.unsigned_abs() >= CLOCK_OFFSET_MS_MAX)?;
    let (name, seconds) = (&node.info.name, offset_ms.unsigned_abs() as f64 / 1000.0);
    let direction = if offset_ms > 0 { "ahead of" } else { "behind" };
    Some(Condition {
        key: format!("cluster_clock:{}", node.id.0),
        kind: ConditionKind::ClusterNode,
        severity: Severity::Warning,
        title: format!("The clock of the node \"{name}\" differs"),
        message: format!("The clock of the node \"{name}\" is {seconds:.1} s {direction} that of this node."),
        advice: "Synchronise the clocks of all machines (NTP): schedules and logins depend on them."
            .to_owned(),
    })
}

fn finalize_condition(version: u32) -> Condition {
    Condition {
        key: format!("cluster_finalize:{version}"),
        kind: ConditionKind::ClusterNode,
        severity: Severity::Warning,
        title: "The upgrade of the cluster is not finalized".to_owned(),
        message: format!("All nodes read version {version} of their data, and write an older one."),
        advice: "Finalize it with `headwater cluster finalize` or on the page Nodes. Older versions of the gateway cannot be \
                 nodes any more after that."
            .to_owned(),
    }
}

fn configuration_condition(role: Option<&LogRole>, view: &ConfigurationView) -> Option<Condition> {
    let condition = |severity, title: &str, message: String, advice: &str| Condition {
        key: format!("cluster_configuration:{title}"),
        kind: ConditionKind::ClusterNode,
        severity,
        title: title.to_owned(),
        message,
        advice: advice.to_owned(),
    };
    if let Some(LogRole::ReadOnly(why)) = role {
        let advice = "Find out what happened to NATS. Then stop a node with a complete configuration, run `headwater cluster \
                      reseed` there, and start it; the others follow by themselves.";
        let message = format!("Changes are refused, because {why}. Playback continues.");
        return Some(condition(Severity::Error, "The configuration is read-only", message, advice));
    }
    let problem = view.problem.as_ref()?;
    if view.needs_snapshot {
        let advice =
            "It restarts by itself as soon as it has a snapshot. If that takes long, look at the log.";
        let message = format!("This node gets a snapshot of the configuration: {problem}.");
        return Some(condition(Severity::Warning, "This node rejoins the cluster", message, advice));
    }
    let advice =
        "It is tried again each second. If it stays, look at `headwater cluster check` and at the log.";
    let message = format!("This node does not follow the configuration of the cluster: {problem}.");
    Some(condition(Severity::Warning, "The configuration of this node may be old", message, advice))
}

fn log_condition(view: &SnapshotView) -> Option<Condition> {
    let message = match &view.problem {
        Some(problem) => format!("Old entries are not removed: {problem}."),
        None if view.is_log_large() => "Old entries are not removed: no snapshot has been made.".to_owned(),
        None => return None,
    };
    Some(Condition {
        key: "cluster_log".to_owned(),
        kind: ConditionKind::ClusterNode,
        severity: Severity::Warning,
        title: "The log of the configuration grows".to_owned(),
        message: format!("{message} At 1 GiB, NATS refuses changes; it has {} MiB.", view.log_bytes >> 20),
        advice: "It is tried again each minute. Look for room on the disks of this node and of NATS."
            .to_owned(),
    })
}

fn integration_condition(integration: &Integration, status: &IntegrationStatus) -> Option<Condition> {
    let reason = status.paused.as_ref()?;
    let Integration { id, name, .. } = integration;
    Some(Condition {
        key: format!("integration_paused:{id}:{}", status.failing_since.unwrap_or_default()),
        kind: ConditionKind::IntegrationPaused,
        severity: Severity::Warning,
        title: format!("Integration \"{name}\" is paused"),
        message: format!(
            "Integration \"{name}\" gets no events, because {reason}. Deliveries that wait: {}.",
            status.n_waiting
        ),
        advice: "Correct its address or its target, and resume it.".to_owned(),
    })
}

fn plugin_condition(plugin: &Plugin, status: &PluginStatus) -> Option<Condition> {
    if status.state != PluginState::Failed {
        return None;
    }
    let Plugin { id, key, .. } = plugin;
    let reason = status.reason.as_deref().unwrap_or("it does not start").trim_end_matches('.');
    Some(Condition {
        key: format!("plugin_failed:{id}:{}", status.since),
        kind: ConditionKind::PluginFailed,
        severity: Severity::Warning,
        title: format!("Plugin \"{key}\" has failed"),
        message: format!("Plugin \"{key}\" does not run any more, because {reason}. Its events wait."),
        advice: "Read its log, and restart, update or disable it.".to_owned(),
    })
}

fn store_conditions(models: &Models) -> Vec<Condition> {
    let why = models.store.stop_reason().borrow().clone();
    let stopped = why.map(|why| Condition {
        key: "store_stopped".to_owned(),
        kind: ConditionKind::StoreStopped,
        severity: Severity::Error,
        title: "The store refuses changes".to_owned(),
        message: refused_writes(&why),
        advice: format!("To continue, {}; a restart is not needed.", why.advice()),
    });
    let set_aside = models.store.set_aside();
    let damaged = (!set_aside.is_empty()).then(|| Condition {
        key: format!("store_damaged:{}", set_aside.len()),
        kind: ConditionKind::StoreDamaged,
        severity: Severity::Warning,
        title: "Damaged records were set aside".to_owned(),
        message: format!("{} damaged records are missing: {}.", set_aside.len(), set_aside.join(", ")),
        advice: "Refresh the playlists of the accounts, check the disk, and restore a back-up if something is missing."
            .to_owned(),
    });
    stopped.into_iter().chain(damaged).collect()
}

fn guide_conditions(models: &Models, files: &GuideFiles) -> Vec<Condition> {
    let (sources, present) = (models.guide_sources.load(), files.present());
    let damaged = files.damaged().into_iter().filter_map(|it| sources.get(it.0));
    let damaged = damaged.filter(|it| it.is_active);
    damaged.map(|it| damaged_guide_condition(it, present.contains_key(&it.id))).collect()
}

/// `is_in_use` states that a file of the source is read, with the parts of it that are not damaged.
fn damaged_guide_condition(source: &GuideSource, is_in_use: bool) -> Condition {
    let what = match is_in_use {
        true => "A part of its file cannot be read, so the programmes of that part are missing.",
        false => "Its file is missing or cannot be read, so its programmes are not shown.",
    };
    let (next, advice) = match source.can_be_refreshed() {
        true => (
            " It is fetched again from its source.",
            "If it stays, refresh the guide source and read its message. Check the disk if it happens again.",
        ),
        false => (
            "",
            "Restore a back-up, or upload or write the guide again, because it has no source that can be fetched. Check \
             the disk if it happens again.",
        ),
    };
    Condition {
        key: format!("guide_damaged:{}", source.id.0),
        kind: ConditionKind::GuideDamaged,
        severity: Severity::Warning,
        title: format!("The guide of source \"{}\" is damaged", source.name),
        message: format!("{what}{next}"),
        advice: advice.to_owned(),
    }
}

fn backup_condition(reason: String) -> Condition {
    Condition {
        key: "backup_failed".to_owned(),
        kind: ConditionKind::BackupFailed,
        severity: Severity::Error,
        title: "The scheduled back-up failed".to_owned(),
        message: reason,
        advice: "Remove the cause and make a back-up. The next one of the schedule is tried as well."
            .to_owned(),
    }
}

/// The name of the back-up is left out, because every user is told.
fn restore_condition() -> Condition {
    Condition {
        key: "restore_pending".to_owned(),
        kind: ConditionKind::RestorePending,
        severity: Severity::Warning,
        title: "A back-up is about to be restored".to_owned(),
        message: "At the next start of the gateway a back-up replaces all channels, accounts and users."
            .to_owned(),
        advice: "Streams stop for a moment then, and changes that are made until then are lost.".to_owned(),
    }
}

fn disk_condition(space: DiskSpace) -> Option<Condition> {
    let mib = space.available >> 20;
    (space.available < DISK_BYTES_LOW).then(|| Condition {
        key: "disk_low".to_owned(),
        kind: ConditionKind::DiskLow,
        severity: Severity::Warning,
        title: "The disk is almost full".to_owned(),
        message: format!("{mib} MiB are left on the file system of the data folder."),
        advice: "Free some space, or move the data folder to a larger disk. Changes are refused when 16 MiB are left."
            .to_owned(),
    })
}

fn recordings_condition(room: &RecordingRoom) -> Option<Condition> {
    if room.is_unmarked {
        return Some(Condition {
            key: "recordings_unmounted".to_owned(),
            kind: ConditionKind::RecordingsUnmounted,
            severity: Severity::Error,
            title: "The folder of the recordings is not mounted".to_owned(),
            message: "The folder lacks the file .headwater-recordings. Nothing is recorded, and the list of recordings stays."
                .to_owned(),
            advice: "Mount the disk of the recordings. If it is lost, create an empty file of that name in the folder."
                .to_owned(),
        });
    }
    let mib = room.available.filter(|it| *it < DISK_BYTES_LOW)? >> 20;
    let (severity, what) = match room.is_disk_full() {
        true => (Severity::Error, "No recording begins, and those that run end, the lowest priority first."),
        false => (Severity::Warning, "Recordings end when 64 MiB are left."),
    };
    Some(Condition {
        key: format!("recordings_disk_low:{}", room.is_disk_full()),
        kind: ConditionKind::RecordingsDiskLow,
        severity,
        title: "The disk of the recordings is almost full".to_owned(),
        message: format!("{mib} MiB are left on the file system of the recordings. {what}"),
        advice: "Delete recordings, or set retention_free_bytes in the settings of recordings to delete old ones automatically."
            .to_owned(),
    })
}

fn source_condition(account: &Account, outcome: RefreshOutcome, message: &str) -> Option<Condition> {
    let name = &account.name;
    let (severity, what, title, advice) = match outcome {
        RefreshOutcome::Success => return None,
        RefreshOutcome::Error => (
            Severity::Error,
            "failed",
            format!("The refresh of account \"{name}\" failed"),
            "Check the address and the login of the account, and refresh it. Its streams are kept as they were.",
        ),
        RefreshOutcome::AwaitingConfirmation => (
            Severity::Warning,
            "waits for a confirmation",
            format!("The refresh of account \"{name}\" waits for a confirmation"),
            "Check the playlist, and refresh the account with a confirmation if the shorter list is right.",
        ),
    };
    Some(Condition {
        key: format!("source_failing:{}:{what}", account.id.0),
        kind: ConditionKind::SourceFailing,
        severity,
        title,
        message: message.to_owned(),
        advice: advice.to_owned(),
    })
}

fn address_condition(account: &Account, record: &AddressRecord) -> Option<Condition> {
    let addresses = addresses_of(account);
    let active = record.in_use(&addresses).filter(|it| Some(*it) != addresses.first())?;
    Some(Condition {
        key: format!("account_address:{}:{}", account.id.0, record.changed_at),
        kind: ConditionKind::AccountAddress,
        severity: Severity::Warning,
        title: format!("Account \"{}\" uses another address", account.name),
        message: format!(
            "The first server of account \"{}\" was dead ({}), so its streams and lists come from {active}.",
            account.name, record.cause
        ),
        advice:
            "Nothing, if the first server comes back: a refresh asks it again. Otherwise change the address."
                .to_owned(),
    })
}

/// Streams that no installed program plays.
fn page_condition(n_pages: usize) -> Option<Condition> {
    let message = match n_pages {
        1 => "1 stream is a page of video sites such as YouTube. Only Streamlink can play them.".to_owned(),
        n => format!("{n} streams are pages of video sites such as YouTube. Only Streamlink can play them."),
    };
    (n_pages > 0).then(|| Condition {
        key: "streamlink_missing".to_owned(),
        kind: ConditionKind::StreamlinkMissing,
        severity: Severity::Warning,
        title: "Streamlink is not installed".to_owned(),
        message,
        advice: "Install Streamlink on the machine of the gateway, and restart the gateway.".to_owned(),
    })
}

fn certificate_condition(account: &Account) -> Condition {
    Condition {
        key: format!("account_certificate:{}", account.id.0),
        kind: ConditionKind::AccountCertificate,
        severity: Severity::Warning,
        title: format!("Account \"{}\" accepts any certificate", account.name),
        message: format!(
            "Anybody between the gateway and the servers of account \"{}\" can read its login.",
            account.name
        ),
        advice: "Set the fingerprint of the certificate, or its authority, in the settings of the account, and switch the \
                 check on."
            .to_owned(),
    }
}

/// Programmes last for days, so a source is reported once it has failed for a while.
fn guide_condition(source: &GuideSource, state: &GuideState, now: i64) -> Option<Condition> {
    let good_at = state.good_at.unwrap_or(source.created_at);
    let is_failing = state.status == GuideStatus::Error && good_at < now - GUIDE_FAILING_MS;
    is_failing.then(|| Condition {
        key: format!("guide_failing:{}:{good_at}", source.id.0),
        kind: ConditionKind::SourceFailing,
        severity: Severity::Warning,
        title: format!("The refresh of guide \"{}\" fails", source.name),
        message: format!("{} It has failed since {}.", state.message, iso_millis(good_at)),
        advice: "Check the address and the login of the guide source, and refresh it. The former guide is still shown."
            .to_owned(),
    })
}

/// Asks about guides that are never refreshed only because that was the default of earlier versions.
fn schedule_condition<'a>(sources: impl Iterator<Item = &'a GuideSource>) -> Option<Condition> {
    const NAMES_MAX: usize = 3;
    let open: Vec<&GuideSource> = sources.filter(|it| it.needs_schedule()).collect();
    let ids: Vec<String> = open.iter().map(|it| it.id.to_string()).collect();
    let mut names: Vec<String> = open.iter().take(NAMES_MAX).map(|it| format!("\"{}\"", it.name)).collect();
    if open.len() > NAMES_MAX {
        names.push(format!("{} more", open.len() - NAMES_MAX));
    }
    let last = names.pop()?;
    let all = match names.is_empty() {
        true => last,
        false => format!("{} and {last}", names.join(", ")),
    };
    let title = match open.len() {
        1 => format!("Guide {all} is never refreshed"),
        _ => format!("Guides {all} are never refreshed"),
    };
    Some(Condition {
        key: format!("guide_unscheduled:{}", ids.join(",")),
        kind: ConditionKind::GuideUnscheduled,
        severity: Severity::Warning,
        message: format!(
            "{title}, because that was the default of an earlier version. Without refreshes, a guide is empty after some \
             days."
        ),
        title,
        advice: "In the list of guides, choose to refresh every 24 hours or never; or set an interval for each guide."
            .to_owned(),
    })
}

fn expiry_condition(account: &Account, profile: &AccountProfile, now: i64) -> Option<Condition> {
    let at = profile.expires_at.filter(|it| *it < now + EXPIRY_NOTICE_MS)?;
    let is_expired = at <= now;
    let (name, login, end) = (&account.name, &profile.name, iso_millis(at));
    let (kind, severity, title, message) = match is_expired {
        true => (
            ConditionKind::AccountExpired,
            Severity::Error,
            format!("Account \"{name}\" expired"),
            format!("The login \"{login}\" of account \"{name}\" expired: {end}."),
        ),
        false => (
            ConditionKind::AccountExpiring,
            Severity::Warning,
            format!("Account \"{name}\" expires soon"),
            format!("The login \"{login}\" of account \"{name}\" expires soon: {end}."),
        ),
    };
    Some(Condition {
        // A renewal ends the condition, and the next expiry is another one.
        key: format!("account_expiring:{}:{at}:{is_expired}", profile.id.0),
        kind,
        severity,
        title,
        message,
        advice: "Renew it at the provider and set the new date, or deactivate the account.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use cluster::NodeInfo;
    use domain::account::PlaylistLocation;
    use domain::cluster::record::NodeId;
    use domain::guide::source::GuideSourceKind;
    use domain::ids::{AccountId, GuideSourceId, IntegrationId, ProfileId};
    use domain::source_url::SourceUrl;
    use domain::texts::TextCode;

    use super::*;

    fn account(id: u32, expires_at: Option<i64>) -> Account {
        let profile = AccountProfile { expires_at, ..AccountProfile::default_of(ProfileId(id), "login", 1) };
        Account::new(AccountId(id), format!("provider {id}"), PlaylistLocation::None, profile, 0)
    }

    #[test]
    fn an_account_is_reported_a_week_before_it_expires_and_afterwards() {
        let found = |expires_at: Option<i64>, now: i64| {
            let account = account(2, expires_at);
            let condition = expiry_condition(&account, &account.profiles[0], now);
            condition.map(|it| (it.kind, it.severity))
        };
        let at = 100 * DAY_MS;
        assert_eq!(found(None, at), None);
        assert_eq!(found(Some(at), at - 8 * DAY_MS), None);
        let soon = Some((ConditionKind::AccountExpiring, Severity::Warning));
        assert_eq!(found(Some(at), at - 6 * DAY_MS), soon);
        assert_eq!(found(Some(at), at), Some((ConditionKind::AccountExpired, Severity::Error)));
    }

    #[test]
    fn a_guide_source_is_reported_after_a_day_without_a_success() {
        let source = GuideSource::new(GuideSourceId(3), "Guide", GuideSourceKind::Xmltv, 0);
        let now = 10 * DAY_MS;
        for (status, good_at, is_reported) in [
            (GuideStatus::Success, None, false),
            (GuideStatus::Error, Some(now - DAY_MS / 2), false),
            (GuideStatus::Error, Some(now - 2 * DAY_MS), true),
            // Never successful since it was created.
            (GuideStatus::Error, None, true),
        ] {
            let state = GuideState { status, good_at, ..GuideState::new(source.id) };
            assert_eq!(
                guide_condition(&source, &state, now).is_some(),
                is_reported,
                "{status:?} {good_at:?}"
            );
        }
    }

    #[test]
    fn a_damaged_guide_says_what_is_missing_and_whether_it_is_fetched_again() {
        let url = Some(SourceUrl::new("http://guide.example/guide.xml"));
        let source = GuideSource::new(GuideSourceId(3), "Guide", GuideSourceKind::Xmltv, 0);
        let fetched = damaged_guide_condition(&GuideSource { url, ..source.clone() }, true);
        assert!(fetched.message.starts_with("A part of its file"), "{fetched:?}");
        assert!(fetched.message.ends_with("It is fetched again from its source."), "{fetched:?}");
        let lost = damaged_guide_condition(&source, false);
        assert!(lost.message.ends_with("its programmes are not shown."), "{lost:?}");
        assert!(lost.advice.starts_with("Restore a back-up"), "{lost:?}");
    }

    #[test]
    fn guides_that_nobody_scheduled_are_one_question_until_it_is_answered() {
        let url = Some(SourceUrl::new("http://guide.example/guide.xml"));
        let source = |id: u32| {
            let new = GuideSource::new(GuideSourceId(id), format!("G{id}"), GuideSourceKind::Xmltv, 0);
            GuideSource { url: url.clone(), ..new }
        };
        let title = |sources: &[GuideSource]| schedule_condition(sources.iter()).map(|it| it.title);
        assert_eq!(title(&[]), None);
        assert_eq!(title(&[source(1)]).unwrap(), "Guide \"G1\" is never refreshed");
        assert_eq!(title(&[source(1), source(2)]).unwrap(), "Guides \"G1\" and \"G2\" are never refreshed");
        let many: Vec<_> = (1..=5).map(source).collect();
        assert_eq!(title(&many).unwrap(), "Guides \"G1\", \"G2\", \"G3\" and 2 more are never refreshed");
        let answered = GuideSource { is_schedule_chosen: true, ..source(1) };
        assert_eq!(title(std::slice::from_ref(&answered)), None);
        let rest = schedule_condition([answered, source(2)].iter()).unwrap();
        assert_eq!(rest.key, "guide_unscheduled:2");
    }

    /// Conditions of accounts, guides, disks and back-ups.
    fn usual_conditions() -> Vec<Condition> {
        let now = 10 * DAY_MS;
        let (fresh, expired) = (account(1, Some(now + DAY_MS)), account(2, Some(now - 1)));
        let source = |id: u32| {
            let url = Some(SourceUrl::new("http://guide.example/guide.xml"));
            let new = GuideSource::new(GuideSourceId(id), format!("G{id}"), GuideSourceKind::Xmltv, 0);
            GuideSource { url, ..new }
        };
        let message = "the guide is empty: it names no channels".to_owned();
        let state = GuideState { status: GuideStatus::Error, message, ..GuideState::new(GuideSourceId(1)) };
        let (mut unmounted, mut full) = (RecordingRoom::default(), RecordingRoom::default());
        unmounted.is_unmarked = true;
        full.available = Some(100 << 20);
        let empty = "the playlist has no entries";
        [
            source_condition(&fresh, RefreshOutcome::Error, empty),
            source_condition(&fresh, RefreshOutcome::AwaitingConfirmation, empty),
            expiry_condition(&fresh, &fresh.profiles[0], now),
            expiry_condition(&expired, &expired.profiles[0], now),
            guide_condition(&source(1), &state, now),
            schedule_condition([source(1)].iter()),
            schedule_condition([source(1), source(2)].iter()),
            disk_condition(DiskSpace { available: 1 << 20, total: 1 << 40 }),
            recordings_condition(&unmounted),
            recordings_condition(&full),
            page_condition(1),
            page_condition(2),
            Some(damaged_guide_condition(&source(1), true)),
            Some(damaged_guide_condition(&GuideSource { url: None, ..source(1) }, false)),
            Some(certificate_condition(&fresh)),
            Some(restore_condition()),
            Some(backup_condition("the disk is full".to_owned())),
        ]
        .into_iter()
        .map(Option::unwrap)
        .collect()
    }

    #[test]
    fn title_message_and_advice_of_the_usual_conditions_have_codes() {
        for condition in usual_conditions() {
            for text in [&condition.title, &condition.message, &condition.advice] {
                assert!(TextCode::find(text).is_some(), "{text}");
            }
        }
    }

    #[test]
    fn a_failed_plugin_is_reported_with_its_reason() {
        let plugin: Plugin = serde_json::from_value(serde_json::json!({
            "id": 4, "key": "tidy", "is_enabled": true, "was_enabled": true, "granted": null, "settings": {},
            "version": "1", "installed_at": 0, "updated_at": 0,
        }))
        .unwrap();
        let status = |state| PluginStatus {
            state,
            reason: Some("it crashed five times.".to_owned()),
            since: 7,
            pid: None,
            crashes: 5,
            runs: 0,
            waiting: 0,
        };
        let condition = plugin_condition(&plugin, &status(PluginState::Failed)).unwrap();
        assert_eq!((&*condition.key, condition.kind), ("plugin_failed:4:7", ConditionKind::PluginFailed));
        assert!(
            condition.message.contains("because it crashed five times. Its events wait."),
            "{condition:?}"
        );
        assert_eq!(plugin_condition(&plugin, &status(PluginState::Restarting)), None);
    }

    #[test]
    fn a_paused_integration_is_reported_with_its_reason() {
        let script =
            domain::integration::Script { path: "/srv/a.sh".into(), working_directory: None, timeout_s: 1 };
        let integration = Integration {
            id: IntegrationId(4),
            name: "Chat".to_owned(),
            is_enabled: true,
            target: domain::integration::Target::Script(script),
            subscriptions: Vec::new(),
            parallel: 1,
            max_age_s: None,
            created_at: 0,
            is_trusted: false,
            digest_minutes: None,
        };
        let status = IntegrationStatus {
            id: IntegrationId(4),
            n_waiting: 12,
            n_running: 0,
            n_dead: 1,
            failing_since: Some(7),
            paused: Some("all deliveries failed for five days".to_owned()),
        };
        let condition = integration_condition(&integration, &status).unwrap();
        assert_eq!(
            (&*condition.key, condition.kind),
            ("integration_paused:4:7", ConditionKind::IntegrationPaused)
        );
        assert!(
            condition.message.contains("failed for five days. Deliveries that wait: 12."),
            "{condition:?}"
        );
        assert_eq!(integration_condition(&integration, &IntegrationStatus { paused: None, ..status }), None);
    }

    #[test]
    fn a_log_that_is_not_shortened_and_a_node_that_needs_a_snapshot_are_reported() {
        assert_eq!(log_condition(&SnapshotView { log_bytes: 511 << 20, ..SnapshotView::default() }), None);
        let large = log_condition(&SnapshotView { log_bytes: 512 << 20, ..SnapshotView::default() }).unwrap();
        assert!(large.message.contains("no snapshot") && large.message.contains("512 MiB"), "{large:?}");
        let problem = Some("the disk is full".to_owned());
        let failing = log_condition(&SnapshotView { problem, ..SnapshotView::default() }).unwrap();
        assert!(failing.message.contains("the disk is full"), "{failing:?}");
        let problem = Some("entry 7 is gone".to_owned());
        let behind = ConfigurationView { problem, needs_snapshot: true, ..ConfigurationView::default() };
        let rejoining = configuration_condition(Some(&LogRole::Follower), &behind).unwrap();
        assert!(rejoining.advice.contains("restarts by itself"), "{rejoining:?}");
        let read_only = LogRole::ReadOnly("the log ends".to_owned());
        let broken = configuration_condition(Some(&read_only), &behind).unwrap();
        assert!(broken.advice.contains("headwater cluster reseed"), "{broken:?}");
    }

    #[test]
    fn a_node_whose_clock_differs_by_a_second_is_reported() {
        let node = |clock_offset_ms| NodeView {
            id: NodeId(7),
            info: NodeInfo { name: "attic".to_owned(), ..NodeInfo::default() },
            state: NodeState::Alive,
            incarnation: None,
            last_seen: None,
            clock_offset_ms,
            is_own: false,
        };
        for good in [None, Some(999), Some(-999)] {
            assert_eq!(clock_condition(&node(good)), None);
        }
        let ahead = clock_condition(&node(Some(1_500))).unwrap();
        assert_eq!(ahead.message, "The clock of the node \"attic\" is 1.5 s ahead of that of this node.");
        let behind = clock_condition(&node(Some(i64::MIN))).unwrap();
        assert!(behind.message.contains("s behind that"), "{behind:?}");
    }

    #[test]
    fn a_full_disk_is_reported_with_the_room_that_is_left() {
        let space = DiskSpace { available: 100 << 20, total: 1 << 40 };
        assert!(disk_condition(space).unwrap().message.starts_with("100 MiB"));
        assert_eq!(disk_condition(DiskSpace { available: 2 << 30, ..space }), None);
    }
}
