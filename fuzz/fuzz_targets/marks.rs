//! Marks in texts of any kind: nothing panics, a text without its marks is a part of a name and never empty, and the fields that
//! marks set are set once.
#![no_main]

use domain::guide::marks::{MarkedText, read, with_marks};
use domain::guide::programme::{LocalText, Programme, from_xml, to_xml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: (&str, &str, &str)| {
    let kinds = [MarkedText::Title, MarkedText::SubTitle, MarkedText::Description];
    for (text, kind) in [texts.0, texts.1, texts.2].into_iter().zip(kinds) {
        if let Some((_, plain)) = read(text, kind) {
            assert!(!plain.trim().is_empty() && plain.len() <= text.len(), "{text:?}");
        }
    }
    let inner = {
        let list = |text: &str| vec![LocalText::new(text)];
        let programme = Programme {
            titles: list(texts.0),
            sub_titles: list(texts.1),
            descriptions: list(texts.2),
            ..Programme::default()
        };
        let mut inner = String::new();
        to_xml(&programme, &mut inner);
        inner
    };
    // Texts with characters that XML does not have cannot be stored; guides have none.
    let Ok(programme) = from_xml(0, 60, &inner) else { return };
    let marked = with_marks(&programme).into_owned();
    assert_eq!(with_marks(&marked).into_owned(), marked);
    let mut stored = String::new();
    to_xml(&marked, &mut stored);
    assert_eq!(from_xml(0, 60, &stored).as_ref(), Ok(&marked), "{stored}");
});
