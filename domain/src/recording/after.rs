//! The work on the file of a recording after its end. It is in the record, so that it continues after a restart.

use serde::{Deserialize, Serialize};

use super::{ComskipMode, DvrSettings, FetchedFile, MissedWork, Recording, RemuxFormat};
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
    /// The copy without commercials; `None` if nobody wanted it.
    pub cut: Option<CutWork>,
    /// The description beside the file; `None` if nobody wanted it.
    pub nfo: Option<NfoWork>,
    /// The picture beside the file; `None` if nobody wanted it.
    pub artwork: Option<ArtworkWork>,
    /// Path of a file that a conversion has replaced, until it is removed.
    pub obsolete: Option<String>,
    /// How far the file is, if all of it comes from the archive of the channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetched: Option<FetchedFile>,
    /// The work to get from the archive what the file lacks; `None` if it is done. It comes before the other work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed: Option<MissedWork>,
    /// When the file ended, in milliseconds since 1970, until the end of the work on it is reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreported: Option<i64>,
}

/// Work on a file. The order is that of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AfterStep {
    RemoveObsolete,
    Comskip,
    Remux,
    Cut,
    Nfo,
    Artwork,
    /// Reports that all other work is done.
    Report,
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

/// The copy without commercials.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CutWork {
    pub state: WorkState,
    /// Why it failed.
    pub reason: Option<String>,
    pub requested_at: i64,
    /// How often it was begun.
    pub tries: u32,
    /// Path of the copy while it is written, below the folder of recordings.
    pub target: Option<String>,
    /// The copy, after it was checked.
    pub file: Option<CutFile>,
}

/// A copy without commercials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutFile {
    /// Path below the folder of recordings.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// The members that all work of programs has.
struct ProgramWork<'a> {
    state: &'a mut WorkState,
    reason: &'a mut Option<String>,
    tries: &'a mut u32,
    /// Path of an unfinished result.
    target: Option<&'a mut Option<String>>,
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

/// The picture beside the file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ArtworkWork {
    pub state: WorkState,
    /// Why there is none, or no newer one.
    pub reason: Option<String>,
    pub requested_at: i64,
    /// Its path below the folder of recordings.
    pub path: Option<String>,
    /// The subject of the picture at the path.
    pub origin: ArtworkOrigin,
}

/// Where the picture of a recording comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArtworkOrigin {
    /// From the programme in the guide.
    #[default]
    Programme,
    /// It is the logo of the channel.
    Channel,
}

impl AfterRecording {
    /// Queues the work that the settings want after each recording.
    pub fn queue(&mut self, settings: &DvrSettings, now: i64) {
        self.unreported = Some(now);
        if settings.comskip_enabled {
            self.queue_comskip(now);
        }
        if let Some(format) = settings.remux {
            self.remux = Some(RemuxWork { format, requested_at: now, ..RemuxWork::default() });
        }
        if settings.write_nfo {
            self.nfo = Some(NfoWork { requested_at: now, ..NfoWork::default() });
        }
        if settings.write_artwork {
            self.queue_artwork(now);
        }
    }

    /// Queues the description again after a change of the programme, if there is one.
    pub fn describe_again(&mut self, now: i64) {
        if let Some(work) = &mut self.nfo {
            (work.state, work.reason, work.requested_at) = (WorkState::Queued, None, now);
        }
    }

    /// Returns the work that a program does in this step, if somebody wanted it.
    fn program_work(&mut self, step: AfterStep) -> Option<ProgramWork<'_>> {
        let work = match step {
            AfterStep::Comskip => {
                let ComskipWork { state, reason, tries, .. } = self.comskip.as_mut()?;
                ProgramWork { state, reason, tries, target: None }
            }
            AfterStep::Remux => {
                let RemuxWork { state, reason, tries, target, .. } = self.remux.as_mut()?;
                ProgramWork { state, reason, tries, target: Some(target) }
            }
            AfterStep::Cut => {
                let CutWork { state, reason, tries, target, .. } = self.cut.as_mut()?;
                ProgramWork { state, reason, tries, target: Some(target) }
            }
            AfterStep::RemoveObsolete | AfterStep::Nfo | AfterStep::Artwork | AfterStep::Report => {
                return None;
            }
        };
        Some(work)
    }

    /// Notes that a program begins this work. Returns whether it may: work is begun [`TRIES_MAX`] times at most. `None` if
    /// nobody wants the work.
    pub fn begin(&mut self, step: AfterStep) -> Option<bool> {
        let work = self.program_work(step).filter(|it| it.state.is_open())?;
        *work.tries += 1;
        *work.state = WorkState::Running;
        Some(*work.tries <= TRIES_MAX)
    }

    /// Queues work again that ended through no fault of the file.
    pub fn requeue(&mut self, step: AfterStep) {
        self.end(step, WorkState::Queued, None);
        if let Some(work) = self.program_work(step) {
            *work.tries = work.tries.saturating_sub(1);
        }
    }

    /// Notes the end of work, of which no unfinished result is left.
    pub fn end(&mut self, step: AfterStep, state: WorkState, reason: Option<String>) {
        let Some(work) = self.program_work(step) else { return };
        (*work.state, *work.reason) = (state, reason);
        if let Some(target) = work.target {
            *target = None;
        }
    }

    /// Returns the path of the unfinished result of work.
    pub fn target(&mut self, step: AfterStep) -> Option<String> {
        self.program_work(step)?.target?.clone()
    }

    /// Notes the path of the unfinished result of work.
    pub fn set_target(&mut self, step: AfterStep, path: String) {
        if let Some(target) = self.program_work(step).and_then(|it| it.target) {
            *target = Some(path);
        }
    }

    /// Queues the picture. An earlier one stays until there is another. Returns false if it waits already.
    pub fn queue_artwork(&mut self, now: i64) -> bool {
        let work = self.artwork.get_or_insert_default();
        if work.requested_at != 0 && work.state.is_open() {
            return false;
        }
        (work.state, work.reason, work.requested_at) = (WorkState::Queued, None, now.max(1));
        true
    }

    /// Queues a copy without commercials after a search, if the settings want one. One that exists is replaced.
    pub fn queue_cut(&mut self, settings: &DvrSettings, now: i64) {
        let has_found = self.comskip.as_ref().is_some_and(|it| !it.commercials.is_empty());
        let has_copy = self.cut.as_ref().is_some_and(|it| it.file.is_some());
        if has_copy || (has_found && settings.comskip_mode == ComskipMode::Cut) {
            let CutWork { target, file, .. } = self.cut.take().unwrap_or_default();
            self.cut = Some(CutWork { requested_at: now, target, file, ..CutWork::default() });
        }
    }

    /// Returns the names of the work that has failed.
    pub fn failed_work(&self) -> Vec<&'static str> {
        let states = [
            ("comskip", self.comskip.as_ref().map(|it| it.state)),
            ("remux", self.remux.as_ref().map(|it| it.state)),
            ("cut", self.cut.as_ref().map(|it| it.state)),
            ("nfo", self.nfo.as_ref().map(|it| it.state)),
            ("artwork", self.artwork.as_ref().map(|it| it.state)),
        ];
        states.into_iter().filter(|it| it.1 == Some(WorkState::Failed)).map(|it| it.0).collect()
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
    /// Returns whether the path of the file will be another one: it waits for its conversion, or will be converted after its
    /// end if the settings stay.
    pub fn path_changes(&self, settings: &DvrSettings) -> bool {
        match &self.after.remux {
            Some(work) => work.state.is_open(),
            None => !self.status.is_final() && settings.remux.is_some(),
        }
    }

    /// Returns whether the file is complete, so that work on it may begin.
    pub fn has_whole_file(&self) -> bool {
        self.has_ended_file() && self.after.missed.is_none()
    }

    /// Returns whether the recording is over, and what its file lacks is to be asked for.
    pub fn missed_are_due(&self) -> bool {
        self.status.is_final() && self.has_ended_file() && self.after.missed.is_some()
    }

    /// Returns whether no packets are added to the file any more, and its end is known.
    pub fn has_ended_file(&self) -> bool {
        self.file.as_ref().is_some_and(|it| it.ended_at.is_some())
    }

    /// Returns the size of all parts and of the copy without commercials, in bytes.
    pub fn stored_bytes(&self) -> u64 {
        let copy = self.after.cut.as_ref().and_then(|it| it.file.as_ref());
        let parts = self.parts().fold(0_u64, |all, it| all.saturating_add(it.bytes));
        parts.saturating_add(copy.map_or(0, |it| it.bytes))
    }

    /// Returns the recording with the copy without commercials as its file; `None` if there is none.
    pub fn without_commercials(&self) -> Option<Self> {
        let CutFile { path, bytes } = self.after.cut.as_ref()?.file.clone()?;
        let mut copy = self.clone();
        let file = copy.file.as_mut()?;
        (file.path, file.bytes) = (path, bytes);
        Some(copy)
    }

    /// Returns the next work on the file, and when it was requested. Commercials come before the conversion, which makes
    /// chapters of them, and both before the copy without commercials, which has the container of the file.
    pub fn next_step(&self) -> Option<(i64, AfterStep)> {
        let AfterRecording { comskip, remux, cut, nfo, artwork, obsolete, .. } = &self.after;
        if obsolete.is_some() {
            return Some((0, AfterStep::RemoveObsolete));
        }
        if !self.has_whole_file() {
            return None;
        }
        let comskip = comskip.as_ref().filter(|it| it.state.is_open());
        let remux = remux.as_ref().filter(|it| it.state.is_open());
        let cut = cut.as_ref().filter(|it| it.state.is_open());
        let nfo = nfo.as_ref().filter(|it| it.state.is_open());
        let artwork = artwork.as_ref().filter(|it| it.state.is_open());
        comskip
            .map(|it| (it.requested_at, AfterStep::Comskip))
            .or(remux.map(|it| (it.requested_at, AfterStep::Remux)))
            .or(cut.map(|it| (it.requested_at, AfterStep::Cut)))
            .or(nfo.map(|it| (it.requested_at, AfterStep::Nfo)))
            .or(artwork.map(|it| (it.requested_at, AfterStep::Artwork)))
            .or(self.after.unreported.map(|it| (it, AfterStep::Report)))
    }

    /// Returns the end of the name of its picture, before the extension, as Kodi and Jellyfin look for it: films have
    /// posters, and everything else thumbnails.
    pub fn artwork_suffix(&self) -> &'static str {
        match self.programme.as_ref().is_some_and(|it| it.is_movie) {
            true => "-poster",
            false => "-thumb",
        }
    }

    /// Returns the paths of the file and of what was made beside it, below the folder of recordings.
    pub fn paths(&self) -> Vec<String> {
        let AfterRecording { comskip, remux, cut, nfo, artwork, obsolete, .. } = &self.after;
        let edl = comskip.as_ref().and_then(|it| it.edl.clone());
        let target = remux.as_ref().and_then(|it| it.target.clone());
        let file = self.file.as_ref().map(|it| it.path.clone());
        let nfo = nfo.as_ref().and_then(|it| it.path.clone());
        let unfinished_copy = cut.as_ref().and_then(|it| it.target.clone());
        let copy = cut.as_ref().and_then(|it| Some(it.file.as_ref()?.path.clone()));
        let artwork = artwork.as_ref().and_then(|it| it.path.clone());
        let beside = [edl, nfo, artwork, target, unfinished_copy, copy, obsolete.clone()];
        file.into_iter().chain(beside.into_iter().flatten()).collect()
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
        assert_eq!(it.next_step(), Some((7, AfterStep::Report)));
        it.after.unreported = None;
        assert_eq!(it.next_step(), None);
        assert!(it.after.queue_artwork(10) && !it.after.queue_artwork(11), "it waits already");
        assert_eq!(it.next_step(), Some((10, AfterStep::Artwork)));
        let artwork = it.after.artwork.as_mut().unwrap();
        (artwork.state, artwork.path) = (WorkState::Completed, Some("a-thumb.png".to_owned()));
        assert_eq!(
            (it.next_step(), it.paths()),
            (None, vec!["a.ts".into(), "a.edl".into(), "a-thumb.png".into(), "a.mp4".into()])
        );
        it.after.describe_again(10);
        assert!(it.after.queue_comskip(11));
        assert_eq!(it.next_step(), Some((11, AfterStep::Comskip)));
    }

    /// Those who get a path with an event learn whether it stays.
    #[test]
    fn a_path_changes_until_the_conversion_is_over() {
        let (plain, converting) =
            (DvrSettings::default(), DvrSettings { remux: Some(RemuxFormat::Mkv), ..DvrSettings::default() });
        let mut it = crate::recording::tests::with_file();
        assert_eq!([&plain, &converting].map(|settings| it.path_changes(settings)), [false, true]);
        it.status = crate::recording::RecordingStatus::Completed;
        it.after.queue(&converting, 7);
        assert!(it.path_changes(&plain), "it was queued");
        it.after.end(AfterStep::Remux, WorkState::Failed, Some("broken".to_owned()));
        assert_eq!((it.path_changes(&converting), it.after.failed_work()), (false, vec!["remux"]));
        it.after.end(AfterStep::Remux, WorkState::Completed, None);
        assert_eq!((it.path_changes(&converting), it.after.failed_work()), (false, Vec::new()));
        it.after = AfterRecording::default();
        assert!(!it.path_changes(&converting), "it ended without a conversion");
    }

    #[test]
    fn work_of_programs_is_begun_three_times_at_most_and_faults_of_others_do_not_count() {
        let settings = DvrSettings { remux: Some(RemuxFormat::Mkv), ..DvrSettings::default() };
        let mut after = AfterRecording::default();
        assert_eq!(after.begin(AfterStep::Remux), None, "nobody wanted it");
        after.queue(&settings, 7);
        for n in 1..=TRIES_MAX {
            assert_eq!(after.begin(AfterStep::Remux), Some(true), "{n}");
            after.set_target(AfterStep::Remux, "a.mkv".to_owned());
        }
        after.requeue(AfterStep::Remux);
        assert_eq!((after.begin(AfterStep::Remux), after.target(AfterStep::Remux)), (Some(true), None));
        assert_eq!(after.begin(AfterStep::Remux), Some(false));
        after.end(AfterStep::Remux, WorkState::Failed, Some("broken".to_owned()));
        assert_eq!(after.begin(AfterStep::Remux), None);
        assert_eq!(after.remux.unwrap().reason.as_deref(), Some("broken"));
    }

    #[test]
    fn a_copy_is_made_of_what_was_found_and_again_after_another_search() {
        let cutting = DvrSettings { comskip_mode: ComskipMode::Cut, ..DvrSettings::default() };
        let mut it = crate::recording::tests::with_file();
        it.file.as_mut().unwrap().ended_at = Some(9);
        it.after.queue_cut(&cutting, 7);
        assert_eq!(it.next_step(), None, "no search");
        let commercials = vec![Commercial { start: 1, end: 2 }];
        it.after.comskip =
            Some(ComskipWork { state: WorkState::Completed, commercials, ..ComskipWork::default() });
        it.after.queue_cut(&DvrSettings::default(), 7);
        assert_eq!(it.next_step(), None, "the settings want none");
        it.after.queue_cut(&cutting, 7);
        assert_eq!(it.next_step(), Some((7, AfterStep::Cut)));
        assert_eq!((it.after.begin(AfterStep::Cut), it.stored_bytes()), (Some(true), 188));
        let cut = it.after.cut.as_mut().unwrap();
        (cut.state, cut.file) =
            (WorkState::Completed, Some(CutFile { path: "a - cut.ts".into(), bytes: 100 }));
        assert_eq!((it.next_step(), it.stored_bytes()), (None, 288));
        assert_eq!(it.paths(), ["a.ts", "a - cut.ts"]);
        // The copy is not that of the commercials that are listed now.
        it.after.comskip.as_mut().unwrap().commercials.clear();
        it.after.queue_cut(&DvrSettings::default(), 8);
        assert_eq!(it.next_step(), Some((8, AfterStep::Cut)));
    }
}
