//! Searches for UPnP devices: nothing panics, and the number and the content of the answers do not depend on the search.
#![no_main]

use domain::discovery::AnnouncedDevice;
use domain::discovery::ssdp::Search;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let device = AnnouncedDevice {
        device_id: "12345678".to_owned(),
        tuner_count: 10,
        base_url: "http://192.168.1.5:9191".to_owned(),
    };
    let line = String::from_utf8_lossy(data).replace(['\r', '\n'], " ");
    let head = "M-SEARCH * HTTP/1.1\r\nMAN: \"ssdp:discover\"\r\nST: ";
    for message in [data.to_vec(), format!("{head}{line}\r\n\r\n").into_bytes()] {
        let Some(search) = Search::parse(&message) else { continue };
        let answers = search.answers(&device);
        assert!(answers.len() <= 3 && answers.iter().all(|it| it.len() < 500));
    }
});
