//! `/api/core/health/`: the state of the gateway, and what an admin should do.

use domain::plugin::{ConfinementPart, LackingPart};
use domain::user::UserLevel;
use resource_derive::View;
use route_frame::access::STANDARD;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;
use services::disk_space::DiskSpace;

use crate::api::proxy::visible_targets;
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::gateway_conditions::{Condition, ConditionKind, Severity, conditions};
use crate::text_code::TextCodeView;

/// State of the gateway. Users who are not admins get the state and the counts only.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct HealthView {
    /// The worst of all problems: `ok`, `warning` or `error`.
    #[field(example = "ok")]
    status: Named<HealthStatus>,
    /// Version number of the release.
    #[field(example = "0.2.0")]
    version: &'static str,
    /// Counts of problems, sources and viewers.
    counts: HealthCountsView,
    /// The problems, the most urgent first. Empty for users who are not admins.
    problems: Vec<HealthProblemView>,
    /// Size of the store; `null` for users who are not admins.
    store: Option<StoreSizeView>,
    /// Room on the file system of the data folder; `null` for users who are not admins, and if it is unknown.
    disk: Option<DiskView>,
    /// Parts of the confinement of plugins and programs that this machine lacks. Empty for users who are not admins.
    lacking_confinement: Vec<LackingConfinementView>,
}

/// A part of the confinement of plugins and programs that this machine lacks.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LackingConfinementView {
    /// The part of the system that it needs.
    part: Named<ConfinementPart>,
    /// The rule that is not enforced, in a sentence.
    message: String,
    /// The remedy, with the line that switches the part on.
    advice: String,
}

/// Counts of problems, sources and viewers. Users who are not admins get the counts of the channels that they may see.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct HealthCountsView {
    /// Number of problems of all kinds.
    #[field(example = "0")]
    problems: usize,
    /// Active playlist accounts.
    #[field(example = "2")]
    accounts: usize,
    /// Active accounts whose last refresh failed or waits for a confirmation.
    #[field(example = "0")]
    failing_accounts: usize,
    /// Logins that expire within a week or have expired.
    #[field(example = "0")]
    expiring_accounts: usize,
    /// Channels.
    #[field(example = "120")]
    channels: usize,
    /// Live channels.
    #[field(example = "3")]
    live_channels: usize,
    /// Connected viewers.
    #[field(example = "5")]
    viewers: usize,
}

/// A problem, and what to do about it.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct HealthProblemView {
    /// Identifies the problem while it lasts.
    #[field(example = "disk_low")]
    key: String,
    /// Kind of the problem.
    kind: Named<ConditionKind>,
    /// Its severity.
    severity: Named<Severity>,
    /// The problem in a few words.
    #[field(example = "The disk is almost full")]
    title: String,
    /// The problem in a sentence.
    message: String,
    /// The remedy in a sentence.
    advice: String,
    /// The code of `title`, if it has one.
    title_code: Option<TextCodeView>,
    /// The code of `message`, if it has one.
    message_code: Option<TextCodeView>,
    /// The code of `advice`, if it has one.
    advice_code: Option<TextCodeView>,
}

/// Size of the store.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StoreSizeView {
    /// Number of the last change.
    commit: u64,
    /// Size of the records, in bytes.
    record_bytes: u64,
    /// Size of the database on the disk, in bytes.
    disk_bytes: u64,
    /// Whether changes are accepted.
    is_writable: bool,
}

/// Room on a file system.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct DiskView {
    /// Available bytes.
    available_bytes: u64,
    /// Size in bytes.
    total_bytes: u64,
}

choice!(
    enum HealthStatus {
        Ok = "ok",
        Warning = "warning",
        Error = "error",
    }
);
choice!(ConfinementPart { Landlock = "landlock", ControlGroup = "control_group" });
choice!(Severity { Warning = "warning", Error = "error" });
choice!(ConditionKind {
    StoreStopped = "store_stopped",
    StoreDamaged = "store_damaged",
    GuideDamaged = "guide_damaged",
    GuideUnscheduled = "guide_unscheduled",
    DiskLow = "disk_low",
    RecordingsDiskLow = "recordings_disk_low",
    RecordingsUnmounted = "recordings_unmounted",
    SourceFailing = "source_failing",
    BackupFailed = "backup_failed",
    RestorePending = "restore_pending",
    AccountExpiring = "account_expiring",
    AccountExpired = "account_expired",
    AccountAddress = "account_address",
    AccountCertificate = "account_certificate",
    IntegrationPaused = "integration_paused",
    PluginFailed = "plugin_failed",
    PluginConfinement = "plugin_confinement",
    ConnectionsLimit = "connections_limit",
    ClusterEngine = "cluster_engine",
    ClusterNode = "cluster_node",
    StreamlinkMissing = "streamlink_missing",
});

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/health/", STANDARD, "Returns the state of the gateway.", retrieve)]
}

async fn retrieve(call: Call) -> Result<HealthView, Refusal> {
    let is_admin = call.identity()?.may(UserLevel::Admin);
    let seen = SeenCounts::count(&call, is_admin).await;
    // Reads the file system.
    run_blocking("read the state of the gateway", move || view(&call, is_admin, seen)).await
}

/// The channels that the caller may see, and those of them that play.
struct SeenCounts {
    channels: usize,
    live_channels: usize,
    viewers: usize,
}

impl SeenCounts {
    async fn count(call: &Call, is_admin: bool) -> Self {
        let channels = call.rest().models.channels.load();
        if is_admin {
            let live = call.rest().nodes.counts();
            return Self { channels: channels.len(), live_channels: live.channels, viewers: live.clients };
        }
        let (is_listed, is_visible) = (call.listed(), visible_targets(call));
        let channels = channels.iter().filter(|it| is_listed(it)).count();
        // Without an answer in time, none of them counts: the state of the gateway is answered in any case.
        let all = call.rest().live.switchboard.overview().await.unwrap_or_default();
        let live: Vec<_> = all.iter().filter(|it| is_visible(it.target)).collect();
        let clients = live.iter().filter_map(|it| it.status.as_ref()).map(|it| it.clients.len());
        Self { channels, live_channels: live.len(), viewers: clients.sum() }
    }
}

fn view(call: &Call, is_admin: bool, seen: SeenCounts) -> HealthView {
    let (context, models) = (call.rest(), &call.rest().models);
    let found = conditions(context);
    let status = match found.iter().map(|it| it.severity).max() {
        None => HealthStatus::Ok,
        Some(Severity::Warning) => HealthStatus::Warning,
        Some(Severity::Error) => HealthStatus::Error,
    };
    let count = |kinds: &[ConditionKind]| found.iter().filter(|it| kinds.contains(&it.kind)).count();
    let counts = HealthCountsView {
        problems: found.len(),
        accounts: models.accounts.load().iter().filter(|it| it.is_active).count(),
        failing_accounts: count(&[ConditionKind::SourceFailing]),
        expiring_accounts: count(&[ConditionKind::AccountExpiring, ConditionKind::AccountExpired]),
        channels: seen.channels,
        live_channels: seen.live_channels,
        viewers: seen.viewers,
    };
    let store = is_admin.then(|| {
        let sizes = models.store.statistics();
        StoreSizeView {
            commit: sizes.version,
            record_bytes: sizes.live_bytes,
            disk_bytes: sizes.disk_bytes,
            is_writable: models.store.stop_reason().borrow().is_none(),
        }
    });
    let disk = DiskSpace::read(&context.config.data_dir).filter(|_| is_admin);
    let lacking = context.plugins.processes.handle.lacking_parts().into_iter().filter(|_| is_admin);
    HealthView {
        status: Named(status),
        version: env!("CARGO_PKG_VERSION"),
        counts,
        problems: found.into_iter().filter(|_| is_admin).map(problem).collect(),
        store,
        disk: disk.map(|it| DiskView { available_bytes: it.available, total_bytes: it.total }),
        lacking_confinement: lacking.map(lacking_confinement).collect(),
    }
}

fn lacking_confinement(lacking: LackingPart) -> LackingConfinementView {
    let LackingPart { part, message, advice } = lacking;
    LackingConfinementView { part: Named(part), message, advice }
}

fn problem(condition: Condition) -> HealthProblemView {
    HealthProblemView {
        key: condition.key,
        kind: Named(condition.kind),
        severity: Named(condition.severity),
        title_code: TextCodeView::find(&condition.title),
        message_code: TextCodeView::find(&condition.message),
        advice_code: TextCodeView::find(&condition.advice),
        title: condition.title,
        message: condition.message,
        advice: condition.advice,
    }
}

#[cfg(test)]
mod tests {
    use domain::account::{Account, AccountProfile, PlaylistLocation, RefreshOutcome, RefreshRecord};
    use domain::channel::Channel;
    use domain::ids::{AccountId, ChannelId, ProfileId};
    use domain::user::UserLevel;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use crate::testing::Rest;

    const PATH: &str = "/api/core/health/";

    #[tokio::test]
    async fn an_admin_learns_what_is_wrong_and_what_to_do_and_others_only_how_much() {
        let rest = Rest::start().await;
        let healthy = rest.standard("GET", PATH, Value::Null).await.body;
        assert_eq!((&healthy["counts"]["failing_accounts"], &healthy["store"]), (&json!(0), &Value::Null));

        let profile =
            AccountProfile { expires_at: Some(1), ..AccountProfile::default_of(ProfileId(2), "login", 1) };
        rest.put([Account::new(AccountId(2), "Secret TV", PlaylistLocation::None, profile, 0)]).await;
        let refresh = RefreshRecord {
            outcome: RefreshOutcome::Error,
            message: "tv.example answered 403".to_owned(),
            ..RefreshRecord::new(AccountId(2))
        };
        rest.put([refresh]).await;
        let health = rest.admin("GET", PATH, Value::Null).await.body;
        assert_eq!(health["status"], "error");
        let problems = health["problems"].as_array().unwrap();
        let problem = |kind: &str| problems.iter().find(|it| it["kind"] == kind).unwrap();
        assert_eq!(problem("source_failing")["message"], "tv.example answered 403");
        assert!(problem("source_failing")["advice"].as_str().unwrap().starts_with("Check the address"));
        assert!(problem("account_expired")["title"].as_str().unwrap().contains("Secret TV"));
        assert_eq!(health["store"]["is_writable"], json!(true));

        let reduced = rest.standard("GET", PATH, Value::Null).await;
        assert_eq!((&reduced.body["status"], &reduced.body["problems"]), (&json!("error"), &json!([])));
        assert_eq!(reduced.body["counts"]["failing_accounts"], 1);
        assert_eq!(reduced.body["counts"]["expiring_accounts"], 1);
        assert!(!reduced.text.contains("Secret TV") && !reduced.text.contains("tv.example"));
        assert_eq!(rest.streamer("GET", PATH, Value::Null).await.status, 403);
    }

    #[tokio::test]
    async fn other_users_get_the_counts_of_the_channels_that_they_may_see() {
        let rest = Rest::start().await;
        let channel = |id: u32| {
            let uuid = Uuid::from_u128(id.into());
            Channel::new(ChannelId(id), uuid, format!("channel {id}"), 0)
        };
        let hidden = Channel { user_level: UserLevel::Admin, ..channel(3) };
        rest.put([channel(1), channel(2), hidden, Channel { enabled: false, ..channel(4) }]).await;
        let all = rest.admin("GET", PATH, Value::Null).await.body;
        let seen = rest.standard("GET", PATH, Value::Null).await.body;
        assert_eq!((&all["counts"]["channels"], &seen["counts"]["channels"]), (&json!(4), &json!(2)));
        assert_eq!((&seen["counts"]["live_channels"], &seen["counts"]["viewers"]), (&json!(0), &json!(0)));
    }
}
