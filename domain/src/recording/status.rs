//! The status of a recording.
//!
//! ```text
//!             first packet               its time is over ─► completed, or interrupted if much is missing
//!  scheduled ──────────────► recording ─┬► stop ─► stopped
//!      │                                └► complete ─► completed
//!      └ its time is over, or stop, without a file ─► failed ◄─ its time is over, and its file was lost ─ recording
//!  interrupted ─► filled from the archive ─► completed
//!  any status ─► complete ─► completed
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

/// The status of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingStatus {
    /// Waits for its start, or for the first packet after it.
    #[default]
    Scheduled,
    /// Has a file that grows.
    Recording,
    /// Has recorded until its end, or a user has declared it complete, also without a file.
    Completed,
    /// Was ended early by a user; the file is kept.
    Stopped,
    /// Much of it is missing; the file is kept.
    Interrupted,
    /// Has no file.
    Failed,
}

/// An event in the life of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingInput {
    /// The first packet is stored, at the start or after a restart of the gateway.
    Stored,
    /// A user ends it.
    Stop,
    /// A user declares it complete, and ends it if it is not over. One that has not begun will not be recorded.
    Complete,
    /// Its time is over and nothing was recorded, or nothing is left of it.
    EndedWithoutFile,
    /// Its time is over.
    EndedWhole,
    /// Its time is over, or it cannot continue, and much is missing.
    EndedIncomplete,
    /// The missing times came from the archive.
    Filled,
}

/// The recording has a status that does not accept the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the recording is {0}")]
pub struct WrongStatus(pub RecordingStatus);

impl RecordingStatus {
    /// Every status with its name.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("scheduled", Self::Scheduled),
        ("recording", Self::Recording),
        ("completed", Self::Completed),
        ("stopped", Self::Stopped),
        ("interrupted", Self::Interrupted),
        ("failed", Self::Failed),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|it| it.1 == self).map_or("", |it| it.0)
    }

    /// Returns whether the recording is over.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Scheduled | Self::Recording)
    }

    /// Returns the status after an input.
    ///
    /// # Errors
    /// This status does not accept the input.
    pub fn after(self, input: RecordingInput) -> Result<Self, WrongStatus> {
        match (self, input) {
            (Self::Scheduled | Self::Recording, RecordingInput::Stored) => Ok(Self::Recording),
            (Self::Scheduled, RecordingInput::Stop) => Ok(Self::Failed),
            (Self::Scheduled | Self::Recording, RecordingInput::EndedWithoutFile) => Ok(Self::Failed),
            (Self::Recording, RecordingInput::Stop) => Ok(Self::Stopped),
            (Self::Recording, RecordingInput::EndedWhole) => Ok(Self::Completed),
            // The API promises that an update with this status succeeds. A user knows best what needs no recording.
            (_, RecordingInput::Complete) => Ok(Self::Completed),
            (Self::Recording, RecordingInput::EndedIncomplete) => Ok(Self::Interrupted),
            (Self::Interrupted, RecordingInput::Filled) => Ok(Self::Completed),
            _ => Err(WrongStatus(self)),
        }
    }
}

impl fmt::Display for RecordingStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use RecordingInput::{Complete, EndedIncomplete, EndedWhole, EndedWithoutFile, Filled, Stop, Stored};
    use RecordingStatus::{Completed, Failed, Interrupted, Recording, Scheduled, Stopped};

    use super::*;

    #[test]
    fn each_status_accepts_its_inputs_and_refuses_the_others() {
        // In this order: Stored, Stop, Complete, EndedWithoutFile, EndedWhole, EndedIncomplete, Filled.
        let inputs = [Stored, Stop, Complete, EndedWithoutFile, EndedWhole, EndedIncomplete, Filled];
        let declared = [None, None, Some(Completed), None, None, None, None];
        let table = [
            (Scheduled, [Some(Recording), Some(Failed), Some(Completed), Some(Failed), None, None, None]),
            (
                Recording,
                [
                    Some(Recording),
                    Some(Stopped),
                    Some(Completed),
                    Some(Failed),
                    Some(Completed),
                    Some(Interrupted),
                    None,
                ],
            ),
            (Completed, declared),
            (Stopped, declared),
            (Interrupted, [None, None, Some(Completed), None, None, None, Some(Completed)]),
            (Failed, declared),
        ];
        for (status, expected) in table {
            for (input, expected) in inputs.into_iter().zip(expected) {
                assert_eq!(status.after(input), expected.ok_or(WrongStatus(status)), "{status} {input:?}");
            }
            let is_over = [Completed, Stopped, Interrupted, Failed].contains(&status);
            assert_eq!(status.is_final(), is_over, "{status}");
        }
    }
}
