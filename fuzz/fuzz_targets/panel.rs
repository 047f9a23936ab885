//! Answers of panels of any kind: nothing panics, every value is within its limits, and the split into pieces makes no
//! difference. The address of a panel, and that of a live stream in each form, is read from the same bytes.
#![no_main]

use domain::panel::{
    Element, ElementParser, ListEnd, LiveForm, PanelAction, PanelAddress, PanelAnswer, PanelLogin,
    read_category, read_stream,
};
use domain::playlist::delta::live_id;
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use libfuzzer_sys::fuzz_target;

/// A small limit, so that small inputs reach it.
const ELEMENT_BYTES_MAX: usize = 128;

fn split(list: &[u8], piece: usize) -> (Vec<Option<Vec<u8>>>, ListEnd) {
    let mut elements = Vec::new();
    let mut parser = ElementParser::new(ELEMENT_BYTES_MAX);
    for bytes in list.chunks(piece) {
        parser.push(bytes, &mut |element| {
            elements.push(match element {
                Element::Value { json, .. } => {
                    assert!(json.len() <= ELEMENT_BYTES_MAX);
                    Some(json.to_vec())
                }
                Element::TooLong => None,
            });
        });
    }
    (elements, parser.finish())
}

fuzz_target!(|data: &[u8]| {
    // The first byte determines the size of the pieces.
    let Some((cut, answer)) = data.split_first() else { return };
    let (elements, end) = split(answer, answer.len().max(1));
    assert_eq!(split(answer, usize::from(*cut).max(1)), (elements.clone(), end));
    for json in elements.iter().flatten() {
        if let Ok(stream) = read_stream(json) {
            assert!(stream.id > 0 && !stream.name.is_empty() && stream.name.chars().count() <= 512);
            assert!(!stream.name.contains(char::is_control));
        }
        if let Ok((id, category)) = read_category(json) {
            assert!(!id.is_empty() && !category.name.is_empty() && category.name.chars().count() <= 255);
        }
    }
    if let Ok(answer) = PanelAnswer::read(answer) {
        assert!(!answer.user_info.contains_key("password"));
        assert!(answer.user_info.len() <= 40 && answer.server_info.len() <= 40);
        assert!(answer.expires_at.is_none_or(|it| it > 0));
        assert_ne!(LiveForm::from_login(&answer.user_info), Some(LiveForm::NoExtension));
    }
    let text = String::from_utf8_lossy(answer);
    // Another form of an address is that of the same stream.
    let address = SourceUrl::new(text.as_ref());
    for form in LiveForm::ALL {
        let Some(changed) = form.applied_to(&address) else {
            assert_eq!(live_id(&address), None);
            continue;
        };
        assert_eq!((live_id(&changed), LiveForm::from_url(&changed)), (live_id(&address), Some(form)));
        assert_eq!(form.applied_to(&changed), Some(changed));
    }
    if let Ok(address) = PanelAddress::parse(&text) {
        // What was read is read again in the same way.
        assert_eq!(PanelAddress::parse(address.server.expose()).map(|it| it.server), Ok(address.server));
    }
    let login = PanelLogin {
        server: SourceUrl::new("http://panel.example"),
        username: format!("a{text}"),
        password: Secret::new(format!("b{text}")),
    };
    let url = login.stream_url(7);
    let read = PanelAddress::parse(url.expose()).expect("an address of our own");
    assert_eq!(read.login, Some((login.username.clone(), login.password.clone())));
    assert!(!format!("{login:?} {read:?} {url:?}").contains(text.as_ref()) || text.len() < 32);
    assert!(login.api_url(PanelAction::LiveStreams).expose().ends_with("&action=get_live_streams"));
});
