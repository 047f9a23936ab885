//! Films and episodes are played over one connection per viewer, with exact bytes whatever the player asks for.

use domain::account::Account;
use domain::ids::{AccountId, EpisodeId, VodCategoryId};
use domain::source_url::SourceUrl;
use domain::user::UserLevel;
use domain::vod::{
    AccountCategory, Episode, EpisodeFacts, EpisodeOffer, Relation, RelationId, Title, TitleFacts, TitleId,
    TitleKind, VodCategory, uuid_of,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use uuid::Uuid;

use crate::support::client::{Player, Reading, Request, fetch};
use crate::support::files::FileProvider;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::tools::run;
use crate::support::users::{TestUser, create_user};
use crate::support::{eventually, until_async};

/// A gateway with the film 7, and with the episode 9 of a series, on an account with one slot.
pub(crate) struct Cinema {
    provider: FileProvider,
    pub(crate) gateway: TestGateway,
    anna: TestUser,
    file: Vec<u8>,
}

/// A rate at which no film of these tests ends.
const SLOWLY: Reading = Reading::BytesPerSecond(50_000);

/// Returns the content of a film.
fn film(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut file = Vec::with_capacity(length + 8);
    while file.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        file.extend_from_slice(&state.to_be_bytes());
    }
    file.truncate(length);
    // The beginning of a Matroska file.
    file[..8].copy_from_slice(b"\x1a\x45\xdf\xa3\x01\0\0\0");
    file
}

pub(crate) fn movie_uuid() -> Uuid {
    uuid_of(TitleId::movie(7).unwrap().key(), 1 << 90)
}

fn episode_uuid() -> Uuid {
    uuid_of(9, 2 << 90)
}

impl Cinema {
    pub(crate) async fn with(length: usize, max_streams: u32) -> Cinema {
        let file = film(length, 1);
        Self::with_file(file, max_streams).await
    }

    async fn with_file(file: Vec<u8>, max_streams: u32) -> Cinema {
        Self::at(file, None, max_streams).await
    }

    /// A film at another address than that of the provider.
    async fn at(file: Vec<u8>, movie_address: Option<String>, max_streams: u32) -> Cinema {
        let provider = FileProvider::start(file.clone()).await;
        let list = format!("#EXTM3U\n#EXTINF:-1,Live\n{}\n", provider.url("/live/1.ts"));
        let gateway = Setup::new().limited_list(&list, max_streams).start().await;
        let account = gateway.catalogue.accounts[0].id;
        let address = |path: &str| Some(SourceUrl::new(provider.url(path)));
        let category = VodCategoryId(1);
        let titles = [(TitleKind::Movie, 7), (TitleKind::Series, 8)].map(|(kind, number)| {
            let id = TitleId::new(kind, number).unwrap();
            let uuid = if kind == TitleKind::Movie { movie_uuid() } else { uuid_of(id.key(), 3 << 90) };
            let mut relation =
                Relation::new(RelationId(100 + number), account, category, number.to_string(), 0);
            relation.facts = TitleFacts { name: format!("Title {number}"), ..TitleFacts::default() };
            relation.extension = "mp4".to_owned();
            let address = movie_address.as_deref().map(SourceUrl::new).or(address("/movie/u/p/7.mp4"));
            relation.address = address.filter(|_| kind == TitleKind::Movie);
            Title { relations: vec![relation], ..Title::new(id, uuid, 0) }
        });
        let episode = Episode {
            id: EpisodeId(9),
            uuid: episode_uuid(),
            series: titles[1].id,
            season: 1,
            number: 2,
            offers: vec![EpisodeOffer {
                account,
                relation: RelationId(108),
                provider_id: "9".to_owned(),
                address: address("/series/u/p/9.mkv"),
                extension: "mkv".to_owned(),
                facts: EpisodeFacts::default(),
                last_seen: None,
            }],
            completion: None,
            aliases: Vec::new(),
            created_at: 0,
            updated_at: 0,
        };
        gateway
            .change(move |write| {
                let own = write.get::<Account>(account.0)?.expect("the account of the list");
                write.put(&Account { enable_vod: true, ..own })?;
                write.put(&VodCategory { id: category, name: "Films".to_owned(), kind: TitleKind::Movie })?;
                write.put(&link(account, category))?;
                titles.iter().try_for_each(|it| write.put(it))?;
                write.put(&episode)
            })
            .await;
        let anna = create_user(&gateway, "anna", |_| {}).await;
        Cinema { provider, gateway, anna, file }
    }

    fn movie(&self, name: &str) -> String {
        format!("/movie{}", self.anna.path(name))
    }

    fn get(&self, name: &str, range: &str, agent: &str) -> Request {
        let request = Request::get(self.movie(name)).header("User-Agent", agent);
        if range.is_empty() { request } else { request.header("Range", range) }
    }

    /// Requests a range and compares the whole answer.
    pub(crate) async fn reads(&self, range: &str, agent: &str, part: std::ops::Range<usize>) {
        let answer = fetch(self.gateway.address, self.get("7.mkv", range, agent)).await;
        assert_eq!(answer.status(), if range.is_empty() { 200 } else { 206 }, "{range}: {}", answer.text());
        assert_eq!(answer.header("content-length"), Some(&*part.len().to_string()), "{range}");
        assert!(answer.bytes == self.file[part], "{range}: other bytes");
    }

    /// Waits until no slot is used and the provider sees no connection.
    pub(crate) async fn is_quiet(&self) {
        self.gateway.until_idle().await;
        eventually("no connection at the provider", || self.provider.n_open() == 0).await;
    }

    async fn admin(&self) -> TestUser {
        create_user(&self.gateway, "admin", |it| it.level = UserLevel::Admin).await
    }

    async fn json(&self, request: Request) -> Value {
        let answer = fetch(self.gateway.api, request).await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        serde_json::from_str(&answer.text()).unwrap()
    }
}

fn link(account: AccountId, category: VodCategoryId) -> AccountCategory {
    AccountCategory {
        id: 1,
        account,
        category,
        kind: TitleKind::Movie,
        provider_ids: vec!["1".to_owned()],
        enabled: true,
        custom_properties: serde_json::Map::new(),
        last_seen: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_film_is_answered_whole_and_in_parts() {
    let cinema = Cinema::with(3_000_000, 1).await;
    let length = cinema.file.len();
    let head = fetch(cinema.gateway.address, Request::head(cinema.movie("7"))).await;
    assert_eq!((head.status(), head.header("content-length")), (200, Some("3000000")));
    assert_eq!(head.header("accept-ranges"), Some("bytes"));
    assert_eq!(cinema.provider.requests().len(), 1);
    // Any extension or none.
    for name in ["7", "7.mkv", "7.mp4", "7.anything"] {
        let answer = fetch(cinema.gateway.address, cinema.get(name, "", "TV")).await;
        assert_eq!(
            (answer.status(), answer.header("content-type")),
            (200, Some("video/x-matroska")),
            "{name}"
        );
        assert!(answer.bytes == cinema.file);
    }
    cinema.reads("bytes=0-", "TV", 0..length).await;
    cinema.reads("bytes=-500", "TV", length - 500..length).await;
    cinema.reads("bytes=1000000-1999999", "TV", 1_000_000..2_000_000).await;
    cinema.reads("bytes=0-99,100-199", "TV", 0..200).await;
    // Ranges that are malformed or far apart are answered with the whole film.
    for range in ["bytes=9-1", "bytes=x", "items=0-1", "bytes=0-1,500-600"] {
        let answer = fetch(cinema.gateway.address, cinema.get("7", range, "TV")).await;
        assert_eq!((answer.status(), answer.bytes.len()), (200, length), "{range}");
    }
    let answer = fetch(cinema.gateway.address, cinema.get("7", "bytes=3000000-", "TV")).await;
    assert_eq!((answer.status(), answer.header("content-range")), (416, Some("bytes */3000000")));
    let answer = fetch(cinema.gateway.address, cinema.get("7", "bytes=0-9", "TV")).await;
    assert_eq!(answer.header("content-range"), Some("bytes 0-9/3000000"));
    let tag = answer.header("etag").unwrap().to_owned();
    for (condition, status) in
        [(tag.as_str(), 206), ("\"other\"", 200), ("Tue, 15 Nov 1994 12:45:26 GMT", 200)]
    {
        let request = cinema.get("7", "bytes=0-9", "TV").header("If-Range", condition);
        assert_eq!(fetch(cinema.gateway.address, request).await.status(), status, "{condition}");
    }
    assert_eq!(cinema.provider.peak(), 1);
    cinema.is_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_of_a_title_plays_and_unknown_ones_do_not() {
    let cinema = Cinema::with(300_000, 1).await;
    let admin = cinema.admin().await;
    let of_movie = format!("/proxy/vod/movie/{}", movie_uuid());
    let of_episode = format!("/proxy/vod/episode/{}", episode_uuid());
    let paths = [
        cinema.movie("7.mkv"),
        format!("/series{}", cinema.anna.path("9.mkv")),
        of_movie.clone(),
        format!("{of_movie}/my-session"),
        format!("{of_movie}?session_id=other"),
        format!("{of_movie}?stream_id=7"),
        of_episode.clone(),
        format!("/proxy/vod/series/{}", episode_uuid()),
    ];
    for path in paths {
        let answer = fetch(cinema.gateway.address, Request::get(&path)).await;
        assert_eq!((answer.status(), answer.bytes.len()), (200, 300_000), "{path}: {}", answer.text());
        assert!(answer.bytes == cinema.file);
    }
    let token = admin.token(&cinema.gateway);
    let answer = fetch(cinema.gateway.api, Request::get(format!("{of_movie}?token={token}"))).await;
    assert_eq!(answer.status(), 200);
    let unknown = Uuid::from_u128(5);
    for path in [
        cinema.movie("8"),
        cinema.movie("seven.mkv"),
        cinema.movie("-7"),
        format!("/series{}", cinema.anna.path("7.mkv")),
        format!("/proxy/vod/movie/{unknown}"),
        format!("/proxy/vod/episode/{}", movie_uuid()),
        format!("/proxy/vod/film/{}", movie_uuid()),
        format!("{of_movie}?stream_id=8"),
    ] {
        assert_eq!(fetch(cinema.gateway.address, Request::get(&path)).await.status(), 404, "{path}");
    }
    let wrong = [
        format!("/movie/{}/wrong/7.mkv", cinema.anna.name),
        "/series/nobody/x/9".to_owned(),
        format!("{of_movie}?token=x"),
    ];
    for path in wrong {
        assert_eq!(fetch(cinema.gateway.address, Request::get(&path)).await.status(), 401, "{path}");
    }
    // A hidden film and one of a category that is not enabled do not exist for users.
    cinema
        .gateway
        .change(move |write| {
            let mut title = write.get::<Title>(TitleId::movie(7).unwrap().key())?.unwrap();
            title.hidden = true;
            write.put(&title)
        })
        .await;
    assert_eq!(fetch(cinema.gateway.address, Request::get(cinema.movie("7"))).await.status(), 404);
    let account = cinema.gateway.catalogue.accounts[0].id;
    cinema
        .gateway
        .change(move |write| {
            write.put(&AccountCategory { enabled: false, ..link(account, VodCategoryId(1)) })
        })
        .await;
    assert_eq!(fetch(cinema.gateway.address, Request::get(&of_episode)).await.status(), 404);
    cinema.is_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_past_of_a_channel_plays_at_the_addresses_of_player_apps() {
    let file = film(2_000_000, 3);
    let provider = FileProvider::start(file.clone()).await;
    let list = format!(
        "#EXTM3U\n#EXTINF:-1 catchup=\"default\" catchup-days=\"2\" catchup-source=\"{}\",News\n{}\n#EXTINF:-1,Other\n{}\n",
        provider.url("/past/{utc}-{duration}.ts"),
        provider.url("/live/1.ts"),
        provider.url("/live/2.ts"),
    );
    let gateway = Setup::new().limited_list(&list, 1).start().await;
    provider.limit(1);
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let [news, other] = ["News", "Other"].map(|it| gateway.channel(it).id.0);
    let now = jiff::Timestamp::now().as_second() / 60 * 60;
    let path = |start: &str, id: u32| format!("/timeshift{}", anna.path(&format!("60/{start}/{id}.ts")));
    let written =
        |at: i64, format: &str| jiff::Timestamp::from_second(at).unwrap().strftime(format).to_string();
    let yesterday = now - 86_400;
    for start in [written(yesterday, "%Y-%m-%d:%H-%M"), yesterday.to_string()] {
        let answer = fetch(gateway.address, Request::get(path(&start, news))).await;
        assert_eq!(
            (answer.status(), answer.header("accept-ranges")),
            (200, Some("bytes")),
            "{}",
            answer.text()
        );
        assert!(answer.bytes == file, "{start}: other bytes");
    }
    let earlier = written(yesterday - 3_600, "%Y-%m-%d:%H-%M");
    let password = utf8_percent_encode(&anna.password, NON_ALPHANUMERIC);
    let login = format!("/streaming/timeshift.php?username=anna&password={password}");
    let query = format!("{login}&stream={news}&start={earlier}&duration=30");
    let part = fetch(gateway.address, Request::get(query).header("Range", "bytes=1000000-")).await;
    assert_eq!(part.status(), 206, "{}", part.text());
    assert!(part.bytes == file[1_000_000..]);
    let paths: std::collections::BTreeSet<_> = provider.requests().into_iter().map(|it| it.0).collect();
    let expected = [format!("/past/{}-1800.ts", yesterday - 3_600), format!("/past/{yesterday}-3600.ts")];
    assert_eq!(paths, expected.into());
    for (start, id, status, reason) in [
        ("zzz".to_owned(), news, 400, "invalid start"),
        (yesterday.to_string(), other, 400, "the channel has no archive"),
        ((now - 3 * 86_400).to_string(), news, 404, "2 days"),
        ((now + 3_600).to_string(), news, 404, "has not begun"),
        (yesterday.to_string(), 999, 404, "channel not found"),
    ] {
        let answer = fetch(gateway.address, Request::get(path(&start, id))).await;
        assert_eq!(answer.status(), status, "{start} {id}: {}", answer.text());
        assert!(answer.text().contains(reason), "{start} {id}: {}", answer.text());
    }
    let missing = fetch(gateway.address, Request::get(&login)).await;
    assert_eq!(missing.status(), 400, "{}", missing.text());
    gateway.until_idle().await;
    assert_eq!((provider.peak(), provider.n_refused()), (1, 0));
}

// T-slot.4: the bursts of real players, on an account with one slot whose provider refuses a second connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bursts_of_players_use_one_connection_and_get_exact_bytes() {
    let cinema = Cinema::with(12_000_000, 1).await;
    cinema.provider.limit(1);
    let length = cinema.file.len();
    // Emby: the beginning, the end and the beginning again, at the same time.
    tokio::join!(
        cinema.reads("bytes=0-3999999", "Emby", 0..4_000_000),
        cinema.reads("bytes=-65536", "Emby", length - 65_536..length),
        cinema.reads("bytes=0-65535", "Emby", 0..65_536),
    );
    // VLC: each seek closes its connection and opens another one at once.
    for start in [0, 9_000_000, 2_500_000, 11_000_000, 5_000_000] {
        let range = format!("bytes={start}-");
        // Read slowly, so that the answer has not ended when it is looked at.
        let slowly = Reading::BytesPerSecond(300_000);
        let request = cinema.get("7.mkv", &range, "VLC").without_recording().reading(slowly);
        let player = Player::ask(cinema.gateway.address, request).await;
        player.more_bytes(100_000).await;
        player.reset().await;
    }
    // Kodi asks for the length, then reads from several places without closing its first request.
    let slowly = Reading::BytesPerSecond(1_500_000);
    let kodi = cinema.get("7.mkv", "bytes=0-", "Kodi").without_recording().reading(slowly);
    let kodi = Player::ask(cinema.gateway.address, kodi).await;
    kodi.more_bytes(200_000).await;
    cinema.reads("bytes=11900000-", "Kodi", 11_900_000..length).await;
    cinema.reads("bytes=6000000-6999999", "Kodi", 6_000_000..7_000_000).await;
    kodi.more_bytes(1_000_000).await;
    drop(kodi);
    // Smarters: many small ranges in a row.
    for start in (0..length).step_by(700_000) {
        let end = (start + 99_999).min(length - 1);
        cinema.reads(&format!("bytes={start}-{end}"), "Smarters", start..end + 1).await;
    }
    // rclone: four parts at the same time.
    let all = &cinema;
    let parts = (0..4_usize).map(|n| async move {
        let (start, end) = (n * 3_000_000, (n + 1) * 3_000_000);
        all.reads(&format!("bytes={start}-{}", end - 1), "rclone", start..end).await;
    });
    futures_util::future::join_all(parts).await;
    assert_eq!((cinema.provider.peak(), cinema.provider.n_refused()), (1, 0));
    cinema.is_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bytes_are_exact_however_often_the_provider_cuts() {
    let cinema = Cinema::with(6_000_000, 1).await;
    cinema.provider.cut_after(vec![100_003, 777_777, 65_536, 1_000_000, 300_000]);
    cinema.reads("", "TV", 0..6_000_000).await;
    cinema.reads("bytes=1234567-5999999", "TV", 1_234_567..6_000_000).await;
    assert_eq!(cinema.provider.peak(), 1);
    cinema.is_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_file_and_a_provider_without_ranges_never_cause_a_wrong_byte() {
    let mut cinema = Cinema::with(12_000_000, 1).await;
    let player = Player::ask(cinema.gateway.address, cinema.get("7", "", "TV").reading(SLOWLY)).await;
    assert_eq!(player.status().await, 200);
    let changed = film(12_000_000, 2);
    cinema.provider.set_file(changed.clone(), "\"changed\"");
    let old = std::mem::replace(&mut cinema.file, changed);
    cinema.reads("bytes=10000000-", "TV", 10_000_000..12_000_000).await;
    player.read(Reading::Freely);
    player.ended().await;
    let received = player.recording();
    assert!(received.len() < old.len() && received == old[..received.len()], "{} bytes", received.len());
    cinema.is_quiet().await;
    // Without ranges: the beginning is skipped, but not half of the film.
    let plain = Cinema::with(12_000_000, 1).await;
    plain.provider.ignore_ranges();
    plain.reads("", "TV", 0..12_000_000).await;
    let answer = fetch(plain.gateway.address, plain.get("7", "bytes=9000000-9500000", "TV")).await;
    assert_eq!(answer.status(), 502);
    assert!(answer.text().contains("ignores the requested position"), "{}", answer.text());
    plain.reads("bytes=4000000-4999999", "TV", 4_000_000..5_000_000).await;
    plain.is_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_film_takes_a_slot_and_a_seat_like_a_live_channel_and_an_admin_can_stop_it() {
    let cinema = Cinema::with(40_000_000, 1).await;
    let admin = cinema.admin().await;
    let header = format!("Bearer {}", admin.token(&cinema.gateway));
    let get = |path: &str| Request::get(path).header("Authorization", &header);
    let player = Player::ask(cinema.gateway.address, cinema.get("7", "", "TV").reading(SLOWLY)).await;
    assert_eq!(player.status().await, 200);
    let slots = cinema.json(get("/api/m3u/slots/")).await;
    let profiles = slots["profiles"].as_array().unwrap();
    let slot = profiles.iter().find_map(|it| it["slots"].get(0)).expect("a slot in use");
    assert_eq!((&slot["purpose"], &slot["channel_name"]), (&"vod".into(), &"Title 7".into()));
    let stats = cinema.json(get("/proxy/vod/stats")).await;
    assert_eq!(
        (&stats["total_connections"], &stats["vod_connections"][0]["content_name"]),
        (&1.into(), &"Title 7".into())
    );
    let connection = &stats["vod_connections"][0]["connections"][0];
    assert_eq!(
        (&connection["username"], &connection["content_length"]),
        (&"anna".into(), &40_000_000.into())
    );
    let all = cinema.json(get("/proxy/stats")).await;
    assert_eq!((&all["vod"]["total_connections"], &all["live"]["count"]), (&1.into(), &0.into()));
    assert_eq!(cinema.gateway.gateway.counts().seats, 1);
    // The slot is in use: another viewer is refused, and may try again.
    let other = create_user(&cinema.gateway, "bert", |_| {}).await;
    let path = format!("/movie{}", other.path("7.mkv"));
    let refused = fetch(cinema.gateway.address, Request::get(&path).header("Range", "bytes=20000000-")).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("3")), "{}", refused.text());
    let body = serde_json::json!({ "client_id": connection["client_id"] }).to_string();
    let stop = get("/proxy/vod/stop_client").method("POST").body("application/json", body);
    assert_eq!(cinema.json(stop).await["outcome"], "stopped");
    player.read(Reading::Freely);
    player.ended().await;
    cinema.is_quiet().await;
    let metrics = cinema.gateway.metrics().await;
    assert_eq!(metrics["headwater_vod_starts_total"], 1.0);
    eventually("the end of the film", || cinema.gateway.n_events("vod_stop") == 1).await;
    assert_eq!(cinema.gateway.n_events("vod_start"), 1);
    let stats = cinema.json(get("/proxy/vod/stats")).await;
    assert_eq!(stats["total_connections"], 0);
}

/// An account that failed is asked last for as long as another one of the same priority has the film.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_film_that_an_account_refuses_comes_from_another_one_also_next_time() {
    let cinema = Cinema::with(2_000_000, 1).await;
    let other = FileProvider::start(cinema.file.clone()).await;
    let first = cinema.gateway.catalogue.accounts[0].id;
    let address = SourceUrl::new(other.url("/movie/u/p/7.mp4"));
    cinema
        .gateway
        .change(move |write| {
            let mut own = write.get::<Account>(first.0)?.expect("the account of the list");
            own.id = AccountId(first.0 + 50);
            own.name = "second".to_owned();
            own.profiles.iter_mut().for_each(|it| it.id.0 += 50);
            write.put(&own)?;
            write.put(&AccountCategory { id: 2, ..link(own.id, VodCategoryId(1)) })?;
            let mut title = write.get::<Title>(TitleId::movie(7).unwrap().key())?.expect("the film");
            let mut relation = title.relations[0].clone();
            (relation.id, relation.account) = (RelationId(207), own.id);
            relation.address = Some(address);
            title.relations.push(relation);
            write.put(&title)
        })
        .await;
    cinema.provider.limit(0);
    for agent in ["one", "two"] {
        cinema.reads("bytes=1000000-", agent, 1_000_000..2_000_000).await;
    }
    assert_eq!(
        (cinema.provider.n_refused(), other.peak()),
        (1, 1),
        "the second viewer asks the other account at once"
    );
    cinema.is_quiet().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_who_may_no_longer_watch_a_film_lose_it() {
    let cinema = Cinema::with(60_000_000, 2).await;
    let child = create_user(&cinema.gateway, "child", |it| {
        it.hide_adult = true;
        it.custom_properties.insert("vod_age_max".to_owned(), 12.into());
        it.custom_properties.insert("vod_unrated".to_owned(), true.into());
    })
    .await;
    let account = cinema.gateway.catalogue.accounts[0].id;
    let title = |change: fn(&mut Title)| {
        let gateway = &cinema.gateway;
        async move {
            gateway
                .change(move |write| {
                    let mut title = write.get::<Title>(TitleId::movie(7).unwrap().key())?.unwrap();
                    change(&mut title);
                    write.put(&title)
                })
                .await;
        }
    };
    let enable = |enabled: bool| {
        let link = AccountCategory { enabled, ..link(account, VodCategoryId(1)) };
        cinema.gateway.change(move |write| write.put(&link))
    };
    let cases = ["adult", "rating", "hidden", "category"];
    for case in cases {
        let watch = async |user: &TestUser| {
            let path = format!("/movie{}", user.path("7.mkv"));
            let request = Request::get(path).header("User-Agent", case).reading(SLOWLY).without_recording();
            let player = Player::ask(cinema.gateway.address, request).await;
            assert_eq!(player.status().await, 200, "{case}");
            player
        };
        let (of_child, of_anna) = (watch(&child).await, watch(&cinema.anna).await);
        match case {
            "adult" => title(|it| it.edits.is_adult = Some(true)).await,
            "rating" => title(|it| it.edits.rating = Some("FSK 16".to_owned())).await,
            "hidden" => title(|it| it.hidden = true).await,
            _ => enable(false).await,
        }
        of_child.read(Reading::Freely);
        of_child.ended().await;
        let path = format!("/movie{}", child.path("7.mkv"));
        assert_eq!(fetch(cinema.gateway.address, Request::get(&path)).await.status(), 404, "{case}");
        if matches!(case, "adult" | "rating") {
            of_anna.more_bytes(100_000).await;
        } else {
            of_anna.read(Reading::Freely);
            of_anna.ended().await;
        }
        match case {
            "adult" => title(|it| it.edits.is_adult = None).await,
            "rating" => title(|it| it.edits.rating = None).await,
            "hidden" => title(|it| it.hidden = false).await,
            _ => enable(true).await,
        }
    }
    cinema.is_quiet().await;
    let n_watched = 2 * cases.len();
    eventually("the end of each film", || cinema.gateway.n_events("vod_stop") == n_watched).await;
    assert_eq!(cinema.gateway.n_events("vod_start"), n_watched);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_read_and_seek_in_a_film() {
    let clip = crate::support::tools::clips().join("film-60-seconds.mkv");
    if !clip.exists() {
        let made = run(
            "ffmpeg",
            &[
                "-v",
                "error",
                "-y",
                "-f",
                "lavfi",
                "-i",
                "testsrc2=size=640x360:rate=25:duration=60",
                "-c:v",
                "mpeg2video",
                "-b:v",
                "2M",
                "-f",
                "matroska",
                &format!("{}.new", clip.display()),
            ],
        )
        .await;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        std::fs::rename(format!("{}.new", clip.display()), &clip).unwrap();
    }
    let cinema = Cinema::with_file(std::fs::read(&clip).unwrap(), 1).await;
    let url = format!("http://{}{}", cinema.gateway.address, cinema.movie("7.mkv"));
    let probe =
        run("ffprobe", &["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", &url]).await;
    let duration: f64 = String::from_utf8_lossy(&probe.stdout).trim().parse().expect("a duration");
    assert!((59.0..61.0).contains(&duration), "{duration} s");
    let seek =
        run("ffmpeg", &["-v", "error", "-ss", "50", "-i", &url, "-frames:v", "5", "-f", "framemd5", "-"])
            .await;
    let frames = |it: &[u8]| -> Vec<String> {
        let lines = String::from_utf8_lossy(it)
            .lines()
            .filter(|it| !it.starts_with('#'))
            .map(str::to_owned)
            .collect::<Vec<_>>();
        lines.iter().filter_map(|it| it.rsplit(',').next().map(|it| it.trim().to_owned())).collect()
    };
    let local = clip.display().to_string();
    let expected =
        run("ffmpeg", &["-v", "error", "-ss", "50", "-i", &local, "-frames:v", "5", "-f", "framemd5", "-"])
            .await;
    assert_eq!(frames(&seek.stdout).len(), 5, "{}", String::from_utf8_lossy(&seek.stderr));
    assert_eq!(frames(&seek.stdout), frames(&expected.stdout));
    let curl = run("curl", &["-s", "-f", "-r", "1000-1999", &url]).await;
    assert!(curl.status.success() && curl.stdout == cinema.file[1000..2000]);
    assert_eq!(cinema.provider.peak(), 1);
    until_async("no slot in use", async || cinema.gateway.gateway.counts().leases == 0).await;
}

mod slow {
    use std::time::Duration;

    use super::*;
    use crate::support::tools;
    use crate::support::upstream::{MockResponse, Provider};

    /// Duration of the film, in seconds.
    const SECONDS: f64 = 40.0;

    /// Serves a film of segments of some megabytes at `path`, which the provider declares as anything.
    async fn serve_segments(provider: &Provider, path: &str) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("list.m3u8").display().to_string();
        let picture = format!("testsrc2=size=640x360:rate=25:duration={SECONDS}");
        let input = ["-f", "lavfi", "-i", &picture];
        let codec =
            ["-c:v", "mpeg2video", "-b:v", "6M", "-minrate", "6M", "-maxrate", "6M", "-bufsize", "3M"];
        let muxer = ["-f", "hls", "-hls_time", "4", "-hls_list_size", "0", &file];
        tools::text_of("ffmpeg", &[&["-v", "error"][..], &input, &codec, &muxer].concat()).await;
        let mut list = std::fs::read_to_string(&file).unwrap();
        for n in 0.. {
            let (name, address) = (format!("list{n}.ts"), format!("/segments/anna/{n}.ts"));
            let Ok(segment) = std::fs::read(folder.path().join(&name)) else { break };
            provider.path(&address).answers(MockResponse::text("video/mp2t", segment));
            list = list.replace(&name, &address);
        }
        provider.path(path).answers(MockResponse::text("application/octet-stream", list));
    }

    /// Returns the number of processes that have this text in their arguments.
    fn n_processes(text: &str) -> usize {
        let folders = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let arguments = folders.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
        arguments.filter(|it| String::from_utf8_lossy(it).contains(text)).count()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_film_of_segments_plays_through_ffmpeg_without_ranges_on_one_connection() {
        let provider = Provider::start();
        provider.limit("anna", 1, 403, Duration::ZERO);
        serve_segments(&provider, "/movie/anna/7").await;
        let cinema = Cinema::at(vec![0; 9], Some(provider.url("/movie/anna/7")), 1).await;
        let address = cinema.gateway.address;
        // Without slots in use, HEAD asks the provider.
        let head = fetch(address, Request::head(cinema.movie("7.mp4"))).await;
        assert_eq!(
            (head.status(), head.header("accept-ranges"), head.header("content-type")),
            (200, Some("none"), Some("video/mp2t")),
            "{}",
            head.text()
        );
        assert_eq!((head.header("content-length"), head.header("etag")), (None, None));
        for range in ["", "bytes=0-", "bytes=5000000-"] {
            let answer = fetch(address, cinema.get("7.mp4", range, "TV")).await;
            assert_eq!(
                (answer.status(), answer.header("accept-ranges"), answer.header("content-type")),
                (200, Some("none"), Some("video/mp2t")),
                "{range}: {}",
                answer.text()
            );
            assert_eq!((answer.header("content-length"), answer.header("content-range")), (None, None));
            let file = tools::saved(&answer.bytes);
            let path = file.path().display().to_string();
            let show = ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", &path];
            let duration: f64 = tools::text_of("ffprobe", &show).await.trim().parse().unwrap();
            assert!((SECONDS - 1.0..SECONDS + 1.0).contains(&duration), "{duration} s");
        }
        // A player that asks again while it plays ends its older stream, and never has two.
        let slow = || cinema.get("7.mp4", "", "TV").reading(SLOWLY).without_recording();
        let older = Player::ask(address, slow()).await;
        assert_eq!(older.status().await, 200);
        let newer = Player::ask(address, slow()).await;
        newer.more_bytes(100_000).await;
        older.read(Reading::Freely);
        older.ended().await;
        assert_eq!(cinema.gateway.gateway.counts().leases, 1);
        let place = provider.address.to_string();
        assert_eq!(n_processes(&place), 1);
        drop(newer);
        cinema.gateway.until_idle().await;
        assert_eq!(n_processes(&place), 0, "the program is gone before its slot is free");
        assert_eq!(
            (provider.peak_of("anna"), provider.refusals()),
            (1, 0),
            "{:?}",
            provider.overlaps("anna")
        );
        eventually("the end of the film", || cinema.gateway.n_events("vod_stop") == 1).await;
        assert_eq!(cinema.gateway.n_events("vod_start"), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_paused_film_of_segments_yields_its_slot_to_another_viewer() {
        let provider = Provider::start();
        serve_segments(&provider, "/movie/anna/7").await;
        let cinema = Cinema::at(vec![0; 9], Some(provider.url("/movie/anna/7")), 1).await;
        let address = cinema.gateway.address;
        let request = cinema.get("7.mp4", "", "TV").reading(SLOWLY).without_recording();
        let paused = Player::ask(address, request).await;
        assert_eq!(paused.status().await, 200);
        paused.read(Reading::Nothing);
        let episode = format!("/series{}", cinema.anna.path("9.mkv"));
        until_async("the slot of the paused film", async || {
            fetch(address, Request::get(episode.clone()).header("User-Agent", "Box")).await.status() == 200
        })
        .await;
        assert_eq!(n_processes(&provider.address.to_string()), 0, "the program is gone");
        assert!(cinema.provider.peak() <= 1);
        drop(paused);
        cinema.is_quiet().await;
    }
}
