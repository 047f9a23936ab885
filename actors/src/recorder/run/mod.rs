//! One recording, from the start of its channel to the end of its file.

mod end;
mod lost;
mod missed;
mod refill;

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use domain::event::EventBody;
use domain::ids::RecordingId;
use domain::recording::{
    FILE_EXTENSION, PARTS_MAX, RecordedFile, Recording, RecordingInput, RecordingStatus,
};
use media::spawn_blocking;
use storage::Write;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use self::end::Reports;
use super::node_files::leave;
use super::permission::owner_refusal;
use super::priority::ForecastPriority;
use super::state::{RecorderParts, RecorderState, RunCounters};
use crate::channel::RecordingReader;
use crate::clock::{ClockWatch, now_ms};
use crate::recording_files::file::{Arrived, RecordingFile};
use crate::recording_files::folder::FolderError;
use crate::recording_files::index;
use crate::recording_files::intake::{Batch, Intake, IntakeEnd, WRITE_PERIOD};
use crate::recording_files::loss::FileLoss;

/// How often the disk has to have everything: a power cut loses the packets of this time.
const SYNC_PERIOD: Duration = Duration::from_secs(4);
/// Without packets for this long, a gap is noted, in milliseconds.
const GAP_MS: i64 = 2_000;
/// Maximum age of a packet when it is written, in milliseconds.
const BATCH_MS_MAX: i64 = 10_000;
/// Pauses between tries to play the channel.
const RETRY_MIN: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Reason of gaps whose cause nobody has reported.
const NO_DATA: &str = "no data arrived";
const NOT_RUNNING: &str = "the gateway was not running";
const TOO_SLOW: &str = "the disk was too slow";
const STOPPING: &str = "the gateway was stopped";

/// Makes a recording. Returns when it is over, deleted, or the gateway stops.
pub(super) async fn run(shared: Arc<RecorderState>, id: RecordingId, counters: Arc<RunCounters>) {
    if shared.parts.get().is_none() {
        return;
    }
    let mut run = Run::new(shared, id, counters);
    if run.lacks_parts() {
        return run.refill().await;
    }
    if run.is_complete() {
        return;
    }
    if let Err(cause) = run.resume().await {
        run.note(&cause.to_string()).await;
    }
    let mut pause = RETRY_MIN;
    loop {
        match run.next_step() {
            Step::Gone => return,
            Step::Elsewhere => {
                run.close_file().await;
                return;
            }
            Step::Stopping => return run.suspend().await,
            Step::Over if run.fetches() => {
                if run.fetch().await {
                    return;
                }
                continue;
            }
            Step::Over => return run.finish().await,
            Step::Play => {}
        }
        match run.play().await {
            Ok(true) => pause = RETRY_MIN,
            Ok(false) => {}
            Err(Fault::Retry(reason)) => {
                run.note(&reason).await;
                run.wait(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
            Err(Fault::Lost(loss)) => {
                if let Err(cause) = run.lose(loss).await {
                    run.note(&cause.to_string()).await;
                }
                run.wait(pause).await;
                pause = (pause * 2).min(RETRY_MAX);
            }
            Err(Fault::Disk(reason)) => {
                warn!(recording.id = %id, "a recording ends early: {reason}");
                return run.end(RecordingInput::EndedIncomplete, Some(reason)).await;
            }
        }
    }
}

struct Run {
    shared: Arc<RecorderState>,
    id: RecordingId,
    counters: Arc<RunCounters>,
    file: Option<RecordingFile>,
    /// When the last packet of the file arrived, in milliseconds since 1970.
    last_at: Option<i64>,
    /// Whether the record of a finished file was written.
    is_over: bool,
    /// Whether the next packet may not be one at which playing can begin, because the reader lost its file.
    begins_anywhere: bool,
    /// Whether the first file of this node creates the folder.
    may_mark: bool,
    clock: ClockWatch,
}

enum Step {
    Play,
    /// The time of the recording is over, or somebody has ended it.
    Over,
    /// The recording was deleted.
    Gone,
    /// Another node of the cluster makes it.
    Elsewhere,
    Stopping,
}

/// Why a recording does not continue now.
#[derive(Debug, thiserror::Error)]
enum Fault {
    /// Another try may help.
    #[error("{0}")]
    Retry(String),
    /// The file cannot be written.
    #[error("{0}")]
    Disk(String),
    /// Nobody would find what is written to the file.
    #[error("{0}")]
    Lost(FileLoss),
}

impl From<FolderError> for Fault {
    fn from(error: FolderError) -> Self {
        Self::Retry(error.to_string())
    }
}

fn disk_fault(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Fault::Disk("the disk is full".to_owned())
        }
        _ => Fault::Disk(format!("failed to write the file: {error}")),
    }
}

impl Run {
    fn new(shared: Arc<RecorderState>, id: RecordingId, counters: Arc<RunCounters>) -> Self {
        let (file, last_at) = (None, None);
        let clock = ClockWatch::new();
        Self {
            shared,
            id,
            counters,
            file,
            last_at,
            is_over: false,
            begins_anywhere: false,
            may_mark: true,
            clock,
        }
    }

    fn parts(&self) -> &RecorderParts {
        self.shared.parts.get().expect("a run starts after the recorder")
    }

    fn recording(&self) -> Option<Arc<Recording>> {
        self.parts().models.recordings.load().get(self.id.0).cloned()
    }

    fn next_step(&self) -> Step {
        let Some(recording) = self.recording() else { return Step::Gone };
        if self.is_elsewhere(&recording) {
            return Step::Elsewhere;
        }
        if recording.status.is_final() || now_ms() >= recording.ends_at() {
            return Step::Over;
        }
        if self.shared.stop.is_cancelled() { Step::Stopping } else { Step::Play }
    }

    /// Returns whether another node makes the recording. A node that no longer writes the records goes on with its file until
    /// the next one has begun a file of its own, so that little is lost; it may not begin one.
    fn is_elsewhere(&self, recording: &Recording) -> bool {
        match self.file {
            Some(_) => self.other_node(recording).is_some(),
            None => !self.parts().models.store.writes_shared(),
        }
    }

    /// Returns the name of the other node that has the file of the recording.
    fn other_node<'a>(&self, recording: &'a Recording) -> Option<&'a str> {
        recording.file.as_ref().filter(|it| !self.parts().folder.has(it))?.node.as_deref()
    }

    /// Follows the wall clock if somebody has set it: times of day follow it, and nothing is missing because of it. Returns by
    /// how much it was set, in milliseconds.
    async fn follow_clock(&mut self) -> i64 {
        let jump = self.clock.jump();
        // The times of one from the archive are those of its programme.
        if jump == 0 || self.recording().is_some_and(|it| it.after.fetched.is_some()) {
            return 0;
        }
        info!(recording.id = %self.id, "the clock was set by {} s during a recording", jump / 1_000);
        self.last_at = self.last_at.map(|it| it.saturating_add(jump));
        if let Some(file) = &mut self.file {
            file.shift_clock(jump);
        }
        if self.has_open_gap() {
            self.change(move |it| it.shift_open_gap(jump)).await;
        }
        jump
    }

    /// Returns whether the whole recording comes from the archive.
    fn fetches(&self) -> bool {
        self.recording().is_some_and(|it| it.fetched(now_ms()).is_some())
    }

    /// Waits, but not longer than until the recording is over, ended, deleted or the gateway stops. The file is looked at
    /// meanwhile.
    async fn wait(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until && matches!(self.next_step(), Step::Play) {
            tokio::select! {
                () = sleep_until(until.min(Instant::now() + WRITE_PERIOD)) => {}
                () = self.shared.stop.cancelled() => return,
            }
            self.follow_clock().await;
            if let Err(cause) = self.look(false).await {
                self.note(&cause.to_string()).await;
            }
        }
    }

    /// Opens the file of an earlier run, and notes the gap since then.
    async fn resume(&mut self) -> Result<(), Fault> {
        let Some(recording) = self.recording() else { return Ok(()) };
        if let Some(node) = self.other_node(&recording) {
            if recording.status == RecordingStatus::Recording && !self.has_open_gap() {
                let reason = format!("node {node} does not record any more");
                self.change(move |it| it.open_gap(now_ms(), &reason)).await;
            }
            return Ok(());
        }
        if let Some(fetched) = recording.fetched(now_ms()) {
            return self.reopen_fetched(&recording, fetched).await;
        }
        let Some(recorded) = &recording.file else { return Ok(()) };
        let Some((file, written_at)) = self.reopened(&recorded.path).await? else {
            // A power cut took it before its first packets were on the disk, or somebody removed it.
            if self.note_lost(FileLoss::Missing).await {
                self.may_mark = false;
            }
            return Ok(());
        };
        self.counters.bytes.store(file.length(), Ordering::Relaxed);
        self.counters.synced.store(file.synced(), Ordering::Relaxed);
        if recording.status == RecordingStatus::Recording {
            self.change(move |it| it.open_gap(written_at, NOT_RUNNING)).await;
        }
        self.last_at = Some(written_at);
        self.file = Some(file);
        Ok(())
    }

    /// Joins the channel and stores its packets until the recording is over or the channel ends. Returns whether a packet
    /// was stored.
    async fn play(&mut self) -> Result<bool, Fault> {
        let Some(recording) = self.recording() else { return Ok(false) };
        self.follow_clock().await;
        if self.file.is_none() && recording.file.is_some() {
            self.resume().await?;
        }
        if recording.status == RecordingStatus::Scheduled
            && let Some(reason) = owner_refusal(&self.parts().models, &recording)
        {
            return Err(Fault::Retry(reason.to_owned()));
        }
        if self.file.is_none()
            && let Some(cause) = self.shared.room.lock().refusal(&recording)
        {
            return Err(Fault::Retry(cause.to_string()));
        }
        let (forecasts, id) = (self.parts().forecasts.clone(), self.id);
        blocking(move || forecasts.prepare(id)).await?;
        let priority = ForecastPriority::new(self.id, self.parts().forecasts.clone());
        let reader = RecordingReader::new(Arc::new(priority));
        let shared = self.shared.clone();
        let joining = Intake::join(&shared.switchboard, recording.channel_uuid, reader, &shared.stop);
        let mut joining = pin!(joining);
        // A channel may take a while to play.
        let joined = loop {
            tokio::select! {
                joined = &mut joining => break joined,
                () = sleep(WRITE_PERIOD), if self.file.is_some() => {}
            }
            self.follow_clock().await;
            self.look(false).await?;
        };
        match joined.map_err(Fault::Retry)? {
            Some(intake) => self.store(intake).await,
            None => Ok(false),
        }
    }

    /// Stores the packets of one reader.
    async fn store(&mut self, mut intake: Intake) -> Result<bool, Fault> {
        // The first read selects the first packet: that of the newest random-access point.
        while let Some(left) = self.until_begin() {
            tokio::select! {
                () = sleep(left.min(WRITE_PERIOD)) => {}
                reason = intake.disconnected() => return Err(Fault::Retry(reason.to_owned())),
                () = self.shared.stop.cancelled() => return Ok(false),
            }
        }
        if !matches!(self.next_step(), Step::Play) {
            return Ok(false);
        }
        self.follow_clock().await;
        let now = now_ms();
        self.look(false).await?;
        self.begins_anywhere = false;
        if let Some(last_at) = self.last_at
            && let Some(file) = self.file.take()
        {
            self.use_file(file, move |file| file.change_reader(last_at, now)).await?;
        }
        let (mut has_stored, mut synced_at, mut reading_since) = (false, Instant::now(), now_ms());
        let end = loop {
            // The time of the first packet counts, and a splice needs that of each.
            let needs_times = self.file.as_ref().is_none_or(RecordingFile::is_joined);
            let Batch { packets, is_overrun, end } = intake.next(needs_times, &self.shared.stop).await;
            reading_since += self.follow_clock().await;
            if packets.is_empty() && end.is_none() {
                self.note_silence(reading_since).await;
            }
            has_stored |= !packets.is_empty();
            let before = self.last_at;
            // Also without packets, for those that wait in the file.
            self.append(packets).await?;
            if is_overrun {
                self.note_overrun(before.unwrap_or(reading_since)).await;
            }
            if let Some(end) = end {
                break end;
            }
            self.leave_lost_disk().await?;
            if synced_at.elapsed() >= SYNC_PERIOD {
                synced_at = Instant::now();
                if let Some(file) = self.file.take() {
                    match self.use_file(file, RecordingFile::sync).await {
                        Err(Fault::Lost(loss)) => self.lose(loss).await?,
                        synced => synced?,
                    }
                }
            }
            if !matches!(self.next_step(), Step::Play) {
                return Ok(has_stored);
            }
        };
        drop(intake);
        match end {
            IntakeEnd::Lost(reason) if !matches!(self.next_step(), Step::Play) || has_stored => {
                info!(recording.id = %self.id, "the channel of a recording ended: {reason}");
                if matches!(self.next_step(), Step::Play) {
                    self.note(&reason).await;
                }
                Ok(has_stored)
            }
            IntakeEnd::Lost(reason) => Err(Fault::Retry(reason)),
            IntakeEnd::Stopped => Ok(has_stored),
        }
    }

    /// Returns the time until the recording begins; `None` if it has begun or is over.
    fn until_begin(&self) -> Option<Duration> {
        // One that has begun goes on, also if the clock was set back.
        let recording = self.recording().filter(|it| it.status == RecordingStatus::Scheduled)?;
        let left = u64::try_from(recording.begins_at().saturating_sub(now_ms())).ok()?;
        (left > 0).then(|| Duration::from_millis(left))
    }

    /// Appends packets to the file, which is created with the first ones.
    async fn append(&mut self, batch: Vec<Arrived>) -> Result<(), Fault> {
        // The clock may have been set between two packets of the batch.
        let now = now_ms();
        let Some(first_at) = batch.first().map(|it| it.at.clamp(now.saturating_sub(BATCH_MS_MAX), now))
        else {
            if let Some(file) = self.file.take() {
                match self.use_file(file, |file| file.append(&[], now_ms())).await {
                    Err(Fault::Lost(loss)) => self.lose(loss).await?,
                    appended => appended?,
                }
            }
            return Ok(());
        };
        let latest = batch.last().map(|it| it.at);
        let batch = Arc::new(batch);
        let mut has_lost = false;
        let is_new = loop {
            let file = match self.file.take() {
                Some(file) => file,
                None => self.create(first_at).await?,
            };
            let (is_new, packets) = (file.length() == 0, Arc::clone(&batch));
            match self.use_file(file, move |file| file.append(&packets, now_ms())).await {
                // The same packets go to the next file. If that is lost at once, there is a pause.
                Err(Fault::Lost(loss)) if !has_lost => {
                    has_lost = true;
                    self.lose(loss).await?;
                }
                appended => {
                    appended?;
                    break is_new;
                }
            }
        };
        let before = self.last_at;
        self.last_at = latest;
        let status = self.recording().map(|it| it.status);
        if is_new || status == Some(RecordingStatus::Scheduled) {
            self.begun(first_at).await;
        } else if before.is_some_and(|it| first_at.saturating_sub(it) > GAP_MS) || self.has_open_gap() {
            self.change(move |it| {
                if let Some(before) = before.filter(|before| first_at.saturating_sub(*before) > GAP_MS) {
                    it.open_gap(before, NO_DATA);
                }
                it.close_gap(first_at);
            })
            .await;
        }
        Ok(())
    }

    fn has_open_gap(&self) -> bool {
        self.recording().is_some_and(|it| it.gaps.last().is_some_and(|it| it.end.is_none()))
    }

    /// Creates the file for a first packet of this time, and notes its path before anything is in it.
    async fn create(&mut self, first_at: i64) -> Result<RecordingFile, Fault> {
        let recording =
            self.recording().ok_or_else(|| Fault::Retry("the recording was deleted".to_owned()))?;
        let (settings, zone) = self.shared.settings();
        let begin = if now_ms() < recording.ends_at() { now_ms() } else { recording.begins_at() };
        let time = jiff::Timestamp::from_millisecond(begin).unwrap_or_default().to_zoned(zone);
        let stem = settings.file_path(&recording, time.strftime("%Y-%m-%d %H-%M").to_string());
        let parts = self.parts();
        let folder = parts.folder.clone();
        if self.other_node(&recording).is_some() && !recording.has_room_for_part() {
            return Err(Fault::Disk(format!("it has {PARTS_MAX} parts on other nodes already")));
        }
        // The first file of this node creates the folder. Later a folder without its marker is one whose disk is not mounted.
        let recordings = parts.models.recordings.load();
        let is_first = self.may_mark && !recordings.iter().flat_map(|it| it.parts()).any(|it| folder.has(it));
        let id = self.id;
        let (mut file, path) = blocking(move || {
            if is_first && !folder.is_marked() {
                folder.mark()?;
            }
            let (file, path) = folder.create(&stem, FILE_EXTENSION)?;
            let index = index::create(&folder, id, &path);
            let file = RecordingFile::new(file).with_index(index);
            Ok::<_, FolderError>((file.at_place(folder, path.clone()), path))
        })
        .await??;
        let node = parts.folder.node().map(str::to_owned);
        let recorded = RecordedFile { path: path.clone(), bytes: 0, started_at: begin, ended_at: None, node };
        let noted = self.write(move |write, it| {
            let before = it.clone();
            if let Some(replaced) = it.begin_file(recorded) {
                before.left_files(|it| *it == replaced).into_iter().try_for_each(|it| leave(write, it))?;
            }
            write.put(it)
        });
        if noted.await.is_none() {
            // Nobody would find the file.
            self.remove(path).await;
            return Err(Fault::Retry("the record of the recording cannot be written".to_owned()));
        }
        if self.begins_anywhere {
            file.begin_anywhere(first_at);
        }
        Ok(file)
    }

    /// Notes that the first packet is stored, and reports it.
    async fn begun(&mut self, first_at: i64) {
        let event =
            self.events_of(|channel, recording, _, _| vec![EventBody::RecordingStart { channel, recording }]);
        let started_at = self.parts().started_at;
        let changed = self.change_and_report(event, move |it| {
            let was_scheduled = it.status == RecordingStatus::Scheduled;
            let reason = it.reason.clone();
            if it.apply(RecordingInput::Stored, None, now_ms()).is_err() {
                return (false, Reports::default());
            }
            let is_fetched = it.after.fetched.is_some();
            let wanted = if is_fetched { it.begins_at() } else { it.begins_at().max(it.created_at) };
            let was_running = is_fetched || wanted >= started_at;
            let reason = reason.unwrap_or_else(|| if was_running { NO_DATA } else { NOT_RUNNING }.to_owned());
            if was_scheduled && first_at.saturating_sub(wanted) > GAP_MS {
                it.open_gap(wanted, &reason);
            }
            it.close_gap(first_at);
            // Why it did not continue at once.
            it.reason = None;
            if let Some(file) = &mut it.file {
                file.started_at = first_at;
            }
            (was_scheduled, Reports { is_step: was_scheduled, has_failed: false })
        });
        let Some((recording, true)) = changed.await else { return };
        info!(recording.id = %self.id, "recording of \"{}\" started", recording.title());
    }

    /// Notes a gap if no packet has arrived for some time. A gap before the first packet is noted when that arrives.
    async fn note_silence(&mut self, reading_since: i64) {
        let Some(last_at) = self.last_at.filter(|_| self.file.is_some()) else { return };
        let silent_since = last_at.max(reading_since);
        if now_ms().saturating_sub(silent_since) > GAP_MS && !self.has_open_gap() {
            self.change(move |it| it.open_gap(last_at, NO_DATA)).await;
        }
    }

    /// Notes a gap that ended at this moment, because the disk was slower than the channel.
    async fn note_overrun(&self, since: i64) {
        self.change(move |it| {
            it.open_gap(since, TOO_SLOW);
            it.close_gap(now_ms());
        })
        .await;
    }

    /// Notes why nothing is recorded at the moment.
    async fn note(&mut self, reason: &str) {
        self.follow_clock().await;
        let Some(recording) = self.recording().filter(|it| !it.status.is_final()) else { return };
        if now_ms() < recording.begins_at() {
            return;
        }
        if let Some(last_at) = self.last_at.filter(|_| recording.status == RecordingStatus::Recording) {
            if !self.has_open_gap() {
                let reason = reason.to_owned();
                self.change(move |it| it.open_gap(last_at, &reason)).await;
            }
        } else if recording.reason.as_deref() != Some(reason) {
            warn!(recording.id = %self.id, "a recording cannot begin: {reason}");
            let reason = Some(reason.to_owned());
            self.change(move |it| it.reason = reason).await;
        }
    }

    /// The gateway stops: the next process continues the recording.
    async fn suspend(&mut self) {
        self.follow_clock().await;
        self.close_file().await;
        if let Some(last_at) = self.last_at {
            self.change(move |it| {
                if it.status == RecordingStatus::Recording {
                    it.open_gap(last_at, STOPPING);
                }
            })
            .await;
        }
    }

    async fn pause(&self, time: Duration) {
        tokio::select! {
            () = sleep(time) => {}
            () = self.shared.stop.cancelled() => {}
        }
    }

    /// Writes the rest of the file to the disk. Returns its size.
    async fn close_file(&mut self) -> Option<u64> {
        let mut file = self.file.take()?;
        let closed = blocking(move || {
            let finished = file.finish(now_ms());
            (file.length(), finished)
        });
        let (length, finished) = closed.await.ok()?;
        self.counters.bytes.store(length, Ordering::Relaxed);
        if let Err(cause) = finished {
            warn!(recording.id = %self.id, "failed to write the end of a recording: {cause}");
        }
        Some(length)
    }

    /// Closes the file if its disk is not mounted any more: nobody would find what is written to an open file. It continues
    /// when the disk is back.
    async fn leave_lost_disk(&mut self) -> Result<(), Fault> {
        let opened_at = self.file.as_ref().map(RecordingFile::opened_at);
        if !opened_at.is_some_and(|it| self.shared.room.lock().lacks_disk_since(it)) {
            return Ok(());
        }
        // A folder may also lack its marker because it was deleted with everything in it.
        if self.look(true).await? {
            return Err(Fault::Retry(FileLoss::Deleted.to_string()));
        }
        self.close_file().await;
        Err(FolderError::NotMarked.into())
    }

    /// Uses the file on a thread that may block, unless it was lost. After an error it is closed.
    async fn use_file(
        &mut self,
        mut file: RecordingFile,
        work: impl FnOnce(&mut RecordingFile) -> io::Result<()> + Send + 'static,
    ) -> Result<(), Fault> {
        let done = blocking(move || match file.loss(false) {
            Some(loss) => (file, Err(loss)),
            None => {
                let done = work(&mut file);
                (file, Ok(done))
            }
        });
        let (file, done) = done.await?;
        let done = match done {
            Ok(done) => done,
            Err(loss) => {
                self.file = Some(file);
                return Err(Fault::Lost(loss));
            }
        };
        self.counters.bytes.store(file.length(), Ordering::Relaxed);
        self.counters.synced.store(file.synced(), Ordering::Relaxed);
        let Err(error) = done else {
            self.file = Some(file);
            return Ok(());
        };
        let fault = disk_fault(&error);
        let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let folder = self.parts().folder.clone();
        if !is_full && !blocking(move || folder.is_marked()).await? {
            // Its disk is gone. The file continues when the disk is back.
            return Err(FolderError::NotMarked.into());
        }
        self.file = Some(file);
        Err(fault)
    }

    /// Changes the record, unless it was removed. Returns the record and what the function returns.
    async fn change<R: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Recording) -> R + Send + 'static,
    ) -> Option<(Recording, R)> {
        let changed = self.write(move |write, recording| {
            let done = change(recording);
            write.put(recording)?;
            Ok(done)
        });
        changed.await
    }

    /// Writes the record, unless it was removed. Returns the record and what the function returns.
    async fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Write<'_>, &mut Recording) -> storage::Result<R> + Send + 'static,
    ) -> Option<(Recording, R)> {
        if !self.parts().models.store.writes_shared() {
            // Another node writes the record, and will continue the recording.
            return None;
        }
        let id = self.id.0;
        let written = self.parts().models.store.write(move |write: &mut Write<'_>| {
            let Some(mut recording) = write.get::<Recording>(id)? else { return Ok(None) };
            let done = work(write, &mut recording)?;
            Ok::<_, storage::Error>(Some((recording, done)))
        });
        match written.await {
            Ok(changed) => changed,
            Err(cause) => {
                warn!(recording.id = %self.id, "failed to write the record of a recording: {cause}");
                None
            }
        }
    }
}

/// Runs a function on a thread that may block.
async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, Fault> {
    let done = spawn_blocking(work).await;
    done.map_err(|_| Fault::Retry("a thread for files failed".to_owned()))
}
