//! Queries and forms of any bytes: nothing panics, no parameter has a second value that nobody sees, and parameters are read
//! again as they were written.
#![no_main]

use std::collections::BTreeSet;

use domain::query::Query;
use libfuzzer_sys::fuzz_target;

/// Names that players send.
const NAMES: [&str; 6] = ["username", "password", "action", "stream_id", "limit", "scan"];

fuzz_target!(|data: &[u8]| {
    // The first line is the query, everything else the form.
    let end = data.iter().position(|it| *it == b'\n').unwrap_or(data.len());
    let (query, form) = (String::from_utf8_lossy(&data[..end]), data.get(end + 1..).unwrap_or_default());
    let sent = Query::parse(&query);
    for (name, _) in sent.pairs() {
        let values: Vec<&str> = sent.pairs().iter().filter(|it| it.0 == *name).map(|it| &*it.1).collect();
        assert_eq!(sent.single(name), (values.len() == 1).then(|| values[0]));
        let joined = values.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(",");
        assert_eq!(sent.joined(name).unwrap_or_default(), joined);
    }
    match sent.with_form(form, NAMES) {
        Ok(read) => {
            for (name, value) in read.pairs() {
                assert_eq!(read.single(name), Some(value.as_str()));
            }
            let names: BTreeSet<&str> = read.pairs().iter().map(|it| &*it.0).collect();
            assert!(names.iter().all(|it| NAMES.contains(it)));
            assert_eq!(names.len(), read.pairs().len());
            // What was read is read again, from a query and from a form.
            let encode = |text: &str| text.bytes().map(|it| format!("%{it:02X}")).collect::<String>();
            let pairs = read.pairs().iter().map(|(name, value)| format!("{name}={}", encode(value)));
            let text = pairs.collect::<Vec<_>>().join("&");
            assert!(Query::parse(&text) == read);
            assert!(Query::default().with_form(text.as_bytes(), NAMES).is_ok_and(|it| it == read));
        }
        Err(name) => {
            let of_form = Query::parse(&String::from_utf8_lossy(form));
            let all = sent.pairs().iter().chain(of_form.pairs());
            assert!(all.filter(|it| it.0 == name).count() > 1, "{name}");
        }
    }
});
