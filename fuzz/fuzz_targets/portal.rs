//! Answers of portals of any kind: nothing panics, every value is within its limits, the split into pieces makes no
//! difference, and no value of the device is in a message. The addresses that are stored are read again, and programmes do
//! not end before they begin.
#![no_main]

use domain::ids::VodCategoryId;
use domain::panel::Element;
use domain::portal::{
    GUIDE_CHANNEL_BYTES_MAX, MacAddress, PortalDevice, PortalError, PortalList, PortalListParser,
    PortalMedia, PortalProfileState, PortalStreamAddress, PortalTitle, TitleModule, expiry_of, file_command,
    link_in, pasted_address, read_answer, read_channel, read_genres, read_handshake, read_link, read_login,
    read_profile, read_programmes,
};
use domain::source_url::SourceUrl;
use jiff::tz::TimeZone;
use libfuzzer_sys::fuzz_target;

/// A small limit, so that small inputs reach it.
const ELEMENT_BYTES_MAX: usize = 128;
const MAC: &str = "00:1A:79:AB:CD:EF";

type Split = (Vec<Option<Vec<u8>>>, Result<PortalList, PortalError>);

fn split(list: &[u8], piece: usize) -> Split {
    let mut elements = Vec::new();
    let mut parser = PortalListParser::new(ELEMENT_BYTES_MAX);
    let mut out = |element: Element<'_>| {
        elements.push(match element {
            Element::Value { json, .. } => {
                assert!(json.len() <= ELEMENT_BYTES_MAX);
                Some(json.to_vec())
            }
            Element::TooLong => None,
        });
    };
    for bytes in list.chunks(piece) {
        parser.push(bytes, &mut out);
    }
    let end = parser.finish(&mut out);
    (elements, end)
}

/// Programmes have a title, and do not end before they begin or last for longer than a week.
fn check_guide(answer: &[u8]) {
    let mut parser = PortalListParser::new(GUIDE_CHANNEL_BYTES_MAX);
    let mut out = |element: Element<'_>| {
        read_programmes(element, &TimeZone::UTC, &mut |channel, it| {
            assert!(!channel.is_empty() && !it.title().is_empty());
            assert!(it.start > 0 && (it.start..=it.start + 7 * 86_400).contains(&it.stop));
            assert!(it.credits.len() <= 100);
        });
    };
    parser.push(answer, &mut out);
    let _ = parser.finish(&mut out);
}

fuzz_target!(|data: &[u8]| {
    // The first byte determines the size of the pieces.
    let Some((cut, answer)) = data.split_first() else { return };
    let (elements, end) = split(answer, answer.len().max(1));
    assert_eq!(split(answer, usize::from(*cut).max(1)), (elements.clone(), end));
    let server = SourceUrl::new("http://p.example:8080");
    for channel in elements.iter().flatten().filter_map(|it| read_channel(it).ok()) {
        assert!(!channel.name.is_empty() && channel.name.chars().count() <= 512);
        assert!(!channel.id.is_empty() && channel.id.len() <= 128);
        let (cmd, needs_link) = (channel.cmd.clone(), channel.needs_link);
        let address = PortalStreamAddress { media: PortalMedia::Channel, id: channel.id, cmd, needs_link };
        let url = address.url(&server);
        assert!(PortalStreamAddress::parse(&url) == Some(address.clone()));
        assert!(address.needs_link || address.link().is_ok());
    }
    let device = PortalDevice::new(MacAddress::parse(MAC).expect("a MAC address"));
    if let Ok(js) = read_answer(answer) {
        for genre in read_genres(&js).values() {
            assert!(!genre.name.is_empty() && genre.name.chars().count() <= 255);
        }
        if let Ok(link) = read_link(&js, &server) {
            assert!(link.is_network() && link.host().is_some_and(|it| it != "localhost"));
        }
        if let Ok(profile) = read_profile(&js, &device) {
            assert!((30..=600).contains(&profile.watchdog_seconds));
            if let PortalProfileState::Refused(message) = profile.state {
                assert!(message.chars().count() <= 200 && !message.to_uppercase().contains(MAC));
            }
        }
        let _ = (read_handshake(&js), read_login(&js), file_command(&js));
        for module in [TitleModule::Vod, TitleModule::Series] {
            if let Ok(title) = PortalTitle::read(&js, module, (&server, &server)) {
                let found = title.into_found(VodCategoryId(1), false);
                let address = found.address.expect("titles of portals have one");
                assert!(PortalStreamAddress::parse(&address).is_some());
            }
        }
        assert!(expiry_of(&js).is_none_or(|it| it > 0));
    }
    check_guide(answer);
    let text = String::from_utf8_lossy(answer);
    if let Some(link) = link_in(&text) {
        assert!(!link.expose().contains(char::is_whitespace));
    }
    if let Ok((base, _)) = pasted_address(&text) {
        // What was read is read again in the same way.
        assert_eq!(pasted_address(base.expose()).map(|it| it.0), Ok(base));
    }
    if let Ok(mac) = MacAddress::parse(&text) {
        assert_eq!(MacAddress::parse(mac.expose()), Ok(mac));
    }
});
