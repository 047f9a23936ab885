//! What the file of a recording lacks, from the archive of its channel.
//!
//! A new file is made beside the present one: in the order of time, the packets of the file and those of the archive, with
//! continuous clocks. The file stays as it is until the new one is whole and on the disk, and then changes its place with it
//! in one step. What is to be done is in the record:
//!
//! ```text
//!  missed parts ─► new file ─► noted in the record ─► renamed ─► noted as filled
//! ```

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use domain::recording::{FilledFile, MISSED_MS_MIN, Recording};
use media::ts::clock::{PCR_HZ, PCR_MODULUS};
use media::ts::packet::{PACKET, Packet, packets};
use tokio::time::sleep;
use tracing::{info, warn};

use super::{Fault, RETRY_MAX, Run, WRITE_PERIOD, blocking};
use crate::clock::now_ms;
use crate::recorder::missed::{Fetched, MissedPart};
use crate::recording_files::file::{Arrived, RecordingFile};
use crate::recording_files::folder::FolderError;
use crate::recording_files::index::{self, AccessPoint, RecordingIndex};

const TICKS_PER_MS: u64 = PCR_HZ / 1000;
/// A step of the clock of a file that is longer is one over a gap, in ticks.
const GAP_TICKS_MIN: u64 = PCR_HZ;
/// Bytes after a point in which a clock is looked for.
const CLOCK_BYTES_MAX: usize = 4096 * PACKET;
/// Bytes of the present file that are copied at a time.
const COPY_BYTES: usize = 4096 * PACKET;
/// Packets that share a time of arrival, in bytes.
const PIECE_BYTES: usize = 16 * PACKET;
/// How far the length of a new file may be from the expected one, in milliseconds, and in parts of it.
const LENGTH_MS_MAX: i64 = 5_000;
const LENGTH_PARTS: i64 = 50;
/// Longest wait until this node has what the one that writes has stored.
const ARRIVAL_MAX: Duration = Duration::from_secs(10);
/// Room that a new file leaves on the disk, in bytes.
const ROOM_BYTES_LEFT: u64 = 1 << 30;

/// A missing part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hole {
    /// Position in the file in bytes.
    at: u64,
    /// Milliseconds since 1970.
    times: Range<i64>,
}

/// Why there is no new file.
enum Stopped {
    /// The gateway stops, or the recording was deleted.
    Gone,
    /// Nothing can be filled, for this reason.
    Never(String),
    /// Another try may help.
    Later(String),
}

impl From<FolderError> for Stopped {
    fn from(error: FolderError) -> Self {
        Self::Later(error.to_string())
    }
}

impl From<Fault> for Stopped {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Retry(reason) => Self::Later(reason),
            Fault::Disk(reason) => Self::Never(reason),
            Fault::Lost(loss) => Self::Later(loss.to_string()),
        }
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Never(format!("a file failed: {error}"))
    }
}

/// A new file while it is made.
struct NewFile {
    file: RecordingFile,
    /// The times of the first and the last packet, in milliseconds since 1970.
    times: Option<(i64, i64)>,
    /// The times that came from the archive.
    filled: Vec<Range<i64>>,
}

impl Run {
    /// Returns whether the recording is over, and what its file lacks was not asked for yet.
    pub(super) fn lacks_parts(&self) -> bool {
        self.recording().is_some_and(|it| it.missed_are_due())
    }

    /// Returns whether nothing is left to do, such as when another node has noted the new file meanwhile.
    pub(super) fn is_complete(&self) -> bool {
        self.recording().is_some_and(|it| it.status.is_final() && it.has_ended_file())
    }

    /// Fills what can be filled, and notes that this is done.
    pub(super) async fn refill(&mut self) {
        let filled = loop {
            match self.filled_file().await {
                Ok(filled) => break filled,
                Err(Stopped::Gone) => return,
                Err(Stopped::Never(reason)) => {
                    info!(recording.id = %self.id, "a recording stays as it is: {reason}");
                    break None;
                }
                Err(Stopped::Later(reason)) => {
                    warn!(recording.id = %self.id, "what a recording lacks is not asked for now: {reason}");
                    tokio::select! {
                        () = sleep(RETRY_MAX) => {}
                        () = self.left() => {}
                    }
                }
            }
        };
        let has_more = filled.is_some();
        while let Err(reason) = self.note_filled(filled.clone()).await {
            warn!(recording.id = %self.id, "failed to note that a recording was filled, trying again: {reason}");
            tokio::select! {
                () = sleep(RETRY_MAX) => {}
                () = self.left() => {}
            }
            if self.check_left().is_err() {
                return;
            }
        }
        self.until_arrived().await;
        let Some(recording) = self.recording() else { return };
        if has_more {
            info!(recording.id = %self.id, "recording of \"{}\" was filled from the archive", recording.title());
        }
        let (folder, id) = (self.parts().folder.clone(), self.id);
        let removed = blocking(move || folder.remove_beside(id)).await;
        if let Ok(Err(cause)) = removed {
            warn!(recording.id = %self.id, "failed to remove a file beside a recording: {cause}");
        }
    }

    /// Waits until this node has what was noted at the one that writes; not forever, because the record may change otherwise.
    async fn until_arrived(&self) {
        let arrived = async {
            while self.lacks_parts() {
                sleep(WRITE_PERIOD).await;
            }
        };
        tokio::select! {
            () = arrived => {}
            () = sleep(ARRIVAL_MAX) => {}
            () = self.shared.stop.cancelled() => {}
        }
    }

    /// Notes the new file, or that there is none.
    async fn note_filled(&self, filled: Option<FilledFile>) -> Result<(), String> {
        match filled {
            Some(filled) => self.shared.note_filled(self.id, filled).await,
            None => self.shared.change_record(self.id, |it| it.after.missed = None).await.map(drop),
        }
    }

    /// Makes a new file and puts it in the place of the present one. `None` if there is nothing to fill.
    async fn filled_file(&mut self) -> Result<Option<FilledFile>, Stopped> {
        let recording = self.recording().ok_or(Stopped::Gone)?;
        let (Some(recorded), Some(work)) = (&recording.file, &recording.after.missed) else {
            return Ok(None);
        };
        let (folder, path, id) = (self.parts().folder.clone(), recorded.path.clone(), self.id);
        if let Some(filled) = &work.replacement {
            // An earlier process was about to rename.
            let (wanted, path) = (filled.bytes, path.clone());
            let present =
                blocking(move || Ok::<_, FolderError>(folder.open(&path)?.map(|it| it.metadata()))).await??;
            let present = present.transpose()?.map(|it| it.len());
            return if present == Some(wanted) {
                Ok(Some(filled.clone()))
            } else {
                self.give_up_replacement().await
            };
        }
        let missed = recording.missed_parts();
        if missed.is_empty() || !self.archive_has(&recording, &missed) {
            return Ok(None);
        }
        let known = index::Known::load(folder.clone(), id, path.clone()).await?;
        let Some(known) = known else { return Ok(None) };
        let index = known.complete(true).await?;
        self.check_room(&index)?;
        let (started_at, looked) = (recorded.started_at, (folder.clone(), path.clone()));
        let found = blocking(move || {
            let (folder, path) = looked;
            let Some(file) = folder.open(&path)? else { return Ok(None) };
            let holes = holes(&file, &index, started_at, &missed)?;
            let new = RecordingFile::new(folder.create_beside(id)?);
            Ok::<_, FolderError>(Some((file, index, holes, new)))
        });
        let Some((file, index, holes, new)) = found.await?? else { return Ok(None) };
        let mut new = NewFile { file: new, times: None, filled: Vec::new() };
        let mut copied = Copied { file, at: 0, clock: FileClock::default(), started_at };
        for hole in &holes {
            new = self.copy(&mut copied, hole.at, new).await?;
            new = self.fill(&recording, hole, new).await?;
        }
        if new.filled.is_empty() {
            return Err(Stopped::Never("the archive had nothing of what is missing".to_owned()));
        }
        new = self.copy(&mut copied, index.length, new).await?;
        let filled = self.checked(&recording, &index, new).await?;
        self.replace(path, filled.clone()).await?;
        Ok(Some(filled))
    }

    /// Returns whether an archive of the channel has one of these times.
    fn archive_has(&self, recording: &Recording, missed: &[Range<i64>]) -> bool {
        let channels = self.parts().models.channels.load();
        let Some(channel) = channels.one_by("uuid", recording.channel_uuid.as_bytes()) else { return false };
        let now = now_ms() / 1000;
        missed.iter().any(|it| self.shared.archive_has(channel, it, now))
    }

    fn check_room(&self, index: &RecordingIndex) -> Result<(), Stopped> {
        let needed = index.length.saturating_mul(2).saturating_add(ROOM_BYTES_LEFT);
        match self.shared.room.lock().available {
            Some(available) if available < needed => {
                Err(Stopped::Never("the disk has no room for a second file".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the recording is deleted or the gateway stops.
    async fn left(&self) {
        while self.recording().is_some() {
            tokio::select! {
                () = sleep(WRITE_PERIOD) => {}
                () = self.shared.stop.cancelled() => return,
            }
        }
    }

    fn check_left(&self) -> Result<(), Stopped> {
        let is_left = self.recording().is_none() || self.shared.stop.is_cancelled();
        if is_left { Err(Stopped::Gone) } else { Ok(()) }
    }

    /// Copies the present file up to a position.
    async fn copy(&self, copied: &mut Copied, end: u64, mut new: NewFile) -> Result<NewFile, Stopped> {
        let mut is_first = true;
        while copied.at < end {
            self.check_left()?;
            let (mut from, is_join) = (copied.try_clone()?, std::mem::replace(&mut is_first, false));
            let (done, returned) = blocking(move || {
                let done = from.next(end).and_then(|arrived| new.append(&arrived, is_join));
                (done.map(|()| from), new)
            })
            .await?;
            new = returned;
            *copied = done?;
        }
        Ok(new)
    }

    /// Adds what the archive has of a hole. One that it lacks stays.
    async fn fill(&self, recording: &Recording, hole: &Hole, mut new: NewFile) -> Result<NewFile, Stopped> {
        let mut part = MissedPart::new(&self.shared, recording.channel_uuid, hole.times.clone());
        let mut filled: Option<Range<i64>> = None;
        loop {
            let fetched = tokio::select! {
                fetched = part.next(&self.shared) => fetched,
                () = self.left() => return Err(Stopped::Gone),
            };
            match fetched {
                Fetched::Packets { arrived, is_first } => {
                    let times = arrived.first().zip(arrived.last()).map(|(first, last)| (first.at, last.at));
                    if let Some((first, last)) = times {
                        filled = Some(filled.map_or(first, |it| it.start)..last);
                    }
                    let append = move || {
                        new.file.begin_anywhere(times.map_or(0, |it| it.0));
                        (new.append(&arrived, is_first), new)
                    };
                    let (done, returned) = blocking(append).await?;
                    done?;
                    new = returned;
                }
                Fetched::Later { pause, reason } => {
                    info!(recording.id = %self.id, "a recording waits for the archive: {reason}");
                    self.pause_refill(pause).await;
                }
                Fetched::Whole => break,
                Fetched::Never { reason } => {
                    info!(recording.id = %self.id, "the archive lacks a part of a recording: {reason}");
                    break;
                }
            }
        }
        new.filled.extend(filled);
        Ok(new)
    }

    async fn pause_refill(&self, pause: Duration) {
        tokio::select! {
            () = sleep(pause) => {}
            () = self.left() => {}
        }
    }

    /// Writes the rest of a new file to the disk, and checks that it has everything that the present one has.
    async fn checked(
        &self,
        recording: &Recording,
        present: &RecordingIndex,
        new: NewFile,
    ) -> Result<FilledFile, Stopped> {
        let NewFile { mut file, times, filled } = new;
        let Some((started_at, ended_at)) = times else {
            return Err(Stopped::Never("it is empty".to_owned()));
        };
        let (folder, id) = (self.parts().folder.clone(), self.id);
        let read = blocking(move || {
            file.finish(ended_at)?;
            let Some(file) = folder.open_beside(id)? else { return Ok(None) };
            let length = file.metadata()?.len();
            Ok::<_, FolderError>(Some(index::complete(Vec::new(), &file, length)?))
        });
        let index = read.await??.ok_or_else(|| Stopped::Later("the new file is gone".to_owned()))?;
        let expected = ended_at - started_at;
        let length = i64::try_from(index.duration).unwrap_or(i64::MAX);
        let is_near = (length - expected).abs() <= LENGTH_MS_MAX.max(expected / LENGTH_PARTS);
        if !is_near
            || index.duration.saturating_add(1_000) < present.duration
            || index.length == present.length
        {
            let reason = format!("the new file has {length} ms instead of {expected} ms");
            return Err(Stopped::Never(reason));
        }
        let gaps = recording.gaps_without(&filled);
        Ok(FilledFile { bytes: index.length, started_at, ended_at, gaps })
    }

    /// Puts the new file in the place of the present one.
    async fn replace(&self, path: String, filled: FilledFile) -> Result<(), Stopped> {
        let noted = self.shared.change_record(self.id, move |it| match &mut it.after.missed {
            Some(work) => {
                work.replacement = Some(filled);
                true
            }
            None => false,
        });
        let noted = noted.await.map_err(Stopped::Later)?;
        let (_, true) = noted.ok_or(Stopped::Gone)? else { return Err(Stopped::Gone) };
        let (folder, id) = (self.parts().folder.clone(), self.id);
        let renamed = blocking(move || {
            folder.remove_index(id)?;
            folder.replace_with_beside(id, &path)
        });
        match renamed.await? {
            Ok(()) => Ok(()),
            Err(cause) => Err(Stopped::Never(format!("the new file cannot be renamed: {cause}"))),
        }
    }

    /// An earlier process noted a new file, and did not rename it.
    async fn give_up_replacement(&self) -> Result<Option<FilledFile>, Stopped> {
        let given_up = self.shared.change_record(self.id, |it| it.after.missed = Some(Default::default()));
        given_up.await.map_err(Stopped::Later)?.ok_or(Stopped::Gone)?;
        Err(Stopped::Later("the gateway ended before the new file was in its place".to_owned()))
    }
}

impl NewFile {
    /// Appends packets. With `is_join` they come from elsewhere than the ones before.
    fn append(&mut self, arrived: &[Arrived], is_join: bool) -> io::Result<()> {
        let (Some(first), Some(last)) = (arrived.first(), arrived.last()) else { return Ok(()) };
        if let (Some((_, latest)), true) = (self.times, is_join) {
            self.file.change_reader(latest, first.at.max(latest))?;
        }
        self.file.append(arrived, last.at)?;
        let (started_at, latest) = self.times.unwrap_or((first.at, last.at));
        self.times = Some((started_at, latest.max(last.at)));
        Ok(())
    }
}

/// The clock of a file, whose steps over gaps count.
#[derive(Clone, Copy, Debug, Default)]
struct FileClock {
    last: Option<(u16, u64)>,
    /// Time since the first value.
    ticks: u64,
}

impl FileClock {
    /// Returns the step to the clock of a packet, if it has one.
    fn packet(&mut self, packet: Packet<'_>) -> Option<u64> {
        let (pid, pcr) = (packet.pid(), packet.pcr()?);
        let step = match self.last {
            Some((clock, last)) if clock == pid => (pcr + PCR_MODULUS - last) % PCR_MODULUS,
            Some(_) => return None,
            None => 0,
        };
        let step = if step < PCR_MODULUS / 2 { step } else { 0 };
        self.last = Some((pid, pcr));
        self.ticks = self.ticks.saturating_add(step);
        Some(step)
    }

    fn milliseconds(&self) -> i64 {
        i64::try_from(self.ticks / TICKS_PER_MS).unwrap_or(i64::MAX)
    }
}

/// The present file while it is copied.
struct Copied {
    file: File,
    /// Position of the next byte.
    at: u64,
    clock: FileClock,
    /// The time of the first packet, in milliseconds since 1970.
    started_at: i64,
}

impl Copied {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, ..*self })
    }

    /// Reads the next packets, and when each was recorded. Blocks.
    fn next(&mut self, end: u64) -> io::Result<Vec<Arrived>> {
        let n = usize::try_from(end - self.at).unwrap_or(usize::MAX).min(COPY_BYTES);
        let mut block = vec![0; n];
        self.file.read_exact_at(&mut block, self.at)?;
        self.at += n as u64;
        let block = bytes::Bytes::from(block);
        let mut arrived = Vec::new();
        for start in (0..n).step_by(PIECE_BYTES) {
            let bytes = block.slice(start..n.min(start + PIECE_BYTES));
            for packet in packets(&bytes) {
                self.clock.packet(Packet::new(packet));
            }
            arrived.push(Arrived { at: self.started_at + self.clock.milliseconds(), bytes });
        }
        Ok(arrived)
    }
}

/// Finds the missed parts in a file whose first packet was recorded at `started_at`. Those that the file does not show as a
/// step of its clock are left out. Blocks.
fn holes(
    file: &File,
    index: &RecordingIndex,
    started_at: i64,
    missed: &[Range<i64>],
) -> io::Result<Vec<Hole>> {
    let mut holes: Vec<Hole> = Vec::new();
    let ended_at = started_at + i64::try_from(index.duration).unwrap_or(i64::MAX / 2);
    for missed in missed {
        let hole = if missed.end <= started_at {
            Some(Hole { at: 0, times: missed.clone() })
        } else if missed.end > ended_at && missed.end - ended_at >= MISSED_MS_MIN {
            Some(Hole { at: index.length, times: missed.start.max(ended_at)..missed.end })
        } else {
            step_in(file, index, started_at, missed)?
        };
        let is_next = |it: &Hole| holes.last().is_none_or(|last| last.at < it.at || it.at == 0);
        holes.extend(hole.filter(is_next));
    }
    Ok(holes)
}

/// Finds the step of the clock over a missed part.
fn step_in(
    file: &File,
    index: &RecordingIndex,
    started_at: i64,
    missed: &Range<i64>,
) -> io::Result<Option<Hole>> {
    let middle = missed.start.midpoint(missed.end);
    let since = u64::try_from(middle - started_at).unwrap_or(0);
    let n = index.points.partition_point(|it| it.time <= since);
    let (Some(before), Some(after)) =
        (n.checked_sub(1).and_then(|it| index.points.get(it)), index.points.get(n))
    else {
        return Ok(None);
    };
    let AccessPoint { offset, time, .. } = *before;
    // The first clock may come some packets after the tables.
    let mut block = vec![0; usize::try_from(after.offset - offset).unwrap_or(0) + CLOCK_BYTES_MAX];
    let n_read = block.len().min(usize::try_from(index.length - offset).unwrap_or(usize::MAX));
    file.read_exact_at(&mut block[..n_read], offset)?;
    let mut clock = FileClock::default();
    // Where the packets after the last clock begin that declare a discontinuity.
    let (mut join, mut found) = (None, None);
    for (number, packet) in packets(&block[..n_read]).enumerate() {
        let (at, packet) = (offset + (number * PACKET) as u64, Packet::new(packet));
        if packet.discontinuity() && !packet.has_payload() {
            join.get_or_insert(at);
        }
        let from = clock.milliseconds();
        match clock.packet(packet) {
            Some(step) if step >= GAP_TICKS_MIN => {
                let begin = started_at + i64::try_from(time).unwrap_or(i64::MAX / 2);
                let times = begin + from..begin + clock.milliseconds();
                // The tables precede the clock.
                found = Some(Hole { at: join.unwrap_or(at).min(after.offset), times });
                break;
            }
            // The first clock after the point decides.
            Some(_) if at >= after.offset => break,
            Some(_) => join = None,
            None => {}
        }
    }
    let is_missed = |it: &Hole| {
        it.times.contains(&middle) && (it.times.end - it.times.start) * 2 >= missed.end - missed.start
    };
    Ok(found.filter(is_missed))
}

#[cfg(test)]
mod tests {
    use media::testing::TsSource;

    use super::*;
    use crate::recorder::tests::arrive;

    #[test]
    fn holes_are_where_the_clock_of_a_file_steps_over_a_missed_part() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let open = || std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut file = RecordingFile::new(open());
        let start = 1_000_000;
        let mut lengths = Vec::new();
        let (mut at, mut last_at) = (start, start);
        for (n, label) in ["one", "two", "three"].into_iter().enumerate() {
            if n > 0 {
                at = last_at + 20_000;
                file.change_reader(last_at, at).unwrap();
            }
            last_at =
                arrive(&mut file, &TsSource { start: 900_000 * n as u64, ..TsSource::new(label) }, 6, at);
            lengths.push(file.length());
        }
        file.finish(last_at).unwrap();
        let length = file.length();
        let index = index::complete(Vec::new(), &open(), length).unwrap();
        let (head, tail) = (start - 9_000..start, last_at..last_at + 9_000);
        let gaps = [start + 6_000..start + 26_000, start + 32_000..start + 52_000];
        // A time that the file has, and one that is longer than any step.
        let others = [start + 2_000..start + 5_000, start + 1_000..start + 51_000];
        let [first, second] = gaps;
        let missed = [head.clone(), others[0].clone(), first, others[1].clone(), second, tail.clone()];
        let holes = holes(&open(), &index, start, &missed).unwrap();
        let places: Vec<_> = holes.iter().map(|it| it.at).collect();
        assert_eq!((places.len(), places[0], places[3]), (4, 0, length), "{holes:?}");
        for (hole, before) in holes[1..3].iter().zip(&lengths) {
            // What was waiting for the end of a frame came later.
            assert!(hole.at.abs_diff(*before) < 60_000, "{holes:?} {lengths:?}");
            assert!((hole.times.end - hole.times.start - 20_000).abs() < 1_000, "{holes:?}");
        }
        assert_eq!(holes[0].times, head);
        assert!(holes[3].times.end == tail.end && (holes[3].times.start - tail.start).abs() < 1_000);
        // The times of what is copied follow from the clock of the file.
        let mut copied = Copied { file: open(), at: 0, clock: FileClock::default(), started_at: start };
        let mut arrived = Vec::new();
        while copied.at < length {
            arrived.extend(copied.next(length).unwrap());
        }
        assert_eq!(arrived.iter().map(|it| it.bytes.len() as u64).sum::<u64>(), length);
        assert!(arrived.is_sorted_by_key(|it| it.at));
        assert!((arrived.last().unwrap().at - last_at).abs() < 1_000);
    }
}
