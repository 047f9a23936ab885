//! Data that were recorded and are lost, because their file was deleted, moved, replaced or truncated.

use std::ops::Range;

use super::{FetchedFile, GAPS_MAX, Gap, Recording, RecordingStatus};

impl Recording {
    /// Notes that the file is lost with everything in it. The part before it, which another node has, is the last one then.
    /// One that comes from an archive is begun anew.
    pub fn lose_file(&mut self, reason: &str, now: i64) {
        let Some(lost) = self.file.take() else { return };
        self.file = self.earlier_parts.pop();
        self.updated_at = now;
        let begin = self.begins_at();
        if let Some(fetched) = &mut self.after.fetched {
            *fetched = FetchedFile { reached: begin, bytes: 0 };
            self.gaps.clear();
        } else if self.status != RecordingStatus::Scheduled {
            self.lose_from(lost.started_at, reason, now);
        }
    }

    /// Notes that everything since this time is lost. The gap lasts until data arrive again.
    pub fn lose_from(&mut self, start: i64, reason: &str, now: i64) {
        self.lose_times(start, None, reason);
        self.updated_at = now;
        if self.status.is_final() {
            self.close_gap(now.min(self.ends_at()));
        }
    }

    /// Notes how many bytes are left of an earlier part. One without any is removed.
    pub fn shorten_part(&mut self, path: &str, bytes_left: u64, reason: &str, now: i64) {
        let Some(n) = self.earlier_parts.iter().position(|it| it.path == path) else { return };
        let part = &mut self.earlier_parts[n];
        let (started_at, ended_at) = (part.started_at, part.ended_at.unwrap_or(part.started_at));
        let kept_until = time_at(started_at..ended_at, part.bytes, bytes_left);
        (part.bytes, part.ended_at) = (bytes_left, Some(kept_until));
        if bytes_left == 0 {
            self.earlier_parts.remove(n);
        }
        self.lose_times(kept_until, Some(ended_at), reason);
        self.updated_at = now;
    }

    /// Adds a gap. Those in its time become part of it.
    fn lose_times(&mut self, start: i64, end: Option<i64>, reason: &str) {
        let end_of = |it: Option<i64>| it.unwrap_or(i64::MAX);
        self.gaps.retain(|it| it.start < start || end_of(it.end) > end_of(end));
        let n = self.gaps.partition_point(|it| it.start < start);
        if let Some(after) = self.gaps.get_mut(n) {
            after.start = after.start.max(end_of(end));
        }
        let is_full = self.gaps.len() >= GAPS_MAX;
        let gap = Gap { start, end, reason: reason.to_owned(), is_lost: true };
        // In a full list, the next gap becomes longer.
        if let Some(first) = self.gaps.first_mut().filter(|_| is_full && n == 0) {
            *first = Gap { end: first.end, ..gap };
            return;
        }
        match n.checked_sub(1).and_then(|it| self.gaps.get_mut(it)) {
            Some(before) if is_full => *before = Gap { start: before.start, ..gap },
            before => {
                if let Some(before) = before.filter(|it| end_of(it.end) > start) {
                    before.end = Some(start);
                }
                self.gaps.insert(n, gap);
            }
        }
    }
}

/// Returns when a file of these times and this size in bytes had so many bytes, if it grew evenly.
pub fn time_at(times: Range<i64>, bytes: u64, bytes_left: u64) -> i64 {
    let length = u128::try_from(times.end.saturating_sub(times.start)).unwrap_or(0);
    let kept = length * u128::from(bytes_left.min(bytes)) / u128::from(bytes.max(1));
    times.start.saturating_add(i64::try_from(kept).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::with_file;
    use crate::recording::{RecordedFile, RecordingInput};

    const SECOND: i64 = 1_000;

    /// Returns the gaps in seconds since the begin of the recording, and whether each was lost.
    fn gaps(it: &Recording) -> Vec<(i64, Option<i64>, bool)> {
        let since = |at: i64| (at - it.begins_at()) / SECOND;
        it.gaps.iter().map(|it| (since(it.start), it.end.map(since), it.is_lost)).collect()
    }

    /// The file was deleted while it was recorded, and the recording was completed with the size that it had.
    #[test]
    fn a_lost_file_is_a_gap_since_its_begin_and_interrupts_the_recording() {
        let mut it = with_file();
        let (begin, end) = (it.begins_at(), it.ends_at());
        it.open_gap(begin, "late");
        it.close_gap(begin + 2 * SECOND);
        it.file.as_mut().unwrap().started_at = begin + 2 * SECOND;
        for (start, end) in [(5, 8), (12, 13)] {
            it.open_gap(begin + start * SECOND, "no data");
            it.close_gap(begin + end * SECOND);
        }
        it.lose_file("deleted", begin + 20 * SECOND);
        assert_eq!((&it.file, it.status), (&None, RecordingStatus::Recording));
        assert_eq!(gaps(&it), [(0, Some(2), false), (2, None, true)]);
        let (input, reason) = it.outcome(begin + 20 * SECOND);
        assert_eq!((input, reason.as_deref()), (RecordingInput::EndedWithoutFile, Some("deleted")));
        // It lasts until the first packet of the next file.
        it.close_gap(begin + 22 * SECOND);
        let file = with_file().file.map(|it| RecordedFile { started_at: begin + 22 * SECOND, ..it });
        it.file = file;
        assert_eq!(gaps(&it), [(0, Some(2), false), (2, Some(22), true)]);
        let (input, reason) = it.outcome(end);
        assert_eq!(input, RecordingInput::EndedIncomplete, "22 s of 33 minutes, and yet not whole");
        assert_eq!(reason.as_deref(), Some("22 s are missing: deleted"));
        // The archive has them.
        let fetched = begin..begin + 22 * SECOND;
        it.gaps = it.gaps_without(&[fetched]);
        assert_eq!(it.outcome(end), (RecordingInput::EndedWhole, None));
    }

    #[test]
    fn a_gap_that_lasts_becomes_part_of_what_is_lost_and_a_final_status_closes_it() {
        for (kept, expected) in [
            (0, &[(0, None, true)][..]),
            (4, &[(4, None, true)]),
            (12, &[(10, Some(12), false), (12, None, true)]),
        ] {
            let mut it = with_file();
            let begin = it.begins_at();
            it.open_gap(begin + 10 * SECOND, "the source is gone");
            it.lose_from(begin + kept * SECOND, "truncated", begin + 15 * SECOND);
            assert_eq!(gaps(&it), expected, "{kept}");
        }
        let mut it = with_file();
        let now = it.begins_at() + 15 * SECOND;
        it.apply(RecordingInput::Stop, None, now).unwrap();
        it.lose_file("deleted", now);
        assert_eq!(gaps(&it), [(0, Some(15), true)]);
    }

    #[test]
    fn the_number_of_gaps_is_bounded_although_files_are_lost() {
        let mut it = with_file();
        let begin = it.begins_at();
        for n in 0..300 {
            it.lose_from(begin + n * 10, "deleted", 0);
            it.close_gap(begin + n * 10 + 5);
        }
        assert_eq!((it.gaps.len(), it.gaps.last().unwrap().end), (GAPS_MAX, Some(begin + 2_995)));
        assert!(it.gaps.iter().all(|it| it.is_lost) && it.gaps.is_sorted_by_key(|it| it.start));
    }

    #[test]
    fn a_lost_file_from_an_archive_is_fetched_again_and_a_part_of_another_node_stays() {
        let mut it = with_file();
        let begin = it.begins_at();
        it.after.fetched = Some(FetchedFile { reached: begin + SECOND, bytes: 188 });
        it.open_gap(begin, "not in the archive");
        it.lose_file("deleted", 0);
        assert_eq!(
            (it.after.fetched, gaps(&it)),
            (Some(FetchedFile { reached: begin, bytes: 0 }), Vec::new())
        );

        let mut it = with_file();
        let part = RecordedFile {
            path: "b.ts".to_owned(),
            node: Some("attic".to_owned()),
            ..it.file.clone().unwrap()
        };
        it.earlier_parts = vec![part.clone()];
        it.lose_file("deleted", 0);
        assert_eq!((it.file, it.earlier_parts), (Some(part), Vec::new()));
    }

    #[test]
    fn an_earlier_part_that_was_deleted_or_truncated_is_a_gap() {
        let times = |begin: i64| (begin, Some(begin + 100 * SECOND));
        for (left, expected) in [(0, (0, Some(100), true)), (250, (25, Some(100), true))] {
            let mut it = with_file();
            let begin = it.begins_at();
            let (started_at, ended_at) = times(begin);
            let file = it.file.clone().unwrap();
            it.earlier_parts =
                vec![RecordedFile { path: "b.ts".to_owned(), bytes: 1_000, started_at, ended_at, ..file }];
            it.open_gap(begin + 90 * SECOND, "no data");
            it.close_gap(begin + 95 * SECOND);
            it.shorten_part("c.ts", 0, "deleted", 0);
            it.shorten_part("b.ts", left, "deleted", 0);
            assert_eq!(gaps(&it), [expected], "{left}");
            let parts: Vec<_> = it.earlier_parts.iter().map(|it| it.bytes).collect();
            assert_eq!(parts, if left > 0 { vec![left] } else { Vec::new() });
            assert_eq!(it.outcome(it.ends_at()).0, RecordingInput::EndedIncomplete);
        }
    }
}
