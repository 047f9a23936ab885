//! How plugins run: their folders and time limits.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use domain::plugin::PluginGap;

/// The folders that plugins use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginFolders {
    /// Their code, in a folder for each key.
    pub code: PathBuf,
    /// Their files, in a folder for each key.
    pub data: PathBuf,
    pub recordings: PathBuf,
    pub logos: PathBuf,
}

/// How plugins run.
#[derive(Clone, Debug)]
pub struct PluginSettings {
    pub folders: PluginFolders,
    /// The Python to use: a name in `PATH` or an absolute path; `None` finds one.
    pub python: Option<String>,
    /// The name of the gateway's time zone.
    pub time_zone: String,
    /// Address of the API for plugins with network, without a slash at the end; `None` if it is not on loopback.
    pub api_url: Option<String>,
    /// Gaps that the configuration accepts for every plugin.
    pub accepted_gaps: BTreeSet<PluginGap>,
    /// No plugin starts.
    pub is_safe_mode: bool,
    pub timings: PluginTimings,
}

/// Time limits of plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginTimings {
    /// Until a process answers that it is ready.
    pub start: Duration,
    /// Between pings.
    pub ping: Duration,
    /// A process that has not answered a ping for this long hangs.
    pub hang: Duration,
    /// From the cancellation of a run to the end of the process.
    pub cancel: Duration,
    /// For the plugin to stop.
    pub stop: Duration,
    /// From the signal to end to the one that kills.
    pub terminate: Duration,
    /// A process that starts on demand ends after this time without a run.
    pub idle: Duration,
    /// After this time, a run is reported as running.
    pub answer: Duration,
    /// For a call to the API, with the time until its turn.
    pub call: Duration,
    /// Between looks at the time limits and at the use of resources.
    pub look: Duration,
    /// The pauses after crashes are divided by this.
    pub pause_divisor: u32,
}

impl Default for PluginTimings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            start: seconds(20),
            ping: seconds(10),
            hang: seconds(30),
            cancel: seconds(10),
            stop: seconds(5),
            terminate: seconds(2),
            idle: seconds(300),
            answer: seconds(60),
            call: seconds(120),
            look: seconds(1),
            pause_divisor: 1,
        }
    }
}
