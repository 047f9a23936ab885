//! Tests of plans, previews and trials.

mod portals;
mod titles;

use super::*;
use crate::account::PlaylistLocation;
use crate::catchup::{Archive, ArchiveTimes};
use crate::entry_details::{OptionForm, PlayerOption};
use crate::panel::PanelLogin;
use crate::secret::Secret;
use crate::server_group::ServerGroup;
use crate::stream::StreamProperties;

fn stream(id: u32, account: u32, url: &str) -> Stream {
    let properties = StreamProperties::new(format!("stream {id}"), SourceUrl::new(url));
    Stream::new(StreamId(id), AccountId(account), properties, 0)
}

/// Creates an account whose profiles have the ids `id * 10`, `id * 10 + 1` …; the last one is the default.
fn account(id: u32, n_profiles: u32) -> Account {
    let profile = |it| AccountProfile {
        is_default: it + 1 == n_profiles,
        ..AccountProfile::default_of(ProfileId(id * 10 + it), "", it)
    };
    let first = AccountProfile::default_of(ProfileId(0), "", 0);
    Account {
        release_delay: Duration::from_secs(id.into()),
        profiles: (0..n_profiles).map(profile).collect(),
        ..Account::new(AccountId(id), format!("account {id}"), PlaylistLocation::None, first, 0)
    }
}

/// Records in memory.
struct TestRecords {
    streams: Vec<Stream>,
    accounts: Vec<Account>,
    profiles: Vec<StreamProfile>,
    default: Delivery,
    conditions: PlanContext,
    /// The ranks of files that are read with these account profiles.
    file_ranks: Vec<(ProfileId, u8)>,
    /// The address that all accounts use instead of their first one.
    active_address: Option<SourceUrl>,
    /// The form of addresses of all panels.
    live_form: LiveForm,
}

impl PlanRecords for TestRecords {
    fn stream(&self, id: StreamId) -> Option<Arc<Stream>> {
        self.streams.iter().find(|it| it.id == id).cloned().map(Arc::new)
    }

    fn account(&self, id: AccountId) -> Option<Arc<Account>> {
        self.accounts.iter().find(|it| it.id == id).cloned().map(Arc::new)
    }

    fn refresh(&self, _: AccountId) -> Option<Arc<RefreshRecord>> {
        None
    }

    fn server_group(&self, account: &Account) -> Option<ServerGroupMembers> {
        let group = ServerGroup { id: account.server_group?, name: "group".to_owned(), max_streams: 0 };
        Some(ServerGroupMembers::new(Arc::new(group), self.accounts.iter()))
    }

    fn stream_profile(&self, id: StreamProfileId) -> Option<Arc<StreamProfile>> {
        self.profiles.iter().find(|it| it.id == id && it.is_active).cloned().map(Arc::new)
    }

    fn default_profile(&self) -> Arc<StreamProfile> {
        Arc::new(StreamProfile::from_delivery(self.default))
    }

    fn conditions(&self) -> &PlanContext {
        &self.conditions
    }

    fn active_address(&self, _: &Account) -> Option<SourceUrl> {
        self.active_address.clone()
    }

    fn live_form(&self, _: &Account) -> LiveForm {
        self.live_form
    }

    /// Stream 3 is the healthiest; the others are equal.
    fn health_rank(&self, stream: StreamId) -> u8 {
        u8::from(stream != StreamId(3))
    }

    fn file_rank(&self, _: Uuid, profile: ProfileId) -> u8 {
        self.file_ranks.iter().find(|it| it.0 == profile).map_or(2, |it| it.1)
    }
}

fn records(streams: &[Stream], accounts: &[Account], default: Delivery) -> TestRecords {
    let profiles = StreamProfile::built_in().to_vec();
    let conditions = PlanContext::default();
    let (streams, accounts) = (streams.to_vec(), accounts.to_vec());
    TestRecords {
        streams,
        accounts,
        profiles,
        default,
        conditions,
        file_ranks: Vec::new(),
        active_address: None,
        live_form: LiveForm::default(),
    }
}

fn plan_of(streams: &[Stream], accounts: &[Account], default: Delivery) -> Plan {
    let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
    // One of them was deleted.
    channel.streams = streams.iter().map(|it| it.id).chain([StreamId(99)]).collect();
    plan_channel(&channel, &records(streams, accounts, default))
}

fn order(plan: &Plan) -> Vec<(u32, u32)> {
    plan.candidates.iter().map(|it| (it.stream.0, it.pool.profile.0)).collect()
}

#[test]
fn a_fragment_names_the_programme_and_is_never_sent() {
    let with = |url: &str, program| Stream { program, ..stream(1, 1, url) };
    let whole = "http://h/1.ts?a=b#program=2";
    for (stream, url, program) in [
        (with(whole, None), "http://h/1.ts?a=b", Some(2)),
        (with(whole, Some(7)), "http://h/1.ts?a=b", Some(7)),
        (with("http://h/1.ts", Some(7)), "http://h/1.ts", Some(7)),
        (with("udp://@239.0.0.1:1234#program=5", None), "udp://@239.0.0.1:1234", Some(5)),
        (with("http://h/1.ts#other", None), "http://h/1.ts#other", None),
    ] {
        for delivery in [Delivery::Proxy, Delivery::Redirect] {
            let plan = plan_of(std::slice::from_ref(&stream), &[account(1, 1)], delivery);
            let candidate = &plan.candidates[0];
            assert_eq!((candidate.url.expose(), candidate.program), (url, program));
        }
    }
    // A program gets the address without the number.
    let mut records = records(&[with("rtsp://h/1#program=2", None)], &[account(1, 1)], Delivery::Proxy);
    records.conditions.has_ffmpeg = true;
    let plan = plan_preview(&records.streams[0].clone(), &records);
    let arguments = plan.candidates[0].command.as_ref().map(|it| it.arguments.join(" ")).unwrap();
    assert!(arguments.contains("rtsp://h/1") && !arguments.contains('#'), "{arguments}");
}

/// Returns a stream whose playlist has these properties of Kodi.
fn protected(url: &str, options: &[(&str, &str)]) -> Stream {
    let option = |it: &(&str, &str)| PlayerOption {
        form: OptionForm::Kodi,
        name: it.0.to_owned(),
        value: it.1.to_owned(),
    };
    let options = options.iter().map(option).collect();
    let mut stream = stream(1, 1, url);
    stream.provider.details = Some(Box::new(EntryDetails { options, ..EntryDetails::default() }));
    stream
}

#[test]
fn a_protected_stream_is_refused_by_name_or_left_to_players() {
    const KEY: (&str, &str) =
        ("license_key", "00112233445566778899aabbccddeeff:ffeeddccbbaa99887766554433221100");
    let widevine = [("license_type", "com.widevine.alpha"), ("license_key", "https://l.example/secret")];
    for (url, options, part) in [
        ("http://h/1.mpd", &widevine[..], "Widevine"),
        ("http://h/1.mpd", &[("license_type", "playready")], "PlayReady"),
        ("http://h/1.mpd", &[("license_key", "https://l.example/secret")], "DRM"),
        (
            "http://h/1.mpd",
            &[("license_type", "clearkey"), ("license_key", "https://l.example/secret")],
            "ClearKey",
        ),
        ("http://h/1.ts", &[KEY], "ClearKey"),
        ("http://h/1.mpd", &[KEY], "ffmpeg is not installed"),
    ] {
        let stream = protected(url, options);
        let plan = plan_of(std::slice::from_ref(&stream), &[account(1, 1)], Delivery::Proxy);
        let why = plan.unplayable.first().map(|it| it.1.to_string()).unwrap_or_default();
        assert!(plan.candidates.is_empty() && why.contains(part) && !why.contains("secret"), "{url}: {why}");
        assert_eq!(plan.for_players.as_ref().map(|it| it.url.expose()), Some(url));
        assert_eq!(playback_problem(&stream, &PlanContext::default()).map(|it| it.to_string()), Some(why));
        let redirected = plan_of(&[stream], &[account(1, 1)], Delivery::Redirect);
        assert_eq!(redirected.candidates.len(), 1, "a player may decrypt it");
    }
    for (url, options) in
        [("http://h/1.mpd", &[KEY][..]), ("http://h/live", &[KEY, ("manifest_type", "mpd")])]
    {
        let mut records = records(&[protected(url, options)], &[account(1, 1)], Delivery::Proxy);
        records.conditions.has_ffmpeg = true;
        let plan = plan_preview(&records.streams[0].clone(), &records);
        let argv = plan.candidates[0].command.clone().unwrap();
        assert!(argv.input.is_some_and(|it| it.expose().contains(url)), "{url}");
        assert!(!argv.arguments.iter().any(|it| it.contains("ffeedd")), "{:?}", argv.arguments);
    }
    // An admin who changes the address may have another stream.
    let mut changed = protected("http://h/1.mpd", &widevine);
    changed.manual.url = Some(SourceUrl::new("http://h/2.ts"));
    assert_eq!(plan_of(&[changed], &[account(1, 1)], Delivery::Proxy).candidates.len(), 1);
}

#[test]
fn a_page_of_a_video_site_has_its_program() {
    let page =
        |stream_profile| Stream { stream_profile, ..stream(1, 1, "https://www.youtube.com/watch?v=a") };
    let program = |page: Stream, default, has_streamlink| {
        let mut records = records(&[page], &[account(1, 1)], default);
        records.conditions.has_streamlink = has_streamlink;
        let plan = plan_preview(&records.streams[0].clone(), &records);
        let command = plan.candidates.first().map(|it| it.command.clone().map(|it| it.program));
        (command.flatten(), plan.unplayable.first().map(|it| it.1))
    };
    let streamlink = Some("streamlink".to_owned());
    for default in [Delivery::Proxy, Delivery::Redirect] {
        assert_eq!(program(page(None), default, true), (streamlink.clone(), None));
        assert_eq!(program(page(None), default, false), (None, Some(Unplayable::PAGE)));
    }
    assert_eq!(program(page(Some(StreamProfile::STREAMLINK)), Delivery::Proxy, true).0, streamlink);
    // Whatever an admin chooses is done.
    assert_eq!(program(page(Some(StreamProfileId(1))), Delivery::Proxy, true), (None, None));
    let ffmpeg = Some("ffmpeg".to_owned());
    assert_eq!(program(page(None), Delivery::Command, true), (ffmpeg, None));
    let context = PlanContext { has_streamlink: true, ..PlanContext::default() };
    assert_eq!(playback_problem(&page(None), &PlanContext::default()), Some(Unplayable::PAGE));
    assert_eq!(playback_problem(&page(None), &context), None);
}

#[test]
fn headers_of_an_admin_come_before_those_of_the_playlist() {
    let mut account = account(1, 1);
    let mut stream = stream(1, 1, "http://h/1.ts");
    let headers = [
        (&mut account.headers, [("User-Agent", "account"), ("X-A", "account"), ("X-C", "account")]),
        (&mut stream.provider.headers, [("User-Agent", "list"), ("X-A", "list"), ("X-B", "list")]),
        (&mut stream.manual.headers, [("User-Agent", "admin"), ("X-A", "admin"), ("X-D", "admin")]),
    ];
    for (place, values) in headers {
        values.into_iter().for_each(|(name, value)| assert!(place.set(name, value)));
    }
    let plan = plan_of(&[stream], &[account], Delivery::Proxy);
    let RequestHeaders { user_agent, extra, .. } = &plan.candidates[0].headers;
    assert_eq!(user_agent.as_deref(), Some("admin"));
    let extra: Vec<_> = extra.iter().map(|it| format!("{}={}", it.0, it.1)).collect();
    assert_eq!(extra, ["X-A=admin", "X-D=admin", "X-B=list", "X-C=account"]);
}

#[test]
fn the_stream_profile_of_an_account_counts_after_those_of_stream_and_channel() {
    let redirect = StreamProfile::from_delivery(Delivery::Redirect).id;
    let proxy = StreamProfile::from_delivery(Delivery::Proxy).id;
    for (of_stream, of_channel, of_account, expected) in [
        (None, None, None, Delivery::Proxy),
        (None, None, Some(redirect), Delivery::Redirect),
        (None, Some(proxy), Some(redirect), Delivery::Proxy),
        (Some(redirect), Some(proxy), Some(proxy), Delivery::Redirect),
        (Some(proxy), None, Some(redirect), Delivery::Proxy),
        (None, None, Some(StreamProfileId(99)), Delivery::Proxy),
    ] {
        let stream = Stream { stream_profile: of_stream, ..stream(1, 1, "http://h/1.ts") };
        let account = Account { stream_profile: of_account, ..account(1, 1) };
        let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
        (channel.streams, channel.stream_profile) = (vec![stream.id], of_channel);
        let plan = plan_channel(&channel, &records(&[stream], &[account], Delivery::Proxy));
        assert_eq!(plan.candidates[0].profile, expected, "{of_stream:?} {of_channel:?} {of_account:?}");
    }
}

#[test]
fn candidates_are_the_streams_in_order_with_the_profiles_of_their_accounts_default_first() {
    let streams = [stream(2, 1, "http://h/2"), stream(1, 2, "http://h/1"), stream(3, 1, "http://h/3")];
    let plan = plan_of(&streams, &[account(1, 2), account(2, 1)], Delivery::Proxy);
    assert_eq!(order(&plan), [(2, 11), (2, 10), (1, 20), (3, 11), (3, 10)]);
    let pool = &plan.candidates[0].pool;
    assert_eq!(
        (pool.max_streams, pool.account_name.as_str(), pool.release_delay.as_secs()),
        (1, "account 1", 1)
    );
}

#[test]
fn the_healthiest_streams_come_first_if_the_channel_says_so() {
    let streams = [stream(2, 1, "http://h/2"), stream(1, 1, "http://h/1"), stream(3, 1, "http://h/3")];
    let records = records(&streams, &[account(1, 1)], Delivery::Proxy);
    let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
    channel.streams = streams.iter().map(|it| it.id).collect();
    assert_eq!(order(&plan_channel(&channel, &records)), [(2, 10), (1, 10), (3, 10)]);
    channel.healthiest_first = true;
    assert_eq!(order(&plan_channel(&channel, &records)), [(3, 10), (2, 10), (1, 10)]);
}

#[test]
fn a_part_of_the_past_comes_from_the_archives_that_are_deep_enough() {
    let now = 1_800_000_000;
    let archived = |id: u32, account: u32, days: i64| {
        let mut stream = stream(id, account, &format!("http://h{account}/live/u/p/{id}.ts"));
        stream.provider.archive = Archive::from_panel(true, Some(days)).map(Box::new);
        stream
    };
    let streams = [archived(1, 1, 2), stream(2, 2, "http://h2/live/u/p/2.ts"), archived(3, 2, 7)];
    let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
    channel.streams = streams.iter().map(|it| it.id).collect();
    let records = records(&streams, &[account(1, 1), account(2, 2)], Delivery::Proxy);
    let urls = |days: i64| {
        let times = ArchiveTimes { start: now - days * 86_400, duration: 3_600, now };
        let candidates = plan_archive(&channel, times, None, &records);
        candidates.map(|it| it.iter().map(|it| it.candidate.url.expose().to_owned()).collect::<Vec<_>>())
    };
    let of_day =
        |host: &str, id: u32, day: u32| format!("http://{host}/timeshift/u/p/60/2027-01-{day}:08-00/{id}.ts");
    assert_eq!(urls(1), Ok(vec![of_day("h1", 1, 14), of_day("h2", 3, 14), of_day("h2", 3, 14)]));
    assert_eq!(urls(3), Ok(vec![of_day("h2", 3, 12), of_day("h2", 3, 12)]));
    assert_eq!(urls(8), Err(ArchiveRefusal::TooOld { days: 7 }));
    assert_eq!(urls(-1), Err(ArchiveRefusal::Future));
    channel.streams = vec![StreamId(2)];
    let times = ArchiveTimes { start: now - 60, duration: 60, now };
    assert_eq!(plan_archive(&channel, times, None, &records), Err(ArchiveRefusal::NoArchive));
}

#[test]
fn a_preview_has_one_stream_with_every_profile_of_its_account_and_its_own_uuid() {
    let preview_of = |id| {
        let stream = stream(id, 1, "http://h/x");
        plan_preview(&stream, &records(std::slice::from_ref(&stream), &[account(1, 2)], Delivery::Proxy))
    };
    assert_eq!(order(&preview_of(7)), [(7, 11), (7, 10)]);
    assert_ne!(preview_of(7).uuid, preview_of(8).uuid);
}

#[test]
fn streams_of_an_account_are_played_at_the_address_in_use() {
    let mut account = account(1, 1);
    account.list = PlaylistLocation::Url(SourceUrl::new("http://tv.example/get.php?username=u"));
    account.further_addresses = vec![SourceUrl::new("http://backup.example:8080")];
    let streams = [
        stream(1, 1, "http://tv.example/live/u/p/1.ts"),
        stream(2, 1, "http://tv.example/live/u/p/2.m3u8"),
        stream(3, 1, "http://cdn.example/3.ts"),
    ];
    let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
    channel.streams = streams.iter().map(|it| it.id).collect();
    let mut records = records(&streams, &[account], Delivery::Proxy);
    records.conditions.has_ffmpeg = true;
    let first = plan_channel(&channel, &records);
    records.active_address = Some(SourceUrl::new("http://backup.example:8080"));
    let plan = plan_channel(&channel, &records);
    let urls: Vec<_> = plan.candidates.iter().map(|it| it.url.expose()).collect();
    assert_eq!(
        urls,
        [
            "http://backup.example:8080/live/u/p/1.ts",
            "http://backup.example:8080/live/u/p/2.m3u8",
            "http://cdn.example/3.ts"
        ]
    );
    for (before, after) in first.candidates.iter().zip(&plan.candidates) {
        assert_eq!((before.reach, &before.headers, &before.pool), (after.reach, &after.headers, &after.pool));
    }
}

#[test]
fn live_streams_of_a_panel_are_asked_for_in_the_form_in_force() {
    let login = PanelLogin {
        server: SourceUrl::new("http://tv.example"),
        username: "u".to_owned(),
        password: Secret::new("p"),
    };
    let panel = Account { list: PlaylistLocation::Panel(login), ..account(1, 1) };
    let url_of = |id: u32| format!("http://tv.example/live/u/p/{id}.ts");
    let mut edited = stream(2, 1, &url_of(2));
    edited.manual.url = Some(SourceUrl::new(url_of(22)));
    let mut ruled = stream(3, 1, &url_of(3));
    ruled.rule.url = Some(SourceUrl::new("https://other.example/live/u/p/3.ts"));
    let mut reformed = stream(4, 1, &url_of(4));
    reformed.rule.url = Some(SourceUrl::new("http://tv.example/u/p/4"));
    let streams = [stream(1, 1, &url_of(1)), edited, ruled, reformed, stream(5, 1, "http://tv.example/x.ts")];
    let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
    channel.streams = streams.iter().map(|it| it.id).collect();
    let check = |account: &Account, form: LiveForm, delivery: Delivery, expected: [(&str, bool); 5]| {
        let mut records = records(&streams, std::slice::from_ref(account), delivery);
        records.live_form = form;
        let plan = plan_channel(&channel, &records);
        for (candidate, (url, is_open)) in plan.candidates.iter().zip(expected) {
            assert_eq!(candidate.url.expose(), url, "{form:?}");
            assert_eq!(candidate.live_form, is_open.then_some(form), "{form:?} {url} {delivery:?}");
            assert_eq!(candidate.kind, SourceKind::from_url(&candidate.url));
        }
        assert_eq!(plan.candidates.len(), 5);
    };
    let expected = |end: &str, is_open: bool| {
        let ends =
            [format!("http://tv.example/live/u/p/1{end}"), format!("https://other.example/live/u/p/3{end}")];
        (ends, is_open)
    };
    for form in LiveForm::ALL {
        for (chosen, delivery) in
            [(None, Delivery::Proxy), (Some(form), Delivery::Proxy), (None, Delivery::Redirect)]
        {
            let account = Account { live_form: chosen, ..panel.clone() };
            let ([first, third], is_open) =
                expected(form.ending(), chosen.is_none() && delivery == Delivery::Proxy);
            let edited = url_of(22);
            let all = [
                (first.as_str(), is_open),
                (edited.as_str(), false),
                (third.as_str(), is_open),
                ("http://tv.example/u/p/4", false),
                ("http://tv.example/x.ts", false),
            ];
            check(&account, form, delivery, all);
        }
    }
    // The streams of a playlist keep their addresses.
    let listed =
        Account { list: PlaylistLocation::Url(SourceUrl::new("http://tv.example/get.php")), ..account(1, 1) };
    let [first, edited] = [url_of(1), url_of(22)];
    let all = [
        (first.as_str(), false),
        (edited.as_str(), false),
        ("https://other.example/live/u/p/3.ts", false),
        ("http://tv.example/u/p/4", false),
        ("http://tv.example/x.ts", false),
    ];
    check(&listed, LiveForm::M3u8, Delivery::Proxy, all);
}

/// The provider must never see the real address of the gateway or of a viewer.
#[test]
fn a_stream_that_the_proxy_of_its_account_cannot_carry_is_refused() {
    let check = |proxy: &str, url: &str, profile: u32, expected: Option<(Delivery, bool)>| {
        let mut account = account(1, 1);
        account.proxy = Some(ProxyAddress::parse(proxy).unwrap());
        let mut stream = stream(1, 1, url);
        stream.stream_profile = Some(StreamProfileId(profile));
        let mut records = records(&[stream.clone()], &[account], Delivery::Proxy);
        records.conditions.has_ffmpeg = true;
        let plan = plan_preview(&stream, &records);
        let found = plan.candidates.first().map(|it| {
            let arguments = it.command.iter().flat_map(|it| &it.arguments).cloned().collect::<Vec<_>>();
            let has_proxy = arguments.windows(2).any(|it| it[0] == "-http_proxy" && it[1] == proxy);
            (it.profile, has_proxy)
        });
        assert_eq!(found, expected, "{proxy} {url} {profile}");
        assert_eq!(plan.unplayable.is_empty(), expected.is_some());
    };
    let id_of = |delivery: Delivery| {
        StreamProfile::built_in().iter().find(|it| it.delivery == delivery).unwrap().id.0
    };
    let (proxied, redirected) = (id_of(Delivery::Proxy), id_of(Delivery::Redirect));
    let program = StreamProfile::built_in().iter().find(|it| it.command == "ffmpeg").unwrap().id.0;
    let (http, socks) = ("http://u:p@proxy:3128", "socks5://u:p@proxy:1080");
    for proxy in [http, socks, "https://proxy:443"] {
        check(proxy, "http://tv/1.ts", proxied, Some((Delivery::Proxy, false)));
        check(proxy, "http://tv/1.ts", redirected, Some((Delivery::Proxy, false)));
        for url in ["rtsp://tv/1", "udp://@239.0.0.1:1", "rtmp://tv/1", "srt://tv:1"] {
            check(proxy, url, proxied, None);
            check(proxy, url, program, None);
        }
        check(proxy, "file:///a.ts", proxied, Some((Delivery::Proxy, false)));
    }
    check(http, "http://tv/1.ts", program, Some((Delivery::Command, true)));
    check(socks, "http://tv/1.ts", program, None);
}

#[test]
fn a_trial_overrides_the_profile_of_the_stream() {
    let account = account(1, 2);
    let mut stream = stream(1, 1, "http://h/1.ts");
    stream.stream_profile = Some(StreamProfileId(2));
    for mut profile in StreamProfile::built_in() {
        (profile.is_active, profile.user_agent) = (false, Some("agent".to_owned()));
        let plan = plan_trial(
            &stream,
            &account,
            None,
            None,
            TrialAddresses::default(),
            &profile,
            PlanContext::default(),
        );
        assert_eq!(order(&plan), [(1, 11), (1, 10)]);
        let candidate = &plan.candidates[0];
        assert_eq!(candidate.profile, profile.delivery);
        assert_eq!(candidate.headers.user_agent.as_deref(), Some("agent"));
        let program = candidate.command.as_ref().map(|it| it.program.as_str());
        assert_eq!(program.unwrap_or_default(), profile.command);
    }
}

#[test]
fn a_streams_profile_overrides_its_channels_and_an_inactive_profile_is_ignored() {
    let mut redirected = stream(1, 1, "http://h/1");
    redirected.stream_profile = Some(StreamProfileId(2));
    let mut records = records(&[redirected], &[account(1, 1)], Delivery::Proxy);
    let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
    channel.streams = vec![StreamId(1)];
    channel.stream_profile = Some(StreamProfileId(1));
    assert_eq!(plan_channel(&channel, &records).candidates[0].profile, Delivery::Redirect);
    records.profiles[1].is_active = false;
    records.profiles[0].user_agent = Some("agent".to_owned());
    let candidate = plan_channel(&channel, &records).candidates.remove(0);
    assert_eq!(candidate.profile, Delivery::Proxy);
    assert_eq!(candidate.headers.user_agent.as_deref(), Some("agent"));
}

#[test]
fn the_user_agent_is_that_of_the_profile_else_the_stream_else_the_account_else_the_gateway() {
    let check = |[profile, stream_says, account_says, gateway]: [Option<&str>; 4], expected: Option<&str>| {
        let (mut stream, mut account) = (stream(1, 1, "http://h/1"), account(1, 1));
        let own = |it: Option<&str>| it.map(str::to_owned);
        stream.provider.headers.user_agent = own(stream_says);
        account.headers.user_agent = own(account_says);
        let mut records = records(&[stream], &[account], Delivery::Proxy);
        records.conditions.user_agent = own(gateway);
        records.profiles[0].user_agent = own(profile);
        let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
        channel.streams = vec![StreamId(1)];
        channel.stream_profile = Some(records.profiles[0].id);
        let candidate = plan_channel(&channel, &records).candidates.remove(0);
        assert_eq!(candidate.headers.user_agent.as_deref(), expected);
    };
    check([Some("p"), Some("s"), Some("a"), Some("g")], Some("p"));
    check([None, Some("s"), Some("a"), Some("g")], Some("s"));
    check([None, None, Some("a"), Some("g")], Some("a"));
    check([None, None, None, Some("g")], Some("g"));
    check([None; 4], None);
}

#[test]
fn inactive_and_deleted_records_are_omitted() {
    let streams = [stream(1, 1, "http://h/1"), stream(2, 2, "http://h/2"), stream(3, 3, "http://h/3")];
    let (mut one, mut two) = (account(1, 2), account(2, 1));
    one.profiles[1].is_active = false;
    two.is_active = false;
    let plan = plan_of(&streams, &[one, two], Delivery::Proxy);
    assert_eq!(order(&plan), [(1, 10)]);
    assert_eq!(plan.unplayable, []);
}

#[test]
fn an_unplayable_stream_is_omitted_and_reported_once() {
    let streams = [stream(1, 1, "http://h/1.mpd"), stream(2, 1, "rtsp://h/2"), stream(3, 1, "http://h/3")];
    let plan = plan_of(&streams, &[account(1, 2)], Delivery::Proxy);
    assert_eq!(order(&plan), [(3, 11), (3, 10)]);
    let reasons: Vec<_> = plan.unplayable.iter().map(|(id, reason)| format!("{id}: {reason}")).collect();
    assert_eq!(
        reasons,
        [
            "1: DASH addresses need ffmpeg, which is not installed",
            "2: RTSP addresses need ffmpeg, which is not installed"
        ]
    );
}

#[test]
fn streams_that_the_gateway_cannot_read_are_read_by_ffmpeg_if_installed() {
    let check = |url: &str, default, delivery: Option<Delivery>| {
        let streams = [stream(1, 1, url)];
        let mut records = records(&streams, &[account(1, 1)], default);
        records.conditions.has_ffmpeg = true;
        let plan = plan_preview(&streams[0], &records);
        let candidate = plan.candidates.first();
        assert_eq!(candidate.map(|it| it.profile), delivery, "{url}");
        let command = candidate.and_then(|it| it.command.as_ref());
        assert_eq!(command.is_some(), delivery == Some(Delivery::Command), "{url}");
        if let Some(command) = command {
            assert_eq!(command.program, "ffmpeg");
            assert!(command.arguments.iter().any(|it| it == url), "{url}");
        }
    };
    for url in ["http://h/1.mpd", "rtsp://h/1", "rtmp://h/1", "srt://h:1"] {
        check(url, Delivery::Proxy, Some(Delivery::Command));
    }
    for url in ["udp://@239.0.0.1:1", "rtp://@[ff15::1]:1", "udp://@:1234"] {
        check(url, Delivery::Proxy, Some(Delivery::Proxy));
        check(url, Delivery::Redirect, Some(Delivery::Proxy));
        check(url, Delivery::Command, Some(Delivery::Command));
    }
    check("http://h/1.ts", Delivery::Proxy, Some(Delivery::Proxy));
    check("http://h/1.m3u8", Delivery::Proxy, Some(Delivery::Proxy));
    check("file:///1.ts", Delivery::Proxy, Some(Delivery::Proxy));
    check("rist://h:1", Delivery::Proxy, None);
    check("http://h/1.m3u8", Delivery::Redirect, Some(Delivery::Redirect));
    check("rtsp://h/1", Delivery::Redirect, Some(Delivery::Command));
    check("http://h/1.ts", Delivery::Command, Some(Delivery::Command));
    check("http://h/1.m3u8", Delivery::Command, Some(Delivery::Command));
    check("srt://h:1", Delivery::Command, Some(Delivery::Command));
    for url in ["-f", "/etc/passwd", "concat:///etc/passwd", "crypto+file:///x", "subfile,,:/x", "pipe://0"] {
        check(url, Delivery::Command, None);
    }
}

#[test]
fn only_a_list_that_is_a_file_of_the_operator_names_local_files_for_programs() {
    let network = PlaylistLocation::Url(SourceUrl::new("http://provider.example/list.m3u"));
    let own = PlaylistLocation::File("/srv/list.m3u".to_owned());
    let check = |url: &str, list: &PlaylistLocation, default, is_played: bool| {
        let account = Account { list: list.clone(), ..account(1, 1) };
        let plan = plan_of(&[stream(1, 1, url)], &[account], default);
        assert_eq!(plan.candidates.len(), usize::from(is_played), "{url} {list:?} {default}");
        assert_eq!(plan.unplayable.len(), usize::from(!is_played), "{url} {list:?} {default}");
    };
    for url in
        ["http://h/1", "HTTPS://h/1", "rtsps://h/1", "rtmpte://h/1", "srt://h:1", "rist://h:1", "mms://h/1"]
    {
        check(url, &network, Delivery::Command, true);
    }
    let forms = [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "hls+file:///etc/passwd",
        "hls+http://h/1",
        "hls://file:///etc/passwd",
        "async://file:///etc/passwd",
        "cache://file:///etc/passwd",
        "concat://file:///etc/passwd",
        "concatf://h/1",
        "crypto+file:///etc/passwd",
        "data://text/plain,1",
        "fd://0",
        "ftp://h/1",
        "gopher://h/1",
        "ipfs://h/1",
        "pipe://0",
        "tcp://h:1",
        "unix:///run/x",
        "lavfi://x",
        "unheard-of://x",
    ];
    for url in forms {
        check(url, &network, Delivery::Command, false);
        check(url, &own, Delivery::Command, true);
    }
    for url in
        ["concat:/etc/passwd", "subfile,,start,0,end,0,,:/etc/passwd", "-filter_complex", "/etc/passwd"]
    {
        check(url, &network, Delivery::Command, false);
        check(url, &own, Delivery::Command, false);
    }
    // The gateway itself reads files too.
    check("file:///srv/1.ts", &network, Delivery::Proxy, false);
    check("file:///srv/1.ts", &network, Delivery::Redirect, false);
    check("file:///srv/1.ts", &own, Delivery::Proxy, true);
}

#[test]
fn ffmpeg_gets_the_referrer_of_a_dash_address() {
    let mut dash = stream(1, 1, "http://h/1.mpd");
    assert!(dash.provider.headers.set("Referer", "http://site.example/"));
    let mut records = records(&[dash], &[account(1, 1)], Delivery::Proxy);
    records.conditions.has_ffmpeg = true;
    let plan = plan_preview(&records.streams[0], &records);
    let arguments = plan.candidates[0].command.clone().unwrap().arguments;
    let at = arguments.iter().position(|it| it == "-referer").unwrap();
    assert_eq!(arguments[at + 1], "http://site.example/");
}

#[test]
fn ffmpeg_may_open_local_files_only_for_an_address_that_is_one() {
    let whitelist = |url: &str| {
        let account = Account { list: PlaylistLocation::File("/srv/list.m3u".to_owned()), ..account(1, 1) };
        let plan = plan_of(&[stream(1, 1, url)], &[account], Delivery::Command);
        let arguments = plan.candidates[0].command.clone().unwrap().arguments;
        let at = arguments.iter().position(|it| it == "-protocol_whitelist").unwrap();
        assert!(at < arguments.iter().position(|it| it == "-i").unwrap(), "an option of the input");
        arguments[at + 1].split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    let allows = |url: &str, protocol: &str| whitelist(url).iter().any(|it| it == protocol);
    for url in ["http://h/1.m3u8", "rtsp://h/1", "srt://h:1"] {
        for local in ["file", "async", "cache", "concat", "concatf", "fd", "pipe", "subfile", "tee", "unix"] {
            assert!(!allows(url, local), "{url}: {local}");
        }
        for used in ["http", "https", "tcp", "tls", "crypto", "udp", "rtp"] {
            assert!(allows(url, used), "{url}: {used}");
        }
    }
    assert!(allows("file:///srv/1.m3u8", "file") && allows("file:///srv/1.m3u8", "http"));
}

#[test]
fn a_program_gets_the_address_the_channel_and_the_user_agent_in_force() {
    let mut one = stream(1, 1, "http://h/a b");
    one.stream_profile = Some(StreamProfileId(9));
    let mut records = records(&[one], &[account(1, 1)], Delivery::Proxy);
    records.profiles.push(StreamProfile {
        id: StreamProfileId(9),
        command: "/opt/x".to_owned(),
        parameters: "-a {userAgent} {channelId} {streamUrl}".to_owned(),
        user_agent: Some("agent 1".to_owned()),
        ..StreamProfile::from_delivery(Delivery::Command)
    });
    let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
    channel.streams = vec![StreamId(1)];
    let command =
        |records: &TestRecords| plan_channel(&channel, records).candidates.remove(0).command.unwrap();
    let id = Uuid::nil().to_string();
    assert_eq!(command(&records).program, "/opt/x");
    assert_eq!(command(&records).arguments, ["-a", "agent 1", id.as_str(), "http://h/a b"]);
    records.streams[0].provider.url = SourceUrl::new("udp://@239.0.0.1:1");
    assert_eq!(command(&records).arguments, [id.as_str(), "udp://@239.0.0.1:1"]);
}

#[test]
fn an_account_profile_plays_the_streams_of_the_account_with_its_own_login() {
    let urls = |find: &str, replace: &str| {
        let mut account = account(1, 2);
        account.profiles[0].search_pattern = find.to_owned();
        account.profiles[0].replace_pattern = replace.to_owned();
        let streams = [stream(1, 1, "http://h/live/u/p/1.ts"), stream(2, 1, "http://h/other/2")];
        let plan = plan_of(&streams, &[account], Delivery::Proxy);
        plan.candidates.iter().map(|it| it.url.expose().to_owned()).collect::<Vec<_>>()
    };
    let same = ["http://h/live/u/p/1.ts", "http://h/live/u/p/1.ts", "http://h/other/2", "http://h/other/2"];
    assert_eq!(urls("", ""), same);
    assert_eq!(urls("/u/p/", "/u2/p2/")[..2], ["http://h/live/u/p/1.ts", "http://h/live/u2/p2/1.ts"]);
    assert_eq!(urls("/u/p/", "/u2/p2/")[2..], same[2..], "an address that does not match stays");
    assert_eq!(urls("^(http://)[^/]+/live/[^/]+/[^/]+/", r"\1h2/live/a/b/")[1], "http://h2/live/a/b/1.ts");
    assert_eq!(urls("(", "x"), same, "a pattern that cannot be used leaves the address alone");
}

#[test]
fn the_rewritten_address_decides_whether_a_stream_can_be_played() {
    let mut account = account(1, 2);
    account.profiles[0].search_pattern = "mpd$".to_owned();
    account.profiles[0].replace_pattern = "ts".to_owned();
    let plan = plan_of(&[stream(1, 1, "http://h/1.mpd")], &[account], Delivery::Proxy);
    assert_eq!((order(&plan), plan.candidates[0].kind), (vec![(1, 10)], SourceKind::HttpTs));
    assert_eq!(plan.unplayable, []);
}

#[test]
fn a_viewer_is_redirected_to_http_addresses_but_never_to_local_files() {
    let streams =
        [stream(1, 1, "http://h/1.m3u8"), stream(2, 1, "file:///secret/2.ts"), stream(3, 1, "rtp://h:1")];
    let plan = plan_of(&streams, &[account(1, 1)], Delivery::Redirect);
    let redirects: Vec<_> =
        plan.candidates.iter().map(|it| (it.stream.0, it.playout_candidate().redirect)).collect();
    assert_eq!(redirects, [(1, true), (2, false), (3, false)]);
    assert_eq!(plan.unplayable, []);
}

/// A refusal by late counting delays a viewer only where nothing else can be tried.
#[test]
fn a_provider_that_counts_late_is_waited_for_only_if_all_candidates_share_its_pool() {
    let check = |profiles: &[(u32, u32)], expected| {
        let mut candidates =
            plan_of(&[stream(1, 1, "http://h/1")], &[account(1, 1)], Delivery::Proxy).candidates;
        let candidate = candidates.remove(0);
        let with = |&(profile, max_streams): &(u32, u32)| {
            let scope = LimitScope::Login(profile.into());
            let pool = SlotPool { profile: ProfileId(profile), max_streams, scope, ..candidate.pool.clone() };
            Candidate { pool, ..candidate.clone() }
        };
        let mut plan = plan_of(&[], &[], Delivery::Proxy);
        plan.candidates = profiles.iter().map(with).collect();
        assert_eq!(plan.waits_for_release(&plan.candidates[0].pool), expected, "{profiles:?}");
    };
    check(&[(1, 1)], true);
    check(&[(1, 1), (1, 1)], true);
    check(&[(1, 1), (2, 1)], false);
    check(&[(1, 0)], true);
    check(&[(1, 0), (2, 0)], false);
}

#[test]
fn accounts_of_a_server_group_share_a_pool_with_its_limit_or_that_of_the_profile() {
    let grouped = |id| Account { server_group: Some(ServerGroupId(7)), ..account(id, 3) };
    let accounts = [grouped(1), account(2, 1), grouped(3)];
    let plan = plan_of(
        &[stream(1, 1, "http://h/1"), stream(2, 2, "http://h/2"), stream(3, 3, "http://h/3")],
        &accounts,
        Delivery::Proxy,
    );
    let shared = |it: &Candidate| it.pool.shared.as_ref().map(|it| (it.max_streams, it.accounts.to_vec()));
    let both = vec![AccountId(1), AccountId(3)];
    let pools: Vec<_> = plan.candidates.iter().map(|it| (it.pool.profile.0, shared(it))).collect();
    let of = |profile: u32, max| (profile, Some((max, both.clone())));
    assert_eq!(pools, [of(12, 2), of(10, 0), of(11, 1), (20, None), of(32, 2), of(30, 0), of(31, 1)]);
    let pool = |at: usize| &plan.candidates[at].pool;
    assert!(pool(0).shares_limit_with(pool(4)) && !pool(0).shares_limit_with(pool(3)));
}
