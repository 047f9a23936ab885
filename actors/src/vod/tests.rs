//! Films from an in-memory provider, under paused time.

use std::collections::HashSet;
use std::future::poll_fn;

use domain::egress::Reach;
use domain::ids::{AccountId, ProfileId, StreamId};
use domain::limits::LimitScope;
use domain::plan::{Candidate, SlotPool};
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, SourceKind};
use domain::stream_profile::Delivery;
use media::testing::{Behaviour, TestFile};

use super::*;
use crate::channel::WatchReply;
use crate::slots::LeaseTable;
use crate::slots::revocable::RevocableTable;
use crate::testing::{Scenario, channel, limited, settings};
use crate::viewer::Identity;

const LENGTH: u64 = 20 << 20;

/// A scenario with a live channel and a film on the same account, which has one slot.
struct Cinema {
    scenario: Scenario,
    vod: Vod,
}

/// A candidate: the path of its file, and its account with its limit.
fn candidate(path: &str, account: u32, max_streams: u32) -> TitleCandidate {
    TitleCandidate {
        candidate: Candidate {
            certificates: None,
            proxy: None,
            stream: StreamId(0),
            stream_name: "Film".to_owned(),
            url: SourceUrl::new(format!("http://tv:80/{path}")),
            program: None,
            leaves_still_picture: false,
            kind: SourceKind::HttpTs,
            headers: RequestHeaders::default(),
            reach: Reach::default(),
            profile: Delivery::Proxy,
            redirect_without_login: false,
            live_form: None,
            details: None,
            command: None,
            pool: SlotPool {
                account: AccountId(account),
                account_name: format!("account {account}"),
                profile: ProfileId(account),
                max_streams,
                release_delay: Duration::ZERO,
                crash_cooling: None,
                changed_at: 0,
                scope: LimitScope::Unknown,
                shared: None,
            },
        },
        file: Uuid::new_v5(&Uuid::NAMESPACE_OID, path.as_bytes()),
        extension: "mp4".to_owned(),
        start: None,
    }
}

/// A body that is read, and what it has to contain.
struct Reading {
    body: VodBody,
    at: u64,
    end: u64,
}

impl Cinema {
    async fn new() -> Self {
        Self::from_scenario(Scenario::new(settings(), [&[limited(1, "live", 1, 1)]]).await)
    }

    fn from_scenario(scenario: Scenario) -> Self {
        let vod = scenario.system.vod();
        Self { scenario, vod }
    }

    fn offers(&self, path: &str, file: &TestFile) {
        self.scenario.provider.set(&format!("/{path}"), Behaviour::File(file.clone()));
    }

    fn request(agent: &str, candidates: &[TitleCandidate], range: &str) -> VodRequest {
        let address: std::net::SocketAddr = "10.0.0.1:4711".parse().expect("an address");
        VodRequest {
            title: VodTitle { target: Target::Movie(Uuid::from_u128(7)), name: "Film".to_owned() },
            candidates: candidates.into(),
            viewer: Viewer {
                user: None,
                address: address.ip(),
                agent: agent.to_owned(),
                identity: Identity::default(),
            },
            connection: Arc::new(Connection::new(1, address)),
            seat: None,
            session: None,
            ranges: ByteRanges::parse(range),
            if_range: None,
        }
    }

    async fn get(
        &self,
        agent: &str,
        candidates: &[TitleCandidate],
        range: &str,
    ) -> Result<Reading, VodRefusal> {
        match self.vod.get(Self::request(agent, candidates, range)).await? {
            VodAnswer::Whole(facts, body) => Ok(Reading { body, at: 0, end: facts.length }),
            VodAnswer::Part(_, part, body) => Ok(Reading { body, at: part.start, end: part.end }),
            other => panic!("expected bytes, got {other:?}"),
        }
    }

    /// Returns the values of `Range` that the provider saw.
    fn ranges(&self) -> Vec<String> {
        let requests = self.scenario.provider.requests();
        requests.iter().filter_map(|it| it.header("range").map(str::to_owned)).collect()
    }
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Bytes, VodInterrupted>> {
        poll_fn(|cx| Pin::new(&mut self.body).poll_next(cx)).await
    }

    /// Reads at least this many bytes and compares them.
    async fn read(&mut self, file: &TestFile, n_bytes: u64) {
        let until = self.end.min(self.at + n_bytes);
        while self.at < until {
            let bytes = self.next().await.expect("not the end").expect("no interruption");
            let part = self.at..self.at + bytes.len() as u64;
            assert!(file.bytes(part.clone()) == bytes, "wrong bytes in {part:?}");
            self.at = part.end;
        }
    }

    /// Reads to the end and compares everything.
    async fn finish(mut self, file: &TestFile) {
        self.read(file, u64::MAX - self.at).await;
        assert_eq!(self.at, self.end);
        assert_eq!(self.next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_film_is_read_whole_and_by_ranges_over_one_slot() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    cinema.get("player", &film, "").await.unwrap().finish(&file).await;
    for range in ["bytes=0-", "bytes=5000000-5999999", "bytes=-500", "bytes=0-0", "bytes=19000000-"] {
        cinema.get("player", &film, range).await.unwrap().finish(&file).await;
    }
    let request = Cinema::request("player", &film, &format!("bytes={LENGTH}-"));
    assert!(matches!(cinema.vod.get(request).await, Ok(VodAnswer::Unsatisfiable(it)) if it.length == LENGTH));
    assert_eq!(cinema.scenario.provider.peak(), 1);
    cinema.scenario.is_quiet().await;
    let names = cinema.scenario.event_names();
    assert_eq!(names, ["vod_start"]);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(cinema.scenario.event_names(), ["vod_start", "vod_stop"]);
    assert!(cinema.vod.sessions().is_empty());
}

// T-slot.4: Emby opens the film at its beginning, near its end and at its beginning again, at the same time.
#[tokio::test(start_paused = true)]
async fn simultaneous_ranges_of_one_player_share_one_connection() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    let mut readings = Vec::new();
    for number in 0..16 {
        let start = number * 1_200_000 % LENGTH;
        let range = format!("bytes={start}-{}", start + 800_000);
        readings.push(cinema.get("Emby", &film, &range).await.expect("never refused"));
    }
    for (number, reading) in readings.iter_mut().enumerate() {
        reading.read(&file, 10_000 * number as u64 % 70_000).await;
    }
    // Closed in another order than opened.
    let mut number = 0;
    readings.retain(|_| {
        number += 1;
        number % 3 != 0
    });
    while let Some(reading) = readings.pop() {
        reading.finish(&file).await;
    }
    assert_eq!(cinema.scenario.provider.peak(), 1);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn after_every_cut_the_film_continues_at_the_next_byte() {
    let cinema = Cinema::new().await;
    let file = TestFile { cut_after: Some(700_001), ..TestFile::new(LENGTH, 1) };
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    cinema.get("player", &film, "bytes=3-").await.unwrap().finish(&file).await;
    assert_eq!(cinema.scenario.provider.peak(), 1);
    assert_eq!(cinema.ranges()[..2], ["bytes=3-", "bytes=700004-"]);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_gives_up_ends_the_answer_and_a_new_request_tries_again() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    let cut = TestFile { cut_after: Some(300_000), ..file.clone() };
    let behaviours = [Behaviour::File(cut), Behaviour::Status(404)];
    cinema.scenario.provider.script("/film", behaviours);
    let film = [candidate("film", 1, 1)];
    let mut reading = cinema.get("player", &film, "").await.unwrap();
    reading.read(&file, 300_000).await;
    assert_eq!(reading.next().await, Some(Err(VodInterrupted)));
    drop(reading);
    let refusal = cinema.get("player", &film, "bytes=300000-").await.err();
    assert!(matches!(refusal, Some(VodRefusal::Upstream(it)) if *it.cause() == Cause::Status(404)));
    cinema.offers("film", &file);
    cinema.get("player", &film, "bytes=300000-").await.unwrap().finish(&file).await;
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_changes_its_file_never_causes_a_wrong_byte() {
    let cinema = Cinema::new().await;
    let (old, new) = (TestFile::new(LENGTH, 1), TestFile::new(LENGTH, 2));
    cinema.offers("film", &old);
    let film = [candidate("film", 1, 1)];
    let mut reading = cinema.get("player", &film, "").await.unwrap();
    reading.read(&old, 5_000_000).await;
    cinema.offers("film", &new);
    // A seek shows the new file; the old answer ends, and nothing of the old file is in the new one.
    cinema.get("player", &film, "bytes=10000000-").await.unwrap().finish(&new).await;
    while let Some(Ok(bytes)) = reading.next().await {
        assert!(old.bytes(reading.at..reading.at + bytes.len() as u64) == bytes);
        reading.at += bytes.len() as u64;
    }
    assert!(reading.at < reading.end);
    cinema.get("player", &film, "").await.unwrap().finish(&new).await;
    // Another length, without a tag.
    let longer = TestFile { tag: None, ..TestFile::new(LENGTH + 1, 3) };
    cinema.offers("film", &longer);
    drop(reading);
    cinema.scenario.is_quiet().await;
    cinema.get("player", &film, "bytes=10000000-").await.unwrap().finish(&longer).await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_ignores_ranges_sends_the_right_bytes_or_none() {
    let cinema = Cinema::new().await;
    let file = TestFile { has_ranges: false, ..TestFile::new(LENGTH, 1) };
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    cinema.get("player", &film, "bytes=3000000-4000000").await.unwrap().finish(&file).await;
    let refusal = cinema.get("player", &film, "bytes=15000000-16000000").await.err();
    assert!(matches!(refusal, Some(VodRefusal::Upstream(_))), "{refusal:?}");
    cinema.get("player", &film, "").await.unwrap().finish(&file).await;
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_viewer_at_the_limit_is_refused_until_the_first_one_leaves() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    let mut first = cinema.get("one", &film, "").await.unwrap();
    first.read(&file, 3_000_000).await;
    let watching = async {
        loop {
            first.read(&file, 100_000).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = watching => {}
        refusal = cinema.get("two", &film, "bytes=10000000-") => {
            assert!(matches!(refusal.err(), Some(VodRefusal::Full(it)) if it.account == "account 1"));
        }
    }
    assert_eq!(cinema.vod.sessions().iter().filter(|it| it.has_slot).count(), 1);
    drop(first);
    // The connection is kept for the next range, but yields at once to a viewer who waits.
    let second = cinema.get("two", &film, "bytes=10000000-").await.expect("the slot yields");
    second.finish(&file).await;
    assert_eq!(cinema.scenario.provider.peak(), 1);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_film_yields_to_a_live_channel_and_continues_after_it() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    let mut reading = cinema.get("player", &film, "").await.unwrap();
    reading.read(&file, 3_000_000).await;
    match cinema.scenario.ask(channel(1)).await {
        WatchReply::Refused(_) => {}
        other => panic!("a film that plays keeps its slot: {other:?}"),
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut viewer = cinema.scenario.watch(channel(1)).await;
    viewer.sees("live").await;
    drop(viewer);
    tokio::time::sleep(Duration::from_secs(10)).await;
    reading.finish(&file).await;
    assert_eq!(cinema.scenario.provider.peak(), 1);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn another_account_takes_over_before_the_first_byte_and_later_only_with_the_same_file() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    let cut = TestFile { cut_after: Some(5_000_000), ..file.clone() };
    let candidates = [candidate("gone", 2, 1), candidate("film", 1, 1), candidate("copy", 3, 1)];
    let behaviours = [Behaviour::File(cut.clone()), Behaviour::Status(404)];
    cinema.scenario.provider.script("/film", behaviours.clone());
    cinema.offers("copy", &file);
    let mut reading = cinema.get("player", &candidates, "").await.unwrap();
    reading.read(&file, 4_900_000).await;
    // The end of the film is unknown, so that the copy cannot be compared.
    while let Some(Ok(bytes)) = reading.next().await {
        assert!(file.bytes(reading.at..reading.at + bytes.len() as u64) == bytes);
        reading.at += bytes.len() as u64;
    }
    assert_eq!(reading.at, 5_000_000);
    drop(reading);
    cinema.scenario.is_quiet().await;
    // With the end known, the same file takes over, and another one of the same length does not.
    for (path, copy, is_same) in [("copy2", file.clone(), true), ("copy3", TestFile::new(LENGTH, 9), false)] {
        let behaviours = [&file, &file, &cut]
            .map(|it| Behaviour::File(it.clone()))
            .into_iter()
            .chain([Behaviour::Status(404)]);
        let name = format!("film{path}");
        cinema.scenario.provider.script(&format!("/{name}"), behaviours);
        cinema.offers(path, &copy);
        let candidates = [candidate(&name, 1, 1), candidate(path, 3, 1)];
        cinema.get(path, &candidates, "bytes=-100000").await.unwrap().finish(&file).await;
        cinema.scenario.is_quiet().await;
        let mut reading = cinema.get(path, &candidates, "").await.unwrap();
        reading.read(&file, 4_900_000).await;
        if is_same {
            reading.finish(&file).await;
        } else {
            while let Some(Ok(bytes)) = reading.next().await {
                assert!(file.bytes(reading.at..reading.at + bytes.len() as u64) == bytes);
                reading.at += bytes.len() as u64;
            }
            let requests = cinema.scenario.provider.requests();
            let requests: Vec<_> = requests.iter().map(|it| (&it.path, it.header("range"))).collect();
            assert!(reading.at < LENGTH, "the other film took over: {requests:?}");
        }
        cinema.scenario.is_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_profile_of_the_account_takes_over_at_any_time() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    let cut = TestFile { cut_after: Some(5_000_000), ..file.clone() };
    cinema.scenario.provider.script("/film", [Behaviour::File(cut), Behaviour::Status(403)]);
    cinema.offers("second-login", &file);
    let first = candidate("film", 1, 1);
    let mut second = first.clone();
    second.candidate.pool.profile = ProfileId(9);
    second.candidate.url = SourceUrl::new("http://tv:80/second-login");
    let candidates = [first, second];
    // The first profile is refused after its connection was cut, although the end of the film is unknown.
    let reading = cinema.get("player", &candidates, "").await.unwrap();
    reading.finish(&file).await;
    let ranges = cinema.ranges();
    assert_eq!(ranges.last().map(String::as_str), Some("bytes=5000000-"), "{ranges:?}");
    cinema.scenario.is_quiet().await;
    // A free profile is used while the first one plays a channel.
    let viewer = cinema.scenario.watch(channel(1)).await;
    let n_requests = cinema.scenario.provider.requests().len();
    cinema.get("other", &candidates, "bytes=9000000-9999999").await.unwrap().finish(&file).await;
    let requests = cinema.scenario.provider.requests();
    let paths: Vec<_> = requests[n_requests..].iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["/second-login"]);
    drop(viewer);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_deactivated_account_is_not_dialled_again_for_a_film_that_plays() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    for path in ["film", "copy"] {
        cinema.offers(path, &file);
    }
    let candidates = [candidate("film", 1, 1), candidate("copy", 3, 1)];
    cinema.get("player", &candidates, "bytes=-100000").await.unwrap().finish(&file).await;
    let mut reading = cinema.get("player", &candidates, "").await.unwrap();
    reading.read(&file, 3_000_000).await;
    cinema.scenario.deactivate(1);
    let n_requests = cinema.scenario.provider.requests().len();
    // The open connection is lost; the file of the other account is the same one.
    cinema.get("player", &candidates, "bytes=9000000-9999999").await.unwrap().finish(&file).await;
    reading.finish(&file).await;
    let requests = cinema.scenario.provider.requests();
    let paths: HashSet<_> = requests[n_requests..].iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, HashSet::from(["/copy"]));
    cinema.scenario.deactivate(3);
    let refusal = cinema.get("other", &candidates, "bytes=9000000-").await.err();
    assert_eq!(refusal, Some(VodRefusal::NoVersions));
    assert_eq!(cinema.scenario.provider.requests().len(), requests.len());
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_seek_stays_with_the_file_that_plays() {
    let cinema = Cinema::new().await;
    let (gone, file) = (TestFile::new(LENGTH, 5), TestFile::new(LENGTH, 1));
    cinema.offers("film", &file);
    let candidates = [candidate("better", 2, 1), candidate("film", 1, 1)];
    cinema.scenario.provider.script("/better", [Behaviour::Status(404), Behaviour::File(gone)]);
    let playing = cinema.get("player", &candidates, "bytes=0-").await.unwrap();
    cinema.get("player", &candidates, "bytes=9000000-9999999").await.unwrap().finish(&file).await;
    playing.finish(&file).await;
    let requests = cinema.scenario.provider.requests();
    assert_eq!(requests.iter().filter(|it| it.path == "/better").count(), 1);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_read_of_a_film_answers_without_a_connection() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    cinema.get("player", &film, "bytes=0-2000000").await.unwrap().finish(&file).await;
    cinema.scenario.is_quiet().await;
    let n_requests = cinema.ranges().len();
    // The only slot is taken by a channel.
    let viewer = cinema.scenario.watch(channel(1)).await;
    cinema.get("other", &film, "bytes=0-1000000").await.unwrap().finish(&file).await;
    let head = cinema.vod.head(Cinema::request("third", &film, "")).await.unwrap();
    assert!(matches!(head, VodHead::File(it) if (it.length, it.content_type) == (LENGTH, "video/mp4")));
    let refusal = cinema.get("other", &film, "bytes=0-").await.err();
    assert!(matches!(refusal, Some(VodRefusal::Full(_))), "{refusal:?}");
    assert_eq!(cinema.ranges().len(), n_requests);
    drop(viewer);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_read_of_a_film_outlives_a_restart_on_disk() {
    let mut cinema = Cinema::new().await;
    let folder = tempfile::tempdir().unwrap();
    let disk = Some((folder.path().join("films"), 1 << 30));
    let restart = |cinema: &mut Cinema| {
        let settings = FilmCacheSettings { disk: disk.clone(), ..FilmCacheSettings::default() };
        let Shared { env, counter, seats, stop, .. } = &*cinema.vod.shared;
        let vod = Vod::new(env.clone(), counter.clone(), seats.clone(), stop.clone(), settings);
        cinema.vod = vod;
    };
    restart(&mut cinema);
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    for range in ["bytes=0-2000000", "bytes=-100000"] {
        cinema.get("player", &film, range).await.unwrap().finish(&file).await;
    }
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(cinema.vod.sessions().is_empty());
    cinema.vod.ended().await;
    restart(&mut cinema);
    let n_requests = cinema.ranges().len();
    let head = cinema.vod.head(Cinema::request("player", &film, "")).await.unwrap();
    assert!(matches!(head, VodHead::File(it) if it.length == LENGTH));
    for range in ["bytes=0-1000000", "bytes=-100000"] {
        cinema.get("player", &film, range).await.unwrap().finish(&file).await;
    }
    assert_eq!(cinema.ranges().len(), n_requests, "no question to the provider");
    // The provider has another film by now: the old one ends early, and a new request gets the new one.
    let changed = TestFile::new(LENGTH, 2);
    cinema.offers("film", &changed);
    cinema.get("player", &film, "bytes=9000000-9999999").await.unwrap().finish(&changed).await;
    cinema.get("player", &film, "bytes=0-1000000").await.unwrap().finish(&changed).await;
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_question_about_a_new_film_takes_one_byte_on_a_free_slot() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    let viewer = cinema.scenario.watch(channel(1)).await;
    let refusal = cinema.vod.head(Cinema::request("player", &film, "")).await.err();
    assert!(matches!(refusal, Some(VodRefusal::Full(_))), "{refusal:?}");
    drop(viewer);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let head = cinema.vod.head(Cinema::request("player", &film, "")).await.unwrap();
    assert!(matches!(head, VodHead::File(it) if it.length == LENGTH));
    assert_eq!(cinema.ranges(), ["bytes=0-0"]);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_followed_once_and_remembered_for_the_next_range() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    cinema.scenario.provider.set("/film", Behaviour::Redirect("/token/film".to_owned()));
    cinema.offers("token/film", &file);
    let film = [candidate("film", 1, 1)];
    let first = cinema.get("player", &film, "bytes=0-").await.unwrap();
    let second = cinema.get("player", &film, "bytes=9000000-9100000").await.unwrap();
    second.finish(&file).await;
    drop(first);
    let paths: Vec<_> = cinema.scenario.provider.requests().into_iter().map(|it| it.path).collect();
    assert_eq!(paths[..3], ["/film", "/token/film", "/token/film"]);
    assert!(
        paths[3..].iter().all(|it| it == "/token/film"),
        "the older request gets the connection back: {paths:?}"
    );
    assert_eq!(cinema.scenario.provider.peak(), 1);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_stopped_session_ends_its_answers_and_returns_its_slot() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let mut reading = cinema.get("player", &[candidate("film", 1, 1)], "").await.unwrap();
    reading.read(&file, 1_000_000).await;
    let sessions = cinema.vod.sessions();
    let [session] = &sessions[..] else { panic!("one session: {sessions:?}") };
    assert_eq!((session.n_requests, session.has_slot, session.length), (1, true, Some(LENGTH)));
    assert!(cinema.vod.stop_session(session.id).is_some());
    while let Some(Ok(_)) = reading.next().await {}
    assert!(cinema.vod.stop_session(session.id + 1).is_none());
    drop(reading);
    cinema.scenario.is_quiet().await;
}

/// A request for the past of a channel.
fn past(candidates: &[TitleCandidate], range: &str) -> VodRequest {
    let request = Cinema::request("player", candidates, range);
    VodRequest {
        title: VodTitle { target: Target::Archive(Uuid::from_u128(1)), name: "News".to_owned() },
        ..request
    }
}

async fn reading(vod: &Vod, request: VodRequest) -> Reading {
    match vod.get(request).await {
        Ok(VodAnswer::Whole(facts, body)) => Reading { body, at: 0, end: facts.length },
        other => panic!("expected bytes, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_seek_in_the_past_of_a_channel_closes_before_it_opens() {
    let cinema = Cinema::new().await;
    let files = [1, 2].map(|it| TestFile::new(LENGTH, it));
    // The first address redirects, and what it leads to is not that of the second one.
    cinema.scenario.provider.set("/timeshift/1", Behaviour::Redirect("/token/1".to_owned()));
    cinema.offers("token/1", &files[0]);
    cinema.offers("timeshift/2", &files[1]);
    let [one, two] = ["timeshift/1", "timeshift/2"].map(|it| [candidate(it, 1, 1)]);
    let mut first = reading(&cinema.vod, past(&one, "")).await;
    first.read(&files[0], 3_000_000).await;
    let mut second = reading(&cinema.vod, past(&two, "")).await;
    second.read(&files[1], 3_000_000).await;
    while let Some(Ok(bytes)) = first.next().await {
        let part = first.at..first.at + bytes.len() as u64;
        assert!(files[0].bytes(part.clone()) == bytes, "wrong bytes in {part:?}");
        first.at = part.end;
    }
    assert!(first.at < LENGTH, "the older answer ends");
    // Back, while the next one is still being opened.
    let request = past(&two, "bytes=9000000-");
    let (interrupted, third) = tokio::join!(cinema.vod.get(request), reading(&cinema.vod, past(&one, "")));
    drop((interrupted, second));
    third.finish(&files[0]).await;
    assert_eq!(cinema.scenario.provider.peak(), 1);
    assert!(cinema.vod.sessions().is_empty(), "no film is watched");
    assert!(!cinema.scenario.event_names().contains(&"vod_start"));
    drop(first);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn the_past_of_a_channel_continues_after_a_cut_and_returns_its_slot_in_a_pause() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    let cut = TestFile { cut_after: Some(5_000_000), ..file.clone() };
    cinema.scenario.provider.script("/timeshift/1", [Behaviour::File(cut), Behaviour::File(file.clone())]);
    let mut watching = reading(&cinema.vod, past(&[candidate("timeshift/1", 1, 1)], "")).await;
    watching.read(&file, 9_000_000).await;
    assert_eq!(cinema.vod.all_sessions().iter().filter(|it| it.has_slot).count(), 1);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(cinema.vod.all_sessions().iter().filter(|it| it.has_slot).count(), 0);
    watching.finish(&file).await;
    assert_eq!(cinema.scenario.provider.peak(), 1);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_part_of_the_past_without_a_length_plays_without_ranges_on_one_connection() {
    let cinema = Cinema::new().await;
    for path in ["/timeshift/1", "/timeshift/2"] {
        cinema.scenario.provider.set(path, Behaviour::play("past"));
    }
    let mut bodies = Vec::new();
    for path in ["timeshift/1", "timeshift/2"] {
        let answer = cinema.vod.get(past(&[candidate(path, 1, 1)], "bytes=5000000-")).await;
        let Ok(VodAnswer::Stream(mut body)) = answer else { panic!("expected a stream: {answer:?}") };
        let piece = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await;
        assert!(matches!(piece, Some(Ok(piece)) if piece[0] == 0x47), "packets");
        bodies.push(body);
    }
    assert_eq!(cinema.scenario.provider.peak(), 1);
    drop(bodies);
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_seek_in_the_past_stays_with_its_account() {
    let cinema = Cinema::new().await;
    let file = TestFile::new(LENGTH, 1);
    for path in ["one/1", "one/2", "two/1", "two/2"] {
        cinema.offers(path, &file);
    }
    let at = |n: u32| [candidate(&format!("one/{n}"), 1, 1), candidate(&format!("two/{n}"), 2, 1)];
    // A channel has the first account, which is free again before the seek.
    let viewer = cinema.scenario.watch(channel(1)).await;
    let mut first = reading(&cinema.vod, past(&at(1), "")).await;
    first.read(&file, 1_000_000).await;
    drop(viewer);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let mut second = reading(&cinema.vod, past(&at(2), "")).await;
    second.read(&file, 1_000_000).await;
    let paths: Vec<_> = cinema.scenario.provider.requests().into_iter().map(|it| it.path).collect();
    assert!(paths.iter().any(|it| it == "/two/1") && paths.iter().any(|it| it == "/two/2"), "{paths:?}");
    assert!(!paths.iter().any(|it| it.starts_with("/one/")), "{paths:?}");
    drop((first, second));
    cinema.scenario.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_part_of_the_past_without_a_length_returns_its_slot_in_a_pause() {
    let cinema = Cinema::new().await;
    cinema.scenario.provider.set("/timeshift/1", Behaviour::play("past"));
    let answer = cinema.vod.get(past(&[candidate("timeshift/1", 1, 1)], "")).await;
    let Ok(VodAnswer::Stream(mut body)) = answer else { panic!("expected a stream: {answer:?}") };
    let n_slots = || cinema.vod.all_sessions().iter().filter(|it| it.has_slot).count();
    assert!(matches!(poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await, Some(Ok(_))));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(n_slots(), 1);
    // What is read ahead fills first.
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!((n_slots(), cinema.scenario.provider.n_open()), (0, 0));
    // The viewer gets what was read, and the part counts as cut, so that the rest is asked for.
    loop {
        match poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await {
            Some(Ok(_)) => {}
            other => break assert!(matches!(other, Some(Err(_))), "{other:?}"),
        }
    }
    drop(body);
    cinema.scenario.is_quiet().await;
}

/// A node of a cluster that loses contact with the others closes its sources before those may open them.
#[tokio::test(start_paused = true)]
async fn a_film_whose_lease_is_revoked_is_closed_at_once_and_continues_with_the_next_lease() {
    let table = RevocableTable::new();
    let leases = table.clone();
    let cinema = Cinema::from_scenario(Scenario::with_table(settings(), [], |_| leases).await);
    let file = TestFile::new(LENGTH, 1);
    cinema.offers("film", &file);
    let film = [candidate("film", 1, 1)];
    let mut reading = cinema.get("player", &film, "").await.unwrap();
    reading.read(&file, 300_000).await;
    table.cut();
    table.all_closed().await;
    assert_eq!(cinema.scenario.provider.n_open(), 0);
    table.join();
    reading.finish(&file).await;
    assert_eq!((cinema.scenario.provider.peak(), table.counts().0 <= 1), (1, true));
    cinema.scenario.is_quiet().await;
}
