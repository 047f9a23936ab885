//! Limits of the processes of a plugin.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most that the processes of a plugin may use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Memory, in MiB.
    pub memory_mib: u32,
    /// Processor time, in percent of one core.
    pub cpu_percent: u32,
    /// Processes and threads.
    pub processes: u32,
    /// Open files of each process.
    pub open_files: u32,
    /// Own files, in MiB.
    pub data_mib: u32,
}

impl Limits {
    /// Limits of a plugin whose manifest asks for no others.
    pub const DEFAULT: Self =
        Self { memory_mib: 256, cpu_percent: 50, processes: 32, open_files: 256, data_mib: 1_024 };
    /// The most that a manifest may ask for.
    pub const MANIFEST_MAX: Self =
        Self { memory_mib: 1_024, cpu_percent: 200, processes: 256, open_files: 1_024, data_mib: 10_240 };

    /// Sets the limit with this name.
    ///
    /// # Errors
    /// The reason why the value cannot be used, worded to follow its name.
    pub(super) fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let max = Self::MANIFEST_MAX;
        let (limit, max) = match name {
            "memory_mib" => (&mut self.memory_mib, max.memory_mib),
            "cpu_percent" => (&mut self.cpu_percent, max.cpu_percent),
            "processes" => (&mut self.processes, max.processes),
            "open_files" => (&mut self.open_files, max.open_files),
            "data_mib" => (&mut self.data_mib, max.data_mib),
            _ => return Ok(()),
        };
        let number = value.as_u64().and_then(|it| u32::try_from(it).ok());
        *limit = number
            .filter(|it| (1..=max).contains(it))
            .ok_or_else(|| format!("must be a whole number from 1 to {max}"))?;
        Ok(())
    }
}

/// Limits that an admin sets; the others are those of the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsEdit {
    pub memory_mib: Option<u32>,
    pub cpu_percent: Option<u32>,
    pub processes: Option<u32>,
    pub open_files: Option<u32>,
    pub data_mib: Option<u32>,
}

impl LimitsEdit {
    /// Returns these limits where they are set, and those of the manifest elsewhere.
    pub fn over(&self, manifest: Limits) -> Limits {
        Limits {
            memory_mib: self.memory_mib.unwrap_or(manifest.memory_mib),
            cpu_percent: self.cpu_percent.unwrap_or(manifest.cpu_percent),
            processes: self.processes.unwrap_or(manifest.processes),
            open_files: self.open_files.unwrap_or(manifest.open_files),
            data_mib: self.data_mib.unwrap_or(manifest.data_mib),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
