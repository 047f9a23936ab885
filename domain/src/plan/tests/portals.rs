//! Plans of what a portal has.

use super::*;
use crate::egress::Distance;
use crate::portal::{MacAddress, PortalDevice, PortalMedia, PortalPlace, PortalStreamAddress};

#[test]
fn a_stream_of_a_portal_is_read_by_the_gateway_with_each_device_and_without_secret_headers() {
    let mut account = account(4, 3);
    account.list =
        PlaylistLocation::Portal(PortalPlace { server: SourceUrl::new("http://p.example"), endpoint: None });
    account.headers.set("X-Token", "secret");
    for (profile, end) in account.profiles.iter_mut().skip(1).zip(["01", "02"]) {
        let mac = MacAddress::parse(&format!("00:1A:79:00:00:{end}")).unwrap();
        (profile.device, profile.max_streams) = (Some(Box::new(PortalDevice::new(mac))), 0);
    }
    let address = PortalStreamAddress {
        media: PortalMedia::Channel,
        id: "7".to_owned(),
        cmd: Secret::new("auto http://localhost/7"),
        needs_link: true,
    };
    let url = address.url(&SourceUrl::new("http://p.example"));
    let mut ruled = stream(2, 4, url.expose());
    ruled.rule.url = Some(SourceUrl::new("stalker://p.example/itv/7"));
    let mut edited = stream(3, 4, url.expose());
    edited.manual.url = Some(SourceUrl::new("http://own.example/7.ts"));
    for delivery in [Delivery::Proxy, Delivery::Redirect, Delivery::Command] {
        for stream in [stream(1, 4, url.expose()), ruled.clone()] {
            let plan = plan_of(&[stream], std::slice::from_ref(&account), delivery);
            assert_eq!(
                order(&plan).iter().map(|it| it.1).collect::<Vec<_>>(),
                [42, 41],
                "those with a device"
            );
            for candidate in &plan.candidates {
                assert_eq!((&candidate.url, candidate.kind), (&url, SourceKind::HttpTs));
                assert_eq!((candidate.profile, &candidate.command), (Delivery::Proxy, &None));
                let foreign = Reach::named_by(Distance::Public, account.allowed_networks);
                assert_eq!(candidate.reach, foreign, "its links are as foreign as the entries of a playlist");
                assert_eq!(candidate.pool.max_streams, 1, "a box plays one stream");
                assert!(candidate.headers.extra.is_empty(), "{:?}", candidate.headers);
                assert!(candidate.headers.user_agent.as_ref().unwrap().contains("MAG200"));
            }
        }
    }
    let plan = plan_of(&[edited], std::slice::from_ref(&account), Delivery::Proxy);
    assert!(plan.candidates.iter().all(|it| it.url.expose() == "http://own.example/7.ts"));
    account.profiles.iter_mut().for_each(|it| it.device = None);
    let plan = plan_of(&[stream(1, 4, url.expose())], &[account], Delivery::Proxy);
    let reasons: Vec<_> = plan.unplayable.iter().map(|it| it.1.to_string()).collect();
    assert_eq!(reasons, ["the profile of its account has no MAC address"]);
    // The address is for the streams of portals alone.
    let plan = plan_of(&[stream(1, 4, url.expose())], &[self::account(4, 1)], Delivery::Proxy);
    assert!(plan.candidates.is_empty() && plan.unplayable.len() == 1);
}

#[test]
fn the_past_and_the_films_of_a_portal_are_read_by_the_gateway_with_each_device() {
    let mut account = account(4, 2);
    let server = SourceUrl::new("http://p.example");
    account.list = PlaylistLocation::Portal(PortalPlace { server: server.clone(), endpoint: None });
    let mac = MacAddress::parse("00:1A:79:00:00:01").unwrap();
    (account.profiles[1].device, account.profiles[1].max_streams) =
        (Some(Box::new(PortalDevice::new(mac))), 0);
    let (id, cmd) = ("7".to_owned(), Secret::new("auto http://localhost/7"));
    let address = |media| PortalStreamAddress { media, id: id.clone(), cmd: cmd.clone(), needs_link: true };
    let mut stream = stream(1, 4, address(PortalMedia::Channel).url(&server).expose());
    stream.provider.archive = Archive::from_portal(true, Some(48)).map(Box::new);
    let mut channel = Channel::new(ChannelId(1), Uuid::nil(), "News", 0);
    channel.streams = vec![stream.id];
    let records = records(&[stream], std::slice::from_ref(&account), Delivery::Redirect);
    let now = 1_800_000_000;
    let times = ArchiveTimes { start: now - 3_000, duration: 600, now };
    let programme = ArchivedProgramme { start: now - 3_600, catchup_id: "99".to_owned() };
    for (programme, at) in [(None, now - 3_000), (Some(&programme), now - 3_600)] {
        let found = plan_archive(&channel, times, programme, &records).unwrap();
        assert_eq!(found.len(), 1, "one profile has a device");
        let TitleCandidate { candidate, start, .. } = &found[0];
        let shown = PortalStreamAddress::shown(&candidate.url);
        assert_eq!((shown, *start), (Some(format!("stalker://p.example/archive/7?at={at}")), Some(at)));
        assert_eq!((candidate.profile, candidate.pool.max_streams), (Delivery::Proxy, 1));
    }
    let old = ArchiveTimes { start: now - 3 * 86_400, ..times };
    assert_eq!(plan_archive(&channel, old, None, &records), Err(ArchiveRefusal::TooOld { days: 2 }));

    let film = |cmd: &str| {
        let film =
            PortalStreamAddress { cmd: Secret::new(cmd), ..address(PortalMedia::Film { has_files: false }) };
        let version = TitleVersion {
            protection: None,
            account: account.id,
            kind: TitleFileKind::Movie,
            provider_id: "7".to_owned(),
            address: Some(film.url(&server)),
            extension: String::new(),
            is_stale: false,
        };
        plan_title("Film", &[version], &records)
    };
    let [first, other] = [film("/media/7.mpg"), film("/media/7.mpg?other")];
    assert_eq!((first.len(), first[0].candidate.profile), (1, Delivery::Proxy));
    assert!(PortalStreamAddress::is_one(&first[0].candidate.url));
    assert_eq!(first[0].file, other[0].file, "its command does not identify it");
}
