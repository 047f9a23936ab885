//! The rules of a session, one by one.

use super::*;

const LENGTH: u64 = 100 << 20;

/// A session with a provider that does what the session wants, at times that the test chooses.
struct Story {
    session: FileSession,
    now: Instant,
    start: Instant,
}

impl Story {
    fn new() -> Self {
        #[expect(clippy::disallowed_methods, reason = "time is simulated from here on")]
        let now = Instant::now();
        Story { session: FileSession::new(None, now), now, start: now }
    }

    fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    fn open(&mut self, range: Range<u64>) -> ReaderId {
        self.session.open(range, self.now)
    }

    #[track_caller]
    fn next(&mut self, expected: Step) {
        assert_eq!(self.session.next(&(), self.now), expected);
    }

    /// Opens a connection at this byte.
    #[track_caller]
    fn connect(&mut self, at: u64) {
        self.next(Step::Open { at });
        self.session.opened(at, LENGTH);
    }

    #[track_caller]
    fn reconnect(&mut self, at: u64) {
        self.next(Step::Close);
        self.session.closed(true);
        self.connect(at);
    }

    /// Lets the connection bring everything that the session wants now. Returns the number of bytes.
    fn fill(&mut self) -> u64 {
        let mut n_bytes = 0;
        while self.session.next(&(), self.now) == Step::Read {
            let piece = Bytes::from(vec![0; PIECE_BYTES_MAX]);
            n_bytes += piece.len() as u64;
            self.session.received(piece, &(), self.now);
        }
        n_bytes
    }

    /// Reads what has arrived for a reader, and asks for the next byte. Returns the number of bytes.
    fn read(&mut self, reader: ReaderId) -> u64 {
        let mut n_bytes = 0;
        while let Read::Piece(piece) = self.session.read(reader, &(), self.now) {
            n_bytes += piece.len() as u64;
        }
        n_bytes
    }
}

#[test]
fn read_ahead_is_bounded() {
    let mut story = Story::new();
    story.open(0..LENGTH);
    story.connect(0);
    let n_ahead = story.fill();
    assert_eq!(n_ahead, HELD_BYTES_MAX as u64);
}

#[test]
fn a_second_request_is_served_from_what_was_read() {
    let mut story = Story::new();
    let first = story.open(0..LENGTH);
    story.connect(0);
    story.fill();
    story.read(first);
    let second = story.open(1000..50_000);
    assert_eq!(story.read(second), 49_000);
    assert_eq!(story.session.read(second, &(), story.now), Read::End);
    story.next(Step::Read);
}

#[test]
fn the_connection_of_the_older_request_is_closed_before_the_newer_one_dials_and_comes_back() {
    let mut story = Story::new();
    let older = story.open(0..LENGTH);
    story.connect(0);
    story.fill();
    let newer = story.open(50 << 20..LENGTH);
    story.reconnect(50 << 20);
    story.fill();
    assert!(story.read(older) >= 64 << 10, "the older one continues from its read-ahead");
    story.read(newer);
    story.fill();
    story.session.close(newer);
    let at = story.session.readers[&older].at;
    story.reconnect(at);
    story.fill();
    assert!(story.read(older) > 0);
}

#[test]
fn an_older_request_gets_the_connection_while_the_newer_one_does_not_read() {
    let mut story = Story::new();
    let older = story.open(0..LENGTH);
    story.connect(0);
    let newer = story.open(50 << 20..LENGTH);
    story.reconnect(50 << 20);
    story.fill();
    story.read(newer);
    story.fill();
    story.session.read(newer, &(), story.now);
    story.fill();
    story.next(Step::Wait(Some(story.now + STALLED_AFTER)));
    assert_eq!(story.session.read(older, &(), story.now), Read::Wait);
    story.wait(2_000);
    story.reconnect(0);
    story.fill();
    assert!(story.read(older) > 0);
}

#[test]
fn the_newer_of_two_requests_that_read_on_keeps_the_connection_to_its_end() {
    let mut story = Story::new();
    let older = story.open(0..LENGTH);
    story.connect(0);
    let newer = story.open(50 << 20..60 << 20);
    story.reconnect(50 << 20);
    let mut n_read = 0;
    while n_read < 9 << 20 {
        story.fill();
        story.wait(50);
        assert_eq!(story.read(older), 0);
        n_read += story.read(newer);
    }
    story.session.close(newer);
    story.reconnect(0);
    story.fill();
    assert!(story.read(older) > 0);
}

#[test]
fn two_requests_that_are_read_in_turns_get_the_connection_less_and_less_often() {
    let mut story = Story::new();
    let readers = [story.open(0..LENGTH), story.open(50 << 20..LENGTH)];
    let mut n_opened = 0;
    let (mut reading, mut other) = (readers[0], readers[1]);
    while story.now.duration_since(story.start) < Duration::from_secs(60) {
        match story.session.next(&(), story.now) {
            Step::Open { at } => {
                n_opened += 1;
                story.session.opened(at, LENGTH);
            }
            Step::Close => story.session.closed(true),
            Step::Read => {
                story.session.received(Bytes::from(vec![0; PIECE_BYTES_MAX]), &(), story.now);
                // The client needs bytes of both parts, one after the other.
                if story.read(reading) > 0 {
                    (reading, other) = (other, reading);
                    story.read(reading);
                }
            }
            Step::Wait(_) => story.wait(100),
            Step::Release => panic!("the connection is needed"),
        }
    }
    assert!((4..10).contains(&n_opened), "{n_opened} connections in a minute");
}

#[test]
fn what_was_read_ahead_to_the_end_of_a_request_is_not_dropped_for_another_one() {
    let mut story = Story::new();
    let older = story.open(0..LENGTH);
    story.connect(0);
    let newer = story.open(50 << 20..(50 << 20) + (300 << 10));
    story.reconnect(50 << 20);
    for _ in 0..5 {
        story.next(Step::Read);
        story.session.received(Bytes::from(vec![0; 60 << 10]), &(), story.now);
    }
    story.reconnect(0);
    for _ in 0..50 {
        story.fill();
        story.wait(100);
        assert!(story.read(older) > 0, "the older one reads on");
    }
    assert_eq!(story.read(newer), 300 << 10);
}

#[test]
fn a_range_that_begins_a_little_ahead_reads_on() {
    let mut story = Story::new();
    let first = story.open(0..LENGTH);
    story.connect(0);
    let n_ahead = story.fill();
    story.session.close(first);
    let near = story.open(n_ahead + READ_ON_BYTES..LENGTH);
    story.next(Step::Read);
    story.fill();
    assert!(story.read(near) > 0);
    story.session.close(near);
    let at = story.session.held.pieces_end();
    story.open(at + READ_ON_BYTES + 1..LENGTH);
    story.next(Step::Close);
}

#[test]
fn the_connection_is_kept_for_the_next_range_and_then_released() {
    let mut story = Story::new();
    let first = story.open(0..LENGTH);
    story.connect(0);
    story.fill();
    story.session.close(first);
    story.next(Step::Wait(Some(story.now + KEEP)));
    story.wait(2_900);
    let second = story.open(100..LENGTH);
    assert!(story.read(second) > 0);
    story.next(Step::Read);
    story.session.close(second);
    let _ = story.session.next(&(), story.now);
    story.wait(3_000);
    story.next(Step::Release);
    story.session.released();
    story.next(Step::Wait(None));
    assert!(!story.session.has_slot());
}

#[test]
fn a_slot_that_nobody_needs_and_that_of_a_paused_player_yield() {
    let mut story = Story::new();
    let reader = story.open(0..LENGTH);
    story.connect(0);
    story.fill();
    story.read(reader);
    assert!(!story.session.may_yield(&(), story.now), "it waits for bytes");
    story.fill();
    story.session.read(reader, &(), story.now);
    story.fill();
    story.wait(14_000);
    assert!(!story.session.may_yield(&(), story.now));
    story.wait(1_000);
    assert!(story.session.may_yield(&(), story.now), "it is paused");
    story.session.give_way();
    story.next(Step::Release);
    story.session.released();
    story.next(Step::Wait(None));
    // The player continues from what was read ahead, and then needs the provider again.
    let n_left = story.read(reader);
    assert!(n_left > 0);
    let at = story.session.readers[&reader].at;
    story.connect(at);
    story.session.close(reader);
    assert!(story.session.may_yield(&(), story.now), "nobody needs it");
}

#[test]
fn another_file_closes_the_connection_before_the_next_one_opens_and_keeps_the_slot() {
    let mut story = Story::new();
    let old = story.open(0..LENGTH);
    story.connect(0);
    story.fill();
    story.session.replace();
    let new = story.open(0..u64::MAX);
    // What arrives of the old file is not of the new one.
    story.session.received(Bytes::from(vec![0; 1000]), &(), story.now);
    assert_eq!(story.session.held_bytes(), 0);
    story.next(Step::Close);
    story.session.closed(true);
    story.next(Step::Open { at: 0 });
    story.session.opened(0, 500);
    assert_eq!(story.session.read(old, &(), story.now), Read::Failed(Failure::Ended));
    story.next(Step::Read);
    story.session.received(Bytes::from(vec![0; 500]), &(), story.now);
    assert_eq!(story.read(new), 500);
}

#[test]
fn a_pause_returns_the_slot_if_the_session_says_so() {
    let mut story = Story::new();
    story.session = FileSession::new(None, story.now).released_after(Duration::from_secs(60));
    let reader = story.open(0..LENGTH);
    story.connect(0);
    story.fill();
    story.session.read(reader, &(), story.now);
    story.wait(59_000);
    story.next(Step::Wait(Some(story.now + Duration::from_secs(1))));
    story.wait(1_000);
    story.next(Step::Release);
    story.session.released();
    story.next(Step::Wait(None));
    let at = story.read(reader) + PIECE_BYTES_MAX as u64;
    story.next(Step::Open { at });
}

#[test]
fn after_a_cut_the_connection_resumes_at_the_next_byte_with_growing_pauses() {
    let mut story = Story::new();
    let reader = story.open(0..LENGTH);
    story.connect(0);
    story.session.received(Bytes::from(vec![0; 1000]), &(), story.now);
    story.read(reader);
    story.session.cut(story.now);
    for pause in PAUSES {
        story.next(Step::Wait(Some(story.now + pause)));
        story.now += pause;
        story.next(Step::Open { at: 1000 });
        story.session.failed(true, true, story.now);
    }
    story.now += PAUSES[PAUSES.len() - 1];
    story.next(Step::Open { at: 1000 });
    story.session.failed(true, true, story.now);
    assert_eq!(story.session.read(reader, &(), story.now), Read::Failed(Failure::Lost));
    assert!(story.now.duration_since(story.start) < Duration::from_secs(10));
}

#[test]
fn the_end_of_the_file_is_not_a_cut() {
    let mut story = Story::new();
    let reader = story.open(LENGTH - 10..LENGTH);
    story.connect(LENGTH - 10);
    story.next(Step::Read);
    story.session.received(Bytes::from(vec![0; 10]), &(), story.now);
    story.session.cut(story.now);
    assert_eq!(story.read(reader), 10);
    assert_eq!(story.session.read(reader, &(), story.now), Read::End);
    story.session.close(reader);
    story.next(Step::Wait(Some(story.now + KEEP)));
}

#[test]
fn another_file_at_the_address_ends_all_readers() {
    let mut story = Story::new();
    let reader = story.open(0..LENGTH);
    story.connect(0);
    story.session.received(Bytes::from(vec![0; 1000]), &(), story.now);
    story.session.cut(story.now);
    story.wait(1_000);
    story.next(Step::Open { at: 1000 });
    story.session.changed();
    assert_eq!(story.session.read(reader, &(), story.now), Read::Failed(Failure::Changed));
    let next = story.open(0..LENGTH);
    story.connect(0);
    assert_eq!(story.session.read(next, &(), story.now), Read::Wait);
}

#[test]
fn a_reader_that_leaves_ends_the_attempt_to_open() {
    let mut story = Story::new();
    let reader = story.open(0..LENGTH);
    story.next(Step::Open { at: 0 });
    story.session.close(reader);
    story.next(Step::Close);
    story.session.closed(false);
    story.next(Step::Wait(None));
}
