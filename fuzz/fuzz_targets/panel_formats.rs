//! What an answer about a login says about formats: nothing panics, the form of addresses is one that the answer names, and
//! each form is tried once, the one in force first.
#![no_main]

use std::iter::once;

use domain::panel::{LiveForm, LiveFormSource, PanelAnswer};
use domain::source_url::SourceUrl;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

const FORMATS: &str = "allowed_output_formats";

/// Returns the form that an answer names.
fn form_of_login(answer: &[u8]) -> Option<LiveForm> {
    let user_info = PanelAnswer::read(answer).ok()?.user_info;
    let form = LiveForm::from_login(&user_info)?;
    let text = user_info[FORMATS].to_string().to_ascii_lowercase();
    let names: &[&str] = match form {
        LiveForm::Ts => &["ts"],
        LiveForm::M3u8 => &["m3u8", "hls"],
        LiveForm::NoExtension => panic!("no answer names it"),
    };
    assert!(names.iter().any(|it| text.contains(it)), "{form} is not in {text}");
    Some(form)
}

fn check_order(login: Option<LiveForm>) {
    let address = SourceUrl::new("http://panel.example/live/user/password/7.ts?token=x");
    let choices = || once(None).chain(LiveForm::ALL.map(Some));
    for (setting, found) in choices().flat_map(|setting| choices().map(move |found| (setting, found))) {
        let (form, source) = LiveForm::in_force(setting, found, login);
        let expected = match source {
            LiveFormSource::Setting => setting,
            LiveFormSource::Found => found.filter(|_| setting.is_none()),
            LiveFormSource::Login => login.filter(|_| setting.or(found).is_none()),
            LiveFormSource::Default => {
                assert_eq!(setting.or(found).or(login), None);
                Some(LiveForm::default())
            }
        };
        assert_eq!(expected, Some(form));
        let order: Vec<_> = once(form).chain(form.others()).collect();
        assert_eq!(order.len(), LiveForm::ALL.len());
        assert!(LiveForm::ALL.iter().all(|it| order.contains(it)));
        let mut addresses: Vec<_> = order.iter().filter_map(|it| it.applied_to(&address)).collect();
        assert!(addresses.iter().zip(&order).all(|(it, form)| LiveForm::from_url(it) == Some(*form)));
        addresses.sort();
        addresses.dedup();
        assert_eq!(addresses.len(), order.len(), "each form has an address of its own");
    }
}

fuzz_target!(|data: &[u8]| {
    check_order(form_of_login(data));
    // Only the value itself, as JSON or as text.
    let text = || Value::String(String::from_utf8_lossy(data).into_owned());
    let formats = serde_json::from_slice(data).unwrap_or_else(|_| text());
    let answer = json!({ "user_info": { "auth": 1, FORMATS: formats } });
    check_order(form_of_login(answer.to_string().as_bytes()));
});
