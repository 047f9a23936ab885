//! Limits of plugins that admins set.

use actors::now_ms;
use domain::plugin::{Limits, LimitsEdit};
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;

use super::records::{change, find, installed, key_of, shown};
use super::refusals::{NO_PLUGIN, NOT_FOR_PLUGINS};
use super::runs::follow_record;
use super::view::{PluginView, set_limits};

/// Limits of the processes of a plugin. One that is left out stays; `null` is the limit of the manifest.
#[derive(Debug, Body)]
pub(crate) struct PluginLimits {
    /// Memory, in MiB.
    #[field(at_least = 16, at_most = MEMORY_MIB_MAX as i64, example = "512")]
    memory_mib: Option<Option<u32>>,
    /// Processor time, in percent of one core.
    #[field(at_least = 1, at_most = CPU_PERCENT_MAX as i64, example = "100")]
    cpu_percent: Option<Option<u32>>,
    /// Processes and threads.
    #[field(at_least = 1, at_most = COUNT_MAX as i64, example = "64")]
    processes: Option<Option<u32>>,
    /// Open files of each process.
    #[field(at_least = 16, at_most = COUNT_MAX as i64, example = "512")]
    open_files: Option<Option<u32>>,
    /// Own files, in MiB.
    #[field(at_least = 1, at_most = DATA_MIB_MAX as i64, example = "2048")]
    data_mib: Option<Option<u32>>,
}

/// The limits after a change.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChangedPluginLimitsView {
    /// Always true.
    success: bool,
    /// The limits that an admin set.
    admin_limits: Map<String, Value>,
    /// The plugin, which was started again if it ran.
    plugin: PluginView,
}

/// The largest limits that an admin sets: far beyond those of any plugin.
const MEMORY_MIB_MAX: u32 = 65_536;
const CPU_PERCENT_MAX: u32 = 6_400;
const COUNT_MAX: u32 = 16_384;
const DATA_MIB_MAX: u32 = 1 << 20;

const LIMITS: &str = "/api/plugins/plugins/{key}/limits/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(LIMITS, ADMIN, "Sets limits of a plugin, and starts it again if it runs.", set)
            .refuses(StatusCode::NOT_FOUND, NO_PLUGIN)
            .not_for_plugins(NOT_FOR_PLUGINS),
    ]
}

async fn set(call: Call, sent: PluginLimits) -> Result<ChangedPluginLimitsView, Refusal> {
    let key = key_of(&call)?;
    let _one = installed(&call).changes.lock().await;
    let plugin = find(&call, &key).await?;
    let before = plugin.record.as_ref().map(|it| it.limits).unwrap_or_default();
    let limits = LimitsEdit {
        memory_mib: sent.memory_mib.unwrap_or(before.memory_mib),
        cpu_percent: sent.cpu_percent.unwrap_or(before.cpu_percent),
        processes: sent.processes.unwrap_or(before.processes),
        open_files: sent.open_files.unwrap_or(before.open_files),
        data_mib: sent.data_mib.unwrap_or(before.data_mib),
    };
    let manifest = plugin.manifest().map_or(Limits::DEFAULT, |it| it.limits);
    change(&call, key.clone(), move |plugin| {
        (plugin.limits, plugin.updated_at) = (limits, now_ms());
    })
    .await?;
    if limits.over(manifest) != before.over(manifest) {
        follow_record(&call, &key).await;
    }
    let plugin = shown(&call, &key).await?;
    Ok(ChangedPluginLimitsView { success: true, admin_limits: set_limits(limits), plugin })
}
