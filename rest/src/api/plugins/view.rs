//! The representation of a plugin.

use actors::{PluginResources, ShownSchedule};
use domain::plugin::{ApiAccess, LimitsEdit, Permissions, PluginState};
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};
use services::plugins::PluginEntry;

use crate::context::RestCall;

/// A schedule of a plugin.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginScheduleView {
    /// Unique among the schedules of the same source.
    #[field(example = "nightly")]
    id: String,
    /// Id of the action that runs.
    #[field(example = "sync")]
    action: String,
    /// Cron expression in the time zone of the gateway.
    #[field(example = "0 4 * * *")]
    cron: String,
    /// When it runs next; `null` while the plugin is disabled.
    next_run: Option<Time>,
    /// `manifest`, or `plugin` if the code has set it.
    #[field(example = "manifest")]
    source: &'static str,
}

impl PluginScheduleView {
    fn new(shown: ShownSchedule) -> Self {
        let ShownSchedule { schedule, next_run } = shown;
        Self {
            source: schedule.source.name(),
            id: schedule.id,
            action: schedule.action,
            cron: schedule.cron,
            next_run: next_run.map(Time),
        }
    }
}

/// An installed plugin. Its texts are written by strangers: show them as text.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PluginView {
    /// Name of its folder.
    #[field(example = "my_plugin")]
    key: String,
    /// Name for people.
    #[field(example = "My Plugin")]
    name: String,
    /// Version of the plugin.
    #[field(example = "1.2.3")]
    version: String,
    /// Purpose of the plugin.
    description: String,
    /// Author of the plugin.
    author: String,
    /// Web address with help; empty without one.
    help_url: String,
    /// Whether an admin has enabled it.
    enabled: bool,
    /// Whether it has ever been enabled.
    ever_enabled: bool,
    /// Schema of its settings, as the plugin describes it, without what is damaged in it.
    fields: Vec<Map<String, Value>>,
    /// Saved settings; passwords are masked. Missing ones have the defaults of `fields`.
    settings: Map<String, Value>,
    /// Actions, as the plugin describes them, without what is damaged in them.
    actions: Vec<Map<String, Value>>,
    /// Whether its folder is missing.
    missing: bool,
    /// The same as `ever_enabled`.
    trusted: bool,
    /// Whether its code runs.
    loaded: bool,
    /// `disabled`, `preparing`, `starting`, `ready`, `busy`, `idle`, `stopping`, `restarting` or `failed`.
    #[field(example = "ready")]
    state: &'static str,
    /// Since when it has this state.
    state_since: Option<Time>,
    /// Runs that go on.
    runs: usize,
    /// Runs that wait.
    waiting_runs: usize,
    /// Events and scheduled runs that are stored for it and wait.
    waiting_deliveries: usize,
    /// Its dead letters: events and scheduled runs that failed for good.
    dead_deliveries: usize,
    /// When actions run by themselves.
    schedules: Vec<PluginScheduleView>,
    /// Crashes since the gateway started.
    crashes: u32,
    /// Use of resources by its processes: `memory_bytes`, `cpu_ms`, `processes`, `threads` and `data_bytes`.
    resources: Option<Map<String, Value>>,
    /// Whether it has no manifest.
    legacy: bool,
    /// Address of its logo.
    logo_url: Option<String>,
    /// Always `null`: plugins are installed from files.
    source_repo: Option<String>,
    /// Always `null`.
    source_repo_name: Option<String>,
    /// Always false.
    is_official_repo: bool,
    /// Always empty.
    slug: &'static str,
    /// Always false.
    is_managed: bool,
    /// Whether the version is a pre-release, such as `1.0.0-beta`.
    installed_version_is_prerelease: bool,
    /// Always false.
    update_available: bool,
    /// Always empty.
    latest_version: &'static str,
    /// Whether its author advises against using it.
    deprecated: bool,
    /// Permissions that this version asks for: `declared`, `api`, `network`, `listen`, `programs` and `files`.
    permissions: Option<Map<String, Value>>,
    /// Permissions that an admin has granted.
    granted_permissions: Option<Map<String, Value>>,
    /// Permissions that enabling would grant in addition, as texts.
    additional_permissions: Vec<String>,
    /// Python packages that it needs.
    requirements: Vec<String>,
    /// Of these, the ones that an admin allowed to be fetched.
    allowed_packages: Vec<String>,
    /// Of a plugin that is not enabled, what its code uses and this gateway does not have, found without running it:
    /// `unsupported` (`name`, `file`, `line`), `packages`, and `folders` that it names below `/data`. `requirements` are those
    /// that have to be fetched.
    scan: Option<Map<String, Value>>,
    /// Limits of its processes, as they apply: `memory_mib`, `cpu_percent` of one core, `processes`, `open_files` and
    /// `data_mib`.
    limits: Option<Map<String, Value>>,
    /// Those of the limits that an admin set.
    admin_limits: Map<String, Value>,
    /// Restrictions that are not enforced here, as sentences. Enabling needs `accept_gaps` if some are new.
    gaps: Vec<&'static str>,
    /// Those of the gaps that neither an admin nor the configuration has accepted yet.
    unaccepted_gaps: Vec<&'static str>,
    /// Facts to know before enabling it, such as damaged elements of the manifest, which are ignored.
    warnings: Vec<String>,
    /// Why it cannot be used.
    error: Option<String>,
    /// When it was installed.
    installed_at: Option<Time>,
}

impl PluginView {
    pub(super) fn was_enabled(&self) -> bool {
        self.ever_enabled
    }

    pub(super) async fn new(call: &Call, plugin: &PluginEntry) -> Self {
        let processes = &call.rest().plugins.processes.handle;
        let (status, resources) = (processes.state(&plugin.key), processes.resources(&plugin.key).await);
        let (record, manifest) = (plugin.record.as_deref(), plugin.manifest());
        let (waiting_deliveries, dead_deliveries) =
            record.map_or((0, 0), |it| call.rest().operation.integrations.counts_of_plugin(it.id));
        let schedules = record.map(|it| processes.schedules_of(it.id)).unwrap_or_default();
        let fields = plugin.fields();
        let reported = record.and_then(|it| it.reported.clone()).filter(|_| {
            // A manifest is more current than the last run.
            manifest.is_none_or(|it| it.is_legacy)
        });
        let text = |of_manifest: fn(&domain::plugin::Manifest) -> &String| {
            manifest.map(of_manifest).cloned().unwrap_or_default()
        };
        let reported = reported.unwrap_or_default();
        let version = reported.version.unwrap_or_else(|| match manifest {
            Some(manifest) => manifest.version.clone(),
            None => record.map(|it| it.version.clone()).unwrap_or_default(),
        });
        let granted = record.and_then(|it| it.granted.as_ref());
        let scan = match manifest {
            Some(manifest) if manifest.command.is_none() && record.is_none_or(|it| !it.is_enabled) => {
                processes.scan(&plugin.key, &manifest.requirements).await
            }
            _ => None,
        };
        let limits = record.map(|it| it.limits).unwrap_or_default();
        let wanted = manifest.map_or_else(Permissions::none, |it| it.permissions.clone());
        let gaps = processes.gaps(&wanted);
        let accepted = record.map(|it| it.accepted_gaps.clone()).unwrap_or_default();
        let accepted = &accepted | &call.rest().config.plugins.accept_gaps;
        Self {
            key: plugin.key.to_string(),
            name: reported
                .name
                .or_else(|| manifest.map(|it| it.name.clone()))
                .unwrap_or_else(|| plugin.key.to_string()),
            installed_version_is_prerelease: version.split('+').next().is_some_and(|it| it.contains('-')),
            version,
            description: reported.description.unwrap_or_else(|| text(|it| &it.description)),
            author: text(|it| &it.author),
            help_url: text(|it| &it.help_url),
            enabled: record.is_some_and(|it| it.is_enabled),
            ever_enabled: record.is_some_and(|it| it.was_enabled),
            settings: record.map(|it| it.settings.masked(&fields)).unwrap_or_default(),
            fields: fields.iter().map(|it| it.shown()).collect(),
            actions: plugin.actions(),
            missing: plugin.manifest.is_none(),
            trusted: record.is_some_and(|it| it.was_enabled),
            loaded: status.as_ref().is_some_and(|it| it.pid.is_some()),
            state: status.as_ref().map_or(PluginState::Disabled, |it| it.state).name(),
            state_since: status.as_ref().map(|it| Time(it.since)),
            runs: status.as_ref().map(|it| it.runs).unwrap_or_default(),
            waiting_runs: status.as_ref().map(|it| it.waiting).unwrap_or_default(),
            waiting_deliveries,
            dead_deliveries,
            schedules: schedules.into_iter().map(PluginScheduleView::new).collect(),
            crashes: status.as_ref().map(|it| it.crashes).unwrap_or_default(),
            resources: resources.map(used),
            legacy: manifest.is_some_and(|it| it.is_legacy),
            logo_url: plugin
                .has_logo
                .then(|| format!("{}/api/plugins/plugins/{}/logo/", call.origin(), plugin.key)),
            source_repo: None,
            source_repo_name: None,
            is_official_repo: false,
            slug: "",
            is_managed: false,
            update_available: false,
            latest_version: "",
            deprecated: manifest.is_some_and(|it| it.json.get("deprecated") == Some(&Value::Bool(true))),
            permissions: manifest.map(|it| permissions(&it.permissions)),
            granted_permissions: granted.map(permissions),
            additional_permissions: manifest
                .map(|it| it.permissions.beyond(granted.unwrap_or(&Permissions::none())))
                .unwrap_or_default(),
            requirements: manifest.map(|it| it.requirements.clone()).unwrap_or_default(),
            allowed_packages: record.map(|it| it.allowed_packages.clone()).unwrap_or_default(),
            scan: scan.and_then(|it| serde_json::to_value(it).ok()?.as_object().cloned()),
            limits: manifest.and_then(|it| object(limits.over(it.limits))),
            admin_limits: set_limits(limits),
            gaps: gaps.iter().map(|it| it.sentence()).collect(),
            unaccepted_gaps: gaps.difference(&accepted).map(|it| it.sentence()).collect(),
            warnings: plugin.warnings(),
            error: error(plugin).or_else(|| status?.reason),
            installed_at: record.map(|it| Time(it.installed_at)),
        }
    }
}

/// Returns why a plugin cannot be used.
fn error(plugin: &PluginEntry) -> Option<String> {
    match &plugin.manifest {
        None => Some("The folder of the plugin is missing.".to_owned()),
        Some(Err(error)) => Some(error.to_string()),
        Some(Ok(_)) => plugin.record.as_ref()?.failed.clone(),
    }
}

/// Returns permissions as an object of names and lists.
fn permissions(permissions: &Permissions) -> Map<String, Value> {
    let api: Vec<String> = match &permissions.api {
        ApiAccess::Full => vec!["full".to_owned()],
        ApiAccess::Scopes(scopes) => scopes.iter().map(ToString::to_string).collect(),
    };
    let files: Vec<String> = permissions.files.iter().map(ToString::to_string).collect();
    Map::from_iter([
        ("declared".to_owned(), permissions.is_declared.into()),
        ("api".to_owned(), api.into()),
        ("network".to_owned(), permissions.network.into()),
        ("listen".to_owned(), json!(permissions.listen)),
        ("programs".to_owned(), json!(permissions.programs)),
        ("files".to_owned(), files.into()),
    ])
}

/// Returns the limits that are set.
pub(super) fn set_limits(limits: LimitsEdit) -> Map<String, Value> {
    object(limits).unwrap_or_default().into_iter().filter(|it| !it.1.is_null()).collect()
}

fn object(value: impl Serialize) -> Option<Map<String, Value>> {
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => Some(members),
        _ => None,
    }
}

/// Returns the use of resources as an object.
fn used(resources: PluginResources) -> Map<String, Value> {
    let PluginResources { memory_bytes, cpu_ms, processes, threads, data_bytes } = resources;
    Map::from_iter([
        ("memory_bytes".to_owned(), memory_bytes.into()),
        ("cpu_ms".to_owned(), cpu_ms.into()),
        ("processes".to_owned(), processes.into()),
        ("threads".to_owned(), threads.into()),
        ("data_bytes".to_owned(), data_bytes.into()),
    ])
}
