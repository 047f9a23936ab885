//! The work on the file of a recording after its end. It is in the record, so that it continues after a restart.

use serde::{Deserialize, Serialize};

use super::{DvrSettings, Recording, RemuxFormat};
use crate::comskip::Commercial;

/// Maximum number of times that work is begun, if the gateway ends while it runs.
pub const TRIES_MAX: u32 = 3;

/// The work after a recording, and its results.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AfterRecording {
    /// The search for commercials; `None` if nobody wanted it.
    pub comskip: Option<ComskipWork>,
    /// The conversion to another container; `None` if nobody wanted it.
    pub remux: Option<RemuxWork>,
    /// The description beside the file; `None` if nobody wanted it.
    pub nfo: Option<NfoWork>,
    /// Path of a file that a conversion has replaced, until it is removed.
    pub obsolete: Option<String>,
}

/// Work on a file. The order is that of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AfterStep {
    RemoveObsolete,
    Comskip,
    Remux,
    Nfo,
}

/// The state of work on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkState {
    /// Waits for the work on other recordings.
    #[default]
    Queued,
    Running,
    Completed,
    Failed,
}

impl WorkState {
    /// Returns whether there is work to do, also after a restart.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

/// The search for commercials.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ComskipWork {
    pub state: WorkState,
    /// Why it failed.
    pub reason: Option<String>,
    /// When it was requested, in milliseconds since 1970: the order of the queue.
    pub requested_at: i64,
    /// How often it was begun since then.
    pub tries: u32,
    pub commercials: Vec<Commercial>,
    /// Path of the list of commercials below the folder of recordings.
    pub edl: Option<String>,
}

/// The conversion to another container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RemuxWork {
    pub state: WorkState,
    pub format: RemuxFormat,
    /// Why it failed.
    pub reason: Option<String>,
    pub requested_at: i64,
    /// How often it was begun.
    pub tries: u32,
    /// Path of the result while it is written, below the folder of recordings.
    pub target: Option<String>,
}

/// The description beside the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NfoWork {
    pub state: WorkState,
    /// Why it failed.
    pub reason: Option<String>,
    pub requested_at: i64,
    /// Its path below the folder of recordings.
    pub path: Option<String>,
}

impl AfterRecording {
    /// Queues the work that the settings want after each recording.
    pub fn queue(&mut self, settings: &DvrSettings, now: i64) {
        if settings.comskip_enabled {
            self.queue_comskip(now);
        }
        if let Some(format) = settings.remux {
            self.remux = Some(RemuxWork { format, requested_at: now, ..RemuxWork::default() });
        }
        if settings.write_nfo {
            self.nfo = Some(NfoWork { requested_at: now, ..NfoWork::default() });
        }
    }

    /// Queues the description again after a change of the programme, if there is one.
    pub fn describe_again(&mut self, now: i64) {
        if let Some(work) = &mut self.nfo {
            (work.state, work.reason, work.requested_at) = (WorkState::Queued, None, now);
        }
    }

    /// Returns whether nothing was wanted. Such a value is not stored.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Queues a search for commercials. Results of an earlier one stay until it ends. Returns false if one waits or runs
    /// already.
    pub fn queue_comskip(&mut self, now: i64) -> bool {
        let work = self.comskip.get_or_insert_default();
        if work.requested_at != 0 && work.state.is_open() {
            return false;
        }
        (work.state, work.reason, work.requested_at, work.tries) = (WorkState::Queued, None, now.max(1), 0);
        true
    }
}

impl Recording {
    /// Returns whether the file is complete, so that work on it may begin.
    pub fn has_whole_file(&self) -> bool {
        self.file.as_ref().is_some_and(|it| it.ended_at.is_some())
    }

    /// Returns the next work on the file, and when it was requested. Commercials come before the conversion, which makes
    /// chapters of them.
    pub fn next_step(&self) -> Option<(i64, AfterStep)> {
        let AfterRecording { comskip, remux, nfo, obsolete } = &self.after;
        if obsolete.is_some() {
            return Some((0, AfterStep::RemoveObsolete));
        }
        if !self.has_whole_file() {
            return None;
        }
        let comskip = comskip.as_ref().filter(|it| it.state.is_open());
        let remux = remux.as_ref().filter(|it| it.state.is_open());
        let nfo = nfo.as_ref().filter(|it| it.state.is_open());
        comskip
            .map(|it| (it.requested_at, AfterStep::Comskip))
            .or(remux.map(|it| (it.requested_at, AfterStep::Remux)))
            .or(nfo.map(|it| (it.requested_at, AfterStep::Nfo)))
    }

    /// Returns the paths of all files of the recording, below the folder of recordings.
    pub fn paths(&self) -> Vec<String> {
        let AfterRecording { comskip, remux, nfo, obsolete } = &self.after;
        let edl = comskip.as_ref().and_then(|it| it.edl.clone());
        let target = remux.as_ref().and_then(|it| it.target.clone());
        let file = self.file.as_ref().map(|it| it.path.clone());
        let nfo = nfo.as_ref().and_then(|it| it.path.clone());
        file.into_iter().chain(edl).chain(nfo).chain(target).chain(obsolete.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_in_its_order_and_each_request_is_queued_once() {
        let settings = DvrSettings {
            comskip_enabled: true,
            remux: Some(RemuxFormat::Mp4),
            write_nfo: true,
            ..DvrSettings::default()
        };
        let mut it = crate::recording::tests::with_file();
        it.after.queue(&settings, 7);
        assert_eq!(it.next_step(), None, "the file grows");
        it.file.as_mut().unwrap().ended_at = Some(9);
        assert_eq!(it.next_step(), Some((7, AfterStep::Comskip)));
        assert!(!it.after.queue_comskip(8), "it waits already");
        let comskip = it.after.comskip.as_mut().unwrap();
        (comskip.state, comskip.edl) = (WorkState::Failed, Some("a.edl".to_owned()));
        assert_eq!(it.next_step(), Some((7, AfterStep::Remux)));
        let remux = it.after.remux.as_mut().unwrap();
        (remux.state, remux.target) = (WorkState::Running, Some("a.mp4".to_owned()));
        assert_eq!(it.next_step(), Some((7, AfterStep::Remux)), "also after a restart");
        it.after.remux.as_mut().unwrap().state = WorkState::Completed;
        it.after.obsolete = Some("b.ts".to_owned());
        assert_eq!(it.next_step(), Some((0, AfterStep::RemoveObsolete)));
        assert_eq!(it.paths(), ["a.ts", "a.edl", "a.mp4", "b.ts"]);
        it.after.obsolete = None;
        assert_eq!(it.next_step(), Some((7, AfterStep::Nfo)));
        it.after.nfo.as_mut().unwrap().state = WorkState::Completed;
        assert_eq!(it.next_step(), None);
        it.after.describe_again(10);
        assert!(it.after.queue_comskip(11));
        assert_eq!(it.next_step(), Some((11, AfterStep::Comskip)));
    }
}
