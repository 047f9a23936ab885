//! The portal of the tests, asked with the questions of a box: what the stories of portals rely on.

use domain::panel::Element;
use domain::portal::{
    MacAddress, PortalDevice, PortalError, PortalListParser, PortalProfileState, PortalQuestion, PortalTitle,
    ProgrammeSearch, SearchStep, TitleModule, endpoints, expiry_of, file_command, headers, link_in,
    pasted_address, read_answer, read_channel, read_genres, read_handshake, read_link, read_login,
    read_profile, read_programmes,
};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::support::client::{Player, Request, Response, fetch};
use crate::support::portal::{ENTRY_POINT, OfferedChannel, PAGE, Portal};
use crate::support::portal_offers::{OfferedProgramme, OfferedTitle, TitleForm};

const MAC: &str = "00:1A:79:12:34:56";

/// A box at the portal, with the token of its last handshake.
struct TestBox<'a> {
    portal: &'a Portal,
    device: PortalDevice,
    token: Option<Secret>,
}

impl TestBox<'_> {
    fn at(portal: &Portal) -> TestBox<'_> {
        let device = PortalDevice::new(MacAddress::parse(MAC).unwrap());
        TestBox { portal, device, token: None }
    }

    async fn ask(&self, question: PortalQuestion<'_>) -> Response {
        let endpoint = SourceUrl::new(self.portal.provider.url(ENTRY_POINT));
        let url = question.url(&endpoint, &self.device);
        let path = url.expose().strip_prefix(&self.portal.provider.url("")).unwrap().to_owned();
        let own = RequestHeaders::default();
        let sent = headers(&own, &endpoint, &self.device, self.token.as_ref(), "UTC");
        let mut request = Request::get(path);
        for (name, value) in &sent.extra {
            request = request.header(name, value);
        }
        fetch(self.portal.provider.address, request).await
    }

    async fn answer(&self, question: PortalQuestion<'_>) -> Result<Value, PortalError> {
        read_answer(&self.ask(question).await.bytes)
    }

    async fn shake_hands(&mut self) {
        self.token = None;
        let answer = self.answer(PortalQuestion::Handshake).await.unwrap();
        self.token = Some(read_handshake(&answer).unwrap().token);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_portal_of_the_tests_knows_one_token_of_a_box_and_lists_pages() {
    let portal = Portal::start();
    portal.knows(MAC);
    portal.offers((1..=30).map(|it| OfferedChannel::new(it, format!("Channel {it}"))).collect());
    let mut first = TestBox::at(&portal);
    assert_eq!(first.answer(PortalQuestion::Genres).await, Err(PortalError::Unauthorized));
    first.shake_hands().await;
    let question = PortalQuestion::Profile { second_step: false, is_invalid: false };
    let profile = read_profile(&first.answer(question).await.unwrap(), &first.device).unwrap();
    assert_eq!((profile.state, profile.watchdog_seconds), (PortalProfileState::Accepted, 120));
    assert_eq!(read_genres(&first.answer(PortalQuestion::Genres).await.unwrap()).len(), 2);
    // A second handshake of the same MAC address ends the first.
    let mut second = TestBox::at(&portal);
    second.shake_hands().await;
    assert_eq!(first.answer(PortalQuestion::Genres).await, Err(PortalError::Unauthorized));

    let mut n_listed = Vec::new();
    for page in 1..=4 {
        let mut parser = PortalListParser::default();
        let mut n = 0;
        let mut out = |it: Element<'_>| {
            let Element::Value { json, .. } = it else { panic!("too long") };
            assert!(read_channel(json).unwrap().needs_link);
            n += 1;
        };
        parser.push(&second.ask(PortalQuestion::Page { genre: "*", page }).await.bytes, &mut out);
        let list = parser.finish(&mut out).unwrap();
        assert_eq!((list.total_items, list.max_page_items), (Some(30), Some(PAGE as u64)));
        n_listed.push(n);
    }
    assert_eq!(n_listed, [14, 14, 2, 0]);
    portal.refuses(Some(403));
    assert_eq!(second.ask(PortalQuestion::Genres).await.status(), 403);
    portal.refuses(Some(200));
    assert_eq!(second.answer(PortalQuestion::Genres).await, Err(PortalError::Unauthorized));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_of_the_portal_of_the_tests_opens_once_and_a_box_has_one_connection() {
    let portal = Portal::start();
    portal.knows(MAC);
    portal.offers(vec![OfferedChannel::new(7, "One")]);
    let mut known = TestBox::at(&portal);
    known.shake_hands().await;
    let cmd = Secret::new("ffrt http://localhost/ch/7_");
    let link = async || {
        let answer = known.answer(PortalQuestion::Link { cmd: &cmd }).await.unwrap();
        let url = read_link(&answer, &SourceUrl::new("http://portal.example")).unwrap();
        url.expose().strip_prefix(&portal.provider.url("")).unwrap().to_owned()
    };
    let address = portal.provider.address;
    let path = link().await;
    let player = Player::watch(address, &path).await;
    player.more_bytes(10_000).await;
    let other = link().await;
    assert_eq!(Player::watch(address, &other).await.status().await, 403, "one connection for each box");
    portal.ends_streams();
    player.ended().await;
    assert_eq!(portal.peak_of(MAC), 2, "one was refused");
    assert_eq!(Player::watch(address, &path).await.status().await, 404, "it was opened before");
    let missing = Secret::new("ffrt http://localhost/ch/8_");
    let answer = known.answer(PortalQuestion::Link { cmd: &missing }).await.unwrap();
    assert_eq!(answer["error"], "nothing_to_play");
    assert!(link_in(answer["cmd"].as_str().unwrap()).is_none());
    known.answer(PortalQuestion::Events { is_playing: true }).await.unwrap();
    assert_eq!((portal.n_events(MAC), portal.n_links()), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_portal_of_the_tests_refuses_boxes_as_portals_do_and_lists_censored_channels_by_genre() {
    let portal = Portal::start();
    portal.knows(MAC);
    portal.offers(vec![
        OfferedChannel::new(7, "One"),
        OfferedChannel { genre: 9, is_censored: true, ..OfferedChannel::new(8, "Late") },
        OfferedChannel { is_direct: true, ..OfferedChannel::new(9, "Direct") },
    ]);
    let (server, endpoint) = pasted_address(&portal.url()).unwrap();
    let found = endpoints(&server, endpoint.as_ref());
    assert_eq!(found[0].expose(), portal.provider.url(ENTRY_POINT));
    portal.asks_for_login(MAC, "anna", "hunter2");
    let mut known = TestBox::at(&portal);
    known.device.username = "anna".to_owned();
    known.shake_hands().await;
    let first = PortalQuestion::Profile { second_step: false, is_invalid: false };
    let asked = read_profile(&known.answer(first.clone()).await.unwrap(), &known.device).unwrap();
    assert_eq!(asked.state, PortalProfileState::LoginRequired);
    known.device.password = Secret::new("wrong");
    let wrong = known.answer(PortalQuestion::Login).await.unwrap();
    assert_eq!(read_login(&wrong), Err(PortalError::LoginRefused));
    known.device.password = Secret::new("hunter2");
    read_login(&known.answer(PortalQuestion::Login).await.unwrap()).unwrap();
    let second = PortalQuestion::Profile { second_step: true, is_invalid: false };
    let accepted = read_profile(&known.answer(second).await.unwrap(), &known.device).unwrap();
    assert_eq!(accepted.state, PortalProfileState::Accepted);
    let info = known.answer(PortalQuestion::MainInfo).await.unwrap();
    assert_eq!(expiry_of(&info), Some(1_893_456_000_000));

    let names = async |question: PortalQuestion<'_>| {
        let mut names = Vec::new();
        let mut parser = PortalListParser::default();
        let mut out = |it: Element<'_>| {
            let Element::Value { json, .. } = it else { panic!("too long") };
            let channel = read_channel(json).unwrap();
            names.push((channel.name, channel.needs_link, channel.is_censored));
        };
        parser.push(&known.ask(question).await.bytes, &mut out);
        parser.finish(&mut out).unwrap();
        names
    };
    let all = [("One".to_owned(), true, false), ("Direct".to_owned(), false, false)];
    assert_eq!(names(PortalQuestion::AllChannels).await, all);
    let censored = PortalQuestion::Page { genre: "9", page: 1 };
    assert_eq!(names(censored).await, [("Late".to_owned(), true, true)]);
    portal.lists_pages_only();
    assert_eq!(known.answer(PortalQuestion::AllChannels).await.unwrap(), Value::Bool(false));
    portal.other_box_shakes_hands(MAC);
    assert_eq!(known.answer(PortalQuestion::Genres).await, Err(PortalError::Unauthorized));
    portal.blocks(MAC, "Box 00:1a:79:12:34:56 is blocked");
    known.shake_hands().await;
    let blocked = read_profile(&known.answer(first).await.unwrap(), &known.device).unwrap();
    assert_eq!(blocked.state, PortalProfileState::Refused("Box … is blocked".to_owned()));
    assert_eq!(portal.n_handshakes(MAC), 2);
    let asked = portal.questions();
    assert_eq!((asked.len(), asked[0].as_str()), (12, "stb/handshake"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_the_archive_and_the_titles_of_the_portal_of_the_tests_are_those_of_portals() {
    let portal = Portal::start();
    portal.knows(MAC);
    portal.offers(vec![OfferedChannel { archive_hours: 24, ..OfferedChannel::new(7, "One") }]);
    let now = Timestamp::now().as_second();
    let programme = |id: u32, start: i64| OfferedProgramme {
        id,
        channel: 7,
        start,
        stop: start + 600,
        name: format!("Programme {id}"),
    };
    portal.broadcasts((1..=40).map(|it| programme(it, now + (i64::from(it) - 30) * 600)).collect());
    portal.has_titles(
        vec![
            OfferedTitle::new(1, "Film", TitleForm::FilmWithFiles),
            OfferedTitle::new(2, "Numbers", TitleForm::Numbered(3)),
        ],
        Vec::new(),
    );
    let mut known = TestBox::at(&portal);
    known.shake_hands().await;
    let guide = known.ask(PortalQuestion::Guide { hours: 1 }).await;
    let (mut parser, mut names) = (PortalListParser::default(), Vec::new());
    let mut out = |it: Element<'_>| {
        let n_skipped = read_programmes(it, &TimeZone::UTC, &mut |channel, it| {
            names.push((channel.to_owned(), it.title().to_owned()));
        });
        assert_eq!(n_skipped, 0);
    };
    parser.push(&guide.bytes, &mut out);
    parser.finish(&mut out).unwrap();
    assert_eq!(names.first(), Some(&("7".to_owned(), "Programme 30".to_owned())));
    assert_eq!(names.len(), 11, "what is not over");

    let mut search = ProgrammeSearch::new(now - 20 * 600 + 5, &TimeZone::UTC).unwrap();
    let found = loop {
        let (date, page) = search.question();
        let answer = known.answer(PortalQuestion::Day { channel: "7", date: &date, page }).await.unwrap();
        match search.read(&answer) {
            SearchStep::Ask => {}
            step => break step,
        }
    };
    assert_eq!(found, SearchStep::Found("10".to_owned()));
    let server = SourceUrl::new("http://portal.example");
    let cmd = Secret::new("auto /media/10.mpg");
    let answer = known.answer(PortalQuestion::ArchiveLink { cmd: &cmd }).await.unwrap();
    let link = read_link(&answer, &server).unwrap();
    let path = link.expose().strip_prefix(&portal.provider.url("")).unwrap().to_owned();
    for _ in 0..2 {
        let answer =
            fetch(portal.provider.address, Request::get(path.clone()).header("Range", "bytes=5-9")).await;
        assert_eq!((answer.status(), answer.bytes.len()), (206, 5), "a link to a file opens again");
    }
    portal.expires_files();
    assert_eq!(fetch(portal.provider.address, Request::get(path)).await.status(), 404);

    let module = TitleModule::Vod;
    let categories = known.answer(PortalQuestion::Categories { module }).await.unwrap();
    assert!(read_genres(&categories)["4"].is_censored);
    let listed = known.answer(PortalQuestion::Titles { module, category: "3", page: 1 }).await.unwrap();
    let forms: Vec<bool> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| PortalTitle::read(it, module, (&server, &server)).unwrap().is_series)
        .collect();
    assert_eq!(forms, [false, true]);
    let files = PortalQuestion::Parts { module, title: "1", season: None, episode: None, page: 1 };
    let (cmd, needs_link) = file_command(&known.answer(files).await.unwrap()).unwrap();
    assert!(needs_link);
    let answer = known.answer(PortalQuestion::TitleLink { cmd: &cmd, number: None }).await.unwrap();
    assert!(read_link(&answer, &server).is_ok());
    let unknown = Secret::new("/media/77.mpg");
    let answer = known.answer(PortalQuestion::TitleLink { cmd: &unknown, number: None }).await.unwrap();
    assert_eq!(answer["error"], "nothing_to_play");
}
