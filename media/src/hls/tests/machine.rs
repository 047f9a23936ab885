//! What is fetched next, as scripts: one line for each request and each answer.

use std::time::Duration;

use crate::hls::*;

const MS: Duration = Duration::from_millis(1);

/// A reader whose requests take no time.
struct Reader {
    machine: HlsMachine,
    now: Duration,
}

impl Reader {
    fn new() -> Self {
        Self { machine: HlsMachine::new(Duration::ZERO), now: Duration::ZERO }
    }

    /// Answers the request for the list, which is due.
    #[track_caller]
    fn list(&mut self, text: &str) -> &mut Self {
        assert!(self.machine.next(self.now) == HlsStep::Load, "no request at {:?}", self.now);
        let Ok(HlsPlaylist::Media(list)) = HlsPlaylist::parse(text.as_bytes()) else { panic!("{text}") };
        self.machine.loaded(list, self.now, self.now);
        self
    }

    /// Returns the next step without waiting.
    fn step(&mut self) -> String {
        match self.machine.next(self.now) {
            HlsStep::Load => "load".into(),
            HlsStep::Wait(until) => format!("wait {}", (until - self.now).as_millis()),
            HlsStep::Key(address) => format!("key {address}"),
            HlsStep::Segment(job) => {
                let breaks = match job.breaks {
                    None => "",
                    Some(StreamBreak::NewTimeline) => "|",
                    Some(StreamBreak::Gap) => "~",
                };
                format!("{breaks}{}", job.address)
            }
            HlsStep::Ended => "ended".into(),
            HlsStep::Silent => "silent".into(),
        }
    }

    /// Reads all segments that are offered without another request, and returns them.
    fn plays(&mut self) -> String {
        let mut played = Vec::new();
        while matches!(self.machine.next(self.now), HlsStep::Segment(_)) {
            played.push(self.step());
            self.machine.segment_done();
        }
        played.join(" ")
    }

    /// Waits until the list is to be requested. Returns the time in milliseconds.
    fn waits(&mut self) -> u128 {
        let before = self.now;
        while let HlsStep::Wait(until) = self.machine.next(self.now) {
            assert!(until > self.now);
            self.now = until;
        }
        (self.now - before).as_millis()
    }
}

/// Returns a list with the segments `names`, of four seconds each, from this number on.
fn list(sequence: u64, names: &str) -> String {
    let segments: String = names.split(' ').filter(|it| !it.is_empty()).map(segment).collect();
    format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:{sequence}\n{segments}")
}

fn segment(name: &str) -> String {
    match name.strip_prefix('|') {
        Some(name) => format!("#EXT-X-DISCONTINUITY\n#EXTINF:4,\n{name}\n"),
        None => format!("#EXTINF:4,\n{name}\n"),
    }
}

#[test]
fn a_live_stream_starts_three_segments_before_the_end_and_continues_without_repetition() {
    let mut reader = Reader::new();
    reader.list(&list(10, "a b c d e"));
    assert_eq!((reader.plays(), reader.waits()), ("c d e".into(), 4_000));
    reader.list(&list(11, "b c d e f"));
    assert_eq!((reader.plays(), reader.waits()), ("f".into(), 4_000));
    // Unchanged: half of the time.
    reader.list(&list(11, "b c d e f"));
    assert_eq!((reader.plays(), reader.waits()), (String::new(), 2_000));
    reader.list(&list(13, "d e f g h"));
    assert_eq!((reader.plays(), reader.waits()), ("g h".into(), 4_000));
    assert_eq!(reader.machine.n_skipped(), 0);
}

#[test]
fn a_list_is_requested_again_before_its_last_segment_has_played_whatever_target_it_declares() {
    for (target, duration, expected) in [
        ("60", "2.0", 2_000),
        ("3600", "6", 6_000),
        ("0", "2.5", 2_500),
        ("4", "6", 4_000),
        ("4", "0", 4_000),
    ] {
        let mut reader = Reader::new();
        let segments = format!("#EXTINF:{duration},\na\n#EXTINF:{duration},\nb\n");
        reader.list(&format!("#EXTM3U\n#EXT-X-TARGETDURATION:{target}\n{segments}"));
        assert_eq!((reader.plays(), reader.waits()), ("a b".into(), expected), "{target} {duration}");
    }
}

#[test]
fn a_short_list_and_a_recording_start_at_their_beginning() {
    let mut reader = Reader::new();
    reader.list(&list(0, "a b"));
    assert_eq!(reader.plays(), "a b");
    let mut reader = Reader::new();
    reader.list(&format!("{}#EXT-X-ENDLIST\n", list(5, "a b c d e f")));
    assert_eq!((reader.plays(), reader.step()), ("a b c d e f".into(), "ended".into()));
    // A list that is empty at first.
    let mut reader = Reader::new();
    reader.list(&list(0, ""));
    reader.waits();
    reader.list(&list(0, "a"));
    assert_eq!(reader.plays(), "a");
}

#[test]
fn a_reader_that_is_late_reads_all_that_is_listed_and_counts_the_rest() {
    let mut reader = Reader::new();
    reader.list(&list(10, "a b c"));
    assert_eq!(reader.step(), "a");
    reader.machine.segment_done();
    // The segment took longer than the list lasts.
    reader.now += 5_000 * MS;
    reader.list(&list(12, "c d e"));
    assert_eq!((reader.plays(), reader.machine.n_skipped()), ("~c d e".into(), 1));
    reader.waits();
    reader.list(&list(20, "k l"));
    assert_eq!((reader.plays(), reader.machine.n_skipped()), ("~k l".into(), 6));
}

#[test]
fn a_list_without_news_for_three_target_durations_is_silent() {
    let mut reader = Reader::new();
    reader.list(&list(1, "a"));
    let began = reader.now;
    let mut n_requests = 0;
    reader.plays();
    loop {
        reader.waits();
        match reader.step().as_str() {
            "silent" => break,
            "load" if n_requests % 2 == 0 => drop(reader.list(&list(1, "a?token=new"))),
            "load" => reader.machine.load_failed(reader.now),
            other => panic!("{other}"),
        }
        n_requests += 1;
    }
    assert_eq!(((reader.now - began).as_millis(), n_requests), (12_000, 4));
    // Nothing was ever answered.
    let mut reader = Reader::new();
    while reader.step() == "load" {
        reader.machine.load_failed(reader.now);
        reader.waits();
    }
    assert_eq!((reader.step(), reader.now.as_secs()), ("silent".into(), 10));
}

#[test]
fn a_change_of_numbers_or_names_neither_repeats_nor_loses_a_segment() {
    /// Plays the first list, then the others, and compares what is played of each.
    #[track_caller]
    fn check(first: &str, others: &[(&str, &str)]) {
        let mut reader = Reader::new();
        reader.list(first);
        reader.plays();
        for (text, expected) in others {
            reader.waits();
            reader.list(text);
            assert_eq!(reader.plays(), *expected, "{text}");
        }
    }
    // Tokens that change in every version.
    check(
        &list(1, "x/a?t=1 x/b?t=1 x/c?t=1"),
        &[
            (&list(2, "y/b?t=2 y/c?t=2 y/d?t=2"), "y/d?t=2"),
            (&list(3, "t1 t2 t3"), "t3"),
            (&list(4, "t4 t5 t6"), "t6"),
        ],
    );
    // The number never changes, or is missing.
    check(&list(0, "a b c"), &[(&list(0, "b c d"), "d"), (&list(0, "d e f"), "e f")]);
    let without = |names: &str| list(0, names).replace("#EXT-X-MEDIA-SEQUENCE:0\n", "");
    check(&without("a b c"), &[(&without("b c d"), "d"), (&without("x y"), "|x y")]);
    // The number starts again, while the names continue.
    check(
        &list(99, "a b c"),
        &[(&list(0, "b c d"), "d"), (&list(1, "c d e"), "e"), (&list(7_000, "e f"), "f")],
    );
    // Everything starts again.
    check(&list(99, "a b c"), &[(&list(0, "x"), "|x"), (&list(0, "x y"), "y")]);
    check(&list(99, "a b c"), &[(&list(98, "x y z"), "|x y z"), (&list(99, "y z w"), "w")]);
    check(&list(99, "a b c"), &[(&list(50_000, "x y"), "|x y")]);
    // The same names again, with and without numbers that continue.
    check(&list(1, "a b c"), &[(&list(4, "a b c"), "a b c"), (&list(7, "a b"), "a b")]);
    check(&list(1, "s s s"), &[(&list(2, "s s s"), "s"), (&list(2, "s s s"), "")]);
    // A list that shows more of the past than before.
    check(&list(0, "c"), &[(&list(0, "a b c"), ""), (&list(1, "b c d"), "d")]);
    // A server that is behind.
    check(&list(5, "e f g"), &[(&list(4, "d e f"), ""), (&list(5, "e f g"), ""), (&list(6, "f g h"), "h")]);
    // An encoder that starts again with the same names.
    check(
        &list(0, "a b c"),
        &[
            (&list(3, "d e f"), "d e f"),
            (&list(6, "g h"), "g h"),
            (&list(0, "a"), ""),
            (&list(0, "a b"), "|a b"),
            (&list(1, "b c"), "c"),
        ],
    );
    check(&list(0, "a b"), &[(&list(1, "b |c d"), "|c d"), (&list(4, "|x |y"), "|x |y")]);
}

#[test]
fn a_segment_that_fails_is_requested_again_and_then_skipped() {
    let mut reader = Reader::new();
    reader.list(&list(1, "a b c"));
    assert_eq!(reader.step(), "a");
    reader.machine.segment_done();
    for _ in 0..3 {
        assert_eq!(reader.step(), "b");
        assert!(!reader.machine.segment_failed(reader.now));
        assert_eq!(reader.step(), "wait 500");
        reader.now += 500 * MS;
    }
    assert_eq!(reader.step(), "b");
    assert!(!reader.machine.segment_failed(reader.now));
    assert_eq!((reader.plays(), reader.machine.n_skipped()), ("~c".into(), 1));

    // Removed from the list meanwhile.
    reader.waits();
    reader.list(&list(4, "d e"));
    assert!(!reader.machine.segment_failed(reader.now));
    reader.now += 4_000 * MS;
    reader.list(&list(5, "e f"));
    assert_eq!((reader.plays(), reader.machine.n_skipped()), ("~e f".into(), 2));

    // Cut in the middle.
    reader.waits();
    reader.list(&list(5, "e f g h"));
    assert_eq!(reader.step(), "g");
    reader.machine.segment_cut();
    assert_eq!((reader.plays(), reader.machine.n_skipped()), ("~h".into(), 2));
}

#[test]
fn three_segments_that_fail_in_a_row_are_the_end_of_a_variant() {
    let mut reader = Reader::new();
    reader.list(&list(1, "a b c d"));
    let mut n_failed = 0;
    loop {
        reader.waits();
        n_failed += 1;
        if reader.machine.segment_failed(reader.now) {
            break;
        }
    }
    assert_eq!(n_failed, 6, "two requests for each before anything has played");
    let mut reader = Reader::new();
    reader.list(&list(1, "a b c"));
    assert_eq!(reader.step(), "a");
    reader.machine.segment_done();
    reader.machine.change_variant(reader.now);
    reader.list(&list(1, "A B C"));
    assert_eq!(reader.plays(), "|B C", "the next one of the other variant");
}

#[test]
fn an_encrypted_segment_waits_for_its_key_and_uses_its_number_without_a_vector() {
    let mut reader = Reader::new();
    let keys = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:4,\na\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x9\n#EXTINF:4,\nb\n";
    reader.list(&format!("{}{keys}", list(300, "")));
    assert_eq!(reader.step(), "key k");
    reader.machine.key_loaded("k".into(), [7; 16]);
    let vectors: Vec<_> = (0..2)
        .map(|_| {
            let HlsStep::Segment(job) = reader.machine.next(reader.now) else { panic!("no segment") };
            reader.machine.segment_done();
            let (key, iv) = job.cipher.unwrap();
            (key, u128::from_be_bytes(iv))
        })
        .collect();
    assert_eq!(vectors, [([7; 16], 300), ([7; 16], 9)]);
}

#[test]
fn a_segment_that_is_declared_missing_is_not_requested() {
    let mut reader = Reader::new();
    reader.list(&list(1, "a b c").replace("#EXTINF:4,\nb", "#EXT-X-GAP\n#EXTINF:4,\nb"));
    assert_eq!((reader.plays(), reader.machine.n_skipped()), ("a ~c".into(), 1));
}
