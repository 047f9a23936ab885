//! Enabling and disabling plugins. Enabling grants the permissions of the installed version.

use std::collections::BTreeSet;
use std::sync::Arc;

use actors::now_ms;
use domain::plugin::{FileAccess, FilePlace, GapConsent, PluginGap, PluginKey};
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::route::Route;
use route_frame::value::{Readable, Shape};
use serde::Serialize;
use serde_json::{Value, json};
use server::reply::Refusal;

use super::records::{change, find, key_of, shown};
use super::refusals::{NO_PLUGIN, NOT_FOR_PLUGINS, refused};
use super::runs::follow_record;
use super::view::PluginView;
use crate::context::RestCall;

/// Whether a plugin is enabled.
#[derive(Debug, Body)]
pub(crate) struct PluginEnabling {
    /// True grants the permissions that the installed version declares. Only a boolean is accepted.
    enabled: StrictFlag,
    /// The version whose permissions the admin has seen. Another installed version is not enabled.
    #[field(example = "1.2.3")]
    version: Option<Option<String>>,
    /// Folders that the plugin may use besides those that it declares, such as `/data/guides` or `/data/guides:write`.
    #[field(items_max = FOLDERS_MAX)]
    folders: Option<Vec<String>>,
    /// Requirements of the plugin that may be fetched from a package index, such as `requests>=2`.
    #[field(items_max = PACKAGES_MAX)]
    allowed_packages: Option<Vec<String>>,
    /// True accepts that the `gaps` of the plugin are not enforced. What was accepted before stays accepted. Without it, the
    /// setting `plugins.accept_gaps` of the configuration decides; false refuses new gaps whatever that says.
    accept_gaps: Option<bool>,
}

/// A plugin that was enabled or disabled.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct EnabledPluginView {
    /// Always true.
    success: bool,
    /// Whether it is enabled.
    enabled: bool,
    /// Whether it has ever been enabled.
    ever_enabled: bool,
    /// The plugin.
    plugin: PluginView,
    /// Restrictions that are not enforced here and that the configuration accepts, as sentences.
    #[field(may_be_absent)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gaps: Vec<&'static str>,
    /// Why it was enabled in spite of these gaps.
    #[field(may_be_absent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// A boolean; not a text or a number that means one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StrictFlag(bool);

impl Shape for StrictFlag {
    const KIND: Kind = Kind::Flag;
}

impl Readable for StrictFlag {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        value.as_bool().map(Self).ok_or_else(|| "Expected true or false.".to_owned())
    }
}

/// Maximum number of additional folders.
const FOLDERS_MAX: usize = 20;
/// Maximum number of packages.
const PACKAGES_MAX: usize = 200;

const ENABLED: &str = "/api/plugins/plugins/{key}/enabled/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(ENABLED, ADMIN, "Sets whether a plugin is enabled, and grants its permissions.", set)
            .refuses(
                StatusCode::BAD_REQUEST,
                "The plugin cannot be used, or another version is installed than the admin has seen.",
            )
            .refuses(StatusCode::NOT_FOUND, NO_PLUGIN)
            .refuses(
                StatusCode::CONFLICT,
                "Some restrictions are not enforced here, and neither `accept_gaps` nor the configuration accepts them; \
                 `gaps` names them. Or Python packages have to be fetched, and `allowed_packages` does not name each; `packages` does.",
            )
            .not_for_plugins(NOT_FOR_PLUGINS),
    ]
}

async fn set(mut call: Call, sent: PluginEnabling) -> Result<EnabledPluginView, Refusal> {
    let key = key_of(&call)?;
    let context = Arc::clone(call.rest());
    let _one = context.plugins.installed.changes.lock().await;
    let plugin = find(&call, &key).await?;
    let StrictFlag(is_enabled) = sent.enabled;
    let mut allowed = Vec::new();
    let mut by_configuration = BTreeSet::new();
    let accepted = plugin.record.as_ref().map(|it| it.accepted_gaps.clone()).unwrap_or_default();
    let granted = if is_enabled {
        let manifest = match &plugin.manifest {
            None => return Err(refused("The folder of the plugin is missing.")),
            Some(Err(error)) => return Err(refused(&error.to_string())),
            Some(Ok(manifest)) => manifest,
        };
        if sent.version.flatten().is_some_and(|it| it != manifest.version) {
            return Err(refused(&format!(
                "Version {} is installed now: read its permissions first.",
                manifest.version
            )));
        }
        let mut granted = manifest.permissions.clone();
        granted.files.extend(folders(&sent.folders.unwrap_or_default())?);
        allowed = sent.allowed_packages.unwrap_or_default();
        if !manifest.requirements.is_empty() {
            check_packages(&call, &key, &manifest.requirements, &allowed).await?;
        }
        let gaps = call.rest().plugins.processes.handle.gaps(&granted);
        let configured = &context.config.plugins.accept_gaps;
        match GapConsent::new(&gaps, &accepted, configured, sent.accept_gaps) {
            GapConsent::Missing(_) => return Err(unaccepted(&gaps)),
            // The record does not have them, so that the configuration can take its consent back.
            GapConsent::Configuration(gaps) => {
                by_configuration = gaps;
                Some((granted, BTreeSet::new()))
            }
            GapConsent::Admin => Some((granted, gaps)),
        }
    } else {
        None
    };
    let names: Vec<&str> = by_configuration.iter().map(|it| it.name()).collect();
    if !names.is_empty() {
        call.note(format!("plugins.accept_gaps: {}", names.join(", ")));
    }
    change(&call, key.clone(), move |plugin| {
        plugin.is_enabled = is_enabled;
        plugin.was_enabled |= is_enabled;
        plugin.failed = None;
        plugin.failed_starts = 0;
        plugin.updated_at = now_ms();
        if let Some((granted, gaps)) = granted {
            plugin.granted = Some(granted);
            plugin.allowed_packages = allowed;
            plugin.accepted_gaps.extend(gaps);
        }
    })
    .await?;
    follow_record(&call, &key).await;
    let plugin = shown(&call, &key).await?;
    let warning = (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("The configuration (plugins.accept_gaps) accepts what is not enforced here: {names}.")
    });
    Ok(EnabledPluginView {
        success: true,
        enabled: is_enabled,
        ever_enabled: plugin.was_enabled(),
        plugin,
        gaps: by_configuration.iter().map(|it| it.sentence()).collect(),
        warning,
    })
}

/// Refuses to enable a plugin that needs packages which have to be fetched, unless an admin allows each.
async fn check_packages(
    call: &Call,
    key: &PluginKey,
    requirements: &[String],
    allowed: &[String],
) -> Result<(), Refusal> {
    // Without Python, the plugin says at its start what is missing.
    let Some(scan) = call.rest().plugins.processes.handle.scan(key, requirements).await else {
        return Ok(());
    };
    if scan.requirements.iter().all(|it| allowed.contains(it)) {
        return Ok(());
    }
    let error = format!(
        "The plugin needs Python packages that have to be fetched: {}. Allow them to enable it.",
        scan.requirements.join(", ")
    );
    let body = json!({ "success": false, "error": error, "detail": error, "packages": scan.requirements });
    Err(Refusal::status(StatusCode::CONFLICT).with_body(body))
}

/// Refuses to enable a plugin whose restrictions are not all enforced.
fn unaccepted(gaps: &BTreeSet<PluginGap>) -> Refusal {
    let error = "Some restrictions of the plugin are not enforced here. Read the gaps, and send accept_gaps.";
    let gaps: Vec<&str> = gaps.iter().map(|it| it.sentence()).collect();
    let body = json!({ "success": false, "error": error, "detail": error, "gaps": gaps });
    Refusal::status(StatusCode::CONFLICT).with_body(body)
}

/// Reads folders that an admin grants.
fn folders(texts: &[String]) -> Result<BTreeSet<FileAccess>, Refusal> {
    let read = |text: &String| {
        let access = FileAccess::parse(text).filter(|it| matches!(it.place, FilePlace::Folder(_)));
        access.ok_or_else(|| Refusal::field("folders", format!("{text:?} is not an absolute folder.")))
    };
    texts.iter().map(read).collect()
}
